"""Wrong options, and definitions that others need: the message names the thing and the way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import slackwater
from slackwater import Warehouse
from slackwater.errors import UserError

VIEW = "CREATE MATERIALIZED VIEW x WITH ({}) AS SELECT a FROM t"
WRONG = {
    VIEW.format("schedul = 'manual'"): ("UNKNOWN_OPTION", "'schedul' of view 'x'", "schedule"),
    VIEW.format("schedule = 'sometimes'"): ("BAD_OPTION", "'sometimes'", "'daily 06:00'"),
    VIEW.format("within = 'soon'"): ("BAD_OPTION", "within = 'soon'", "'30 seconds'"),
    VIEW.format("refresh = 'strict'"): ("BAD_OPTION", "refresh = 'strict'", "'incremental strict'"),
    VIEW.format("state_budget = 'much'"): ("BAD_OPTION", "'much'", "'2 GB'"),
    VIEW.replace("WITH", "TBLPROPERTIES").format("refresh = 'full'"): (
        "SYNTAX_ERROR",
        "near 'TBLPROPERTIES': options are written WITH (",
        "README",
    ),
    "ALTER MATERIALIZED VIEW v SET (refresh = 'never')": ("BAD_OPTION", "'never'", "'full'"),
    "ALTER MATERIALIZED VIEW v SET (speed = 'high')": ("UNKNOWN_OPTION", "'speed'", "within"),
    "DROP TABLE t": ("STILL_NEEDED", "'t' is needed by: v", "Drop those views first."),
    "DROP TABLE v": ("WRONG_KIND", "'v' is a view", "DROP MATERIALIZED VIEW"),
    "DROP VIEW t": ("WRONG_KIND", "'t' is a table", "DROP TABLE"),
}


@pytest.mark.parametrize("statement", WRONG)
def test_a_wrong_definition_changes_nothing_and_says_why(db: Warehouse, statement: str) -> None:
    db.sql("CREATE TABLE t (a INT)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
    commit = db.catalog.snapshot().commit
    code, message, hint = WRONG[statement]
    with pytest.raises(UserError) as error:
        db.sql(statement)
    assert error.value.code == code
    assert message in error.value.message
    assert hint in error.value.hint
    assert db.catalog.snapshot().commit == commit


@pytest.mark.parametrize(
    ("settings", "code"),
    [({"placemant": "local"}, "UNKNOWN_OPTION"), ({"placement": "here"}, "BAD_OPTION")],
)
def test_a_wrong_setting_makes_no_warehouse(
    tmp_path: Path, settings: dict[str, Any], code: str
) -> None:
    with pytest.raises(UserError) as error:
        slackwater.connect(tmp_path / "w", **settings)
    assert error.value.code == code
    assert "local" in error.value.hint or "placement" in error.value.hint
    assert not (tmp_path / "w").exists()
