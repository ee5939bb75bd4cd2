"""Refreshing views: a view and every view it reads, to one version, in one commit.

bind → plan → compile → run → commit
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from slackwater.catalog.model import (
    Run,
    View,
    WriteEvent,
)
from slackwater.work.house import House
from slackwater.work.interval import Interval
from slackwater.work.one_run import OneRun
from slackwater.work.publishing import publish
from slackwater.work.reports import RefreshReport, Telling, Ways
from slackwater.work.world import Pending, World


def refresh(
    house: House, names: Sequence[str], full: bool, telling: Telling | None = None
) -> list[RefreshReport]:
    """Bring views, and the views they read, to the newest version of their tables."""
    reports = _run(house, lambda world: order(world, names), full, set(names), telling)
    house.collect_garbage()
    return reports


def advance(house: House, held: Mapping[str, Collection[str]]) -> list[RefreshReport]:
    """Bring parts along, before any result is due: by id, each with those of its sources that stay
    as it last read them. A part that was never computed reads everything."""

    def chosen(world: World) -> list[View]:
        own = [part for part in _in_order(world.snapshot.parts()) if part.id in held]
        world.held = {part.id: _to_hold(world, part, held[part.id]) for part in own}
        return own

    return _run(house, chosen)


def _to_hold(world: World, part: View, sources: Collection[str]) -> frozenset[str]:
    """Sources that can be read as they were."""
    return frozenset(id for id in sources if id in part.as_of and _was_read(world, part, id))


def _was_read(world: World, part: View, id: str) -> bool:
    seen = part.as_of[id]
    return not isinstance(seen, int) or world.snapshot.tells_changes(id, seen)  # or files


def _in_order(views: Sequence[View]) -> list[View]:
    """Each after those that it reads."""
    left, done = {view.id: view for view in views}, dict[str, View]()
    while left:
        ready = [v for v in left.values() if not any(id in left for id in v.depends)]
        done |= {v.id: v for v in ready}
        left = {id: v for id, v in left.items() if id not in done}
    return list(done.values())


def _run(
    house: House,
    choose: Callable[[World], list[View]],
    full: bool = False,
    named: Collection[str] = (),
    telling: Telling | None = None,
) -> list[RefreshReport]:
    """One run over some views, chosen again when nobody else can change them."""
    wanted = choose(World(house, house.catalog.snapshot(), defining=True))
    if not wanted:
        return []
    start = house.start("refresh", *(v.id for v in wanted))
    with house.catalog.working(start) as snapshot:
        world = World(house, snapshot, Pending(), defining=True)
        # whatever was due until the start is served by what is computed from its snapshot
        work = OneRun(world, start.run, full, set(named), start.at)
        with work.world.steady_files():
            work.refresh(choose(work.world))
        told = [] if telling is None else [WriteEvent(event) for event in telling(work.reports)]
        commit = house.catalog.commit(
            [*start.requirements, *work.requires],
            [*work.updates(), *told],
            [start.lease] if work.looks else [start.lease, start.pin],
        )
        work.learn()
    publish(house, work.refreshed(), commit)
    return work.reports


def ways(house: House, view: View, interval: Callable[[World], Interval] | None = None) -> Ways:
    """How a view would be refreshed now, or over another interval, and how else. Nothing is
    done."""
    world = World(house, house.catalog.snapshot(), Pending(), defining=True)
    work = OneRun(world, Run("", "", "", "explain"), full=False, named=set())
    return work.ways(view, interval(world) if interval else None)


def order(world: World, names: Sequence[str]) -> list[View]:
    """The views and all they read, each after what it reads."""
    done: dict[str, View] = {}

    def visit(view: View) -> None:
        if view.id in done:
            return
        for id in view.depends:
            source = world.snapshot.get(id)
            if isinstance(source, View):
                visit(source)
        done[view.id] = view

    for name in names:
        visit(world.view(name))
    return list(done.values())
