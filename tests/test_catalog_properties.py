"""Random commits: every snapshot stays what it was, whatever comes later.

The model is a plain dictionary per commit. After all commits (and a collection that a pin holds
back) each snapshot is read again and compared with it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.algebra.coercion import literal
from slackwater.catalog.model import (
    AddColumns,
    AddSegments,
    AlterRelation,
    CreateTable,
    CreateView,
    Drop,
    ReplaceSegments,
    SetAsOf,
    Table,
    Update,
    View,
)
from slackwater.catalog.store import Catalog
from slackwater.errors import StateError
from slackwater.types import INT, Field
from tests.catalogs import BACKENDS, fresh_url, segment, table, view

ACTIONS = ("create", "view", "add", "replace", "keep", "alter", "column", "as_of", "drop")
Action = tuple[str, int, int]
actions = st.tuples(st.sampled_from(ACTIONS), st.integers(0, 5), st.integers(0, 3))
histories = st.lists(st.lists(actions, min_size=1, max_size=4), min_size=1, max_size=12)


@dataclass
class World:
    """What the catalog should say, by relation id."""

    relations: dict[str, Table | View] = field(default_factory=dict)
    segments: dict[str, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    made: int = 0

    def copy(self) -> World:
        return World(dict(self.relations), dict(self.segments), self.made)

    def fresh(self) -> str:
        self.made += 1
        return f"s{self.made}"


def act(world: World, action: Action, bumped: set[str]) -> list[Update]:
    """The updates of one action, after doing it in the model."""
    what, which, count = action
    if what in ("create", "view") or not world.relations:
        return [_create(world, what)]
    old = sorted(world.relations.values(), key=lambda r: r.id)[which % len(world.relations)]
    if what == "drop":
        del world.relations[old.id], world.segments[old.id]
        return [Drop(old.id)]
    if what == "alter":
        options = {"n": world.fresh()}
        world.relations[old.id] = replace(old, options=options)
        return [AlterRelation(old.id, options)]
    if what == "column" and isinstance(old, Table):
        return [_add_column(world, old)]
    if what in ("as_of", "column"):
        if isinstance(old, View):
            world.relations[old.id] = replace(old, as_of={"t": count}, refreshed_at="then")
        return [SetAsOf(old.id, {"t": count}, "then")]
    return [_change_rows(world, old, what, count, bumped)]


def _create(world: World, what: str) -> Update:
    name = f"relation {world.fresh()}"
    new = view(name) if what == "view" else table(name)
    world.relations[new.id], world.segments[new.id] = new, ()
    return CreateView(new) if isinstance(new, View) else CreateTable(new)


def _add_column(world: World, old: Table) -> Update:
    name = world.fresh()
    fills, defaults = {name: literal(world.made)}, {name: str(world.made)}
    new = Field(name, INT)
    world.relations[old.id] = replace(
        old,
        schema=(*old.schema, new),
        fills={**old.fills, **fills},
        defaults={**old.defaults, **defaults},
    )
    return AddColumns(old.id, (new,), fills, defaults)


def _change_rows(
    world: World, old: Table | View, what: str, count: int, bumped: set[str]
) -> Update:
    version = old.version + (old.id not in bumped)
    bumped.add(old.id)
    log_from = old.log_from if what == "add" else version
    changed = replace(old, version=version, log_from=log_from)
    if isinstance(changed, Table):
        changed = replace(changed, arrived_rows=changed.arrived_rows + count)
    world.relations[old.id] = changed
    new = tuple(world.fresh() for _ in range(count))
    before = world.segments[old.id]
    kept = {"add": before, "replace": (), "keep": before[1:]}[what]
    world.segments[old.id] = kept + tuple((path, version) for path in new)
    if what == "add":
        return AddSegments(old.id, tuple(segment(path) for path in new))
    return ReplaceSegments(old.id, tuple(segment(p) for p in [k for k, _ in kept] + list(new)))


def assert_same(catalog: Catalog, commit: int, world: World) -> None:
    snapshot = catalog.snapshot(commit)
    found = {r.id: r for r in (*snapshot.tables(), *snapshot.views())}
    assert found == world.relations
    for id, expected in world.segments.items():
        assert tuple((s.path, s.version) for s in snapshot.segments(id)) == expected


@contextmanager
def opened(backend: str) -> Iterator[Catalog]:
    with (
        tempfile.TemporaryDirectory() as folder,
        Catalog.open(fresh_url(backend, Path(folder))) as catalog,
    ):
        yield catalog


@pytest.mark.parametrize("backend", BACKENDS)
@given(history=histories, pinned=st.integers(0, 11))
@settings(max_examples=settings.default.max_examples // 2)
def test_each_snapshot_stays_as_it_was(
    backend: str, history: list[list[Action]], pinned: int
) -> None:
    with opened(backend) as catalog:
        worlds = [World()]
        held = min(pinned, len(history))
        for commit, batch in enumerate(history, start=1):
            if commit - 1 == held:
                catalog.pin(held)
            world, bumped = worlds[-1].copy(), set[str]()
            updates = [update for a in batch for update in act(world, a, bumped)]
            assert catalog.commit(updates=updates) == commit
            worlds.append(world)
        if held == len(history):
            catalog.pin(held)
        for commit, world in enumerate(worlds):
            assert_same(catalog, commit, world)
        _collect(catalog, held)
        for commit in range(held, len(worlds)):
            assert_same(catalog, commit, worlds[commit])
        for commit in range(held):
            with pytest.raises(StateError, match="was collected"):
                catalog.snapshot(commit)


def _collect(catalog: Catalog, expected_horizon: int) -> None:
    horizon = catalog.collection.advance_horizon(0)
    assert horizon == expected_horizon
    while dead := catalog.collection.dead_segments(horizon, most=3):
        catalog.collection.forget_segments(dead)
    catalog.collection.forget_history(horizon)
