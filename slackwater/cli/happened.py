"""Events as text: what was done, what was expected beside what was measured, and what else could
have been done."""

from __future__ import annotations

from typing import Any

from slackwater.cli.context import Session
from slackwater.cli.output import print_reasons, print_table, table
from slackwater.work.reasons import Why


def print_events(own: Session, events: list[dict[str, Any]]) -> None:
    """An event a line; `--json` has all there is to know."""
    names = ("at", "what", "of", "version", "how", "engine", "rows", "seconds", "planning s")
    costs = ("expected CPU s", "CPU s", "expected s", "run s", "why")
    print_table(own.out, table((*names, *costs), [_event(e) for e in events]))


def print_candidates(own: Session, event: dict[str, Any]) -> None:
    """All ways there were to refresh a view, a star at the one that was taken; what was measured
    stands beside what was expected of it."""
    if not event.get("candidates"):
        return
    chosen, measured = event.get("chosen") or {}, event.get("measured") or {}
    taken = chosen.get("method"), chosen.get("engine")
    rows = []
    for way in event["candidates"]:
        is_taken = (way["method"], way["engine"]) == taken
        spent = measured if is_taken and way["method"] == event["method"] else {}
        rows.append(
            (
                "*" if is_taken else "",
                way["method"],
                way["engine"],
                _seconds(way["cpu_seconds"]),
                _seconds(spent.get("cpu_seconds")),
                _seconds(way["seconds"]),
                _seconds(spent.get("seconds")),
                ", ".join(way["reasons"]),
            )
        )
    names = ("", "method", "engine", "expected CPU s", "CPU s", "expected s", "run s", "why not")
    print_table(own.out, table(names, rows, title="Ways"))
    told = [*event["why"], *event["why_not"]]
    print_reasons(own, ((event["view"], Why(**why)) for why in told))


def _event(event: dict[str, Any]) -> tuple[Any, ...]:
    steps = event.get("steps") or []
    chosen, measured = event.get("chosen") or {}, event.get("measured") or {}
    return (
        str(event["at"])[:19].replace("T", " "),
        event["kind"],
        event.get("view") or event.get("table") or event.get("name") or "",
        event.get("version", ""),
        _how(event),
        ", ".join(sorted({str(s["engine"]) for s in steps})),
        _rows(event.get("rows")),
        _seconds(event.get("seconds", event.get("latency_seconds")), 2),
        _seconds(event.get("planning_seconds")),
        _seconds(chosen.get("cpu_seconds")),
        _seconds(measured.get("cpu_seconds")),
        _seconds(chosen.get("seconds")),
        _seconds(measured.get("seconds")),
        ", ".join(event.get("reasons") or ()) or event.get("error", "").partition("\n")[0],
    )


def _seconds(value: float | None, digits: int = 3) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _how(event: dict[str, Any]) -> str:
    """The method of a refresh, the kinds of a change, whether a goal was kept."""
    if "kept" in event:
        return "kept" if event["kept"] else "missed"
    kinds = event["rows"] if isinstance(event.get("rows"), dict) else ()
    return event.get("method") or event.get("mode") or ", ".join(kinds)


def _rows(rows: Any) -> Any:
    """Of a change: how many rows of each kind, together."""
    return sum(rows.values()) if isinstance(rows, dict) else "" if rows is None else rows
