"""The benchmark: a proper change mix, four exact ways of computing, a report of known shape."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from typer.testing import CliRunner

import slackwater
from bench import chart, corpus
from bench.changes import KEYS, WEIGHT_COLUMN, Stream, make_stream
from bench.measure import Cost, Meter
from bench.refresh import METHODS, PLACEMENTS, SWEEP, Outcome, Sample, Settings, run
from bench.report import RATIOS, is_exact, report
from slackwater.cli import exits
from slackwater.cli.app import app
from slackwater.cli.bench import print_report
from slackwater.cli.context import Session
from slackwater.cli.output import size
from slackwater.engine.spark import SparkEngine
from slackwater.errors import UserError
from slackwater.planner.choice import FULL, HIGHER_ORDER, INCREMENTAL, PLAIN
from slackwater.work.reasons import why

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCALE = 0.001
MODES = {"full", "incremental"}
"""How a view may be refreshed after a change."""
TAKEN = {INCREMENTAL, HIGHER_ORDER, FULL, PLAIN}
"""By which method."""


@pytest.fixture(scope="module")
def stream() -> Stream:
    files = corpus.generate("tpch", SCALE)
    return make_stream(files, [(0.01, False), (0.02, True), (0.04, True)], seed=3)


def rows(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.mark.parametrize("table", KEYS)
def test_content_is_the_first_load_and_the_changes(
    stream: Stream, table: str, tmp_path: Path
) -> None:
    content = rows(pq.read_table(stream.at_first(tmp_path / "first")[table]))
    for number, batch in enumerate(stream.batches, 1):
        change = stream.change(batch)[table]
        weights = change[WEIGHT_COLUMN].to_pylist()
        plain = change.drop_columns([WEIGHT_COLUMN]).to_pylist()
        for row, weight in zip(plain, weights, strict=True):
            content[tuple(row.values())] += weight
        assert min(content.values()) >= 0
        after = pq.read_table(stream.after(number, tmp_path / str(number))[table])
        assert rows(after) == +content


def test_half_of_the_touched_orders_are_new_and_half_go(stream: Stream) -> None:
    orders = pq.read_metadata(stream.files["orders"]).num_rows
    for batch in stream.batches:
        assert len(batch.inserted) + len(batch.deleted) == round(batch.share * orders)
        assert abs(len(batch.inserted) - len(batch.deleted)) <= 1
        assert not set(batch.inserted) & set(batch.deleted)


def test_changes_depend_on_the_seed_only(stream: Stream) -> None:
    shares = [(batch.share, batch.timed) for batch in stream.batches]
    again, other = (make_stream(stream.files, shares, seed) for seed in (3, 4))
    for batch, same, different in zip(stream.batches, again.batches, other.batches, strict=True):
        assert batch.inserted.tolist() == same.inserted.tolist()
        assert batch.inserted.tolist() != different.inserted.tolist()


def test_too_many_changes_are_refused(stream: Stream) -> None:
    with pytest.raises(UserError, match="more than 90% of the"):
        make_stream(stream.files, [(0.5, True)] * 2, seed=3)


def test_settings_are_checked() -> None:
    with pytest.raises(UserError, match="'q23' is not one of TPC-H's"):
        Settings(queries=("q1", "q23"))
    with pytest.raises(UserError, match="a share between 0 and 1"):
        Settings(change=1.5)


def test_a_sweep_measures_each_size_and_the_chosen_one() -> None:
    assert Settings(change=0.05, sweep=True).shares == tuple(sorted((*SWEEP, 0.05)))
    rounds = Settings(change=0.01, sweep=True, repeat=2, warm_up=1).rounds
    assert rounds[0] == (0.01, False)
    assert rounds[1:] == [(share, True) for share in SWEEP for _ in range(2)]


# -- figures


def sample(query: str, method: str, seconds: float, exact: bool = True) -> Sample:
    cost = Cost(seconds, seconds * 2, 1000, 0.0, 0, 0, 1, 0, 1, 1)
    details = _details(seconds) if method in PLACEMENTS else {}
    problem = "" if exact else "different: 1 rows, 2 expected"
    return Sample(query, method, 0.01, cost, 1, exact, problem, details)


def _details(seconds: float, share: float = 0.1) -> dict[str, Any]:
    """Of a refresh, of which planning takes a share."""
    times = {"report_seconds": seconds, "planning_seconds": seconds * share}
    return {"mode": "full", "method": "full", "engine": "local", **times}


def outcome(scale: float = 1.0, queries: tuple[str, ...] = (), exact: bool = True) -> Outcome:
    settings = Settings(scale=scale, queries=queries)
    seconds = dict(zip(METHODS, (10.0, 2.0, 5.0, 1.0), strict=True))
    samples = [sample(q, m, seconds[m], exact) for q in settings.texts for m in METHODS]
    return Outcome(settings, tuple(samples), {"versions": {"python": "3"}})


def test_ratios_are_recompute_over_refresh() -> None:
    told = report(outcome(queries=("q1", "q6")))
    first = told["queries"][0]
    assert (first["spark"]["latency_ratio"], first["auto"]["latency_ratio"]) == (2, 10)
    assert (first["spark"]["local_cpu_ratio"], first["auto"]["local_cpu_ratio"]) == (0.4, 2)
    assert first["recompute_local"]["latency_ratio"] == 5
    assert told["medians"]["auto"] == dict(zip(RATIOS, (10, 10, 2, 2), strict=True))
    assert told["goals"] == []  # set for all queries only


def test_goals_are_told_for_a_whole_run() -> None:
    goals = {goal["what"]: goal["met"] for goal in report(outcome())["goals"]}
    assert goals["auto: median latency_ratio"]
    assert goals["spark: most SQL executions of a refresh"]
    assert not report(outcome(scale=10))["goals"][0]["met"]  # Spark only: 6 at SF 10
    assert report(outcome(scale=0.1))["goals"] == []


def test_medians_are_taken_over_rounds() -> None:
    base = outcome(queries=("q1",))
    rounds = [sample("q1", "auto", seconds) for seconds in (3.0, 2.0)]
    told = report(Outcome(base.settings, (*base.samples, *rounds), base.facts))
    assert told["queries"][0]["auto"]["seconds"] == 2
    assert len(told["queries"][0]["auto"]["rounds"]) == 3


def test_medians_of_changed_leave_out_what_had_nothing_to_do() -> None:
    base = outcome(queries=("q1", "q2", "q3"))
    idle = Sample("q2", "auto", 0.01, sample("q2", "auto", 0.1).cost, 1, True, "", {"mode": "none"})
    busy = [s for s in base.samples if (s.query, s.method) != ("q2", "auto")]
    slow = [s for s in busy if (s.query, s.method) != ("q3", "auto")]
    told = report(Outcome(base.settings, (*slow, idle, sample("q3", "auto", 5.0)), base.facts))
    assert told["medians"]["auto"]["latency_ratio"] == 10
    assert told["medians_of_changed"]["auto"]["latency_ratio"] == 6


def test_the_share_of_planning_is_a_median_over_what_had_something_to_do() -> None:
    base = outcome(queries=("q1", "q2", "q3"))
    own = [s for s in base.samples if (s.query, s.method) not in (("q2", "auto"), ("q3", "auto"))]
    idle = replace(sample("q2", "auto", 0.1), details=_details(0.1, 1.0) | {"mode": "none"})
    slow = [replace(sample("q3", "auto", 1.0), details=_details(1.0, s)) for s in (0.2, 0.3, 0.9)]
    told = report(Outcome(base.settings, (*own, idle, *slow), base.facts))
    assert told["queries"][2]["auto"]["planning_share"] == pytest.approx(0.3)
    assert told["planning_share"] == pytest.approx({"spark": 0.1, "auto": 0.2})


def _refresh(query: str, method: str, states: int, *reasons: str) -> Sample:
    mode = method if method in ("none", INCREMENTAL) else "full"
    mode = "incremental" if method == HIGHER_ORDER else mode
    told = {"mode": mode, "method": method, "reasons": list(reasons), "state_bytes": states}
    told["why"] = [why(code, "Scan orders").line for code in reasons]
    made = sample(query, "auto", 1.0)
    return replace(made, details=made.details | told)


@pytest.fixture
def by_methods() -> dict[str, Any]:
    """A report of refreshes by several methods, one query in two rounds."""
    base = outcome(queries=("q1", "q2", "q3", "q4", "q5", "q6"))
    others = [s for s in base.samples if s.method != "auto"]
    own = [
        _refresh("q1", INCREMENTAL, 1_000_000),
        _refresh("q2", "none", 0),
        _refresh("q3", HIGHER_ORDER, 3_000_000),
        _refresh("q4", INCREMENTAL, 10),
        _refresh("q4", PLAIN, 20, "CHANGE_TOO_LARGE"),
        _refresh("q5", FULL, 30, "FULL_BY_OPTION"),
        Sample("q6", "auto", 0.01, exact=False, problem="[X] no"),
    ]
    return report(Outcome(base.settings, (*others, *own), base.facts))


def test_methods_fallbacks_and_states_are_told_by_placement(by_methods: dict[str, Any]) -> None:
    assert by_methods["methods"]["auto"] == {
        INCREMENTAL: ["q1", "q4"],
        HIGHER_ORDER: ["q3"],
        FULL: ["q5"],
        PLAIN: ["q4"],
        "none": ["q2"],
        "failed": ["q6"],
    }
    assert by_methods["methods"]["spark"] == {FULL: ["q1", "q2", "q3", "q4", "q5", "q6"]}
    (fallback,) = by_methods["fallbacks"]["auto"]  # q5 is to be computed anew
    assert (fallback["query"], fallback["method"]) == ("q4", PLAIN)
    assert fallback["reasons"] == ["CHANGE_TOO_LARGE"]
    assert fallback["why"] == [why("CHANGE_TOO_LARGE", "Scan orders").line]
    kept = {"q1": 1_000_000, "q2": 0, "q3": 3_000_000, "q4": 20, "q5": 30}
    assert by_methods["state_bytes"]["auto"] == kept


def test_they_are_printed(by_methods: dict[str, Any]) -> None:
    out = Console(file=StringIO(), width=400)
    print_report(Session("", out=out), by_methods)
    told = out.file.getvalue()  # type: ignore[attr-defined]
    line = why("CHANGE_TOO_LARGE", "Scan orders").line
    assert f"auto: q4 was computed anew ({PLAIN}): {line}" in told
    (methods,) = (row for row in told.splitlines() if "q1, q4" in row)
    assert all(cell in methods for cell in ("auto", INCREMENTAL, size(1_000_020)))
    assert "a median of 10% of a refresh is planning" in told


def test_a_wrong_or_failed_refresh_is_told() -> None:
    assert not is_exact(report(outcome(queries=("q1",), exact=False)))
    base = outcome(queries=("q1",))
    failed = Sample("q1", "auto", 0.01, exact=False, problem="[X] no")
    told = report(Outcome(base.settings, (*base.samples[:-1], failed), base.facts))
    assert not told["exact"]
    assert told["queries"][0]["auto"]["latency_ratio"] is None
    assert told["queries"][0]["auto"]["problems"] == ["[X] no"]
    assert "failed" in chart.page(told)


def test_the_page_loads_nothing() -> None:
    page = chart.page(report(outcome()))
    assert page.count("<rect") == 22 * len(PLACEMENTS) * len(chart.CHARTS)
    for name in ("http", "src=", "href=", "<script", "@import", "url("):
        assert name not in page


# -- runs


def problems(told: dict[str, Any]) -> str:
    """What the report says of results that differ and refreshes that failed."""
    found = [(q["query"], m, q[m].get("problems")) for q in told["queries"] for m in METHODS]
    return "\n".join(f"{query}, {method}: {told}" for query, method, told in found if told)


@pytest.mark.proof
@pytest.mark.spark
def test_all_ways_of_computing_are_exact(spark: SparkSession, tmp_path: Path) -> None:
    """A LIMIT with ties to break, and a subquery."""
    settings = Settings(
        scale=SCALE, change=0.02, queries=("q22", "q3"), warm_up=0, work=tmp_path / "work"
    )
    stages: list[str] = []
    told = report(run(settings, lambda what, done, total: stages.append(f"{done}<{total}"), spark))
    assert is_exact(told), problems(told)
    assert [q["query"] for q in told["queries"]] == ["q3", "q22"]
    for query in told["queries"]:
        for method in METHODS:
            assert query[method]["exact"]
            assert query[method]["seconds"] > 0
            assert query[method]["rows"] == query["recompute_spark"]["rows"]
        for placement in PLACEMENTS:
            assert query[placement]["mode"] in MODES
            assert query[placement]["method"] in TAKEN
            assert query["query"] in told["methods"][placement][query[placement]["method"]]
            assert 0 < query[placement]["planning_share"] < 1
            assert told["state_bytes"][placement][query["query"]] >= 0
            assert all(query[placement][ratio] > 0 for ratio in RATIOS)
        assert query["recompute_spark"]["jobs"] > 0
        assert query["spark"]["executions"] > 0
        assert query["recompute_local"]["jobs"] == 0
    total = len(stages)
    assert stages == [f"{i}<{total}" for i in range(total)]
    assert not list((tmp_path / "work").glob("answers"))


@pytest.mark.proof
@pytest.mark.spark
def test_spark_work_is_counted(spark: SparkSession, tmp_path: Path) -> None:
    engine = SparkEngine(tmp_path, spark)
    assert engine.session is spark
    meter = Meter(engine)
    _, idle = meter.measure(lambda: None)
    assert (idle.executions, idle.jobs, idle.stages) == (0, 0, 0)
    sql = "SELECT id % 7 AS k, COUNT(*) AS n FROM range(1000) GROUP BY 1"
    _, cost = meter.measure(lambda: engine.write(sql, tmp_path / "out"))
    assert cost.executions == 1
    assert cost.jobs >= 1
    assert cost.stages >= 2
    assert cost.cpu_seconds > 0
    assert cost.shuffle_bytes > 0


@pytest.mark.proof
@pytest.mark.spark
def test_the_command_writes_its_report(tmp_path: Path, java_home: str) -> None:
    """In a process of its own, with a Spark session of its own, from any folder."""
    command = [sys.executable, "-m", "slackwater", "bench", "refresh", "--sf", str(SCALE)]
    command += ["--queries", "q6", "--warm-up", "0", "--change", "0.05"]
    command += ["--json", "told.json", "--html", "told.html"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=400)
    assert done.returncode == exits.OK, done.stderr
    told = json.loads((tmp_path / "told.json").read_text())
    assert told["queries"][0]["query"] == "q6"
    assert set(PLACEMENTS) < set(told["queries"][0])
    assert told["settings"]["batches"][0]["orders_inserted"] == 37
    assert "q6" in (tmp_path / "told.html").read_text()
    assert "5.00% of the orders changed" in done.stdout
    assert "starting Spark" in done.stderr


def test_without_a_checkout_the_command_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slackwater, "__file__", str(tmp_path / "slackwater" / "__init__.py"))
    result = CliRunner().invoke(app, ["bench", "refresh"])
    assert result.exit_code == exits.USER_ERROR
    assert "NO_BENCH" in result.stderr


def test_unknown_queries_are_refused() -> None:
    result = CliRunner().invoke(app, ["bench", "refresh", "--queries", "q1,q99"])
    assert result.exit_code == exits.USER_ERROR
    assert "UNKNOWN_QUERY" in result.stderr
