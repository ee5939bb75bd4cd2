"""A plan as algebra: what each run saves for later ones, and the results.

A run reads sources as they are at some point of the timeline, their changes between two points,
what runs before it have saved, and what existed before the plan did. All else is computed where it
is needed, which an engine does once where several ask for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from slackwater.algebra.expr import columns, remap, used_columns
from slackwater.algebra.relation import Bag, Distinct, Project, Relation, Scan
from slackwater.planner.existing import LACKING, Existing
from slackwater.planner.states import Solution
from slackwater.planner.temporal import Assignment, Key, Way
from slackwater.planner.timeline import Timed
from slackwater.tvr import zset
from slackwater.tvr.memo import CHANGED, ROWS, Ref
from slackwater.tvr.prune import prune
from slackwater.tvr.time import CHANGE, NOW, split, weighted_scan
from slackwater.types import WEIGHT, Schema


@dataclass(frozen=True)
class Saved:
    """A relation that later runs read, with weights as its last column. Where all of these are
    one, it is read without. On Spark it may be spread by the values of some columns, in so many
    pieces (`planner/layout.py`)."""

    name: str
    relation: Relation
    plain: bool
    by: tuple[str, ...] = ()
    pieces: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    """What its columns are called where they come from."""
    number: int = -1
    """Of the relation, among those of its plan."""

    @property
    def scan(self) -> Scan:
        """How it is read."""
        fields = self.relation.schema
        return Scan(self.name, self.name, fields[:-1] if self.plain else fields)


@dataclass(frozen=True)
class RunSteps:
    """What one run does: it saves, in this order, and gives a result where one is due."""

    point: int
    saves: tuple[Saved, ...]
    result: Relation | None


@dataclass(frozen=True)
class AtPoint:
    """Which rows of a source a scan means: at a point, or the change between two."""

    id: str
    start: int
    end: int
    change: bool
    weighted: bool


def rows_at(id: str, name: str, fields: Schema, point: int) -> Scan:
    """The rows of a source at a point.

    >>> rows_at("t1", "sales", (), 2).source
    't1@2'
    """
    return Scan(f"{id}@{point}", name, fields)


def read_at(scan: Scan) -> AtPoint:
    """What a scan of a source means.

    >>> read_at(Scan("t1@0-2@change", "sales", ()))
    AtPoint(id='t1', start=0, end=2, change=True, weighted=True)
    """
    id, time = split(scan.source)
    points, _, kind = time.removeprefix("@").partition("@")
    start, _, end = points.partition("-")
    return AtPoint(id, int(start), int(end or start), f"@{kind}" == CHANGE, bool(kind))


def unfold(solution: Solution) -> list[RunSteps]:
    """What each run of a plan does."""
    return _of_what_is_there(_narrowed(_Unfolding(solution).runs()))


def lacking(runs: Sequence[RunSteps]) -> frozenset[str]:
    """What exists without columns that some runs would read, by name."""
    return frozenset(scan.source for scan in _partly_there(runs))


class _Unfolding:
    """One plan. Its assignments, one for each relation that is kept and the last for the results,
    each know what was kept before them."""

    def __init__(self, solution: Solution) -> None:
        self._solution = solution
        self._graph = solution.graph
        self._kept = {key: n for n, key in enumerate(solution.kept)}
        self._loaded = {
            (i, step.saved_at)
            for (i, _), step in solution.steps().items()
            if step.saved_at is not None
        }
        self._saved: dict[Key, Saved] = {}
        self._found: dict[tuple[int, Key], Relation] = {}

    def runs(self) -> list[RunSteps]:
        """In the order of the timeline."""
        for n, key in enumerate(self._solution.kept):
            self._there(n, key)
        last = len(self._solution.kept)
        results = {run: self._named(last, (i, run)) for i, run in self._solution.wanted}
        saved = {
            run: tuple(s for (_, at), s in self._saved.items() if at == run)
            for run in self._graph.problem.points
        }
        return [RunSteps(run, saved[run], results.get(run)) for run in saved]

    def _named(self, n: int, key: Key) -> Relation:
        """A result, with the columns' names of the query: another form of it may have others."""
        made, names = self._there(n, key), zset.names(self._graph.problem.query)
        return made if zset.names(made) == names else Project(made, columns(made.schema), names)

    def _assignment(self, n: int) -> Assignment:
        return self._solution.assignments[n]

    def _there(self, n: int, key: Key) -> Relation:
        """A relation in a run, by an assignment or one before it."""
        n = min(n, self._kept.get(key, n))
        if (n, key) not in self._found:
            saving = key in self._loaded
            self._found[n, key] = self._read(n, key) if saving else self._made(n, key)
        return self._found[n, key]

    def _read(self, n: int, key: Key) -> Relation:
        """What later runs read, too, is saved first."""
        fields = self._graph.nodes[key[0]].ref.schema
        if key not in self._saved:
            self._saved[key] = self._save(key, self._made(n, key))
        scan = self._saved[key].scan
        return Project(scan, columns(scan.schema), tuple(f.name for f in fields))

    def _made(self, n: int, key: Key) -> Relation:
        i, run = key
        step = self._assignment(n).step(key)
        if step.saved_at is not None:
            return self._there(n, (i, step.saved_at))
        if step.existing is not None:
            return _lying(step.existing, self._graph.nodes[i])
        if step.way is None:
            return _source(self._graph.nodes[i])
        return self._by(n, run, step.way)

    def _by(self, n: int, run: int, way: Way) -> Relation:
        inputs = (self._there(n, (i, run)) for i in way.inputs)
        found = dict(zip(way.member.refs, inputs, strict=True))
        keys_told = way.member.relation.rewrite(lambda node: _told(node, found))
        made: Relation = keys_told.rewrite(
            lambda node: found[node] if isinstance(node, Ref) else _plainly(node)
        )
        return made

    def _save(self, key: Key, relation: Relation) -> Saved:
        plain = self._graph.nodes[key[0]].ref.trait.kind == ROWS
        rows = zset.with_weight(relation) if plain else relation
        names = (*(f"c{i}" for i in range(rows.width - 1)), WEIGHT)
        saved = Project(rows, columns(rows.schema), names)
        fields = self._graph.nodes[key[0]].ref.schema
        labels = {name: f.name for name, f in zip(names, fields, strict=False)}
        return Saved(f"s{key[0]}r{key[1]}", saved, plain, labels=labels, number=key[0])


