"""Pieces of queries that differ in filters and columns only, as one (000, 4.1.3; 003, 3).

Below the filters and projections of a piece there is a core: a source, an inner join, an
aggregate. Pieces whose cores are alike are merged: the merged core reads the rows that any of them
wants, and each row says by flags, one for each set of queries with equal conditions, for whom it
is. A join's row is for those for whom both its sides are; an aggregate keeps for each such set its
own values and a counter, and a group is for those whose counter is above zero.

What might raise an error is not evaluated for rows that its query would not have seen: such
conditions stay with the queries, and aggregates over such values are not merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slackwater.algebra.expr import (
    TRUE,
    AggCall,
    Call,
    Column,
    Expr,
    columns,
    conjunction,
    conjuncts,
    remap,
    shift,
    substitute,
    used_columns,
)
from slackwater.algebra.relation import Aggregate, Filter, Join, Project, Relation, Scan
from slackwater.sql import build
from slackwater.tvr.preaggregate import is_quiet

Row = tuple[Expr, ...]


@dataclass(frozen=True)
class Peeled:
    """A relation as its core: its columns, and the conditions on its rows, over the core's row."""

    core: Relation
    exprs: Row
    conditions: Row


def peel(node: Relation) -> Peeled:
    """Without the filters and projections on top."""
    match node:
        case Filter(input, predicate):
            below = peel(input)
            more = tuple(substitute(c, below.exprs) for c in conjuncts(predicate))
            return Peeled(below.core, below.exprs, below.conditions + more)
        case Project(input, exprs):
            below = peel(input)
            own = tuple(substitute(e, below.exprs) for e in exprs)
            return Peeled(below.core, own, below.conditions)
    return Peeled(node, columns(node.schema), ())


@dataclass(frozen=True)
class _Merged:
    """A relation for several members: of each its columns, and which rows are its own."""

    relation: Relation
    exprs: tuple[Row, ...]
    conditions: tuple[Row, ...]

    def only_wanted(self) -> _Merged:
        """Without rows that nobody wants, as far as that can be told without raising."""
        quiet = [conjunction([c for c in own if is_quiet(c)]) for own in self.conditions]
        return (
            self
            if TRUE in quiet
            else _Merged(Filter(self.relation, _any(quiet)), self.exprs, self.conditions)
        )


def share(nodes: Sequence[Relation]) -> tuple[Relation, tuple[Relation, ...]] | None:
    """One relation instead of several that are alike, and each of them from it; None where they
    are not."""
    merged = _merge(nodes)
    return None if merged is None else _settled(merged, nodes)


def _settled(merged: _Merged, nodes: Sequence[Relation]) -> tuple[Relation, tuple[Relation, ...]]:
    """The columns and flags that somebody reads, and the readers."""
    wanted = merged.only_wanted()
    loud = [[c for c in own if not is_quiet(c)] for own in merged.conditions]
    flags = [conjunction([c for c in own if is_quiet(c)]) for own in merged.conditions]
    apart = dict.fromkeys(flags)
    alike = len(apart) == 1
    told = [] if alike else [flag for flag in apart if flag is not TRUE]
    read = sorted(
        used_columns(*(e for row in merged.exprs for e in row), *(c for own in loud for c in own))
    ) or [0]
    row = columns(wanted.relation.schema)
    names = tuple(f"c{i}" for i in range(len(read))) + tuple(f"f{i}" for i in range(len(told)))
    shared = Project(wanted.relation, (*(row[i] for i in read), *told), names)
    place = {old: new for new, old in enumerate(read)}.__getitem__
    readers = []
    for node, exprs, own, flag in zip(nodes, merged.exprs, loud, flags, strict=True):
        conditions = [remap(c, place) for c in own]
        if flag in told:
            conditions.insert(0, columns(shared.schema)[len(read) + told.index(flag)])
        below: Relation = Filter(shared, conjunction(conditions)) if conditions else shared
        own_row = tuple(remap(e, place) for e in exprs)
        readers.append(Project(below, own_row, tuple(f.name for f in node.schema)))
    return shared, tuple(readers)


def _any(flags: Sequence[Expr]) -> Expr:
    found, *others = dict.fromkeys(flags)
    for flag in others:
        found = build.disjunction(found, flag)
    return found


def _merge(nodes: Sequence[Relation]) -> _Merged | None:
    peeled = [peel(node) for node in nodes]
    merged = _merge_cores([p.core for p in peeled])
    if merged is None:
        return None
    exprs, conditions = [], []
    for own, row, known in zip(peeled, merged.exprs, merged.conditions, strict=True):
        exprs.append(tuple(substitute(e, row) for e in own.exprs))
        conditions.append(known + tuple(substitute(c, row) for c in own.conditions))
    return _Merged(merged.relation, tuple(exprs), tuple(conditions))


