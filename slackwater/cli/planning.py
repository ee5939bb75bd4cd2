"""`slackwater plan`: what is maintained how, and what that takes."""

from __future__ import annotations

from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from slackwater.cli.bench import showing_stages
from slackwater.cli.context import Session, session
from slackwater.cli.output import counted, print_json, print_reasons, print_table, table
from slackwater.cli.planning_curves import page, print_curves

if TYPE_CHECKING:
    from slackwater.work.plan_report import (
        Made,
        Piece,
        PlannedView,
        PlanReport,
        Rebuild,
        Rhythm,
        StateMade,
    )

WIDEST = 60
"""Characters of what a piece is; `--json` has all of them."""


class Paces(StrEnum):
    """What has a pace of its own."""

    subplans = "subplans"
    paths = "paths"
    leaves = "leaves"
    uniform = "uniform"


class Switch(StrEnum):
    """Yes or no."""

    on = "on"
    off = "off"


def plan(
    ctx: typer.Context,
    apply: Annotated[bool, typer.Option("--apply", help="Make what is planned.")] = False,
    supposing: Annotated[
        list[str] | None,
        typer.Option("--with", help="Plan as if this statement had been run; may be repeated."),
    ] = None,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="What shorter results would cost.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(help="Write the curves of --simulate to this page.")
    ] = None,
    paces: Annotated[
        Paces,
        typer.Option(help="What has a pace of its own; uniform: a view, the best of all paces."),
    ] = Paces.subplans,
    sharing: Annotated[Switch, typer.Option(help="May views share pieces?")] = Switch.on,
    max_pace: Annotated[int, typer.Option(min=1, max=100, help="Runs from due to due.")] = 100,
    json: Annotated[bool, typer.Option("--json", help="The plan as JSON.")] = False,
) -> None:
    """Show how views are maintained, at which pace, shared with whom, and what that takes.

    Nothing is changed, unless --apply is given.
    """
    own = session(ctx)
    simulate = simulate or html is not None
    with own.open() as db, showing_stages(own) if simulate else nullcontext() as on_stage:
        told = db.plan(
            apply=apply,
            supposing=supposing or (),
            simulate=simulate,
            paces=paces.value,
            sharing=sharing is Switch.on,
            max_pace=max_pace,
            on_stage=on_stage,
        )
    if html is not None:
        html.write_text(page(told), encoding="utf-8")
    if json:
        print_json(told.to_json())
    else:
        _print(own, told)


def _print(own: Session, told: PlanReport) -> None:
    if not told.rhythms and not told.unpaced:
        own.out.print("There are no views yet.")
        return
    for statement in told.supposing:
        own.out.print(Text(f"Supposing: {statement}", "yellow"))
    for rhythm in told.rhythms:
        _print_rhythm(own, rhythm)
    if told.unpaced:
        rows = [
            (u.view, u.schedule or "-", u.within or "-", u.why, u.note, u.rewrite)
            for u in told.unpaced
        ]
        names = ("view", "schedule", "within", "why", "goal", "instead")
        print_table(own.out, table(names, rows, title="Run when they are due, and never before"))
    print_reasons(own, ((v.view, why) for v in told.views.values() for why in v.reasons))
    _print_rebuild(own, told.rebuild, told.applied)
    for curves in told.simulation or ():
        print_curves(own, curves)


def _print_rhythm(own: Session, rhythm: Rhythm) -> None:
    from slackwater.timing.texts import in_units

    own.out.print(
        Text(
            f"Every {in_units(rhythm.period_seconds).removeprefix('1 ')} "
            f"(next: {rhythm.next_due}): "
            f"{counted(len(rhythm.views), 'view')}, about {rhythm.cpu_seconds:.3f} CPU s "
            f"({rhythm.batch_cpu_seconds:.3f} if everything waits)",
            "bold",
        )
    )
    if rhythm.compared > 1:
        own.out.print(f"The best of {rhythm.compared} ways to share that were compared.")
    if rhythm.assumed:
        own.out.print("Nothing is known yet of what comes; all that is there is taken for it.")
    coming = [(t.table, f"{t.rows:,.0f}", f"{t.expected_rows:,.0f}") for t in rhythm.tables]
    print_table(own.out, table(("table", "rows", "expected"), coming, title="Tables"))
    names = ("view", "schedule", "within", "due s", "CPU s", "once s", "once CPU s", "goal")
    print_table(own.out, table(names, map(_viewed, rhythm.views), title="Views"))
    columns = ("piece", "what", "reads", "pace", "for", "method", "kept", "due s", "CPU s")
    print_table(own.out, table(columns, map(_pieced, rhythm.pieces), title="Pieces"))


def _viewed(view: PlannedView) -> tuple[Any, ...]:
    now = view.now
    return (
        view.view,
        view.schedule,
        view.within or "-",
        _beside(view.final_seconds, now.final_seconds if now else None),
        _beside(view.cpu_seconds, now.cpu_seconds if now else None),
        f"{view.batch_seconds:.3f}",
        f"{view.batch_cpu_seconds:.3f}",
        view.note or ("met" if view.within else "-"),
    )


def _beside(seconds: float, now: float | None) -> str:
    """A figure, and what it is without what is supposed, where that is another."""
    shown = f"{seconds:.3f}"
    return shown if now is None or f"{now:.3f}" == shown else f"{shown} (now {now:.3f})"


def _pieced(piece: Piece) -> tuple[Any, ...]:
    even = set(piece.inputs.values()) == {piece.pace}
    reads = [n if even else f"{n} ×{pace}" for n, pace in piece.inputs.items()]
    host = f"with {piece.run_with}" if piece.run_with else "with the view"
    figures = piece.final_seconds, piece.cpu_seconds
    return (
        piece.piece,
        _shortened(piece.what),
        ", ".join(reads),
        piece.pace,
        ", ".join(piece.views),
        piece.method or "-",
        "by itself" if piece.is_part else host,
        *("" if piece.run_with else f"{seconds:.3f}" for seconds in figures),
    )


def _shortened(text: str) -> str:
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def _print_rebuild(own: Session, rebuild: Rebuild, applied: bool) -> None:
    if rebuild.is_nothing:
        own.out.print("Everything is made as it is planned; nothing is computed anew.")
        return
    rows = [
        *(_made("new part", m) for m in rebuild.new_parts),
        *((*_made("part at another pace", m)[:4], "", "", "") for m in rebuild.changed_parts),
        *((*_made("dropped part", m)[:5], "", "") for m in rebuild.dropped_parts),
        *(_made("view computed anew", m) for m in rebuild.views),
        *(_made("view without content", m) for m in rebuild.first),
        *(_kept("dropped state", s) for s in rebuild.dropped_states),
        *(_kept("new state", s) for s in rebuild.built_states),
    ]
    names = ("what", "name", "is", "for", "rows", "CPU s", "bytes")
    title = "Applied; computed by the next refresh" if applied else "Applying this would change"
    print_table(own.out, table(names, rows, title=title))


def _made(what: str, made: Made) -> tuple[str, ...]:
    views, rows = ", ".join(made.views), f"{made.rows:,.0f}"
    return what, made.name, _shortened(made.what), views, rows, f"{made.cpu_seconds:.3f}", ""


def _kept(what: str, made: StateMade) -> tuple[str, ...]:
    return what, made.state, "", made.view, "", "", f"{made.bytes:,}"
