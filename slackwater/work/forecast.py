"""What a refresh of a view would do now: what it writes, from what, how many rows, at what cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any

from slackwater.algebra.relation import Relation
from slackwater.engine.skipping import narrowed
from slackwater.engine.sources import thin
from slackwater.engine.suited import suited
from slackwater.planner.choice import PLAIN
from slackwater.planner.fusion import Target, blocks, fused, program
from slackwater.planner.places import ANYHOW, Move
from slackwater.planner.steps import Output
from slackwater.tvr import zset
from slackwater.tvr.maintenance import Maintenance
from slackwater.tvr.prune import prune
from slackwater.tvr.time import CHANGE, OLD, split
from slackwater.work.choosing import Choice
from slackwater.work.costing import Costing, Effort, costing
from slackwater.work.reports import Ways
from slackwater.work.upkeep import Upkeep

COMES_OF = "what comes of "


@dataclass(frozen=True)
class Written:
    """A state that is saved, or the view itself."""

    name: str
    state: bool
    rows: float  # expected
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Exchange:
    """Rows that go from where they are to where they are needed."""

    how: str
    of: str
    by: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.how} {self.of}{' by ' if self.by else ''}{', '.join(self.by)}"


@dataclass(frozen=True)
class Forecast:
    """One run with one step, as a refresh is."""

    method: str
    engine: str
    cpu_seconds: float | None
    seconds: float | None
    outputs: tuple[Written, ...]
    exchanges: tuple[Exchange, ...] = ()  # on Spark: how rows move between its workers
    blocks: int = 1  # so often the driver and the workers take turns
    one_task: bool = False  # for each statement, so that nothing moves

    def lines(self) -> list[str]:
        """For people."""
        cost = ""
        if self.cpu_seconds is not None and self.seconds is not None:
            cost = f": about {self.cpu_seconds:.3f} CPU s, {self.seconds:.3f} s"
        found = [f"Next:   {self.method} on {self.engine}{cost}"]
        for output in self.outputs:
            verb = "Saves: " if output.state else "Writes:"
            reads = f", from {', '.join(output.reads)}" if output.reads else ""
            found.append(f"{verb} {output.name}, about {output.rows:,.0f} rows{reads}")
        if self.one_task:
            return [*found, "Moves:  nothing: each statement is one task"]
        return found + [f"Moves:  {exchange}" for exchange in self.exchanges]

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self)


def forecast(ways: Ways, usual: str) -> Forecast | None:
    """Of a view that may follow changes; `usual` is where a step runs if nobody says otherwise."""
    if ways.plan is None:
        return None
    upkeep, choice, plan = ways.upkeep, ways.choice, ways.plan
    costs = costing(upkeep)
    outputs, effort = _outputs(upkeep, plan, choice, costs)
    engine = choice.chosen.engine or usual
    own = next((c for c in costs.candidates(effort) if c.engine == engine), choice.chosen)
    known = own.cpu < inf
    rows = costs.made(outputs)
    names = _names(upkeep, plan if choice.following is None else choice.following.plan)
    written = tuple(
        Written(names[id], id != upkeep.view.id, rows[id], _reads(relation, names))
        for id, relation in outputs.items()
    )
    cpu, latency = (own.cpu, own.latency) if known else (None, None)
    made = Forecast(choice.chosen.method, engine, cpu, latency, written)
    if engine == "local":
        return made
    if _is_one_task(upkeep, outputs, choice):
        return replace(made, one_task=True)
    return _with_exchanges(made, outputs, names)


def _is_one_task(upkeep: Upkeep, outputs: Mapping[str, Relation], choice: Choice) -> bool:
    """Is so little read that nothing is exchanged?"""
    making = () if choice.following is None else outputs
    sources = upkeep.interval.sources(outputs.values(), making)
    written = [Output(id, relation) for id, relation in outputs.items()]
    relations = [thin(relation, sources) for relation in outputs.values()]
    return suited(narrowed(written, sources), relations).one_piece


def _outputs(
    upkeep: Upkeep, plan: Maintenance, choice: Choice, costs: Costing
) -> tuple[Mapping[str, Relation], Effort]:
    """What is written, and what that takes."""
    if choice.following is not None:
        way = choice.following
        return way.changes, costs.by_changes(choice.chosen.method, way)
    if choice.chosen.method == PLAIN:
        rows = zset.with_weight(plan.root)
        return {upkeep.view.id: rows}, costs.without_states(rows)
    anew = upkeep.anew(plan)
    return anew, costs.in_full(plan, anew)


def _names(upkeep: Upkeep, plan: Maintenance) -> dict[str, str]:
    snapshot = upkeep.world.snapshot
    found = {state.id: state.name for state in plan.states.values()}
    found |= {id: snapshot.get(id).name for id in upkeep.view.depends}
    return found | {upkeep.view.id: upkeep.view.name}


def _with_exchanges(
    made: Forecast, outputs: Mapping[str, Relation], names: Mapping[str, str]
) -> Forecast:
    """Files are read by any worker, and written by any."""
    targets = [Target(id, prune(relation), ANYHOW) for id, relation in outputs.items()]
    statements = program(targets, lambda scan: ANYHOW)
    known = dict(names)
    found = []
    for statement in statements:
        move = statement.relation
        of = " and ".join(_reads(move, known))
        if isinstance(move, Move):
            by = tuple(move.schema[k].name for k in move.target.keys)
            found.append(Exchange(move.how, of, by))
            known[statement.target] = of
        else:
            known.setdefault(statement.target, f"{COMES_OF}{of.removeprefix(COMES_OF)}")
    return replace(made, exchanges=tuple(found), blocks=len(fused(blocks(statements))))


def _reads(relation: Relation, names: Mapping[str, str]) -> tuple[str, ...]:
    """What is read, in words."""
    found = []
    for scan in relation.scans():
        id, time = split(scan.source)
        name = names.get(id, scan.name)
        found.append({CHANGE: f"change of {name}", OLD: f"{name} before"}.get(time, name))
    return tuple(dict.fromkeys(found))
