"""`slackwater refresh` and `slackwater verify`."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slackwater.cli import exits
from slackwater.cli.context import Session, session
from slackwater.cli.output import counted, print_json, print_reasons, print_table, table
from slackwater.cli.steps import showing_steps
from slackwater.errors import UserError

if TYPE_CHECKING:
    from slackwater import Warehouse
    from slackwater.work.reports import RefreshReport
    from slackwater.work.verifying import Verification


def refresh(
    ctx: typer.Context,
    views: Annotated[
        list[str] | None, typer.Argument(help="Views; all when none is named.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Recompute from the tables.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Report as JSON.")] = False,
) -> None:
    """Bring views, and what they need, to one consistent version."""
    own = session(ctx)
    with own.open() as db:
        names = views or view_names(db)
        with showing_steps(own, db, quiet=json):
            reports = db.refresh(*names, full=full) if names else []
    if json:
        print_json([as_dict(r) for r in reports])
    else:
        _print_reports(own, reports)


def verify(
    ctx: typer.Context,
    views: Annotated[
        list[str] | None, typer.Argument(help="Views; all when none is named.")
    ] = None,
    rows: Annotated[int, typer.Option(help="How many differing rows to show.")] = 10,
    json: Annotated[bool, typer.Option("--json", help="Report as JSON.")] = False,
) -> None:
    """Compare views with a recompute, row by row. Exit code 4 when one differs."""
    own = session(ctx)
    with own.open() as db:
        names = views or view_names(db)
        with showing_steps(own, db, quiet=json):
            found = [db.verify(name) for name in names]
    if json:
        print_json([_verification(v, rows) for v in found])
    else:
        for verification in found:
            _print_verification(own, verification, rows)
    if not all(v.equal for v in found):
        raise typer.Exit(exits.DIFFERENT)


def view_names(db: Warehouse) -> list[str]:
    """All views of the warehouse; an error when there is none."""
    names = [str(entry["name"]) for entry in db.status()["views"]]
    if not names:
        raise UserError(
            "There is no view in this warehouse.",
            code="NO_VIEWS",
            hint="Create one: slackwater sql 'CREATE MATERIALIZED VIEW … AS SELECT …'",
        )
    return names


def as_dict(report: RefreshReport) -> dict[str, Any]:
    """A report as plain data, its steps included."""
    computed: dict[str, Any] = {"engine": report.engine, "cpu_seconds": report.cpu_seconds}
    plain = dataclasses.replace(report, choice=None)
    computed["why"] = [dataclasses.asdict(why) for why in report.whys]
    choice = None if report.choice is None else report.choice.to_json(report.engine)
    return dataclasses.asdict(plain) | computed | {"choice": choice}


def _print_reports(own: Session, reports: list[RefreshReport]) -> None:
    names = ("view", "version", "mode", "engine", "rows", "seconds", "cpu", "reasons")
    lines = [
        (
            r.view,
            r.version,
            r.mode,
            r.engine,
            f"{r.rows:,}",
            f"{r.seconds:.2f}",
            f"{r.cpu_seconds:.2f}",
            ", ".join(r.reasons),
        )
        for r in reports
    ]
    print_table(own.out, table(names, lines))
    print_reasons(own, ((r.view, why) for r in reports for why in r.whys))


def _print_verification(own: Session, found: Verification, rows: int) -> None:
    if found.equal:
        own.out.print(f"[green]equal[/]     {found.view}: {counted(found.rows, 'row')}")
        return
    missing, unexpected = len(found.missing), len(found.unexpected)
    own.out.print(f"[red]different[/] {found.view}: {missing} missing, {unexpected} unexpected")
    for sign, lines in (("-", found.missing), ("+", found.unexpected)):
        for line in lines[:rows]:
            own.out.print(f"  {sign} {line}", markup=False)
        if len(lines) > rows:
            own.out.print(f"  {sign} … {len(lines) - rows:,} more", markup=False)


def _verification(found: Verification, rows: int) -> dict[str, Any]:
    return {
        "view": found.view,
        "equal": found.equal,
        "rows": found.rows,
        "missing": found.missing[:rows],
        "unexpected": found.unexpected[:rows],
        "missing_count": len(found.missing),
        "unexpected_count": len(found.unexpected),
    }
