"""Aggregate and window functions on the local engine.

DuckDB sums integers as HUGEINT and decimals with 38 digits; the cast to Spark's result type is
the overflow check. Averages of decimals are quotients of exact sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from slackwater.algebra.coercion import MAX_DIGITS
from slackwater.algebra.expr import AggCall, Expr, WindowCall
from slackwater.engine.local_casts import duck_type
from slackwater.engine.local_errors import fail
from slackwater.engine.local_numbers import decimal_quotient, unscaled
from slackwater.engine.local_raising import may_raise
from slackwater.engine.spark_sql import frame_text
from slackwater.types import Decimal, is_integral

Render = Callable[[Expr], str]
Held = Callable[[str], str]
"""An aggregate call → the text of its value."""
Apply = Callable[[str, Sequence[str]], str]
"""Function name and arguments → the aggregate or window call."""


def aggregate_text(expr: AggCall, text: Render, held: Held = str) -> str:
    """An aggregate call. What is made of several calls, or of one at several places, stands in
    terms of what they are `held` as."""
    args, where = _guarded(expr, text)
    distinct = "DISTINCT " if expr.distinct else ""
    tail = f" FILTER (WHERE {where})" if where else ""

    def apply(name: str, values: Sequence[str]) -> str:
        return held(f"{name}({distinct}{', '.join(values) or '*'}){tail}")

    return _value(expr, args, apply)


def _guarded(expr: AggCall, text: Render) -> tuple[list[str], str]:
    """Arguments and filter. DuckDB evaluates arguments on rows the filter drops, so arguments
    that may raise are evaluated under the filter, and NULL elsewhere."""
    where = "" if expr.where is None else text(expr.where)
    args = [text(a) for a in expr.args]
    if where and any(may_raise(a) for a in expr.args):
        args = [f"(CASE WHEN {where} THEN {a} END)" for a in args]
    return args, where


def _value(expr: AggCall | WindowCall, args: list[str], apply: Apply) -> str:
    match expr.name:
        case "count" if len(args) > 1:
            return _count_rows(expr, args, apply)
        case "count_if":
            return apply("count", [f"(CASE WHEN {args[0]} THEN 1 END)"])
        case "sum" if isinstance(expr.type, Decimal) and expr.type.precision == MAX_DIGITS:
            return _checked_sum(expr.type, apply(expr.name, args))
        case "sum" | "bit_and" | "bit_or" | "bit_xor":
            return f"CAST({apply(expr.name, args)} AS {duck_type(expr.type)})"
        case "avg":
            return _average(expr, args, apply)
        case "var_samp" | "var_pop" | "stddev_samp" | "stddev_pop":
            return apply(expr.name, [f"CAST({args[0]} AS DOUBLE)"])
    return apply(expr.name, args)


def _checked_sum(t: Decimal, total: str) -> str:
    """DuckDB keeps sums of decimals in 127 bits, which is a little more than 38 digits."""
    far = fail("ARITHMETIC_OVERFLOW", "Overflow in sum of decimals.")
    digits = f"abs({unscaled(f'({total})', t, t.scale)})"
    cast = f"CAST({total} AS {duck_type(t)})"
    return f"(CASE WHEN {digits} > {10**MAX_DIGITS - 1}::HUGEINT THEN {far} ELSE {cast} END)"


def _count_rows(expr: AggCall | WindowCall, args: list[str], apply: Apply) -> str:
    """Rows (or different rows) without NULLs."""
    whole = " AND ".join(f"{a} IS NOT NULL" for a in args)
    return apply("count", [f"(CASE WHEN {whole} THEN row({', '.join(args)}) END)"])


def _average(expr: AggCall | WindowCall, args: list[str], apply: Apply) -> str:
    total, count = apply("sum", args), apply("count", args)
    source = expr.args[0].type
    if not isinstance(source, Decimal) or not isinstance(expr.type, Decimal):
        total = f"CAST({total} AS DOUBLE)" if is_integral(source) else total
        return f"(CASE WHEN {count} > 0 THEN {total} / {count} END)"
    sums = Decimal(38, source.scale)
    counted = f"CAST({count} AS DECIMAL(20,0))"
    quotient = decimal_quotient([total, counted], [sums, Decimal(20, 0)], expr.type)
    return f"(CASE WHEN {count} > 0 THEN {quotient} END)"


def window_text(expr: WindowCall, text: Render) -> str:
    """A window call."""
    where = f" FILTER (WHERE {text(expr.where)})" if expr.where is not None else ""
    over = f" OVER ({_over(expr, text)})"
    nulls = " IGNORE NULLS" if expr.ignore_nulls else ""
    empty = "*" if expr.name == "count" else ""

    def apply(name: str, values: Sequence[str]) -> str:
        return f"{name}({', '.join(values) or empty}{nulls}){where}{over}"

    result = _value(expr, [text(a) for a in expr.args], apply)
    return f"CAST({result} AS {duck_type(expr.type)})"


def _over(expr: WindowCall, text: Render) -> str:
    parts = []
    if expr.partition_by:
        parts.append(f"PARTITION BY {', '.join(text(e) for e in expr.partition_by)}")
    if expr.order_by:
        parts.append(f"ORDER BY {', '.join(text(e) for e in expr.order_by)}")
    if expr.frame is not None:
        parts.append(frame_text(expr.frame))
    return " ".join(parts)
