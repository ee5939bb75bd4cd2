"""The parts of the command line that need no warehouse."""

from __future__ import annotations

import datetime
import decimal
import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slackwater import types
from slackwater.cli import checks, exits
from slackwater.cli.app import hoist
from slackwater.cli.checks import Verdict
from slackwater.cli.files import infer, read
from slackwater.cli.formats import FileFormat, Reading, expand
from slackwater.cli.output import plain, table
from slackwater.cli.scan import is_complete
from slackwater.errors import InternalError, SqlError, StateError, UserError

SCHEMA = (
    types.Field("id", types.BIGINT),
    types.Field("price", types.Decimal(12, 2)),
    types.Field("day", types.DATE),
    types.Field("note", types.STRING),
)
ROWS = [
    {"id": 1, "price": decimal.Decimal("1.50"), "day": datetime.date(2024, 2, 29), "note": "a,b"},
    {"id": 2, "price": None, "day": None, "note": None},
]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["status"], ["status"]),
        (["status", "-w", "x"], ["-w", "x", "status"]),
        (["status", "--warehouse=x"], ["--warehouse=x", "status"]),
        (["sql", "--", "-w", "x"], ["sql", "--", "-w", "x"]),
        (["sql", "--debug", "SELECT 1"], ["--debug", "sql", "SELECT 1"]),
        (["status", "-w"], ["-w", "status"]),
    ],
)
def test_global_options_stand_anywhere(given: list[str], expected: list[str]) -> None:
    assert hoist(given) == expected


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1;  \n", True),
        ("SELECT ';'", False),
        ("SELECT 'it''s';", True),
        (r"SELECT 'it\'s;", False),
        ("SELECT `a;b`", False),
        ('SELECT "x;', False),
        ("SELECT 1; -- and a comment", True),
        ("SELECT 1 -- ;", False),
        ("SELECT /* ; */ 1", False),
        ("SELECT 1 /* open ;", False),
        ("SELECT 4 / 2 - 1;", True),
        ("SELECT 1; SELECT 2", False),
        ("", False),
    ],
)
def test_prompt_knows_when_a_statement_ends(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UserError("x", code="X"), exits.USER_ERROR),
        (SqlError("x", code="X"), exits.USER_ERROR),
        (StateError("x", code="X"), exits.STATE_ERROR),
        (InternalError("x"), exits.INTERNAL_ERROR),
        (ValueError("x"), exits.INTERNAL_ERROR),
        (KeyboardInterrupt(), exits.INTERRUPTED),
    ],
)
def test_errors_have_exit_codes(error: BaseException, code: int) -> None:
    assert exits.code_of(error) == code


def test_values_survive_json() -> None:
    zone = datetime.UTC
    values = [None, True, 1, "x", b"\x00\xff", datetime.datetime(2024, 1, 2, 3, tzinfo=zone)]
    shown = json.loads(json.dumps(plain([*values, float("inf"), decimal.Decimal("0.10")])))
    assert shown == [None, True, 1, "x", "AP8=", "2024-01-02T03:00:00+00:00", "Infinity", "0.10"]


def test_table_aligns_numbers_and_marks_null() -> None:
    shown = table(["name", "n"], [("a", 1), (None, 22)])
    assert [column.justify for column in shown.columns] == ["left", "right"]
    assert "NULL" in str(list(shown.columns[0].cells)[1])


def write_csv(path: Path) -> Path:
    path.write_text('id,price,day,note\n1,1.50,2024-02-29,"a,b"\n2,,,\n')
    return path


def write_json(path: Path) -> Path:
    lines = [{k: plain(v) for k, v in row.items()} for row in ROWS]
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    return path


def write_parquet(path: Path) -> Path:
    pq.write_table(pa.Table.from_pylist(ROWS, schema=types.to_arrow_schema(SCHEMA)), path)
    return path


def rows_of(path: Path, reading: Reading) -> list[dict[str, object]]:
    advanced: list[int] = []
    batches = list(read(path, reading, SCHEMA, advanced.append))
    assert sum(advanced) == pytest.approx(path.stat().st_size, abs=len(ROWS))
    return [row for batch in batches for row in batch.to_pylist()]


