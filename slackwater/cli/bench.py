"""`slackwater bench`: measure on this machine what refreshing saves.

The benchmarks and their query texts are in the folder `bench` of a checkout, not in the installed
package.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

import slackwater
from slackwater.cli import exits
from slackwater.cli.context import QUIET, Session, session
from slackwater.cli.output import print_table, size, table, to_json
from slackwater.errors import UserError

SUMMARIES = (
    ("medians", "median"),
    ("medians_of_changed", "median of changed"),  # without views that had nothing to do
    ("lowest", "lowest"),
)

app = typer.Typer(help="Measure on this machine what refreshing saves.", no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Measure on this machine what refreshing saves."""


@app.command("refresh")
def refresh(
    ctx: typer.Context,
    sf: Annotated[float, typer.Option(help="TPC-H scale factor; 1 is 1 GB.")] = 1.0,
    change: Annotated[
        float, typer.Option(help="Share of orders that a batch touches: half new, half deleted.")
    ] = 0.01,
    queries: Annotated[str, typer.Option(help="For example q1,q3; all when not given.")] = "",
    repeat: Annotated[int, typer.Option(min=1, help="Timed rounds; medians are shown.")] = 1,
    warm_up: Annotated[int, typer.Option(min=0, help="Rounds before them, not timed.")] = 1,
    sweep_batches: Annotated[
        bool, typer.Option("--sweep-batches", help="Changes of 0.01%, 0.1%, 1% and 10%, too.")
    ] = False,
    keys: Annotated[
        bool, typer.Option(help="Declare the keys and references of TPC-H, to rely on.")
    ] = True,
    json: Annotated[Path | None, typer.Option(help="Write all figures to this file.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a chart to this file.")] = None,
    data: Annotated[Path | None, typer.Option(help="Where generated data is kept.")] = None,
    work: Annotated[Path | None, typer.Option(help="Keep the warehouses in this folder.")] = None,
    seed: Annotated[int, typer.Option(help="Of the choice of changed orders.")] = 7,
) -> None:
    """Refresh TPC-H views after a change, against computing them anew on Spark and locally.

    Exit code 4 when a result differs from Spark's.
    """
    own = session(ctx)
    find_bench()
    from bench import chart
    from bench.refresh import Settings, run
    from bench.report import is_exact, report

    settings = Settings(
        scale=sf,
        change=change,
        queries=names(queries),
        repeat=repeat,
        warm_up=warm_up,
        sweep=sweep_batches,
        keys=keys,
        seed=seed,
        data=data,
        work=work,
        spark_master=own.spark_master,
    )
    told = measured(own, lambda on_stage: report(run(settings, on_stage)), json)
    if html is not None:
        html.write_text(chart.page(told), encoding="utf-8")
    print_report(own, told)
    if not is_exact(told):
        raise typer.Exit(exits.DIFFERENT)


@app.command("preaggregation")
def preaggregation(
    ctx: typer.Context,
    sf: Annotated[float, typer.Option(help="TPC-H scale factor; 1 is 1 GB.")] = 1.0,
    rows: Annotated[
        str, typer.Option(help="Changed lines per batch: half new, half deleted.")
    ] = "10,100,1000,10000,100000",
    engines: Annotated[str, typer.Option(help="local, spark, or both with a comma.")] = "local",
    views: Annotated[str, typer.Option(help="For example q3,q5; all when not given.")] = "",
    repeat: Annotated[int, typer.Option(min=1, help="Rounds per size; medians are shown.")] = 3,
    json: Annotated[Path | None, typer.Option(help="Write all figures to this file.")] = None,
    data: Annotated[Path | None, typer.Option(help="Where generated data is kept.")] = None,
    seed: Annotated[int, typer.Option(help="Of the choice of changed orders.")] = 7,
) -> None:
    """Sum changes up before they are joined: never, always, and where they shrink, side by side.

    Exit code 4 when results differ.
    """
    own = session(ctx)
    find_bench()
    from bench.preaggregation import VIEWS, Settings, run

    settings = Settings(
        scale=sf,
        sizes=_sizes(rows),
        engines=names(engines),
        views=names(views) or tuple(VIEWS),
        repeat=repeat,
        seed=seed,
        data=data,
        spark_master=own.spark_master,
    )
    told = measured(own, lambda on_stage: run(settings, on_stage), json)
    print_table(own.out, table(*_preaggregation(told)))
    for problem in told["problems"]:
        own.out.print(problem, markup=False)
    if not told["exact"]:
        raise typer.Exit(exits.DIFFERENT)


