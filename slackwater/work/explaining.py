"""EXPLAIN: how a view is refreshed or a query runs, and why so."""

from __future__ import annotations

import json
from typing import Any, Protocol

from slackwater.algebra import explain as printer
from slackwater.algebra.relation import Relation
from slackwater.catalog.model import View
from slackwater.errors import UserError
from slackwater.planner.choice import INCREMENTAL, PLAIN
from slackwater.sql import bind
from slackwater.work.alternatives import alternatives
from slackwater.work.coming_runs import coming_runs
from slackwater.work.explained import Explained, ExplainedView, Input, LastRefresh, Law
from slackwater.work.house import House
from slackwater.work.meaning import definition
from slackwater.work.obstacles import is_always_full, laws
from slackwater.work.reasons import Why, why, whys
from slackwater.work.refreshing import ways
from slackwater.work.room import budget_of, stored_room
from slackwater.work.telling import is_fresh
from slackwater.work.world import World

_QUERY_WORDS = ("select", "with", "values", "(", "from")
OPTION = "FULL_BY_OPTION"
LATELY = 20
"""So many refreshes are looked at for one that did anything."""


class _Told(Protocol):
    """A value that is printed for people and for machines."""

    def lines(self) -> list[str]: ...

    def to_json(self) -> dict[str, Any]: ...


def explain(house: House, what: str, format: str = "text", others: bool = False) -> str:
    """How a view is refreshed, or how a query runs; with `others`, every way to refresh a view."""
    if format not in ("text", "json"):
        raise UserError(
            f"format = '{format}' is not known.", code="BAD_OPTION", hint="Use 'text' or 'json'."
        )
    told = _told(house, what, others)
    return json.dumps(told.to_json(), indent=2) if format == "json" else "\n".join(told.lines())


def _told(house: House, what: str, others: bool) -> _Told:
    text = what.strip().rstrip(";")
    world = World(house, house.catalog.snapshot(), defining=True)
    named = world.snapshot.find(what) or world.snapshot.find(_unquoted(text))
    if named is None and text.lower().startswith(_QUERY_WORDS):
        if others:
            raise UserError(
                "A query has no alternatives: it runs where its size says.",
                code="NOT_A_VIEW",
                hint="Name a view: EXPLAIN ALTERNATIVES v.",
            )
        context = world.context()
        relation = bind.bind(text, context)
        return _explained(world, relation, whys(context.reasons, context.reasons))
    view = world.view(named.name if named else _unquoted(text))
    return alternatives(house, view) if others else _of_view(world, view)


def _of_view(world: World, view: View) -> Explained:
    relation, met = definition(world, view)
    reasons, found = whys(met, met), None
    fresh = is_fresh(world, view)
    if not fresh:
        found = ways(world.house, view)
        reasons += [w for w in found.whys if w.code not in met]
    always = is_always_full(world, view, met)
    if always and "NOT_DETERMINISTIC" not in met and all(w.code != OPTION for w in reasons):
        reasons.append(why(OPTION, printer.gist(relation)))
    own = None if always else laws(relation, view)
    room, budget = None, budget_of(world, view)
    if found is not None and found.upkeep.keeping is not None:
        room = found.upkeep.keeping.room(found.choice.chosen.method)
    elif budget is not None and own is not None:
        room = stored_room(world, view, budget)
    notes = {} if own is None else own.notes
    usual = PLAIN if always else INCREMENTAL
    told = ExplainedView(
        view.name,
        view.version,
        {k: v for k, v in view.options.items() if k != "columns"},
        fresh,
        usual if found is None else found.choice.chosen.method,
        _last(world, view),
        coming_runs(world.house, view),
        () if own is None else tuple(state.name for state in own.plan.kept),
        room,
        tuple(Law(printer.describe(n), x.law, x.reason or None) for n, x in notes.items()),
    )
    return _explained(world, relation, reasons + ([] if own is None else own.reasons), told)


def _explained(
    world: World, relation: Relation, reasons: list[Why], view: ExplainedView | None = None
) -> Explained:
    runner = world.house.runner
    placement = runner.place([relation], world.sources(relation), load=view is not None)
    statement = runner.statement(relation, {}, placement.engine)
    inputs = tuple(_inputs(world, relation))
    return Explained(relation, tuple(reasons), placement, inputs, statement, view)


def _last(world: World, view: View) -> LastRefresh | None:
    """What the newest refresh that did anything tells of itself."""
    events = world.house.catalog.events(relation=view.id, kind="refresh", limit=LATELY)
    event = next((e for e in events if e.body["mode"] != "none"), None)
    if event is None or "measured" not in event.body:
        return None
    body = event.body
    chosen, measured = body["chosen"], body["measured"]
    return LastRefresh(
        event.at,
        body["version"],
        body["method"],
        measured["engine"],
        measured["cpu_seconds"],
        measured["seconds"],
        chosen["cpu_seconds"],
        chosen["seconds"],
        tuple(body["reasons"]),
    )


def _unquoted(text: str) -> str:
    """A name as it is, of one that may stand in backticks."""
    if len(text) > 1 and text[0] == text[-1] == "`":
        return text[1:-1].replace("``", "`")
    return text


def _inputs(world: World, relation: Relation) -> list[Input]:
    found = []
    for scan in dict.fromkeys(relation.scans()):
        table = world.external(scan.source)
        stored = world.segments(scan.source) if table is None else world.files(table)
        size = sum(one.bytes for one in stored)
        found.append(Input(scan.name, world.rows(scan.source), size))
    return found
