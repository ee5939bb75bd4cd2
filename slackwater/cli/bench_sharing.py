"""`slackwater bench sharing` and `day`: many views with goals, measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from slackwater.cli.bench import find_bench, measured, names
from slackwater.cli.bench_goals import exact, finish
from slackwater.cli.bench_plans import numbers
from slackwater.cli.context import Session, session
from slackwater.cli.output import print_table, table


def sharing(
    ctx: typer.Context,
    sf: Annotated[float, typer.Option(help="TPC-H scale factor; 1 is 1 GB.")] = 0.1,
    sets: Annotated[
        str, typer.Option("--set", help="random, uniform, ten, twenty, pairs; all when not given.")
    ] = "",
    sharing: Annotated[str, typer.Option(help="on or off; both when not given.")] = "",
    paces: Annotated[str, typer.Option(help="none, uniform or subplans; all when not given.")] = "",
    constraints: Annotated[
        str, typer.Option(help="Shares of each query's own run at the due time.")
    ] = "1.0,0.5,0.2,0.1",
    max_pace: Annotated[int, typer.Option(min=2, help="Runs until results are due.")] = 20,
    seeds: Annotated[int, typer.Option(min=1, help="Draws of random constraints.")] = 3,
    tries: Annotated[
        int, typer.Option(min=1, help="Plan and measure so often, until goals are met.")
    ] = 1,
    engine: Annotated[str, typer.Option(help="local, spark or auto.")] = "auto",
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
        tries=tries,
        engine=engine,
        seed=seed,
        data=data,
        spark_master=own.spark_master,
    )
    told = measured(own, lambda on_stage: run(settings, on_stage), json)
    _print_sharing(own, told)
    finish(own, told, html, sharing_page)


def _print_sharing(own: Session, told: dict[str, Any]) -> None:
    print_table(own.out, table(*_shared(told["lines"])))
    print_table(own.out, table(*_shared_ratios(told["ratios"])))
    for line in told["at_once"]:
        own.out.print(
            f"In one batch at the due time, {line['set']}: shared {line['shared']:.2f} CPU s, "
            f"unshared {line['unshared']:.2f}, {line['cpu_ratio']:.1%}"
        )
    if "tuned" in told:
        print_table(own.out, table(*_tuned(told["tuned"], told["tuned_ratios"])))
    print_table(own.out, table(*_missed(told["by_constraint"])))
    own.out.print(_noise(told["noise"]))
    if "search" in told:
        found = told["search"]
        own.out.print(
            f"Search for 22 queries, maximum pace 100, constraint 0.01: {found['seconds']:.2f} s"
            f" (wanted: below {found['wanted']:g}; the paper: {found['paper']:g}),"
            f" the best of {found['tried']} plans"
        )


def _tuned(
    lines: Sequence[dict[str, Any]], ratios: Sequence[dict[str, Any]]
) -> tuple[list[str], list[list[Any]]]:
    """Figure 13: the best try of each approach, and our CPU as a share of all that it took."""
    found = {line["against"]: line for line in ratios}
    rows = []
    for line in lines:
        ratio = found.get(line["approach"])
        paper = ratio["paper"] if ratio else None
        rows.append(
            [
                line["case"],
                line["approach"],
                line["tries"],
                f"{line['cpu_seconds']:.2f}",
                f"{line['missed_beyond_noise']}/{line['queries']}",
                f"{line['late_seconds']:.3f}",
                f"{ratio['cpu_ratio']:.1%}" if ratio else "",
                f"{paper:.1%}" if paper is not None else "",
            ]
        )
    columns = ["tuned by what was measured", "approach", "best try", "CPU s", "missed beyond noise"]
    return [*columns, "by s in all", "our CPU ÷ theirs, all cases", "the paper, at 0.1"], rows


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
        same = line["measured_as"] != line["approach"]
        rows.append(
            [
                line["case"],
                line["approach"] + (f" (plans of: {line['measured_as']})" if same else ""),
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
                exact(line),
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
    tight: Annotated[
        float,
        typer.Option(
            min=0, max=1, help="Share of its batch work for the last run of every third view."
        ),
    ] = 0.0,
    engine: Annotated[str, typer.Option(help="local, spark or auto.")] = "auto",
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
        tight=tight,
        data=data,
        spark_master=own.spark_master,
    )
    told = measured(own, lambda on_stage: run(settings, on_stage), json)
    print_table(own.out, table(*_days(told["lines"])))
    for line in told["lines"]:
        for text in line["missed_goals"][:10]:
            own.out.print(f"{line['way']}, missed: {text}", markup=False)
    finish(own, told, html, day_page)


def _days(lines: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    columns = [
        "way",
        "refreshes",
        "early runs",
        "parts",
        "goals kept",
        "missed",
        "tight kept",
        "budgets kept",
        "CPU s",
    ]
    rows = [
        [
            line["way"],
            line["refreshed"],
            line["early"],
            line["parts"],
            line["kept"],
            line["missed"],
            f"{line['tight_kept']}/{len(line['tight'])}",
            f"{line['budgets_kept']}/{len(line['budgets'])}",
            f"{line['cpu_seconds']:.1f}",
            f"{line['cost']:.1f}",
            f"{line['ratio']:.2f}" if line["ratio"] is not None else "",
            f"{line['process_cpu_seconds']:.1f}",
            exact(line),
        ]
        for line in lines
    ]
    return [*columns, "weighted", "goals ÷ this", "process: CPU s", "exact"], rows
