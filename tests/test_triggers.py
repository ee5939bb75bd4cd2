"""TPC-H's Q3 on many workers, from its text: what is kept, the statements of each change, blocks.

For each view and each table that it reads, the join is put around the table, as higher-order
maintenance does; the parts that its change meets are views as well, and so on (002, 3.2 and 5.3).
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from bench import corpus
from slackwater.algebra.expr import columns
from slackwater.algebra.relation import Join, Project, Relation, Scan
from slackwater.engine.local import LocalEngine
from slackwater.planner.fusion import (
    DISTRIBUTED,
    LOCAL,
    Block,
    Target,
    blocks,
    fused,
    program,
)
from slackwater.planner.places import COPIED, DRIVER, Place, by
from slackwater.sql.bind import bind, context
from slackwater.sql.tables import unordered
from slackwater.tvr import zset
from slackwater.tvr.delta import Deltas
from slackwater.tvr.laws.joins import flatten
from slackwater.tvr.maintenance import maintenance
from slackwater.tvr.methods.higher_order import (
    around,
    is_joined_or_less,
    parts,
    spread,
    whole_joins,
)
from slackwater.tvr.normal import normalize
from slackwater.tvr.preaggregate import always
from slackwater.tvr.prune import prune
from slackwater.tvr.references import origin
from slackwater.tvr.states import State
from slackwater.tvr.states.rows import RowState
from slackwater.tvr.time import CHANGE, NOW, split
from slackwater.types import BIGINT, DATE, STRING, WEIGHT, Field, Schema, to_arrow_schema
from slackwater.types import Decimal as DecimalType
from tests.test_laws import Rows, engine, evaluate, stored, total

__all__ = ["engine"]
SCHEMAS = corpus.schemas("tpch")
SUMS = "sums of "
ORDER_KEYS = (("lineitem", "l_orderkey"), ("orders", "o_orderkey"))


def q3() -> Relation:
    """Without its limit, as 002 has it."""

    def lookup(table: str) -> Relation | None:
        return Scan(table, table, SCHEMAS[table]) if table in SCHEMAS else None

    text, _, _ = corpus.queries("tpch")["q3"].partition("ORDER BY")
    return normalize(unordered(bind(text, context(lookup, lambda: list(SCHEMAS), None))))  # type: ignore[arg-type]


@dataclass
class Triggers:
    """What is kept for a query, and by what a change of one table changes it.

    `summed`: tables of which a batch is summed up before joins meet it (002, 4.5)."""

    summed: frozenset[str] = frozenset()
    views: dict[str, State] = field(default_factory=dict)
    batches: dict[str, State] = field(default_factory=dict)
    statements: dict[str, dict[str, Relation]] = field(default_factory=dict)
    """By view and table."""

    def add(self, view: State) -> None:
        """A view, and all that its changes are computed from."""
        self.views[view.node.digest()] = view
        own = self.statements[view.id] = {}
        for table in tables_of(view.node):
            forms, states = {}, {view.node: view}
            for join in whole_joins(view.node):
                form = around(join, place_of(table, spread(join).inner.inputs), is_joined_or_less)
                if form is not None:
                    forms[join] = form
                    states |= self.met(form, table)
            own[table] = self.change(view, table, states, forms)

    def met(self, form: Project, table: str) -> dict[Relation, State]:
        """The parts that a change of a table meets, as views; the change itself, summed up."""
        assert isinstance(form.input, Join)
        found = {part: self.part(part) for part in parts(form)}
        if table in self.summed:
            inputs = flatten(form.input).inputs
            own = inputs[place_of(table, inputs)]
            batch = self.batches.setdefault(table, RowState(own, f"{SUMS}{table}"))
            assert batch.node.digest() == own.digest()
            self.statements.setdefault(batch.id, {})[table] = self.change(batch, table, {}, {})
            found[own] = RowState(own, batch.id)
        return found

    def part(self, node: Relation) -> State:
        """A part of a join as a view, once."""
        if node.digest() not in self.views:
            self.add(RowState(node, f"kept {' and '.join(tables_of(node))}"))
        return RowState(node, self.views[node.digest()].id)

    def change(
        self,
        view: State,
        table: str,
        states: dict[Relation, State],
        forms: dict[Relation, Relation],
    ) -> Relation:
        deltas = Deltas(frozenset({table}), states=states, pays=always, forms=forms)
        return prune(view.change(deltas))


def tables_of(relation: Relation) -> list[str]:
    return sorted({scan.source for scan in relation.scans()})


def place_of(table: str, inputs: tuple[Relation, ...]) -> int:
    return next(i for i, r in enumerate(inputs) if table in tables_of(r))


def spread_of(view: State) -> Place:
    """By the key of the lines' orders or the orders' own, where there is one; else a copy on each
    worker."""
    row = columns(view.node.schema)
    places = {origin(view.node, column): i for i, column in enumerate(row)}
    found = [places[key] for key in ORDER_KEYS if key in places]
    return by(found[0]) if found else COPIED


def triggers(*summed: str) -> Triggers:
    query = q3()
    (sums,) = maintenance(query, "q3", query.schema, lambda node: "q3").states.values()
    made = Triggers(frozenset(summed))
    made.add(sums)
    return made


def blocks_of(made: Triggers, once: bool = False) -> list[Block]:
    """A batch with rows of all tables is on the driver; it is followed table by table, what is
    summed up first."""
    places = {view.id: spread_of(view) for view in made.views.values()}
    places |= {batch.id: by(0) for batch in made.batches.values()}
    targets = [
        Target(name, changes[table], places[name])
        for table in ("customer", "orders", "lineitem")
        for name, changes in sorted(
            made.statements.items(), key=lambda s: not s[0].startswith(SUMS)
        )
        if table in changes
    ]

    def where(scan: Scan) -> Place:
        id, _ = split(scan.source)
        return places.get(id, DRIVER)

    return blocks(program(targets, where, once))


def modes(found: list[Block]) -> tuple[int, int]:
    """How many blocks are local, and how many distributed."""
    own = [block.mode for block in found]
    return own.count(LOCAL), own.count(DISTRIBUTED)


def test_q3_keeps_what_each_table_is_joined_with() -> None:
    made = triggers()
    assert {view: sorted(own) for view, own in made.statements.items()} == {
        "q3": ["customer", "lineitem", "orders"],
        "kept lineitem and orders": ["lineitem", "orders"],
        "kept customer and orders": ["customer", "orders"],
        "kept customer": ["customer"],
        "kept orders": ["orders"],
        "kept lineitem": ["lineitem"],
    }
    copied = [v.id for v in made.views.values() if spread_of(v) == COPIED]
    assert copied == ["kept customer"]


@pytest.mark.parametrize("summed", [(), ("customer", "lineitem")])
def test_changes_meet_what_is_kept_and_no_table(summed: tuple[str, ...]) -> None:
    for view, changes in triggers(*summed).statements.items():
        for table, change in changes.items():
            read = {split(scan.source) for scan in change.scans()}
            assert {id for id, _ in read if id in SCHEMAS} <= {table}, (view, table)
            changed = {id for id, time in read if time == CHANGE}
            assert changed in ({table}, {f"{SUMS}{table}"}), (view, table)


@pytest.mark.parametrize(
    ("summed", "before", "after"),
    [
        (("customer", "lineitem"), (10, 12), (2, 2)),
        (("customer",), (11, 11), (2, 2)),
        ((), (10, 10), (1, 1)),
    ],
)
def test_its_twenty_two_blocks_become_four(
    summed: tuple[str, ...], before: tuple[int, int], after: tuple[int, int]
) -> None:
    """As in figure 5.5 of 002, whose program is not printed: 10 local and 12 distributed blocks,
    then 2 and 2. What is moved is counted for each statement that it is moved for. Changed
    customers are summed up on the workers before each of these gets a copy; if batches are joined
    as they come, nothing is between the first moves and the last statement."""
    made = triggers(*summed)
    every = blocks_of(made)
    assert modes(every) == before
    assert modes(fused(every)) == after
    assert modes(fused(blocks_of(made, once=True))) == after


def test_what_is_moved_for_several_statements_is_moved_once() -> None:
    shared = blocks_of(triggers("customer", "lineitem"), once=True)
    assert modes(shared) == (5, 12)


def test_no_statement_is_lost_in_blocks() -> None:
    every = blocks_of(triggers("customer", "lineitem"))
    together = [statement for block in fused(every) for statement in block.statements]
    assert len(together) == len(every)
    assert set(together) == {statement for block in every for statement in block.statements}


# -- what the statements give

DAYS = (date(1995, 3, 14), date(1995, 3, 16))
SEGMENTS = ("BUILDING", "MACHINERY")


def some_value(rng: random.Random, field: Field) -> Any:
    if isinstance(field.type, DecimalType):
        return Decimal(rng.randrange(3))
    return rng.choice({DATE: DAYS, STRING: SEGMENTS}.get(field.type, range(3)))


def some_rows(rng: random.Random, table: str, most: int) -> Rows:
    found = [
        (*(some_value(rng, f) for f in SCHEMAS[table]), 1) for _ in range(rng.randint(1, most))
    ]
    return Counter(found)


@pytest.mark.parametrize("summed", [(), ("customer", "lineitem")])
def test_followed_table_by_table_the_result_is_the_querys(
    summed: tuple[str, ...], engine: LocalEngine, rng: random.Random
) -> None:
    made = triggers(*summed)
    met = 0
    for _ in range(6):
        met += follow(made, engine, rng)
    assert met > 0


def follow(made: Triggers, engine: LocalEngine, rng: random.Random) -> int:
    """A batch for each table; how many rows the result has then."""
    tables = {t: some_rows(rng, t, 12) for t in ("customer", "orders", "lineitem")}
    states = {view.id: view for view in made.views.values()}
    given = {f"{t}{NOW}": with_weights(rows, SCHEMAS[t]) for t, rows in tables.items()}
    nothing = Deltas(weighted=frozenset(SCHEMAS))
    kept = {id: evaluate(engine, view.initial(nothing), given) for id, view in states.items()}
    for table, rows in tables.items():
        change = some_rows(rng, table, 6)
        change.update((*row[:-1], -1) for row in rng.sample(sorted(rows.elements()), 1))
        tables[table] = rows + change
        before = {f"{id}{NOW}": stored(own, states[id]) for id, own in kept.items()}
        before[f"{table}{CHANGE}"] = with_weights(change, SCHEMAS[table])
        for batch in made.batches.values():
            if table in made.statements[batch.id]:
                found = evaluate(engine, made.statements[batch.id][table], before)
                before[f"{batch.id}{CHANGE}"] = stored(found, batch)
        for id, own in kept.items():
            if table in made.statements[id]:
                kept[id] = own + evaluate(engine, made.statements[id][table], before)
    given = {f"{t}{NOW}": with_weights(rows, SCHEMAS[t]) for t, rows in tables.items()}
    met = 0
    for id, view in states.items():
        anew = stored(evaluate(engine, view.initial(nothing), given), view)
        found = content(engine, view, stored(kept[id], view))
        assert found == content(engine, view, anew), id
        met = len(found) if id == "q3" else met
    return met


def with_weights(rows: Rows, schema: Schema) -> pa.Table:
    fields = to_arrow_schema((*schema, Field(WEIGHT, BIGINT)))
    columns = zip(*rows.elements(), strict=True)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, fields, strict=True)]
    return pa.table(arrays, fields)


def content(engine: LocalEngine, view: State, rows: pa.Table) -> Rows:
    """The rows that a view keeps: of partial sums, the sums."""
    given = {f"{view.id}{NOW}": rows}
    own = view.weighted(NOW) if isinstance(view, RowState) else zset.with_weight(view.rows(NOW))
    return total(evaluate(engine, own, given))
