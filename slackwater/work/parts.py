"""Parts: pieces of views that are brought along by themselves, as the catalog keeps them.

A plan says which subplans run at which pace. Those that run more often than what reads them, or
that several views read, become parts: hidden views with a log of changes of their own. Everything
else stays with the view, whose form then reads parts instead of tables. A view whose own rows are
computed early has a part for all of it, and takes the rows over when its result is due.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from slackwater.algebra.codec import to_text
from slackwater.algebra.relation import Relation, Scan, under_names
from slackwater.catalog.ids import new_id
from slackwater.catalog.model import (
    ChangeOptions,
    CreateView,
    Drop,
    SetForm,
    Update,
    VersionIs,
    View,
)
from slackwater.catalog.snapshot import Snapshot
from slackwater.planner.pace import Found
from slackwater.planner.subplans import Dag, is_subplan, number_of
from slackwater.types import Field
from slackwater.work.basis import Basis, readers
from slackwater.work.house import House
from slackwater.work.meaning import as_written
from slackwater.work.world import World

PACE, EVERY, VIEWS = "pace", "every", "views"
"""Options of a part: how often it runs; by source, after how many of its rows (of a part, of its
versions) that is read; and the views that it is for."""


@dataclass(frozen=True)
class Part:
    """A piece to be kept, under an id that it has or gets."""

    id: str
    relation: Relation  # over sources and other parts
    pace: int
    every: Mapping[str, float]
    views: tuple[str, ...]  # names

    @property
    def text(self) -> str:
        """Tells it from others."""
        return to_text(self.relation)

    @property
    def options(self) -> dict[str, str]:
        """As the catalog keeps them."""
        return {
            PACE: str(self.pace),
            EVERY: json.dumps(dict(self.every)),
            VIEWS: "\n".join(self.views),
        }


@dataclass(frozen=True)
class Forms:
    """How views are computed: from which parts, and as what. No form: as their SQL says."""

    parts: tuple[Part, ...]
    views: Mapping[str, Relation | None]
    places: Mapping[int, str] = field(default_factory=dict)  # by subplan, the id of its part
    basis: Basis = field(default_factory=Basis)


class Ids:
    """The ids of parts by what they compute: of those that there are, and of those to come. Who
    calls for the same part, in one rhythm or another, means the same one; who calls for it twice
    in one plan, where nothing is shared, means two."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._known: dict[str, list[str]] = {}
        for part in snapshot.parts():
            self._known.setdefault(part.form, []).append(part.id)

    def of(self, text: str, number: int = 0) -> str:
        """That of a part, or of another one like it."""
        own = self._known.setdefault(text, [])
        own += [new_id("p") for _ in range(number + 1 - len(own))]
        return own[number]


@dataclass(frozen=True)
class Written:
    """A view, and the names of those whose SQL reads it, themselves or through others."""

    view: View
    readers: frozenset[str]

    @property
    def scan(self) -> Scan:
        """How they read it."""
        return Scan(self.view.id, self.view.name, self.view.schema)


def forms(
    dag: Dag,
    found: Found,
    expected: Mapping[str, float],
    ids: Ids,
    written: Mapping[str, Written] | None = None,
) -> Forms:
    """The parts that paces call for. `expected`: rows of each source until the result is due;
    `written`: views that others are written on, by their names."""
    return _Forming(dag, found, expected, ids, written or {}).forms()


