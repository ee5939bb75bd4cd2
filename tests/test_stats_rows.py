"""How many rows are expected at each operator, against what really comes."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from slackwater.algebra.relation import Relation, Scan
from slackwater.sql.bind import bind, context
from slackwater.stats.chance import of_sum
from slackwater.stats.profile import deciding_columns
from slackwater.stats.rows import Change, Estimates, Rows, groups
from slackwater.stats.values import Ignorance, Values
from slackwater.tvr.normal import normalize
from slackwater.types import INT, Field

TABLES = {
    "r": (Field("k", INT, False), Field("a", INT, True)),
    "s": (Field("k", INT, False), Field("b", INT, True)),
}


class Told(Ignorance):
    """What a test says of columns."""

    def __init__(self, columns: Mapping[tuple[str, str], Values]) -> None:
        self._columns = columns

    def values(self, source: str, column: str) -> Values | None:
        return self._columns.get((source, column))


def relation(text: str) -> Relation:
    def lookup(name: str) -> Relation | None:
        return Scan(name, name, TABLES[name]) if name in TABLES else None

    return normalize(bind(text, context(lookup, lambda: list(TABLES), None)))  # type: ignore[arg-type]


def estimate(text: str, sources: Mapping[str, Rows], **distinct: float) -> Rows:
    """Of a query, where columns such as r_k have so many values."""
    columns = {(c[0], c[2:]): Values(n, low=0, high=n) for c, n in distinct.items()}
    return Estimates(sources, Told(columns)).of(relation(text))


R = {"r": Rows(1000, Change(100, 20, 50))}
BOTH = R | {"s": Rows(100, Change(10, 0, 0))}


def test_a_filter_keeps_its_share_and_updates_may_cross_it() -> None:
    found = estimate("SELECT * FROM r WHERE a = 3", R, r_a=10)
    assert found.before == pytest.approx(100)
    assert found.change.inserts == pytest.approx(10 + found.change.deletes - 5)
    assert 0 < found.change.updates < 2
    assert found.change.updates + (found.change.deletes - 5) == pytest.approx(2)


def _updated(text: str, *updated: str, deletes: float = 0.0) -> Change:
    """What becomes of a hundred updates of some columns of r, beside s."""
    sources = {"r": Rows(1000, Change(0, 100, deletes)), "s": Rows(1000)}
    known = Told({("r", c): Values(50, low=0, high=50) for c in "ka"})
    return Estimates(sources, known, {"r": updated}).of(relation(text)).change


@pytest.mark.parametrize(
    ("text", "updated", "kinds"),
    [
        ("SELECT * FROM r WHERE a < 25", "k", (0, 50, 0)),
        ("SELECT * FROM r WHERE a < 25", "a", (25, 25, 25)),
        ("SELECT k FROM r", "a", (0, 0, 0)),
        ("SELECT k, a + 1 FROM r", "a", (0, 100, 0)),
        ("SELECT k, count(*) FROM r GROUP BY k", "a", (0, 0, 0)),
        ("SELECT count(*) FROM r", "a", (0, 0, 0)),
        ("SELECT count(a) FROM r", "a", (0, 1, 0)),
        ("SELECT r.a, s.b FROM r JOIN s ON r.k = s.k", "a", (0, None, 0)),
        ("SELECT r.a, s.b FROM r JOIN s ON r.k = s.k", "k", (None, 0, None)),
        ("SELECT * FROM s WHERE k IN (SELECT k FROM r)", "a", (0, 0, 0)),
        ("SELECT k FROM r GROUP BY k", "a", (0, 0, 0)),
        ("SELECT DISTINCT k FROM r", "a", (0, 0, 0)),
    ],
)
def test_what_an_update_is_for_an_operator_depends_on_the_columns_it_changes(
    text: str, updated: str, kinds: tuple[float | None, ...]
) -> None:
    change = _updated(text, updated)
    found = (change.inserts, change.updates, change.deletes)
    for expected, rows in zip(kinds, found, strict=True):
        if expected is None:
            assert rows > 1
        else:
            assert rows == pytest.approx(expected, abs=1e-6)


def test_an_updated_key_moves_rows_between_groups() -> None:
    other = _updated("SELECT k, sum(a) FROM r GROUP BY k", "a")
    moved = _updated("SELECT k, sum(a) FROM r GROUP BY k", "k")
    assert moved.updates > other.updates
    assert other.deletes == 0


def test_of_groups_that_are_updated_the_keys_stay() -> None:
    """A condition on keys lets through updates as they are; one on sums, not all."""
    groups = "(SELECT k, sum(a) AS n FROM r GROUP BY k)"
    by_key = _updated(f"SELECT * FROM {groups} WHERE k < 25", "a")
    by_sum = _updated(f"SELECT * FROM {groups} WHERE n < 500", "a")
    assert by_key.inserts == by_key.deletes == 0
    assert by_sum.deletes > 0


def test_where_nobody_says_what_is_updated_any_column_may_be() -> None:
    found = Estimates({"r": Rows(1000, Change(0, 100, 0))}).of(relation("SELECT k FROM r"))
    assert found.change.updates == 100


def test_updates_of_columns_fit_what_really_comes(rng: random.Random) -> None:
    """Rows of which one column is updated, through a filter, a join and groups."""
    rows = [(i, rng.randrange(50), rng.randrange(50)) for i in range(5000)]
    chosen = set(rng.sample(range(5000), 500))
    for column in (1, 2):
        new = [
            tuple(rng.randrange(50) if n == column and i in chosen else v for n, v in enumerate(r))
            for i, r in enumerate(rows)
        ]
        text = "SELECT * FROM r WHERE a < 10"
        kept = sum(o[2] < 10 and w[2] < 10 and o != w for o, w in zip(rows, new, strict=True))
        gone = sum(o[2] < 10 <= w[2] for o, w in zip(rows, new, strict=True))
        sources = {"r": Rows(5000, Change(0, 500, 0))}
        known = Told({("r", c): Values(50, low=0, high=50) for c in "ka"})
        found = Estimates(sources, known, {"r": "?ka"[column]}).of(relation(text)).change
        assert found.updates == pytest.approx(kept, abs=30)
        assert found.deletes == pytest.approx(gone, abs=30)


def test_a_range_is_known_by_its_bounds() -> None:
    assert estimate("SELECT * FROM r WHERE a < 25", R, r_a=100).before == pytest.approx(250)
    assert estimate("SELECT * FROM r WHERE 25 < a", R, r_a=100).before == pytest.approx(750)


@pytest.mark.parametrize(
    ("having", "value"),
    [
        ("count(*) > 14", lambda own: len(own) > 14),
        ("count(a) < 5", lambda own: len(own) < 5),
        ("sum(a) > 800", lambda own: sum(own) > 800),
        ("200 > sum(a)", lambda own: sum(own) < 200),
        ("avg(a) >= 60", lambda own: sum(own) / len(own) >= 60),
        ("sum(a) > 2000", lambda own: sum(own) > 2000),
    ],
)
def test_conditions_on_groups_keep_what_chance_gives(
    having: str, value: Callable[[list[int]], bool], rng: random.Random
) -> None:
    """A third was kept of all of these: of a few groups in a million as of nearly all."""
    groups: dict[int, list[int]] = {}
    for _ in range(20_000):
        groups.setdefault(rng.randrange(2000), []).append(rng.randrange(101))
    text = f"SELECT k FROM r GROUP BY k HAVING {having}"
    found = estimate(text, {"r": Rows(20_000)}, r_k=2000, r_a=100).before
    real = sum(value(own) for own in groups.values())
    assert real / 2 - 15 <= found <= 2 * real + 15


def test_what_is_summed_up_for_a_condition_is_looked_at() -> None:
    query = relation("SELECT k FROM r GROUP BY k HAVING sum(a) > 10")
    assert deciding_columns(query) == {"r": {"k", "a"}}


def test_sums_of_the_largest_values_break_nothing() -> None:
    assert 0 < of_sum(10.0, -1e300, 1e300).above(1e200) < 1
    assert of_sum(10.0, 0.0, 1.0).above(1e9) > 0


def test_counts_take_few_values() -> None:
    """As TPC-H's q13: most customers have about ten orders, and none has a thousand."""
    text = "SELECT n, count(*) FROM (SELECT k, count(*) AS n FROM r GROUP BY k) GROUP BY n"
    found = estimate(text, {"r": Rows(1e6, Change(inserts=1e4))}, r_k=1e5)
    assert 10 < found.before < 40
    assert found.change.rows < 80


