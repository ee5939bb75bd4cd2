"""`slackwater bench budget`: what states bring, and how many bytes they take."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from slackwater.cli import exits
from slackwater.cli.bench import find_bench, measured, names
from slackwater.cli.context import session
from slackwater.cli.output import print_table, size, table


def budget(
    ctx: typer.Context,
    sf: Annotated[float, typer.Option(help="TPC-H scale factor; 1 is 1 GB.")] = 0.1,
    what: Annotated[
        str,
        typer.Option(help="late, budgets, prediction, deletes, injected, cleaning; all if empty."),
    ] = "",
    queries: Annotated[str, typer.Option(help="For example q1,q3; eleven when not given.")] = "",
    batches: Annotated[int, typer.Option(min=1, help="Of each table that is cleaned.")] = 4,
    engine: Annotated[str, typer.Option(help="local, spark, or auto.")] = "auto",
    json: Annotated[Path | None, typer.Option(help="Write all figures to this file.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a chart to this file.")] = None,
    data: Annotated[Path | None, typer.Option(help="Where generated data is kept.")] = None,
    seed: Annotated[int, typer.Option(help="Of the choice of rows that come late.")] = 7,
) -> None:
    """Keep states under a budget, against computing anew and against keeping all of them.

    Exit code 4 when results differ.
    """
    own = session(ctx)
    find_bench()
    from bench.budget import Settings, run
    from bench.budget_chart import TITLES, page

    usual = Settings()
    settings = Settings(
        scale=sf,
        what=names(what) or usual.what,
        queries=names(queries) or usual.queries,
        cleaning_batches=batches,
        engine=engine,
        spark_master=own.spark_master,
        seed=seed,
        data=data,
    )
    told = measured(own, lambda on_stage: run(settings, on_stage), json)
    for part in settings.what:
        own.out.rule(TITLES[part], align="left")
        shown = _cleaning(told[part]) if part == "cleaning" else _ways(told[part])
        print_table(own.out, table(*shown))
    if html is not None:
        html.write_text(page(told), encoding="utf-8")
    for problem in told["problems"]:
        own.out.print(problem, markup=False)
    if not told["exact"]:
        raise typer.Exit(exits.DIFFERENT)


def _ways(lines: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    """Each case in each way: the first computation, a refresh, its CPU time, the room."""
    from bench.budget_chart import case_of, ways_of

    rows = []
    for line in lines:
        for way in ways_of(line):
            own = line[way]
            times = (own["first_cpu_seconds"], own["seconds"], own["cpu_seconds"])
            cells = [f"{seconds:.3f}" for seconds in times]
            followed = f"{own['modes'].count('incremental')}/{len(own['modes'])}"
            rows.append([case_of(line), way, *cells, size(own["state_bytes"]), followed])
    return ["case", "way", "first: CPU s", "then: s", "CPU s", "states", "by changes"], rows


def _cleaning(samples: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    """By table and way, the CPU seconds of its refreshes, and the room."""
    rows = []
    for key in dict.fromkeys((s["table"], s["way"]) for s in samples if s["batch"]):
        own = [s for s in samples if (s["table"], s["way"]) == key]
        times = [s["cpu_seconds"] for s in own]
        room = max(s["state_bytes"] for s in own)
        followed = f"{sum(s['mode'] == 'incremental' for s in own)}/{len(own)}"
        shown = [f"{times[0]:.3f}", f"{times[-1]:.3f}", f"{sum(times) / len(times):.3f}"]
        rows.append([*key, *shown, size(room), followed])
    return ["cleaned", "way", "first: CPU s", "last", "mean", "states", "by changes"], rows
