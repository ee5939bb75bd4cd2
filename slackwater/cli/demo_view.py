"""How the demo looks: a live line per running step, a table per batch, a summary."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from slackwater.cli.output import print_table, table

if TYPE_CHECKING:
    from slackwater import Warehouse
    from slackwater.cli.context import Session
    from slackwater.demo.play import Refreshed, Tally
    from slackwater.planner.steps import StepReport
    from slackwater.work.reports import RefreshReport


class Stage:
    """A progress display of one pass: the stage, and the step that is running on which engine."""

    def __init__(self, own: Session, db: Warehouse, total: int) -> None:
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[step]}"),
        )
        self._progress = Progress(*columns, console=own.out, transient=True)
        self._task = self._progress.add_task("", total=total, step="")
        self._db = db
        self._steps: list[StepReport] = []

    def next(self, description: str) -> None:
        """The stage that begins now."""
        self._progress.update(self._task, description=description, advance=1)

    def engines(self) -> str:
        """The engines of the steps since the last time this was asked."""
        used = dict.fromkeys(str(step.engine) for step in self._steps)
        self._steps.clear()
        return f"on {' and '.join(used)}" if used else ""

    def _on_step(self, step: StepReport) -> None:
        if step.state == "end":
            self._steps.append(step)
        self._progress.update(self._task, step=f"{step.engine}: {step.name}")

    def __enter__(self) -> Self:
        self._db.on_step = self._on_step
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()
        self._db.on_step = None


def print_batch(own: Session, done: Refreshed, tally: Tally) -> None:
    """What a batch brought, and how each view was refreshed, beside a recompute."""
    own.out.print(_headline(done))
    names = ("view", "rows", "mode", "why", "refresh s", "recompute s", "steps")
    print_table(own.out, table(names, [_line(report, tally) for report in done.reports]))


def print_batch_line(own: Session, done: Refreshed, tally: Tally) -> None:
    """The same in one line, for the second pass."""
    seconds = sum(report.seconds for report in done.reports)
    engines = " and ".join(sorted({str(report.engine) for report in done.reports}))
    own.out.print(f"{_headline(done)}; six views refreshed in {seconds:.2f} s on {engines}")


def _headline(done: Refreshed) -> Text:
    batch = done.batch
    return Text(
        f"Batch {batch.number}: +{batch.inserted} −{batch.deleted} ~{batch.updated} orders, "
        f"{batch.rows:,} weighted rows in {done.apply_seconds:.2f} s"
    )


def _line(report: RefreshReport, tally: Tally) -> tuple[Any, ...]:
    recompute = tally.recompute_seconds.get(report.view)
    return (
        report.view,
        report.rows,
        report.mode,
        ", ".join(report.reasons),
        f"{report.seconds:.2f}",
        None if recompute is None else f"{recompute:.2f}",
        ", ".join(_step(step, report.view) for step in report.steps),
    )


def _step(step: StepReport, view: str) -> str:
    return f"{step.name.removesuffix(f' {view}')} on {step.engine} in {step.seconds:.2f} s"


def print_summary(
    own: Session, tallies: dict[str, Tally], equal: dict[str, bool], folder: Path, seconds: float
) -> None:
    """Per view: how it was kept, what a refresh took under each placement, is it right."""
    own.out.rule("Summary", align="left")
    names = ["view", "refreshes", "mode"]
    for placement in tallies:
        names += [f"{placement}: engine", "refresh s", "recompute s"]
    lines = [_summary_line(view, tallies, same) for view, same in equal.items()]
    print_table(own.out, table([*names, "equals recompute"], lines))
    _say_what_was_done(own, tallies)
    own.out.print(f"Results, as plain Parquet: {folder / 'published'}")
    own.out.print(f"Look around: slackwater -w {folder} status")
    own.out.print(f"All done in {seconds:.0f} s.")


def _summary_line(view: str, tallies: dict[str, Tally], same: bool) -> list[Any]:
    first = next(iter(tallies.values()))
    line: list[Any] = [view, len(first.refreshes[view]), ", ".join(first.modes(view))]
    for tally in tallies.values():
        line += [
            " + ".join(tally.engines(view)),
            f"{tally.mean_seconds(view):.2f}",
            f"{tally.recompute_seconds.get(view, 0.0):.2f}",
        ]
    return [*line, Text("yes", "green") if same else Text("NO", "bold red")]


def _say_what_was_done(own: Session, tallies: dict[str, Tally]) -> None:
    """Say plainly how many refreshes followed the changes, and why others did not."""
    reports = [r for tally in tallies.values() for rs in tally.refreshes.values() for r in rs]
    full = [r for r in reports if r.mode == "full"]
    reasons = list(dict.fromkeys(reason for report in full for reason in report.reasons))
    own.out.print(f"{len(reports) - len(full)} of {len(reports)} refreshes were incremental.")
    if full:
        own.out.print(f"{len(full)} were full recomputes: {', '.join(reasons)}.", markup=False)