def test_saturated_groups_are_updated() -> None:
    change = estimate("SELECT a, count(*) FROM r GROUP BY a", R, r_a=5).change
    assert change.inserts == pytest.approx(0, abs=1e-6)
    assert change.deletes == pytest.approx(0, abs=1e-6)
    assert change.updates == pytest.approx(5, rel=0.01)


def test_groups_of_one_row_come_and_go() -> None:
    found = groups(Rows(100, Change(10, 0, 10)), 1e9)
    assert found.before == pytest.approx(100, rel=0.01)
    assert found.change.inserts == pytest.approx(10, rel=0.01)
    assert found.change.deletes == pytest.approx(10, rel=0.01)
    assert found.change.updates == pytest.approx(0, abs=0.1)


def test_one_group_without_keys() -> None:
    assert estimate("SELECT sum(a) FROM r", R) == Rows(1, Change(updates=1))


def test_an_inner_join_grows_by_both_sides() -> None:
    found = estimate("SELECT * FROM r JOIN s ON r.k = s.k", BOTH, r_k=100, s_k=100)
    assert found.before == pytest.approx(1000)
    assert found.change.inserts == pytest.approx(100 * 110 / 100 + 10 * 1000 / 100)
    assert found.change.deletes == pytest.approx(50 * 110 / 100)


