"""What it takes to compute something anew, from all there is, in one run."""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.algebra.relation import Relation
from slackwater.catalog.model import View
from slackwater.planner.simulation import Inflow, Setting, Simulation
from slackwater.planner.subplans import cut
from slackwater.stats.rows import Change, Estimates, Rows
from slackwater.tvr.normal import normalize
from slackwater.work.meaning import as_written
from slackwater.work.present import engines
from slackwater.work.world import World


@dataclass(frozen=True)
class Load:
    """The rows that are expected, and what they take."""

    rows: float
    cpu_seconds: float
    seconds: float


class Loading:
    """Loads in one world. What is loaded first is there for what reads it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rows: dict[str, float] = {}
        self._model = world.house.experience.of("").model
        self._engines = engines(world.house)
        self._known = world.house.profiling.known()

    def load(self, id: str, relation: Relation) -> Load:
        """Of a relation over tables, views and parts, that is known by an id from then on."""
        sources = self._sources(relation)
        self._rows[id] = self.rows(relation)
        inflows = {source: Inflow(0.0, Change(inserts=n)) for source, n in sources.items()}
        setting = Setting(inflows, self._model, self._engines, self._known)
        simulation = Simulation(cut({id: relation}, blocking=False, sharing=False), setting)
        (subplan,) = simulation.dag.subplans
        cost = simulation.cost(0, [1] * len(simulation.moving(subplan)))
        return Load(self._rows[id], cost.total, cost.final)

    def rows(self, relation: Relation) -> float:
        """Those that it is expected to have."""
        rows = {source: Rows(n) for source, n in self._sources(relation).items()}
        return Estimates(rows, self._known).of(relation).before

    def _sources(self, relation: Relation) -> dict[str, float]:
        return {scan.source: self._source(scan.source) for scan in relation.scans()}

    def load_view(self, view: View) -> Load:
        """Of a view, as its SQL says."""
        return self.load(view.id, normalize(as_written(self._world, view)[0]))

    def _source(self, id: str) -> float:
        """Rows of what is there, or of what is to be."""
        if id not in self._rows:
            found = self._world.snapshot.get(id)
            if isinstance(found, View) and not found.part and found.refreshed_at is None:
                self.load_view(found)
            else:
                self._rows[id] = self._world.rows(id)
        return self._rows[id]
