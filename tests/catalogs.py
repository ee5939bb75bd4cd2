"""What the tests of the catalog share: both databases, small relations, other processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from slackwater.catalog.ids import new_id, timestamp
from slackwater.catalog.model import CreateTable, CreateView, Segment, Table, View
from slackwater.catalog.store import Catalog
from slackwater.types import BIGINT, STRING, Field
from tests.postgres import server

BACKENDS = ("sqlite", pytest.param("postgresql", marks=pytest.mark.postgres))
SCHEMA = (Field("id", BIGINT, False), Field("name", STRING))
ROOT = Path(__file__).parent.parent


def fresh_url(backend: str, folder: Path) -> str:
    """The URL of an empty catalog."""
    return f"sqlite:///{folder}/catalog.db" if backend == "sqlite" else server().fresh_url()


def table(name: str, **values: Any) -> Table:
    """A table that is not in any catalog yet."""
    return Table(new_id("t"), name, SCHEMA, **values)


def view(name: str, *sources: Table | View, **values: Any) -> View:
    """A view over some sources that is not in any catalog yet."""
    return View(new_id("v"), name, SCHEMA, depends=tuple(s.id for s in sources), **values)


def segment(path: str, rows: int = 1) -> Segment:
    """A segment without a file."""
    return Segment(path, rows, rows * 10, 1, 1)


def create(catalog: Catalog, *relations: Table | View) -> int:
    """Commit new relations."""
    return catalog.commit(
        updates=[CreateTable(r) if isinstance(r, Table) else CreateView(r) for r in relations]
    )


def now() -> str:
    """The present moment, as events have it."""
    return timestamp()


def python(code: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Another process that runs `code` with the project and the test helpers at hand."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | environment,
    )


def line_of(process: subprocess.Popen[str]) -> str:
    """The next line the process prints; its errors when it printed none."""
    assert process.stdout is not None
    assert process.stderr is not None
    line = process.stdout.readline().strip()
    assert line, f"the process ended: {process.stderr.read()}"
    return line


def finish(process: subprocess.Popen[str]) -> str:
    """What the process printed until it ended; a failure of it is one of the test."""
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return output.strip()
