"""Queries cut into subplans, what these cost at a pace, and which paces are found."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from slackwater.algebra.relation import Project, Relation, Scan
from slackwater.errors import UserError
from slackwater.planner.choice import HIGHER_ORDER, IM2, INCREMENTAL, OJV, PLAIN
from slackwater.planner.compaction import FANOUT
from slackwater.planner.course import Course, Interval
from slackwater.planner.flushes import schedule
from slackwater.planner.pace import LADDER, MODES, WORTH, Goal, Search
from slackwater.planner.reach import at_least, nearest_goal
from slackwater.planner.simulation import NOTHING, Cost, Inflow, Setting, Simulation
from slackwater.planner.subplans import Dag, cut, is_subplan
from slackwater.planner.ways import Ways
from slackwater.sql.bind import bind, context
from slackwater.sql.tables import unordered
from slackwater.stats.rows import Change
from slackwater.stats.values import Ignorance, Values
from slackwater.tvr.normal import normalize
from slackwater.types import INT, Field
from tests.test_laws import QUERIES
from tests.test_laws import bound as bound_law

TABLES = {
    "sales": ("id", "customer", "price"),
    "customers": ("id", "region"),
}

ABOVE_AVERAGE = """
    SELECT s.id, s.price FROM sales s JOIN
      (SELECT customer, avg(price) AS usual FROM sales GROUP BY customer) a
      ON s.customer = a.customer
    WHERE s.price > a.usual
"""
BY_REGION = """
    SELECT c.region, sum(s.price) AS total FROM sales s JOIN customers c ON s.customer = c.id
    GROUP BY c.region
