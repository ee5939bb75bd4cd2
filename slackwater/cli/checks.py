"""What `slackwater doctor` looks at: the machine, then the warehouse.

Each check answers ok, warn or fail, what it found, and what to do.
"""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from slackwater.cli.output import counted, size
from slackwater.engine.java import HOW, NEEDED, java_version
from slackwater.errors import SlackwaterError

if TYPE_CHECKING:
    from slackwater.cli.context import Session

PACKAGES = ("pyspark", "duckdb", "pyarrow", "pandas", "numpy", "sqlglot", "sqlalchemy")
LITTLE_SPACE_BYTES = 5_000_000_000
NO_SPACE_BYTES = 500_000_000


class Verdict(StrEnum):
    """How a check came out."""

    ok = "ok"
    warn = "warn"
    fail = "fail"


@dataclass(frozen=True)
class Finding:
    """One answer of the doctor."""

    check: str
    verdict: Verdict
    found: str
    advice: str = ""


def machine(own: Session) -> Iterator[Finding]:
    """Checks that need no warehouse."""
    yield _python()
    yield from (_package(name) for name in PACKAGES)
    yield java()
    yield _disk(Path(own.warehouse))


def spark(own: Session) -> Finding:
    """Start Spark and let it count: the only proof that it works here."""
    try:
        with own.open(placement="spark") as db:
            rows = db.sql("SELECT COUNT(*) FROM (VALUES (1), (2)) AS t(x)").fetchall()
    except SlackwaterError as error:
        return Finding("Spark starts", Verdict.fail, error.message, error.hint)
    return Finding("Spark starts", Verdict.ok, f"counted to {rows[0][0]} on {own.spark_master}")


def java() -> Finding:
    """Is there a Java that Spark runs on?"""
    found = java_version()
    advice = f"{HOW} Only what runs on Spark needs it."
    if found is None:
        return Finding("Java", Verdict.fail, "none found", advice)
    if found < NEEDED:
        return Finding("Java", Verdict.fail, f"{found}; Spark needs {NEEDED}", advice)
    return Finding("Java", Verdict.ok, str(found))


def _python() -> Finding:
    found = f"{platform.python_version()} at {sys.executable}"
    fine = sys.version_info >= (3, 11)
    advice = "" if fine else "Python 3.11 or newer is needed."
    return Finding("Python", Verdict.ok if fine else Verdict.fail, found, advice)


def _package(name: str) -> Finding:
    try:
        return Finding(name, Verdict.ok, version(name))
    except PackageNotFoundError:
        return Finding(name, Verdict.fail, "missing", "Install it with: pip install slackwater")


def _disk(folder: Path) -> Finding:
    there = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
    free = shutil.disk_usage(there).free
    found = f"{size(free)} free at {there}"
    if free < NO_SPACE_BYTES:
        return Finding("disk", Verdict.fail, found, "Free some space before the next run.")
    if free < LITTLE_SPACE_BYTES:
        return Finding("disk", Verdict.warn, found, "Large recomputes may not fit.")
    return Finding("disk", Verdict.ok, found)


def listed(names: list[str], noun: str, most: int = 3) -> str:
    """A count and the first few of something.

    >>> listed(["a", "b", "c", "d"], "file")
    '4 files: a, b, c, …'
    """
    more = ", …" if len(names) > most else ""
    return f"{counted(len(names), noun)}: {', '.join(names[:most])}{more}"