def _merge_cores(cores: Sequence[Relation]) -> _Merged | None:
    first = cores[0]
    if all(core is first for core in cores):
        row = columns(first.schema)
        return _Merged(first, (row,) * len(cores), ((),) * len(cores))
    joins = [core for core in cores if isinstance(core, Join) and core.how == "inner"]
    if len(joins) == len(cores):
        return _merge_joins(joins)
    aggregates = [core for core in cores if isinstance(core, Aggregate)]
    return _merge_aggregates(aggregates) if len(aggregates) == len(cores) else None


# -- joins


def _merge_joins(joins: Sequence[Join]) -> _Merged | None:
    """Those with an equality in common; other conditions are each query's own."""
    left, right = _merge([j.left for j in joins]), _merge([j.right for j in joins])
    if left is None or right is None:
        return None
    left, right = left.only_wanted(), right.only_wanted()
    width = left.relation.width
    rows = [
        left.exprs[m] + tuple(shift(e, width) for e in right.exprs[m]) for m in range(len(joins))
    ]
    own = [
        [_in_order(substitute(c, row)) for c in conjuncts(join.condition)]
        for join, row in zip(joins, rows, strict=True)
    ]
    common = [c for c in own[0] if _is_equality(c, width) and all(c in other for other in own)]
    if not common:
        return None
    conditions = tuple(
        left.conditions[m]
        + tuple(shift(c, width) for c in right.conditions[m])
        + tuple(c for c in own[m] if c not in common)
        for m in range(len(joins))
    )
    joined = Join(left.relation, right.relation, "inner", conjunction(common))
    return _Merged(joined, tuple(rows), conditions)


def _in_order(condition: Expr) -> Expr:
    """An equality of columns with the first column first."""
    if isinstance(condition, Call) and condition.name == "=":
        a, b = condition.args
        if isinstance(a, Column) and isinstance(b, Column) and a.index > b.index:
            return condition.replace(args=(b, a))
    return condition


def _is_equality(condition: Expr, width: int) -> bool:
    """Is it between both sides of a join?"""
    if not isinstance(condition, Call) or condition.name != "=":
        return False
    sides = [used_columns(arg) for arg in condition.args]
    return any(bool(a) and bool(b) and max(a) < width <= min(b) for a, b in (sides, sides[::-1]))


# -- aggregates


def _merge_aggregates(nodes: Sequence[Aggregate]) -> _Merged | None:
    """Those by the same keys: for each set of queries with equal conditions its own values."""
    below = _merge([node.input for node in nodes])
    if below is None:
        return None
    keys = [
        tuple(substitute(k, row) for k in node.keys)
        for node, row in zip(nodes, below.exprs, strict=True)
    ]
    own = [
        tuple(substitute(a, row) for a in node.aggs)
        for node, row in zip(nodes, below.exprs, strict=True)
    ]
    flags = [conjunction(list(conditions)) for conditions in below.conditions]
    alike = len(set(flags)) == 1
    if len(set(keys)) > 1 or not all(is_quiet(f) for f in flags):
        return None
    if not alike and not all(_is_mergeable(a) for aggs in own for a in aggs):
        return None
    source = below.relation if TRUE in flags else Filter(below.relation, _any(flags))
    return _with_values(source, keys[0], own, [TRUE] * len(flags) if alike else flags)


def _is_mergeable(agg: AggCall) -> bool:
    """Can it be computed of rows that a condition picks, and its arguments of any row?"""
    return not agg.text and not agg.distinct and all(is_quiet(a) for a in agg.args)


def _with_values(
    source: Relation, keys: Row, own: Sequence[tuple[AggCall, ...]], flags: Sequence[Expr]
) -> _Merged:
    values: dict[AggCall, int] = {}
    rows, conditions = [], []

    def place(agg: AggCall) -> int:
        return len(keys) + values.setdefault(agg, len(values))

    for aggs, flag in zip(own, flags, strict=True):
        places = [place(_where(agg, flag)) for agg in aggs]
        counter = place(build.count_if(flag)) if flag is not TRUE and keys else None
        rows.append((*range(len(keys)), *places))
        conditions.append(counter)
    names = tuple(f"k{i}" for i in range(len(keys))) + tuple(f"v{i}" for i in range(len(values)))
    relation = Aggregate(source, keys, tuple(values), names)
    row = columns(relation.schema)
    return _Merged(
        relation,
        tuple(tuple(row[i] for i in own_row) for own_row in rows),
        tuple(() if c is None else (build.greater_than_zero(row[c]),) for c in conditions),
    )


def _where(agg: AggCall, flag: Expr) -> AggCall:
    if flag is TRUE:
        return agg
    where = flag if agg.where is None else conjunction([agg.where, flag])
    found: AggCall = agg.replace(where=where)
    return found


# -- what is alike


def likeness(node: Relation) -> object | None:
    """The same for relations that may be merged; None for those that are only like themselves."""
    core = peel(node).core
    match core:
        case Scan(source):
            return ("scan", source)
        case Join(left, right, "inner"):
            sides = likeness(left) or left, likeness(right) or right
            return ("join", *sides)
        case Aggregate(input, keys):
            return ("aggregate", likeness(input) or input, len(keys))
    return None
