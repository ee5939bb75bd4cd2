"""`slackwater run`: the scheduler in the foreground."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from slackwater.cli.context import Session, session
from slackwater.cli.output import to_json

if TYPE_CHECKING:
    from slackwater import Warehouse
    from slackwater.service.told import Told

SIGNALS = (signal.SIGINT, signal.SIGTERM)
STYLES = {"missed": "red", "failed": "red", "at risk": "yellow", "held": "yellow", "stop": "dim"}


def run(
    ctx: typer.Context,
    until: Annotated[
        str | None, typer.Option(help="When to end, in UTC: '2026-01-05 06:00'.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Do what is due now, then end.")] = False,
    poll: Annotated[
        float, typer.Option(min=0.01, help="Seconds from one look at the sources to the next.")
    ] = 5.0,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Refresh views by their schedules, until told to stop.

    SIGINT and SIGTERM end it after the refresh under way; a second one gives that up. Nothing is
    lost either way: the next run goes on from what the catalog holds.
    """
    own = session(ctx)
    with own.open() as db, _showing_work(own, db, quiet=json):
        scheduler = db.scheduler(poll_seconds=poll, listener=_listener(own, json))
        with _stopping(scheduler.stop):
            try:
                scheduler.once() if once else scheduler.run(until)
            except KeyboardInterrupt:
                own.err.print("The refresh under way was given up; its view is as it was.")


def _listener(own: Session, json: bool) -> Callable[[Told], None]:
    """A line for each thing, at once: whoever reads may wait for it."""

    def tell(told: Told) -> None:
        if json:
            sys.stdout.write(to_json(told.to_json()) + "\n")
            sys.stdout.flush()
        else:
            line = f"{told.at:%Y-%m-%d %H:%M:%S}  {told.kind:<9}  {told.text}"
            own.out.print(Text(line, STYLES.get(told.kind, "")))

    return tell


@contextmanager
def _stopping(stop: Callable[[], None]) -> Iterator[None]:
    """The first signal asks to stop, the next one insists."""
    asked = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        stop()

    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _showing_work(own: Session, db: Warehouse, quiet: bool) -> Iterator[None]:
    """On a terminal, a line that says which steps run; nothing is drawn while none does."""
    running: list[str] = []
    status = own.err.status("")

    def on_step(step: Any) -> None:
        if step.state == "start":
            running.append(step.name)
        elif step.name in running:
            running.remove(step.name)
        if running:
            status.update(", ".join(running))
            status.start()
        else:
            status.stop()

    if quiet or not own.err.is_terminal:
        yield
        return
    before, db.on_step = db.on_step, on_step
    try:
        yield
    finally:
        status.stop()
        db.on_step = before