OnStage = Callable[[str, int, int], None]
"""Told what begins now, how many stages are done, and how many there are."""


def measured(
    own: Session, measure: Callable[[OnStage], dict[str, Any]], json: Path | None
) -> dict[str, Any]:
    """What a benchmark tells, its stages shown; written to a file, too, if one is named."""
    if not own.debug:
        os.environ.setdefault("SPARK_SUBMIT_OPTS", f"-Dlog4j2.configurationFile={QUIET}")
    with showing_stages(own) as on_stage:
        told = measure(on_stage)
    if json is not None:
        json.write_text(to_json(told, indent=2) + "\n", encoding="utf-8")
    return told


def names(text: str) -> tuple[str, ...]:
    """Names with commas between them."""
    return tuple(name.strip().lower() for name in text.split(",") if name.strip())


def _sizes(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(size) for size in names(text))
    except ValueError as error:
        raise UserError(
            f"--rows takes numbers: {error}.", code="BAD_OPTION", hint="For example: --rows 10,1000"
        ) from error


def _preaggregation(told: dict[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Seconds and CPU of each mode; ratios above 1 where it is cheaper than `off`."""
    columns = ["engine", "view", "lines"]
    for mode in ("off", "on", "auto"):
        columns += [f"{mode}: s", "cpu s", *(["×", "cpu ×"] if mode != "off" else [])]
    rows = []
    for line in told["lines"]:
        cells = [line["engine"], line["view"], f"{line['lines']:,}"]
        for mode in ("off", "on", "auto"):
            cost = line[mode]
            cells += [f"{cost['seconds']:.3f}", f"{cost['cpu_seconds']:.3f}"]
            if mode != "off":
                cells += [f"{cost['latency_ratio']:.2f}", f"{cost['cpu_ratio']:.2f}"]
        rows.append([*cells, f"{line['auto']['summed_first']:.0%}"])
    return [*columns, "auto: summed first"], rows


def find_bench() -> None:
    """Make the checkout's folder `bench` importable, or say where to get it."""
    checkout = Path(slackwater.__file__).parent.parent
    if not (checkout / "bench" / "refresh.py").is_file():
        raise UserError(
            "The benchmarks are not part of the installed package.",
            code="NO_BENCH",
            hint="Get the source of Slackwater and install it from there: "
            "pip install --editable '.[dev]'",
        )
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))


@contextmanager
def showing_stages(own: Session) -> Iterator[OnStage]:
    """A bar on a terminal, a line per stage elsewhere."""
    if not own.err.is_terminal:
        yield lambda what, done, total: own.err.print(f"[{done + 1}/{total}] {what}", markup=False)
        return
    columns = (
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=own.err, transient=True) as progress:
        task = progress.add_task("", total=None)

        def on_stage(what: str, done: int, total: int) -> None:
            progress.update(task, description=what, completed=done, total=total)

        yield on_stage


# -- the report


def print_report(own: Session, told: dict[str, Any]) -> None:
    """Times and ratios, the work behind them, and what was to be reached."""
    for part in told.get("sweep", [told]):
        own.out.rule(f"{part['change']:.2%} of the orders changed", align="left")
        print_table(own.out, table(*_times(part)))
        print_table(own.out, table(*_work(part)))
        print_table(own.out, table(*_methods(part)))
        _print_fallbacks(own, part)
        _print_planning(own, part)
        _print_problems(own, part)
    if told["goals"]:
        lines = [_goal_line(goal) for goal in told["goals"]]
        print_table(own.out, table(("to reach", "measured", "goal", "met"), lines))


