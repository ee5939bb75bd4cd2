"""The normal form of a query: the same rows, in operators that changes go through cheaply."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from slackwater.algebra.explain import explain
from slackwater.algebra.expr import conjuncts
from slackwater.algebra.relation import Aggregate, Bag, Filter, Join, Relation, Scan
from slackwater.engine.local import LocalEngine
from slackwater.tvr import zset
from slackwater.tvr.normal import normalize
from slackwater.tvr.time import NOW, weighted_scan
from tests.test_laws import QUERIES, as_written, bound, evaluate, random_tables, total


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEngine]:
    made = LocalEngine(tmp_path_factory.mktemp("normal"))
    yield made
    made.close()


def stored(relation: Relation) -> Relation:
    """The relation over what is stored of its tables."""

    def rows(node: Relation) -> Relation:
        if isinstance(node, Scan):
            return Bag(weighted_scan(node.source, node.name, node.fields, NOW))
        return node

    found: Relation = relation.rewrite(rows)
    return found


def joins(relation: Relation) -> list[str]:
    return [node.how for node in relation.walk() if isinstance(node, Join)]


@pytest.mark.parametrize("name", QUERIES)
def test_the_normal_form_gives_the_same_rows(
    name: str, engine: LocalEngine, rng: random.Random
) -> None:
    written = as_written(QUERIES[name])
    for _ in range(4):
        given, _ = random_tables(rng)
        expected = evaluate(engine, zset.with_weight(stored(written)), given)
        found = evaluate(engine, zset.with_weight(stored(normalize(written))), given)
        assert total(found) == total(expected)


@pytest.mark.parametrize(
    ("condition", "how"),
    [
        ("t.c > 1", "inner"),
        ("t.c + r.b = 3", "inner"),
        ("t.c IN (1, 2)", "inner"),
        ("NOT t.c = 1", "inner"),
        ("t.c IS NOT NULL", "inner"),
        ("t.c = 1 OR t.a = 2", "left"),  # no column is known in both
        ("t.c = 1 OR t.c = 2", "inner"),
        ("t.c IS NULL", "left"),
        ("coalesce(t.c, 1) = 1", "left"),
        ("t.c <=> NULL", "left"),
        ("t.c <=> 1", "inner"),
        ("r.b > 1", "left"),
    ],
)
def test_a_left_join_is_inner_where_its_unmatched_rows_are_ruled_out(
    condition: str, how: str
) -> None:
    found = bound(f"SELECT r.a, t.c FROM r LEFT JOIN t ON r.a = t.a WHERE {condition}")
    assert joins(found) == [how]


def test_a_left_join_that_is_read_otherwise_too_stays() -> None:
    text = """WITH x AS (SELECT r.a, t.c FROM r LEFT JOIN t ON r.a = t.a)
        SELECT a FROM x WHERE c > 1 UNION ALL SELECT a FROM x"""
    assert joins(bound(text)) == ["left"]


def test_a_limit_counts_unmatched_rows() -> None:
    text = """SELECT * FROM (SELECT r.a, t.c FROM r LEFT JOIN t ON r.a = t.a ORDER BY 1, 2 LIMIT 5)
        WHERE c > 1"""
    assert joins(bound(text)) == ["left"]


NARROWED = """SELECT r.a FROM r JOIN u ON r.a = u.b WHERE {condition}
    AND r.b >= (SELECT AVG(c) FROM t WHERE t.a = u.b)"""


@pytest.mark.parametrize("condition", ["u.d = 2", "u.d IN (1, 2)", "(u.d = 1 OR u.c = 2)"])
def test_groups_are_those_of_the_chosen_keys(condition: str) -> None:
    found = bound(NARROWED.format(condition=condition))
    (groups,) = (node for node in found.walk() if isinstance(node, Aggregate))
    assert joins(groups) == ["semi"], explain(found)


@pytest.mark.parametrize("condition", ["u.d > 2", "u.d = u.c", "true"])
def test_a_condition_that_may_keep_most_rows_narrows_nothing(condition: str) -> None:
    assert "semi" not in joins(bound(NARROWED.format(condition=condition)))


def test_groups_that_others_read_are_not_narrowed() -> None:
    text = """WITH x AS (SELECT a, SUM(c) AS n FROM t GROUP BY a)
        SELECT x.n FROM x JOIN u ON x.a = u.b WHERE u.d = 2 UNION ALL SELECT n FROM x"""
    found = bound(text)
    assert "semi" not in joins(found)
    assert sum(isinstance(node, Aggregate) for node in found.walk()) == 1


def test_in_a_self_join_keys_are_not_taken_from_the_other_side() -> None:
    found = bound(QUERIES["chosen keys of a self join"])
    (groups,) = (node for node in found.walk() if isinstance(node, Aggregate))
    assert joins(groups) == [], explain(found)


def test_partners_are_grouped_before_they_are_joined() -> None:
    found = bound("SELECT r.a, COUNT(t.c) AS n FROM r LEFT JOIN t ON r.a = t.a GROUP BY r.a")
    (join,) = (node for node in found.walk() if isinstance(node, Join))
    assert isinstance(join.left, Aggregate)
    assert isinstance(join.right, Aggregate)
    assert not any(isinstance(node, Aggregate) for node in found.walk() if join in node.inputs)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT r.s, COUNT(t.c) AS n FROM r LEFT JOIN t ON r.a = t.a GROUP BY r.s",
        "SELECT r.a, COUNT(r.b) AS n FROM r LEFT JOIN t ON r.a = t.a GROUP BY r.a",
        "SELECT r.a, SUM(coalesce(t.c, 1)) AS n FROM r LEFT JOIN t ON r.a = t.a GROUP BY r.a",
        "SELECT r.a, COUNT(t.c) AS n FROM r LEFT JOIN t ON r.a = t.a AND r.b > 1 GROUP BY r.a",
        "SELECT r.a, COUNT(t.c) AS n FROM r LEFT JOIN t ON r.a = t.a AND r.b < t.c GROUP BY r.a",
        "SELECT t.a, COUNT(t.c) AS n FROM r LEFT JOIN t ON r.a = t.a GROUP BY t.a",
        "SELECT r.a, SUM(CAST(t.c AS DOUBLE)) AS n FROM r LEFT JOIN t ON r.a = t.a GROUP BY r.a",
        "SELECT r.a, COUNT(*) FILTER (WHERE t.c IS NULL) AS n FROM r LEFT JOIN t ON r.a = t.a "
        "GROUP BY r.a",
    ],
)
def test_groups_that_are_not_of_partners_alone_stay_above_the_join(text: str) -> None:
    found = bound(text)
    (join,) = (node for node in found.walk() if isinstance(node, Join))
    assert not any(isinstance(node, Aggregate) for node in join.walk()), explain(found)


def test_a_constant_that_has_to_be_computed_keeps_no_condition_above_a_join() -> None:
    """TPC-H's q14 asks for a month: its first day is plain, its end is computed."""
    text = """SELECT r.a FROM r, t WHERE r.a = t.a AND r.b >= 5 AND r.b < 5 + 3"""
    found = normalize(bound(text))
    (join,) = (node for node in found.walk() if isinstance(node, Join))
    kept = [node.predicate for node in join.walk() if isinstance(node, Filter)]
    assert len(kept) == 1
    assert len(conjuncts(kept[0])) == 2
    assert not any(isinstance(node, Filter) and join in node.walk() for node in found.walk())
