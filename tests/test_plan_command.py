"""`slackwater plan` and `db.plan()`: what is said, what is supposed, what is made.

Figures are those of the cost model before it has learnt anything: nothing here is timed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import slackwater
from slackwater.cli import exits
from slackwater.cli.app import app
from slackwater.errors import UserError
from slackwater.planner.choice import FULL, PLAIN
from slackwater.planner.simulation import RUN
from slackwater.planner.ways import METHODS
from slackwater.warehouse import Warehouse
from slackwater.work.meaning import as_written
from slackwater.work.pacing import Options, planned
from slackwater.work.plan_report import PlannedView
from slackwater.work.tradeoff import SHARES, cpu_by_view
from slackwater.work.world import World

Run = Callable[..., Any]
ROWS = 2_000_000
ABOVE = """SELECT s.id, s.price FROM sales s JOIN
  (SELECT customer, avg(price) AS usual FROM sales GROUP BY customer) a
  ON s.customer = a.customer WHERE s.price > a.usual"""
GOALS = "WITH (schedule = 'daily 06:00', within = '5x')"


def fill(db: Warehouse, table: str, rows: int = ROWS, start: int = 0) -> None:
    ids = np.arange(start, start + rows)
    columns = {"id": ids, "customer": ids % 500, "price": ids % 77}
    if table == "customers":
        columns = {"id": ids, "region": ids % 10}
    db.append(table, pa.table(columns))


def define(db: Warehouse) -> None:
    db.sql("CREATE TABLE sales (id BIGINT, customer BIGINT, price BIGINT)")
    db.sql("CREATE TABLE customers (id BIGINT, region BIGINT)")


def make_views(db: Warehouse) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW above {GOALS} AS {ABOVE}")
    db.sql(
        "CREATE MATERIALIZED VIEW above_later WITH (schedule = 'daily 06:00') "
        f"AS {ABOVE} AND s.id > 3"
    )
    db.sql(
        "CREATE MATERIALIZED VIEW region WITH (schedule = 'every 1 hour', within = '1 hour') AS "
        "SELECT region, count(*) AS n FROM customers GROUP BY region"
    )


def look(db: Warehouse) -> None:
    """Let it be known how many customers there are, as a refresh in full would."""
    world = World(db._house, db.catalog.snapshot(), defining=True)
    db._house.profiling.look(world, as_written(world, world.view("above"))[0])


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Warehouse]:
    """What work costs is asked for with the first goal; a few refreshes do not change it."""
    with slackwater.connect(tmp_path / "wh", placement="local") as db:
        define(db)
        fill(db, "sales")
        fill(db, "customers", 500)
        make_views(db)
        look(db)
        yield db


@pytest.fixture
def run(db: Warehouse, tmp_path: Path) -> Run:
    def call(*args: str, code: int = exits.OK) -> Any:
        given = ["-w", str(tmp_path / "wh"), "--placement", "local", "plan", *args]
        result = CliRunner().invoke(app, given)
        assert result.exit_code == code, result.output
        return result

    return call


# -- what is planned


def test_views_are_planned_by_rhythm(db: Warehouse) -> None:
    told = db.plan()
    assert [(r.period_seconds, [v.view for v in r.views]) for r in told.rhythms] == [
        (3600.0, ["region"]),
        (86400.0, ["above", "above_later"]),
    ]
    assert told.unpaced == ()
    for rhythm in told.rhythms:
        assert sum(v.cpu_seconds for v in rhythm.views) == pytest.approx(rhythm.cpu_seconds)
        assert sum(p.cpu_seconds for p in rhythm.pieces) == pytest.approx(rhythm.cpu_seconds)


def test_views_that_are_due_at_other_moments_are_not_due_together(db: Warehouse) -> None:
    """However that is said: a line of cron may mean the same as a word."""
    db.sql(
        "CREATE MATERIALIZED VIEW evening WITH (schedule = 'daily 18:00', within = '5x') "
        f"AS {ABOVE} AND s.id > 4;"
        "CREATE MATERIALIZED VIEW cron WITH (schedule = '0 6 * * *', within = '5x') "
        f"AS {ABOVE} AND s.id > 5"
    )
    told = [(r.next_due[11:], [v.view for v in r.views]) for r in db.plan().rhythms[1:]]
    assert sorted(told) == [
        ("06:00:00", ["above", "above_later", "cron"]),
        ("18:00:00", ["evening"]),
    ]


def test_pieces_say_what_they_are_and_who_shares_them(db: Warehouse) -> None:
    (_, daily) = db.plan().rhythms
    shared = daily.pieces[0]
    assert shared.what == "Aggregate by customer: avg(price)"
    assert shared.views == ("above", "above_later")
    assert set(shared.inputs) == {"sales"}
    assert shared.is_part
    assert [p.is_part for p in daily.pieces if p.views == ("above_later",)] == [False]
    apart = db.plan(sharing=False).rhythms[1]
    assert all(len(p.views) == 1 for p in apart.pieces)


def test_a_piece_tells_with_which_it_is_computed(db: Warehouse, run: Run) -> None:
    """Then the figures of that one count for both."""
    alone = db.plan(sharing=False, max_pace=1).rhythms[1].pieces
    assert [p.run_with for p in alone] == ["#1", None, "#3", None]
    assert [p.cpu_seconds > 0 for p in alone] == [False, True, False, True]
    assert alone[0].method == alone[1].method
    assert "with #1" in run("--sharing", "off", "--max-pace", "1").output


def test_a_plan_tells_how_many_ways_to_share_were_compared(db: Warehouse, run: Run) -> None:
    region, daily = db.plan().rhythms
    assert daily.compared > 3  # together, apart and unshared are always among them
    assert region.compared == db.plan(sharing=False).rhythms[1].compared == 1
    assert f"The best of {daily.compared} ways to share" in run().output


def test_pieces_say_by_which_method_they_are_run(db: Warehouse, run: Run) -> None:
    methods = {p.piece: p.method for r in db.plan().rhythms for p in r.pieces}
    assert set(methods.values()) <= set(METHODS)
    once = [p for r in db.plan(max_pace=1).rhythms for p in r.pieces]
    alone = {p.method for p in once if len(p.views) == 1}
    assert alone <= {FULL, PLAIN}  # all there is comes, in one run
    (_, daily) = json.loads(run("--json").output)["rhythms"]
    assert [piece["method"] for piece in daily["pieces"]]
    assert "method" in run().output


def test_what_is_expected_comes_from_what_has_come(tmp_path: Path) -> None:
    class Clock:
        moment = datetime(2026, 1, 5, tzinfo=UTC)

        def now(self) -> datetime:
            return self.moment

    clock = Clock()
    with slackwater.connect(tmp_path / "w", placement="local", clock=clock) as db:
        define(db)
        db.sql(f"CREATE MATERIALIZED VIEW above {GOALS} AS {ABOVE}")
        for day in range(4):
            fill(db, "sales", 1000, 1000 * day)
            clock.moment += timedelta(days=1)
        (daily,) = db.plan().rhythms
    assert not daily.assumed
    (sales,) = daily.tables
    assert sales.rows == 4000
    assert sales.expected_rows == pytest.approx(1000, rel=0.5)


def test_where_nothing_is_known_all_there_is_may_come(db: Warehouse) -> None:
    (hourly, _) = db.plan().rhythms
    assert hourly.assumed
    assert [(t.table, t.expected_rows) for t in hourly.tables] == [("customers", 500.0)]


@pytest.mark.parametrize(
    ("options", "source", "reason"),
    [
        ("", "sales", "NO_SCHEDULE"),
        ("WITH (schedule = 'every 100 rows')", "sales", "DUE_BY_ROWS"),
        ("WITH (schedule = 'daily 06:00', refresh = 'full')", "sales", "REFRESH_FULL"),
        ("WITH (schedule = 'daily 07:00')", "above", "READS_VIEWS"),
        ("WITH (schedule = 'every 100 rows')", "above", "READS_VIEWS"),
    ],
)
def test_views_without_paces_say_why(db: Warehouse, options: str, source: str, reason: str) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW other {options} AS SELECT count(*) AS n FROM {source}")
    (other,) = db.plan().unpaced
    assert (other.view, other.reason) == ("other", reason)


def test_public_switches_change_the_search(db: Warehouse) -> None:
    slow = db.plan(max_pace=1)
    assert {p.pace for r in slow.rhythms for p in r.pieces} == {1}
    for paces in ("paths", "subplans", "leaves", "uniform"):
        told = db.plan(paces=paces, max_pace=4)
        assert told.options == {"paces": paces, "sharing": True, "max_pace": 4}
        assert max(p.pace for r in told.rhythms for p in r.pieces) <= 4


def test_one_pace_for_a_view_is_the_best_of_all_paces(db: Warehouse) -> None:
    """The same is said as when only that pace may be taken, of whichever pace is best."""
    once = db.plan(paces="uniform", sharing=False, max_pace=1).views
    for name, share in (("above", 0.9975), ("above_later", 0.965)):
        within = f"{share * once[name].final_seconds:.9f} seconds"
        db.sql(f"ALTER MATERIALIZED VIEW {name} SET (within = '{within}')")
    told = db.plan(paces="uniform", sharing=False, max_pace=15)
    (paced,) = (
        p
        for p in planned(db._house, db._house.now(), Options("uniform", False, 15, assuming=True))
        if "above" in p.dag.roots
    )
    search = paced.search
    for group in search.groups:
        ((name,),) = {search.dag.subplans[number].queries for number, _ in group}
        found = [
            search.sampled([[k if own == group else 1 for own in search.groups]])
            for k in range(1, 16)
        ]
        cpu = [cpu_by_view(search, f.paces)[name] for f in found if name not in f.missed]
        view = told.views[name]
        assert view.is_met
        assert view.cpu_seconds == pytest.approx(min(cpu))
        assert view.cpu_seconds > view.batch_cpu_seconds  # once is not enough


def test_wrong_options_are_refused(db: Warehouse) -> None:
    for wrong in ({"paces": "moods"}, {"max_pace": 0}, {"max_pace": 1000}):
        with pytest.raises(UserError) as caught:
            db.plan(**wrong)  # type: ignore[arg-type]
        assert caught.value.code == "BAD_OPTION"
    with pytest.raises(UserError) as caught:
        db.plan(apply=True, supposing=["DROP MATERIALIZED VIEW above"])
    assert "supposed" in str(caught.value)
    with db.transaction(), pytest.raises(UserError, match="IN_TRANSACTION"):
        db.plan(apply=True)


# -- what it would rebuild


def test_what_applying_would_rebuild_is_told_before(db: Warehouse) -> None:
    db.refresh()
    before = db.catalog.snapshot().commit
    rebuild = db.plan().rebuild
    assert db.catalog.snapshot().commit == before
    assert [m.views for m in rebuild.new_parts] == [("above", "above_later")]
    assert {m.name for m in rebuild.views} == {"above", "above_later"}
    assert all(m.rows > 0 and m.cpu_seconds > 0 for m in (*rebuild.new_parts, *rebuild.views))
    assert rebuild.first == ()


def test_applying_makes_what_is_planned(db: Warehouse) -> None:
    db.refresh()
    assert db.plan(apply=True).applied
    assert len(db.catalog.snapshot().parts()) == 1
    db.refresh()
    assert db.verify("above").equal
    assert db.plan().rebuild.is_nothing
    fill(db, "sales", 100, ROWS)
    db.refresh()
    assert db.verify("above").equal


def test_a_view_without_schedule_any_more_gives_up_its_parts(db: Warehouse) -> None:
    db.plan(apply=True)
    db.refresh()
    for name in ("above", "above_later"):
        db.sql(f"ALTER MATERIALIZED VIEW {name} RESET (schedule)")
    told = db.plan(apply=True)
    assert [m.views for m in told.rebuild.dropped_parts] == [("above", "above_later")]
    assert {m.name for m in told.rebuild.views} == {"above", "above_later"}
    assert db.catalog.snapshot().parts() == ()
    db.refresh()
    assert db.verify("above").equal


def test_views_without_content_are_told_apart(db: Warehouse) -> None:
    rebuild = db.plan().rebuild
    assert rebuild.views == ()
    assert {m.name for m in rebuild.first} == {"above", "above_later", "region"}


# -- what if


def test_supposed_options_are_planned_and_not_set(db: Warehouse) -> None:
    statement = "ALTER MATERIALIZED VIEW above RESET (within)"
    told = db.plan(supposing=[statement])
    assert told.supposing == (statement,)
    above = told.views["above"]
    assert above.within is None
    assert above.now is not None
    assert above.now.cpu_seconds >= above.cpu_seconds
    assert db.plan().views["above"].within == "5x"
    assert db.plan().views["above"].now is None


def test_supposed_views_are_planned_and_not_made(db: Warehouse) -> None:
    create = f"CREATE MATERIALIZED VIEW third {GOALS} AS {ABOVE} AND s.id > 9"
    told = db.plan(supposing=[create, "DROP MATERIALIZED VIEW above_later"])
    assert set(told.views) == {"above", "third", "region"}
    assert told.rhythms[1].pieces[0].views == ("above", "third")
    assert "third" in {m.name for m in told.rebuild.first}
    assert {v.name for v in db.catalog.snapshot().views()} == {"above", "above_later", "region"}


def test_supposing_a_view_in_place_of_another(db: Warehouse) -> None:
    db.refresh()
    replaced = "CREATE OR REPLACE MATERIALIZED VIEW region AS SELECT count(*) AS n FROM customers"
    told = db.plan(supposing=[replaced])
    assert [u.reason for u in told.unpaced] == ["NO_SCHEDULE"]
    assert [m.name for m in told.rebuild.first] == ["region"]


def test_supposed_settings_hold_for_views_that_say_nothing(db: Warehouse) -> None:
    told = db.plan(supposing="ALTER WAREHOUSE SET (within = '1 hour', prices = '2')")
    assert told.views["above_later"].within == "1 hour"
    assert told.views["above"].within == "5x"
    plain = db.plan().views["region"]
    assert told.views["region"].cpu_seconds == pytest.approx(2 * plain.cpu_seconds)


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("INSERT INTO sales VALUES (1, 1, 1)", "UNSUPPORTED_STATEMENT"),
        ("ALTER MATERIALIZED VIEW above SET (within = 'soon')", "BAD_OPTION"),
        ("ALTER MATERIALIZED VIEW nobody SET (within = '1x')", "UNKNOWN_VIEW"),
        ("CREATE MATERIALIZED VIEW above AS SELECT 1 AS a", "NAME_TAKEN"),
        ("DROP MATERIALIZED VIEW nobody", "UNKNOWN_VIEW"),
    ],
)
def test_what_cannot_be_supposed_is_refused(db: Warehouse, statement: str, code: str) -> None:
    with pytest.raises(UserError) as caught:
        db.plan(supposing=[statement])
    assert caught.value.code == code


def test_a_view_that_is_read_cannot_be_supposed_away(db: Warehouse) -> None:
    db.sql("CREATE MATERIALIZED VIEW top AS SELECT max(price) AS most FROM above")
    with pytest.raises(UserError, match="STILL_NEEDED"):
        db.plan(supposing=["DROP MATERIALIZED VIEW above"])
    assert (
        "above"
        not in db.plan(
            supposing=["DROP MATERIALIZED VIEW top", "DROP MATERIALIZED VIEW above"]
        ).views
    )


# -- what shorter results cost


def test_curves_go_from_one_batch_to_short_results(db: Warehouse) -> None:
    told = db.plan(simulate=True)
    assert told.simulation is not None
    for rhythm, curves in zip(told.rhythms, told.simulation, strict=True):
        assert [c.view for c in curves.views] == [v.view for v in rhythm.views]
        for curve in (curves.together, *curves.views):
            assert [p.share for p in curve.points] == list(SHARES)
        first = curves.together.points[0]
        assert first.missed == 0  # alone, each view takes what it takes alone
        for points in zip(*(c.points for c in curves.views), strict=True):
            cpu = sum(p.cpu_seconds for p in points)
            together = next(p for p in curves.together.points if p.share == points[0].share)
            assert together.cpu_seconds == pytest.approx(cpu)
            assert together.final_seconds == max(p.final_seconds for p in points)
    assert db.plan().simulation is None


@pytest.mark.parametrize("budget", ["", ", state_budget = '20 kB'"])
def test_a_point_of_the_curve_is_the_plan_for_that_goal(
    db: Warehouse, monkeypatch: pytest.MonkeyPatch, budget: str
) -> None:
    """Who shares with whom is looked for at each point, and so are the states that are kept."""
    monkeypatch.setitem(RUN, "cpu", 2e-4)  # or else running more often would never pay
    monkeypatch.setitem(RUN, "latency", 2e-4)
    told = db.plan(simulate=True, supposing=[_goals(0.5, budget)]).simulation
    assert told is not None
    planned_so = []
    for i, share in enumerate(SHARES[:4]):
        rhythm = db.plan(supposing=[_goals(share, budget)]).rhythms[1]
        planned_so.append(tuple((piece.views, piece.pace) for piece in rhythm.pieces))
        point = told[1].together.points[i]
        assert point.share == share
        assert point.cpu_seconds == pytest.approx(rhythm.cpu_seconds)
        assert point.missed == sum(not view.is_met for view in rhythm.views)
        for view, curve in zip(rhythm.views, told[1].views, strict=True):
            assert curve.view == view.view
            assert curve.points[i].cpu_seconds == pytest.approx(view.cpu_seconds)
            assert curve.points[i].final_seconds == pytest.approx(view.final_seconds)
    assert len(set(planned_so)) > 1  # not one plan for all of them


def _goals(share: float, more: str) -> str:
    names = ("above", "above_later")
    said = f"SET (within = '{share}x'{more})"
    return "; ".join(f"ALTER MATERIALIZED VIEW {name} {said}" for name in names)


def test_each_point_of_a_curve_is_told_of_before_it_is_looked_for(db: Warehouse) -> None:
    told: list[tuple[str, int, int]] = []
    db.plan(simulate=True, on_stage=lambda *stage: told.append(stage))
    assert [done for _, done, _ in told] == list(range(2 * len(SHARES)))
    assert {total for _, _, total in told} == {2 * len(SHARES)}
    assert (told[0][0], told[-1][0]) == ("every hour: 1x", "every day: 0.02x")


# -- goals that cannot be met


def test_a_goal_out_of_reach_is_said_when_it_is_set(db: Warehouse) -> None:
    told = db.sql(
        "CREATE MATERIALIZED VIEW soon WITH (schedule = 'daily 06:00', "
        "within = '0.001 seconds') AS SELECT customer, sum(price) AS s FROM sales GROUP BY customer"
    ).message
    assert "view 'soon' created" in told
    assert "within = '0.001 seconds' cannot be met: about " in told
    altered = db.sql("ALTER MATERIALIZED VIEW soon SET (within = '0.0001x')").message
    assert "within = '0.0001x' cannot be met: about " in altered
    assert db.sql("ALTER MATERIALIZED VIEW soon SET (within = '1 hour')").message.endswith("'")
    assert (
        "cannot" not in db.sql("ALTER MATERIALIZED VIEW soon SET (state_budget = '1 GB')").message
    )


def test_the_nearest_goal_that_is_named_can_be_met(db: Warehouse) -> None:
    create = "SELECT customer, sum(price) AS s FROM sales GROUP BY customer"
    options = "schedule = 'daily 06:00', within = '0.001 seconds'"
    told = db.sql(f"CREATE MATERIALIZED VIEW soon WITH ({options}) AS {create}").message
    nearest = told.partition("about ")[2].removesuffix(" can.")
    altered = db.sql(f"ALTER MATERIALIZED VIEW soon SET (within = '{nearest}')").message
    assert "cannot be met" not in altered
    plan = db.plan(supposing=["ALTER MATERIALIZED VIEW soon SET (within = '0.001 seconds')"])
    assert nearest in plan.views["soon"].note


def test_among_views_that_share_the_nearest_goal_can_be_met_and_less_cannot(db: Warehouse) -> None:
    def planned(seconds: float) -> PlannedView:
        alter = f"ALTER MATERIALIZED VIEW above SET (within = '{seconds:.6f} seconds')"
        return db.plan(supposing=[alter]).views["above"]

    hard = planned(0.001)
    assert hard.nearest_seconds is not None
    assert "cannot be met: about " in hard.note
    met = planned(hard.nearest_seconds * 1.0001)
    assert met.is_met
    assert not met.note
    assert met.final_seconds <= hard.nearest_seconds * 1.001
    missed = planned(hard.nearest_seconds * 0.97)
    assert not missed.is_met
    assert "cannot be met: about " in missed.note


def test_what_is_computed_anew_each_time_has_a_goal_too(db: Warehouse) -> None:
    told = db.sql(
        "CREATE MATERIALIZED VIEW anew WITH (schedule = 'daily 06:00', within = '0.5x', "
        "refresh = 'full') AS SELECT count(*) AS n FROM sales"
    ).message
    assert "within = '0.5x' cannot be met: about 1x (" in told
    assert "cannot be met" in db.plan().unpaced[0].note


def test_goals_that_cannot_all_be_met_one_after_the_other_are_told(tmp_path: Path) -> None:
    """Of views that share nothing and are due at one moment."""
    queries = {"first": "sum(price)", "second": "max(price)", "other": "count(DISTINCT price)"}
    with slackwater.connect(tmp_path / "w", placement="local") as db:
        define(db)
        for i, (name, what) in enumerate(queries.items()):
            db.sql(f"CREATE TABLE {name}_sales (id BIGINT, customer BIGINT, price BIGINT)")
            fill(db, f"{name}_sales", ROWS)
            db.sql(
                f"CREATE MATERIALIZED VIEW {name} WITH (schedule = 'daily 06:00', within = '{i + 1}"
                f" hours') AS SELECT customer, {what} AS p FROM {name}_sales GROUP BY customer"
            )
        plan = db.plan(sharing=False)
        assert all(view.is_met and not view.note for view in plan.views.values())
        took = {name: plan.views[name].final_seconds for name in queries}
        for name, more in (("first", 1.05), ("second", 1.3)):
            within = f"{max(took['first'], took['second']) * more:.6f} seconds"
            db.sql(f"ALTER MATERIALIZED VIEW {name} SET (within = '{within}')")
        told = db.plan().views
        assert told["first"].note == told["other"].note == ""
        assert told["second"].is_met
        assert "cannot be met after first: due at the same moment" in told["second"].note


@pytest.mark.parametrize("options", ["within = '0.001 seconds'", "schedule = 'daily 06:00'"])
def test_without_schedule_or_goal_nothing_is_said(db: Warehouse, options: str) -> None:
    told = db.sql(
        f"CREATE MATERIALIZED VIEW quiet WITH ({options}) AS SELECT count(*) AS n FROM sales"
    ).message
    assert told == "view 'quiet' created; refresh it to compute its content"


def test_without_rows_nothing_is_said(tmp_path: Path) -> None:
    with slackwater.connect(tmp_path / "w", placement="local") as db:
        define(db)
        told = db.sql(f"CREATE MATERIALIZED VIEW above {GOALS} AS {ABOVE}").message
        assert told.endswith("its content")
        assert db.plan().views["above"].is_met


# -- the command


def test_the_command_prints_what_is_planned(run: Run) -> None:
    shown = run().stdout
    for text in (
        "Every hour (next: ",
        "): 1 view",
        "Every day (next: ",
        "06:00:00): 2 views",
        "Aggregate by customer",
        "by itself",
    ):
        assert text in shown
    assert "all that is there is taken for it" in shown
    assert "new part" in shown
    shown = run("--with", "ALTER MATERIALIZED VIEW above SET (within = '0.02x')").stdout
    assert "cannot be met" in shown or "more than it is worth" in shown


def test_the_command_supposes_and_applies(run: Run, db: Warehouse) -> None:
    alter = "ALTER MATERIALIZED VIEW above RESET (within)"
    shown = run("--with", alter, "--with", "ALTER MATERIALIZED VIEW region RESET (schedule)").stdout
    assert f"Supposing: {alter}" in shown
    assert "it has no schedule" in shown
    assert db.catalog.snapshot().parts() == ()
    assert "Applied" in run("--apply").stdout
    assert db.catalog.snapshot().parts() != ()
    assert "Everything is made as it is planned" in run().stdout
    assert "Supposing" in run("--with", alter).stdout


def test_the_command_speaks_json(run: Run) -> None:
    told = json.loads(run("--json", "--simulate", "--max-pace", "8", "--sharing", "off").stdout)
    assert told["options"] == {"paces": "subplans", "sharing": False, "max_pace": 8}
    assert [len(r["views"]) for r in told["rhythms"]] == [1, 2]
    assert len(told["simulation"][1]["together"]["points"]) == len(SHARES)
    assert {"new_parts", "dropped_parts", "views", "first"} <= told["rebuild"].keys()


def test_the_command_draws_the_curve(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "curves.html"
    shown = run("--simulate", "--html", str(page)).stdout
    assert "What shorter results cost, every day, 2 views" in shown
    assert "5x" in shown
    assert "█" in shown
    text = page.read_text()
    assert text.count("<svg") == 2
    assert "above_later" in text
    assert "[16/16] every day: 0.02x" in run("--simulate").stderr
    assert "http" not in text  # it loads nothing


def test_the_command_refuses_what_it_does_not_know(run: Run) -> None:
    run("--paces", "moods", code=exits.USAGE)
    run("--sharing", "perhaps", code=exits.USAGE)
    run("--max-pace", "0", code=exits.USAGE)
    assert "UNSUPPORTED_STATEMENT" in run("--with", "SELECT 1", code=exits.USER_ERROR).stderr


def test_without_views_there_is_nothing_to_plan(tmp_path: Path) -> None:
    slackwater.connect(tmp_path / "w", placement="local").close()
    result = CliRunner().invoke(app, ["-w", str(tmp_path / "w"), "--placement", "local", "plan"])
    assert "There are no views yet." in result.stdout
