"""Keys and references that are relied on: declared, told, used by joins, and exact."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from slackwater import UserError, Warehouse
from tests.conftest import PROOF

TABLES = """
CREATE TABLE customer (c INT PRIMARY KEY NOT ENFORCED RELY, region STRING);
CREATE TABLE orders (
  o INT NOT NULL, c INT, day INT,
  PRIMARY KEY (o) NOT ENFORCED RELY,
  CONSTRAINT placed_by FOREIGN KEY (c) REFERENCES customer (c) NOT ENFORCED RELY
);
CREATE TABLE line (o INT REFERENCES orders NOT ENFORCED RELY, n INT, price INT);
"""

VIEWS = {
    "per_day": "SELECT day, sum(price) AS total, count(*) AS n FROM line JOIN orders USING (o) "
    "WHERE price > 2 AND day < 5 GROUP BY day",
    "per_region": "SELECT region, sum(price) AS total FROM line, orders, customer "
    "WHERE line.o = orders.o AND orders.c = customer.c GROUP BY region",
    "per_order": "SELECT region, orders.o, day, total FROM orders JOIN customer USING (c) "
    "JOIN (SELECT o, sum(price) AS total FROM line GROUP BY o) sums ON sums.o = orders.o",
    "twice": "SELECT x.n, y.price, day FROM line x JOIN orders ON x.o = orders.o "
    "JOIN line y ON y.o = orders.o AND y.n = x.n",
    "with_lines": "SELECT * FROM orders WHERE EXISTS (SELECT 1 FROM line WHERE line.o = orders.o "
    "AND price > 3)",
    "without_lines": "SELECT o, day FROM orders WHERE NOT EXISTS (SELECT 1 FROM line "
    "WHERE line.o = orders.o)",
    "optional": "SELECT orders.o, day, n, price FROM orders LEFT JOIN line ON line.o = orders.o "
    "AND price > 2",
    "large": "SELECT region, x.o, x.price FROM customer JOIN orders USING (c) JOIN line x ON "
    "x.o = orders.o WHERE x.o IN (SELECT o FROM line GROUP BY o HAVING sum(price) > 6) AND "
    "EXISTS (SELECT 1 FROM line y WHERE y.o = x.o AND y.n <> x.n)",
    "backwards": "SELECT region, price FROM customer JOIN orders USING (c) JOIN line USING (o)",
}


ON_SPARK = ("per_region", "optional", "large")
"""Of Spark's minutes these views get some."""


def create(db: Warehouse, names: Iterable[str] = VIEWS) -> None:
    """Three tables, each row of one naming a row of the next, and views over them."""
    db.sql(TABLES)
    for name in names:
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")


class Sales:
    """Changes after which every reference holds."""

    def __init__(self, db: Warehouse, rng: random.Random, kind: str) -> None:
        self.db, self.rng, self.kind = db, rng, kind
        self.customers: set[int] = set()
        self.orders: dict[int, int | None] = {}

    def batch(self) -> None:
        """One version of all tables."""
        with self.db.transaction():
            for o in self._some(self.orders):
                self._remove(o)
            for c in self._some(self.customers - set(self.orders.values())):
                self.db.sql(f"DELETE FROM customer WHERE c = {c}")
                self.customers.discard(c)
            for _ in range(self.rng.randint(0, 3)):
                self._come()
            if self.kind == "more lines":
                for o in self._some(self.orders):
                    self._lines(o)
            if self.kind == "updates":
                day, c = self.rng.randrange(5), self.rng.randrange(9)
                self.db.sql(f"UPDATE orders SET day = day + 1 WHERE o % 5 = {day}")
                self.db.sql(f"UPDATE customer SET region = 'moved' WHERE c = {c}")

    def _some(self, of: Any) -> list[int]:
        return [x for x in sorted(of) if self.rng.random() < 0.25]

    def _come(self) -> None:
        c = self._fresh(self.customers)
        self.db.sql(f"INSERT INTO customer VALUES ({c}, 'r{c % 3}')")
        self.customers.add(c)
        for _ in range(self.rng.randint(0, 4)):
            o = self._fresh(self.orders)
            owner = self.rng.choice([c, None, *self.customers])
            self.db.sql(
                f"INSERT INTO orders VALUES ({o}, {owner or 'NULL'}, {self.rng.randrange(7)})"
            )
            self.orders[o] = owner
            self._lines(o)

    def _fresh(self, taken: Any) -> int:
        return self.rng.choice([k for k in range(1, 200) if k not in taken])

    def _lines(self, o: int) -> None:
        lines = [f"({o}, {n}, {self.rng.randrange(9)})" for n in range(self.rng.randint(0, 3))]
        if lines:
            self.db.sql(f"INSERT INTO line VALUES {', '.join(lines)}, (NULL, 1, 5)")

    def _remove(self, o: int) -> None:
        self.db.sql(f"DELETE FROM line WHERE o = {o}; DELETE FROM orders WHERE o = {o}")
        del self.orders[o]


