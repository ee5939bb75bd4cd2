"""The catalog's commit path and its snapshots, on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal as Dec
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, inspect, text

from slackwater.algebra.coercion import literal
from slackwater.catalog import constants, migrations, tables
from slackwater.catalog.database import Database
from slackwater.catalog.model import (
    AddColumns,
    AddSegments,
    AlterRelation,
    CompactSegments,
    CreateTable,
    CreateView,
    Drop,
    Event,
    Exists,
    FinishRun,
    LeaseIs,
    Measurement,
    NameIsFree,
    NotNeeded,
    ReplaceSegments,
    ReplaceView,
    RunIs,
    SetAsOf,
    Table,
    Update,
    VersionIs,
    WriteEvent,
)
from slackwater.catalog.store import Catalog
from slackwater.errors import InternalError, SlackwaterError, StateError, UserError
from slackwater.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    Field,
)
from tests.catalogs import BACKENDS, create, fresh_url, now, segment, table, view


@pytest.fixture(params=BACKENDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return fresh_url(request.param, tmp_path)


@pytest.fixture
def catalog(url: str) -> Iterator[Catalog]:
    with Catalog.open(url) as opened:
        yield opened


def test_a_table_and_a_view_come_back_as_they_were(catalog: Catalog) -> None:
    schema = (Field("amount", Decimal(12, 2), False), Field("n", INT))
    sales = table("Sales", options={"a": "b"}, defaults={"n": "1 + 1"})
    gross = view("gross", sales, sql="SELECT 1", as_of={sales.id: 3}, options={"within": "1 s"})
    object.__setattr__(sales, "schema", schema)
    assert create(catalog, sales, gross) == 1
    snapshot = catalog.snapshot()
    assert snapshot.commit == 1
    assert snapshot.tables() == (sales,)
    assert snapshot.views() == (gross,)
    assert snapshot.get(gross.id) == gross
    assert snapshot.dependents(sales.id) == (gross,)
    assert snapshot.dependents(gross.id) == ()


@pytest.mark.parametrize("name", ["../x", "a/b", "ä ß", "x" * 5000, "'; DROP TABLE head; --", "🌊"])
def test_any_name_is_just_a_name(catalog: Catalog, name: str) -> None:
    create(catalog, table(name))
    found = catalog.snapshot().find(name.upper())
    assert found is not None
    assert found.name == name


def test_names_do_not_differ_by_case(catalog: Catalog) -> None:
    create(catalog, table("Sales"))
    assert catalog.snapshot().find("sALES") is not None
    assert catalog.snapshot().find("sale") is None
    with pytest.raises(UserError, match="A table named 'Sales' exists") as error:
        create(catalog, table("SALES"))
    assert error.value.code == "NAME_TAKEN"


def test_a_commit_bumps_a_version_once(catalog: Catalog) -> None:
    sales = table("sales")
    first, second = segment("a"), segment("b")
    catalog.commit(
        updates=[
            CreateTable(sales),
            AddSegments(sales.id, (first,)),
            AddSegments(sales.id, (second,)),
        ]
    )
    snapshot = catalog.snapshot()
    assert snapshot.get(sales.id).version == 1
    assert [(s.path, s.version) for s in snapshot.segments(sales.id)] == [("a", 1), ("b", 1)]
    catalog.commit(updates=[ReplaceSegments(sales.id, ())])
    assert catalog.snapshot().get(sales.id).version == 2
    assert catalog.snapshot().segments(sales.id) == ()


def test_replacing_segments_keeps_those_named_again(catalog: Catalog) -> None:
    sales = table("sales")
    create(catalog, sales)
    catalog.commit(updates=[AddSegments(sales.id, (segment("a"), segment("b")))])
    catalog.commit(updates=[ReplaceSegments(sales.id, (segment("b"), segment("c")))])
    found = catalog.snapshot().segments(sales.id)
    assert [(s.path, s.version) for s in found] == [("b", 1), ("c", 2)]


def test_snapshots_stay_as_they_were(catalog: Catalog) -> None:
    sales, gross = table("sales"), view("gross")
    create(catalog, sales, gross)
    catalog.commit(updates=[AddSegments(sales.id, (segment("a"),))])
    before = catalog.snapshot()
    catalog.commit(
        updates=[
            ReplaceSegments(sales.id, (segment("b"),)),
            AlterRelation(gross.id, {"within": "2 s"}),
            SetAsOf(gross.id, {sales.id: 2}, now()),
        ]
    )
    catalog.commit(updates=[Drop(sales.id)])
    assert [s.path for s in before.segments(sales.id)] == ["a"]  # loaded after the changes
    assert before.get(gross.id).options == {}
    again = catalog.snapshot(before.commit)
    assert again.tables() == before.tables()
    assert again.segments(sales.id) == before.segments(sales.id)
    newest = catalog.snapshot()
    assert sales.id not in newest
    assert newest.get(gross.id).options == {"within": "2 s"}
    assert newest.views()[0].as_of == {sales.id: 2}


def test_a_dropped_name_is_free_again(catalog: Catalog) -> None:
    old, new = table("sales"), table("sales")
    create(catalog, old)
    catalog.commit(updates=[AddSegments(old.id, (segment("a"),))])
    catalog.commit(updates=[Drop(old.id), CreateTable(new)])
    found = catalog.snapshot().find("sales")
    assert found is not None
    assert (found.id, found.version) == (new.id, 0)
    assert catalog.snapshot().segments(new.id) == ()


def test_a_replaced_view_keeps_its_id_and_its_version_goes_on(catalog: Catalog) -> None:
    sales, gross = table("sales"), view("gross", sql="SELECT 1")
    create(catalog, sales, gross)
    catalog.commit(updates=[AddSegments(gross.id, (segment("a"),)), SetAsOf(gross.id, {}, now())])
    changed = view("gross", sales, sql="SELECT 2")
    object.__setattr__(changed, "id", gross.id)
    catalog.commit(updates=[ReplaceView(changed), ReplaceSegments(gross.id, ())])
    found = catalog.snapshot().views()[0]
    assert (found.sql, found.version, found.refreshed_at) == ("SELECT 2", 2, None)
    assert catalog.snapshot().dependents(sales.id) == (found,)


REQUIREMENTS = {
    "VERSION_CONFLICT": (StateError, lambda t, v: VersionIs(t.id, 7), "is at version 0"),
    "LEASE_LOST": (StateError, lambda t, v: LeaseIs("x", 1), "lease on 'x'"),
    "RUN_REVOKED": (StateError, lambda t, v: RunIs("r", "x"), "not known"),
    "NAME_TAKEN": (UserError, lambda t, v: NameIsFree("GROSS"), "A view named 'gross'"),
    "RELATION_GONE": (StateError, lambda t, v: Exists("nobody"), "does not exist any more"),
    "STILL_NEEDED": (UserError, lambda t, v: NotNeeded(t.id), "'sales' is needed by: gross"),
}


@pytest.mark.parametrize("code", REQUIREMENTS)
def test_a_requirement_that_fails_changes_nothing(catalog: Catalog, code: str) -> None:
    sales = table("sales")
    gross = view("gross", sales)
    create(catalog, sales, gross)
    kind, requirement, message = REQUIREMENTS[code]
    with pytest.raises(kind, match=message) as error:
        catalog.commit([requirement(sales, gross)], [CreateTable(table("new"))])
    assert error.value.code == code
    assert error.value.hint
    assert catalog.snapshot().commit == 1
    assert catalog.snapshot().find("new") is None


def test_columns_are_added_from_a_commit_on(catalog: Catalog) -> None:
    sales = table("sales", defaults={"name": "'x'"})
    create(catalog, sales)
    old = replace(segment("old"), width=2)
    catalog.commit(updates=[AddSegments(sales.id, (segment("first"), old))])
    before = catalog.snapshot()
    columns = (Field("price", Decimal(5, 2)), Field("at", TIMESTAMP))
    fills = {"price": literal(Dec("1.50"), Decimal(5, 2)), "at": literal(None, TIMESTAMP)}
    catalog.commit(updates=[AddColumns(sales.id, columns, fills, {"price": "1.5"})])
    more = AddColumns(sales.id, (Field("n", INT, False),), {"n": literal(7, INT)}, {"n": "7"})
    new = replace(segment("new"), width=4)
    catalog.commit(updates=[AddSegments(sales.id, (new,)), more])
    found = catalog.snapshot().get(sales.id)
    assert isinstance(found, Table)
    assert found.schema == (*sales.schema, *columns, *more.columns)
    assert (found.version, found.first_width) == (2, 2)
    assert found.defaults == {"name": "'x'", "price": "1.5", "n": "7"}
    missing = {s.path: dict(s.missing) for s in catalog.snapshot().segments(sales.id)}
    everything = fills | more.fills
    assert missing == {"first": everything, "old": everything, "new": dict(more.fills)}
    again = catalog.snapshot(before.commit)
    assert again.get(sales.id) == before.get(sales.id)
    assert [s.missing for s in again.segments(sales.id)] == [{}, {}]


@pytest.mark.parametrize("name", ["NAME", "n"])
def test_columns_that_cannot_be_added_are_our_mistake(catalog: Catalog, name: str) -> None:
    sales = table("sales")
    create(catalog, sales)
    with pytest.raises(InternalError):
        catalog.commit(updates=[AddColumns(sales.id, (Field(name, INT),), {"N": literal(1)})])


CONSTANTS: list[tuple[Any, DataType]] = [
    (None, STRING),
    (True, BOOLEAN),
    (-5, BIGINT),
    ("naïve 'text'\0\n", STRING),
    (0.1, DOUBLE),
    (float("-inf"), FLOAT),
    (Dec("-0.10"), Decimal(38, 2)),
    (b"\x00\xff", BINARY),
    (date(1, 1, 1), DATE),
    (datetime(2020, 2, 29, 23, 59, 59, 999_999, tzinfo=UTC), TIMESTAMP),
    (datetime(2020, 2, 29, 1), TIMESTAMP_NTZ),
]


@pytest.mark.parametrize(("value", "type"), CONSTANTS, ids=lambda x: str(x)[:20])
def test_constants_come_back_as_they_were(value: Any, type: DataType) -> None:
    assert constants.is_kept(type)
    kept = json.loads(json.dumps(constants.to_json(literal(value, type)), allow_nan=False))
    assert constants.from_json(kept, type) is literal(value, type)


def test_an_update_that_fails_undoes_those_before_it(catalog: Catalog) -> None:
    create(catalog, table("sales"))
    with pytest.raises(SlackwaterError):
        catalog.commit(updates=[CreateTable(table("new")), CreateTable(table("sales"))])
    assert catalog.snapshot().commit == 1
    assert catalog.snapshot().find("new") is None


def test_changing_what_was_dropped_is_refused(catalog: Catalog) -> None:
    sales = table("sales")
    create(catalog, sales)
    catalog.commit(updates=[Drop(sales.id)])
    changes = [
        AddSegments(sales.id, (segment("a"),)),
        AlterRelation(sales.id, {}),
        AddColumns(sales.id, (), {}),
        SetAsOf(sales.id, {}, now()),
        Drop(sales.id),
        CreateView(view("gross", sales)),
    ]
    for change in changes:
        with pytest.raises(StateError, match="'sales' does not exist any more"):
            catalog.commit(updates=[change])
    with pytest.raises(StateError, match="'sales' was dropped"):
        catalog.commit([VersionIs(sales.id, 0)])


def test_events_measurements_and_settings_are_kept(catalog: Catalog) -> None:
    run = catalog.begin_run("refresh", None)
    cost = Measurement("sum", "local", 0.5, 0.25, 7, 70)
    first, second = Event("refresh", "v1", now(), {"mode": "full"}), Event("drop", None, now())
    catalog.commit(
        [run.requirement], [WriteEvent(first), WriteEvent(second), FinishRun(run.id, (cost,))]
    )
    assert catalog.events() == (second, first)
    assert catalog.events(relation="v1") == (first,)
    assert catalog.events(kind="drop") == (second,)
    assert catalog.events(limit=1) == (second,)
    assert catalog.measurements(run.id) == (cost,)
    catalog.set_setting("price", {"night": 0.5})
    catalog.set_setting("price", {"night": 0.25})
    assert catalog.get_setting("price") == {"night": 0.25}
    catalog.set_setting("price", None)
    assert catalog.settings() == {}


def test_a_run_commits_once(catalog: Catalog) -> None:
    run = catalog.begin_run("ingest", None)
    assert run.directory == f"data/{run.id}"
    assert catalog.runs()[0].state == "open"
    catalog.commit([run.requirement], [FinishRun(run.id)])
    assert catalog.runs()[0].state == "committed"
    with pytest.raises(StateError) as error:
        catalog.commit([run.requirement])
    assert error.value.code == "RUN_REVOKED"
    with pytest.raises(StateError):
        catalog.commit(updates=[FinishRun(run.id)])


def test_a_run_that_raises_is_given_up(catalog: Catalog) -> None:
    with pytest.raises(ValueError, match="bad row"), catalog.running("ingest") as run:
        raise ValueError("bad row")
    record = catalog.runs()[0]
    assert (record.id, record.state, record.error) == (run.id, "aborted", "ValueError: bad row")
    with catalog.running("ingest") as done:
        catalog.commit([done.requirement], [FinishRun(done.id)])
    assert catalog.runs()[0].state == "committed"


def test_files_of_an_ended_run_cannot_be_committed(catalog: Catalog) -> None:
    sales, copy = table("sales"), table("copy")
    create(catalog, sales, copy)
    given_up = catalog.begin_run("ingest")
    catalog.abort_run(given_up, "changed my mind")
    with pytest.raises(StateError) as error:
        catalog.commit(updates=[AddSegments(sales.id, (segment(f"{given_up.directory}/a"),))])
    assert error.value.code == "RUN_REVOKED"
    done = catalog.begin_run("ingest")
    kept = segment(f"{done.directory}/a")
    catalog.commit(updates=[FinishRun(done.id), AddSegments(sales.id, (kept,))])
    catalog.commit(updates=[AddSegments(copy.id, (kept,))])
    with pytest.raises(StateError):
        catalog.commit(updates=[AddSegments(copy.id, (segment(f"{done.directory}/b"),))])


def test_two_threads_never_get_the_same_version(url: str) -> None:
    with Catalog.open(url) as one, Catalog.open(url) as two:
        sales = table("sales")
        create(one, sales)
        won: list[int] = []
        lost: list[str] = []

        def count(catalog: Catalog) -> None:
            while (version := catalog.snapshot().get(sales.id).version) < 30:
                new = segment(f"{version}-{id(catalog)}")
                try:
                    catalog.commit([VersionIs(sales.id, version)], [AddSegments(sales.id, (new,))])
                except StateError as error:
                    lost.append(error.code)
                else:
                    won.append(version)

        threads = [threading.Thread(target=count, args=(c,)) for c in (one, two)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(won) == list(range(30))
        assert set(lost) <= {"VERSION_CONFLICT"}
        assert len(one.snapshot().segments(sales.id)) == 30


def test_thousands_of_segments_are_replaced_in_one_commit(catalog: Catalog) -> None:
    sales = table("sales")
    create(catalog, sales)
    many = tuple(segment(f"s{i}") for i in range(2500))
    catalog.commit(updates=[AddSegments(sales.id, many)])
    catalog.commit(updates=[ReplaceSegments(sales.id, (segment("one"),))])
    assert [s.path for s in catalog.snapshot().segments(sales.id)] == ["one"]
    assert len(catalog.snapshot(2).segments(sales.id)) == 2500


def test_a_snapshot_of_the_future_is_refused(catalog: Catalog) -> None:
    for ask in (catalog.snapshot, catalog.pin):
        with pytest.raises(StateError) as error:
            ask(1)
        assert error.value.code == "NO_SUCH_COMMIT"


def test_an_unchanged_catalog_gives_the_same_snapshot(catalog: Catalog) -> None:
    assert catalog.snapshot() is catalog.snapshot()


def test_of_a_later_snapshot_only_what_changed_is_read(catalog: Catalog) -> None:
    known = [table(f"t{i}") for i in range(5)]
    create(catalog, *known)
    catalog.commit(updates=[AddSegments(t.id, (segment(f"{t.id}.1"),)) for t in known])
    before = {t.id: catalog.snapshot().segments(t.id) for t in known}
    new = table("new")
    create(catalog, new)
    catalog.commit(
        updates=[
            AddSegments(known[0].id, (segment("more"),)),
            ReplaceSegments(known[1].id, (segment("other"),)),
            AddSegments(new.id, (segment("first"),)),
            Drop(known[2].id),
        ]
    )
    read: list[str] = []
    engine = catalog._database._engine
    event.listen(engine, "before_cursor_execute", lambda *args: read.append(args[2]))
    after = catalog.snapshot()
    paths = {id: [s.path for s in after.segments(id)] for id in after.stored()}
    assert paths == {
        known[0].id: [f"{known[0].id}.1", "more"],
        known[1].id: ["other"],
        known[3].id: [f"{known[3].id}.1"],
        known[4].id: [f"{known[4].id}.1"],
        new.id: ["first"],
    }
    assert after.segments(known[4].id) == before[known[4].id]
    assert len(read) == 5  # the newest commit twice, relations, those closed, segments


def test_rows_that_came_are_counted_once_whatever_becomes_of_them(catalog: Catalog) -> None:
    sales = table("sales")
    create(catalog, sales)

    def arrived(*updates: Update) -> int:
        catalog.commit(updates=updates)
        found = catalog.snapshot().get(sales.id)
        assert isinstance(found, Table)
        return found.arrived_rows

    first, second = segment("first", 5), segment("second", 3)
    assert arrived(AddSegments(sales.id, (first,)), AddSegments(sales.id, (second,))) == 8
    assert arrived(CompactSegments(sales.id, (first, second), (segment("both", 2),))) == 8
    assert arrived(AddSegments(sales.id, (segment("third", 4),))) == 12
    assert arrived(ReplaceSegments(sales.id, (segment("third", 4), segment("new", 1)))) == 13
    assert arrived(ReplaceSegments(sales.id, ())) == 13


def test_what_is_stored_in_an_older_catalog_has_come(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr(migrations, "MIGRATIONS", migrations.MIGRATIONS[:6])
        older.setattr(migrations, "NEWEST", 6)
        Catalog.open(url).close()
    database = Database(url)
    with database.writing() as connection:
        for statement in _OLDER:
            connection.execute(text(statement))
    database.close()
    with Catalog.open(url) as catalog, catalog._database.reading() as connection:
        arrived = "SELECT relation_id, arrived_rows FROM versions ORDER BY relation_id"
        assert connection.execute(text(arrived)).all() == [("empty", 0), ("sales", 12)]


_SEGMENT = "INSERT INTO segments VALUES ({}, 'sales', '{}', {}, 1, 1, 1, 1, '{{}}', 1, {}, 1, 1)"
_OLDER = (
    "INSERT INTO relations VALUES ('sales', 'table', NULL), ('empty', 'table', NULL)",
    "INSERT INTO versions VALUES (1, 'sales', 2, '{}', NULL, 1, NULL, 0)",
    "INSERT INTO versions VALUES (2, 'empty', 0, '{}', NULL, 1, NULL, 0)",
    _SEGMENT.format(1, "a", 5, "NULL"),
    _SEGMENT.format(2, "b", 7, "NULL"),
    _SEGMENT.format(3, "c", 9, "2"),
)


@pytest.mark.parametrize(("as_of", "tells"), [(1, True), (2, False), (3, False), (4, True)])
def test_who_has_read_half_of_what_a_merge_leaves_nothing_of_is_told(
    catalog: Catalog, as_of: int, tells: bool
) -> None:
    sales = table("sales")
    reader = view("reader", sales, as_of={sales.id: as_of})
    create(catalog, sales, reader)
    parts = [segment(path) for path in ("one", "two", "three", "four")]
    for part in parts:
        catalog.commit(updates=[AddSegments(sales.id, (part,))])
    stored = catalog.snapshot().segments(sales.id)
    catalog.commit(updates=[CompactSegments(sales.id, stored[1:], ())])
    assert catalog.snapshot().tells_changes(sales.id, as_of) == tells


def test_reopening_changes_nothing(url: str) -> None:
    with Catalog.open(url) as catalog:
        create(catalog, table("sales"))
    with Catalog.open(url) as catalog:
        assert catalog.snapshot().commit == 1
        assert catalog.snapshot().find("sales") is not None


def test_many_may_create_the_catalog_at_once(url: str) -> None:
    opened: list[Catalog] = []
    threads = [threading.Thread(target=lambda: opened.append(Catalog.open(url))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 6
    for catalog in opened:
        assert catalog.snapshot().commit == 0
        catalog.close()


def test_migrations_leave_the_tables_the_code_expects(catalog: Catalog) -> None:
    assert [m.version for m in migrations.MIGRATIONS] == list(range(1, migrations.NEWEST + 1))
    with catalog._database.reading() as connection:
        found = inspect(connection)
        assert set(found.get_table_names()) == set(tables.metadata.tables)
        for name, expected in tables.metadata.tables.items():
            columns = {c["name"]: c["nullable"] for c in found.get_columns(name)}
            wanted = {c.name: bool(c.nullable) for c in expected.columns}
            keys = {c.name for c in expected.primary_key}
            assert columns.keys() == wanted.keys(), name
            assert all(columns[c] == wanted[c] for c in wanted if c not in keys), name


def test_a_catalog_from_newer_code_is_refused(url: str) -> None:
    with Catalog.open(url) as catalog, catalog._database.writing() as connection:
        connection.execute(text("INSERT INTO schema_version VALUES (99, 'future', 'then')"))
    with pytest.raises(StateError, match="version 99") as error:
        Catalog.open(url)
    assert error.value.code == "CATALOG_TOO_NEW"


def test_sqlite_is_set_up_to_lose_nothing(tmp_path: Path) -> None:
    pragmas = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
    url = f"sqlite:///{tmp_path}/c.db"
    with Catalog.open(url) as catalog, catalog._database.reading() as connection:
        found = [connection.exec_driver_sql(f"PRAGMA {p}").scalar() for p in pragmas]
    assert found == ["wal", 2, 1, 30_000]


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        ("nonsense", "BAD_CATALOG_URL"),
        ("mysql://x/y", "BAD_CATALOG_URL"),
        ("sqlite://", "BAD_CATALOG_URL"),
        ("sqlite:///:memory:", "BAD_CATALOG_URL"),
        ("sqlite:////nowhere/at/all/c.db", "CATALOG_UNAVAILABLE"),
        ("postgresql://tester:secret@/x?host=/nowhere/at/all", "CATALOG_UNAVAILABLE"),
    ],
)
def test_a_catalog_that_cannot_be_opened_says_why(bad: str, code: str) -> None:
    with pytest.raises(SlackwaterError) as error:
        Catalog.open(bad)
    assert error.value.code == code
    assert error.value.hint
    assert "secret" not in str(error.value)


def test_a_file_that_is_no_catalog_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "c.db").write_text("something else, and long enough to be looked at" * 50)
    with pytest.raises(StateError) as error:
        Catalog.open(f"sqlite:///{tmp_path}/c.db")
    assert error.value.code == "CATALOG_UNREADABLE"


def test_a_catalog_that_stays_locked_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slackwater.catalog.database.BUSY_SECONDS", 0.2)
    with Catalog.open(f"sqlite:///{tmp_path}/c.db") as catalog:
        other = sqlite3.connect(tmp_path / "c.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert catalog.snapshot().commit == 0  # readers do not wait
        with pytest.raises(StateError) as error:
            create(catalog, table("sales"))
        other.close()
        assert error.value.code == "CATALOG_BUSY"
        assert create(catalog, table("sales")) == 1
