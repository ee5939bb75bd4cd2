"""Does a view hold what a recompute gives? Both ways, row by row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from slackwater.algebra.relation import Scan
from slackwater.catalog.model import Table, View
from slackwater.catalog.pins import Pin
from slackwater.engine.compare import Difference, compare
from slackwater.errors import StateError, UserError
from slackwater.work.house import House
from slackwater.work.meaning import as_written
from slackwater.work.world import Pending, World


@dataclass(frozen=True)
class Verification:
    """The outcome for one view."""

    view: str
    version: int
    rows: int
    difference: Difference = field(repr=False)

    @property
    def equal(self) -> bool:
        """Is the view exactly what a recompute gives?"""
        return self.difference.equal

    @property
    def missing(self) -> list[tuple[Any, ...]]:
        """Rows that the recompute has and the view has not."""
        return list(self.difference.missing)

    @property
    def unexpected(self) -> list[tuple[Any, ...]]:
        """Rows that the view has and the recompute has not."""
        return list(self.difference.unexpected)

    def __bool__(self) -> bool:
        return self.equal

    def __str__(self) -> str:
        if self.equal:
            return f"view '{self.view}' equals its recompute ({self.rows} rows)"
        return f"view '{self.view}' differs from its recompute\n{self.difference}"


def verify(house: House, name: str) -> Verification:
    """Compare a view's content with its query over the tables as they were at its refresh."""
    with house.catalog.reading() as snapshot:
        world = World(house, snapshot)
        view = world.view(name)
        if view.refreshed_at is None:
            raise UserError(
                f"View '{view.name}' has no content to verify.",
                code="VIEW_NOT_REFRESHED",
                hint=f"Run REFRESH MATERIALIZED VIEW {view.name} first.",
            )
        if _is_fresh(world, view):
            return _verify(world, view)
        read, written = _commits_of(house, view)
        with _pinned(house, view, read):
            return _verify(_as_refreshed(house, view, read, written), view)


def _verify(world: World, view: View) -> Verification:
    runner = world.house.runner
    relation, _ = as_written(world, view)
    stored = Scan(view.id, view.name, view.schema)
    with world.steady_files():
        expected = runner.query(relation, world.sources(relation))
        actual = runner.query(stored, world.sources(stored))
    return Verification(view.name, view.version, actual.num_rows, compare(actual, expected))


def _is_fresh(world: World, view: View) -> bool:
    """Whether the sources are as the view's refresh saw them. Files of others that have changed
    cannot be read as they were."""
    seen = world.seen(view.depends, lambda id: world.snapshot.get(id).version)
    before = dict(view.as_of)
    if any(_is_external(world.snapshot.get(id)) and seen[id] != before.get(id) for id in seen):
        raise _stale(view)
    return seen == before


def _commits_of(house: House, view: View) -> tuple[int, int]:
    """The commit at which the view's refresh read, and the one that it made."""
    for event in house.catalog.events(relation=view.id, kind="refresh", limit=20):
        if event.body.get("version") == view.version and event.body.get("mode") != "none":
            for run in house.catalog.runs(limit=10_000):
                if run.id == event.body.get("run") and run.commit is not None:
                    return int(event.body.get("read_commit", run.commit)), run.commit
    raise _stale(view)


def _as_refreshed(house: House, view: View, read: int, written: int) -> World:
    """Tables as the refresh read them (they may have changed before it committed), and views as
    it wrote them."""
    after = house.catalog.snapshot(written)
    pending = Pending()
    for id in (view.id, *view.depends):
        if isinstance(after.get(id), View):
            pending.replace(id, after.segments(id))
    return World(house, house.catalog.snapshot(read), pending, defining=True)


def _is_external(relation: Table | View) -> bool:
    return isinstance(relation, Table) and relation.source != "managed"


def _pinned(house: House, view: View, commit: int) -> Pin:
    try:
        return house.catalog.pin(commit)
    except StateError as error:
        raise _stale(view) from error


def _stale(view: View) -> UserError:
    return UserError(
        f"The tables of view '{view.name}' have changed since its refresh, and their old "
        "content is no longer kept.",
        code="VIEW_STALE",
        hint="Refresh the view, then verify it.",
    )