def laws(db: Warehouse, view: str) -> set[str]:
    """The laws of a view's last refresh."""
    event = next(e for e in db.events(view) if e["kind"] == "refresh")
    return {o["law"] for o in event["operators"]}


def play(db: Warehouse, rng: random.Random, kind: str, batches: int) -> None:
    changes = Sales(db, rng, kind)
    for _ in range(batches):
        changes.batch()
        db.refresh()
        for view, *_ in db.views():
            assert db.verify(view).equal, view


@pytest.mark.parametrize("kind", ["whole keys", "more lines", "updates"])
def test_views_that_rely_on_references_equal_recompute(
    db: Warehouse, rng: random.Random, kind: str
) -> None:
    create(db)
    play(db, rng, kind, 6 if PROOF else 3)


@pytest.mark.parametrize(
    "kind", ["whole keys", pytest.param("more lines", marks=pytest.mark.proof)]
)
def test_on_spark_they_do_too(spark_db: Warehouse, rng: random.Random, kind: str) -> None:
    create(spark_db, ON_SPARK)
    play(spark_db, rng, kind, 2)


@pytest.fixture
def filled(db: Warehouse) -> Iterator[Warehouse]:
    create(db)
    db.sql("""
        INSERT INTO customer VALUES (1, 'north'), (2, 'south');
        INSERT INTO orders VALUES (10, 1, 1), (20, 2, 2);
        INSERT INTO line VALUES (10, 1, 5), (10, 2, 7), (20, 1, 9)
    """)
    db.refresh()
    yield db
    for view in VIEWS:
        assert db.verify(view).equal, view


def test_orders_that_come_with_their_lines_do_not_read_old_lines(filled: Warehouse) -> None:
    with filled.transaction():
        filled.sql("INSERT INTO orders VALUES (30, 1, 3); INSERT INTO line VALUES (30, 1, 4)")
    filled.refresh()
    assert "whole_keys" in laws(filled, "per_day")


def test_a_line_of_an_old_order_is_joined_with_old_orders(filled: Warehouse) -> None:
    with filled.transaction():
        filled.sql("INSERT INTO orders VALUES (30, 1, 3)")
        filled.sql("INSERT INTO line VALUES (30, 1, 4), (10, 3, 6)")
    filled.refresh()
    assert "delta_join_by_reference" in laws(filled, "per_day")


def test_orders_that_go_with_their_lines_do_not_read_other_lines(filled: Warehouse) -> None:
    with filled.transaction():
        filled.sql("DELETE FROM line WHERE o = 10; DELETE FROM orders WHERE o = 10")
        filled.sql("INSERT INTO orders VALUES (30, 2, 3); INSERT INTO line VALUES (30, 1, 4)")
    filled.refresh()
    for view in VIEWS:
        assert "whole_keys" in laws(filled, view), view


def test_orders_without_lines_change_no_join(filled: Warehouse) -> None:
    filled.sql("INSERT INTO orders VALUES (40, 1, 3)")
    filled.refresh()
    assert "whole_keys" in laws(filled, "per_day")


def test_an_updated_key_is_joined_with_the_lines_that_were_there(filled: Warehouse) -> None:
    filled.sql("UPDATE orders SET day = 4 WHERE o = 10")
    filled.refresh()
    assert laws(filled, "per_day").isdisjoint({"delta_join_by_reference", "whole_keys"})


