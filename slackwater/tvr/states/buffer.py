"""The first rows in order, kept with some that follow them, so that rows may leave.

The buffer is always a prefix of the input in order. Rows that leave make it shorter. Rows that
come before its last row make it longer; what comes after that row stays out. When it has become
too short for the operator, it is filled again from the input. A last row of its own (`end`)
says that the whole input is in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slackwater.algebra.expr import (
    AggCall,
    Call,
    Column,
    Expr,
    Literal,
    SortKey,
    WindowCall,
    columns,
)
from slackwater.algebra.relation import (
    Aggregate,
    Bag,
    Filter,
    Join,
    Project,
    Relation,
    TopK,
    Union,
    Window,
)
from slackwater.sql import build
from slackwater.tvr import zset
from slackwater.tvr.time import NEW, OLD, weighted_scan
from slackwater.types import BIGINT, BOOLEAN, INT, WEIGHT, Field, Schema

if TYPE_CHECKING:
    from slackwater.tvr.delta import Deltas

SPARE = 100
"""Rows kept beyond twice those needed, when the buffer is filled."""
END = "end"
_ROW, _LAST = zset.ZERO, zset.ONE


@dataclass(frozen=True)
class BufferState:
    """The buffer of one TopK with a limit, stored under `id`."""

    node: TopK
    id: str
    kind = "buffer"

    @property
    def schema(self) -> Schema:
        """The input's columns, as they may be NULL in the last row, and whether it is that."""
        given = self.node.input.schema
        fields = tuple(Field(f"c{i}", f.type, True) for i, f in enumerate(given))
        return (*fields, Field(END, BIGINT, False))

    @property
    def places(self) -> Mapping[str, int]:
        """Where its columns are among those of the operator."""
        return {f.name: i for i, f in enumerate(self.schema[: self.node.width])}

    @property
    def name(self) -> str:
        """What people call it."""
        return f"first rows for limit {self.node.limit}"

    @property
    def needed(self) -> int:
        """How many rows the operator looks at."""
        assert self.node.limit is not None
        return self.node.limit + self.node.offset

    @property
    def filled(self) -> int:
        """How many rows a filled buffer has."""
        return 2 * self.needed + SPARE

    # -- computing it

    def initial(self, deltas: Deltas) -> Relation:
        """The buffer, filled."""
        rows = deltas.rows(self.node.input)
        first = TopK(rows, self.node.keys, self.filled)
        count = Aggregate(first, (), (build.count_star(),), ("n",))
        limit = Literal(BIGINT, False, self.filled)
        few = Filter(count, Call(BOOLEAN, False, "<", (columns(count.schema)[0], limit)))
        nulls = tuple(build.null(f.type) for f in rows.schema)
        end = Project(few, (*nulls, _LAST, zset.ONE), self._names)
        kept = Project(first, (*columns(first.schema), _ROW, zset.ONE), self._names)
        return zset.consolidate(Union((kept, end)))

    @property
    def _names(self) -> tuple[str, ...]:
        return (*(f.name for f in self.schema), WEIGHT)

    def change(self, deltas: Deltas) -> Relation:
        """ΔB: B + ΔR up to the last row that was in B, less B"""
        deltas.note(self.node, "bounded_buffer")
        before = self.weighted(OLD)
        after = self._prefix(before, deltas.sure(self.node.input))
        return zset.consolidate(zset.plus([after, zset.negate(before)]))

    def _prefix(self, before: Relation, change: Relation) -> Relation:
        """Each row of B + ΔR with its weight, as far as B reached."""
        row = columns(change.schema)
        marked = Project(before, (*columns(before.schema), zset.ONE), (*self._names, "kept"))
        added = Project(change, (*row[:-1], _ROW, row[-1], zset.ZERO), (*self._names, "kept"))
        both = Union((marked, added))
        cells = columns(both.schema)
        total = AggCall(BIGINT, True, "sum", (cells[-2],))
        kept = AggCall(BIGINT, True, "max", (cells[-1],))
        summed = Aggregate(both, cells[:-2], (total, kept), (*self._names, "kept"))
        present = Filter(summed, Call(BOOLEAN, True, ">", (columns(summed.schema)[-2], zset.ZERO)))
        return self._up_to_kept(present)

    def _up_to_kept(self, rows: Relation) -> Relation:
        cells = columns(rows.schema)
        end, weight, kept = cells[-3], cells[-2], cells[-1]
        keys = (SortKey(BIGINT, False, end), *self.node.keys)
        place = WindowCall(INT, False, "row_number", (), (), keys, None)
        placed = Window(rows, (place,), ("place",))
        at = columns(placed.schema)[-1]
        was_kept = Call(BOOLEAN, True, "=", (kept, zset.ONE))
        of_kept = build.case(was_kept, at, build.null(INT))
        last = Aggregate(placed, (), (AggCall(INT, True, "max", (of_kept,)),), ("last",))
        most = Literal(INT, False, 2 * self.filled)
        bound = Column(INT, True, placed.width)
        # Where no row of before is left, there is no bound, and nothing that is known to be inside.
        near = build.case(Call(BOOLEAN, True, ">", (bound, most)), most, bound)
        inside = Call(BOOLEAN, True, "<=", (at, near))
        found = Join(placed, last, "inner", inside)
        row = columns(found.schema)
        exprs: tuple[Expr, ...] = (*row[: len(self.schema)], weight)
        return Project(found, exprs, self._names)

    def is_enough(self, ends: Sequence[int], weights: Sequence[int]) -> bool:
        """Does a buffer whose rows have these values of `end` and weights serve the operator?"""
        whole = sum(e * w for e, w in zip(ends, weights, strict=True)) > 0
        return whole or sum(weights) >= self.needed

    def refill(self, deltas: Deltas) -> Relation:
        """ΔB of a buffer filled again."""
        return zset.consolidate(zset.plus([self.initial(deltas), zset.negate(self.weighted(OLD))]))

    # -- reading it

    def weighted(self, time: str) -> Relation:
        """The buffer at a time, with weights."""
        return weighted_scan(self.id, self.id, self.schema, time)

    def rows(self, time: str) -> Relation:
        """The operator's rows at a time."""
        stored = self.weighted(time)
        is_row = Call(BOOLEAN, False, "=", (columns(stored.schema)[-2], _ROW))
        kept = Filter(stored, is_row)
        row = columns(kept.schema)
        bare = Project(kept, (*row[:-2], row[-1]), (*self._names[:-2], WEIGHT))
        return self.node.replace(input=Bag(bare))

    def delta(self, deltas: Deltas) -> Relation:
        """First rows now, less first rows before."""
        return zset.plus([zset.with_weight(self.rows(NEW)), zset.minus(self.rows(OLD))])
