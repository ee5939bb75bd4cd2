"""The command line on a warehouse: what it prints, and the exit codes scripts rely on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from slackwater.catalog.model import ReplaceSegments
from slackwater.catalog.store import Catalog
from slackwater.cli import exits
from slackwater.cli.app import app

Run = Callable[..., Any]
TABLE = "CREATE TABLE sales (id BIGINT, category STRING, price DECIMAL(12,2))"
ROWS = "INSERT INTO sales VALUES (1, 'books', 12.50), (2, 'toys', 20.00), (3, NULL, NULL)"
VIEW = """CREATE MATERIALIZED VIEW summary AS
          SELECT category, SUM(price) AS gross FROM sales GROUP BY category"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Call the command line on a warehouse of the test's own."""

    def call(*args: str, code: int = exits.OK, stdin: str | None = None) -> Any:
        given = ["-w", str(tmp_path / "wh"), "--placement", "local", *args]
        result = CliRunner().invoke(app, given, input=stdin)
        assert result.exit_code == code, result.output
        return result

    return call


@pytest.fixture
def filled(run: Run) -> Run:
    """The same, with a table of three rows and a refreshed view."""
    run("init")
    run("sql", f"{TABLE}; {ROWS}; {VIEW}")
    run("refresh")
    return run


def test_init_creates_a_warehouse_once(run: Run) -> None:
    assert "ready" in run("init").stdout
    run("sql", TABLE)
    assert "is there: 1 table" in run("init").stdout


def test_missing_warehouse_is_a_user_error(run: Run) -> None:
    result = run("sql", "SELECT 1", code=exits.USER_ERROR)
    assert "NO_WAREHOUSE" in result.stderr
    assert result.stdout == ""


def test_sql_prints_tables_and_messages(filled: Run) -> None:
    shown = filled("sql", "SELECT * FROM sales ORDER BY id").stdout
    assert "books" in shown
    assert "NULL" in shown
    assert "3 rows" in shown
    assert "1 row" in filled("sql", "DELETE FROM sales WHERE id = 1").stdout


def test_sql_as_json_is_one_object_per_statement(filled: Run) -> None:
    shown = filled(
        "sql", "--json", "SELECT id, price FROM sales WHERE id < 3 ORDER BY id; SELECT 1 AS x"
    )
    first, second = map(json.loads, shown.stdout.splitlines())
    assert first["columns"] == [
        {"name": "id", "type": "BIGINT"},
        {"name": "price", "type": "DECIMAL(12,2)"},
    ]
    assert first["rows"] == [[1, "12.50"], [2, "20.00"]]
    assert second["rows"] == [[1]]


def test_sql_as_csv(filled: Run) -> None:
    shown = filled("sql", "--format", "csv", "SELECT * FROM sales ORDER BY id")
    assert shown.stdout == "id,category,price\n1,books,12.50\n2,toys,20.00\n3,,\n"


