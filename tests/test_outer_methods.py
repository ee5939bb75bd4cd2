"""Outer joins by methods of theirs in a refresh, OJV and IM-2: the same rows, by cost."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater
from slackwater.algebra.relation import Join, Project, Relation
from slackwater.engine.local import LocalEngine
from slackwater.errors import UserError
from slackwater.planner.choice import IM2, INCREMENTAL, OJV, OPTIONAL, Candidate, choose
from slackwater.planner.subplans import cut
from slackwater.planner.ways import Ways
from slackwater.tvr.delta import Deltas
from slackwater.tvr.maintenance import (
    Maintenance,
    by_direct_and_indirect,
    by_parts,
    outer_joins,
    with_parts_kept,
)
from slackwater.tvr.methods.higher_order import spread
from slackwater.tvr.methods.spine import Spine, with_one_last
from slackwater.tvr.time import reads
from slackwater.work.trying import try_ways
from tests.test_laws import (
    QUERIES,
    SCHEMAS,
    assert_equals_recompute,
    bound,
    change_states,
    chosen,
    random_tables,
)

METHODS = {OJV: by_direct_and_indirect, IM2: by_parts}
MORE = {
    "left, by two keys": "SELECT r.s, t.c FROM r LEFT JOIN t ON r.a = t.a AND r.b = t.c",
    "left, NULLs are equal": "SELECT r.a, t.c FROM r LEFT JOIN t ON r.a <=> t.a",
    "left with its own table": "SELECT x.a, y.b FROM r x LEFT JOIN r y ON x.b = y.a",
    "left with groups": "SELECT r.a, x.n FROM r LEFT JOIN (SELECT a, SUM(c) AS n FROM t "
    "GROUP BY a) x ON r.a = x.a",
    "left with what is joined": "SELECT r.a, r.s, x.d FROM r LEFT JOIN (SELECT t.a, u.d FROM t "
    "JOIN u ON t.c = u.c) x ON r.a = x.a AND x.d <> r.b",
    "sums of left rows": "SELECT t.c, SUM(r.b) AS n, COUNT(*) AS k FROM r LEFT JOIN t "
    "ON r.a = t.a GROUP BY t.c",
    "two left joins, summed up": "SELECT t.c, COUNT(u.d) AS k, SUM(u.d) AS n FROM r "
    "LEFT JOIN t ON r.a = t.a LEFT JOIN u ON r.b = u.b GROUP BY t.c",
    "full, by more than equality": "SELECT r.a, t.c FROM r FULL JOIN t ON r.a = t.a AND r.b < t.c",
}
OUTER = {
    name: text
    for name, text in (QUERIES | MORE).items()
    if any(True for _ in outer_joins(bound(text)))
}
Follow = Callable[[Maintenance, Callable[[Relation], bool]], Maintenance | None]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEngine]:
    made = LocalEngine(tmp_path_factory.mktemp("outer"))
    yield made
    made.close()


def _applies(follow: Follow, text: str) -> bool:
    relation = bound(text)
    return follow(Maintenance(relation, {}), lambda _: True) is not None


CASES = [
    (m, name) for m, follow in METHODS.items() for name in OUTER if _applies(follow, OUTER[name])
]


@pytest.mark.parametrize(("method", "name"), CASES)
def test_changes_by_methods_of_outer_joins_equal_recompute(
    method: str, name: str, engine: LocalEngine, rng: random.Random
) -> None:
    relation, tried = bound(OUTER[name]), 0
    for i in range(12):
        given, changed = random_tables(rng)
        states = chosen(relation) if i % 2 else {}
        plan = METHODS[method](
            Maintenance(relation, states), lambda r, changed=changed: reads(r, changed)
        )
        if plan is None:
            continue
        deltas = Deltas(changed, frozenset(SCHEMAS), states, forms=plan.forms, laws=plan.laws)
        change_states(engine, deltas, given)
        assert_equals_recompute(engine, deltas, relation, given)
        tried += 1
    assert tried > 0


SPINES = {
    "left, then joined": "SELECT r.s, t.c, u.d FROM r LEFT JOIN t ON r.a = t.a JOIN u ON r.b = u.b",
    "left, semi and inner": "SELECT r.s, t.c, u.d FROM r LEFT JOIN t ON r.a = t.a "
    "JOIN u ON r.b = u.b WHERE EXISTS (SELECT 1 FROM t x WHERE x.c = r.a AND x.a <> r.b)",
    "anti below an inner join": "SELECT x.s, u.d FROM (SELECT * FROM r WHERE NOT EXISTS "
    "(SELECT 1 FROM t WHERE t.a = r.a)) x JOIN u ON x.b = u.b",
    "left joins of one table": "SELECT r.a, x.c, y.d FROM r LEFT JOIN t x ON r.a = x.a "
    "LEFT JOIN u y ON r.b = y.b JOIN t z ON z.c = r.a",
    "left of what is joined": "SELECT r.a, u.d, SUM(t.c) AS n FROM r JOIN u ON r.b = u.b "
    "LEFT JOIN t ON t.a = r.a AND t.c <> u.d GROUP BY r.a, u.d",
    "left with groups, summed up": "SELECT u.d, SUM(x.n) AS n, COUNT(*) AS k FROM r LEFT JOIN "
    "(SELECT a, SUM(c) AS n FROM t GROUP BY a) x ON r.a = x.a JOIN u ON u.b = r.b GROUP BY u.d",
    "right side of a spine": "SELECT r.s, y.c FROM r JOIN (SELECT u.b, t.c, v.a FROM u LEFT JOIN t "
    "ON u.c = t.c JOIN t v ON u.d = v.a) y ON r.b = y.b",
}


@pytest.mark.parametrize("name", SPINES)
def test_right_sides_that_are_joined_last_with_all_else_kept_equal_recompute(
    name: str, engine: LocalEngine, rng: random.Random
) -> None:
    relation, kept, methods = bound(SPINES[name]), 0, set()

    def any_last(join: Join, spine: Spine) -> Project | None:
        forms = [form for _, form in with_one_last(join, spine)]
        return rng.choice(forms) if forms else None

    for _ in range(16):
        given, changed = random_tables(rng)
        ids: dict[Relation, str] = {}
        plan = with_parts_kept(
            Maintenance(relation, chosen(relation)),
            lambda join: rng.randrange(len(spread(join).inner.inputs)),
            lambda node, ids=ids: ids.setdefault(node, f"part_{len(ids)}"),
            any_last,
        )
        assert plan is not None
        method = rng.choice(["", *METHODS])
        if method:
            other = METHODS[method](plan, lambda r, changed=changed: reads(r, changed))
            plan, method = (other, method) if other is not None else (plan, "")
        methods.add(method)
        deltas = Deltas(changed, frozenset(SCHEMAS), plan.states, forms=plan.forms, laws=plan.laws)
        kept += change_states(engine, deltas, given)
        assert_equals_recompute(engine, deltas, relation, given)
    assert kept > 0
    assert (methods > {""}) == any(outer_joins(relation))


def test_full_joins_and_inequalities_have_no_direct_part() -> None:
    assert {name for method, name in CASES if method == IM2} == set(OUTER)
    without = set(OUTER) - {name for method, name in CASES if method == OJV}
    assert without == {
        "full",
        "full using",
        "full, by more than equality",
        "left theta",
    }


def test_a_join_whose_right_side_stays_is_left_alone() -> None:
    plan = Maintenance(bound(QUERIES["left"]), {})
    for follow in METHODS.values():
        assert follow(plan, lambda r: reads(r, frozenset("r"))) is None
        assert follow(plan, lambda r: reads(r, frozenset("t"))) is not None


VIEW = "SELECT s.id, s.price, r.cost FROM sales s LEFT JOIN returns r ON s.id = r.sale"


def _warehouse(path: Path, **settings: Any) -> slackwater.Warehouse:
    db = slackwater.connect(path, placement="local", **settings)
    db.sql(
        "CREATE TABLE sales (id BIGINT, price BIGINT);"
        "CREATE TABLE returns (sale BIGINT, cost BIGINT)"
    )
    ids = np.arange(20_000)
    db.append("sales", pa.table({"id": ids, "price": ids % 97}))
    db.append("returns", pa.table({"sale": ids[::7], "cost": ids[::7] % 13}))
    db.sql(f"CREATE MATERIALIZED VIEW v AS {VIEW}")
    db.refresh("v")
    return db


def test_a_refresh_may_take_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever is cheapest: each is made so in turn, and does what the event says."""
    with _warehouse(tmp_path / "w") as db:
        for i, method in enumerate((OJV, IM2, INCREMENTAL)):
            db.sql(f"INSERT INTO returns VALUES ({i}, 5), ({7 * i}, 6), (NULL, 1), (-1, 2)")
            db.sql(f"DELETE FROM returns WHERE sale = {700 + 7 * i}")
            db.sql(f"INSERT INTO sales VALUES ({-i}, 1); DELETE FROM sales WHERE id = {14 + i}")
            _make_cheapest(monkeypatch, method)
            report = db.refresh("v")[0]
            assert (report.mode, report.method, report.reasons) == ("incremental", method, [])
            laws = {part["law"] for part in report.operators}
            assert ("direct_and_indirect" in laws) == (method == OJV)
            assert ("partners_by_count" in laws) == (method == IM2)
            assert db.verify("v").equal


