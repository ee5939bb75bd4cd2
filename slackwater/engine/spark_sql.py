"""Expressions as Spark SQL text that Spark's analyzer types as we do.

Session: ANSI mode, time zone UTC.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from collections.abc import Sequence
from typing import Any

from slackwater.algebra.coercion import is_interval, literal
from slackwater.algebra.expr import (
    AggCall,
    Call,
    Cast,
    Column,
    Expr,
    Frame,
    Literal,
    SortKey,
    SparkCall,
    WindowCall,
)
from slackwater.algebra.fold import known
from slackwater.algebra.functions.storing import checked_cast
from slackwater.errors import InternalError
from slackwater.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    DataType,
    Decimal,
    quote_text,
)

MANY_ROWS = "A subquery used as a value gave more than one row."

_INFIX = frozenset("+ - * / % = != < <= > >= <=> & | ^ div and or like ilike".split())
_SUFFIX = {
    "is_null": "IS NULL",
    "is_not_null": "IS NOT NULL",
    "is_true": "IS TRUE",
    "is_false": "IS FALSE",
    "is_not_true": "IS NOT TRUE",
    "is_not_false": "IS NOT FALSE",
}
_PREFIX = {"not": "NOT ", "neg": "- ", "~": "~ "}
_NAMES = {"<<": "shiftleft", ">>": "shiftright"}


def render(expr: Expr, columns: Sequence[str]) -> str:
    """The Spark SQL text of an expression; `columns[i]` is the text of column i."""
    return _Spark(columns).text(expr.rewrite(known))


class _Spark:
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
            case Cast() if expr.column is not None:
                return checked_cast(self.text(expr.arg), expr.arg.type, expr.type, expr.column)
            case Cast():
                verb = "TRY_CAST" if expr.safe else "CAST"
                return f"{verb}({self.text(expr.arg)} AS {expr.type.sql})"
            case SparkCall():
                return self.fill(expr.text, expr.args)
            case SortKey():
                return self.sort_key(expr)
            case AggCall():
                return self.aggregate(expr)
            case WindowCall():
                return self.window(expr)
        raise InternalError(f"no Spark SQL for {expr.__class__.__name__}")

    def texts(self, exprs: Sequence[Expr]) -> list[str]:
        return [self.text(e) for e in exprs]

    def fill(self, text: str, args: Sequence[Expr]) -> str:
        """Put arguments for `{0}`, `{1}`, …; doubled braces stand for one."""
        return fill(text, self.texts(args))

    def call(self, expr: Call) -> str:
        args = self.texts(expr.args)
        name = expr.name
        if name in _INFIX:
            return f"({args[0]} {name.upper()} {args[1]})"
        if name in _SUFFIX:
            return f"({args[0]} {_SUFFIX[name]})"
        if name in _PREFIX:
            return f"({_PREFIX[name]}{args[0]})"
        if name == "in":
            return f"({args[0]} IN ({', '.join(args[1:])}))"
        if name == "case":
            return case_text(args)
        if name == "average":
            return f"CAST({args[0]} / CAST({args[1]} AS DECIMAL(20,0)) AS {expr.type.sql})"
        if name == "single_value":
            raised = f"raise_error('[SCALAR_SUBQUERY_TOO_MANY_ROWS] {MANY_ROWS}')"
            many = f"CAST({raised} AS {expr.type.sql})"
            return f"(CASE WHEN {args[0]} > 1 THEN {many} ELSE {args[1]} END)"
        return f"{_NAMES.get(name, name)}({', '.join(args)})"

    def sort_key(self, key: SortKey) -> str:
        direction = "ASC" if key.ascending else "DESC"
        return f"{self.text(key.arg)} {direction} NULLS {'FIRST' if key.nulls_first else 'LAST'}"

    def aggregate(self, expr: AggCall) -> str:
        if expr.text:
            text = self.fill(expr.text, expr.args)
        else:
            args = ", ".join(self.texts(expr.args)) or "*"
            text = f"{expr.name}({'DISTINCT ' if expr.distinct else ''}{args})"
        return text + self.filter(expr.where)

    def filter(self, where: Expr | None) -> str:
        return "" if where is None else f" FILTER (WHERE {self.text(where)})"

    def window(self, expr: WindowCall) -> str:
        if expr.text:
            text = self.fill(expr.text, expr.args)
        else:
            none = "*" if expr.name == "count" else ""
            text = f"{expr.name}({', '.join(self.texts(expr.args)) or none})"
        nulls = " IGNORE NULLS" if expr.ignore_nulls else ""
        return f"{text}{self.filter(expr.where)}{nulls} OVER ({self.over(expr)})"

    def over(self, expr: WindowCall) -> str:
        parts = []
        if expr.partition_by:
            parts.append(f"PARTITION BY {', '.join(self.texts(expr.partition_by))}")
        if expr.order_by:
            parts.append(f"ORDER BY {', '.join(self.texts(expr.order_by))}")
        if expr.frame is not None:
            parts.append(frame_text(expr.frame))
        return " ".join(parts)


_PLACE = re.compile(r"\{(\d+)\}|\{\{|\}\}")


def fill(text: str, values: Sequence[str]) -> str:
    """Put values for `{0}`, `{1}`, …; doubled braces stand for one.

    >>> fill("f({0}, '{{x}}')", ["a"])
    "f(a, '{x}')"
    """

    def put(found: re.Match[str]) -> str:
        return values[int(found[1])] if found[1] else found[0][0]

    return _PLACE.sub(put, text)


def case_text(args: Sequence[str]) -> str:
    """CASE from condition, value, …, else."""
    pairs = zip(args[:-1:2], args[1:-1:2], strict=True)
    whens = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
    return f"(CASE {whens} ELSE {args[-1]} END)"


def frame_text(frame: Frame) -> str:
    """ROWS or RANGE BETWEEN …"""
    start, end = _bound(frame.start, "PRECEDING"), _bound(frame.end, "FOLLOWING")
    return f"{frame.unit.upper()} BETWEEN {start} AND {end}"


def _bound(bound: int | str | None, unbounded: str) -> str:
    if bound is None:
        return f"UNBOUNDED {unbounded}"
    if isinstance(bound, str):
        return bound
    if bound == 0:
        return "CURRENT ROW"
    return f"{abs(bound)} {'PRECEDING' if bound < 0 else 'FOLLOWING'}"


# ---- literals -----------------------------------------------------------------------------

_SUFFIXES: dict[DataType, str] = {TINYINT: "Y", SMALLINT: "S", INT: "", BIGINT: "L"}


def render_literal(expr: Literal) -> str:
    """A constant that keeps its exact type when Spark reads it."""
    value, t = expr.value, expr.type
    if value is None:
        return "NULL" if t == NULL else f"CAST(NULL AS {t.sql})"
    if t == BOOLEAN:
        return "TRUE" if value else "FALSE"
    if t in _SUFFIXES:
        text = f"{value}{_SUFFIXES[t]}"
        return f"({text})" if value < 0 else text
    if isinstance(t, Decimal):
        return _decimal(decimal.Decimal(value), t)
    if t in (FLOAT, DOUBLE):
        return _double(float(value), t)
    return _other(value, t)


def _decimal(value: decimal.Decimal, t: Decimal) -> str:
    if value >= 0 and literal(value).type == t:
        return f"{value:f}BD"
    return f"CAST('{value:f}' AS {t.sql})"


def _double(value: float, t: DataType) -> str:
    if math.isnan(value) or math.isinf(value):
        name = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return f"CAST('{name}' AS {t.sql})"
    text = f"{value!r}{'D' if t == DOUBLE else 'F'}"
    return f"({text})" if text.startswith("-") else text


def _other(value: Any, t: DataType) -> str:
    if t == STRING:
        return quote_text(value)
    if t == BINARY:
        return f"X'{value.hex()}'"
    if t == DATE:
        return f"DATE'{value.isoformat()}'"
    if t == TIMESTAMP:
        moment = value.astimezone(dt.UTC).replace(tzinfo=None)
        return f"TIMESTAMP_LTZ'{moment.isoformat(sep=' ')}'"
    if t == TIMESTAMP_NTZ:
        return f"TIMESTAMP_NTZ'{value.isoformat(sep=' ')}'"
    if is_interval(t):
        return _interval(value, t)
    raise InternalError(f"no Spark SQL literal of type {t.sql}")


def _interval(value: Any, t: DataType) -> str:
    if isinstance(value, int):
        text = f"INTERVAL '{value}' MONTH"
        return text if t.json == "interval month" else f"CAST({text} AS {t.sql})"
    sign = "-" if value < dt.timedelta(0) else ""
    span = abs(value)
    clock = str(span - dt.timedelta(days=span.days)).rjust(8, "0")
    text = f"INTERVAL '{sign}{span.days} {clock}' DAY TO SECOND"
    return text if t.json == "interval day to second" else f"CAST({text} AS {t.sql})"
