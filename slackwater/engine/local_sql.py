"""Expressions as DuckDB SQL that gives what Spark gives, errors included."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Sequence
from typing import Any

from slackwater.algebra.coercion import is_interval
from slackwater.algebra.expr import (
    AggCall,
    Call,
    Cast,
    Column,
    Expr,
    Literal,
    SortKey,
    WindowCall,
    conjuncts,
)
from slackwater.algebra.fold import folded
from slackwater.engine.local_aggregates import aggregate_text, window_text
from slackwater.engine.local_casts import cast_text, duck_type
from slackwater.engine.local_dates import DATES, interval
from slackwater.engine.local_errors import error_class, fail
from slackwater.engine.local_math import MATH
from slackwater.engine.local_numbers import NUMBERS
from slackwater.engine.local_raising import may_raise
from slackwater.engine.local_text import TEXT
from slackwater.engine.spark_sql import MANY_ROWS, case_text
from slackwater.errors import InternalError
from slackwater.types import (
    BINARY,
    BOOLEAN,
    DATE,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    is_fractional,
    is_integral,
)

__all__ = ["duck_type", "error_class", "render"]

_EMULATIONS = {**NUMBERS, **MATH, **TEXT, **DATES}
_COMPARISONS = {
    **{n: n for n in ("=", "<", "<=", ">", ">=")},
    "!=": "<>",
    "<=>": "IS NOT DISTINCT FROM",
}
_SUFFIX = {
    "is_null": "IS NULL",
    "is_not_null": "IS NOT NULL",
    "is_true": "IS TRUE",
    "is_false": "IS FALSE",
    "is_not_true": "IS NOT TRUE",
    "is_not_false": "IS NOT FALSE",
}


def render(expr: Expr, columns: Sequence[str]) -> str:
    """The DuckDB SQL text of a portable expression; `columns[i]` is the text of column i."""
    return _Local(columns).text(folded(expr))


def predicate(expr: Expr, columns: Sequence[str]) -> str:
    """The text of a predicate whose NULL is as good as FALSE.

    Conditions that cannot raise stand by themselves, where DuckDB finds join keys and filters;
    one that may raise is computed only where all before it hold.
    """
    texts: list[str] = []
    for part in conjuncts(folded(expr)):
        text = _Local(columns).text(part)
        if texts and may_raise(part):
            text = f"(CASE WHEN {' AND '.join(texts)} THEN {text} ELSE FALSE END)"
        texts.append(text)
    return " AND ".join(texts) or "TRUE"


def grouped(
    keys: Sequence[Expr], aggs: Sequence[Expr], columns: Sequence[str], alias: str
) -> tuple[list[str], list[str]] | None:
    """Select lists of keys and aggregates: of the groups, with each aggregate call once, and of
    what is made of them, where they are a0, a1, … under an alias. None where no call would be
    written twice: a sum that is checked, or an average, mentions one several times."""
    text = _Local(columns).text
    calls: dict[str, str] = {}
    mentioned = 0

    def held(call: str) -> str:
        nonlocal mentioned
        mentioned += 1
        return calls.setdefault(call, f"{alias}.a{len(keys) + len(calls)}")

    made = [f"{alias}.a{i}" for i in range(len(keys))]
    for agg in map(folded, aggs):
        if not isinstance(agg, AggCall) or agg.text:
            raise InternalError(f"{agg.__class__.__name__} does not aggregate on the local engine")
        made.append(aggregate_text(agg, text, held))
    if mentioned == len(calls):
        return None
    return [*(text(folded(key)) for key in keys), *calls], made


class _Local:
    """One rendering, over fixed column texts."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = columns

    def text(self, expr: Expr) -> str:
        match expr:
            case Column():
                return self.columns[expr.index]
            case Literal():
                return render_literal(expr)
            case Call():
                return self.call(expr)
            case Cast():
                return cast_text(expr, self.text(expr.arg))
            case SortKey():
                return self.sort_key(expr)
            case AggCall() if not expr.text:
                return aggregate_text(expr, self.text)
            case WindowCall() if not expr.text:
                return window_text(expr, self.text)
        raise InternalError(f"{expr.__class__.__name__} does not run on the local engine")

    def call(self, expr: Call) -> str:
        args = [self.text(a) for a in expr.args]
        name = expr.name
        if name in _COMPARISONS:
            compared = f"({args[0]} {_COMPARISONS[name]} {args[1]})"
            return compared if name == "<=>" else _skipping(expr, args, compared)
        if name in _EMULATIONS:
            result = _moved(expr, args) if _moves(expr) else _EMULATIONS[name](expr, args)
            return result if name in _NULL_TOLERANT else _skipping(expr, args, result)
        if name in _NULL_TESTS and may_raise(expr.args[0]):
            return f"({args[0]} {_NULL_TESTS[name]})"
        if name in _SUFFIX:
            return f"({args[0]} {_SUFFIX[name]})"
        return self.structure(expr, args)

    def structure(self, expr: Call, args: list[str]) -> str:
        """Logic and conditionals."""
        match expr.name:
            case "and" | "or":
                return _logic(expr, args)
            case "not":
                return f"(NOT {args[0]})"
            case "in":
                return f"({args[0]} IN ({', '.join(args[1:])}))"
            case "case":
                return case_text(args)
            case "single_value":
                many = fail("SCALAR_SUBQUERY_TOO_MANY_ROWS", MANY_ROWS)
                return f"(CASE WHEN {args[0]} > 1 THEN {many} ELSE {args[1]} END)"
            case "coalesce" | "greatest" | "least":
                return f"{expr.name}({', '.join(args)})"
        raise InternalError(f"'{expr.name}' does not run on the local engine")

    def sort_key(self, key: SortKey) -> str:
        direction = "ASC" if key.ascending else "DESC"
        return f"{self.text(key.arg)} {direction} NULLS {'FIRST' if key.nulls_first else 'LAST'}"


