"""Segments added up: one Z-relation that is worth what several are together."""

from __future__ import annotations

from slackwater.algebra import functions
from slackwater.algebra.expr import AggCall, Call, Column, Expr, SortKey, columns
from slackwater.algebra.relation import Aggregate, Filter, Relation, Sort
from slackwater.sql import build
from slackwater.tvr import zset
from slackwater.types import BOOLEAN, Atomic, Decimal


def merged(z: Relation, kind: str, cancels: bool) -> Relation:
    """The sum of stored rows, clustered by key.

    `sums`: S + S' adds the partial sums and row counts of equal keys; groups where all is zero go.
    `rows`, `buffer`: R + R' adds the weights of equal rows; zeros go. Where nothing `cancels`, no
    row is taken away, and rows stay as they are: equal rows need not meet.
    """
    if kind == "sums":
        return clustered(_summed(z), kind)
    return clustered(zset.consolidate(z) if cancels else z, kind)


def clustered(z: Relation, kind: str) -> Relation:
    """Stored rows in the order of their keys, so that equal and near ones stand in the same row
    groups."""
    keys = columns(z.schema)[: _key_count(z) if kind == "sums" else 1]
    chosen = [k for k in keys if isinstance(k.type, Atomic | Decimal)]
    order = tuple(SortKey(k.type, k.nullable, k) for k in chosen)
    return Sort(z, order) if order else z


def _key_count(z: Relation) -> int:
    """Of partial sums."""
    return sum(f.name.startswith("k") for f in z.schema)


def _summed(z: Relation) -> Relation:
    row, count = columns(z.schema), _key_count(z)
    totals = tuple(AggCall(c.type, True, "sum", (c,)) for c in row[count:])
    summed = Aggregate(z, row[:count], totals, zset.names(z))
    sums = [_is_not_zero(c) for c in columns(summed.schema)[count:]]
    wanted = sums[0]
    for one in sums[1:]:
        wanted = build.disjunction(wanted, one)
    return Filter(summed, wanted)


def _is_not_zero(column: Column) -> Expr:
    zero = functions.cast(zset.ZERO, column.type)
    assert zero is not None
    return Call(BOOLEAN, True, "!=", (column, zero))
