"""A small warehouse for one trap: tables, one view, and changes that must not fool it.

Rows are loaded and read on the local engine; refreshes run where the trap says. After every
refresh the view equals its query over the tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import slackwater
from slackwater import UserError, Warehouse
from slackwater.engine.compare import compare
from slackwater.work.reports import RefreshReport
from tests.works import rows

Rows = list[tuple[Any, ...]]

ENGINES = ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.proof])]


class Trap:
    """The view `v` over some tables."""

    def __init__(self, db: Warehouse, refresher: Warehouse) -> None:
        self.db = db
        self.refresher = refresher
        self.query = ""
        self.reports: list[RefreshReport] = []

    def view(self, query: str, name: str = "v") -> Rows:
        """Create a view and give it its first content."""
        self.query = query
        self.db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        return self.refreshed()

    def after(self, *statements: str) -> Rows:
        """What the view holds after these statements, one batch, and a refresh."""
        with self.db.transaction():
            for statement in statements:
                self.db.sql(statement)
        return self.refreshed()

    def after_rows(self, table: str, weighted: Sequence[tuple[Any, ...]]) -> Rows:
        """The same, after a batch of rows with their weights last."""
        names = [*self.db.sql(f"SELECT * FROM {table}").columns, "w"]
        batch = [dict(zip(names, row, strict=True)) for row in weighted]
        self.db.apply(table, batch, weight_column="w")
        return self.refreshed()

    def refreshed(self) -> Rows:
        """What the view holds after a refresh; it equals its query."""
        self.reports = self.refresher.refresh("v")
        content = self.db.sql("SELECT * FROM v")
        difference = compare(content.to_arrow(), self.db.sql(self.query).to_arrow())
        assert difference.equal, f"{self.query}\n{difference}"
        return rows(content.fetchall())

    def raises(self, code: str, *statements: str) -> None:
        """The query cannot be computed after these statements; the view keeps what it holds."""
        before = self.db.sql("SELECT * FROM v").to_arrow()
        with self.db.transaction():
            for statement in statements:
                self.db.sql(statement)
        with pytest.raises(UserError) as refused:
            self.refresher.refresh("v")
        assert refused.value.code == code
        assert compare(self.db.sql("SELECT * FROM v").to_arrow(), before).equal


def opened(request: pytest.FixtureRequest, folder: Path) -> Iterator[Trap]:
    """The trap of a fixture whose parameter is an engine."""
    with ExitStack() as stack:
        followed = {"refresh": "incremental"}  # whatever that costs
        local = {"placement": "local", **followed}
        db = stack.enter_context(slackwater.connect(folder / "trap", **local))
        if request.param == "local":
            yield Trap(db, db)
            return
        session = request.getfixturevalue("spark")
        settings = {"placement": "spark", "spark": session, **followed}
        yield Trap(db, stack.enter_context(slackwater.connect(folder / "trap", **settings)))
