"""`slackwater init`."""

from __future__ import annotations

import typer

from slackwater.cli.context import session


def init(ctx: typer.Context) -> None:
    """Create an empty warehouse, or check that the one there opens."""
    own = session(ctx)
    with own.open(create=True) as db:
        tables, views = len(db.status()["tables"]), len(db.status()["views"])
    if tables or views:
        own.out.print(f"Warehouse '{own.warehouse}' is there: {tables} tables, {views} views.")
    else:
        own.out.print(f"Warehouse '{own.warehouse}' is ready. Next: slackwater sql")
