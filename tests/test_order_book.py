"""The order-book queries of the literature (002, A.1.2) over a stream of orders.

Orders come near a price that wanders, are filled in part, and leave: executed or withdrawn. After
each batch every view equals its recompute.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import PROOF

import slackwater
from slackwater import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = {
    "vwap": """
        SELECT SUM(b1.price * b1.volume) AS total FROM bids b1
        WHERE 0.25 * (SELECT SUM(b3.volume) FROM bids b3)
              > (SELECT SUM(b2.volume) FROM bids b2 WHERE b2.price > b1.price)""",
    "axf": """
        SELECT b.broker_id, SUM(a.volume - b.volume) AS difference FROM bids b, asks a
        WHERE b.broker_id = a.broker_id
              AND (a.price - b.price > 1000 OR b.price - a.price > 1000)
        GROUP BY b.broker_id""",
    "bsp": """
        SELECT x.broker_id, SUM(x.volume * x.price - y.volume * y.price) AS spread
        FROM bids x, bids y WHERE x.broker_id = y.broker_id AND x.t > y.t
        GROUP BY x.broker_id""",
    "bsv": """
        SELECT x.broker_id, SUM(x.volume * x.price * y.volume * y.price * 0.5) AS variance
        FROM bids x, bids y WHERE x.broker_id = y.broker_id
        GROUP BY x.broker_id""",
    "psp": """
        SELECT SUM(a.price - b.price) AS spread FROM bids b, asks a
        WHERE b.volume > 0.0001 * (SELECT SUM(b1.volume) FROM bids b1)
              AND a.volume > 0.0001 * (SELECT SUM(a1.volume) FROM asks a1)""",
    "mst": """
        SELECT b.broker_id, SUM(a.price * a.volume - b.price * b.volume) AS spread
        FROM bids b, asks a
        WHERE 0.25 * (SELECT SUM(a1.volume) FROM asks a1)
              > (SELECT SUM(a2.volume) FROM asks a2 WHERE a2.price > a.price)
          AND 0.25 * (SELECT SUM(b1.volume) FROM bids b1)
              > (SELECT SUM(b2.volume) FROM bids b2 WHERE b2.price > b.price)
        GROUP BY b.broker_id""",
}
BROKERS = 10
NAMES = ("t", "id", "broker_id", "volume", "price", "weight")
Order = tuple[Any, ...]


class Side:
    """The orders of one side of the book."""

    def __init__(self, rng: random.Random, away: int) -> None:
        self.rng = rng
        self.away = away
        self.orders: list[Order] = []
        self._next = 0

    def change(self, arriving: int, middle: int) -> list[dict[str, Any]]:
        """The rows of a batch: orders that come, are filled in part, and leave."""
        rng = self.rng
        rng.shuffle(self.orders)
        share = min(len(self.orders), arriving) // 2
        gone, filled = self.orders[:share], self.orders[share : 2 * share]
        new = [self._order(middle) for _ in range(arriving)]
        new += [(*o[:3], rng.randint(1, o[3]), o[4]) for o in filled]
        self.orders = self.orders[2 * share :] + new
        rows = [(*o, -1) for o in gone + filled] + [(*o, 1) for o in new]
        return [dict(zip(NAMES, row, strict=True)) for row in rows]

    def _order(self, middle: int) -> Order:
        rng = self.rng
        self._next += 1
        price = middle + self.away * rng.randint(-200, 1500)
        broker = None if rng.random() < 0.05 else rng.randrange(BROKERS)
        return (self._next, self._next, broker, rng.randint(1, 500), price)


def play(db: Warehouse, refresher: Warehouse, rng: random.Random, price: str, batches: int) -> None:
    for side in ("bids", "asks"):
        db.sql(
            f"CREATE TABLE {side} (t BIGINT, id BIGINT, broker_id INT, volume INT, price {price})"
        )
    for name, text in QUERIES.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {text}")
    sides = {"bids": Side(rng, -1), "asks": Side(rng, 1)}
    refresher.refresh()
    middle = 10_000
    for number in range(batches):
        arriving = 40 if number == 0 else rng.randint(1, 12)
        with db.transaction():
            for name, side in sides.items():
                db.apply(name, side.change(arriving, middle), weight_column="weight")
        middle += rng.randint(-300, 300)
        modes = {report.view: report.mode for report in refresher.refresh()}
        if number:
            assert modes == dict.fromkeys(QUERIES, "incremental")
        for name in QUERIES:
            verified = db.verify(name)
            assert verified.equal, f"after batch {number + 1}: {verified}"
    for name in QUERIES:
        assert db.sql(f"SELECT * FROM {name}").fetchall(), f"{name} shows nothing"


@pytest.mark.parametrize("price", ["DECIMAL(10,2)", "DOUBLE"])
def test_every_query_follows_the_book(db: Warehouse, rng: random.Random, price: str) -> None:
    play(db, db, rng, price, 8 if PROOF else 4)


@pytest.mark.proof
def test_so_it_does_when_spark_refreshes(
    db: Warehouse, spark: SparkSession, rng: random.Random, tmp_path: Path
) -> None:
    settings = {"placement": "spark", "spark": spark, "refresh": "incremental"}
    with slackwater.connect(tmp_path / "warehouse", **settings) as refresher:
        play(db, refresher, rng, "DECIMAL(10,2)", 2)
