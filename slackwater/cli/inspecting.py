"""`slackwater explain`, `status` and `history`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from slackwater.cli.context import session
from slackwater.cli.happened import print_candidates, print_events
from slackwater.cli.output import counted, print_json, print_reasons, print_table, size, table
from slackwater.work.reasons import Why

DAYS = 2
"""Whose costs are shown as text; `--json` has a week."""


def explain(
    ctx: typer.Context,
    what: Annotated[str, typer.Argument(help="A view, or a SELECT in quotes.")],
    alternatives: Annotated[
        bool, typer.Option(help="Every way to refresh a view now, and its expected cost.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="The plan as JSON.")] = False,
) -> None:
    """Show how a view or query is computed: steps, places, reasons."""
    own = session(ctx)
    with own.open() as db:
        shown = db.explain(what, "json" if json else "text", alternatives=alternatives)
    if json and not isinstance(shown, str):
        print_json(shown)
    else:
        own.out.print(str(shown), markup=False)


def status(
    ctx: typer.Context,
    json: Annotated[bool, typer.Option("--json", help="Report as JSON.")] = False,
) -> None:
    """Show tables, views, their goals and costs, and what is kept for them."""
    own = session(ctx)
    with own.open() as db:
        found = db.status()
    if json:
        print_json(found)
        return
    names = ("name", "kind", "version", "rows", "size", "segments")
    tables = [(*_stored(t), t["columns"]) for t in found["tables"]]
    print_table(own.out, table((*names, "columns"), tables, title="Tables"))
    print_table(
        own.out, table((*names, "as of", "fresh"), map(_viewed, found["views"]), title="Views")
    )
    goals = ("name", "schedule", "next due", "within", "kept", "missed", "CPU s (cost)", "states")
    print_table(own.out, table(goals, map(_scheduled, found["views"]), title="Goals"))
    states = [(v["name"], s) for v in found["views"] for s in v["states"]]
    if states:
        names = ("view", "state", "version", "rows", "size", "segments")
        lines = [_stored(s | {"name": view}) for view, s in states]
        print_table(own.out, table(names, lines, title="States"))
    print_reasons(own, ((v["name"], Why(**why)) for v in found["views"] for why in _reasons(v)))


def history(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(help="A table or view; all when none.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many, newest first.")] = 20,
    candidates: Annotated[
        bool, typer.Option("--candidates", help="All ways there were, and why it was so.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Report as JSON.")] = False,
) -> None:
    """Show what was done to tables and views, newest first."""
    own = session(ctx)
    with own.open() as db:
        events = db.history(name, limit=limit)
    if json:
        print_json(events)
    elif candidates:
        for event in events:
            print_events(own, [event])
            print_candidates(own, event)
    else:
        print_events(own, events)


def _reasons(view: dict[str, Any]) -> list[dict[str, str]]:
    """Why it is computed anew, and why not early, where that could be."""
    is_due = view["schedule"] != "manual" and view["unpaced"] is not None
    return [*view["reasons"], *([view["unpaced"]] if is_due else [])]


def _stored(entry: dict[str, Any]) -> tuple[Any, ...]:
    return (
        entry["name"],
        entry["kind"],
        entry["version"],
        _count(entry["rows"]),
        size(entry["bytes"]),
        _count(entry["segments"]),
    )


def _viewed(entry: dict[str, Any]) -> tuple[Any, ...]:
    seen = ", ".join(f"{name} {at}" for name, at in (entry.get("as_of") or {}).items())
    return (*_stored(entry), seen, "yes" if entry.get("fresh") else "no")


def _scheduled(entry: dict[str, Any]) -> tuple[Any, ...]:
    """When a view is due, how its goals were kept, its CPU seconds by day and what these cost, and
    the room its states take."""
    due = str(entry["next_due"] or "")[:19].replace("T", " ")
    if entry["rows_until_due"] is not None:
        due = f"in {counted(entry['rows_until_due'], 'row')}"
    days = sorted(entry["cpu_seconds"].items(), reverse=True)[:DAYS]
    budget = entry["state_budget"]
    return (
        entry["name"],
        entry["schedule"],
        due or "-",
        entry["within"] or "-",
        entry["goals_kept"],
        entry["goals_missed"],
        ", ".join(f"{day}: {cpu:.2f} ({entry['cost'][day]:.2f})" for day, cpu in days) or "-",
        size(entry["state_bytes"]) + (f" of {size(budget)}" if budget is not None else ""),
    )


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
