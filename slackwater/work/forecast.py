"""What a refresh of a view would do now: what it writes, from what, how many rows, at what cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

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
class Loaded:
    """A state that is read, or the rows of the view itself, as they are stored."""

    name: str
    rows: int
    bytes: int

    def __str__(self) -> str:
        return f"{self.name}, {self.rows:,} rows, {self.bytes:,} bytes"


@dataclass(frozen=True)
class Written:
    """A state that is saved, or the view itself."""

    name: str
    state: bool
    rows: float  # expected
    reads: tuple[str, ...]
    cpu_seconds: float | None = None  # its share of the step's

    def line(self) -> str:
        """For people."""
        verb = "Saves: " if self.state else "Writes:"
        cost = "" if self.cpu_seconds is None else f" and {self.cpu_seconds:.3f} CPU s"
        reads = f", from {', '.join(self.reads)}" if self.reads else ""
        return f"{verb} {self.name}, about {self.rows:,.0f} rows{cost}{reads}"


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
    """One step of a run: what is done for one view, or for one part of views."""

    of: str
    method: str
    engine: str
    cpu_seconds: float | None
    seconds: float | None
    outputs: tuple[Written, ...]
    loads: tuple[Loaded, ...] = ()
    builds: tuple[str, ...] = ()  # states that are built besides, for later refreshes
    exchanges: tuple[Exchange, ...] = ()  # on Spark: how rows move between its workers
    blocks: int = 1  # so often the driver and the workers take turns
    one_task: bool = False  # for each statement, so that nothing moves

    def lines(self) -> list[str]:
        """For people."""
        cost = ""
        if self.cpu_seconds is not None and self.seconds is not None:
            cost = f": about {self.cpu_seconds:.3f} CPU s, {self.seconds:.3f} s"
        found = [f"Step:   {self.of}: {self.method} on {self.engine}{cost}"]
        found += [f"Loads:  {loaded}" for loaded in self.loads]
        found += [output.line() for output in self.outputs]
        found += [f"Builds: {name}" for name in self.builds]
        if self.one_task:
            found.append("Moves:  nothing: each statement is one task")
        found += [f"Moves:  {exchange}" for exchange in self.exchanges]
        return found + ([f"Blocks: {self.blocks}"] if self.exchanges else [])

    @property
    def rows(self) -> float:
        """That are expected to be written of the view or part itself."""
        return sum(output.rows for output in self.outputs if not output.state)


def forecast(ways: Ways, usual: str) -> Forecast:
    """Of a view between two moments; `usual` is where a step runs if nobody says otherwise."""
    upkeep, choice = ways.upkeep, ways.choice
    costs = costing(upkeep)
    outputs, effort = _outputs(upkeep, ways.plan, choice, costs)
    engine = choice.chosen.engine or usual
    own = next((c for c in costs.candidates(effort) if c.engine == engine), choice.chosen)
    cpu, latency = (own.cpu, own.latency) if own.cpu < inf else (None, None)
    rows, names = costs.made(outputs), _names(upkeep, ways)
    shares = _shares(costs, outputs, engine)
    written = tuple(
        Written(
            names[id],
            id != upkeep.view.id,
            rows[id],
            _reads(relation, names),
            None if cpu is None else cpu * shares[id],
        )
        for id, relation in outputs.items()
    )
    made = Forecast(
        upkeep.view.name,
        choice.chosen.method,
        engine,
        cpu,
        latency,
        written,
        _loads(upkeep, choice, outputs, names),
        _builds(choice),
    )
    if engine == "local":
        return made
    if _is_one_task(upkeep, outputs, choice):
        return replace(made, one_task=True)
    return _with_exchanges(made, outputs, names)


def _shares(costs: Costing, outputs: Mapping[str, Relation], engine: str) -> dict[str, float]:
    """What each output takes of what all take; what several need is in the share of each."""
    alone = {id: costs.seconds_of(relation, engine) for id, relation in outputs.items()}
    total = sum(alone.values())
    return {id: seconds / total if total > 0 else 0.0 for id, seconds in alone.items()}


def _loads(
    upkeep: Upkeep, choice: Choice, outputs: Mapping[str, Relation], names: Mapping[str, str]
) -> tuple[Loaded, ...]:
    """The states, and rows of the view, that are read as they are stored."""
    if choice.following is None:
        return ()
    kept = {state.id for state in choice.following.plan.kept} | {upkeep.view.id}
    times = [split(scan.source) for relation in outputs.values() for scan in relation.scans()]
    read = dict.fromkeys(id for id, time in times if id in kept and time != CHANGE)
    found = ((id, upkeep.interval.segments(id, OLD)) for id in read)
    return tuple(
        Loaded(names[id], sum(s.rows for s in stored), sum(s.bytes for s in stored))
        for id, stored in found
        if stored
    )


def _builds(choice: Choice) -> tuple[str, ...]:
    """The states that are built beside a refresh."""
    if choice.building is None or choice.following is None:
        return ()
    there = {state.node for state in choice.following.plan.kept}
    return tuple(state.name for state in choice.building.kept if state.node not in there)


def _is_one_task(upkeep: Upkeep, outputs: Mapping[str, Relation], choice: Choice) -> bool:
    """Is so little read that nothing is exchanged?"""
    making = () if choice.following is None else outputs
    sources = upkeep.interval.sources(outputs.values(), making)
    written = [Output(id, relation) for id, relation in outputs.items()]
    relations = [thin(relation, sources) for relation in outputs.values()]
    return suited(narrowed(written, sources), relations).one_piece


def _outputs(
    upkeep: Upkeep, plan: Maintenance | None, choice: Choice, costs: Costing
) -> tuple[Mapping[str, Relation], Effort]:
    """What is written, and what that takes."""
    if plan is None:
        rows = zset.with_weight(upkeep.query)
        return {upkeep.view.id: rows}, costs.without_states(rows)
    if choice.following is not None:
        way = choice.following
        return way.changes, costs.by_changes(choice.chosen.method, way)
    if choice.chosen.method == PLAIN:
        rows = zset.with_weight(plan.root)
        return {upkeep.view.id: rows}, costs.without_states(rows)
    anew = upkeep.anew(plan)
    return anew, costs.in_full(plan, anew)


def _names(upkeep: Upkeep, ways: Ways) -> dict[str, str]:
    snapshot, following = upkeep.world.snapshot, ways.choice.following
    plan = ways.plan if following is None else following.plan
    found = {} if plan is None else {state.id: state.name for state in plan.states.values()}
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