def _told(node: Relation, found: dict[Ref, Relation]) -> Relation:
    """Keys of a change, of rows that really differ: else there would be more or fewer of them by
    the way in which the change is computed, and what was and what is must be taken for the same
    keys wherever a plan does so."""
    if not isinstance(node, Distinct):
        return node

    def told(below: Relation) -> Relation:
        if not isinstance(below, Ref):
            return below
        own = found[below]
        return zset.consolidate(own) if below.trait.kind == CHANGED else own

    changed: Relation = node.rewrite(told)
    return changed


def _lying(existing: Existing, timed: Timed) -> Relation:
    scan = existing.scan(timed.ref.schema)
    return Project(scan, columns(scan.schema), tuple(f.name for f in timed.ref.schema))


def _source(timed: Timed) -> Scan:
    node, trait = timed.ref.tvr.node, timed.ref.trait
    assert isinstance(node, Scan)
    time = f"@{timed.start}-{timed.end}{CHANGE}"
    if trait.kind != CHANGED:
        time = f"@{timed.point}{NOW}"
    return weighted_scan(node.source, node.name, node.fields, time)


def _plainly(node: Relation) -> Relation:
    """The rows of a source are read as such, not put together from rows with weights."""
    if isinstance(node, Bag) and isinstance(node.input, Scan):
        at = split(node.input.source)[1]
        if at.endswith(NOW):
            at_point = read_at(node.input)
            return rows_at(at_point.id, node.input.name, node.schema, at_point.end)
    return node


