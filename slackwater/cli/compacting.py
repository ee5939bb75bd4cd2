"""`slackwater compact`."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from slackwater.cli.context import session
from slackwater.cli.output import print_json, print_table, size, table


def compact(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(help="A table or view; all when none.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Report as JSON.")] = False,
) -> None:
    """Merge small segments of tables, views and their states into few."""
    own = session(ctx)
    with own.open() as db:
        reports = db.compact(name)
    if json:
        print_json([dataclasses.asdict(r) for r in reports])
        return
    names = ("name", "state", "segments", "into", "rows", "size before", "size", "engine")
    lines = [
        (r.name, r.state, r.segments, r.into, r.rows, size(r.bytes_before), size(r.bytes), r.engine)
        for r in reports
    ]
    print_table(own.out, table(names, lines))
