"""Planning problems over TPC-DS: the scenarios and arrival patterns of 001, 8.1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import slackwater
from bench import corpus
from slackwater.algebra.relation import Opaque, Relation
from slackwater.errors import SqlError
from slackwater.planner.problem import Arrival, Problem
from slackwater.sql.tables import unordered
from slackwater.stats.rows import Change
from slackwater.stats.values import Ignorance, Values
from slackwater.tvr.normal import normalize
from slackwater.tvr.references import Promises
from slackwater.work.promises import promised
from slackwater.work.world import World

ROWS = {
    "call_center": 6,
    "catalog_page": 11_718,
    "catalog_returns": 144_067,
    "catalog_sales": 1_441_548,
    "customer": 100_000,
    "customer_address": 50_000,
    "customer_demographics": 1_920_800,
    "date_dim": 73_049,
    "household_demographics": 7_200,
    "income_band": 20,
    "inventory": 11_745_000,
    "item": 18_000,
    "promotion": 300,
    "reason": 35,
    "ship_mode": 20,
    "store": 12,
    "store_returns": 287_514,
    "store_sales": 2_880_404,
    "time_dim": 86_400,
    "warehouse": 5,
    "web_page": 60,
    "web_returns": 71_763,
    "web_sales": 719_384,
    "web_site": 30,
}
"""Rows of TPC-DS's tables at scale factor 1."""
ROWS_OF_1TB = ROWS | {
    "call_center": 42,
    "catalog_page": 30_000,
    "catalog_returns": 143_996_756,
    "catalog_sales": 1_439_980_416,
    "customer": 12_000_000,
    "customer_address": 6_000_000,
    "inventory": 783_000_000,
    "item": 300_000,
    "promotion": 1_500,
    "reason": 65,
    "store": 1_002,
    "store_returns": 287_999_764,
    "store_sales": 2_879_987_999,
    "warehouse": 20,
    "web_page": 3_000,
    "web_returns": 71_997_522,
    "web_sales": 720_000_376,
    "web_site": 54,
}
"""At scale factor 1,000, as in 001, 8.1."""
SALES = frozenset({"store_sales", "catalog_sales", "web_sales"})
RETURNS = frozenset({"store_returns", "catalog_returns", "web_returns"})
RETRACTED = 0.1
"""Of what arrives, so much takes an earlier row away."""


DIMENSIONS = {
    "addr_sk": "customer_address",
    "address_sk": "customer_address",
    "call_center_sk": "call_center",
    "catalog_page_sk": "catalog_page",
    "cdemo_sk": "customer_demographics",
    "customer_sk": "customer",
    "date_sk": "date_dim",
    "demo_sk": "customer_demographics",
    "hdemo_sk": "household_demographics",
    "income_band_sk": "income_band",
    "item_sk": "item",
    "page_sk": "web_page",
    "promo_sk": "promotion",
    "reason_sk": "reason",
    "ship_mode_sk": "ship_mode",
    "site_sk": "web_site",
    "store_sk": "store",
    "time_sk": "time_dim",
    "warehouse_sk": "warehouse",
}
"""What a key ends in, and the table that it is a key of."""
LINES_PER_ORDER = 10


@dataclass(frozen=True)
class Keys(Ignorance):
    """Of every key, as many different values as its table has rows; of the numbers of orders and
    tickets, a tenth of the sales."""

    sizes: Mapping[str, int]

    def values(self, source: str, column: str) -> Values | None:
        for end, table in DIMENSIONS.items():
            if column.endswith(end):
                return Values(self.sizes[table])
        sales = {"cs_o": "catalog_sales", "cr_o": "catalog_sales", "ws_o": "web_sales"}
        sales |= {"wr_o": "web_sales", "ss_t": "store_sales", "sr_t": "store_sales"}
        if column.endswith(("order_number", "ticket_number")):
            return Values(self.sizes[sales[column[:4]]] / LINES_PER_ORDER)
        return None


@dataclass(frozen=True)
class Bound:
    """A query, and what is promised of the tables that it reads."""

    query: Relation
    promises: Promises


def _delta(share: float, retracting: frozenset[str]) -> dict[str, tuple[float, float]]:
    return {
        table: (share, share * RETRACTED if table in retracting else 0.0)
        for table in (*SALES, *RETURNS)
    }


PATTERNS = {
    "delta-big": _delta(1 / 2, frozenset()),  # as much arrives as was there
    "delta-small": _delta(1 / 5, frozenset()),  # a quarter of what was there
    "delta-R": _delta(1 / 3, SALES),  # half of it, and sales are taken back
    "delta-RS": _delta(1 / 3, SALES | RETURNS),  # returns, too
}
"""By table, the share of all rows that arrives last, and the share that goes with it."""


@contextmanager
def bound_queries(keys: bool = True) -> Iterator[dict[str, Bound]]:
    """TPC-DS's queries in normal form, those that bind without opaque parts, and what is promised
    of their tables: nothing, or their keys."""
    with (
        TemporaryDirectory() as folder,
        slackwater.connect(Path(folder) / "w", placement="local") as db,
    ):
        for statement in corpus.ddl("tpcds").values():
            db.sql(statement)
        if keys:
            db.sql(corpus.keys("tpcds"))
        world = World(db._house, db._house.catalog.snapshot(), defining=True)
        found = {}
        for name, text in corpus.queries("tpcds").items():
            try:
                relation = unordered(db._house.bound.bind(text, world.context()))
            except SqlError:
                continue
            if not any(isinstance(node, Opaque) for node in relation.walk()):
                read = {scan.source for scan in relation.scans()}
                found[name] = Bound(normalize(relation), promised(world, read))
        yield found


def problem(
    bound: Bound,
    pattern: str,
    prices: tuple[float, ...],
    scenario: str,
    sizes: Mapping[str, int] = ROWS,
) -> Problem:
    """A query with what arrives up to each point. `ivm`: a result at each point, the last run's
    cost first; `pdw`: one result at the end, the costs weighted by their prices."""
    points, query = len(prices), bound.query
    arrivals = {}
    for scan in query.scans():
        rows = sizes[scan.name]
        last, gone = PATTERNS[pattern].get(scan.name, (0.0, 0.0))
        each = rows * last / max(1, points - 1)
        change = Change(inserts=each, deletes=rows * gone / max(1, points - 1))
        changes = (change if last else Change(),) * (points - 1)
        arrivals[scan.source] = Arrival(rows * (1 - last), changes)
    known, told = Keys(sizes), bound.promises
    if scenario == "ivm":
        due = frozenset(range(points))
        return Problem(query, arrivals, prices, due, True, known, told)
    return Problem(query, arrivals, prices, known=known, promises=told)
