"""Has a statement been typed to its end? Asked at every press of Enter.

A scanner by hand: the text is unfinished by nature, which a parser would refuse.
"""

from __future__ import annotations

import re

_PIECE = re.compile(
    r"""
    --[^\n]*(?:\n|$)            # a comment to the end of the line
  | /\*.*?\*/                   # a comment over lines
  | '(?:[^'\\]|\\.|'')*'        # a string
  | "(?:[^"\\]|\\.|"")*"        # a string in double quotes
  | `(?:[^`]|``)*`              # a quoted name
  | [^-/'"`]+                   # anything else
  | -(?!-) | /(?!\*)         # a sign that opens no comment
    """,
    re.VERBOSE | re.DOTALL,
)


def is_complete(text: str) -> bool:
    """Does the text end with a `;` that closes a statement?

    >>> is_complete("SELECT 1;"), is_complete("SELECT ';"), is_complete("SELECT 1; -- done")
    (True, False, True)
    >>> is_complete("SELECT 4 / 2;"), is_complete("SELECT 1 /* ;")
    (True, False)
    """
    code = ""
    at = 0
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None:
            return False  # a quote or a comment is still open
        if not piece[0].startswith(("--", "/*")):
            code += "''" if piece[0][0] in "'\"`" else piece[0]
        at = piece.end()
    return code.rstrip().endswith(";")
