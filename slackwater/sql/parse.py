"""Text to syntax trees: sqlglot's Spark dialect, with Spark's function names kept as written.

sqlglot folds functions of many dialects into its own classes; we switch that off, so that every
call arrives under the name the user wrote and can be handed to Spark unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError

from slackwater.errors import SqlError

_KEPT_PARSERS = (
    "CAST",
    "TRY_CAST",
    "EXTRACT",
    "POSITION",
    "SUBSTRING",
    "TRIM",
)


def _written_cast(parser: Any, strict: bool) -> exp.Expr:
    """CAST as a call, told apart from constants such as 3L and DATE '2020-01-01'."""
    node: exp.Expr = parser._parse_cast(strict, safe=None if strict else True)
    node.meta["written"] = True
    return node


def _extract(parser: Any) -> exp.Expr:
    """EXTRACT, with the part's name as written: it is in the column's name."""
    part = parser._curr.text
    node: exp.Expr = parser._parse_extract()
    node.meta["part"] = part
    return node


def _plus(parser: Any) -> exp.Expr:
    """Unary plus, which sqlglot would drop: it is a function of Spark's."""
    return exp.Anonymous(this="positive", expressions=[parser._parse_unary()])


class Dialect(Spark):
    """Spark SQL with plain function calls and raising casts."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar[list[str]] = [*Spark.Tokenizer.STRING_ESCAPES, "'", '"']

    class Parser(Spark.Parser):  # type: ignore[misc, valid-type]
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parser
            for name, parser in Spark.Parser.FUNCTION_PARSERS.items()
            if name in _KEPT_PARSERS
        } | {
            "CAST": lambda self: _written_cast(self, True),
            "TRY_CAST": lambda self: _written_cast(self, False),
            "EXTRACT": _extract,
        }
        UNARY_PARSERS: ClassVar[dict[Any, Any]] = {
            **Spark.Parser.UNARY_PARSERS,
            TokenType.PLUS: _plus,
        }
        ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}  # array(1, 2)[0] takes an element
        STRICT_CAST = True


@dataclass(frozen=True)
class Script:
    """One statement of a script: its text, tokens, and where it starts in the whole."""

    text: str
    tokens: tuple[Token, ...]

    def words(self, count: int) -> tuple[str, ...]:
        """The first words, in upper case."""
        return tuple(t.text.upper() for t in self.tokens[:count])


def split(text: str) -> list[Script]:
    """The statements of a script, without their semicolons."""
    scripts: list[list[Token]] = []
    current: list[Token] = []
    tokens = tokenize(text)
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            scripts.append(current)
            current = []
        else:
            current.append(token)
    scripts.append(current)
    return [_script(text, tokens) for tokens in scripts if tokens]


def _script(text: str, tokens: list[Token]) -> Script:
    return Script(text[tokens[0].start : tokens[-1].end + 1], tuple(tokens))


def tokenize(text: str) -> list[Token]:
    """The tokens of a text; an unfinished string or comment is a `SqlError`."""
    try:
        return Dialect().tokenize(text)
    except TokenError as error:
        raise SqlError(
            f"The text cannot be read: {error}",
            code="SYNTAX_ERROR",
            hint="Check quotes and comments: one of them is not closed.",
            sql=text,
            start=max(0, len(text.rstrip()) - 1),
        ) from error


def parse(text: str) -> exp.Expr:
    """The syntax tree of one statement."""
    try:
        tree = sqlglot.parse_one(text, read=Dialect)
    except ParseError as error:
        raise _syntax_error(text, error) from error
    except TokenError:
        tokenize(text)
        raise
    if isinstance(tree, exp.Command):
        raise SqlError(
            f"Statement '{text.split(None, 1)[0].upper()}' is not supported.",
            code="UNSUPPORTED_STATEMENT",
            hint="See the README for the statements Slackwater understands.",
            sql=text,
            start=0,
            end=len(text.split(None, 1)[0]),
        )
    return tree


def parse_expression(text: str) -> exp.Expr:
    """The syntax tree of a scalar expression, as in a column default."""
    tree = parse(f"SELECT {text}")
    selected: exp.Expr = tree.args["expressions"][0]
    return selected


def _syntax_error(text: str, error: ParseError) -> SqlError:
    first = error.errors[0] if error.errors else {}
    start = _offset(text, first.get("line"), first.get("col"), first.get("highlight") or "")
    near = first.get("highlight") or "the end of the statement"
    problem = first.get("description", str(error)).rstrip(".")
    if problem.startswith("Required keyword"):
        problem = "something is missing after it"
    return SqlError(
        f"Syntax error near '{near}': {problem}.",
        code="SYNTAX_ERROR",
        hint="Check the spelling of keywords, commas and parentheses before this place.",
        sql=text,
        start=start,
        end=None if start is None else start + len(first.get("highlight") or " "),
    )


def _offset(text: str, line: int | None, col: int | None, highlight: str) -> int | None:
    """Where a token that ends at (line, col), both counted from one, starts."""
    if line is None or col is None:
        return None
    lines = text.split("\n")
    before = sum(len(row) + 1 for row in lines[: line - 1])
    return max(0, min(before + col - len(highlight), len(text) - 1))


def span(node: exp.Expr | None) -> tuple[int | None, int | None]:
    """Where a syntax node stands in its text, if the parser remembered."""
    if node is None:
        return None, None
    starts, ends = [], []
    for part in node.walk():
        meta = part.meta
        if "start" in meta:
            starts.append(meta["start"])
            ends.append(meta["end"] + 1)
    return (min(starts), max(ends)) if starts else (None, None)