_NULL_TESTS = {"is_null": "IS NOT DISTINCT FROM NULL", "is_not_null": "IS DISTINCT FROM NULL"}
"""In words of which DuckDB does not know the answer without computing what is tested: by the
statistics of files that hold no NULL it answers IS NULL, and raises nothing."""
_NULL_TOLERANT = frozenset({"concat", "concat_ws", "isnan", "locate"})
_RIGHT_FIRST = frozenset({"/", "%", "div", "pmod", "try_divide", "try_mod"})


def _skipping(expr: Call, args: list[str], result: str) -> str:
    """Spark evaluates arguments in order and stops at a NULL; so an argument that may raise is
    kept from rows in which an earlier one is NULL."""
    order = list(zip(expr.args, args, strict=True))
    if expr.name in _RIGHT_FIRST:
        order.reverse()
    raising = [i for i, (arg, _) in enumerate(order) if i and may_raise(arg)]
    earlier = order[: raising[-1]] if raising else []
    tests = [f"{text} IS NULL" for arg, text in earlier if arg.nullable]
    return f"(CASE WHEN {' OR '.join(tests)} THEN NULL ELSE {result} END)" if tests else result


def _moves(expr: Call) -> bool:
    """A date or timestamp plus or minus an interval literal."""
    return expr.name in ("+", "-") and is_interval(expr.args[-1].type)


def _moved(expr: Call, args: list[str]) -> str:
    step = expr.args[1]
    assert isinstance(step, Literal)
    text = f"({args[0]} {expr.name} {interval(step)})"
    return f"CAST({text} AS DATE)" if expr.type == DATE else text


def _logic(expr: Call, args: list[str]) -> str:
    """AND and OR; where the right side may raise, CASE keeps it from rows that the left side
    has decided, since DuckDB evaluates both sides and in any order."""
    left, right = args
    plain = f"({left} {expr.name.upper()} {right})"
    if not may_raise(expr.args[1]):
        return plain
    if expr.name == "and":
        return f"(CASE WHEN NOT {left} THEN FALSE ELSE {plain} END)"
    return f"(CASE WHEN {left} THEN TRUE ELSE {plain} END)"


def render_literal(expr: Literal) -> str:
    """A constant of the exact type."""
    value, t = expr.value, expr.type
    if value is None:
        return "NULL" if t == NULL else f"CAST(NULL AS {duck_type(t)})"
    if t == BOOLEAN:
        return "TRUE" if value else "FALSE"
    if is_integral(t):
        return f"CAST({value} AS {duck_type(t)})"
    if isinstance(t, Decimal):
        return f"CAST('{decimal.Decimal(value):f}' AS {duck_type(t)})"
    if is_fractional(t):
        return _double(float(value), t)
    return _other(value, t)


def _double(value: float, t: DataType) -> str:
    if math.isfinite(value):
        text = repr(value) if "e" in repr(value) else f"{value!r}e0"
        return f"CAST({text} AS {duck_type(t)})"
    return f"CAST('{value}' AS {duck_type(t)})"


def _other(value: Any, t: DataType) -> str:
    if t == STRING:
        return f"'{str(value).replace(chr(39), chr(39) * 2)}'"
    if t == BINARY:
        return "CAST('" + "".join(f"\\x{b:02X}" for b in value) + "' AS BLOB)"
    if t == DATE:
        return f"DATE '{value.isoformat()}'"
    if t == TIMESTAMP:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    if t in (TIMESTAMP, TIMESTAMP_NTZ):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if is_interval(t):
        return interval(Literal(t, False, value))
    raise InternalError(f"no local literal of type {t.sql}")
