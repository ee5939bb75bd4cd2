"""Joins around what changes, with the parts that it meets kept: the same rows."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from slackwater.algebra.relation import Join
from slackwater.engine.local import LocalEngine
from slackwater.tvr.delta import Deltas
from slackwater.tvr.maintenance import Maintenance, with_parts_kept
from slackwater.tvr.methods.counted import counted
from slackwater.tvr.methods.higher_order import (
    around,
    components,
    is_joined,
    parts,
    spread,
    whole_joins,
)
from tests.test_laws import (
    SCHEMAS,
    assert_equals_recompute,
    bound,
    change_states,
    chosen,
    random_tables,
)

QUERIES = {
    "chain": "SELECT r.s, u.d FROM r JOIN t ON r.a = t.a JOIN u ON t.c = u.c",
    "triangle": "SELECT r.s, u.d FROM r JOIN t ON r.a = t.a JOIN u ON t.c = u.c AND u.b = r.b",
    "one table three times": "SELECT x.a FROM t x JOIN t y ON x.a = y.c JOIN t z ON y.a = z.c",
    "sums": "SELECT r.a, SUM(u.d * r.b) AS n, COUNT(*) AS k FROM r JOIN t ON r.a = t.a "
    "JOIN u ON t.c = u.c WHERE u.d > 0 GROUP BY r.a",
    "four": "SELECT r.a, MAX(v.c) AS n FROM r JOIN t ON r.a = t.a JOIN u ON t.c = u.c "
    "JOIN t v ON u.d = v.a GROUP BY r.a",
    "without a condition": "SELECT r.a, u.d FROM r CROSS JOIN t JOIN u ON t.c = u.c",
    "over an aggregate": "SELECT r.a, x.n, u.d FROM r JOIN (SELECT a, SUM(c) AS n FROM t "
    "GROUP BY a) x ON r.a = x.a JOIN u ON u.b = x.a",
    "below an outer join": "SELECT x.a, y.c FROM (SELECT r.a, u.d FROM r JOIN t ON r.a = t.a "
    "JOIN u ON t.c = u.c) x LEFT JOIN t y ON x.d = y.a",
    "with what a semi join leaves": "SELECT x.s, t.c FROM (SELECT a, s FROM r WHERE b IN "
    "(SELECT c FROM u WHERE d > 0)) x JOIN t ON x.a = t.a",
    "with what an outer join gives": "SELECT x.c, r.s FROM "
    "(SELECT t.a, u.c FROM t LEFT JOIN u ON t.c = u.c) x JOIN r ON x.a = r.a WHERE x.c > r.b",
    "of those that are joined": "SELECT r.a, r.s FROM r WHERE r.b IN "
    "(SELECT t.c FROM t JOIN u ON t.a = u.b WHERE u.d > 0)",
    "of those with a sum": "SELECT r.a FROM r JOIN t ON r.a = t.a WHERE EXISTS "
    "(SELECT 1 FROM u JOIN (SELECT a, SUM(c) AS n FROM t GROUP BY a) x ON u.c = x.a AND u.d > x.n "
    "WHERE u.b = r.b AND x.n = t.c)",
    "of the same table": "SELECT x.a FROM t x WHERE x.c IN "
    "(SELECT y.a FROM t y JOIN t z ON y.c = z.a)",
    "of those in a table": "SELECT r.a, r.s FROM r WHERE r.a IN (SELECT t.c FROM t WHERE t.a > 1)",
    "of those in no table": "SELECT r.a, COUNT(*) AS n FROM r WHERE NOT EXISTS "
    "(SELECT 1 FROM t WHERE t.a = r.a AND t.c > 0) GROUP BY r.a",
    "of those in no join": "SELECT r.s FROM r WHERE NOT EXISTS "
    "(SELECT 1 FROM t JOIN u ON t.c = u.c WHERE t.a = r.a AND u.b = r.b)",
    "of those not in itself": "SELECT x.a FROM t x WHERE NOT EXISTS "
    "(SELECT 1 FROM t y WHERE y.c = x.a)",
    "of those in one and not in another": "SELECT r.s FROM r WHERE r.a IN (SELECT c FROM u) "
    "AND NOT EXISTS (SELECT 1 FROM t WHERE t.c = r.b)",
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEngine]:
    made = LocalEngine(tmp_path_factory.mktemp("higher_order"))
    yield made
    made.close()


@pytest.mark.parametrize("name", QUERIES)
def test_changes_that_meet_kept_parts_equal_recompute(
    name: str, engine: LocalEngine, rng: random.Random
) -> None:
    relation = bound(QUERIES[name])
    kept = 0
    for _ in range(12):
        given, changed = random_tables(rng)
        numbers = {}

        def id_of(node: object, numbers: dict[object, str] = numbers) -> str:
            return numbers.setdefault(node, f"part_{len(numbers)}")

        def any_input(join: Join) -> int:
            return rng.randrange(len(spread(join).inner.inputs))

        plan = with_parts_kept(Maintenance(relation, chosen(relation)), any_input, id_of)
        if plan is None:
            continue
        deltas = Deltas(changed, frozenset(SCHEMAS), plan.states, forms=plan.forms)
        kept += change_states(engine, deltas, given)
        assert_equals_recompute(engine, deltas, relation, given)
    assert kept > 0


def _joined(text: str) -> Join:
    return next(n for n in reversed(list(bound(text).walk())) if isinstance(n, Join))


def test_what_only_the_changed_input_holds_together_is_kept_apart() -> None:
    chain = spread(_joined(QUERIES["chain"])).inner
    assert list(components(chain, 0)) == [[1, 2]]
    assert list(components(chain, 1)) == [[0], [2]]
    assert list(components(chain, 2)) == [[0, 1]]


def test_a_join_whose_parts_are_single_inputs_stays_as_it_is() -> None:
    assert around(_joined(QUERIES["chain"]), 1) is None


def test_what_a_semi_join_leaves_is_kept_though_it_is_a_single_input() -> None:
    join = next(j for j in whole_joins(bound(QUERIES["with what a semi join leaves"])))
    inputs = spread(join).inner.inputs
    stored = next(i for i, r in enumerate(inputs) if not is_joined(r))
    form = around(join, stored)
    assert form is not None
    assert [is_joined(part) for part in parts(form)] == [True]
    assert around(join, 1 - stored) is None


def test_the_form_has_the_same_columns() -> None:
    join = _joined(QUERIES["triangle"])
    for pivot in range(3):
        form = around(join, pivot)
        assert form is not None
        assert [(f.name, f.type) for f in form.schema] == [(f.name, f.type) for f in join.schema]
        assert len(parts(form)) == 1


def _matching(text: str) -> Join:
    found = (n for n in bound(text).walk() if isinstance(n, Join) and n.how in ("semi", "anti"))
    return next(found)


@pytest.mark.parametrize(
    "name", ["of those that are joined", "of those in a table", "of those in no table"]
)
def test_semi_and_anti_joins_count_their_keys(name: str) -> None:
    join = _matching(QUERIES[name])
    found = counted(join)
    assert found is not None
    form, keys = found
    assert [(f.name, f.type) for f in form.schema] == [(f.name, f.type) for f in join.schema]
    assert (len(keys.keys), keys.aggs) == (1, ())


def test_what_is_grouped_already_is_not_counted() -> None:
    right = "SELECT a FROM t GROUP BY a HAVING COUNT(*) > 1"
    assert counted(_matching(f"SELECT r.s FROM r WHERE r.a IN ({right})")) is None


def test_a_semi_join_with_more_than_equality_stays_as_it_is() -> None:
    text = """SELECT r.s FROM r WHERE EXISTS
        (SELECT 1 FROM t JOIN u ON t.c = u.c WHERE t.a = r.a AND u.d > r.b)"""
    assert counted(_matching(text)) is None
