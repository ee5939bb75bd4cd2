"""What is at stake where states are kept: what comes next, what they save then and take now.

States save by what the laws cost with them and without (`planner/outline`), for the change that is
expected. They take room, and they have to be built where they are not there: that counts by the
refreshes that they will serve (`work/lasting`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from slackwater.algebra.relation import Join, Relation
from slackwater.catalog.model import Event
from slackwater.planner.budget import Kept, Operator
from slackwater.planner.choice import FULL, INCREMENTAL, UNSURE
from slackwater.planner.cutting import Scene
from slackwater.planner.outline import Candidate, Outline
from slackwater.stats.rows import Change, Rows
from slackwater.tvr import zset
from slackwater.tvr.maintenance import Maintenance, every_part, keeping
from slackwater.tvr.methods.higher_order import spread
from slackwater.work.arriving import LastArrivals
from slackwater.work.coming import Coming
from slackwater.work.costing import costing
from slackwater.work.lasting import Lasting
from slackwater.work.state_bytes import StateBytes
from slackwater.work.upkeep import Upkeep

REMEMBERED = 20
"""Of so many refreshes, the sizes of states are remembered."""


@dataclass(frozen=True)
class Stakes:
    """Of one view at one refresh; `must`: it has to be computed anew, whatever that costs."""

    upkeep: Upkeep
    plan: Maintenance
    must: bool

    # -- what comes

    @cached_property
    def expected(self) -> Mapping[str, Change]:
        """By source, what comes until the next refresh."""
        arrivals = self.upkeep.world.house.keeper.arrivals or Coming(self.upkeep.interval)
        return arrivals.expected_changes(self.upkeep.view)

    def serving(self, anew: bool, serves: bool) -> float:
        """The refreshes that a state is expected to serve which is built now. One that computes
        everything anew tells itself how far what was expected can be relied on; `serves`: it could
        be done for less by changes."""
        return self._lasting.refreshes((serves or self._now_anew) if anew else None)

    @cached_property
    def _now_anew(self) -> bool | None:
        get, interval = self.upkeep.world.snapshot.get, self.upkeep.interval
        changed = None if self.must else [get(id).name for id in interval.changed]
        return self._lasting.if_anew(bool(self.upkeep.known), changed)

    @cached_property
    def _lasting(self) -> Lasting:
        return Lasting(self._events)

    @cached_property
    def _events(self) -> Sequence[Event]:
        catalog = self.upkeep.world.house.catalog
        return catalog.events(relation=self.upkeep.view.id, kind="refresh", limit=REMEMBERED)

    @cached_property
    def rows(self) -> dict[str, Rows]:
        """Of sources, now and to come."""
        last, still = LastArrivals(self.upkeep.interval), Change()
        sources = self.upkeep.view.depends
        return {id: Rows(last.rows(id), self.expected.get(id, still)) for id in sources}

    # -- what states save

    @cached_property
    def root(self) -> Operator:
        """The view as operators to choose from."""
        return self._outline.operator()

    @cached_property
    def _outline(self) -> Outline:
        house = self.upkeep.world.house
        if self.upkeep.view.refreshed_at is None and self.upkeep.run.id:
            house.profiling.look(self.upkeep.world, self.upkeep.query)  # else after it
        expected = house.experience.of(self.upkeep.view.name)
        engine = "spark" if house.runner.placement == "spark" else "local"
        off = expected.factor(INCREMENTAL, engine)
        unsure = 1.0 if self.upkeep.known else UNSURE
        scene = Scene(
            self.rows,
            house.profiling.known(),
            lambda work: off * expected.model.seconds(work, engine),
            self.upkeep.interval.weighted,
            merged=costing(self.upkeep).merged,
        )
        return Outline(
            self.plan,
            scene,
            injected=house.keeper.injected,
            anew_seconds=lambda work: expected.seconds(work, FULL, engine) / unsure,
        )

    @property
    def everything(self) -> frozenset[str]:
        """All that a refresh by changes uses by itself, and every part of every join around what
        is expected to change most, by signature."""

        def most_changed(join: Join) -> int | None:
            changes = [self._changed_rows(r) for r in spread(join).inner.inputs]
            return changes.index(max(changes)) if any(changes) else None

        parts = every_part(self.plan.root, most_changed)
        return frozenset(node.digest() for node in (*self.plan.states, *parts))

    def _changed_rows(self, relation: Relation) -> float:
        sources = {scan.source for scan in relation.scans()}
        return sum(self.expected[id].rows for id in sources if id in self.expected)

    # -- what they take

    @cached_property
    def bytes(self) -> StateBytes:
        """Of states, there or not."""
        return StateBytes(self.upkeep, self._events)

    def sizes(self, anew: bool, serving: float) -> dict[str, Kept]:
        """What each state takes, by signature: its bytes, and for each refresh that it serves the
        part of what it costs to build; all of them, if the view is computed anew."""
        assert self.root is not None  # which finds the candidates
        found = {}
        for signature, candidate in self._outline.candidates.items():
            there = signature in self.upkeep.known and not anew
            build = 0.0 if there else self._build_seconds(candidate, anew) / serving
            found[signature] = Kept(self.bytes.of(signature, candidate), build)
        return found

    def _build_seconds(self, candidate: Candidate, anew: bool) -> float:
        """By itself; or what it adds to computing the view anew, which is then computed from it."""
        node = candidate.state.node
        if not anew or node not in self.plan.states:
            return candidate.build_seconds
        seconds, costs = self._outline.scene.seconds, costing(self.upkeep)
        with_it = keeping(self.plan, [node.digest()], self.upkeep.id_of)
        added = costs.in_full(with_it, self.upkeep.anew(with_it)).work
        plain = costs.without_states(zset.with_weight(self.plan.root)).work
        assert added is not None
        assert plain is not None
        return float(max(0.0, seconds(added) - seconds(plain)))