@pytest.mark.parametrize("off", OPTIONAL)
def test_methods_are_switched_off_singly(tmp_path: Path, off: str) -> None:
    """They are then no candidates, and events say so."""
    allowed = [method for method in OPTIONAL if method != off]
    with _warehouse(tmp_path / "w", methods=allowed) as db:
        db.sql("INSERT INTO returns VALUES (1, 5), (-1, 2); DELETE FROM sales WHERE id = 14")
        db.refresh("v")
        (event,) = [e for e in db.history("v", limit=1) if e["kind"] == "refresh"]
        reasons = {c["method"]: c["reasons"] for c in event["candidates"]}
        assert reasons[off] == ["METHOD_SWITCHED_OFF"]
        assert all(reasons[method] != ["METHOD_SWITCHED_OFF"] for method in allowed)
        assert db.verify("v").equal
    with pytest.raises(UserError, match="methods = 'magic' is not known"):
        slackwater.connect(tmp_path / "w", methods=["magic"])


@pytest.mark.parametrize("off", [OJV, IM2])
def test_subplans_do_without_what_is_switched_off(off: str) -> None:
    (subplan,) = cut({"q": bound(QUERIES["left"])}, sharing=False).subplans
    allowed = [method for method in OPTIONAL if method != off]
    ways = Ways(subplan, lambda name: 100.0, allowed=allowed)
    assert set(ways.followed(frozenset("t"))) == {INCREMENTAL, OJV, IM2} - {off}


def _make_cheapest(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    def chosen(candidates: list[Candidate], to_build: float) -> Candidate:
        return next(c for c in candidates if c.method == method and not c.reasons)

    monkeypatch.setattr("slackwater.work.choosing.choose", chosen)


def test_each_can_be_tried(tmp_path: Path) -> None:
    with _warehouse(tmp_path / "w") as db:
        db.sql("INSERT INTO returns VALUES (1, 5), (2, 6)")
        _, tried = try_ways(db._house, "v", 1)
        methods = {way.candidate.method for way in tried if way.is_possible}
        assert {INCREMENTAL, OJV, IM2} <= methods
        db.refresh("v")
        assert db.verify("v").equal


def test_one_of_them_is_taken_where_it_is_clearly_cheaper() -> None:
    def found(seconds: float) -> list[Candidate]:
        costs = {INCREMENTAL: 1.0, OJV: seconds, IM2: 2.0}
        return [Candidate(method, "local", cpu) for method, cpu in costs.items()]

    for seconds, method in ((0.5, OJV), (0.99, INCREMENTAL)):
        taken = choose(found(seconds))
        assert taken is not None
        assert taken.method == method
