"""Refreshes are done the way that costs least, and say which ways there were."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater
from slackwater import Warehouse
from slackwater.algebra.expr import Call, Column, Literal, columns
from slackwater.algebra.relation import Filter, Join, Project, Scan
from slackwater.errors import UserError
from slackwater.planner import choice
from slackwater.planner.choice import FULL, HIGHER_ORDER, INCREMENTAL, METHODS, PLAIN, Candidate
from slackwater.stats.cost import KINDS, PRIOR, Model
from slackwater.stats.profile import Profile, Profiles, asked
from slackwater.stats.recall import Past
from slackwater.stats.rows import Estimates, Rows
from slackwater.types import BIGINT, BOOLEAN, STRING, Field
from slackwater.work import choosing

ROWS = 600_000
VIEW = """
  SELECT c.region, COUNT(*) AS n, SUM(o.amount) AS total
  FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.region"""

LARGEST = f"SELECT * FROM ({VIEW.replace('SUM', 'MAX')}) WHERE total > 0"
"""Not invertible: of groups that a change touches, all rows are read."""
EVERY_GROUP = 1_000
"""Orders that touch each group."""

FILTERS = {
    "alike": "name LIKE '%7'",
    "between": "id >= 10000 AND id < 11000",
    "both": "id < 11000 AND name LIKE '%7' AND id >= 10000",
}


def _orders(start: int, rows: int) -> pa.Table:
    ids = np.arange(start, start + rows)
    return pa.table({"id": ids, "customer": ids % 1000, "amount": ids % 97})


def _fill(db: Warehouse, rows: int = ROWS) -> None:
    db.sql("CREATE TABLE customers (id BIGINT, region STRING)")
    db.sql("CREATE TABLE orders (id BIGINT, customer BIGINT, amount BIGINT)")
    regions = [f"r{i % 10}" for i in range(1000)]
    db.append("customers", pa.table({"id": np.arange(1000), "region": regions}))
    db.append("orders", _orders(0, rows))


def _last(db: Warehouse, view: str = "v") -> dict[str, Any]:
    return next(e for e in db.events(view) if e["kind"] == "refresh")


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Warehouse]:
    with slackwater.connect(tmp_path / "w", placement="local") as db:
        _fill(db)
        db.sql(f"CREATE MATERIALIZED VIEW v AS {VIEW}")
        db.refresh("v")
        yield db


def test_a_small_change_is_followed(filled: Warehouse) -> None:
    filled.append("orders", _orders(ROWS, 10))
    assert filled.refresh("v")[0].mode == "incremental"
    assert filled.verify("v").equal


@pytest.fixture
def largest(filled: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    """Where every bit counts, since the table is small."""
    monkeypatch.setattr(choice, "TIE", 0.0)
    filled.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {LARGEST}")
    filled.refresh("v")
    return filled


def test_after_a_large_change_the_view_is_computed_anew_and_nothing_kept(
    largest: Warehouse,
) -> None:
    largest.append("orders", _orders(ROWS, EVERY_GROUP))
    report = largest.refresh("v")[0]
    assert (report.mode, report.reasons) == ("full", ["CHANGE_TOO_LARGE"])
    assert largest.verify("v").equal
    assert largest.status()["views"][0]["states"] == []
    assert _last(largest)["chosen"]["method"] == PLAIN


def test_states_come_back_when_following_changes_pays_again(
    largest: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    largest.append("orders", _orders(ROWS, EVERY_GROUP))
    largest.refresh("v")
    dear = tuple(1e-5 if kind == "hashed" else 0.0 for kind in KINDS)
    largest._house.experience._model = Model(PRIOR | {("local", "cpu"): dear})
    monkeypatch.setattr(Past, "by", lambda *_: ())  # which would know better
    largest.append("orders", _orders(2 * ROWS, 1))
    report = largest.refresh("v")[0]
    assert (report.mode, report.reasons) == ("full", ["STATE_MISSING"])
    assert _last(largest)["chosen"]["method"] == FULL
    largest.append("orders", _orders(3 * ROWS, 1))
    assert largest.refresh("v")[0].mode == "incremental"
    assert largest.verify("v").equal


UNUSUAL = """SELECT SUM(l.price) AS total FROM lines l JOIN parts p ON p.id = l.part
    WHERE p.brand = 'b7' AND l.amount < (SELECT AVG(amount) FROM lines WHERE part = p.id)"""


def test_what_is_kept_spares_reading_a_table_that_changes_twice_in_a_join(tmp_path: Path) -> None:
    """Lines change, and so do their averages. Around the averages, lines of chosen parts are kept;
    around the lines, the averages would be, and all lines read."""
    with slackwater.connect(tmp_path / "w", placement="local", refresh="incremental") as db:
        db.sql("CREATE TABLE parts (id BIGINT, brand STRING)")
        db.sql("CREATE TABLE lines (part BIGINT, amount BIGINT, price BIGINT)")
        numbers = range(ROWS)
        brands = [f"b{i % 100}" for i in range(1000)]
        db.append("parts", pa.table({"id": list(range(1000)), "brand": brands}))
        lines = {"part": [i % 1000 for i in numbers], "amount": [i % 7 for i in numbers]}
        db.append("lines", pa.table(lines | {"price": list(numbers)}))
        db.sql(f"CREATE MATERIALIZED VIEW v AS {UNUSUAL}")
        db.refresh("v")
        dear = tuple(1e-5 if kind == "scanned" else 1e-9 for kind in KINDS)
        db._house.experience._model = Model(PRIOR | {("local", "cpu"): dear})
        db.sql("INSERT INTO lines VALUES (7, 1, 1), (107, 2, 5), (8, 3, 9)")
        db.refresh("v")  # beside it, the part is built
        assert db.verify("v").equal
        ways = {(c["method"], c["engine"]): c["cpu_seconds"] for c in _last(db)["candidates"]}
        assert ways[HIGHER_ORDER, "local"] < ways[INCREMENTAL, "local"] / 10
        db.sql("INSERT INTO lines VALUES (7, 5, 2); DELETE FROM lines WHERE price = 7")
        db.refresh("v")
        assert _last(db)["chosen"]["method"] == HIGHER_ORDER
        assert db.verify("v").equal


def test_with_refresh_incremental_size_does_not_matter(largest: Warehouse) -> None:
    largest.sql("ALTER MATERIALIZED VIEW v SET (refresh = 'incremental')")
    largest.append("orders", _orders(ROWS, EVERY_GROUP))
    assert largest.refresh("v")[0].mode == "incremental"
    assert largest.verify("v").equal


def test_the_warehouse_says_how_views_are_refreshed_that_do_not(tmp_path: Path) -> None:
    with slackwater.connect(tmp_path / "w", placement="local", refresh="full") as db:
        _fill(db, 100)
        db.sql(f"CREATE MATERIALIZED VIEW v AS {VIEW}")
        db.refresh("v")
        db.append("orders", _orders(ROWS, 10))
        assert db.refresh("v")[0].reasons == ["FULL_BY_OPTION"]


def test_a_view_that_others_follow_keeps_its_log(largest: Warehouse) -> None:
    """Computed anew, it would have no changes for them to follow."""
    largest.sql("CREATE MATERIALIZED VIEW above AS SELECT MAX(total) AS most FROM v")
    largest.refresh("above")
    largest.append("orders", _orders(ROWS, EVERY_GROUP))
    assert largest.refresh("above")[0].mode == "incremental"
    assert largest.verify("above").equal


def test_the_event_lists_every_way_with_its_cost_and_what_it_took(filled: Warehouse) -> None:
    filled.append("orders", _orders(ROWS, 10))
    filled.refresh("v")
    event = _last(filled)
    ways = {(c["method"], c["engine"]): c for c in event["candidates"]}
    assert set(ways) == {(m, e) for m in METHODS for e in ("local", "spark")}
    assert ways[HIGHER_ORDER, "local"]["reasons"] == ["NO_PARTS_TO_KEEP"]
    assert ways[INCREMENTAL, "spark"]["reasons"] == ["NOT_PLACED_THERE"]
    assert ways[INCREMENTAL, "local"]["applicable"]
    assert 0 < ways[INCREMENTAL, "local"]["cpu_seconds"] < ways[PLAIN, "local"]["cpu_seconds"]
    assert event["chosen"]["method"] == INCREMENTAL
    assert sum(step["cpu_seconds"] for step in event["steps"]) > 0


def _counted_plans(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """One for each time that the ways of a view are planned."""
    plan, planned = choosing._Choosing._plan_ways, list[bool]()

    def counted(self: Any, by_cost: bool) -> Any:
        planned.append(by_cost)
        return plan(self, by_cost)

    monkeypatch.setattr(choosing._Choosing, "_plan_ways", counted)
    return planned


def test_ways_are_planned_once_while_about_as_much_waits(
    filled: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = _counted_plans(monkeypatch)
    for i in range(4):
        filled.append("orders", _orders(ROWS + 10 * i, 10))
        filled.refresh("v")
        event = _last(filled)
        assert event["chosen"]["method"] == INCREMENTAL
        assert event["candidates"][0]["cpu_seconds"] > 0
    assert len(planned) == 1
    filled.append("orders", _orders(2 * ROWS, 5_000))  # many more
    filled.refresh("v")
    assert len(planned) == 2
    filled.sql("DELETE FROM orders WHERE id < 10")  # rows that go, as none did before
    filled.refresh("v")
    assert len(planned) == 3
    assert filled.verify("v").equal


def test_a_look_at_what_a_view_does_not_read_leaves_its_plans(
    filled: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = _counted_plans(monkeypatch)
    filled.sql("CREATE TABLE notes (id BIGINT, kind BIGINT)")
    numbers = np.arange(20_000)
    filled.append("notes", pa.table({"id": numbers, "kind": numbers % 9}))

    def looked_at(name: str, query: str) -> int:
        """How often the view is planned by the refresh after a look for another one."""
        before = sum(filled._house.profiling.looks.values())
        filled.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        filled.refresh(name)
        assert sum(filled._house.profiling.looks.values()) == before + 1
        filled.append("orders", _orders(ROWS, 10))
        planned.clear()
        filled.refresh("v")
        return len(planned)

    filled.append("orders", _orders(ROWS, 10))
    filled.refresh("v")
    assert looked_at("kinds", "SELECT kind, COUNT(*) AS n FROM notes GROUP BY kind") == 0
    assert looked_at("some", "SELECT id FROM notes WHERE kind > 3") == 0
    assert looked_at("amounts", "SELECT amount, COUNT(*) AS n FROM orders GROUP BY amount") == 1
    assert filled.verify("v").equal


def test_why_changes_were_out_of_the_question(filled: Warehouse) -> None:
    filled.refresh("v", full=True)
    by_changes = [c for c in _last(filled)["candidates"] if c["method"] == INCREMENTAL]
    assert all("FULL_REQUESTED" in c["reasons"] for c in by_changes)


def test_columns_that_decide_are_looked_at_once(filled: Warehouse) -> None:
    known = filled._house.profiling.known()
    orders = filled._house.catalog.snapshot().find("orders")
    assert orders is not None
    customers = known.values(orders.id, "customer")
    assert customers is not None
    assert customers.distinct == pytest.approx(1000, rel=0.4)  # a sketch
    assert (customers.nulls, customers.low, customers.high) == (0.0, 0.0, 999.0)
    assert known.values(orders.id, "amount") is None  # nothing depends on it


def test_what_filters_keep_is_measured(tmp_path: Path) -> None:
    """Nobody can guess what a LIKE keeps, and two bounds of one column are not independent."""
    rows = 20_000
    numbers = np.arange(rows)
    with slackwater.connect(tmp_path / "w", placement="local") as db:
        db.sql("CREATE TABLE names (id BIGINT, name STRING)")
        db.append("names", pa.table({"id": numbers, "name": [f"n{i % 50}" for i in numbers]}))
        for name, condition in FILTERS.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS SELECT * FROM names WHERE {condition}")
            db.refresh(name)
    with slackwater.connect(tmp_path / "w", placement="local") as db:
        (profile,) = db._house.profiling.known().known.values()
        assert list(profile.shares.values()) == [0.1, 0.05, 0.005]


def test_estimates_use_what_filters_were_measured_to_keep() -> None:
    text, fields = Column(STRING, True, 0), (Field("x", BIGINT, True), Field("s", STRING, True))
    scan = Scan("t@new", "t", fields)
    like = Call(BOOLEAN, True, "like", (text, Literal(STRING, False, "%7")))
    swapped = Project(scan, columns(fields)[::-1], ("s", "x"))
    found = asked(Filter(swapped, like))
    assert found is not None
    known = Profiles({"t": Profile(1000, shares={found.text: 0.02})})
    for time in ("@new", "@old", ""):
        rows = {f"t{time}": Rows(1000.0)}
        node = Filter(swapped.replace(input=scan.replace(source=f"t{time}")), like)
        assert Estimates(rows, known).of(node).before == 20
    joined = Join(swapped, scan, "inner", Literal(BOOLEAN, False, True))
    assert asked(Filter(joined, like)) is None  # of pairs of rows nothing is known


def test_what_was_learned_is_there_after_reopening(tmp_path: Path) -> None:
    path = tmp_path / "w"
    with slackwater.connect(path, placement="local") as db:
        _fill(db)
        db.sql(f"CREATE MATERIALIZED VIEW v AS {VIEW}")
        db.refresh("v")
        for i in range(3):
            db.append("orders", _orders(ROWS + i, 1))
            db.refresh("v")
        known, prices = db._house.profiling.known(), db._house.experience
    with slackwater.connect(path, placement="local") as db:
        assert db._house.profiling.known() == known
        assert db._house.experience.of("v").past.refreshes == 4
        assert len(db._house.experience._measured or []) == len(prices._measured or []) == 4


def test_the_first_refresh_by_a_way_on_spark_is_not_learned_from(filled: Warehouse) -> None:
    is_warm = filled._house.experience.is_warm
    assert is_warm("v", INCREMENTAL, "local")
    assert [is_warm("v", INCREMENTAL, "spark") for _ in range(3)] == [False, True, True]
    assert not is_warm("v", FULL, "spark")
    assert not is_warm("w", INCREMENTAL, "spark")


def test_explain_tells_how_rows_move_on_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with slackwater.connect(tmp_path / "w", placement="local") as db:
        _fill(db, 1000)
        db.sql(f"CREATE MATERIALIZED VIEW v AS {VIEW}")
        db.sql("ALTER MATERIALIZED VIEW v SET (refresh = 'incremental')")
        db.refresh("v")
        db.append("orders", _orders(ROWS, 10))
        assert "Moves:" not in db.explain("v")
    with slackwater.connect(tmp_path / "w", placement="spark") as db:
        assert "Moves:  nothing: each statement is one task" in db.explain("v").splitlines()
        following = json.loads(db.explain("v", format="json"))["next"]
        assert (following["one_task"], following["exchanges"]) == (True, [])
        monkeypatch.setattr("slackwater.engine.suited.SHORT_BYTES", 0)  # however small it is
        told = db.explain("v").splitlines()
        moves = [line for line in told if line.startswith("Moves:")]
        assert moves[0] == "Moves:  broadcast change of orders"
        assert moves[1].startswith(
            "Moves:  repartition what comes of change of orders and customers"
        )
        following = json.loads(db.explain("v", format="json"))["next"]
        assert [e["how"] for e in following["exchanges"]] == [m.split()[1] for m in moves]
        assert following["blocks"] > len(moves)  # the driver and the workers take turns


def test_explain_tells_what_the_next_refresh_does(filled: Warehouse) -> None:
    assert "Step:" not in filled.explain("v")  # nothing, while it is fresh
    filled.append("orders", _orders(ROWS, 10))
    lines = filled.explain("v").splitlines()
    (at,) = [i for i, line in enumerate(lines) if line.startswith("Step:")]
    assert lines[at].startswith("Step:   v: incremental on local: about 0.")
    at += 1
    assert lines[at].startswith("Loads:  sums by 1 keys, 10 rows, ")
    assert lines[at + 1].startswith("Saves:  sums by 1 keys, about ")
    assert lines[at + 1].endswith(" CPU s, from change of orders, customers")
    assert lines[at + 2].startswith("Writes: v, about ")
    told = json.loads(filled.explain("v", "json"))["next"]
    assert (told["method"], told["engine"]) == (INCREMENTAL, "local")
    assert [(o["name"], o["state"]) for o in told["outputs"]] == [
        ("sums by 1 keys", True),
        ("v", False),
    ]
    assert told["cpu_seconds"] == pytest.approx(
        next(
            c["cpu_seconds"]
            for c in json.loads(filled.explain("v", "json", alternatives=True))["candidates"]
            if (c["method"], c["engine"]) == (INCREMENTAL, "local")
        ),
        rel=0.01,
    )
    assert filled.status()["views"][0]["fresh"] is False  # nothing was done


def test_explain_tells_what_a_first_refresh_builds(filled: Warehouse) -> None:
    filled.sql(f"CREATE MATERIALIZED VIEW w AS {VIEW}")
    lines = filled.explain("w").splitlines()
    assert any(line.startswith("Step:   w: full on local: about ") for line in lines)
    assert "Writes: w, about " in filled.explain("w")
    assert "from sums by 1 keys" in filled.explain("w")


def test_explain_alternatives_compares_the_ways(filled: Warehouse) -> None:
    filled.append("orders", _orders(ROWS, 10))
    told = filled.sql("EXPLAIN ALTERNATIVES v").fetchall()
    lines = [line for (line,) in told]
    assert lines[0] == "View v, version 1: ways to refresh it now"
    (taken,) = [line for line in lines if line.startswith("*")]
    assert taken.split()[1:3] == ["incremental", "local"]
    assert any("NOT_PLACED_THERE" in line for line in lines)
    assert filled.explain("v", alternatives=True).splitlines() == lines
    assert filled.status()["views"][0]["fresh"] is False  # nothing was done


def test_explain_alternatives_as_json(filled: Warehouse) -> None:
    lines = filled.sql("EXPLAIN ALTERNATIVES FORMAT JSON v").fetchall()
    told = json.loads("\n".join(line for (line,) in lines))
    assert told["fresh"] is True
    assert told["chosen"]["method"] == INCREMENTAL
    assert {c["method"] for c in told["candidates"]} == set(METHODS)


def test_a_view_that_is_always_full_and_a_query_have_no_alternatives(filled: Warehouse) -> None:
    filled.sql("ALTER MATERIALIZED VIEW v SET (refresh = 'full')")
    assert "always computed in full" in filled.explain("v", alternatives=True)
    with pytest.raises(UserError) as refused:
        filled.sql("EXPLAIN ALTERNATIVES SELECT 1")
    assert refused.value.code == "NOT_A_VIEW"


def test_a_view_may_be_called_alternatives(filled: Warehouse) -> None:
    filled.sql("CREATE MATERIALIZED VIEW alternatives AS SELECT id FROM customers")
    assert "View alternatives" in filled.sql("EXPLAIN alternatives").fetchall()[0][0]


@pytest.fixture
def joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Warehouse]:
    """A view over three tables, for which it always pays to keep what changes are joined with."""
    monkeypatch.setattr(choosing, "is_worth_building", lambda *_: True)
    monkeypatch.setattr(choosing, "SMALL", 0)
    with slackwater.connect(tmp_path / "w", placement="local", refresh="incremental") as db:
        db.sql("CREATE TABLE lines (o BIGINT, price BIGINT)")
        db.sql("CREATE TABLE orders (id BIGINT, customer BIGINT)")
        db.sql("CREATE TABLE customers (id BIGINT, region STRING)")
        db.sql("INSERT INTO customers VALUES (1, 'n'), (2, 's'), (3, 'n')")
        db.sql("INSERT INTO orders VALUES (10, 1), (11, 2), (12, 2), (13, 9)")
        db.sql("INSERT INTO lines VALUES (10, 5), (10, 7), (11, 1), (13, 2)")
        db.sql("""
            CREATE MATERIALIZED VIEW v AS SELECT c.region, SUM(l.price) AS total, COUNT(*) AS n
            FROM lines l JOIN orders o ON l.o = o.id JOIN customers c ON o.customer = c.id
            GROUP BY c.region""")
        db.refresh("v")
        yield db


CHANGES = (
    "INSERT INTO lines VALUES (12, 100), (10, 1)",
    "DELETE FROM lines WHERE o = 11",
    "UPDATE lines SET price = price + 1",
    "INSERT INTO lines VALUES (13, 4); INSERT INTO customers VALUES (9, 'w')",
    "DELETE FROM orders WHERE id = 10; INSERT INTO lines VALUES (10, 3)",
    "UPDATE customers SET region = 's'",
    "INSERT INTO orders VALUES (10, 3); DELETE FROM lines WHERE price > 50",
)


def followed(db: Warehouse, changes: Sequence[str] = CHANGES) -> list[str]:
    """By which method each change was followed; the view is what its query gives after each."""
    methods = []
    for change in changes:
        with db.transaction():
            db.sql(change)
        db.refresh("v")
        assert db.verify("v").equal, change
        if (chosen := _last(db)["chosen"]) is not None:  # something that it reads has changed
            methods.append(chosen["method"])
    return methods


def test_parts_that_changes_are_joined_with_are_kept_and_followed(joined: Warehouse) -> None:
    methods = followed(joined)
    assert methods[0] == INCREMENTAL  # after which they are built
    assert HIGHER_ORDER in methods[1:]
    assert len(joined.status()["views"][0]["states"]) == 2


def test_parts_are_let_go_where_they_no_longer_pay(
    joined: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined.sql(CHANGES[0])
    joined.refresh("v")
    monkeypatch.setattr(choosing, "is_worth_building", lambda *_: False)
    monkeypatch.setattr(choosing, "choose", lambda ways, *_: ways[0])
    joined.sql(CHANGES[1])
    joined.refresh("v")
    assert len(joined.status()["views"][0]["states"]) == 1
    assert joined.verify("v").equal


def test_of_several_joins_every_part_is_brought_along_or_built(joined: Warehouse) -> None:
    """A part that is kept already, and was not needed this time, is not taken as it was."""
    joined.sql("CREATE TABLE returns (o BIGINT, cost BIGINT)")
    joined.sql("""
        CREATE OR REPLACE MATERIALIZED VIEW v AS
        SELECT c.region, l.price AS x FROM lines l JOIN orders o ON l.o = o.id
          JOIN customers c ON o.customer = c.id
        UNION ALL
        SELECT c.region, -r.cost FROM returns r JOIN orders o ON r.o = o.id
          JOIN customers c ON o.customer = c.id AND c.region <> 's'""")
    joined.refresh("v")
    for change in (
        CHANGES[0],
        "INSERT INTO returns VALUES (10, 1), (11, 2)",
        "INSERT INTO orders VALUES (20, 1), (21, 3); INSERT INTO returns VALUES (20, 5)",
        *CHANGES[1:],
        "DELETE FROM returns WHERE o = 20",
    ):
        with joined.transaction():
            joined.sql(change)
        joined.refresh("v")
        assert joined.verify("v").equal, change


@pytest.mark.parametrize(
    "of", ["LEFT JOIN returns r ON r.o = l.o", "LEFT ANTI JOIN returns r ON r.o = l.o"]
)
def test_all_that_a_right_side_is_joined_with_is_kept_and_followed(
    joined: Warehouse, monkeypatch: pytest.MonkeyPatch, of: str
) -> None:
    monkeypatch.setattr(choosing, "RANKS", 0)
    joined.sql("CREATE TABLE returns (o BIGINT, cost BIGINT)")
    cost = "r.cost" if of.startswith("LEFT JOIN") else "0 AS cost"
    joined.sql(f"""
        CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT c.region, x.price, x.cost FROM
          (SELECT l.o, l.price, {cost} FROM lines l {of}) x JOIN orders o ON x.o = o.id
          JOIN customers c ON o.customer = c.id""")
    joined.refresh("v")
    changes = (
        "INSERT INTO returns VALUES (10, 1), (11, 2)",
        "INSERT INTO returns VALUES (10, 4), (13, 3); DELETE FROM returns WHERE o = 11",
        "UPDATE returns SET cost = 7 WHERE o = 10; INSERT INTO lines VALUES (12, 3)",
        "DELETE FROM returns WHERE o = 10; DELETE FROM orders WHERE id = 13",
        *CHANGES,
        "DELETE FROM returns",
    )
    methods = followed(joined, changes)
    assert HIGHER_ORDER in methods[1:4]
    states = joined.status()["views"][0]["states"]
    assert any(state["rows"] > 0 for state in states if state["kind"] == "rows")


@pytest.mark.parametrize(
    "those",
    [
        "IN (SELECT o.customer FROM orders o JOIN lines l ON l.o = o.id WHERE l.price > 3)",
        "IN (SELECT o.customer FROM orders o)",
        "NOT IN (SELECT coalesce(o.customer, 0) FROM orders o WHERE o.id < 12)",
    ],
)
def test_keys_that_are_looked_for_are_counted_and_followed(joined: Warehouse, those: str) -> None:
    joined.sql(f"""
        CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT c.id, c.region FROM customers c
        WHERE c.id {those}
    """)
    joined.refresh("v")
    methods = followed(joined)
    assert HIGHER_ORDER in methods[1:]
    states = joined.status()["views"][0]["states"]
    assert "sums" in {state["kind"] for state in states if state["rows"] > 0}


def _expected(**seconds: float) -> list[Candidate]:
    methods = {"by_changes": INCREMENTAL, "counted": HIGHER_ORDER, "full": FULL, "plain": PLAIN}
    missing = {HIGHER_ORDER: ("STATE_MISSING",)}
    return [
        Candidate(methods[name], "local", cpu, cpu, reasons=missing.get(methods[name], ()))
        for name, cpu in seconds.items()
    ]


def test_changes_are_followed_where_that_leads_to_what_is_cheaper_than_computing_anew() -> None:
    """Building costs as much as ten refreshes that are so much cheaper may save, or not."""
    ways = _expected(by_changes=1.6, counted=0.2, full=2.0, plain=1.3)
    chosen = choice.choose(ways, to_build=5.0)
    assert chosen is not None
    assert chosen.method == INCREMENTAL
    assert choice.is_worth_building(ways, chosen, 5.0)
    too_dear = choice.choose(ways, to_build=11.0)
    assert too_dear is not None
    assert too_dear.method == PLAIN


def test_states_come_back_where_they_lead_to_what_is_cheaper_than_computing_anew() -> None:
    ways = _expected(counted=0.2, full=2.0, plain=1.3)
    missing = Candidate(INCREMENTAL, "local", 1.6, 1.6, reasons=("STATE_MISSING",))
    chosen = choice.choose([missing, *ways], to_build=5.0)
    assert chosen is not None
    assert chosen.method == FULL