def test_a_join_of_two_columns_meets_combinations_that_are_there() -> None:
    """Each row of a thousand has a key of its own in two columns of 500 values each."""
    text = "SELECT * FROM r JOIN s ON r.k = s.k AND r.a = s.b"
    sizes = {"r": Rows(1000), "s": Rows(100)}
    found = estimate(text, sizes, r_k=500, r_a=500, s_k=500, s_b=500)
    assert found.before == pytest.approx(100)


@pytest.mark.parametrize("how", ["LEFT", "FULL", "LEFT SEMI", "LEFT ANTI"])
def test_partners_that_come_first_flip_rows(how: str) -> None:
    """Few right rows find many left rows alone: those they meet change sides."""
    sources = {"r": Rows(1000), "s": Rows(0, Change(inserts=10))}
    change = estimate(f"SELECT r.* FROM r {how} JOIN s ON r.k = s.k", sources, r_k=100).change
    pairs, met = pytest.approx(100, rel=0.01), pytest.approx(1000 * (1 - 0.99**10), rel=0.01)
    if how == "LEFT SEMI":
        assert (change.inserts, change.deletes) == (met, 0)
    elif how == "LEFT ANTI":
        assert (change.inserts, change.deletes) == (0, met)
    else:
        assert (change.inserts, change.deletes) == (pairs, met)


def test_nothing_that_does_not_change_is_expected_to() -> None:
    still = {"r": Rows(1000), "s": Rows(100)}
    for text in (
        "SELECT a, sum(k) FROM r GROUP BY a",
        "SELECT * FROM r FULL JOIN s ON r.k = s.k",
        "SELECT k FROM r EXCEPT SELECT k FROM s",
        "SELECT k FROM r INTERSECT ALL SELECT k FROM s",
        "SELECT k, row_number() OVER (PARTITION BY a ORDER BY k) AS n FROM r",
        "SELECT * FROM r ORDER BY k LIMIT 3",
        "SELECT DISTINCT a FROM r UNION ALL SELECT b FROM s",
    ):
        assert estimate(text, still).change.rows == 0, text


def test_bad_numbers_break_nothing() -> None:
    for rows in (0.0, 1e18):
        sources = {n: Rows(rows, Change(rows, rows, rows)) for n in TABLES}
        for text in (
            "SELECT r.a, count(*) FROM r LEFT JOIN s ON r.k = s.k GROUP BY r.a",
            "SELECT k FROM r WHERE a IS NULL EXCEPT SELECT k FROM s WHERE b BETWEEN 3 AND 1",
        ):
            found = estimate(text, sources, r_a=0, s_b=-1)
            assert found.before >= 0
            assert found.change.rows >= 0


QUERIES = {
    "filter": "SELECT * FROM r WHERE a < 12",
    "join": "SELECT r.k, r.a, s.b FROM r JOIN s ON r.k = s.k",
    "left": "SELECT r.k, r.a, s.b FROM r LEFT JOIN s ON r.k = s.k",
    "semi": "SELECT * FROM r LEFT SEMI JOIN s ON r.k = s.k",
    "anti": "SELECT * FROM r LEFT ANTI JOIN s ON r.k = s.k",
    "groups": "SELECT k, a FROM r GROUP BY k, a",
    "distinct": "SELECT DISTINCT k FROM r",
}