class _Forming:
    """From subplans to parts."""

    def __init__(
        self,
        dag: Dag,
        found: Found,
        expected: Mapping[str, float],
        ids: Ids,
        written: Mapping[str, Written],
    ) -> None:
        self._dag = dag
        self._found = found
        self._expected = expected
        self._ids = ids
        self._written = written
        self._parts: dict[int, Part] = {}

    def forms(self) -> Forms:
        """All parts, and the forms of all views."""
        for subplan in self._dag.subplans:
            if self._is_part(subplan.number):
                self._parts[subplan.number] = self._part(subplan.number)
        views = {name: self._form(name, root) for name, root in self._dag.roots.items()}
        places = {number: part.id for number, part in self._parts.items()}
        basis = Basis.of(self._ids.snapshot, views)
        return Forms(tuple(self._parts.values()), views, places, basis)

    def _is_part(self, number: int) -> bool:
        if self._view_of(number) is not None:
            return False
        readers = len(self._dag.parents[number]) + len(self._roots(number))
        if readers > 1:
            return True
        pace = self._found.pace_of(number)
        if self._roots(number):
            return pace > 1
        (parent,) = self._dag.parents[number]
        return pace != self._found.paces.get((parent, f"#{number}"), 1) or self._is_uneven(parent)

    def _view_of(self, number: int) -> Written | None:
        """The view that has these rows when results are due, where they are not needed before and
        whoever needs them is written on it: that is read then, and no part."""
        if self._found.pace_of(number) > 1:
            return None
        parents, roots = self._dag.parents[number], set(self._roots(number))
        names = roots.union(*(self._dag.subplans[parent].queries for parent in parents))
        written = (self._written[name] for name in roots if name in self._written)
        found = next((w for w in written if names <= {w.view.name, *w.readers}), None)
        return None if found is None or any(map(self._is_part, parents)) else found

    def _is_uneven(self, number: int) -> bool:
        """Are its inputs flushed at different paces? Then each keeps its own."""
        return len({p for (n, _), p in self._found.paces.items() if n == number}) > 1

    def _roots(self, number: int) -> list[str]:
        return [name for name, root in self._dag.roots.items() if root == number]

    def _part(self, number: int) -> Part:
        relation = self._over_parts(self._dag.subplans[number].relation)
        pace = self._found.pace_of(number)
        text = to_text(relation)
        every = {scan.source: self._every(number, scan.source, pace) for scan in relation.scans()}
        views = tuple(sorted(self._dag.subplans[number].queries))
        alike = sum(part.text == text for part in self._parts.values())
        return Part(self._ids.of(text, alike), relation, pace, every, views)

    def _every(self, number: int, source: str, pace: int) -> float:
        own = {p.id: n for n, p in self._parts.items()}
        if source in own:
            path = self._found.paces.get((number, f"#{own[source]}"), pace)
            return max(1.0, self._found.pace_of(own[source]) / path)
        path = self._found.paces.get((number, source), pace)
        return self._expected.get(source, 0.0) / path

    def _over_parts(self, relation: Relation) -> Relation:
        """A relation over parts, where there are some, and sources."""

        def below(node: Relation) -> Relation:
            if not isinstance(node, Scan) or not is_subplan(node.source):
                return node
            number = number_of(node.source)
            if number in self._parts:
                return scan_of(self._parts[number])
            if (written := self._view_of(number)) is not None:
                return written.scan
            return self._over_parts(self._dag.subplans[number].relation)

        found: Relation = relation.rewrite(below)
        return found

    def _form(self, name: str, root: int) -> Relation | None:
        if root in self._parts:
            return scan_of(self._parts[root])
        written = self._view_of(root)
        if written is not None and written.view.name != name:
            return None  # it reads that view, and nothing else
        relation = self._over_parts(self._dag.subplans[root].relation)
        ids = {part.id for part in self._parts.values()}
        return relation if any(scan.source in ids for scan in relation.scans()) else None


def scan_of(part: Part) -> Scan:
    """A part, as who reads it does."""
    return Scan(part.id, part.id, schema_of(part.relation))


def schema_of(relation: Relation) -> tuple[Field, ...]:
    """The columns of a part: in their order, under names that are all different."""
    return tuple(Field(f"c{i}", f.type, f.nullable) for i, f in enumerate(relation.schema))


# -- in the catalog


def apply(house: House, wanted: Forms) -> list[str]:
    """Make the parts that are wanted and no others; the names of views that are computed anew by
    their next refresh. Of what was planned from other definitions, nothing is made."""
    snapshot = house.catalog.snapshot()
    if not any(_changes(house, snapshot, wanted)):
        return []
    views = [v for v in snapshot.views() if v.name in wanted.views]
    with house.lease(*wanted.basis.ids.union(v.id for v in views)) as lease:
        snapshot = house.catalog.snapshot()
        updates = list(_changes(house, snapshot, wanted))
        requires = [VersionIs(v.id, snapshot.get(v.id).version) for v in views if v.id in snapshot]
        if updates:
            house.catalog.commit([*lease.requirements, *requires], updates)
    changed = {u.id for u in updates if isinstance(u, SetForm)}
    return [v.name for v in views if v.id in changed]