def test_sql_from_a_file_and_from_a_pipe(filled: Run, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text("INSERT INTO sales VALUES (4, 'a;b', 1); -- done; really\nSELECT 5 AS five;")
    assert "five" in filled("sql", "-f", str(script)).stdout
    piped = filled("sql", "--json", stdin="SELECT category FROM sales WHERE id = 4;\n")
    assert json.loads(piped.stdout)["rows"] == [["a;b"]]
    assert "BAD_FILE" in filled("sql", "-f", "no/such.sql", code=exits.USER_ERROR).stderr


def test_sql_stops_at_the_first_error_and_keeps_what_was_done(filled: Run) -> None:
    script = "INSERT INTO sales VALUES (9, 'x', 1); SELECT nope FROM sales; DELETE FROM sales"
    result = filled("sql", script, code=exits.USER_ERROR)
    assert "nope" in result.stderr
    assert "^^^^" in result.stderr
    assert "Traceback" not in result.output
    assert "4 rows" in filled("sql", "SELECT * FROM sales").stdout


def test_debug_shows_the_traceback(filled: Run) -> None:
    result = filled("sql", "--debug", "SELECT nope FROM sales", code=exits.USER_ERROR)
    assert "Traceback" in result.stderr


def test_usage_errors_have_their_own_exit_code(run: Run) -> None:
    run("refresh", "--no-such-option", code=exits.USAGE)
    run("no-such-command", code=exits.USAGE)


def test_help_tells_the_exit_codes(run: Run) -> None:
    assert "130" in run("--help").stdout


def test_refresh_reports_what_it_did(filled: Run) -> None:
    filled("sql", "INSERT INTO sales VALUES (4, 'toys', 1)")
    (report,) = json.loads(filled("refresh", "summary", "--json").stdout)
    assert report["view"] == "summary"
    assert report["mode"] == "incremental"
    assert report["reasons"] == []
    assert report["engine"] == "local"
    assert report["steps"]
    assert report["choice"]["method"] == "incremental"
    assert "summary" in filled("refresh").stdout


def test_verify_finds_equal_views(filled: Run) -> None:
    (found,) = json.loads(filled("verify", "--json").stdout)
    assert found["equal"]
    assert "equal" in filled("verify", "summary").stdout


def test_verify_finds_damage(filled: Run, tmp_path: Path) -> None:
    """A view whose stored rows are not what its query gives: exit code 4 and the rows."""
    with Catalog.open(f"sqlite:///{tmp_path / 'wh' / 'catalog.db'}") as catalog:
        catalog.commit(updates=[ReplaceSegments(catalog.snapshot().views()[0].id, ())])
    result = filled("verify", code=exits.DIFFERENT)
    assert "3 missing, 0 unexpected" in result.stdout
    assert "toys" in result.stdout
    (found,) = json.loads(filled("verify", "--json", "--rows", "1", code=exits.DIFFERENT).stdout)
    assert (found["equal"], len(found["missing"]), found["missing_count"]) == (False, 1, 3)


def test_explain_status_and_history(filled: Run) -> None:
    assert "sales" in filled("explain", "summary").stdout
    assert json.loads(filled("explain", "summary", "--json").stdout)
    found = json.loads(filled("status", "--json").stdout)
    assert [t["name"] for t in found["tables"]] == ["sales"]
    assert [v["fresh"] for v in found["views"]] == [True]
    filled("sql", "DELETE FROM sales WHERE id = 1")
    assert not json.loads(filled("status", "--json").stdout)["views"][0]["fresh"]
    assert "summary" in filled("status").stdout
    events = json.loads(filled("history", "--json").stdout)
    assert events
    assert json.loads(filled("history", "summary", "-n", "1", "--json").stdout)
    assert filled("history").stdout


def test_refresh_without_views_says_so(run: Run) -> None:
    run("init")
    assert "NO_VIEWS" in run("refresh", code=exits.USER_ERROR).stderr


def test_ingest_adds_files_in_one_version(filled: Run, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,category,price\n10,books,1.25\n")
    (tmp_path / "b.csv").write_text("id,category,price\n11,,2.50\n")
    before = json.loads(filled("status", "--json").stdout)["tables"][0]["version"]
    report = json.loads(filled("ingest", "--json", "sales", str(tmp_path / "*.csv")).stdout)
    assert report["rows"] == 2
    after = json.loads(filled("status", "--json").stdout)["tables"][0]["version"]
    assert after == before + 1
    shown = filled("sql", "--format", "csv", "SELECT * FROM sales WHERE id >= 10 ORDER BY id")
    assert shown.stdout.splitlines()[1:] == ["10,books,1.25", "11,,2.50"]


def test_ingest_adds_nothing_when_one_file_is_bad(filled: Run, tmp_path: Path) -> None:
    good, bad = tmp_path / "a.csv", tmp_path / "b.csv"
    good.write_text("id,category,price\n10,books,1.25\n")
    bad.write_text("id,category,price\nten,books,1.25\n")
    result = filled("ingest", "sales", str(good), str(bad), code=exits.USER_ERROR)
    assert "b.csv" in result.stderr
    assert "3 rows" in filled("sql", "SELECT * FROM sales").stdout


def test_ingest_creates_a_table_only_when_asked(run: Run, tmp_path: Path) -> None:
    run("init")
    (tmp_path / "x.jsonl").write_text('{"a": 1, "b": "x", "c": 1.5}\n{"a": 2, "b": null}\n')
    refused = run("ingest", "fresh", str(tmp_path / "x.jsonl"), code=exits.USER_ERROR)
    assert "--create" in refused.stderr
    run("ingest", "fresh", str(tmp_path / "x.jsonl"), "--create")
    shown = run("sql", "--json", "SELECT * FROM fresh ORDER BY a")
    assert json.loads(shown.stdout)["rows"] == [[1, "x", 1.5], [2, None, None]]


def test_doctor_finds_a_healthy_warehouse(filled: Run) -> None:
    findings = {f["check"]: f for f in json.loads(filled("doctor", "--json").stdout)}
    assert findings["catalog"]["verdict"] == "ok"
    assert findings["segments"]["verdict"] == "ok"
    assert findings["pyspark"]["verdict"] == "ok"


def test_doctor_finds_missing_and_truncated_files(filled: Run, tmp_path: Path) -> None:
    files = sorted((tmp_path / "wh" / "data").rglob("*.parquet"))
    files[0].unlink()
    files[1].write_bytes(files[1].read_bytes()[:-10])
    result = filled("doctor", "--json", code=exits.STATE_ERROR)
    finding = next(f for f in json.loads(result.stdout) if f["check"] == "segments")
    assert finding["verdict"] == "fail"
    assert "1 missing file" in finding["found"]
    assert "1 truncated file" in finding["found"]
    assert finding["advice"]


def test_doctor_works_without_a_warehouse(run: Run) -> None:
    findings = json.loads(run("doctor", "--json").stdout)
    assert next(f for f in findings if f["check"] == "warehouse")["verdict"] == "warn"


def test_start_is_fast() -> None:
    """What takes longest to import waits until it is needed."""
    code = (
        "import sys; from slackwater.cli.app import app; "
        "print(sorted({'pyspark', 'pandas', 'prompt_toolkit'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_as_a_module_with_the_warehouse_from_the_environment(tmp_path: Path) -> None:
    environment = os.environ | {"SLACKWATER_WAREHOUSE": str(tmp_path / "named")}
    command = [sys.executable, "-m", "slackwater", "init"]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    assert (tmp_path / "named").is_dir()


def test_version() -> None:
    assert "slackwater" in CliRunner().invoke(app, ["--version"]).stdout
