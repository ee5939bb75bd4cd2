"""The demo: its stream of changes is a proper one, and it runs from start to end."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from slackwater.cli import exits
from slackwater.cli.app import app
from slackwater.cli.demo import MARKER
from slackwater.demo.data import TABLES, generate, load, schema
from slackwater.demo.stream import WEIGHT_COLUMN, Stream, make_stream
from slackwater.demo.views import VIEWS

SCALE = 0.001


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate(tmp_path_factory.mktemp("tpch"), SCALE)


@pytest.fixture(scope="session")
def stream(data: Path) -> Stream:
    return make_stream(load(data, "orders"), load(data, "lineitem"), 5, 0.02, seed=3)


def rows(table: Any) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_generated_tables_have_the_declared_columns(data: Path) -> None:
    for name in TABLES:
        assert load(data, name).column_names == [f.name for f in schema(name)]
    assert generate(data.parent, SCALE) == data


@pytest.mark.parametrize("table", ["orders", "lineitem"])
def test_stream_never_deletes_what_is_not_there(stream: Stream, table: str) -> None:
    content = rows(getattr(stream, table))
    for batch in stream.batches:
        change = batch.changes[table]
        weights = change[WEIGHT_COLUMN].to_pylist()
        plain = change.drop_columns([WEIGHT_COLUMN])
        for row, weight in zip(plain.to_pylist(), weights, strict=True):
            content[tuple(row.values())] += weight
        assert min(content.values()) >= 0


def test_every_batch_inserts_updates_and_deletes(stream: Stream) -> None:
    for batch in stream.batches:
        assert min(batch.inserted, batch.updated, batch.deleted) > 0
        weights = set(batch.changes["lineitem"][WEIGHT_COLUMN].to_pylist())
        assert weights == {-1, 1}


def test_stream_depends_on_its_seed_only(data: Path, stream: Stream) -> None:
    orders, lineitem = load(data, "orders"), load(data, "lineitem")
    again = make_stream(orders, lineitem, 5, 0.02, seed=3)
    other = make_stream(orders, lineitem, 5, 0.02, seed=4)
    assert again.orders.equals(stream.orders)
    assert all(
        a.changes[table].equals(b.changes[table])
        for a, b in zip(again.batches, stream.batches, strict=True)
        for table in a.changes
    )
    assert not other.orders.equals(stream.orders)


def test_demo_runs_on_the_local_engine(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    options = ["--scale", str(SCALE), "--batches", "2", "--share", "0.02", "--no-spark-pass"]
    command = ["--placement", "local", "demo", "--folder", str(folder), *options]
    for _ in range(2):  # a second demo begins afresh
        result = CliRunner().invoke(app, command)
        assert result.exit_code == exits.OK, result.output
    for view in VIEWS:
        assert view in result.stdout
        assert list((folder / "warehouse-local" / "published").glob(f"{view}-*/v=*/*.parquet"))
    assert "12 of 12 refreshes were incremental" in result.stdout


def test_demo_leaves_other_folders_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    result = CliRunner().invoke(app, ["demo", "--folder", str(tmp_path)])
    assert result.exit_code == exits.USER_ERROR
    assert "BAD_FOLDER" in result.stderr
    assert not (tmp_path / MARKER).exists()


@pytest.mark.spark
@pytest.mark.proof
def test_demo_runs_beside_spark(tmp_path: Path, java_home: str) -> None:
    """In a process of its own, with a Spark session of its own."""
    command = [sys.executable, "-m", "slackwater", "demo", "--folder", str(tmp_path / "demo")]
    command += ["--scale", "0.002", "--batches", "1", "--share", "0.02"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == exits.OK, done.stderr
    assert "placement = spark" in done.stdout
    assert "NO" not in done.stdout.split("Summary")[1].split()
