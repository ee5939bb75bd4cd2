"""Typed scalar expressions; which are portable, deterministic, and may raise.

A `Column` is a position in the row of the relation below (in a join: left columns, then right
columns), so equal expressions are equal whatever the aliases in the SQL were.

Functions and operators known to `algebra/functions.py` are `Call`s; everything else Spark knows
is a `SparkCall`, a text with placeholders whose type Spark's analyzer gave.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from slackwater.errors import InternalError
from slackwater.tree import Family, Node
from slackwater.types import BOOLEAN, DataType


@dataclass(frozen=True, eq=False)
class Expr(Node):
    """A scalar expression with its Spark type. `type` and `nullable` are fields or properties."""

    type: DataType
    nullable: bool

    @classmethod
    def kind(cls) -> Family:
        return Expr

    @cached_property
    def places(self) -> frozenset[int]:
        """Indexes of the input columns that it reads."""
        return frozenset(n.index for n in self.walk() if isinstance(n, Column))


@dataclass(frozen=True, eq=False)
class Column(Expr):
    """The value at `index` of the input row."""

    index: int


@dataclass(frozen=True, eq=False)
class Literal(Expr):
    """A constant.

    Values are Python's: None, bool, int, float, decimal.Decimal, str, bytes, datetime.date,
    datetime.datetime (aware, UTC, for TIMESTAMP; naive for TIMESTAMP_NTZ), datetime.timedelta
    (day-time interval), int months (year-month interval).
    """

    value: Any

    def identity(self) -> tuple[Any, ...]:
        return (self.type, self.nullable, repr(self.value))


@dataclass(frozen=True, eq=False)
class Call(Expr):
    """A portable function or operator; arguments already have the types it computes on."""

    name: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, eq=False)
class Cast(Expr):
    """CAST (raises) or TRY_CAST (`safe`, gives NULL).

    With `column`, the quoted path of a column, it stores a value there and raises as INSERT does.
    """

    arg: Expr
    safe: bool = False
    column: str | None = None


@dataclass(frozen=True, eq=False)
class SparkCall(Expr):
    """An expression only Spark computes: SQL text in which `{0}`, `{1}` stand for `args`."""

    text: str
    args: tuple[Expr, ...]
    deterministic: bool = True


@dataclass(frozen=True, eq=False)
class SortKey(Expr):
    """One ORDER BY item."""

    arg: Expr
    ascending: bool = True
    nulls_first: bool = True


@dataclass(frozen=True, eq=False)
class AggCall(Expr):
    """An aggregate function. With `text` it is Spark's alone, as in `SparkCall`."""

    name: str
    args: tuple[Expr, ...]
    distinct: bool = False
    where: Expr | None = None
    text: str = ""


@dataclass(frozen=True)
class Frame:
    """A window frame. A bound is an offset in rows (negative: preceding), or None: unbounded.

    For RANGE frames with offsets the bounds are SQL texts that Spark understands.
    """

    unit: str  # "rows" or "range"
    start: int | str | None
    end: int | str | None


@dataclass(frozen=True, eq=False)
class WindowCall(Expr):
    """A window function, over `partition_by`, in the order of `order_by`, within `frame`.

    `frame` is None where the function takes none (row_number, rank, lag, …).
    """

    name: str
    args: tuple[Expr, ...]
    partition_by: tuple[Expr, ...]
    order_by: tuple[SortKey, ...]
    frame: Frame | None
    text: str = ""
    where: Expr | None = None
    ignore_nulls: bool = False


def column(index: int, field: Any) -> Column:
    """The column of `field` (a `types.Field`) at a position."""
    return _column(field.type, field.nullable, index)


@lru_cache(maxsize=2**16)
def _column(type: DataType, nullable: bool, index: int) -> Column:
    """Asked for more often than anything else, and there are few."""
    return Column(type, nullable, index)


def columns(schema: Any, start: int = 0) -> tuple[Column, ...]:
    """References to every column of a schema."""
    return tuple(column(start + i, f) for i, f in enumerate(schema))


TRUE = Literal(BOOLEAN, False, True)
FALSE = Literal(BOOLEAN, False, False)


def transform(expr: Any, change: Callable[[Any], Any | None]) -> Any:
    """Top-down replacement: where `change` gives an expression, it stands instead of the node
    and is not descended into; where it gives None, the children are visited."""
    known: dict[Expr, Expr] = {}

    def visit(node: Expr) -> Expr:
        if node not in known:
            changed = change(node)
            known[node] = node.with_children(visit) if changed is None else changed
        return known[node]

    return visit(expr)


def shift(expr: Any, by: int) -> Any:
    """The expression over a row in which its columns stand `by` places further right."""
    return remap(expr, lambda i: i + by) if by else expr


def remap(expr: Any, place: Callable[[int], int]) -> Any:
    """The expression with every column index sent through `place`."""
    if isinstance(expr, Column):  # as most are
        return _column(expr.type, expr.nullable, place(expr.index))
    if all(place(i) == i for i in expr.places):
        return expr

    def moved(e: Expr) -> Expr | None:
        return _column(e.type, e.nullable, place(e.index)) if isinstance(e, Column) else None

    return transform(expr, moved)


def substitute(expr: Any, values: tuple[Expr, ...]) -> Any:
    """The expression with column i replaced by `values[i]`."""
    if isinstance(expr, Column):
        return values[expr.index]
    if not expr.places:
        return expr
    return transform(expr, lambda e: values[e.index] if isinstance(e, Column) else None)


def used_columns(*exprs: Expr) -> set[int]:
    """Indexes of the input columns that the expressions read."""
    return set().union(*(e.places for e in exprs))


def conjuncts(predicate: Expr) -> list[Expr]:
    """The parts of an AND, left to right; none for TRUE."""
    if predicate is TRUE:
        return []
    if isinstance(predicate, Call) and predicate.name == "and":
        return [part for arg in predicate.args for part in conjuncts(arg)]
    return [predicate]


def conjunction(parts: Sequence[Expr]) -> Expr:
    """The AND of predicates; TRUE for none."""
    result: Expr = TRUE
    for part in parts:
        if part is TRUE:
            continue
        if result is TRUE:
            result = part
        else:
            result = Call(BOOLEAN, result.nullable or part.nullable, "and", (result, part))
    return result


def is_portable(expr: Expr) -> bool:
    """Does the expression run on both engines with identical results?"""
    return all(
        not isinstance(n, SparkCall) and not (isinstance(n, AggCall | WindowCall) and n.text)
        for n in expr.walk()
    )


def is_deterministic(expr: Expr) -> bool:
    """Does the expression give the same value for the same row, always?"""
    return all(not isinstance(n, SparkCall) or n.deterministic for n in expr.walk())


def require_boolean(expr: Expr, where: str) -> None:
    """Refuse a predicate that is not boolean; the binder has told the user already."""
    if expr.type != BOOLEAN:
        raise InternalError(f"{where} is {expr.type.sql}, not BOOLEAN")


def with_nullable(expr: Any, nullable: bool) -> Any:
    """The expression, known to give NULL or not."""
    return expr if expr.nullable == nullable else dataclasses.replace(expr, nullable=nullable)
