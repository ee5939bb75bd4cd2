"""`slackwater doctor`: is everything as it must be, and if not, what to do."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.text import Text

from slackwater.cli import checks, exits, store_checks
from slackwater.cli.checks import Finding, Verdict
from slackwater.cli.context import Session, session
from slackwater.cli.output import print_json, print_table, table

_STYLES = {Verdict.ok: "green", Verdict.warn: "yellow", Verdict.fail: "bold red"}


def doctor(
    ctx: typer.Context,
    start_spark: Annotated[
        bool, typer.Option("--spark", help="Start Spark, too, and run a query on it.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Report as JSON.")] = False,
) -> None:
    """Check the machine and the warehouse. Exit code 3 when a check fails."""
    own = session(ctx)
    findings = list(_findings(own, start_spark))
    if json:
        print_json([dataclasses.asdict(f) for f in findings])
    else:
        print_table(own.out, table(("check", "", "found", "what to do"), map(_line, findings)))
    if any(f.verdict is Verdict.fail for f in findings):
        raise typer.Exit(exits.STATE_ERROR)


def _findings(own: Session, start_spark: bool) -> Iterator[Finding]:
    yield from checks.machine(own)
    yield from store_checks.warehouse(own)
    if start_spark:
        yield checks.spark(own)


def _line(finding: Finding) -> tuple[str, Text, str, str]:
    verdict = Text(finding.verdict.value, _STYLES[finding.verdict])
    return finding.check, verdict, finding.found, finding.advice
