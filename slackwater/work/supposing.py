"""Views and settings as statements would make them: a snapshot to plan by, and nothing done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from slackwater.catalog.model import ChangeOptions, CreateView, Drop, SetForm, Update, View
from slackwater.catalog.snapshot import Snapshot
from slackwater.errors import UserError
from slackwater.sql import statements as s
from slackwater.sql.options import view_changes, warehouse_changes
from slackwater.work.definitions import view_of
from slackwater.work.house import House
from slackwater.work.parts import replaced, without
from slackwater.work.world import World


def supposing(house: House, snapshot: Snapshot, texts: Iterable[str]) -> Snapshot:
    """A snapshot after some statements, each after those before it."""
    for text in texts:
        for statement in s.statements(text):
            world = World(house, snapshot, defining=True)
            snapshot = _after(world, statement)
    return snapshot


def _after(world: World, statement: s.Statement) -> Snapshot:
    snapshot = world.snapshot
    match statement:
        case s.CreateView():
            view = view_of(world, statement)
            return snapshot if view is None else _defined(world, view)
        case s.AlterView():
            view = world.view(statement.name)
            changes = view_changes(statement.options, statement.taken_back, view.name)
            return snapshot.supposing([replace(view, options=_with(view.options, changes))])
        case s.AlterWarehouse():
            changes = warehouse_changes(statement.settings, statement.taken_back)
            return snapshot.supposing(settings=_with(snapshot.settings, changes))
        case s.Drop(kind="view"):
            return _without(world, statement)
    raise UserError(
        f"What would be planned after '{statement.text}' is not known.",
        code="UNSUPPORTED_STATEMENT",
        hint="Suppose CREATE, ALTER or DROP MATERIALIZED VIEW, or ALTER WAREHOUSE.",
    )


def _defined(world: World, view: View) -> Snapshot:
    """With a view that is new, or defined anew."""
    snapshot = world.snapshot
    if view.id in snapshot:
        gone = [state.id for state in snapshot.states(view.id)]
        updates = replaced(world, world.view(view.name))
        snapshot = after(snapshot, updates).supposing(gone=gone)
    return snapshot.supposing([view])


def _with(said: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """What is said after SET and RESET."""
    changed = {**said, **changes}
    return {name: value for name, value in changed.items() if value is not None}


def _without(world: World, statement: s.Drop) -> Snapshot:
    if statement.if_exists and world.snapshot.find(statement.name) is None:
        return world.snapshot
    view = world.view(statement.name)
    readers = world.snapshot.dependents(view.id)
    if readers:
        raise UserError(
            f"'{view.name}' is still read by {', '.join(v.name for v in readers)}.",
            code="STILL_NEEDED",
            hint="Drop those views first.",
        )
    return after(world.snapshot, [Drop(view.id), *without(world.snapshot, view)])


def after(snapshot: Snapshot, updates: Iterable[Update]) -> Snapshot:
    """A snapshot after some updates of views and parts."""
    changed: list[View] = []
    gone: list[str] = []
    for update in updates:
        match update:
            case CreateView():
                changed.append(update.view)
            case ChangeOptions() | SetForm():
                view = snapshot.get(update.id)
                assert isinstance(view, View)
                changed.append(_changed(view, update))
            case Drop():
                gone += [update.id, *(state.id for state in snapshot.states(update.id))]
    return snapshot.supposing(changed, gone)


def _changed(view: View, update: ChangeOptions | SetForm) -> View:
    if isinstance(update, SetForm):
        return replace(view, form=update.form, depends=update.depends)
    return replace(view, options=_with(view.options, update.changes))
