"""How rows meet on Spark and how what is saved is laid out, over all runs together (001, 2.3).

A join copies one side to wherever the other is, or exchanges both by what they are joined by. What
was saved by the values of these columns is not exchanged again. So a run may pay for spreading what
it saves, which spares each later run that would have to exchange it; and a run that copies a small
side leaves nothing behind that a later one, whose side is too large to copy, could use.

    cost(spreads) = Σ weight(run) · the cheapest moves of the run, given what is spread by what

For each spread of what is saved, the moves of every run are found by dynamic programming over
operators and places (`planner/places.py`). The spreads are tried all, if there are few, else one
after the other as long as it gets cheaper.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import inf, prod

from slackwater.algebra.expr import Column, Expr, shift
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
    Union,
    Window,
)
from slackwater.planner.places import (
    ANYHOW,
    COPIED,
    COPY_LEFT,
    COPY_RIGHT,
    HASH_LEFT,
    HASH_RIGHT,
    MERGE,
    Meeting,
    Place,
    Placed,
    by,
    placed,
)
from slackwater.planner.problem import Problem
from slackwater.planner.runs import RunSteps, Saved, relations_of
from slackwater.planner.temporal import CLEARLY, weights
from slackwater.planner.tolls import EXCHANGED, Seconds, Sizes, seconds
from slackwater.tvr.restrict import equi_keys

PIECE = 0.01
"""CPU seconds to write a piece of what is spread, and to read it."""
MOST_HASHED = 8_000_000
"""Values in a piece; what has more is sorted, for which memory may run out without harm."""
FEW_SPREADS = 16
"""So many combinations are all tried."""
DEEPEST = 150
"""What is nested deeper is left to Spark."""
CANDIDATES = 2
"""Of each relation that is saved, so many sets of columns that later runs join or group by."""

By = tuple[int, ...]
"""Columns by whose values rows are spread; none, where they are not."""
Spreads = Mapping[str, By]
"""By name of what is saved."""


def laid_out(
    runs: Sequence[RunSteps], problem: Problem, engines: Sequence[str]
) -> tuple[RunSteps, ...]:
    """The runs of a plan; those on Spark with joins that say how their sides meet, and what they
    save for others there spread by columns where that pays."""
    if "spark" not in engines or any(_depth(r) > DEEPEST for n in runs for r in relations_of(n)):
        return tuple(runs)
    return _Layout(runs, problem, engines).best()


def spared(runs: Sequence[RunSteps], problem: Problem, engines: Sequence[str]) -> list[float]:
    """By run, the seconds of moves that are spared, altogether, since rows that are saved for a
    later run on Spark are spread; below zero in a run that pays for others."""
    if any(_depth(r) > DEEPEST for n in runs for r in relations_of(n)):
        return [0.0] * len(engines)
    return _Layout(runs, problem, engines).spared()


class _Layout:
    def __init__(self, runs: Sequence[RunSteps], problem: Problem, engines: Sequence[str]) -> None:
        self._runs = [run for run in runs if engines[run.point] == "spark"]
        self._others = [run for run in runs if engines[run.point] != "spark"]
        self._weights = weights(problem)
        self._sizes = Sizes(runs, problem)
        self._saved_at = {saved.name: run.point for run in runs for saved in run.saves}
        self._costs: dict[tuple[int, tuple[tuple[str, By], ...]], float] = {}
        self._pieces = self._sizes.pieces()

    def best(self) -> tuple[RunSteps, ...]:
        """As it costs least."""
        spreads = self._chosen()
        found = [*self._others, *(self._told(run, spreads) for run in self._runs)]
        return tuple(sorted(found, key=lambda run: run.point))

    def spared(self) -> list[float]:
        """By run, what the best spreads save, beside none at all."""
        spreads = self._chosen()
        by_run = [0.0] * len(self._weights)
        for run in self._runs:
            by_run[run.point] = self._moves(run, {}) - self._moves(run, spreads)
        return by_run

    # -- what is spread by what

    def _chosen(self) -> Spreads:
        candidates = self._candidates()
        if prod(len(own) + 1 for own in candidates.values()) <= FEW_SPREADS:
            every = product(*([(), *own] for own in candidates.values()))
            tried = [dict(zip(candidates, one, strict=True)) for one in every]
            return min(tried, key=self._cost)  # of equal ones the first, which spreads least
        return self._one_by_one(candidates)

    def _one_by_one(self, candidates: Mapping[str, Sequence[By]]) -> Spreads:
        best: dict[str, By] = {}
        cost, before = self._cost(best), inf
        while cost < before * CLEARLY:
            before = cost
            for name, own in candidates.items():
                for spread in ((), *own):
                    other = {**best, name: spread}
                    if self._cost(other) < cost * CLEARLY:
                        best, cost = other, self._cost(other)
        return best

    def _candidates(self) -> dict[str, list[By]]:
        """Of what a run on Spark saves, the columns that later ones there join or group by."""
        saves = (saved for run in self._runs for saved in run.saves)
        own = {saved.name for saved in saves if self._is_worth(saved)}
        found: dict[str, Counter[By]] = {}
        for run in self._runs:
            for relation in relations_of(run):
                for scan, spread in _met_by(relation):
                    if scan.source in own and self._saved_at[scan.source] < run.point:
                        found.setdefault(scan.source, Counter())[spread] += 1
        return {
            name: [spread for spread, _ in counts.most_common(CANDIDATES)]
            for name, counts in found.items()
        }

    def _is_worth(self, saved: Saved) -> bool:
        """Could it pay that rows need not be exchanged?"""
        rows, width = self._sizes.rows(saved.relation), saved.relation.width
        return seconds(rows, width, EXCHANGED) > PIECE * self._pieces

    def _cost(self, spreads: Spreads) -> float:
        return sum(self._weights[run.point] * self._moves(run, spreads) for run in self._runs)

    def _moves(self, run: RunSteps, spreads: Spreads) -> float:
        """What moves cost in a run."""
        read = {scan.source for relation in relations_of(run) for scan in relation.scans()}
        read |= {saved.name for saved in run.saves}
        mine = tuple((n, s) for n, s in spreads.items() if s and n in read)
        key = (run.point, mine)
        if key not in self._costs:
            moved = sum(one.cost[0] for one in self._placed(run, spreads))
            self._costs[key] = moved + PIECE * self._pieces * len(mine)
        return self._costs[key]

    def _placed(self, run: RunSteps, spreads: Spreads) -> list[Placed]:
        """All that a run computes, with the cheapest moves."""

        def where(scan: Scan) -> Place:
            there = self._saved_at.get(scan.source, run.point) < run.point
            return _place(spreads.get(scan.source, ())) if there else ANYHOW

        wanted = [_place(spreads.get(saved.name, ())) for saved in run.saves]
        wanted += [ANYHOW] * (run.result is not None)
        relations = relations_of(run)
        toll = Seconds(self._sizes, relations, self._pieces)
        pairs = zip(relations, wanted, strict=True)
        return [placed(relation, where, place, toll) for relation, place in pairs]

    # -- what that means for each run

    def _told(self, run: RunSteps, spreads: Spreads) -> RunSteps:
        """A run whose joins say how their sides meet."""
        meets: dict[Relation, str] = {}
        for one in self._placed(run, spreads):
            self._decide(one, meets)
        saves = tuple(
            replace(
                saved,
                relation=_meeting(saved.relation, meets),
                by=_names(saved, spreads.get(saved.name, ())),
                pieces=self._pieces,
            )
            for saved in run.saves
        )
        result = None if run.result is None else _meeting(run.result, meets)
        return RunSteps(run.point, saves, result)

    def _decide(self, top: Placed, meets: dict[Relation, str]) -> None:
        """How the sides of each join meet; of a relation that is needed in several places, as it is
        met first, so that it stays one relation."""
        waiting = [top]
        while waiting:
            one = waiting.pop()
            waiting += reversed(one.inputs)
            node = one.node
            if isinstance(node, Join) and not one.is_moved and node not in meets:
                how = self._how(node, *(side.place for side in one.inputs))
                if how:
                    meets[node] = how

    def _how(self, join: Join, left: Place, right: Place) -> str:
        if right == COPIED:
            return COPY_RIGHT
        if left == COPIED:
            return COPY_LEFT
        if left.kind != "by" or right.kind != "by":
            return ""
        values = [self._sizes.values(side) for side in (join.left, join.right)]
        hashed = HASH_LEFT if join.how == "inner" and values[0] < values[1] else HASH_RIGHT
        smaller = min(values) if join.how == "inner" else values[1]
        return hashed if smaller / self._pieces < MOST_HASHED else MERGE


def _depth(relation: Relation) -> int:
    deep: int = relation.map(lambda node, below: 1 + max(below, default=0))
    return deep


def _place(spread: By) -> Place:
    return by(*spread) if spread else ANYHOW


def _names(saved: Saved, spread: By) -> tuple[str, ...]:
    return tuple(saved.relation.schema[i].name for i in spread)


def _meeting(relation: Relation, meets: Mapping[Relation, str]) -> Relation:
    """A relation whose joins say how their sides meet."""
    known: dict[Relation, Relation] = {}
    for node in relation.walk():
        new = node.with_children(known.__getitem__)
        if node in meets:
            new = Meeting(new.left, new.right, new.how, new.condition, meets[node])
        known[node] = new
    return known[relation]


def _met_by(relation: Relation) -> Iterator[tuple[Scan, By]]:
    """The columns of scanned relations by which joins and groups bring rows together."""
    for node in relation.walk():
        if isinstance(node, Join):
            pairs = equi_keys(node)
            for some in [[pair] for pair in pairs] + ([list(pairs)] if len(pairs) > 1 else []):
                yield from _traced(node.left, [left for left, _ in some])
                yield from _traced(node.right, [right for _, right in some])
        elif isinstance(node, Aggregate) and node.keys:
            yield from _traced(node.input, node.keys)


def _traced(node: Relation, exprs: Sequence[Expr]) -> Iterator[tuple[Scan, By]]:
    """The scans whose columns some expressions are."""
    if not all(isinstance(expr, Column) for expr in exprs):
        return
    places = tuple(expr.index for expr in exprs if isinstance(expr, Column))
    match node:
        case Scan():
            if len(set(places)) == len(places):
                yield node, places
        case Project():
            yield from _traced(node.input, [node.exprs[i] for i in places])
        case Aggregate() if max(places) < len(node.keys):
            yield from _traced(node.input, [node.keys[i] for i in places])
        case Join() if min(places) >= node.left.width:
            yield from _traced(node.right, [shift(expr, -node.left.width) for expr in exprs])
        case Union() | SetOp():
            for part in node.inputs:
                yield from _traced(part, exprs)
        case Filter() | Join() | Bag() | Distinct() | Window() | Sort():
            if max(places) < node.inputs[0].width:
                yield from _traced(node.inputs[0], exprs)
