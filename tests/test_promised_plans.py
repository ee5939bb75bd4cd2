"""Plans that rely on keys and references: the results are those of the query, and less is read."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import slackwater
from bench import corpus
from slackwater.algebra.relation import Relation, Scan
from slackwater.engine.compare import compare
from slackwater.engine.local import LocalEngine
from slackwater.errors import StateError
from slackwater.planner.plan import METHODS, Plan, plan
from slackwater.planner.problem import Arrival, Problem
from slackwater.planner.runs import read_at
from slackwater.sql.bind import bind
from slackwater.sql.tables import unordered
from slackwater.stats.rows import Change
from slackwater.tvr.normal import normalize
from slackwater.tvr.references import NO_PROMISES, Promises, Reference
from slackwater.types import INT, Field, Schema
from slackwater.warehouse import Warehouse
from slackwater.work.playing import play, recompute, versions
from tests.conftest import PROOF
from tests.test_laws import Rows, context, engine, log
from tests.test_runs import MOST_RUNS, History, by_chance, check

__all__ = ["engine"]
PLANS = 8 if PROOF else 3
"""Random plans of each query."""

TABLES: dict[str, Schema] = {
    "sales": (Field("item", INT, False), Field("bill", INT, False), Field("shop", INT)),
    "returns": (Field("item", INT, False), Field("bill", INT, False), Field("cost", INT)),
    "shops": (Field("shop", INT), Field("state", INT)),
}
PROMISES = Promises(
    frozenset({("sales", ("item", "bill")), ("returns", ("item", "bill"))}),
    frozenset({Reference("returns", ("item", "bill"), "sales", ("item", "bill"))}),
)
BOTH = "s.item = r.item AND s.bill = r.bill"
QUERIES = {
    "left": f"SELECT s.item, s.shop, r.cost FROM sales s LEFT JOIN returns r ON {BOTH}",
    "left, other order": "SELECT s.shop, r.cost FROM sales s LEFT JOIN returns r "
    "ON r.bill = s.bill AND r.item = s.item",
    "left, filtered": "SELECT s.shop, r.cost FROM (SELECT * FROM sales WHERE shop > 0) s "
    f"LEFT JOIN (SELECT * FROM returns WHERE cost > 0) r ON {BOTH}",
    "left of a join": "SELECT h.state, r.cost FROM sales s JOIN shops h ON s.shop = h.shop "
    f"LEFT JOIN returns r ON {BOTH}",
    "joined after it": f"SELECT h.state, r.cost FROM sales s LEFT JOIN returns r ON {BOTH} "
    "JOIN shops h ON s.shop = h.shop",
    "left with residual": f"SELECT s.item, r.cost FROM sales s LEFT JOIN returns r ON {BOTH} "
    "AND r.cost > s.shop",
    "by a part of the key": "SELECT s.bill, r.cost FROM sales s LEFT JOIN returns r "
    "ON s.item = r.item",
    "inner": f"SELECT s.shop, r.cost FROM sales s JOIN returns r ON {BOTH}",
    "semi": f"SELECT s.item FROM sales s WHERE EXISTS (SELECT 1 FROM returns r WHERE {BOTH})",
    "anti": f"SELECT s.item FROM sales s WHERE NOT EXISTS (SELECT 1 FROM returns r WHERE {BOTH})",
    "full": f"SELECT s.shop, r.cost FROM sales s FULL JOIN returns r ON {BOTH}",
    "returns on the left": f"SELECT s.shop, r.cost FROM returns r LEFT JOIN sales s ON {BOTH}",
    "sums": "SELECT h.state, SUM(r.cost) AS cost, COUNT(*) AS n FROM sales s "
    f"LEFT JOIN returns r ON {BOTH} JOIN shops h ON s.shop = h.shop GROUP BY h.state",
    "left of all of a join": "SELECT * FROM sales s JOIN shops h ON s.shop = h.shop "
    f"LEFT JOIN returns r ON {BOTH}",
    "sums of some": "SELECT h.state, SUM(r.cost) AS cost, COUNT(*) AS n FROM sales s "
    f"LEFT JOIN returns r ON {BOTH} JOIN shops h ON s.shop = h.shop WHERE h.state = 1 "
    "GROUP BY h.state",
    "sums on the right": "SELECT s.shop, r.n FROM sales s LEFT JOIN "
    f"(SELECT item, bill, COUNT(*) AS n FROM returns GROUP BY item, bill) r ON {BOTH}",
    "sales twice": "SELECT s.item, r.cost FROM sales s JOIN sales o ON s.shop = o.shop "
    f"LEFT JOIN returns r ON {BOTH}",
}


def bound(text: str) -> Relation:
    def lookup(name: str) -> Relation | None:
        return Scan(name, name, TABLES[name]) if name in TABLES else None

    oracle: Any = None  # every query here is portable
    return normalize(unordered(bind(text, context(lookup, lambda: list(TABLES), oracle))))


class Promised(History):
    """Sales, of which a key comes once and goes at most once, and returns of some of them."""

    schemas = TABLES

    def __init__(self, rng: random.Random, points: int) -> None:
        self._rng = rng
        self._free = [(item, bill) for item in range(4) for bill in range(6)]
        rng.shuffle(self._free)
        now: dict[str, dict[Any, Any]] = {table: {} for table in TABLES}
        self.rows, self.changes = {t: [] for t in TABLES}, {t: [] for t in TABLES}
        shops_change = rng.random() < 0.4
        for point in range(points):
            before = {table: self._counted(table, now[table]) for table in TABLES}
            self._sell(now["sales"], now["returns"], rng.randrange(5))
            if not point or shops_change:
                now["shops"] = {i: (i, rng.randrange(2)) for i in range(4) if rng.random() < 0.8}
            for table in TABLES:
                after = self._counted(table, now[table])
                self.rows[table].append(after)
                if point:
                    change: Rows = Counter(after)
                    change.subtract(before[table])
                    self.changes[table].append(Counter({r: n for r, n in change.items() if n}))
        self.changing = {t for t, changes in self.changes.items() if any(changes)}

    def _sell(self, sales: dict[Any, Any], returns: dict[Any, Any], new: int) -> None:
        """Some sales go, with their returns, some come; returns come, change and go."""
        rng = self._rng
        for key in [k for k in sales if rng.random() < 0.25]:
            del sales[key]
            returns.pop(key, None)
        for _ in range(min(new, len(self._free))):
            sales[self._free.pop()] = rng.choice((None, 0, 1, 2))
        for key in sales:
            if rng.random() < 0.4:
                returns[key] = rng.choice((None, 0, 1, 2))
            elif rng.random() < 0.3:
                returns.pop(key, None)

    def _counted(self, table: str, held: dict[Any, Any]) -> Rows:
        if table == "shops":
            return Counter(held.values())
        return Counter((*key, value) for key, value in held.items())

    def source(self, scan: Scan) -> pa.Table:
        """The change of returns may hold rows that came and went, or the other way about."""
        found, at = super().source(scan), read_at(scan)
        if not at.change or not scan.source.startswith("returns@"):
            return found
        rows = [r for r in self.rows["returns"][at.end] if self._rng.random() < 0.2]
        twice = [log(Counter(dict.fromkeys(rows, n)), TABLES["returns"]) for n in (1, -1)]
        return pa.concat_tables([found, *twice])


@pytest.mark.parametrize("name", QUERIES)
def test_whatever_a_plan_relies_on_gives_the_query(
    name: str, engine: LocalEngine, rng: random.Random
) -> None:
    query = bound(QUERIES[name])
    for _ in range(PLANS):
        points = rng.randint(2, MOST_RUNS)
        history = Promised(rng, points)
        made = by_chance(query, history, rng, points, PROMISES)
        check(engine, made, query, history)


def yearly(promises: Promises = NO_PROMISES) -> Problem:
    """Sales of some shops, of which a tenth is returned."""
    arrivals = {
        "sales": Arrival(1e9, (Change(inserts=1e8),)),
        "returns": Arrival(1e8, (Change(inserts=1e7, deletes=1e6),)),
        "shops": Arrival(1e3, (Change(),)),
    }
    due = frozenset({0, 1})
    return Problem(
        bound(QUERIES["sums of some"]), arrivals, (1.0, 1.0), due, True, promises=promises
    )


def test_methods_mixed_cost_less_than_the_best_alone() -> None:
    asked = yearly(PROMISES)
    mixed = plan(asked)
    alone = {method: plan(asked, methods=(method,)).cost for method in METHODS}
    assert {"ojv", "higher_order"} <= mixed.methods()
    assert mixed.cost < 0.9 * min(alone.values())
    assert mixed.cost < 0.9 * plan(yearly()).cost


def test_references_to_what_is_updated_are_not_relied_on() -> None:
    asked = yearly(PROMISES)
    updated = Arrival(1e9, (Change(inserts=1e7, updates=1.0),))
    arrivals = {**asked.arrivals, "sales": updated}
    assert replace(asked, arrivals=arrivals).relied_on == Promises(PROMISES.keys)
    assert asked.relied_on == PROMISES


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Warehouse]:
    with slackwater.connect(tmp_path / "w", placement="local") as made:
        made.sql("CREATE TABLE sales (id BIGINT NOT NULL, shop BIGINT)")
        made.sql("CREATE TABLE returns (sale BIGINT NOT NULL, cost BIGINT)")
        made.sql("ALTER TABLE sales ADD PRIMARY KEY (id) NOT ENFORCED RELY")
        made.sql("ALTER TABLE returns ADD PRIMARY KEY (sale) NOT ENFORCED RELY")
        made.sql("ALTER TABLE returns ADD FOREIGN KEY (sale) REFERENCES sales NOT ENFORCED RELY")
        made.append("sales", pa.table({"id": range(100), "shop": [i % 7 for i in range(100)]}))
        made.append("returns", pa.table({"sale": range(0, 100, 3), "cost": range(34)}))
        yield made


def promised_plan(db: Warehouse) -> Plan:
    text = """
        SELECT s.shop, COUNT(*) AS n, SUM(r.cost) AS cost
        FROM sales s LEFT JOIN returns r ON s.id = r.sale GROUP BY s.shop"""
    grow = (Change(inserts=1e3),)
    expected = {"sales": Arrival(1e6, grow), "returns": Arrival(1e7, grow)}
    asked = db.problem(text, expected, due=(0, 1), last_first=True)
    assert [r.columns for r in asked.promises.references] == [("sale",)]
    assert len(asked.promises.keys) == 2
    return plan(asked, methods=("ojv",))


def test_a_plan_that_relies_on_references_is_run(db: Warehouse) -> None:
    made, points = promised_plan(db), [versions(db._house)]
    assert {"rows_of_change", "direct_and_indirect_by_promises"} & {
        step.way.member.rule for _, _, step in made.steps() if step.way is not None
    }
    db.append("sales", pa.table({"id": range(100, 120), "shop": [None, 1] * 10}))
    db.append("returns", pa.table({"sale": [1, 2, 100, 101], "cost": [7, None, 9, 11]}))
    db.sql("DELETE FROM returns WHERE sale < 10 AND sale > 2")
    db.sql("DELETE FROM returns WHERE sale = 90")
    db.sql("DELETE FROM sales WHERE id = 90")
    points.append(versions(db._house))
    played = play(db._house, made, points)
    expected = recompute(db._house, made.problem.query).results[0]
    assert compare(played.results[1], expected).equal


def test_a_plan_is_not_run_where_a_key_both_came_and_went(db: Warehouse) -> None:
    made, points = promised_plan(db), [versions(db._house)]
    db.sql("UPDATE sales SET shop = 9 WHERE id = 4")
    points.append(versions(db._house))
    with pytest.raises(StateError) as refused:
        play(db._house, made, points)
    assert refused.value.code == "PROMISE_NOT_KEPT"
    assert "'sales'" in str(refused.value)


def test_the_keys_of_tpcds_hold_in_its_data() -> None:
    """What is declared of its tables is what its generator makes."""
    files = corpus.generate("tpcds", 0.01)
    declared = corpus.keys("tpcds")
    keys = re.findall(r"ALTER TABLE (\w+) ADD PRIMARY KEY \((.+?)\)", declared)
    references = re.findall(
        r"ALTER TABLE (\w+) ADD FOREIGN KEY \((.+?)\)\s+REFERENCES (\w+)", declared
    )
    assert len(keys) == 7
    assert len(references) == 3
    with duckdb.connect() as con:
        for table, names in keys:
            twice = f"SELECT {names} FROM '{files[table]}' GROUP BY ALL HAVING COUNT(*) > 1"
            assert not con.sql(twice).fetchall(), table
        for table, names, other in references:
            theirs = dict(keys)[other]
            lost = (
                f"SELECT {names} FROM '{files[table]}' EXCEPT SELECT {theirs} FROM '{files[other]}'"
            )
            assert not con.sql(lost).fetchall(), table
