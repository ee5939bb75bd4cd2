"""What a view keeps between its refreshes under a budget: decided before each, for the next.

States are built while a refresh runs, so that it is decided before which are kept after it: for the
change that is expected then, by what the laws would cost with them and without (`planner/outline`,
`planner/budget`). What is decided holds until sizes or expectations are different.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any

from slackwater.algebra.relation import Join, Relation
from slackwater.planner.budget import Frontier, Kept, Operator, Point, choose, frontier
from slackwater.planner.choice import FULL, FUTURE, INCREMENTAL, UNSURE
from slackwater.planner.cutting import Scene
from slackwater.planner.outline import MOST_PIVOTS, Candidate, Outline
from slackwater.stats.rows import Change, Rows
from slackwater.tvr.maintenance import Maintenance, every_part, is_repeatable, keeping
from slackwater.tvr.methods.higher_order import spread
from slackwater.tvr.time import NEW
from slackwater.work.arriving import LastArrivals
from slackwater.work.costing import costing
from slackwater.work.goals import AUTO, refresh_mode
from slackwater.work.keeper import Decision
from slackwater.work.room import Room, budget_of, bytes_of

if TYPE_CHECKING:
    from slackwater.work.upkeep import Upkeep

FILE_BYTES = 1_500
"""Of a file without rows."""
BYTES_PER_VALUE = 6.0
"""Where nothing is stored yet from which it could be told."""
ENOUGH_ROWS = 1_000
"""Of so many stored rows, their size tells that of others."""
REMEMBERED = 20
"""Of so many refreshes, the sizes of states are remembered."""


def kept_under_budget(upkeep: Upkeep, plan: Maintenance, anew: bool) -> Keeping | None:
    """What a view keeps; None where it has no budget. `anew`: all states would have to be built."""
    budget = budget_of(upkeep.world, upkeep.view)
    return None if budget is None else Keeping(upkeep, plan, budget, anew)


@dataclass
class Keeping:
    """One view in one refresh."""

    upkeep: Upkeep
    plan: Maintenance
    budget: int
    anew: bool

    # -- with what it goes on

    @cached_property
    def now(self) -> Maintenance:
        """With the states that are stored, to follow changes by."""
        return self._with({} if self.anew else self.upkeep.known)

    @cached_property
    def next(self) -> Maintenance:
        """With the states that are kept afterwards."""
        return self._with(self.wanted)

    @property
    def is_possible(self) -> bool:
        """Can changes be followed with what is stored?"""
        return all(node in self.now.states or is_repeatable(node) for node in self.plan.states)

    def _with(self, signatures: Collection[str]) -> Maintenance:
        return keeping(self.plan, signatures, self.upkeep.id_of)

    # -- which are kept

    @cached_property
    def wanted(self) -> frozenset[str]:
        """The signatures of the states to keep."""
        if self.budget < FILE_BYTES // 2:
            return frozenset()  # no file is as small
        keeper, view = self.upkeep.world.house.keeper, self.upkeep.view.id
        before, (equal, sizes) = keeper.decided.get(view), self._from
        if before is None or not before.holds(equal, sizes):
            everything = self._everything if keeper.everything else None
            states = everything or self._chosen(self._sizes).states
            before = keeper.decided[view] = Decision(states, equal, sizes).after(before)
        return before.states

    def fitting(self, measured: Mapping[str, float]) -> frozenset[str]:
        """Of the states that there are now, by signature with their bytes, those that stay."""
        if sum(measured.values()) <= self.budget:
            return frozenset(measured)
        self.upkeep.world.house.keeper.decided.pop(self.upkeep.view.id, None)
        there = {s: Kept(size) for s, size in measured.items()}
        return self._chosen(self._sizes, there).states & measured.keys()

    def _chosen(self, sizes: Mapping[str, Kept], there: Mapping[str, Kept] | None = None) -> Point:
        """The cheapest that fits; of those that are there alone, if it is told which."""
        if there is not None:
            sizes = {s: there.get(s, Kept(self.budget + 1.0)) for s in sizes}
        points: Frontier = frontier(self._root, sizes, self.budget)
        following = tuple(replace(p, seconds=(p.seconds[0], inf, inf)) for p in points)
        if self._follows and min(p.cost for p in following) < inf:
            points = following
        return choose(points, self.budget) or Point(0.0, (0.0, 0.0, 0.0))

    @property
    def _follows(self) -> bool:
        """Are changes followed whatever that costs?"""
        world, view = self.upkeep.world, self.upkeep.view
        mode = refresh_mode(view, world.snapshot.settings, world.house.settings.refresh)
        return mode != AUTO or any(view.id in v.depends for v in world.snapshot.views())

    # -- from what that is decided

    @cached_property
    def expected(self) -> Mapping[str, Change]:
        """What comes until the next refresh."""
        arrivals = self.upkeep.world.house.keeper.arrivals or self._last
        return arrivals.expected_changes(self.upkeep.view)

    @cached_property
    def _last(self) -> LastArrivals:
        return LastArrivals(self.upkeep.interval)

    @cached_property
    def _from(self) -> tuple[Hashable, tuple[float, ...]]:
        """What has to be equal for the same decision, and sizes that have to be alike."""
        sources, known = self.upkeep.view.depends, sorted(self.upkeep.known)
        coming = [self.expected.get(id, Change()).rows for id in sources]
        sizes = [*(self._last.rows(id) for id in sources), *coming, *map(self._stored, known)]
        parts = self.upkeep.world.house.keeper.joined_parts
        changing = tuple(rows > 0 for rows in coming)
        follows = (self.anew, self._follows)
        equal = (self.upkeep.query, self.budget, follows, parts, changing, tuple(known))
        return equal, tuple(float(size) for size in sizes)

    @cached_property
    def _outline(self) -> Outline:
        house = self.upkeep.world.house
        if self.upkeep.view.refreshed_at is None and self.upkeep.run.id:
            house.profiling.look(self.upkeep.world, self.upkeep.query)  # else after it
        expected = house.experience.of(self.upkeep.view.name)
        engine = "spark" if house.runner.placement == "spark" else "local"
        off = expected.factor(INCREMENTAL, engine)
        unsure = 1.0 if self.upkeep.known else UNSURE
        rows = {
            id: Rows(self._last.rows(id), self.expected.get(id, Change()))
            for id in self.upkeep.view.depends
        }
        scene = Scene(
            rows,
            house.profiling.known(),
            lambda work: off * expected.model.seconds(work, engine),
            self.upkeep.interval.weighted,
            merged=costing(self.upkeep).merged,
        )
        return Outline(
            self.plan,
            scene,
            pivots=MOST_PIVOTS if house.keeper.joined_parts else (),
            anew_seconds=lambda work: expected.seconds(work, FULL, engine) / unsure,
        )

    @property
    def _everything(self) -> frozenset[str]:
        """All that a refresh by changes uses by itself, and every part of every join around what
        is expected to change most."""

        def most_changed(join: Join) -> int | None:
            changes = [self._changed_rows(r) for r in spread(join).inner.inputs]
            return changes.index(max(changes)) if any(changes) else None

        parts = every_part(self.plan.root, most_changed)
        return frozenset(node.digest() for node in (*self.plan.states, *parts))

    def _changed_rows(self, relation: Relation) -> float:
        sources = {scan.source for scan in relation.scans()}
        return sum(self.expected[id].rows for id in sources if id in self.expected)

    @cached_property
    def _root(self) -> Operator:
        return self._outline.operator()

    @cached_property
    def _sizes(self) -> dict[str, Kept]:
        """What each state takes: its bytes, and its part of what it costs to build."""
        assert self._root is not None  # which finds the candidates
        found = {}
        for signature, candidate in self._outline.candidates.items():
            there = signature in self.upkeep.known and not self.anew
            build = 0.0 if there else candidate.build_seconds / FUTURE
            found[signature] = Kept(self._bytes(signature, candidate), build)
        return found

    def _bytes(self, signature: str, candidate: Candidate) -> float:
        known = self._stored(signature) or self._remembered.get(signature)
        values = candidate.rows * (len(candidate.state.schema) + 1)
        return known or FILE_BYTES + values * self._bytes_per_value

    def _stored(self, signature: str) -> float:
        known = self.upkeep.known.get(signature)
        return 0.0 if known is None else bytes_of(self.upkeep.interval.segments(known.id, NEW))

    @cached_property
    def _remembered(self) -> dict[str, float]:
        """By signature, what states took when they were last written."""
        view, house = self.upkeep.view, self.upkeep.world.house
        found: dict[str, float] = {}
        for event in house.catalog.events(relation=view.id, kind="refresh", limit=REMEMBERED):
            for state in (event.body.get("states") or {}).get("measured", ()):
                found.setdefault(state["signature"], state["bytes"])
        return found

    @cached_property
    def _bytes_per_value(self) -> float:
        """As of the states that are stored, or else of the sources."""
        interval = self.upkeep.interval
        states = [(s.id, len(s.schema)) for s in self.upkeep.known.values()]
        sources = [
            (id, len(interval.world.snapshot.get(id).schema))
            for id in self.upkeep.view.depends
            if interval.external(id) is None
        ]
        for stored in (states, sources):
            found = [(interval.segments(id, NEW), width + 1) for id, width in stored]
            rows = sum(s.rows for segments, _ in found for s in segments)
            if rows >= ENOUGH_ROWS:
                size = sum(s.bytes for segments, _ in found for s in segments)
                return size / sum(s.rows * width for segments, width in found for s in segments)
        return BYTES_PER_VALUE

    # -- telling

    def room(self) -> Room:
        """What the next refresh keeps, as far as one can tell."""
        taken = sum(self._stored(s) for s in self.upkeep.known)
        kept = {s.node.digest(): s.name for s in self.next.kept}
        sizes = self._sizes if kept else {}
        states = tuple((name, round(sizes[s].bytes)) for s, name in kept.items() if s in sizes)
        gone = tuple(known.kind for s, known in self.upkeep.known.items() if s not in kept)
        return Room(self.budget, round(taken), states, gone)

    def told(self, measured: Mapping[str, float], kept: Collection[str]) -> dict[str, Any]:
        """What became of the states, as plain data; `measured` are the bytes of those written."""
        plans = (self.now, self.next)
        names = {s.node.digest(): s.name for plan in plans for s in plan.kept}
        names = {s: known.kind for s, known in self.upkeep.known.items()} | names
        gone = [s for s in dict.fromkeys([*self.upkeep.known, *measured]) if s not in kept]
        return {
            "budget": self.budget,
            "bytes": round(sum(size for s, size in measured.items() if s in kept)),
            "kept": [names[s] for s in measured if s in kept],
            "dropped": [names[s] for s in gone],
            "measured": [{"signature": s, "bytes": round(b)} for s, b in measured.items()],
        }