def _times(part: dict[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Seconds, and ratios to both recomputes: above 1, the refresh is cheaper."""
    columns = ["query", "recompute: Spark s", "cpu s", "local s", "cpu s"]
    for placement in ("spark", "auto"):
        columns += [f"{placement}: s", "cpu s", "× Spark", "cpu ×", "× local", "cpu ×"]
    rows = [_times_line(query) for query in part["queries"]]
    return [*columns, "exact"], [*rows, *(_summary_line(part, *what) for what in SUMMARIES)]


def _summary_line(part: dict[str, Any], what: str, name: str) -> list[Any]:
    line: list[Any] = [name, "", "", "", ""]
    for placement in ("spark", "auto"):
        line += ["", "", *_ratios(part[what][placement])]
    return [*line, ""]


def _times_line(query: dict[str, Any]) -> list[Any]:
    line: list[Any] = [query["query"]]
    for method in ("recompute_spark", "recompute_local", "spark", "auto"):
        line += [_number(query[method]["seconds"]), _number(query[method]["cpu_seconds"])]
        line += _ratios(query[method]) if method in ("spark", "auto") else []
    exact = all(query[m]["exact"] is not False for m in ("recompute_local", "spark", "auto"))
    return [*line, Text("yes", "green") if exact else Text("NO", "bold red")]


def _ratios(told: dict[str, Any]) -> list[str]:
    names = ("latency_ratio", "cpu_ratio", "local_latency_ratio", "local_cpu_ratio")
    return [_number(told[name]) for name in names]


def _work(part: dict[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """What was read and run: bytes; Spark SQL executions, jobs and stages; how it refreshed."""
    from bench.report import THESIS_JOBS, THESIS_STAGES

    columns = ["query", "recompute: Spark read", "jobs/stages", "local read"]
    for placement in ("spark", "auto"):
        columns += [f"{placement}: method", "engine", "read", "states"]
        columns += ["executions/jobs/stages"]
    rows = []
    for query in part["queries"]:
        anew, number = query["recompute_spark"], int(query["query"][1:])
        line = [query["query"], _size(anew["bytes_read"]), _counts(anew, "jobs", "stages")]
        line.append(_size(query["recompute_local"]["bytes_read"]))
        for placement in ("spark", "auto"):
            own = query[placement]
            line += [own.get("method", "failed"), own.get("engine", ""), _size(own["bytes_read"])]
            line.append(_size(own.get("state_bytes")))
            line.append(_counts(own, "executions", "jobs", "stages"))
        rows.append([*line, f"{THESIS_JOBS[number]}/{THESIS_STAGES[number]}"])
    return [*columns, "DBToaster on Spark: jobs/stages"], rows


def _counts(told: dict[str, Any], *names: str) -> str:
    return "/".join("-" if told[name] is None else f"{told[name]:g}" for name in names)


def _size(count: float | None) -> str:
    return size(None if count is None else int(count))


def _number(value: float | None) -> str:
    from bench.chart import number

    return number(value)


def _methods(part: dict[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Which queries were refreshed by which method, and what these keep for it."""
    rows = []
    for placement, methods in part["methods"].items():
        kept = part["state_bytes"][placement]
        for method, queries in methods.items():
            states = _size(sum(kept.get(query, 0) for query in queries))
            rows.append([placement, method, len(queries), ", ".join(queries), states])
    return ["placement", "method", "views", "queries", "states"], rows


def _print_fallbacks(own: Session, part: dict[str, Any]) -> None:
    """What was computed anew though changes could have been followed."""
    for placement, fallbacks in part["fallbacks"].items():
        for one in fallbacks:
            what = f"{placement}: {one['query']} was computed anew ({one['method']})"
            own.out.print(f"{what}: {'; '.join(one['why'])}", markup=False)


def _print_planning(own: Session, part: dict[str, Any]) -> None:
    """What choosing a way takes of a refresh."""
    for placement, share in part["planning_share"].items():
        if share is not None:
            own.out.print(f"{placement}: a median of {share:.0%} of a refresh is planning")


def _print_problems(own: Session, part: dict[str, Any]) -> None:
    for query in part["queries"]:
        for method in ("recompute_local", "spark", "auto"):
            for problem in query[method].get("problems", ()):
                own.out.print(f"{query['query']}, {method}: {problem}", markup=False)


def _goal_line(goal: dict[str, Any]) -> tuple[Any, ...]:
    wanted = f"≥ {goal['least']:g}" if "least" in goal else f"≤ {goal['most']:g}"
    met = Text("yes", "green") if goal["met"] else Text("no", "bold red")
    return goal["what"], _number(goal["value"]), wanted, met
