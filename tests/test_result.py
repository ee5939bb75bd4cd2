"""What a statement gives: rows in any form, and a text for people."""

from __future__ import annotations

import io
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

from slackwater import Warehouse
from slackwater.cli import ingest
from slackwater.result import SHOWN_ROWS

QUERY = "SELECT * FROM VALUES (1, 'a<b', 1.50), (20, NULL, NULL) AS t(id, name, price) ORDER BY id"
ROWS = [(1, "a<b", Decimal("1.50")), (20, None, None)]


def test_rows_as_arrow_pandas_and_python(db: Warehouse) -> None:
    result = db.sql(QUERY)
    assert result.columns == ["id", "name", "price"]
    assert (len(result), result.num_rows) == (2, 2)
    assert isinstance(result.to_arrow(), pa.Table)
    assert result.to_arrow().column("id").to_pylist() == [1, 20]
    frame = result.to_pandas()
    assert list(frame.columns) == ["id", "name", "price"]
    assert frame["id"].tolist() == [1, 20]
    assert result.fetchall() == list(result) == ROWS
    assert result.fetchone() == ROWS[0]


def test_rows_as_a_spark_frame(spark_db: Warehouse) -> None:
    frame = spark_db.sql(QUERY).to_spark()
    assert [tuple(row) for row in frame.orderBy("id").collect()] == ROWS
    assert frame.schema["price"].dataType.simpleString() == "decimal(3,2)"


def test_a_table_for_the_terminal(db: Warehouse, capsys: pytest.CaptureFixture[str]) -> None:
    expected = (
        "id | name | price\n---+------+------\n 1 | a<b  |  1.50\n20 | NULL |  NULL\n(2 rows)"
    )
    assert str(db.sql(QUERY)) == repr(db.sql(QUERY)) == expected
    db.sql(QUERY).show()
    assert capsys.readouterr().out.rstrip() == expected
    db.sql(QUERY).show(1)
    assert capsys.readouterr().out.rstrip().endswith("(2 rows, first 1 shown)")


def test_many_rows_are_not_all_printed(db: Warehouse) -> None:
    shown = str(db.sql(f"SELECT * FROM VALUES {', '.join(f'({i})' for i in range(500))}"))
    assert shown.endswith(f"(500 rows, first {SHOWN_ROWS} shown)")
    assert len(shown.splitlines()) == SHOWN_ROWS + 3


def test_a_table_for_a_notebook(db: Warehouse) -> None:
    page = db.sql(QUERY)._repr_html_()
    assert "<th>id</th><th>name</th><th>price</th>" in page
    assert "<td>a&lt;b</td>" in page
    assert "<td>NULL</td>" in page
    assert page.endswith("<p>(2 rows)</p>")


def test_a_statement_without_rows(db: Warehouse) -> None:
    result = db.sql("CREATE TABLE t (a INT)")
    assert not result.has_rows
    assert result.fetchall() == []
    assert result._repr_html_().startswith("<p>")
    with pytest.raises(TypeError, match="no rows"):
        result.to_spark()


def test_ingesting_tells_how_far_it_is() -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, width=100)
    own: Any = SimpleNamespace(err=screen, quiet=False)
    with ingest._progress(own, "sales", 100) as advance:
        advance(40)
        advance(60)
    shown = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "sales" in shown
    assert "100/100 bytes" in shown
