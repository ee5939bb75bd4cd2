"""Does a view hold what a recompute gives? Both ways, row by row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from slackwater.algebra.relation import Scan
from slackwater.catalog.model import View
from slackwater.engine.compare import Difference, compare
from slackwater.errors import StateError, UserError
from slackwater.work.house import House
from slackwater.work.refreshing import definition
from slackwater.work.world import World


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
    view = World(house, house.catalog.snapshot()).view(name)
    if view.refreshed_at is None:
        raise UserError(
            f"View '{view.name}' has no content to verify.",
            code="VIEW_NOT_REFRESHED",
            hint=f"Run REFRESH MATERIALIZED VIEW {view.name} first.",
        )
    commit = _commit_of(house, view)
    with house.catalog.pin(commit) as pin:
        world = World(house, house.catalog.snapshot(pin.commit))
        view = world.view(name)
        relation, _ = definition(world, view)
        expected, _ = house.runner.query(relation, world.sources(relation))
        stored = Scan(view.id, view.name, view.schema)
        actual, _ = house.runner.query(stored, world.sources(stored))
        world.check_files()
    return Verification(view.name, view.version, actual.num_rows, compare(actual, expected))


def _commit_of(house: House, view: View) -> int | None:
    """The commit to look at: the newest if the view is fresh, else the one of its refresh."""
    world = World(house, house.catalog.snapshot(), defining=True)
    seen = world.seen(view.depends, lambda id: world.snapshot.get(id).version)
    if seen == dict(view.as_of):
        return None
    for event in house.catalog.events(relation=view.id, kind="refresh", limit=20):
        if event.body.get("version") == view.version and event.body.get("mode") != "none":
            for run in house.catalog.runs(limit=10_000):
                if run.id == event.body.get("run") and run.commit is not None:
                    return _if_whole(house, view, run.commit)
    raise _stale(view)


def _if_whole(house: House, view: View, commit: int) -> int:
    try:
        house.catalog.pin(commit).release()
    except StateError as error:
        raise _stale(view) from error
    return commit


def _stale(view: View) -> UserError:
    return UserError(
        f"The tables of view '{view.name}' have changed since its refresh, and their old "
        "content is no longer kept.",
        code="VIEW_STALE",
        hint="Refresh the view, then verify it.",
    )
