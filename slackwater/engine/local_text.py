"""Text functions on the local engine.

Case mapping is Java's in Spark and simple in DuckDB; they agree on ASCII, and other text goes to
Spark.
"""

from __future__ import annotations

from collections.abc import Callable

from slackwater.algebra.expr import Call, Literal
from slackwater.engine.local_errors import fail, needs_spark

Emulation = Callable[[Call, list[str]], str]


def _ascii_only(text: str, then: str) -> str:
    """`then` where `text` is ASCII (as many bytes as characters)."""
    return (
        f"(CASE WHEN {text} IS NULL THEN NULL WHEN strlen({text}) = length({text}) THEN {then}"
        f" ELSE {needs_spark('text beyond ASCII')} END)"
    )


def _case_mapping(expr: Call, args: list[str]) -> str:
    return _ascii_only(args[0], f"{expr.name}({args[0]})")


def _trim(expr: Call, args: list[str]) -> str:
    """Blanks only, unlike DuckDB's default."""
    return f"{expr.name}({args[0]}, ' ')"


def _length(expr: Call, args: list[str]) -> str:
    return f"CAST(length({args[0]}) AS INTEGER)"


def _bytes(expr: Call, args: list[str]) -> str:
    factor = 8 if expr.name == "bit_length" else 1
    return f"CAST(strlen({args[0]}) * {factor} AS INTEGER)"


def _chr(expr: Call, args: list[str]) -> str:
    """Spark: '' for negative numbers, else the character at the number modulo 256."""
    n = args[0]
    return f"(CASE WHEN {n} < 0 THEN '' ELSE chr(CAST({n} & 255 AS INTEGER)) END)"


def _concat(expr: Call, args: list[str]) -> str:
    return f"({' || '.join(args)})" if len(args) > 1 else f"({args[0]} || '')"


def _concat_ws(expr: Call, args: list[str]) -> str:
    """DuckDB wants one value at least; NULL values are left out by both."""
    return f"concat_ws({', '.join([*args, 'NULL'])})"


def _substring(expr: Call, args: list[str]) -> str:
    """Characters from `start` (0-based; counted from the end if negative) to `start + length`.

    What lies before the text counts: substring('abc', -5, 3) is 'a'.
    """
    text, position, length = args
    first, count = (a.value if isinstance(a, Literal) else None for a in expr.args[1:])
    if first is not None and count is not None and first >= 0 and count > 0:
        return f"substring({text}, {max(first, 1)}, {count})"
    start = (
        f"(CASE WHEN {position} > 0 THEN CAST({position} AS BIGINT) - 1"
        f" WHEN {position} < 0 THEN length({text}) + {position} ELSE 0 END)"
    )
    return (
        f"(CASE WHEN {text} IS NULL OR {position} IS NULL OR {length} IS NULL THEN NULL ELSE "
        f"substring({text}, greatest({start}, 0) + 1,"
        f" least(greatest({start} + {length} - greatest({start}, 0), 0), 2147483647)) END)"
    )


def _left(expr: Call, args: list[str]) -> str:
    return f"left({args[0]}, {_at_least_zero(args[1])})"


def _at_least_zero(n: str) -> str:
    """`greatest` alone would skip a NULL."""
    return f"(CASE WHEN {n} IS NULL THEN NULL ELSE greatest({n}, 0) END)"


def _right(expr: Call, args: list[str]) -> str:
    return f"right({args[0]}, {_at_least_zero(args[1])})"


def _repeat(expr: Call, args: list[str]) -> str:
    return f"repeat({args[0]}, {_at_least_zero(args[1])})"


def _pad(expr: Call, args: list[str]) -> str:
    """An empty pad leaves the text as it is, cut to length."""
    text, length, pad = args
    n = f"CAST({_at_least_zero(length)} AS INTEGER)"
    return f"(CASE WHEN {pad} = '' THEN left({text}, {n}) ELSE {expr.name}({text}, {n}, {pad}) END)"


def _instr(expr: Call, args: list[str]) -> str:
    return f"CAST(instr({args[0]}, {args[1]}) AS INTEGER)"


def _locate(expr: Call, args: list[str]) -> str:
    """From a 1-based start; 0 where not found, for a start below 1, and for a NULL start."""
    part, text, start = args
    if isinstance(expr.args[2], Literal) and expr.args[2].value == 1:
        return f"CAST(instr({text}, {part}) AS INTEGER)"
    tail = f"instr(substring({text}, {start}), {part})"
    return (
        f"(CASE WHEN {start} IS NULL THEN 0 WHEN {part} IS NULL OR {text} IS NULL THEN NULL"
        f" WHEN greatest({start}, 0) = 0 THEN 0 WHEN {part} = '' THEN 1 WHEN {tail} = 0 THEN 0"
        f" ELSE CAST({tail} + {start} - 1 AS INTEGER) END)"
    )


def _translate(expr: Call, args: list[str]) -> str:
    return f"translate({', '.join(args)})"


def _like(expr: Call, args: list[str]) -> str:
    text, pattern = args
    literal = expr.args[1]
    if isinstance(literal, Literal):
        escape = " ESCAPE '\\'" if literal.value and "\\" in literal.value else ""
        return f"({text} LIKE {pattern}{escape})"
    escaped = needs_spark("an escape in a pattern")
    guarded = f"(CASE WHEN contains({pattern}, '\\') THEN {escaped} ELSE {pattern} END)"
    return f"({text} LIKE {guarded})"


def _ilike(expr: Call, args: list[str]) -> str:
    lowered = [_ascii_only(a, f"lower({a})") for a in args]
    return _like(expr, lowered)


def _affix(name: str) -> Emulation:
    return lambda expr, args: f"{name}({', '.join(args)})"


def _split_part(expr: Call, args: list[str]) -> str:
    """Part 0 is an error; an empty delimiter splits nothing."""
    text, delimiter, part = args
    zero = fail("INVALID_INDEX_OF_ZERO", "The index 0 is invalid: parts count from 1 or -1.")
    return (
        f"(CASE WHEN {text} IS NULL OR {delimiter} IS NULL THEN NULL WHEN {part} = 0 THEN {zero}"
        f" WHEN {delimiter} = '' THEN CASE WHEN {part} IN (1, -1) THEN {text}"
        f" WHEN {part} IS NULL THEN NULL ELSE '' END"
        f" ELSE split_part({text}, {delimiter}, {part}) END)"
    )


def _ascii(expr: Call, args: list[str]) -> str:
    return f"ascii({args[0]})"


def _reverse(expr: Call, args: list[str]) -> str:
    """DuckDB turns grapheme clusters, Spark code points: the same for ASCII."""
    return _ascii_only(args[0], f"reverse({args[0]})")


TEXT: dict[str, Emulation] = {
    "upper": _case_mapping,
    "lower": _case_mapping,
    "trim": _trim,
    "ltrim": _trim,
    "rtrim": _trim,
    "reverse": _reverse,
    "length": _length,
    "bit_length": _bytes,
    "octet_length": _bytes,
    "ascii": _ascii,
    "chr": _chr,
    "concat": _concat,
    "concat_ws": _concat_ws,
    "replace": _affix("replace"),
    "translate": _translate,
    "substring": _substring,
    "left": _left,
    "right": _right,
    "repeat": _repeat,
    "lpad": _pad,
    "rpad": _pad,
    "instr": _instr,
    "locate": _locate,
    "split_part": _split_part,
    "startswith": _affix("starts_with"),
    "endswith": _affix("ends_with"),
    "contains": _affix("contains"),
    "like": _like,
    "ilike": _ilike,
}