def test_csv_is_read_with_the_types_of_the_table(tmp_path: Path) -> None:
    assert rows_of(write_csv(tmp_path / "x.csv"), Reading()) == ROWS


def test_parquet_is_read(tmp_path: Path) -> None:
    assert rows_of(write_parquet(tmp_path / "x.parquet"), Reading()) == ROWS


def test_json_lines_are_read_with_the_types_of_the_table(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"id": 1, "price": "1.50", "day": "2024-02-29", "note": "a,b"}\n{"id": 2}\n')
    assert rows_of(path, Reading()) == ROWS


def test_compressed_csv_with_other_signs_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"1|1.50|2024-02-29|a,b\n2|\\N|\\N|\\N\n"))
    assert rows_of(path, Reading(delimiter="|", header=False, null="\\N")) == ROWS


def test_empty_text_in_quotes_is_not_null(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('id,price,day,note\n1,,,""\n')
    assert rows_of_note(path) == [""]


def rows_of_note(path: Path) -> list[object]:
    batches = read(path, Reading(), SCHEMA, lambda count: None)
    return [row["note"] for batch in batches for row in batch.to_pylist()]


def test_bad_value_names_the_file_and_the_column(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("id,price,day,note\nx,1,2024-01-01,a\n")
    with pytest.raises(UserError, match=r"bad\.csv") as caught:
        list(read(path, Reading(), SCHEMA, lambda count: None))
    assert caught.value.code == "BAD_FILE"


@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_types_are_inferred(tmp_path: Path, write: object) -> None:
    path = write(tmp_path / f"x.{write.__name__.removeprefix('write_')}")  # type: ignore[operator,attr-defined]
    found = {f.name: f.type.sql for f in infer(path, Reading())}
    assert found["id"] == "BIGINT"
    assert found["day"] == "DATE"
    assert found["note"] == "STRING"


def test_files_are_found_by_path_glob_and_folder(tmp_path: Path) -> None:
    a, b = write_csv(tmp_path / "a.csv"), write_csv(tmp_path / "b.csv")
    (tmp_path / "notes.txt").write_text("no data")
    assert expand([str(tmp_path / "*.csv")]) == [a, b]
    assert expand([str(b), str(tmp_path)]) == [b, a]
    with pytest.raises(UserError, match="No file is at"):
        expand([str(tmp_path / "*.parquet")])


def test_format_is_told_by_the_name_or_asked_for() -> None:
    assert Reading().format_of(Path("x.jsonl.gz")) is FileFormat.json
    assert Reading(FileFormat.csv).format_of(Path("x.dat")) is FileFormat.csv
    with pytest.raises(UserError, match="format"):
        Reading().format_of(Path("x.dat"))


@pytest.mark.parametrize(
    ("version", "verdict"), [(17, Verdict.ok), (24, Verdict.ok), (8, Verdict.fail)]
)
def test_doctor_judges_java(
    version: int, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "java_version", lambda: version)
    assert checks.java().verdict is verdict


def test_doctor_says_what_to_do_without_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    finding = checks.java()
    assert finding.verdict is Verdict.fail
    assert "JAVA_HOME" in finding.advice


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_times_without_a_zone_are_utc(tmp_path: Path, suffix: str) -> None:
    times = ["2024-01-02 03:04:05", "2024-01-02T03:04:05.5Z", "2024-01-02 03:04:05+02:00"]
    path = tmp_path / f"x.{suffix}"
    if suffix == "csv":
        path.write_text("\n".join(["At", *times, "2024-01-02", ""]))
    else:
        path.write_text("".join(f'{{"at": "{t}"}}\n' for t in [*times, "2024-01-02"]))
    schema = (types.Field("at", types.TIMESTAMP),)
    batches = read(path, Reading(), schema, lambda count: None)
    found = [row["at"].isoformat() for batch in batches for row in batch.to_pylist()]
    assert found == [
        "2024-01-02T03:04:05+00:00",
        "2024-01-02T03:04:05.500000+00:00",
        "2024-01-02T01:04:05+00:00",
        "2024-01-02T00:00:00+00:00",
    ]