def _changes(house: House, snapshot: Snapshot, wanted: Forms) -> Iterator[Update]:
    """The same for a snapshot later than that which was planned by."""
    wanted.basis.require(snapshot, [part.id for part in wanted.parts])
    return changes(World(house, snapshot, defining=True), wanted)


def changes(world: World, wanted: Forms) -> Iterator[Update]:
    """What the catalog has to learn: new parts first, then forms, then what goes."""
    snapshot = world.snapshot
    known = {part.id: part for part in snapshot.parts()}
    for part in wanted.parts:
        if part.id not in known:
            yield CreateView(_view(part))
        elif dict(known[part.id].options) != part.options:
            yield ChangeOptions(part.id, part.options)
    for name, relation in wanted.views.items():
        view = snapshot.find(name)
        if isinstance(view, View):
            yield from _formed(world, view, relation)
    kept = {part.id for part in wanted.parts} | _of_others(snapshot, wanted)
    yield from (Drop(id) for id in reversed(known) if id not in kept)


def _view(part: Part) -> View:
    depends = tuple(dict.fromkeys(scan.source for scan in part.relation.scans()))
    return View(
        id=part.id,
        name=part.id,
        schema=schema_of(part.relation),
        options=part.options,
        depends=depends,
        form=part.text,
        part=True,
    )


def _formed(world: World, view: View, relation: Relation | None) -> Iterator[Update]:
    """The form of a view, if it is another one."""
    own, _ = as_written(world, view)
    depends = dict.fromkeys(scan.source for scan in own.scans())
    text = ""
    if relation is not None:
        depends |= dict.fromkeys(scan.source for scan in relation.scans())
        text = to_text(_named(relation, view))
    if text != view.form:
        yield SetForm(view.id, text, tuple(depends))


def _named(relation: Relation, view: View) -> Relation:
    """The same under the view's column names."""
    return under_names(relation, tuple(f.name for f in view.schema))


def _of_others(snapshot: Snapshot, wanted: Forms) -> set[str]:
    """Parts that views read of which nothing is said."""
    found: set[str] = set()
    queue = [id for v in snapshot.views() if v.name not in wanted.views for id in v.depends]
    while queue:
        relation = snapshot.get(queue.pop())
        if isinstance(relation, View) and relation.part and relation.id not in found:
            found.add(relation.id)
            queue += relation.depends
    return found


def replaced(world: World, view: View) -> list[Update]:
    """Takes away what has the old query of a view in it, when that is defined anew: the forms of
    all that read it, and the parts that nobody needs then. Rows stay; their next refresh computes
    them anew, since what they are read from was replaced."""
    above = readers(world.snapshot, view)
    forms = [u for reader in above if reader.form for u in _formed(world, reader, None)]
    return [*forms, *without(world.snapshot, view, *above)]


def without(snapshot: Snapshot, *views: View) -> list[Update]:
    """Takes away the parts that nobody needs once some views are gone, or have no forms."""
    kept = _of_others(snapshot, Forms((), {view.name: None for view in views}))
    return [Drop(part.id) for part in reversed(snapshot.parts()) if part.id not in kept]


def views_of(part: View) -> tuple[str, ...]:
    """The names of the views that a part is for."""
    return tuple(part.options.get(VIEWS, "").split("\n"))


# -- when they run


def every_of(part: View) -> dict[str, float]:
    """By source, after how many of its rows (of a part, of its versions) that is read."""
    found: dict[str, float] = json.loads(part.options.get(EVERY, "{}"))
    return found


def due_paths(world: World, part: View) -> frozenset[str]:
    """The sources of a part of which enough has come since it read them last."""
    every = every_of(part)
    return frozenset(
        id for id in part.depends if _unread(world, part, id) >= every.get(id, 0.0) * 0.99
    )


def _unread(world: World, part: View, id: str) -> float:
    source = world.snapshot.get(id)
    seen = part.as_of.get(id, 0)
    if isinstance(source, View):
        return float(source.version - (seen if isinstance(seen, int) else 0))
    if source.source == "parquet":
        return float("inf")
    return float(sum(s.rows for s in world.snapshot.segments(id) if s.version > seen))