def test_a_key_that_went_and_came_back_is_joined_with_lines_that_stayed(filled: Warehouse) -> None:
    filled.sql("DELETE FROM orders WHERE o = 10")  # the promise is broken here, and kept again
    filled.sql("INSERT INTO orders VALUES (10, 2, 1)")
    filled.refresh()
    assert laws(filled, "per_day").isdisjoint({"delta_join_by_reference", "whole_keys"})


def test_dropped_constraints_are_not_relied_on(filled: Warehouse) -> None:
    filled.sql("ALTER TABLE line DROP CONSTRAINT line_o_fk")
    filled.sql("INSERT INTO orders VALUES (40, 1, 3)")
    filled.refresh()
    assert laws(filled, "per_day").isdisjoint({"delta_join_by_reference", "whole_keys"})


# -- declaring them


def test_constraints_are_told(db: Warehouse) -> None:
    db.sql(TABLES)
    told = {column: rest[-1] for column, *rest in db.sql("DESCRIBE orders").fetchall()}
    assert told == {"o": "PRIMARY KEY (o)", "c": "REFERENCES `customer` (c)", "day": None}
    null = {column: nullable for column, _, nullable, *_ in db.sql("DESCRIBE customer").fetchall()}
    assert null == {"c": False, "region": True}


def test_constraints_come_and_go_with_alter_table(db: Warehouse) -> None:
    db.sql("CREATE TABLE a (k INT NOT NULL, v INT); CREATE TABLE b (k INT)")
    db.sql("ALTER TABLE a ADD CONSTRAINT k PRIMARY KEY (k) NOT ENFORCED RELY")
    db.sql("ALTER TABLE b ADD FOREIGN KEY (k) REFERENCES a RELY")
    assert db.sql("DESCRIBE b").fetchall()[0][-1] == "REFERENCES `a` (k)"
    db.sql("ALTER TABLE b DROP CONSTRAINT B_K_FK; ALTER TABLE b DROP CONSTRAINT IF EXISTS b_k_fk")
    assert db.sql("DESCRIBE b").fetchall()[0][-1] is None


WRONG = {
    "CREATE TABLE x (k INT PRIMARY KEY)": ("UNSUPPORTED_STATEMENT", "NOT ENFORCED RELY"),
    "CREATE TABLE x (k INT, CONSTRAINT c CHECK (k > 0))": ("UNSUPPORTED_STATEMENT", "CHECK"),
    "CREATE TABLE x (k INT, UNIQUE (kk) RELY)": ("UNKNOWN_COLUMN", "Existing: k"),
    "CREATE TABLE x (k INT REFERENCES nowhere RELY)": ("UNKNOWN_TABLE", "nowhere"),
    "CREATE TABLE x (k INT REFERENCES customer (region) RELY)": ("BAD_CONSTRAINT", "not a key"),
    "CREATE TABLE x (k INT PRIMARY KEY RELY, PRIMARY KEY (k) RELY)": ("BAD_CONSTRAINT", "two"),
    "CREATE TABLE x (a INT, b INT, FOREIGN KEY (a, b) REFERENCES customer RELY)": (
        "BAD_CONSTRAINT",
        "as many columns",
    ),
    "ALTER TABLE line ADD PRIMARY KEY (o) RELY": ("BAD_CONSTRAINT", "UNIQUE"),
    "ALTER TABLE line ADD COLUMN k INT UNIQUE RELY": ("UNSUPPORTED_STATEMENT", "ADD CONSTRAINT"),
    "ALTER TABLE line DROP CONSTRAINT k": ("UNKNOWN_CONSTRAINT", "line_o_fk"),
    "ALTER TABLE line ADD": ("UNSUPPORTED_STATEMENT", "ADD CONSTRAINT"),
}


@pytest.mark.parametrize("statement", WRONG)
def test_what_is_refused_says_why(db: Warehouse, statement: str) -> None:
    db.sql(TABLES)
    code, told = WRONG[statement]
    with pytest.raises(UserError) as refused:
        db.sql(statement)
    assert refused.value.code == code
    assert told in str(refused.value)