"""
LARGEST = "SELECT max(n) FROM (SELECT customer, sum(price) AS n FROM sales GROUP BY customer)"


def query(text: str) -> Relation:
    def lookup(name: str) -> Relation | None:
        fields = tuple(Field(c, INT, False) for c in TABLES.get(name, ()))
        return Scan(name, name, fields) if fields else None

    bound = bind(text, context(lookup, lambda: list(TABLES), None))  # type: ignore[arg-type]
    return normalize(unordered(bound))


def inflows(sales: float = 1e7, customers: float = 0.0) -> dict[str, Inflow]:
    return {
        "sales": Inflow(0.0, Change(inserts=sales)),
        "customers": Inflow(1e5, Change(inserts=customers)),
    }


def simulation(texts: Mapping[str, str], **options: bool) -> Simulation:
    return Simulation(cut({n: query(t) for n, t in texts.items()}, **options), Setting(inflows()))


# -- cutting


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("sharing", [True, False])
def test_subplans_put_together_are_the_query(name: str, sharing: bool) -> None:
    relation = bound_law(QUERIES[name])
    dag = cut({"q": relation}, sharing=sharing)
    assert dag.expanded(dag.roots["q"]) is relation


def test_a_query_is_cut_where_rows_are_held_back_below_more_work() -> None:
    dag = cut({"q": query(ABOVE_AVERAGE)}, sharing=False)
    below, root = dag.subplans
    assert isinstance(below.relation, Project)  # what follows the aggregate is done with it
    assert below.inputs == ("sales",)
    assert set(root.inputs) == {"sales", "#0"}
    assert dag.parents == ((1,), ())


def test_what_merely_follows_an_aggregate_stays_with_it() -> None:
    assert len(cut({"q": query(BY_REGION + " HAVING sum(s.price) > 10")}).subplans) == 1


def test_equal_pieces_of_queries_are_shared() -> None:
    queries = {"a": query(ABOVE_AVERAGE), "b": query(ABOVE_AVERAGE + " AND s.id > 3")}
    shared, apart = cut(queries), cut(queries, sharing=False)
    assert len(shared.subplans) == 3
    assert shared.subplans[0].queries == {"a", "b"}
    assert len(apart.subplans) == 4
    assert all(len(s.queries) == 1 for s in apart.subplans)


def test_paths_are_inputs_of_subplans() -> None:
    dag: Dag = cut({"q": query(ABOVE_AVERAGE)})
    assert {p for s in dag.subplans for p in s.paths} == {(0, "sales"), (1, "sales"), (1, "#0")}


# -- costs


def test_who_reads_less_often_than_is_written_reads_rows_again_and_again() -> None:
    """Sums by customer: nearly all change in each of seven runs, and a reader at the end has seven
    changes of each before it, not one; unless so many are there that they were merged."""
    text = "SELECT customer, count(*) AS n FROM sales GROUP BY customer"
    found = simulation({"q": f"SELECT n, count(*) AS k FROM ({text}) GROUP BY n"}, sharing=False)
    search = Search(found, {}, "paths")
    below, reader = (0, "sales"), (1, "#0")
    assert set(search.paths) == {below, reader}
    often = search.cost(1, {below: 7, reader: 1})
    once = found.cost(1, (1,))
    assert often.final > 1.5 * once.final
    assert often.total > once.total
    assert found.backlog(0, 10, 10) == found.backlog(0, 1, 1) == NOTHING
    assert found.backlog(0, 6, 2).final < found.backlog(0, 6, 1).final
    assert found.backlog(0, FANOUT, 1).final < found.backlog(0, FANOUT - 1, 1).final


def test_a_log_to_which_rows_are_only_added_is_read_once() -> None:
    found = simulation({"q": ABOVE_AVERAGE.replace("avg(price)", "count(id)")}, sharing=False)
    kept = Simulation(cut({"q": query("SELECT id FROM sales WHERE price > 3")}), Setting(inflows()))
    assert kept.backlog(0, 10, 1).total == pytest.approx(0.0, abs=1e-9)
    assert found.backlog(0, 10, 1).total > 0


def test_a_run_flushes_the_paths_whose_turn_it_is() -> None:
    ends, flushed = schedule((1, 4))
    assert ends.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert flushed[:, 0].tolist() == [False, False, False, True]
    assert flushed[:, 1].all()


def test_more_runs_make_the_last_one_shorter_and_all_of_them_dearer() -> None:
    found = simulation({"q": "SELECT customer, sum(price) FROM sales GROUP BY customer"})
    costs = [found.cost(0, (k,)) for k in (1, 2, 10, 50)]
    assert [c.runs for c in costs] == [1, 2, 10, 50]
    assert all(a.final > b.final for a, b in itertools.pairwise(costs))
    assert all(a.total < b.total for a, b in itertools.pairwise(costs))


def test_paces_asked_for_alone_or_with_others_cost_the_same() -> None:
    alone, together = (simulation({"q": ABOVE_AVERAGE}) for _ in range(2))
    together.rungs = LADDER
    for k in (1, 3, 64):
        for paces in ((k, k), (1, k)):
            assert alone.cost(1, paces).total == pytest.approx(together.cost(1, paces).total)


def test_what_arrives_while_it_is_cheap_is_cheaper() -> None:
    dag = cut({"q": query("SELECT customer, sum(price) FROM sales GROUP BY customer")})
    cheap = Setting(inflows(), course=Course([Interval(np.array([0.1, 0.1, 0.1, 1.0]))]))
    assert Simulation(dag, cheap).cost(0, (10,)).total < 0.7 * (
        Simulation(dag, Setting(inflows())).cost(0, (10,)).total
    )


@pytest.mark.parametrize("pace", [1, 10])
def test_subplans_that_always_run_with_their_reader_are_a_part_of_it(pace: int) -> None:
    """As a refresh does: one run, what is below is not written; the only run needs no states."""
    search = Search(simulation({"q": ABOVE_AVERAGE}, sharing=False), {})
    whole = simulation({"q": ABOVE_AVERAGE}, sharing=False, blocking=False)
    paces = dict.fromkeys(search.paths, pace)
    inside, root = (search.cost(n, paces) for n in (0, 1))
    assert inside == NOTHING
    assert root == whole.cost(0, (pace,))
    apart = [search.simulation.cost(n, (pace,) * (n + 1)) for n in (0, 1)]
    assert root.final < sum(cost.final for cost in apart)


def test_a_subplan_with_another_pace_than_its_reader_is_by_itself() -> None:
    search = Search(simulation({"q": ABOVE_AVERAGE}, sharing=False), {})
    early = dict.fromkeys(search.paths, 1) | {(0, "sales"): 2}
    assert search.cost(0, early).total == search.simulation.cost(0, (2,)).total
    assert search.cost(1, early).total > search.simulation.cost(1, (1, 1)).total  # reads twice
    uneven = dict.fromkeys(search.paths, 2) | {(1, "sales"): 1}
    assert search.cost(0, uneven).total == search.simulation.cost(0, (2,)).total


def test_those_inside_of_one_are_inside_with_what_they_read() -> None:
    """Three subplans, one above the other: the two of one pace are one."""
    text = (
        "SELECT n, count(*) AS k FROM (SELECT customer, count(*) AS n FROM sales GROUP BY customer)"
    )
    deep = f"SELECT k, max(n) AS n FROM ({text} GROUP BY n) GROUP BY k"
    search = Search(simulation({"q": deep}, sharing=False), {}, "paths")
    assert [s.inputs for s in search.dag.subplans] == [("sales",), ("#0",), ("#1",)]
    once = dict.fromkeys(search.paths, 1)
    assert [search.run_with(n, once) for n in range(3)] == [2, 2, 2]
    below = once | {(0, "sales"): 3}
    assert [search.run_with(n, below) for n in range(3)] == [0, 2, 2]
    together = search.simulation.cost(2, (1,), frozenset({1}))
    assert search.cost(2, below) == together + search.simulation.backlog(0, 3, 1)
    at_most = min(search._final({**once, **p})["q"] for p in ({}, below))
    assert at_least(Search(search.simulation, {}, "subplans"), "q") <= at_most


def test_what_does_not_change_costs_nothing() -> None:
    still = {"sales": Inflow(1e6, Change()), "customers": Inflow(1e5, Change())}
    found = Simulation(cut({"q": query(BY_REGION)}), Setting(still))
    assert found.cost(0, ()).total == 0


# -- methods

CHAIN = "SELECT u.d, SUM(r.b) AS n FROM r JOIN t ON r.a = t.a JOIN u ON t.c = u.c GROUP BY u.d"


@dataclass(frozen=True)
class Keys(Ignorance):
    """Columns take so many values."""

    distinct: float

    def values(self, source: str, column: str) -> Values | None:
        return Values(self.distinct)


def chain(dimensions: float, coming: float) -> Simulation:
    """What comes is joined by keys with two tables that stay."""
    still = Inflow(dimensions, Change())
    inflows = {"r": Inflow(0.0, Change(inserts=coming)), "t": still, "u": still}
    setting = Setting(inflows, known=Keys(dimensions))
    return Simulation(cut({"q": bound_law(CHAIN)}), setting)


def test_the_method_differs_with_the_pace() -> None:
    """All rows at once are joined anew; some of them meet what they are joined with, kept, which
    is not worth building for few."""
    played = chain(3e5, 2e7)
    methods = {k: played.cost(0, (k,)).method for k in (1, 2, 10, 50)}
    assert methods == {1: PLAIN, 2: HIGHER_ORDER, 10: HIGHER_ORDER, 50: INCREMENTAL}


def test_parts_of_joins_are_kept_where_that_saves_more_than_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paces = (1, 3, 10, 50)
    sizes = [(3e5, 2e7), (1e6, 2e7), (1e4, 1e5), (3e6, 1e5)]
    found = [chain(*own).cost(0, (k,)) for own in sizes for k in paces]
    monkeypatch.setattr(Ways, "joined", None)
    without = [chain(*own).cost(0, (k,)) for own in sizes for k in paces]
    assert {cost.method for cost in found} >= {HIGHER_ORDER, INCREMENTAL}
    for cost, other in zip(found, without, strict=True):
        assert other.method != HIGHER_ORDER
        if cost.method == HIGHER_ORDER:
            assert cost.total < other.total
        else:
            assert cost == other


def test_what_is_kept_for_later_is_paid_for_by_each_run() -> None:
    """Both inputs change: the part with one of them is brought along by every run."""
    still = Inflow(1e6, Change())
    for coming in (0.0, 1e6):
        moving = {"r": Inflow(0.0, Change(inserts=2e7)), "t": Inflow(1e6, Change(inserts=coming))}
        played = Simulation(cut({"q": bound_law(CHAIN)}), Setting({**moving, "u": still}))
        (subplan,) = played.dag.subplans
        ways = played._ways(subplan)
        assert ways.joined is not None
        moved = frozenset(played.moving(subplan))
        own = ways.following(INCREMENTAL, ways.plan, moved, True)
        more = ways.following(HIGHER_ORDER, ways.joined, moved, True)
        assert len(more) - len(own) == (1 if coming else 0)


def test_runs_follow_outer_joins_by_methods_of_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    left = bound_law("SELECT r.a, r.s, t.c FROM r LEFT JOIN t ON r.a = t.a")
    moving = {"r": Inflow(1e6, Change()), "t": Inflow(1e6, Change(inserts=1e5))}

    def costs() -> list[Cost]:
        played = Simulation(cut({"q": left}), Setting(moving))
        return [played.cost(0, (k,)) for k in (2, 10, 50)]

    found = costs()
    monkeypatch.setattr(Ways, "_follow", lambda ways, moved: [(INCREMENTAL, ways.plan)])
    without = costs()
    assert {cost.method for cost in found} & {OJV, IM2}
    assert {cost.method for cost in without} == {INCREMENTAL}
    assert all(cost.total < other.total for cost, other in zip(found, without, strict=True))


# -- searching

TEXTS = {"above": ABOVE_AVERAGE, "region": BY_REGION, "largest": LARGEST}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("share", [1.0, 0.5, 0.1])
def test_goals_that_can_be_met_are(mode: str, share: float) -> None:
    search = Search(simulation(TEXTS), {q: Goal(share=share) for q in TEXTS}, mode, worth=0.0)
    found = search.greedy()
    assert search.is_allowed(found.paces)
    if share == 1.0:
        assert set(found.paces.values()) == {1}
    for name, seconds in found.missed.items():  # nothing shorter was to be had, all paths alike
        assert mode == "uniform" or found.final[name] <= nearest_goal(search, name) * 1.2, seconds


@pytest.mark.parametrize("mode", MODES)
def test_where_nothing_comes_there_is_nothing_to_pace(mode: str) -> None:
    """Of one query, while another has rows to wait for."""
    dag = cut({"still": query("SELECT region, count(*) AS n FROM customers GROUP BY region")})
    still = Simulation(dag, Setting(inflows()))
    assert Search(still, {"still": Goal(share=0.1)}, mode).greedy().paces == {}
    texts = {"still": "SELECT DISTINCT region FROM customers", "moving": LARGEST}
    both = Search(simulation(texts), {"still": Goal(0.0), "moving": Goal(share=0.3)}, mode)
    assert max(both.greedy().paces.values()) > 1


def test_a_table_that_loses_rows_never_has_fewer_than_none() -> None:
    """As many deletions are expected as there were lately, of fewer rows."""
    times = np.linspace(0, 1, 5)
    rows = Inflow(100.0, Change(deletes=400.0)).between(times[:-1], times[1:])
    assert np.all(np.asarray(rows.before) >= 0)


def test_without_goals_everything_waits() -> None:
    found = Search(simulation(TEXTS), {}).greedy()
    assert set(found.paces.values()) == {1}
    assert not found.missed


@pytest.mark.parametrize("share", [0.7, 0.4, 0.25])
@pytest.mark.parametrize("name", TEXTS)
def test_greedy_is_near_the_best_there_is(name: str, share: float) -> None:
    search = Search(simulation({name: TEXTS[name]}), {name: Goal(share=share)}, worth=0.0)
    found, best = search.greedy(), search.brute_force((1, 2, 3, 4, 6, 8, 12, 16))
    if best.missed:
        assert sum(found.missed.values()) <= sum(best.missed.values()) * 1.05
    else:
        assert not found.missed
        assert found.total <= best.total * 1.25


def test_greedy_is_no_worse_than_chance(rng: random.Random) -> None:
    search = Search(simulation(TEXTS), {q: Goal(share=0.5) for q in TEXTS}, worth=0.0)
    chance = [[rng.choice(LADDER) for _ in range(search.choices)] for _ in range(200)]
    found, drawn = search.greedy(), search.sampled([[1] * search.choices, *chance])
    assert len(found.missed) <= len(drawn.missed)
    assert found.missed or found.total <= drawn.total


def test_paths_of_their_own_are_never_dearer_than_one_pace_for_all() -> None:
    """A goal out of reach is chased as far as it is worth: what is missed and what it costs count
    together there."""
    for share in (0.5, 0.3):
        goals = {q: Goal(share=share) for q in TEXTS}
        own, one = (Search(simulation(TEXTS), goals, m).greedy() for m in ("paths", "uniform"))
        assert own.total <= one.total * 1.0001
        prices = [sum(found.missed.values()) + WORTH * found.total for found in (own, one)]
        assert prices[0] <= prices[1] * 1.01


def test_nothing_is_flushed_more_often_than_it_is_made() -> None:
    search = Search(simulation({"q": ABOVE_AVERAGE}), {})
    between = next(path for path in search.paths if is_subplan(path[1]))
    paces = dict.fromkeys(search.paths, 1)
    assert not search.is_allowed(paces | {between: 2})
    assert search.is_allowed(paces | {between: 2, (0, "sales"): 2})


def test_a_goal_out_of_reach_is_not_chased_at_any_cost() -> None:
    goals = {"region": Goal(seconds=1e-6)}
    thrifty = Search(simulation({"region": BY_REGION}), goals).greedy()
    chasing = Search(simulation({"region": BY_REGION}), goals, worth=0.0).greedy()
    assert thrifty.missed
    assert chasing.missed
    assert thrifty.total <= chasing.total


@pytest.mark.parametrize("share", [1.0, 0.5, 0.25])
def test_one_pace_for_each_query_is_the_best_of_all(share: float) -> None:
    apart = simulation(TEXTS, sharing=False)
    search = Search(apart, {q: Goal(share=share) for q in TEXTS}, "uniform", 8)
    found, best = search.exhaustive(range(1, 9)), search.brute_force((1, 2, 4, 8))
    assert found.missed or found.total <= best.total
    assert len(found.missed) <= len(best.missed)


@pytest.mark.parametrize("sharing", [True, False])
@pytest.mark.parametrize("share", [1.0, 0.6, 0.45, 0.3, 0.01])
def test_one_pace_for_all_is_looked_for_among_all_paces(share: float, sharing: bool) -> None:
    """One query's goal that is out of reach says nothing about the paces of others, unless they
    share."""
    texts = {**TEXTS, "also above": f"{ABOVE_AVERAGE} AND s.id > 3"}
    goals = {q: Goal(share=share) for q in texts} | {"largest": Goal(1e-6)}
    search = Search(simulation(texts, sharing=sharing), goals, "uniform", 20)
    found = search.greedy()
    assert len(search.groups) == (3 if sharing else 4)
    for group in search.groups:
        (pace,) = {found.paces[path] for path in group}
        queries = set().union(*(search.dag.subplans[number].queries for number, _ in group))
        prices = {}
        for k in range(1, 21):
            other = {**found.paces, **dict.fromkeys(group, k)}
            whole = search.sampled([[other[g[0]] for g in search.groups]])
            missed = sum(late for query, late in whole.missed.items() if query in queries)
            prices[k] = (missed + (WORTH * whole.total if missed else 0.0), whole.total)
        assert prices[pace] == min(prices.values())


def test_unknown_modes_are_refused() -> None:
    with pytest.raises(UserError) as caught:
        Search(simulation(TEXTS), {}, "moods")
    assert "uniform" in str(caught.value)
