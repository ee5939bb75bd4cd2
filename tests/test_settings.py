"""ALTER … SET and RESET of views and of the warehouse, SHOW SETTINGS, and what holds then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import slackwater
from slackwater import Warehouse
from slackwater.catalog.model import View
from slackwater.errors import UserError
from slackwater.work.goals import effective_options, refresh_mode

ALL = {
    "prices": "0.25 from 22:00 to 06:00",
    "schedule": "every 10 minutes",
    "within": "0.1x",
    "refresh": "full",
    "state_budget": "2 GB",
}


def options(db: Warehouse, name: str = "v") -> dict[str, str]:
    found = db.catalog.snapshot().find(name)
    assert isinstance(found, View)
    return dict(found.options)


def settings(db: Warehouse) -> dict[str, str]:
    rows = db.sql("SHOW SETTINGS").to_arrow().to_pylist()
    return {row["name"]: row["value"] for row in rows if row["value"] is not None}


@pytest.fixture
def views(tmp_path: Path) -> Iterator[Warehouse]:
    """Opened without a word on how views are refreshed."""
    with slackwater.connect(tmp_path / "plain", placement="local") as db:
        _define(db)
        yield db


def _define(db: Warehouse) -> None:
    db.sql("CREATE TABLE t (a INT)")
    db.sql("INSERT INTO t VALUES (1), (2)")
    db.sql("CREATE MATERIALIZED VIEW v WITH (within = '5 s') AS SELECT SUM(a) AS s FROM t")
    db.sql("CREATE MATERIALIZED VIEW own WITH (refresh = 'incremental') AS SELECT a FROM t")


def test_options_of_a_view_are_set_and_taken_back(views: Warehouse) -> None:
    views.sql(
        "ALTER MATERIALIZED VIEW v SET (schedule = 'daily 06:00', within = '30 seconds', "
        "state_budget = '2 GB', refresh = 'Incremental')"
    )
    assert options(views) == {
        "schedule": "daily 06:00",
        "within": "30 seconds",
        "state_budget": "2 GB",
        "refresh": "Incremental",
    }
    views.sql("ALTER MATERIALIZED VIEW v SET (refresh = '', Schedule = '0 6 * * 1-5')")
    told = views.sql("ALTER VIEW v RESET (within, state_budget)").message
    assert "within taken back" in told
    assert options(views) == {"schedule": "0 6 * * 1-5"}
    event = views.history("v")[0]
    assert event["options"] == {"within": None, "state_budget": None}


def test_a_view_on_columns_of_its_own_keeps_them(db: Warehouse) -> None:
    db.sql("CREATE TABLE t (a INT)")
    db.sql("CREATE MATERIALIZED VIEW v (x) WITH (within = '5 s', refresh = '') AS SELECT a FROM t")
    db.sql("ALTER VIEW v RESET (within)")
    assert options(db) == {"columns": "x"}
    db.refresh("v")
    assert db.sql("SELECT x FROM v").fetchall() == []


def test_settings_are_shown_kept_and_taken_back(views: Warehouse) -> None:
    assert settings(views) == {}
    said = ", ".join(f"{name} = '{value}'" for name, value in ALL.items())
    views.sql(f"ALTER WAREHOUSE SET ({said})")
    assert settings(views) == ALL
    with slackwater.connect(views.path, placement="local") as again:
        assert settings(again) == ALL
        again.sql("ALTER WAREHOUSE RESET (within, prices)")
        again.sql("ALTER WAREHOUSE SET (state_budget = '')")
    assert settings(views) == {n: ALL[n] for n in ("schedule", "refresh")}
    assert views.history()[0]["settings"] == {"state_budget": None}


WRONG = {
    "ALTER WAREHOUSE SET (price = '1')": ("UNKNOWN_OPTION", "'price' of the warehouse", "prices"),
    "ALTER WAREHOUSE RESET (speed)": ("UNKNOWN_OPTION", "'speed'", "within"),
    "ALTER WAREHOUSE SET (prices = 'low')": ("BAD_OPTION", "prices = 'low'", "from 22:00"),
    "ALTER WAREHOUSE SET (refresh = 'no')": ("BAD_OPTION", "of the warehouse", "'full'"),
    "ALTER VIEW v SET (prices = '1')": ("UNKNOWN_OPTION", "'prices' of view 'v'", "within"),
    "ALTER VIEW v RESET (prices)": ("UNKNOWN_OPTION", "'prices' of view 'v'", "within"),
    "ALTER VIEW v SET (schedule = 'daily 25:00')": ("BAD_OPTION", "no time of day", "23"),
    "ALTER VIEW v SET (within = '0 seconds')": ("BAD_OPTION", "leaves no time", "'30 seconds'"),
    "ALTER WAREHOUSE": ("SYNTAX_ERROR", "SET or RESET is expected", "README"),
    "ALTER WAREHOUSE SET (refresh = 'full') now": ("SYNTAX_ERROR", "nothing more", "README"),
    "SHOW EVERYTHING": ("SYNTAX_ERROR", "SETTINGS is expected", "README"),
}


@pytest.mark.parametrize("statement", WRONG)
def test_a_wrong_setting_changes_nothing_and_says_why(views: Warehouse, statement: str) -> None:
    commit = views.catalog.snapshot().commit
    code, message, hint = WRONG[statement]
    with pytest.raises(UserError) as error:
        views.sql(statement)
    assert error.value.code == code
    assert message in error.value.message
    assert hint in error.value.hint
    assert views.catalog.snapshot().commit == commit


def test_settings_do_not_change_inside_a_transaction(views: Warehouse) -> None:
    with pytest.raises(UserError) as error, views.transaction():
        views.sql("ALTER WAREHOUSE SET (refresh = 'full')")
    assert error.value.code == "IN_TRANSACTION"


def test_a_view_that_does_not_say_goes_by_the_warehouse(views: Warehouse) -> None:
    views.sql("ALTER WAREHOUSE SET (within = '1 min', refresh = 'full', prices = '2')")
    snapshot = views.catalog.snapshot()
    found = {v.name: effective_options(v, snapshot.settings) for v in snapshot.views()}
    assert found == {
        "v": {"within": "5 s", "refresh": "full"},
        "own": {"within": "1 min", "refresh": "incremental"},
    }


def modes(db: Warehouse) -> dict[str, str]:
    db.sql("INSERT INTO t VALUES (3)")
    return {r.view: r.mode for r in db.refresh()}


def test_refreshes_go_by_the_settings(views: Warehouse) -> None:
    views.refresh()
    views.sql("ALTER WAREHOUSE SET (refresh = 'full')")
    assert modes(views) == {"v": "full", "own": "incremental"}
    views.sql("ALTER WAREHOUSE SET (refresh = 'incremental')")
    modes(views)  # a full refresh left nothing to go on from
    assert modes(views) == {"v": "incremental", "own": "incremental"}
    views.sql("ALTER WAREHOUSE RESET (refresh)")
    views.sql("ALTER VIEW own SET (refresh = 'full')")
    assert modes(views)["own"] == "full"
    assert views.verify("v").equal
    assert views.verify("own").equal


@pytest.mark.parametrize(
    ("own", "opened", "stored", "mode"),
    [
        ("FULL", "incremental", "auto", "full"),
        (None, "incremental", "full", "incremental"),
        (None, "auto", "full", "full"),
        (None, "auto", None, "auto"),
        ("auto", "full", "full", "auto"),
    ],
)
def test_the_nearest_word_on_refreshes_counts(
    own: str | None, opened: str, stored: str | None, mode: str
) -> None:
    said: dict[str, Any] = {"refresh": own} if own else {}
    kept = {"refresh": stored} if stored else {}
    assert refresh_mode(View("v", "v", (), options=said), kept, opened) == mode
