"""What need not be read: rows with keys out of the reach of what they are joined with.

Where a table is joined with a change by a key, only rows with keys between the smallest and the
largest of the change matter. The catalog knows the smallest and largest values of each segment,
so a segment outside is not opened, and inside of files the engines skip row groups.

    reach    upwards: the values that a column may have, as the segments below it say
    wanted   downwards: the values outside of which a row is of no use, whatever else it holds

Rows with NULL as key are kept: their segments have no range.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from slackwater.algebra.expr import Call, Column, Expr, conjuncts
from slackwater.algebra.relation import (
    Aggregate,
    Bag,
    Distinct,
    Filter,
    Join,
    Project,
    Relation,
    Scan,
    SetOp,
    Sort,
    TopK,
    Union,
    Window,
)
from slackwater.catalog.model import Segment
from slackwater.engine.sources import Log, Made, Source, Sources, Stored
from slackwater.planner.steps import Output
from slackwater.types import BIGINT, DATE, INT, SMALLINT, TINYINT


@dataclass(frozen=True, slots=True)
class Range:
    """Whole numbers (days, for dates) from `low` to `high`; none if `low` is above."""

    low: int
    high: int

    def __and__(self, other: Range) -> Range:
        return Range(max(self.low, other.low), min(self.high, other.high))

    def __or__(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high))

    def covers(self, other: Range) -> bool:
        """Is all of the other inside?"""
        return self.low <= other.low and other.high <= self.high

    @property
    def width(self) -> int:
        """How many values there are."""
        return max(0, self.high - self.low + 1)

    @property
    def is_empty(self) -> bool:
        """Is there no value at all?"""
        return self.low > self.high


NOTHING = Range(1, 0)
ROUNDING = 16
"""Each end of a range that rows are wanted in is moved by at most one part of so many."""
_RANGED = (TINYINT, SMALLINT, INT, BIGINT, DATE)

S = TypeVar("S", bound=Stored | Log)
Ranges = Mapping[int, Range]
"""By column; a column without one may have any value."""


def narrowed(outputs: Sequence[Output], sources: Sources) -> dict[str, Source]:
    """The sources of a step's outputs without segments that none of them can use, and with the
    ranges outside of which the rows of the others are of no use."""
    reading = _Reading({o.target: o.relation for o in outputs}, sources)
    for output in outputs:
        reading.visit(output.relation, {})
    return {name: _cut(source, reading.wanted(name)) for name, source in sources.items()}


class _Reading:
    """What a step wants of everything it scans."""

    def __init__(self, made: Mapping[str, Relation], sources: Sources) -> None:
        self._made = made
        self._sources = sources
        self._reach: dict[Relation, Ranges] = {}
        self._seen: set[tuple[Relation, frozenset[tuple[int, Range]]]] = set()
        self._wanted: dict[Scan, list[Ranges]] = {}

    def wanted(self, source: str) -> dict[str, Range]:
        """By column name, what all that scan a source want of it together."""
        uses = [
            {scan.schema[i].name: found for i, found in ranges.items()}
            for scan, all_ranges in self._wanted.items()
            if scan.source == source
            for ranges in all_ranges
        ]
        if not uses:
            return {}
        names = set(uses[0]).intersection(*uses[1:])
        return {name: _hull(use[name] for use in uses) for name in names}

    # -- upwards

    def reach(self, node: Relation) -> Ranges:
        """The values that the columns of a relation may have, besides NULL."""
        if node not in self._reach:
            self._reach[node] = self._find_reach(node)
        return self._reach[node]

    def _find_reach(self, node: Relation) -> Ranges:
        match node:
            case Scan():
                return self._stored(node)
            case Project(input, exprs):
                return _through(self.reach(input), exprs)
            case Aggregate(input, keys):
                return _through(self.reach(input), keys)
            case Filter(input) | Sort(input) | Distinct(input) | Bag(input):
                return self.reach(input)
            case TopK(input) | Window(input):
                return self.reach(input)
            case Union(parts):
                found = [self.reach(p) for p in parts]
                return {
                    i: _hull(f[i] for f in found) for i in found[0] if all(i in f for f in found)
                }
            case Join():
                return self._reach_of_join(node)
        return {}

    def _reach_of_join(self, join: Join) -> Ranges:
        found, theirs = dict(self.reach(join.left)), self.reach(join.right)
        if join.how not in ("semi", "anti"):
            found |= {join.left.width + i: r for i, r in theirs.items()}
        if join.how in ("inner", "semi"):
            for a, b in _equal_columns(join):
                _narrow(found, a, theirs.get(b))
                if join.how == "inner":
                    _narrow(found, join.left.width + b, found.get(a))
        return found

    def _stored(self, scan: Scan) -> Ranges:
        source = self._sources.get(scan.source)
        if isinstance(source, Made):
            made = self._of_output(source.target, scan)
            if not any(s.rows for s in source.segments):
                return made
            before = _of_segments(source.segments, scan)
            return {i: _hull((before[i], made[i])) for i in before if i in made}
        return _of_segments(source.segments, scan) if isinstance(source, Stored | Log) else {}

    def _of_output(self, target: str, scan: Scan) -> Ranges:
        """Of what the step itself makes, in the columns of a scan of it."""
        relation = self._made.get(target)
        if relation is None:
            return {}
        named = {relation.schema[i].name: r for i, r in self.reach(relation).items()}
        return {i: named[f.name] for i, f in enumerate(scan.schema) if f.name in named}

    # -- downwards

    def visit(self, node: Relation, wanted: Ranges) -> None:
        """Note what is read below a relation of which only some values are of use."""
        key = node, frozenset(wanted.items())
        if key in self._seen:
            return
        self._seen.add(key)
        match node:
            case Scan():
                self._wanted.setdefault(node, []).append(wanted)
            case Project(input, exprs):
                self.visit(input, _below(wanted, exprs))
            case Aggregate(input, keys):
                self.visit(input, _below(wanted, keys))
            case Filter(input) | Sort(input) | Distinct(input) | Bag(input):
                self.visit(input, wanted)
            case Union(parts):
                for part in parts:
                    self.visit(part, wanted)
            case SetOp(left, right):
                self.visit(left, wanted)
                self.visit(right, wanted)
            case Window(input, calls):
                shared = set(calls[0].partition_by).intersection(*(c.partition_by for c in calls))
                places = {c.index for c in shared if isinstance(c, Column)}
                self.visit(input, {i: r for i, r in wanted.items() if i in places})
            case Join():
                self._visit_join(node, wanted)
            case _:
                for input in node.inputs:
                    self.visit(input, {})

    def _visit_join(self, join: Join, wanted: Ranges) -> None:
        """Each side matters where the other one reaches, unless it is kept without a partner."""
        width, left, right = join.left.width, dict[int, Range](), dict[int, Range]()
        if join.how not in ("right", "full"):
            left = {i: r for i, r in wanted.items() if i < width}
        if join.how in ("inner", "right"):
            right = {i - width: r for i, r in wanted.items() if i >= width}
        ours, theirs = self.reach(join.left), self.reach(join.right)
        chosen_left, chosen_right = dict(left), dict(right)
        for a, b in _equal_columns(join):
            from_right = _both(right.get(b), theirs.get(b))
            from_left = _both(left.get(a), ours.get(a))
            if join.how in ("inner", "semi", "right"):
                _narrow(chosen_left, a, from_right)
            if join.how in ("inner", "semi", "anti", "left"):
                _narrow(chosen_right, b, from_left)
        self.visit(join.left, chosen_left)
        self.visit(join.right, chosen_right)


def _equal_columns(join: Join) -> list[tuple[int, int]]:
    """The columns of the left and of the right side that the join compares."""
    width, found = join.left.width, []
    for part in conjuncts(join.condition):
        if isinstance(part, Call) and part.name in ("=", "<=>"):
            places = [c.index for c in part.args if isinstance(c, Column)]
            if len(places) == 2 and min(places) < width <= max(places):
                found.append((min(places), max(places) - width))
    return found


def _through(ranges: Ranges, exprs: Sequence[Expr]) -> Ranges:
    """Ranges of an input as those of expressions over it."""
    return {
        i: ranges[e.index]
        for i, e in enumerate(exprs)
        if isinstance(e, Column) and e.index in ranges
    }


def _below(wanted: Ranges, exprs: Sequence[Expr]) -> Ranges:
    """What is wanted of expressions as what is wanted of their input."""
    found: dict[int, Range] = {}
    for i, wish in wanted.items():
        if i < len(exprs) and isinstance(column := exprs[i], Column):
            _narrow(found, column.index, wish)
    return found


def _narrow(ranges: dict[int, Range], column: int, by: Range | None) -> None:
    narrower = _both(ranges.get(column), by)
    if narrower is not None:
        ranges[column] = narrower


def _both(a: Range | None, b: Range | None) -> Range | None:
    """The values in both ranges, of which either may not be known."""
    if a is None or b is None:
        return b if a is None else a
    return a & b


def _hull(ranges: Iterable[Range]) -> Range:
    first, *others = ranges
    for other in others:
        first = other if first.is_empty else first if other.is_empty else first | other
    return first


def range_of(segment: Segment, column: str) -> Range | None:
    """The values of a column in a segment, if they are known and none is NULL."""
    found = segment.stats.get(column)
    return None if found is None else Range(*found)


def _of_segments(segments: Sequence[Segment], scan: Scan) -> Ranges:
    live, found = [s for s in segments if s.rows], {}
    for i, field in enumerate(scan.schema):
        ranges = [range_of(s, field.name) for s in live]
        known = [r for r in ranges if r is not None]
        if len(known) == len(live) and field.type in _RANGED:
            found[i] = _hull([NOTHING, *known])
    return found


def _cut(source: Source, wanted: Mapping[str, Range]) -> Source:
    """The source without segments that have nothing of what is wanted."""
    if isinstance(source, Made) and source.before is not None:
        return replace(source, before=_cut_stored(source.before, wanted))
    return _cut_stored(source, wanted) if isinstance(source, Stored | Log) else source


def _cut_stored(source: S, wanted: Mapping[str, Range]) -> S:
    kept = tuple(s for s in source.segments if not _is_outside(s, wanted))
    about = {
        name: _rounded(wish, [range_of(s, name) for s in kept]) for name, wish in wanted.items()
    }
    within = {
        name: (wish.low, wish.high)
        for name, wish in about.items()
        if any(not _has_only(s, name, wish) for s in kept)
    }
    return replace(source, segments=kept, within=within)


def _rounded(wish: Range, held: Sequence[Range | None]) -> Range:
    """A wide range a little wider, but not beyond what is held. So it is often the same as at the
    last refresh, for whose statement Spark has compiled code, and often there is nothing outside
    of it."""
    known = [r for r in held if r is not None]
    grain = 2 ** max(0, (wish.width // ROUNDING).bit_length() - 1)
    if grain == 1 or not known or len(known) < len(held):
        return wish
    above = -(-(wish.high + 1) // grain) * grain
    return Range(wish.low // grain * grain, above - 1) & _hull(known)


def _is_outside(segment: Segment, wanted: Mapping[str, Range]) -> bool:
    for name, wish in wanted.items():
        held = range_of(segment, name)
        if held is not None and (held & wish).is_empty:
            return True
    return False


def _has_only(segment: Segment, column: str, wish: Range) -> bool:
    held = range_of(segment, column)
    return held is not None and wish.covers(held)
