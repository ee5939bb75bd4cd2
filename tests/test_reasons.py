"""Every reason says what it means, where in the plan it holds, and what to do instead."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slackwater
from slackwater import Warehouse
from slackwater.algebra.relation import Aggregate, TopK, Window
from slackwater.errors import UserError
from slackwater.sql.bind import bind
from slackwater.tvr.states.rows import reason
from slackwater.work.reasons import REASONS, why, whys
from slackwater.work.world import World

PACKAGE = Path(slackwater.__file__).parent
SUMS = "SELECT k, sum(x) AS total FROM t GROUP BY k"

OF_QUERIES = {
    "NOT_DETERMINISTIC": ("SELECT k, current_date() AS today FROM t", "current_date()"),
    "NO_PARTITION_BY": ("SELECT k, rank() OVER (ORDER BY x) AS r FROM t", "Window rank()"),
    "NO_EQUALITY_IN_JOIN": (
        "SELECT t.k FROM t LEFT JOIN u ON t.k < u.k",
        "Join left on (k#0 < k#",
    ),
    "NO_GROUP_BY": ("SELECT sum(x * 0.5D) AS s FROM t", "Aggregate by (): "),
    "OFFSET_WITHOUT_LIMIT": ("SELECT k FROM t ORDER BY k OFFSET 2", "TopK limit None offset 2"),
}
"""Views that meet a reason, and the beginning of where they do."""


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Warehouse]:
    with slackwater.connect(tmp_path / "w", placement="local") as found:
        found.sql("CREATE TABLE t (k BIGINT, x BIGINT)")
        found.sql("CREATE TABLE u (k BIGINT, x BIGINT)")
        found.sql("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
        found.sql("INSERT INTO u VALUES (1, 1), (2, 2)")
        yield found


def _last(db: Warehouse) -> dict[str, dict[str, str]]:
    """The reasons of the last refresh, by code."""
    event = next(e for e in db.events("v") if e["kind"] == "refresh")
    assert [w["code"] for w in event["why"]] == event["reasons"]
    return {w["code"]: w for w in event["why"]}


def _is_whole(told: dict[str, str]) -> bool:
    return all(told[part] for part in ("code", "means", "at", "rewrite"))


@pytest.mark.parametrize("code", REASONS)
def test_every_code_has_a_meaning_and_a_way_out(code: str) -> None:
    found = why(code, "Scan t")
    assert re.fullmatch(r"[A-Z]+(_[A-Z]+)*", code)
    assert found.means
    assert not found.means.endswith(".")
    assert found.rewrite.endswith(".")
    assert found.lines() == [f"Reason: [{code}] {found.means}: Scan t", f"        {found.rewrite}"]


def test_every_code_that_is_given_has_its_meaning() -> None:
    """Those that end the algebra, those of laws, those against engines and paces."""
    given = set(_arguments("unsupported", 0, "sql")) | set(_arguments("note", 2, "tvr"))
    given |= set(_arguments("why", 0, "work"))
    given |= {
        c
        for path in ("work/costing.py", "work/choosing.py", "work/one_run.py")
        for c in _texts(path)
    }
    given |= {c for path in ("tvr/states/rows.py", "work/interval.py") for c in _texts(path)}
    assert {"UNSUPPORTED_OPERATOR", "NO_EQUALITY_IN_JOIN", "NO_JAVA", "STATE_NOT_KEPT"} <= given
    assert given - {"NOT_INCREMENTAL"} <= REASONS.keys()


def _arguments(function: str, at: int, folder: str) -> Iterator[str]:
    for path in (PACKAGE / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or len(node.args) <= at:
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            code = node.args[at]
            if name == function and isinstance(code, ast.Constant) and _is_code(code.value):
                yield code.value


def _texts(path: str) -> Iterator[str]:
    for node in ast.walk(ast.parse((PACKAGE / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and _is_code(node.value):
            yield node.value


def _is_code(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[A-Z]{2,}(_[A-Z]+)+", value) is not None


def test_of_codes_each_is_told_once() -> None:
    assert whys(["NO_JAVA", "NO_JAVA"], {"NO_JAVA": "Scan t"}) == [why("NO_JAVA", "Scan t")]


@pytest.mark.parametrize("code", OF_QUERIES)
def test_what_of_a_query_cannot_follow_changes_is_told_everywhere(db: Warehouse, code: str) -> None:
    query, at = OF_QUERIES[code]
    told = db.sql(f"CREATE MATERIALIZED VIEW v WITH (schedule = 'daily 06:00') AS {query}").message
    assert told is not None
    assert f"[{code}] {REASONS[code].means}: {at}" in told
    assert REASONS[code].rewrite in told
    db.refresh("v")
    db.sql("INSERT INTO t VALUES (4, 4)")
    db.sql("INSERT INTO u VALUES (4, 4)")
    db.refresh("v")
    (view,) = db.status()["views"]
    explained = json.loads(db.explain("v", "json"))["reasons"]
    planned = [asdict(w) for v in db.plan().views.values() for w in v.reasons]
    for found in (view["reasons"], explained, planned, list(_last(db).values())):
        (one,) = [w for w in found if w["code"] == code]
        assert _is_whole(one)
        assert one["at"].startswith(at)
    lines = db.explain("v").splitlines()
    (line,) = [i for i, line in enumerate(lines) if line.startswith(f"Reason: [{code}]")]
    assert lines[line + 1].strip() == REASONS[code].rewrite


def test_a_view_that_follows_changes_has_nothing_to_tell(db: Warehouse) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {SUMS}")
    db.refresh("v")
    (view,) = db.status()["views"]
    assert view["reasons"] == []
    assert "Reason:" not in db.explain("v")


def test_why_a_refresh_was_in_full(db: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {SUMS}")
    (first,) = db.refresh("v")
    assert [w.code for w in first.whys] == ["FIRST_REFRESH"]
    assert _last(db)["FIRST_REFRESH"]["at"].startswith("Aggregate by k")
    db.refresh("v", full=True)
    assert _is_whole(_last(db)["FULL_REQUESTED"])
    db.sql("TRUNCATE TABLE t")
    explained = json.loads(db.explain("v", "json"))["reasons"]
    assert ("SOURCE_REPLACED", "Scan t") in {(w["code"], w["at"]) for w in explained}
    db.refresh("v")
    assert _last(db)["SOURCE_REPLACED"]["at"] == "Scan t"
    db.sql("ALTER MATERIALIZED VIEW v SET (refresh = 'full')")
    assert "Reason: [FULL_BY_OPTION]" in db.explain("v")
    db.sql("INSERT INTO t VALUES (5, 5)")
    db.refresh("v")
    assert _is_whole(_last(db)["FULL_BY_OPTION"])
    db.sql("ALTER MATERIALIZED VIEW v SET (refresh = 'incremental')")
    db.sql("INSERT INTO t VALUES (6, 6)")
    db.refresh("v")
    assert _last(db)["STATE_MISSING"]["at"].startswith("sums by 1 keys of Aggregate by k")
    assert db.verify("v").equal


def test_what_a_step_raised_is_told(db: Warehouse) -> None:
    """A row came that cannot be computed with, and went again, in the same interval."""
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, sum(10 DIV x) AS s FROM t GROUP BY k")
    db.sql("ALTER MATERIALIZED VIEW v SET (refresh = 'incremental')")
    db.refresh("v")
    db.sql("INSERT INTO t VALUES (7, 0)")
    db.sql("DELETE FROM t WHERE x = 0")
    db.refresh("v")
    assert db.verify("v").equal
    told = _last(db)["STEP_RAISED"]
    assert "zero" in told["at"].lower()
    assert _is_whole(told)


def test_ways_say_why_they_are_not_gone(db: Warehouse) -> None:
    db.append("t", pa.table({"k": list(range(20_000)), "x": list(range(20_000))}))
    db.sql(f"CREATE MATERIALIZED VIEW v AS {SUMS}")
    told = json.loads(db.explain("v", "json", alternatives=True))
    found = {w["code"]: w for w in told["why"]}
    assert {"FIRST_REFRESH", "NOT_PLACED_THERE"} <= found.keys()
    assert all(map(_is_whole, found.values()))
    lines = db.explain("v", alternatives=True).splitlines()
    assert f"        {REASONS['NOT_PLACED_THERE'].rewrite}" in lines


OUTER = {
    "SELECT t.k, u.x FROM t JOIN u ON t.k = u.k": ("NO_OUTER_JOIN", "NO_OUTER_JOIN", ""),
    "SELECT t.k, u.x FROM t LEFT JOIN u ON t.k = u.k WHERE u.x > 0": (
        "NO_OUTER_JOIN",
        "NO_OUTER_JOIN",
        "",
    ),
    "SELECT t.k, u.x FROM t LEFT JOIN u ON t.k = u.k": ("", "", ""),
    "SELECT u.k, t.x FROM u LEFT JOIN t ON t.k = u.k": (
        "PADDED_SIDE_UNCHANGED",
        "PADDED_SIDE_UNCHANGED",
        "Join left on ",
    ),
    "SELECT t.k, u.x FROM u FULL JOIN t ON t.k = u.k": (
        "NO_LEFT_JOIN_BY_EQUALITY",
        "",
        "Join full on ",
    ),
    "SELECT t.k, u.x FROM t LEFT JOIN u ON t.k < 2 AND u.k < 3": (
        "NO_LEFT_JOIN_BY_EQUALITY",
        "",
        "Join left on ",
    ),
    "SELECT u.k, t.x, w.k AS wk FROM u LEFT JOIN t ON t.k = u.k FULL JOIN w ON w.k = u.k": (
        "NO_LEFT_JOIN_BY_EQUALITY",
        "",
        "Join full on ",
    ),
}
"""Views of which `u` changes: why neither by direct and indirect changes nor in parts."""


@pytest.mark.parametrize("query", OUTER)
def test_why_outer_joins_are_not_followed_by_methods_of_theirs(db: Warehouse, query: str) -> None:
    ojv, im2, at = OUTER[query]
    db.sql("CREATE TABLE w (k BIGINT, x BIGINT)")
    numbers = list(range(20_000))
    for name in "tuw":
        db.append(name, pa.table({"k": numbers, "x": numbers}))
    db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    db.refresh("v")
    db.sql("INSERT INTO u VALUES (7, 7), (30000, 1)")
    db.refresh("v")
    event = next(e for e in db.events("v") if e["kind"] == "refresh")
    codes = {c["method"]: c["reasons"] for c in event["candidates"] if c["engine"] == "local"}
    assert (codes["ojv"], codes["im2"]) == ([ojv] if ojv else [], [im2] if im2 else [])
    told = {w["code"]: w for w in event["why_not"]}
    assert all(_is_whole(told[code]) for code in {ojv, im2} - {""})
    assert all(told[code]["at"].startswith(at) for code in {ojv, im2} - {""})
    assert db.verify("v").equal


def test_why_rows_of_files_are_gone(db: Warehouse, tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    folder.mkdir()
    for name in ("a", "b"):
        pq.write_table(pa.table({"k": [1, 2]}), folder / f"{name}.parquet")
    db.sql(f"CREATE TABLE files USING parquet OPTIONS (path '{folder}')")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, count(*) AS n FROM files GROUP BY k")
    db.refresh("v")
    (folder / "a.parquet").unlink()
    db.refresh("v")
    told = _last(db)["SOURCE_ROWS_GONE"]
    assert told["at"] == "Scan files"
    assert _is_whole(told)


def test_what_is_not_local_to_a_key_says_why(db: Warehouse) -> None:
    """Of what a budget has no room for, the budget is the reason."""
    for query, code in (
        ("SELECT sum(x) AS s FROM t", "STATE_NOT_KEPT"),
        ("SELECT k FROM t ORDER BY k LIMIT 2", "STATE_NOT_KEPT"),
        ("SELECT sum(x * 0.5D) AS s FROM t", "NO_GROUP_BY"),
        ("SELECT rank() OVER (ORDER BY x) AS r FROM t", "NO_PARTITION_BY"),
    ):
        world = World(db._house, db._house.catalog.snapshot(), defining=True)
        relation = bind(query, world.context())
        found = [n for n in relation.walk() if isinstance(n, Aggregate | TopK | Window)]
        assert [reason(node) for node in found] == [code]


def test_a_buffer_that_is_filled_again_is_told(db: Warehouse) -> None:
    db.append("t", pa.table({"k": list(range(500)), "x": list(range(500))}))
    db.sql(
        "CREATE MATERIALIZED VIEW v WITH (refresh = 'incremental') AS "
        "SELECT k, x FROM t ORDER BY k LIMIT 2"
    )
    db.refresh("v")
    db.sql("DELETE FROM t WHERE k < 400")
    db.refresh("v")
    told = _last(db)["BUFFER_REFILLED"]
    assert told["at"].startswith("TopK limit 2")
    assert _is_whole(told)
    assert db.verify("v").equal


OPAQUE = {
    "UNSUPPORTED_OPERATOR": ("SELECT * FROM t PIVOT (sum(x) FOR k IN (1, 2))", "PIVOT"),
    "TABLE_FUNCTION": ("SELECT id FROM range(3)", "RANGE"),
}


@pytest.mark.parametrize("code", OPAQUE)
def test_what_ends_the_algebra_is_told(spark: object, tmp_path: Path, code: str) -> None:
    query, at = OPAQUE[code]
    with slackwater.connect(tmp_path / "s", placement="auto") as db:
        for name in "tu":
            db.sql(f"CREATE TABLE {name} (k BIGINT, x BIGINT)")
            db.sql(f"INSERT INTO {name} VALUES (1, 1), (2, 2)")
        told = db.sql(f"CREATE MATERIALIZED VIEW v AS {query}").message
        assert told is not None
        assert f"[{code}] {REASONS[code].means}: {at}" in told
        db.refresh("v")
        event = next(e for e in db.events("v") if e["kind"] == "refresh")
        (local,) = [w for w in event["why_not"] if w["code"] == "NOT_PORTABLE"]
        assert local["at"] == f"Opaque ({code})"
        (view,) = db.status()["views"]
        assert code in {w["code"] for w in view["reasons"]}
        assert f"Reason: [{code}]" in db.explain("v")


@pytest.mark.parametrize(
    ("options", "code", "at"),
    [
        ("", "NO_SCHEDULE", "v"),
        ("WITH (schedule = 'every 100 rows')", "DUE_BY_ROWS", "schedule = 'every 100 rows'"),
        ("WITH (schedule = 'daily 06:00', refresh = 'full')", "REFRESH_FULL", "v"),
    ],
)
def test_why_a_view_has_no_pace(db: Warehouse, options: str, code: str, at: str) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v {options} AS {SUMS}")
    (told,) = db.plan().unpaced
    assert (told.reason, told.at, told.why) == (code, at, REASONS[code].means)
    assert told.rewrite == REASONS[code].rewrite
    (view,) = db.status()["views"]
    assert view["unpaced"] == {
        "code": code,
        "means": told.why,
        "at": at,
        "rewrite": told.rewrite,
    }


def test_status_tells_no_reason_of_a_view_that_has_a_pace(db: Warehouse) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v WITH (schedule = 'daily 06:00') AS {SUMS}")
    (view,) = db.status()["views"]
    assert view["unpaced"] is None


def test_a_strict_view_says_what_to_write_instead(db: Warehouse) -> None:
    query = OF_QUERIES["NO_PARTITION_BY"][0]
    db.sql(f"CREATE MATERIALIZED VIEW v WITH (refresh = 'incremental strict') AS {query}")
    db.refresh("v")
    db.sql("INSERT INTO t VALUES (4, 4)")
    with pytest.raises(UserError) as refused:
        db.refresh("v")
    assert REASONS["NO_PARTITION_BY"].rewrite in str(refused.value.hint)
