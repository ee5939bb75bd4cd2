"""Settings of the warehouse and options of relations in the catalog, on SQLite and PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import func, select

from slackwater.catalog.migrations import MIGRATIONS
from slackwater.catalog.model import ChangeOptions, CreateTable, SetSettings
from slackwater.catalog.store import Catalog
from slackwater.catalog.tables import warehouse_settings
from slackwater.errors import StateError, UserError
from tests.catalogs import BACKENDS, create, fresh_url, table, view


@pytest.fixture(params=BACKENDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return fresh_url(request.param, tmp_path)


@pytest.fixture
def catalog(url: str) -> Iterator[Catalog]:
    with Catalog.open(url) as opened:
        yield opened


def test_settings_are_seen_by_the_snapshots_they_were_made_for(catalog: Catalog) -> None:
    steps: list[dict[str, str | None]] = [
        {"prices": "1", "within": "1 s"},
        {"prices": "2"},
        {"within": None, "refresh": "full"},
        {"within": None},
        {},
    ]
    expected: list[dict[str, str]] = [{}]
    for changes in steps:
        catalog.commit(updates=[SetSettings(changes)])
        merged = {**expected[-1], **changes}
        expected.append({name: value for name, value in merged.items() if value is not None})
    assert dict(catalog.snapshot().settings) == {"prices": "2", "refresh": "full"}
    found = [dict(catalog.snapshot(commit).settings) for commit in range(len(expected))]
    assert found == expected


def test_settings_are_carried_over_until_they_change(catalog: Catalog) -> None:
    catalog.commit(updates=[SetSettings({"a": "1"})])
    first = catalog.snapshot().settings
    create(catalog, table("sales"))
    later = catalog.snapshot()
    assert later.knows_settings
    assert later.settings is first
    catalog.commit(updates=[SetSettings({"a": None, "b": "2"})])
    assert not catalog.snapshot().knows_settings
    assert dict(catalog.snapshot().settings) == {"b": "2"}


def test_a_setting_that_is_set_twice_in_one_commit_is_the_last(catalog: Catalog) -> None:
    catalog.commit(updates=[SetSettings({"a": "1", "b": "1"}), SetSettings({"a": "2", "b": None})])
    assert dict(catalog.snapshot().settings) == {"a": "2"}


def test_settings_of_a_refused_commit_are_not_there(catalog: Catalog) -> None:
    sales = table("sales")
    create(catalog, sales)
    with pytest.raises(UserError):
        catalog.commit(updates=[SetSettings({"a": "1"}), CreateTable(table("sales"))])
    assert dict(catalog.snapshot().settings) == {}


def test_settings_stay_when_the_catalog_is_opened_again(url: str) -> None:
    with Catalog.open(url) as catalog:
        catalog.commit(updates=[SetSettings({"prices": "0.5"})])
    with Catalog.open(url) as catalog:
        assert dict(catalog.snapshot().settings) == {"prices": "0.5"}
        assert catalog.settings() == {}, "what we keep for ourselves is something else"


def test_what_no_snapshot_sees_any_more_is_forgotten(catalog: Catalog) -> None:
    for value in "12345":
        catalog.commit(updates=[SetSettings({"a": value, "b": None})])
    old = catalog.snapshot(3)
    horizon = catalog.collection.advance_horizon(0.0)
    catalog.collection.forget_history(horizon)
    assert dict(catalog.snapshot().settings) == {"a": "5"}
    with catalog._database.reading() as connection:
        rows = connection.scalar(select(func.count()).select_from(warehouse_settings))
    assert rows == 1
    with pytest.raises(StateError):
        dict(old.settings)


def test_two_writers_of_different_settings_both_hold(url: str) -> None:
    with Catalog.open(url) as one, Catalog.open(url) as two:
        sales = table("sales")
        gross = view("gross", sales, options={"kept": "1"})
        create(one, sales, gross)

        def write(catalog: Catalog, name: str) -> None:
            for value in range(20):
                changes = {name: str(value), "both": f"{name}{value}"}
                catalog.commit(updates=[SetSettings(changes), ChangeOptions(gross.id, changes)])

        threads = [
            threading.Thread(target=write, args=pair) for pair in ((one, "first"), (two, "second"))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        settings = dict(one.snapshot().settings)
        assert settings.pop("both") in ("first19", "second19")
        assert settings == {"first": "19", "second": "19"}
        assert dict(two.snapshot().get(gross.id).options) == {
            "kept": "1",
            **one.snapshot().settings,
        }


def test_options_are_changed_one_by_one(catalog: Catalog) -> None:
    sales = table("sales", options={"a": "1", "b": "2"})
    create(catalog, sales)
    catalog.commit(updates=[ChangeOptions(sales.id, {"b": None, "c": "3", "d": None})])
    assert dict(catalog.snapshot().get(sales.id).options) == {"a": "1", "c": "3"}
    assert dict(catalog.snapshot(1).get(sales.id).options) == {"a": "1", "b": "2"}
    with pytest.raises(StateError) as error:
        catalog.commit(updates=[ChangeOptions("nobody", {"a": "1"})])
    assert error.value.code == "RELATION_GONE"


def test_an_older_catalog_gets_the_table(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    older = tuple(m for m in MIGRATIONS if m.name != "settings")[:4]
    monkeypatch.setattr("slackwater.catalog.migrations.MIGRATIONS", older)
    with Catalog.open(url) as catalog:
        catalog.set_setting("known", 1)
    monkeypatch.undo()
    with Catalog.open(url) as catalog:
        assert dict(catalog.snapshot().settings) == {}
        catalog.commit(updates=[SetSettings({"a": "1"})])
        assert dict(catalog.snapshot().settings) == {"a": "1"}
        assert catalog.get_setting("known") == 1
