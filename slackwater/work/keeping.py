"""What a view keeps between its refreshes under a budget: decided before each, for the next.

States are built while a refresh runs, so that it is decided before which are kept after it: for the
change that is expected then, by what they save and take (`work/stakes`, `planner/budget`). What is
decided holds until sizes or expectations are different.

There are two decisions. A refresh by changes brings along what is there, and builds what is new.
One that computes the view anew has to build all of it again, and does so where that pays over the
refreshes that states are expected to serve.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, log2
from typing import TYPE_CHECKING, Any

from slackwater.planner.budget import Frontier, Kept, Point, choose, frontier
from slackwater.planner.choice import FULL, INCREMENTAL, PLAIN
from slackwater.tvr.maintenance import Maintenance, is_repeatable, keeping
from slackwater.work.goals import AUTO, refresh_mode
from slackwater.work.keeper import Decision
from slackwater.work.room import Room, budget_of, left_for, shared_bytes, taken_by
from slackwater.work.stakes import Stakes
from slackwater.work.state_bytes import FILE_BYTES

if TYPE_CHECKING:
    from slackwater.work.upkeep import Upkeep

NOTHING = Decision(frozenset(), None, ())


def kept_under_budget(upkeep: Upkeep, plan: Maintenance, anew: bool) -> Keeping | None:
    """What a view or a part keeps; None where there is no budget. `anew`: all states would have to
    be built."""
    budget = left_for(upkeep.world, upkeep.view)
    return None if budget is None else Keeping(upkeep, plan, budget, anew)


@dataclass
class Keeping:
    """One view in one refresh."""

    upkeep: Upkeep
    plan: Maintenance
    budget: int  # what others leave of that of the view, or of the views that it is a part of
    anew: bool
    serves: bool = False
    """Is following changes with what is stored cheaper now than computing anew without states? Told
    by who has compared them, before asking what would be kept after computing anew."""

    # -- with what it goes on

    @cached_property
    def now(self) -> Maintenance:
        """With the states that are stored, to follow changes by."""
        return self._with({} if self.anew else self.upkeep.known)

    @cached_property
    def next(self) -> Maintenance:
        """With the states that are kept after following changes."""
        return self._with(self._after_changes.states)

    @cached_property
    def afresh(self) -> Maintenance:
        """With the states that are kept after computing the view anew."""
        return self._with(self._after_anew.states)

    def seconds_ahead(self, method: str) -> float:
        """What the refreshes to come take after one by a method: as many of them as states would
        serve that are all built now. The two decisions may be of different times, when prices were
        others; so each tells which part of a refresh without states is left with its own."""
        after = self._after_changes if method == INCREMENTAL else self._after_anew
        seconds = self._after_anew.seconds_without
        if method != PLAIN and after.states and after.seconds_without:
            seconds *= after.seconds / after.seconds_without
        return self._serving(anew=True) * seconds

    @property
    def is_possible(self) -> bool:
        """Can changes be followed with what is stored?"""
        return all(node in self.now.states or is_repeatable(node) for node in self.plan.states)

    def _with(self, signatures: Collection[str]) -> Maintenance:
        return keeping(self.plan, signatures, self.upkeep.id_of)

    # -- which are kept

    @cached_property
    def _after_changes(self) -> Decision:
        return self._after_anew if self.anew else self._decided(anew=False)

    @cached_property
    def _after_anew(self) -> Decision:
        return self._decided(anew=True)

    def _decided(self, anew: bool) -> Decision:
        """The states to keep, if all have to be built, or else if those there are brought along."""
        if not self._has_room:
            return NOTHING
        decided, key = self.upkeep.world.house.keeper.decided, (self.upkeep.view.id, anew)
        before, (equal, sizes) = decided.get(key), self._from(anew)
        if before is None or not before.holds(equal, sizes):
            before = decided[key] = self._best(anew, equal, sizes).after(before)
        return before

    @property
    def _has_room(self) -> bool:
        return self.budget >= FILE_BYTES // 2  # no file is smaller

    @cached_property
    def _stakes(self) -> Stakes:
        return Stakes(self.upkeep, self.plan, self.anew)

    def _serving(self, anew: bool) -> float:
        return self._stakes.serving(anew, self.serves)

    def _sizes(self, anew: bool) -> dict[str, Kept]:
        return self._stakes.sizes(anew, self._serving(anew))

    def _from(self, anew: bool) -> tuple[Hashable, tuple[float, ...]]:
        """What has to be equal for the same decision, and sizes that have to be alike."""
        rows, stored = self._stakes.rows.values(), self._stakes.bytes.stored
        known = sorted(self.upkeep.known)
        coming = [r.change.rows for r in rows]
        sizes = [*(r.before for r in rows), *coming, *map(stored, known), self.budget]
        injected = self.upkeep.world.house.keeper.injected
        how = (anew, self._follows, injected, round(log2(self._serving(anew))))
        changing = tuple(n > 0 for n in coming)
        misses = self.upkeep.world.house.experience.misses(self.upkeep.view.name)
        said = budget_of(self.upkeep.world, self.upkeep.view)
        equal = (self.upkeep.query, said, how, misses, changing, tuple(known))
        return equal, tuple(float(size) for size in sizes)

    def _best(self, anew: bool, equal: Hashable, alike: tuple[float, ...]) -> Decision:
        sizes, keeper = self._sizes(anew), self.upkeep.world.house.keeper
        states = self._stakes.everything if keeper.everything else self._chosen(sizes).states
        seconds, without = (
            self._chosen(sizes, dict.fromkeys(kept, Kept(0.0))).cost for kept in (states, ())
        )
        return Decision(states, equal, alike, seconds, without)

    def settle(self, measured: Mapping[str, float]) -> frozenset[str]:
        """Of the states that there are now, by signature with their bytes, those that stay; what
        they take is not there for others of the same run."""
        world, view = self.upkeep.world, self.upkeep.view
        with world.settling:
            self.budget = min(self.budget, left_for(world, view) or 0)
            kept = self._fitting(measured)
            world.kept[view.id] = sum(measured[s] for s in kept)
        return kept

    def _fitting(self, measured: Mapping[str, float]) -> frozenset[str]:
        if sum(measured.values()) <= self.budget:
            return frozenset(measured)
        for anew in (False, True):
            self.upkeep.world.house.keeper.decided.pop((self.upkeep.view.id, anew), None)
        there = {s: Kept(size) for s, size in measured.items()}
        return self._chosen(self._sizes(self.anew), there).states & measured.keys()

    def _chosen(self, sizes: Mapping[str, Kept], there: Mapping[str, Kept] | None = None) -> Point:
        """The cheapest that fits; of those that are there alone, if it is told which."""
        if there is not None:
            sizes = {s: there.get(s, Kept(self.budget + 1.0)) for s in sizes}
        points: Frontier = frontier(self._stakes.root, sizes, self.budget)
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

    # -- telling

    @property
    def _said(self) -> int:
        """The budget of a view; of a part, what its views leave it."""
        said = budget_of(self.upkeep.world, self.upkeep.view)
        return self.budget if said is None or self.upkeep.view.part else said

    def room(self, method: str) -> Room:
        """What the next refresh keeps, by a method, as far as one can tell."""
        shared = round(shared_bytes(self.upkeep.world, self.upkeep.view))
        taken = round(taken_by(self.upkeep.world, self.upkeep.view)) + shared
        kept, sizes = self._kept_after(method), self.bytes_after(method)
        states = tuple((name, round(sizes[s])) for s, name in kept.items() if s in sizes)
        gone = tuple(known.kind for s, known in self.upkeep.known.items() if s not in kept)
        return Room(self._said, taken, states, gone, shared)

    def _kept_after(self, method: str) -> dict[str, str]:
        """The names of what the next refresh keeps, by signature."""
        plan = self.next if method == INCREMENTAL else self.afresh
        return {s.node.digest(): s.name for s in plan.kept} if method != PLAIN else {}

    def bytes_after(self, method: str) -> dict[str, float]:
        """What these are expected to take, by signature, as far as it is known."""
        kept = self._kept_after(method)
        sizes = self._sizes(method == FULL) if kept else {}
        return {signature: sizes[signature].bytes for signature in kept if signature in sizes}

    def told(
        self, measured: Mapping[str, float], kept: Collection[str], mode: str
    ) -> dict[str, Any]:
        """What became of the states, as plain data; `measured` are the bytes of those there are."""
        plans = (self.now, self.afresh if mode == "full" else self.next)
        names = {s.node.digest(): s.name for plan in plans for s in plan.kept}
        names = {s: known.kind for s, known in self.upkeep.known.items()} | names
        gone = [s for s in dict.fromkeys([*self.upkeep.known, *measured]) if s not in kept]
        return {
            "budget": self._said,
            "bytes": round(sum(size for s, size in measured.items() if s in kept)),
            "kept": [names[s] for s in measured if s in kept],
            "dropped": [names[s] for s in gone],
            "measured": [{"signature": s, "bytes": round(b)} for s, b in measured.items()],
            "expected": self._told_expected(),
        }

    def _told_expected(self) -> dict[str, float] | None:
        """Changed rows by source that are expected at the next refresh; None where that makes no
        difference."""
        if not self._has_room:
            return None
        names, expected = self.upkeep.world.snapshot, self._stakes.expected
        return {names.get(id).name: float(f"{c.rows:.4g}") for id, c in expected.items()}
