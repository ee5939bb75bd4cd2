"""What `slackwater doctor` looks at inside a warehouse: catalog, writers, files, garbage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from slackwater.cli.checks import Finding, Verdict, listed
from slackwater.cli.output import counted
from slackwater.errors import SlackwaterError, UserError
from slackwater.work.parts import views_of

if TYPE_CHECKING:
    from slackwater.catalog.snapshot import Snapshot
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
        found = f"{counted(len(snapshot.tables()), 'table')}, "
        found += f"{counted(len(snapshot.views()), 'view')} at commit {snapshot.commit}"
        yield Finding("catalog", Verdict.ok, found)
        yield _writers(catalog)
        yield _files(folder, snapshot)
        yield _garbage(catalog, folder)


def _writers(catalog: Catalog) -> Finding:
    """Runs that are under way, by whom."""
    running = [f"{r.kind} by {r.host}:{r.pid}" for r in catalog.runs() if r.state == "open"]
    if not running:
        return Finding("writers", Verdict.ok, "none")
    advice = "If such a process hangs, end it: its leases are then free."
    return Finding("writers", Verdict.ok, listed(running, "run"), advice)


def _files(folder: Path, snapshot: Snapshot) -> Finding:
    """Is every segment there, as long as it was when it was committed?"""
    tables = {t.id: t.name for t in snapshot.tables()}
    owners = {v.id: v.name for v in snapshot.views()}
    owners |= {p.id: ", ".join(views_of(p)) for p in snapshot.parts()}
    owners |= {s.id: owners[id] for id in tuple(owners) for s in snapshot.states(id)}
    missing, wrong, broken, count = [], [], [], 0
    for id in snapshot.stored():
        for segment in snapshot.segments(id):
            path, count = folder / segment.path, count + 1
            if not path.exists():
                missing.append(str(path))
            elif path.stat().st_size != segment.bytes:
                wrong.append(str(path))
            else:
                continue
            broken.append(id)
    if not broken:
        return Finding("segments", Verdict.ok, f"{counted(count, 'file')}, none missing")
    found = "; ".join(
        listed(names, f"{what} file")
        for what, names in (("missing", missing), ("truncated", wrong))
        if names
    )
    lost = sorted({tables[id] for id in broken if id in tables})
    rebuilt = sorted({owners[id] for id in broken if id in owners})
    return Finding("segments", Verdict.fail, found, _advice(lost, rebuilt))


def _advice(lost: list[str], rebuilt: list[str]) -> str:
    """What can be computed again, and what cannot."""
    advice = []
    if lost:
        advice.append(f"Restore from a backup, or drop and load again: {', '.join(lost)}.")
    if rebuilt:
        advice.append(
            f"Rebuild from the tables with 'slackwater refresh --full': {', '.join(rebuilt)}."
        )
    return " ".join(advice)


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
