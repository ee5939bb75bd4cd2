"""What `slackwater doctor` looks at inside a warehouse: catalog, writers, files, garbage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from slackwater.cli.checks import Finding, Verdict, listed
from slackwater.cli.output import counted
from slackwater.errors import SlackwaterError, UserError

if TYPE_CHECKING:
    from slackwater.catalog.model import Table, View
    from slackwater.catalog.store import Catalog
    from slackwater.cli.context import Session


def warehouse(own: Session) -> Iterator[Finding]:
    """Every check of the warehouse; only the first when it cannot be opened."""
    try:
        with own.open() as db:
            yield from _inside(db.catalog, Path(own.warehouse))
    except UserError as error:
        yield Finding("warehouse", Verdict.warn, error.message, error.hint)
    except SlackwaterError as error:
        yield Finding("catalog", Verdict.fail, error.message, error.hint)


def _inside(catalog: Catalog, folder: Path) -> Iterator[Finding]:
    with catalog.reading() as snapshot:
        relations: list[Table | View] = [*snapshot.tables(), *snapshot.views()]
        found = f"{counted(len(snapshot.tables()), 'table')}, "
        found += f"{counted(len(snapshot.views()), 'view')} at commit {snapshot.commit}"
        yield Finding("catalog", Verdict.ok, found)
        yield _writers(catalog)
        segments = [s for r in relations for s in snapshot.segments(r.id)]
        yield _files([(folder / s.path, s.bytes) for s in segments])
        yield _garbage(catalog, folder)


def _writers(catalog: Catalog) -> Finding:
    """Runs that are under way, by whom."""
    running = [f"{r.kind} by {r.host}:{r.pid}" for r in catalog.runs() if r.state == "open"]
    if not running:
        return Finding("writers", Verdict.ok, "none")
    advice = "If such a process hangs, end it: its leases are then free."
    return Finding("writers", Verdict.ok, listed(running, "run"), advice)


def _files(files: list[tuple[Path, int]]) -> Finding:
    """Is every segment there, as long as it was when it was committed?"""
    missing = [str(path) for path, _ in files if not path.exists()]
    wrong = [str(p) for p, length in files if p.exists() and p.stat().st_size != length]
    if missing or wrong:
        found = "; ".join(
            listed(names, f"{what} file")
            for what, names in (("missing", missing), ("truncated", wrong))
            if names
        )
        advice = "Restore them from a backup, or drop what they belong to and load it again."
        return Finding("segments", Verdict.fail, found, advice)
    return Finding("segments", Verdict.ok, f"{counted(len(files), 'file')}, none missing")


def _garbage(catalog: Catalog, folder: Path) -> Finding:
    """Directories of ended runs that still hold files nobody needs."""
    left = [
        run.directory
        for run in catalog.collection.unswept_runs()
        if run.state != "committed" and (folder / run.directory).exists()
    ]
    if left:
        advice = "Nothing to do: the next run collects it."
        return Finding("garbage", Verdict.warn, listed(left, "abandoned folder"), advice)
    return Finding("garbage", Verdict.ok, "none")
