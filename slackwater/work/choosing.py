"""How one view is refreshed this time: by its changes or anew, in which way, and where."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from slackwater.algebra.explain import describe
from slackwater.algebra.relation import Relation
from slackwater.planner.choice import (
    ENGINES,
    FULL,
    HIGHER_ORDER,
    IM2,
    INCREMENTAL,
    METHODS,
    NONE,
    OJV,
    OPTIONAL,
    PLAIN,
    Candidate,
    cheapest,
    choose,
    is_worth_building,
)
from slackwater.stats.cost import Work
from slackwater.tvr import zset
from slackwater.tvr.maintenance import Maintenance, outer_joins, padding
from slackwater.tvr.states import State
from slackwater.tvr.time import NEW
from slackwater.work.costing import Effort, costing
from slackwater.work.keeping import Keeping
from slackwater.work.situation import Planned, situation
from slackwater.work.upkeep import FIRST, Following, Parts, Upkeep

MISSING = "STATE_MISSING"
OF_OUTER_JOINS = (OJV, IM2)
SMALL = 10_000
"""Where nothing else is allowed, and fewer rows are read, only that is looked at."""


RANKS = 3
"""Around so many inputs of a join, those that changed most, keeping the others is considered."""
LAST = Parts(last=True)


@dataclass(frozen=True)
class Choice:
    """The way that was taken, and those there were."""

    chosen: Candidate
    candidates: Sequence[Candidate] = ()
    following: Following | None = None  # where it is by changes
    building: Maintenance | None = None  # whose states are worth having from now on
    parts: Parts = FIRST  # which of them a higher-order refresh keeps
    tells: bool = True  # does what it takes say anything of others? Not of a few rows

    def to_json(self, engine: str, warm: bool = True) -> dict[str, Any]:
        """What was taken and expected, and where it ran, as plain data; `warm`: does what it took
        say what it takes again?"""
        ran = (c for c in self.candidates if (c.method, c.engine) == (self.chosen.method, engine))
        taken = next(ran, self.chosen)
        work = [float(f"{amount:.4g}") for amount in taken.work.amounts]
        alone = self.building is None and warm and self.tells
        return taken.to_json() | {"work": work, "alone": alone}


def choose_way(
    upkeep: Upkeep, plan: Maintenance, impossible: Sequence[str], by_cost: bool
) -> Choice:
    """The cheapest way to refresh a view. `impossible`: why not by its changes; `by_cost`: may it
    be computed anew merely because that costs less?"""
    choosing = _Choosing(upkeep, plan, tuple(impossible))
    return choosing.listed(choosing.choice(by_cost), by_cost)


def nothing_to_do() -> Choice:
    """Of a view that reads nothing that changed."""
    others = [Candidate(m, e, reasons=("NOTHING_CHANGED",)) for m in METHODS for e in ENGINES]
    return Choice(Candidate(NONE, "", 0.0, 0.0), others)


def only_anew(upkeep: Upkeep, rows: Relation, reasons: Sequence[str]) -> Choice:
    """The choice where there is none: a view is computed anew, for these reasons, each time."""
    costs = costing(upkeep)
    efforts = [Effort(m, reasons=tuple(reasons)) for m in METHODS if m != PLAIN]
    efforts.append(costs.without_states(zset.with_weight(rows)))
    return Choice(Candidate(PLAIN, ""), [c for e in efforts for c in costs.candidates(e)])


class _Choosing:
    """The ways to refresh one view."""

    def __init__(self, upkeep: Upkeep, plan: Maintenance, impossible: tuple[str, ...]) -> None:
        self._upkeep = upkeep
        self._plan = plan
        self._impossible = impossible
        self._is_load = bool(set(impossible) - {MISSING})
        self._costing = costing(upkeep)
        self._allowed = upkeep.world.house.settings.methods
        self._of_outer_joins = [m for m in OF_OUTER_JOINS if m in self._allowed]

    def choice(self, by_cost: bool) -> Choice:
        """Which way, and which there are."""
        if self._upkeep.keeping is not None:
            return self._under_budget(self._upkeep.keeping, by_cost)
        if not by_cost and self._is_small():
            method = FULL if self._impossible else INCREMENTAL
            planned = self._anew() if self._impossible else self._remembered(self._follow)
            found = self._candidates(planned)
            return Choice(Candidate(method, ""), found, planned.ways.get(method), tells=False)
        planned = self._planned(by_cost)
        candidates = self._candidates(planned)
        method = FULL if self._impossible else INCREMENTAL
        to_build = inf if planned.building is None else self._seconds_to_build(planned.building)
        chosen = choose(candidates, to_build) or Candidate(method, "")
        if self._is_load:  # by the size of what is read
            chosen = replace(chosen, engine="")
        way, building = planned.ways.get(chosen.method), self._building(planned, candidates, chosen)
        return Choice(chosen, candidates, way, building, planned.parts)

    def listed(self, choice: Choice, by_cost: bool) -> Choice:
        """With the methods that were not looked at, too, and why not."""
        seen = {c.method for c in choice.candidates}
        others = [
            Effort(method, reasons=self._why_not(method, choice, by_cost, len(seen) == 1))
            for method in METHODS
            if method not in seen
        ]
        found = [c for effort in others for c in self._costing.candidates(effort)]
        every = sorted((*choice.candidates, *found), key=lambda c: METHODS.index(c.method))
        return replace(choice, candidates=every)

    def _why_not(
        self, method: str, choice: Choice, by_cost: bool, only_one: bool
    ) -> tuple[str, ...]:
        """Why a method was not looked at, as `only_one` was, or several were."""
        if method == INCREMENTAL or (method not in (FULL, PLAIN) and self._is_load):
            return self._impossible
        if method in OPTIONAL and method not in self._allowed:
            return ("METHOD_SWITCHED_OFF",)
        if method not in (FULL, PLAIN):
            if self._upkeep.keeping is not None:
                return ("BUDGET_DECIDES",)
            if only_one:
                return ("FEW_ROWS",)
            return ("NO_PARTS_TO_KEEP" if method == HIGHER_ORDER else self._no_outer_join(),)
        if not by_cost:
            return ("STATES_ARE_BUILT" if self._impossible else "CHANGES_ARE_FOLLOWED",)
        return ("BUDGET_DECIDES" if choice.following is None else "DEARER_IN_ANY_CASE",)

    def _no_outer_join(self) -> str:
        """Why a method of outer joins has nothing to do here, and where that is so."""
        joins = list(outer_joins(self._plan.root))
        if not joins:
            return "NO_OUTER_JOIN"
        code, found = "NO_LEFT_JOIN_BY_EQUALITY", padding(self._plan, self._upkeep.changes)
        if not found:
            code, found = "PADDED_SIDE_UNCHANGED", joins
        self._upkeep.places[code] = "; ".join(map(describe, found))
        return code

    def _planned(self, by_cost: bool) -> Planned:
        if self._is_load:
            return self._plan_ways(by_cost)
        return self._remembered(lambda: self._plan_ways(by_cost), by_cost)

    def _remembered(self, plan: Callable[[], Planned], *asked: bool) -> Planned:
        """What was planned when all was as it is now."""
        now = situation(self._upkeep, self._impossible)
        return self._upkeep.world.house.plans.of((now, *asked), plan)

    def _follow(self) -> Planned:
        """Following changes, whatever it takes."""
        way = self._upkeep.following(self._plan)
        return Planned((self._costing.by_changes(INCREMENTAL, way),), {INCREMENTAL: way})

    def _anew(self) -> Planned:
        """Computing everything anew, with states."""
        return Planned((self._costing.in_full(self._plan, self._upkeep.anew(self._plan)),))

    def _plan_ways(self, by_cost: bool) -> Planned:
        efforts, ways, parts = self._by_changes()
        missing = self._upkeep.missing(ways[HIGHER_ORDER].plan) if HIGHER_ORDER in ways else []
        building = self._costing.of_building(missing, ways[HIGHER_ORDER].plan) if missing else None
        return Planned((*efforts, *self._in_full(by_cost)), ways, building, parts)

    def _candidates(self, planned: Planned) -> list[Candidate]:
        return [c for effort in planned.efforts for c in self._costing.candidates(effort)]

    def _under_budget(self, keeping: Keeping, by_cost: bool) -> Choice:
        """By changes with the states that are there, or anew; either way with those that are then
        worth keeping for what comes next, which have to be built where they are not there."""
        there = {s.id for s in keeping.now.kept}
        new = [s for s in keeping.next.kept if s.id not in there]
        building = keeping.next if new else None
        if not by_cost and self._is_small():
            if self._impossible:
                found = self._candidates(Planned(self._with_kept(keeping, by_cost)))
                return Choice(Candidate(FULL, ""), found, tells=False)
            now = self._upkeep.following(keeping.now)
            found = self._costing.candidates(self._costing.by_changes(INCREMENTAL, now))
            return Choice(Candidate(INCREMENTAL, ""), found, now, building, tells=False)
        planned = self._by_stored(keeping, by_cost)
        candidates = self._candidates(planned)
        to_build = self._to_build(new, keeping.next)
        chosen = _clearly(candidates, to_build)
        if chosen is None:
            keeping.serves = _clearly(candidates) is not None
            candidates += self._candidates(Planned(self._with_kept(keeping, by_cost)))
            chosen = self._cheapest(candidates, keeping, to_build)
        if self._is_load:  # by the size of what is read
            chosen = replace(chosen, engine="")
        way = planned.ways.get(chosen.method)
        return Choice(chosen, candidates, way, None if way is None else building)

    def _to_build(self, states: Sequence[State], plan: Maintenance) -> float:
        """CPU seconds of building states of a plan beside following changes."""
        return self._seconds_to_build(self._costing.of_building(states, plan))

    def _seconds_to_build(self, work: Work) -> float:
        placement = self._upkeep.world.house.runner.placement
        return self._costing.seconds_to_build(work, "spark" if placement == "spark" else "local")

    def _by_stored(self, keeping: Keeping, by_cost: bool) -> Planned:
        """Following changes with the states that are there, and computing anew without any."""
        anew = []
        if by_cost:
            anew.append(self._costing.without_states(zset.with_weight(self._plan.root)))
        elif not self._impossible:
            anew.append(Effort(FULL, reasons=("CHANGES_ARE_FOLLOWED",)))
        if self._is_load:
            return Planned((Effort(INCREMENTAL, reasons=self._impossible), *anew))
        way = self._upkeep.following(keeping.now)
        by_changes = self._costing.by_changes(INCREMENTAL, way, self._impossible)
        return Planned((by_changes, *anew), {INCREMENTAL: way})

    def _with_kept(self, keeping: Keeping, by_cost: bool) -> tuple[Effort, ...]:
        """Computing anew with the states that are then kept; with none, it is there already."""
        if not keeping.afresh.kept and by_cost:
            return ()
        return (self._costing.in_full(keeping.afresh, self._upkeep.anew(keeping.afresh)),)

    def _cheapest(
        self, candidates: Sequence[Candidate], keeping: Keeping, to_build: float
    ) -> Candidate:
        """By the cost now and that of the refreshes to come; in a tie, changes are followed."""
        more = {method: keeping.seconds_ahead(method) for method in (INCREMENTAL, FULL, PLAIN)}
        more[INCREMENTAL] += to_build
        return min(
            (c for c in candidates if not c.reasons),
            key=lambda c: c.cpu + more[c.method],
            default=Candidate(FULL if self._impossible else INCREMENTAL, ""),
        )

    def _is_small(self) -> bool:
        interval, runner = self._upkeep.interval, self._upkeep.world.house.runner
        sources = self._upkeep.view.depends
        if runner.placement == "auto":
            return False
        return sum(interval.rows(id, NEW) for id in sources) < SMALL

    def _by_changes(self) -> tuple[list[Effort], dict[str, Following], Parts]:
        """Following changes, with and without what they are joined with kept; and which parts."""
        if self._is_load:  # nobody knows what changed
            return [Effort(INCREMENTAL, reasons=self._impossible)], {}, FIRST
        way, effort = self._following(INCREMENTAL, self._plan)
        efforts, ways = [effort], {INCREMENTAL: way}
        for method in self._of_outer_joins:
            other = self._upkeep.by_outer_joins(self._plan, method)
            if other is not None:
                ways[method], effort = self._following(method, other)
                efforts.append(effort)
        found = [(p, *self._following(HIGHER_ORDER, plan)) for p, plan in self._higher_orders()]
        if not found:
            return efforts, ways, FIRST
        parts, ways[HIGHER_ORDER], effort = min(found, key=lambda one: self._to_keep(one[2]))
        return [*efforts, effort], ways, parts

    def _to_keep(self, effort: Effort) -> tuple[bool, float]:
        """Parts that are there are kept; of others, the cheapest."""
        found = self._costing.candidates(effort)
        return MISSING in effort.reasons, cheapest(found, HIGHER_ORDER)

    def _following(self, method: str, plan: Maintenance) -> tuple[Following, Effort]:
        way = self._upkeep.following(plan)
        missing = (MISSING,) if self._upkeep.missing(plan) else ()
        return way, self._costing.by_changes(method, way, missing)

    def _higher_orders(self) -> Iterator[tuple[Parts, Maintenance]]:
        """The plans that keep what changes are joined with, and follow outer joins by each of
        their methods."""
        for parts, plan in self._with_parts():
            yield parts, plan
            for method in self._of_outer_joins:
                other = self._upkeep.by_outer_joins(plan, method)
                if other is not None:
                    yield replace(parts, outer=method), other

    def _with_parts(self) -> Iterator[tuple[Parts, Maintenance]]:
        """Around one input or another of joins; and with right sides of outer joins last."""
        seen: set[frozenset[Relation]] = set()
        if HIGHER_ORDER not in self._allowed:
            return
        for parts in (*(Parts(rank) for rank in range(RANKS)), LAST):
            plan = None if parts.rank > len(seen) else self._upkeep.higher_order(self._plan, parts)
            if plan is not None and frozenset(plan.states) not in seen:
                seen.add(frozenset(plan.states))
                yield parts, plan

    def _in_full(self, by_cost: bool) -> list[Effort]:
        if not by_cost and not self._impossible:
            return [Effort(method, reasons=("CHANGES_ARE_FOLLOWED",)) for method in (FULL, PLAIN)]
        found = list(self._anew().efforts)
        if by_cost:
            found.append(self._costing.without_states(zset.with_weight(self._plan.root)))
        return found

    def _building(
        self, planned: Planned, candidates: Sequence[Candidate], chosen: Candidate
    ) -> Maintenance | None:
        """The plan whose states are worth building beside this refresh. What is built is under
        ids of its own, not under those of a plan made before."""
        if planned.building is None:
            return None
        cost = self._costing.seconds_to_build(planned.building, chosen.engine)
        if not is_worth_building(candidates, chosen, cost):
            return None
        return self._upkeep.higher_order(self._plan, planned.parts)


def _clearly(candidates: Sequence[Candidate], to_build: float = 0.0) -> Candidate | None:
    """Following changes, where computing anew would cost more even without states: which it would
    keep is then not looked at."""
    possible = sorted((c for c in candidates if not c.reasons), key=lambda c: c.cpu)
    own = next((c for c in possible if c.method == INCREMENTAL), None)
    anew = min((c.cpu for c in possible if c.method != INCREMENTAL), default=inf)
    return own if own is not None and own.cpu + to_build <= anew else None