# -- of what is saved, the columns that are read


def _narrowed(runs: list[RunSteps]) -> list[RunSteps]:
    """The same, saving no column that nobody reads."""
    results = {run.point: prune(run.result) for run in runs if run.result is not None}
    saves: list[Saved] = []  # the last first
    for saved in (s for run in reversed(runs) for s in reversed(run.saves)):
        readers = [*results.values(), *(s.relation for s in saves)]
        read = set().union(*(_read_of(saved.scan, reader) for reader in readers))
        always = 0 if saved.plain else saved.scan.width - 1  # a relation has a column
        kept = sorted(read | {always})
        fewer = _only(saved, kept)

        def narrow(relation: Relation, old: Scan = saved.scan, new: Scan = fewer.scan) -> Relation:
            return relation.rewrite(lambda node: _reading(node, old, new))  # type: ignore[no-any-return]

        results = {point: narrow(result) for point, result in results.items()}
        saves = [replace(s, relation=narrow(s.relation)) for s in saves]
        saves.append(replace(fewer, relation=prune(fewer.relation)))
    by_name = {saved.name: saved for saved in saves}
    return [
        RunSteps(run.point, tuple(by_name[s.name] for s in run.saves), results.get(run.point))
        for run in runs
    ]


def _of_what_is_there(runs: list[RunSteps]) -> list[RunSteps]:
    """The same, reading no column that is not there of what exists, where nobody needs it."""
    for scan in _partly_there(runs):
        read = set().union(*(_read_of(scan, r) for run in runs for r in relations_of(run)))
        fields = tuple(f for f in scan.fields if not f.name.startswith(LACKING))
        if all(scan.fields[i] in fields for i in read):
            fewer = replace(scan, fields=fields)
            runs = [_with(run, partial(_reading, old=scan, new=fewer)) for run in runs]
    return runs


def relations_of(run: RunSteps) -> list[Relation]:
    """All that a run computes."""
    found = [saved.relation for saved in run.saves]
    return found if run.result is None else [*found, run.result]


def _partly_there(runs: Sequence[RunSteps]) -> list[Scan]:
    scans = (scan for run in runs for relation in relations_of(run) for scan in relation.scans())
    partly = (scan for scan in scans if any(f.name.startswith(LACKING) for f in scan.fields))
    return list(dict.fromkeys(partly))


def _with(run: RunSteps, change: Callable[[Relation], Relation]) -> RunSteps:
    saves = tuple(replace(s, relation=s.relation.rewrite(change)) for s in run.saves)
    return RunSteps(run.point, saves, None if run.result is None else run.result.rewrite(change))


def _read_of(scan: Scan, relation: Relation) -> set[int]:
    """The columns that a relation reads of what was saved."""
    found = set(range(scan.width)) if relation is scan else set()
    for node in relation.walk():
        if scan in node.inputs:
            every = range(scan.width)
            found |= used_columns(*node.exprs) if isinstance(node, Project) else set(every)
    return found


def _only(saved: Saved, kept: Sequence[int]) -> Saved:
    """What is saved with some of its columns."""
    weight = saved.relation.width - 1
    places = [*kept, weight] if saved.plain else kept
    row, fields = columns(saved.relation.schema), saved.relation.schema
    picked = tuple(row[i] for i in places), tuple(fields[i].name for i in places)
    return replace(saved, relation=Project(saved.relation, *picked))


def _reading(node: Relation, old: Scan, new: Scan) -> Relation:
    """An operator that read what was saved whole, and reads some of its columns now."""
    if not isinstance(node, Project) or node.input is not old or old is new:
        return node
    places = {f.name: i for i, f in enumerate(new.schema)}
    moved = {i: places[f.name] for i, f in enumerate(old.schema) if f.name in places}
    return Project(new, tuple(remap(e, moved.__getitem__) for e in node.exprs), node.names)
