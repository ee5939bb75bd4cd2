"""A live line per running step: its name, its engine, how long it takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from slackwater import Warehouse
    from slackwater.cli.context import Session


@contextmanager
def showing_steps(own: Session, db: Warehouse, quiet: bool = False) -> Iterator[None]:
    """Show on stderr, while the block runs, each step that the warehouse reports.

    Nothing is drawn when stderr is no terminal or `quiet` is asked for.
    """
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=own.err, transient=True, disable=quiet) as progress:
        running: dict[str, Any] = {}

        def on_step(step: Any) -> None:
            if step.state == "start":
                running[step.name] = progress.add_task(f"{step.engine:<6} {step.name}")
            elif step.name in running:
                progress.remove_task(running.pop(step.name))

        before = db.on_step
        db.on_step = on_step
        try:
            yield
        finally:
            db.on_step = before