def answer(name: str, r: list[tuple[int, int]], s: list[tuple[int, int]]) -> list[tuple[int, ...]]:
    """What each of the queries gives."""
    partners: dict[int, list[int]] = {}
    for k, b in s:
        partners.setdefault(k, []).append(b)
    joined = [(k, a, b) for k, a in r for b in partners.get(k, ())]
    alone = [(k, a) for k, a in r if k not in partners]
    return {
        "filter": [(k, a) for k, a in r if a < 12],
        "join": joined,
        "left": [*joined, *((k, a, -1) for k, a in alone)],
        "semi": [(k, a) for k, a in r if k in partners],
        "anti": alone,
        "groups": list(set(r)),
        "distinct": [(k,) for k in {k for k, _ in r}],
    }[name]  # type: ignore[return-value]


@pytest.mark.parametrize("name", QUERIES)
def test_random_rows_come_as_expected(name: str, rng: random.Random) -> None:
    """Before, inserts and deletes of uniform data are within a third of the estimate."""
    keys, values = 300, 40

    def draw(n: int) -> list[tuple[int, int]]:
        return [(rng.randrange(keys), rng.randrange(values)) for _ in range(n)]

    r, s = draw(4000), draw(400)
    kept, new = r[400:], r[400:] + draw(600)
    more = s[40:] + draw(80)
    sources = {"r": Rows(4000, Change(600, 0, 400)), "s": Rows(400, Change(80, 0, 40))}
    found = estimate(QUERIES[name], sources, r_k=keys, s_k=keys, r_a=values)
    before, after = answer(name, r, s), answer(name, new, more)
    assert len(kept) == 3600
    assert found.before == pytest.approx(len(before), rel=0.1)
    assert found.after == pytest.approx(len(after), rel=0.15)
    if name in ("groups", "distinct"):
        return
    gone, come = _difference(before, after), _difference(after, before)
    assert found.change.deletes == pytest.approx(gone, rel=0.4)
    assert found.change.inserts == pytest.approx(come, rel=0.4)


def _difference(a: list[tuple[int, ...]], b: list[tuple[int, ...]]) -> int:
    from collections import Counter

    return sum((Counter(a) - Counter(b)).values())


QUERIES_OF_ALL_KINDS = (
    "SELECT a, count(*) FROM r WHERE a < 25 GROUP BY a",
    "SELECT r.a, sum(s.b) FROM r JOIN s ON r.k = s.k GROUP BY r.a",
    "SELECT * FROM r LEFT JOIN s ON r.k = s.k",
    "SELECT * FROM r FULL JOIN s ON r.k = s.k",
    "SELECT * FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.k = r.k AND s.b IN (1, 2))",
    "SELECT * FROM r WHERE k NOT IN (SELECT k FROM s)",
    "SELECT DISTINCT a FROM r UNION ALL SELECT b FROM s",
    "SELECT a FROM r EXCEPT SELECT b FROM s",
    "SELECT a, rank() OVER (PARTITION BY k ORDER BY a) FROM r",
    "SELECT * FROM r ORDER BY a LIMIT 10",
    "SELECT sum(a) FROM r",
    "SELECT a, k, count(*) FROM r GROUP BY CUBE (a, k)",
    "SELECT k, sum(a) FROM r GROUP BY k HAVING sum(a) > 90 AND count(*) < 4",
    "SELECT n, count(*) FROM (SELECT k, count(*) AS n FROM r GROUP BY k) GROUP BY n",
)


@pytest.mark.parametrize("text", QUERIES_OF_ALL_KINDS)
def test_many_intervals_at_once_give_what_each_gives(text: str, rng: random.Random) -> None:
    def some() -> float:
        return rng.choice((0.0, 1.0, rng.uniform(0, 500)))

    cases = [
        {n: Rows(some(), Change(some(), some(), some() / 10)) for n in TABLES} for _ in range(8)
    ]
    together = {
        name: Rows(
            np.array([case[name].before for case in cases]),
            Change(*(np.array(amounts) for amounts in zip(*changes, strict=True))),
        )
        for name in TABLES
        for changes in [[_kinds(case[name].change) for case in cases]]
    }
    found = estimate(text, together, r_k=300, r_a=50, s_k=80, s_b=5)
    for i, case in enumerate(cases):
        alone = estimate(text, case, r_k=300, r_a=50, s_k=80, s_b=5)
        of_case = [_at(found.before, i), *(_at(a, i) for a in _kinds(found.change))]
        assert of_case == pytest.approx([alone.before, *_kinds(alone.change)]), (case, i)


def _kinds(change: Change) -> tuple[float, float, float]:
    return change.inserts, change.updates, change.deletes


def _at(amounts: float, i: int) -> float:
    return amounts[i] if isinstance(amounts, np.ndarray) else amounts
