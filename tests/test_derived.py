"""What is known of values in what is stored of a query: of its states, and of its pieces."""

from __future__ import annotations

import numpy as np
import pytest

from slackwater.planner.simulation import Inflow, Setting, Simulation
from slackwater.planner.subplans import cut
from slackwater.stats.cost import step_work
from slackwater.stats.derived import Computed, Derived
from slackwater.stats.rows import Change, Estimates, Rows
from slackwater.stats.values import Ignorance, Values
from slackwater.tvr.states import choose_states
from slackwater.tvr.time import NEW
from tests.test_laws import QUERIES, bound
from tests.test_pace import Keys as Known

ROWS = 100_000.0
WHOLE = np.zeros(1), np.ones(1)
PER_KEY = "SELECT a, SUM(b) AS n FROM r GROUP BY a"


def played(text: str, known: Ignorance) -> Simulation:
    """A query of which all rows come in one run."""
    inflows = dict.fromkeys(("r", "t", "u"), Inflow(0.0, Change(inserts=ROWS)))
    dag = cut({"q": bound(text)}, blocking=False, sharing=False)
    return Simulation(dag, Setting(inflows, known=known))


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("distinct", [50.0, 60_000.0])
def test_as_many_rows_are_expected_from_states_as_without(name: str, distinct: float) -> None:
    simulation = played(QUERIES[name], Known(distinct))
    (subplan,) = simulation.dag.subplans
    ways = simulation._ways(subplan)
    sizes = simulation._sizes(subplan, dict.fromkeys(simulation.moving(subplan), WHOLE))
    sizes.work([*ways.anew(), *ways.plain()])
    count = sizes._estimates.of
    kept, plain = (float(np.ravel(count(o[-1]).before)[0]) for o in (ways.anew(), ways.plain()))
    assert kept == pytest.approx(plain, rel=0.7, abs=1.0)


def test_the_keys_of_stored_sums_take_as_many_values_as_there_are_groups() -> None:
    node = bound(PER_KEY)
    ((_, state),) = choose_states(node, lambda node: "s").items()
    of_table = Estimates({"r": Rows(ROWS)}, Known(700.0))
    computed = Computed(state.node, state.places, of_table.domain)
    derived = Derived(Known(700.0), {"s": computed}.get)
    stored = Estimates({"s" + NEW: Rows(700.0)}, derived)
    blind = Estimates({"s" + NEW: Rows(700.0)}, Known(5.0))
    assert stored.of(state.rows(NEW)).before > 400
    assert blind.of(state.rows(NEW)).before < 10
    assert derived.values("r", "a") == Values(700.0)
    assert derived.values("s@new", "s0") is None  # a sum: nobody knows


def test_reading_takes_what_the_columns_take_that_are_used() -> None:
    """A table's others stay in its files; of a piece all are there to be read."""
    narrow, wide = (bound(f"SELECT {c} FROM u WHERE b > 3") for c in ("b", "b, c, d"))
    one, three = (step_work([r], lambda node: ROWS) for r in (narrow, wide))
    assert (one.scanned, three.scanned) == (ROWS, 3 * ROWS)


def test_to_keep_the_first_rows_takes_less_than_to_sort_all() -> None:
    some = bound("SELECT a, b FROM r ORDER BY b LIMIT 3")
    half = bound("SELECT a, b FROM r ORDER BY b LIMIT 50000")
    few, many = (step_work([r], lambda node: ROWS).sorted for r in (some, half))
    assert 0 < 7 * few < many


def test_all_groups_are_there_however_few_rows_are_kept_of_each() -> None:
    """Of rows that come by chance, a table of as many keys as rows would show two thirds."""
    node = bound(PER_KEY)
    ((_, state),) = choose_states(node, lambda node: "s").items()
    domain = Estimates({"r": Rows(ROWS)}, Known(700.0)).domain
    derived = Derived(Known(700.0), {"s": Computed(node, state.places, domain)}.get)
    merged = state.rows(NEW)
    assert Estimates({"s" + NEW: Rows(700.0)}, derived).of(merged).before > 690
    assert Estimates({"s" + NEW: Rows(9_000.0)}, derived).of(merged).before < 710
