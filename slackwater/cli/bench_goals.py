"""`slackwater bench goals`, `sharing` and `day`: what results in time cost, measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from slackwater.cli import exits
from slackwater.cli.bench import find_bench, measured, names
from slackwater.cli.bench_plans import numbers
from slackwater.cli.context import Session, session
from slackwater.cli.output import print_table, table


def goals(
    ctx: typer.Context,
    sf: Annotated[float, typer.Option(help="TPC-H scale factor; 1 is 1 GB.")] = 0.1,
    queries: Annotated[
        str, typer.Option(help="For example q1,qouter; TPC-H's 22 and two more when not given.")
    ] = "",
    constraints: Annotated[
        str, typer.Option(help="Shares of one run at the due time that the last run may take.")
    ] = "1.0,0.2,0.05,0.02",
    paces: Annotated[
        str, typer.Option(help="What has a pace of its own: paths, subplans, uniform, leaves.")
    ] = "paths,uniform,leaves",
    what: Annotated[str, typer.Option(help="main, bias, bursts, cardinality.")] = "main",
    max_pace: Annotated[int, typer.Option(min=2, help="Runs until the result is due.")] = 20,
    engine: Annotated[str, typer.Option(help="local, spark or auto.")] = "local",
    repeat: Annotated[int, typer.Option(min=1, help="Draws of each bias.")] = 3,
    json: Annotated[Path | None, typer.Option(help="Write all figures to this file.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a chart to this file.")] = None,
    data: Annotated[Path | None, typer.Option(help="Where generated data is kept.")] = None,
    seed: Annotated[int, typer.Option(help="Of the biases.")] = 7,
) -> None:
    """Results under a constraint: paces per path, per source, and one for the whole query.

    Exit code 4 when a result differs from a recompute.
    """
    own = session(ctx)
    find_bench()
    from bench.goals import Settings, run
    from bench.goals_chart import page

    settings = Settings(
        scale=sf,
        queries=names(queries),
        constraints=numbers("--constraints", constraints),
        paces=names(paces),
        what=names(what),
        most=max_pace,
        engine=engine,
        repeat=repeat,
        seed=seed,
        data=data,
        spark_master=own.spark_master,
    )
    told = measured(own, lambda on_stage: run(settings, on_stage), json)
    _print_goals(own, told)
    _finish(own, told, html, page)


def _print_goals(own: Session, told: dict[str, Any]) -> None:
    if told["lines"]:
        print_table(own.out, table(*_lines(told["lines"])))
        print_table(own.out, table(*_summary(told["summary"])))
    for part in ("bias", "bursts"):
        if part in told:
            print_table(own.out, table(*_cases(told[part])))
    if "cardinality" in told:
        print_table(own.out, table(*_cardinality(told["cardinality"])))


def _finish(own: Session, told: dict[str, Any], html: Path | None, page: Any) -> None:
    """The chart, what went wrong, and the exit code."""
    if html is not None:
        html.write_text(page(told), encoding="utf-8")
    for problem in told["problems"]:
        own.out.print(problem, markup=False)
    if not told["exact"]:
        raise typer.Exit(exits.DIFFERENT)


def _exact(line: dict[str, Any]) -> Text:
    return Text("yes", "green") if line["exact"] else Text("NO", "bold red")


def _lines(lines: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    """Each query by each approach, constraints with the same paces in one line. A star: they are
    out of reach, and the nearest one was asked for."""
    columns = ["query", "constraints", "asked", "paces by", "runs", "batch: CPU s", "+ CPU s"]
    columns += ["latency ÷ batch", "its CPU ÷ batch", "expected", "exact", "thesis"]
    together: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for line in lines:
        key = (line["query"], line["approach"], tuple(line["paces"].items()))
        together.setdefault(key, []).append(line)
    rows = []
    for own in sorted(together.values(), key=lambda own: lines.index(own[0])):
        line = own[-1]
        star = "*" if line["is_nearest"] else ""
        rows.append(
            [
                line["query"],
                ", ".join(f"{o['constraint']:g}" for o in own),
                f"{line['reached']:.2f}{star}",
                line["mode"],
                line["runs"],
                f"{line['batch_cpu_seconds']:.2f}",
                f"{line['additional_cpu_seconds']:.2f}",
                f"{line['latency_ratio']:.2f}",
                f"{line['final_cpu_ratio']:.2f}",
                f"{line['expected_ratio']:.2f}",
                _exact(line),
                line["thesis"],
            ]
        )
    return columns, rows


def _summary(lines: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    columns = ["queries", "constraint", "paces by", "batch: CPU s", "+ CPU s"]
    rows = []
    for line in lines:
        kind = "not fully" if line["partly"] else "fully"
        rows.append(
            [
                f"{line['queries']}, {kind} incrementable",
                f"{line['constraint']:g}",
                line["approach"],
                f"{line['batch_cpu_seconds']:.2f}",
                f"{line['additional_cpu_seconds']:.2f}",
                f"{line['latency_ratio']:.2f}",
                f"{line['final_cpu_ratio']:.2f}",
            ]
        )
    return [*columns, "latency ÷ batch, median", "its CPU ÷ batch, median"], rows


def _cases(lines: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    """By query, case and approach: the mean, the least and the most."""
    rows = []
    for line in lines:
        cpu, latency = line["additional_cpu_seconds"], line["latency_ratio"]
        rows.append(
            [
                line["query"],
                line["case"],
                line["approach"],
                *(f"{v[0]:.2f} ({v[1]:.2f} to {v[2]:.2f})" for v in (cpu, latency)),
                _exact(line),
            ]
        )
    return ["query", "case", "paces by", "+ CPU s", "latency ÷ batch", "exact"], rows


def _cardinality(lines: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    rows = [
        [
            line["query"],
            line["runs"],
            f"{line['rows']:.1f}",
            f"{line['expected']:.1f}",
            f"{line['error']:+.1%}",
            f"{line['thesis']:+.1%}" if line["thesis"] is not None else "",
            f"{line['postgresql']:+.1%}" if line["postgresql"] is not None else "",
            _exact(line),
        ]
        for line in lines
    ]
    columns = ["query", "runs", "rows per run", "expected", "error"]
    return [*columns, "thesis: InQP", "thesis: PostgreSQL", "exact"], rows


def sharing(
    ctx: typer.Context,
    sf: Annotated[float, typer.Option(help="TPC-H scale factor; 1 is 1 GB.")] = 0.1,
    sets: Annotated[
        str, typer.Option("--set", help="random, uniform, ten, twenty, pairs; all when not given.")
    ] = "",
    sharing: Annotated[str, typer.Option(help="on or off; both when not given.")] = "",
    paces: Annotated[str, typer.Option(help="uniform or subplans; both when not given.")] = "",
    constraints: Annotated[
        str, typer.Option(help="Shares of each query's own run at the due time.")
    ] = "1.0,0.5,0.2,0.1",
    max_pace: Annotated[int, typer.Option(min=2, help="Runs until results are due.")] = 20,
    seeds: Annotated[int, typer.Option(min=1, help="Draws of random constraints.")] = 3,
    engine: Annotated[str, typer.Option(help="local, spark or auto.")] = "local",
    json: Annotated[Path | None, typer.Option(help="Write all figures to this file.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a chart to this file.")] = None,
    data: Annotated[Path | None, typer.Option(help="Where generated data is kept.")] = None,
    seed: Annotated[int, typer.Option(help="Of the random constraints.")] = 7,
) -> None:
    """Many views with goals of their own: shared or not, with one pace or several.

    Exit code 4 when a result differs from a recompute.
    """
    own = session(ctx)
    find_bench()
    from bench.goals_chart import sharing_page
    from bench.sharing import Settings, run

    usual = Settings()
    settings = Settings(
        scale=sf,
        sets=names(sets) or usual.sets,
        sharing=sharing,
        paces=paces,
        constraints=numbers("--constraints", constraints),
        most=max_pace,
        seeds=seeds,
        engine=engine,
        seed=seed,
        data=data,
        spark_master=own.spark_master,
    )
    told = measured(own, lambda on_stage: run(settings, on_stage), json)
    _print_sharing(own, told)
    _finish(own, told, html, sharing_page)


def _print_sharing(own: Session, told: dict[str, Any]) -> None:
    print_table(own.out, table(*_shared(told["lines"])))
    print_table(own.out, table(*_shared_ratios(told["ratios"])))
    print_table(own.out, table(*_missed(told["by_constraint"])))
    own.out.print(_noise(told["noise"]))
    if "search" in told:
        found = told["search"]
        own.out.print(
            f"Search for 22 queries, maximum pace 100, constraint 0.01: {found['seconds']:.2f} s"
            f" (wanted: below {found['wanted']:g}; the paper: {found['paper']:g})"
        )


def _missed(lines: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    """By constraint, how many results are missed at all, and beyond noise."""
    shares = list(dict.fromkeys(line["constraint"] for line in lines))
    rows = []
    for kind, approach in dict.fromkeys((line["set"], line["approach"]) for line in lines):
        own = {
            line["constraint"]: f"{line['missed']} ({line['missed_beyond_noise']}) of "
            f"{line['queries']}"
            for line in lines
            if (line["set"], line["approach"]) == (kind, approach)
        }
        rows.append([kind, approach, *(own.get(share, "") for share in shares)])
    heads = [f"missed (beyond noise) at {share:g}" for share in shares]
    return ["set", "approach", *heads], rows


def _noise(told: dict[str, Any]) -> str:
    """What counts as noise, and how large it was."""
    text = (
        f"Missed beyond noise: by more than {told['seconds'] * 1000:g} ms and "
        f"{told['share']:.0%} of what was allowed; the counts before it are strict."
    )
    if not told["measured"]:
        return text
    return (
        f"{text} {told['measured']} results were computed just as the one run that they are "
        f"compared with: they took {told['median']:.1%} more or less in the median, "
        f"{told['most']:.1%} at most."
    )


def _shared(lines: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    columns = ["case", "approach", "CPU s", "batch: CPU s", "runs", "parts", "missed"]
    columns += ["beyond noise", "as one run"]
    columns += ["missed: mean s", "most s", "mean %", "most %", "planning s", "exact"]
    rows = []
    for line in lines:
        seconds, share = line["missed_seconds"], line["missed_share"]
        rows.append(
            [
                line["case"],
                line["approach"],
                f"{line['cpu_seconds']:.2f}",
                f"{line['batch_cpu_seconds']:.2f}",
                line["runs"],
                line["parts"],
                f"{line['missed']}/{line['queries']}",
                line["missed_beyond_noise"],
                line["missed_plain"],
                *(f"{value:.3f}" for value in seconds),
                *(f"{value:.1%}" for value in share),
                f"{line['planning_seconds']:.2f}",
                _exact(line),
            ]
        )
    return columns, rows


def _shared_ratios(lines: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    rows = [
        [
            line["set"],
            line["against"],
            f"{line['cpu_ratio']:.1%}",
            f"{line['paper']:.1%}" if line["paper"] is not None else "",
            *(f"{missed:g}/{line['queries']:g}" for missed in line["missed"]),
            *(f"{missed:g}" for missed in line["missed_beyond_noise"]),
        ]
        for line in lines
    ]
    columns = ["set", "against", "our CPU ÷ theirs", "the paper", "we missed", "they missed"]
    return [*columns, "we, beyond noise", "they"], rows


def day(
    ctx: typer.Context,
    sf: Annotated[float, typer.Option(help="TPC-H scale factor; 1 is 1 GB.")] = 0.05,
    views: Annotated[int, typer.Option(min=1, max=32, help="So many views.")] = 30,
    ways: Annotated[
        str, typer.Option(help="goals, schedules, recompute, shortest lag; all when not given.")
    ] = "",
    engine: Annotated[str, typer.Option(help="local, spark or auto.")] = "local",
    json: Annotated[Path | None, typer.Option(help="Write all figures to this file.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a chart to this file.")] = None,
    data: Annotated[Path | None, typer.Option(help="Where generated data is kept.")] = None,
) -> None:
    """A simulated day of views with schedules, goals and prices, as the scheduler runs it.

    Exit code 4 when a result differs from a recompute.
    """
    own = session(ctx)
    find_bench()
    from bench.day import Settings, run
    from bench.goals_chart import day_page

    usual = Settings()
    settings = Settings(
        scale=sf,
        views=views,
        ways=names(ways) or usual.ways,
        engine=engine,
        data=data,
        spark_master=own.spark_master,
    )
    told = measured(own, lambda on_stage: run(settings, on_stage), json)
    print_table(own.out, table(*_days(told["lines"])))
    for line in told["lines"]:
        for text in line["missed_goals"][:10]:
            own.out.print(f"{line['way']}, missed: {text}", markup=False)
    _finish(own, told, html, day_page)


def _days(lines: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    columns = ["way", "refreshes", "early runs", "parts", "goals kept", "missed", "CPU s"]
    rows = [
        [
            line["way"],
            line["refreshed"],
            line["early"],
            line["parts"],
            line["kept"],
            line["missed"],
            f"{line['cpu_seconds']:.1f}",
            f"{line['cost']:.1f}",
            f"{line['ratio']:.2f}" if line["ratio"] is not None else "",
            f"{line['process_cpu_seconds']:.1f}",
            _exact(line),
        ]
        for line in lines
    ]
    return [*columns, "weighted", "goals ÷ this", "process: CPU s", "exact"], rows
