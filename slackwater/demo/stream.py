"""A seeded stream of change batches on orders and lineitem.

A batch is a Z-relation per table: old rows with weight −1, new rows with weight +1, so that an
update is both. Inserted orders are real TPC-H orders that were held back from the first load.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

WEIGHT_COLUMN = "weight"


@dataclass(frozen=True)
class Batch:
    """One change: weighted rows per table, and how many orders it touches in which way."""

    number: int
    changes: dict[str, Any]  # table name → Arrow table with a weight column
    inserted: int
    updated: int
    deleted: int

    @property
    def rows(self) -> int:
        """Weighted rows over all tables."""
        return sum(change.num_rows for change in self.changes.values())


@dataclass(frozen=True)
class Stream:
    """What is loaded first, and the batches that follow."""

    orders: Any
    lineitem: Any
    batches: tuple[Batch, ...]


def make_stream(orders: Any, lineitem: Any, batches: int, share: float, seed: int) -> Stream:
    """A stream whose every batch touches `share` of the orders.

    Two fifths of the touched orders are new, two fifths go, one fifth changes.
    """
    random = np.random.default_rng(seed)
    keys = orders["o_orderkey"].to_numpy()
    per_batch = max(5, int(len(keys) * share))
    held = random.permutation(keys)[: batches * (per_batch * 2 // 5)]
    held_orders, first_orders = _split(orders, "o_orderkey", held)
    held_lines, first_lines = _split(lineitem, "l_orderkey", held)
    live = _Live(first_orders, first_lines, held_orders, held_lines, random)
    made = tuple(_batches(live, np.array_split(held, batches), per_batch))
    return Stream(first_orders, first_lines, made)


@dataclass
class _Live:
    """The tables as they are after the batches so far, and the rows still held back."""

    orders: Any
    lines: Any
    held_orders: Any
    held_lines: Any
    random: np.random.Generator


def _batches(live: _Live, inserts: list[Any], per_batch: int) -> Iterator[Batch]:
    for number, new_keys in enumerate(inserts, 1):
        updates = per_batch // 5
        touched = live.random.choice(
            live.orders["o_orderkey"].to_numpy(), len(new_keys) + updates, replace=False
        )
        gone, changed = touched[updates:], touched[:updates]
        yield Batch(
            number, _change(live, new_keys, gone, changed), len(new_keys), updates, len(gone)
        )


def _change(live: _Live, new: Any, gone: Any, changed: Any) -> dict[str, Any]:
    """Apply one batch to the live tables; its weighted rows."""
    gone_orders, rest = _split(live.orders, "o_orderkey", gone)
    old_orders, rest = _split(rest, "o_orderkey", changed)
    added_orders = [_changed_orders(old_orders), _split(live.held_orders, "o_orderkey", new)[0]]
    live.orders = pa.concat_tables([rest, *added_orders])
    gone_lines, rest = _split(live.lines, "l_orderkey", gone)
    old_lines, rest = _split(rest, "l_orderkey", changed)
    added_lines = [_changed_lines(old_lines), _split(live.held_lines, "l_orderkey", new)[0]]
    live.lines = pa.concat_tables([rest, *added_lines])
    return {
        "orders": _weighted([gone_orders, old_orders], added_orders),
        "lineitem": _weighted([gone_lines, old_lines], added_lines),
    }


def _split(table: Any, column: str, keys: Any) -> tuple[Any, Any]:
    """Rows whose key is among `keys`, and the rest."""
    chosen = pc.is_in(table[column], value_set=pa.array(keys))
    return table.filter(chosen), table.filter(pc.invert(chosen))


def _changed_orders(orders: Any) -> Any:
    """Orders that went to one another's customers and are now being processed."""
    rows = orders.num_rows
    swapped = _set(orders, "o_custkey", orders["o_custkey"].take(np.arange(rows)[::-1]))
    return _set(swapped, "o_orderstatus", pa.array(["P"] * rows, pa.string()))


def _changed_lines(lines: Any) -> Any:
    """Lines of one piece more, shipped a week later."""
    one = pa.scalar(1, pa.decimal128(15, 2))
    week = pa.scalar(datetime.timedelta(days=7), pa.duration("s"))
    more = pc.add(lines["l_quantity"], one).cast(pa.decimal128(15, 2))
    later = pc.add(lines["l_shipdate"].cast(pa.timestamp("s")), week).cast(pa.date32())
    return _set(_set(lines, "l_quantity", more), "l_shipdate", later)


def _set(table: Any, name: str, values: Any) -> Any:
    index = table.schema.get_field_index(name)
    return table.set_column(index, table.schema.field(index), values)


def _weighted(old: list[Any], new: list[Any]) -> Any:
    """Old rows at −1, new rows at +1, in one table."""
    rows = pa.concat_tables([*old, *new])
    removed = sum(t.num_rows for t in old)
    weights = np.ones(rows.num_rows, dtype=np.int64)
    weights[:removed] = -1
    return rows.append_column(WEIGHT_COLUMN, pa.array(weights))
