"""`slackwater bench search`: how long it takes to find paces, and who shares."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from slackwater.cli.bench import find_bench, measured
from slackwater.cli.bench_plans import numbers
from slackwater.cli.context import session
from slackwater.cli.output import print_table, table


def search(
    ctx: typer.Context,
    sf: Annotated[float, typer.Option(help="TPC-H scale factor that sizes are of.")] = 1.0,
    paces: Annotated[
        str, typer.Option(help="Maximum paces; each is searched with 22 queries.")
    ] = "1,10,50,100",
    counts: Annotated[
        str, typer.Option(help="So many queries, split by clusters and in every way.")
    ] = "2,4,6,8,10",
    constraint: Annotated[
        float, typer.Option(help="Share of each query's own run at the due time.")
    ] = 0.01,
    limit: Annotated[float, typer.Option(help="CPU seconds that a search may take.")] = 60.0,
    json: Annotated[Path | None, typer.Option(help="Write all figures to this file.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a chart to this file.")] = None,
) -> None:
    """Search time by maximum pace, with costs remembered or not, and by how pieces are split.

    Nothing is run: tables are only said to have so many rows.
    """
    own = session(ctx)
    find_bench()
    from bench.goals_chart import search_page
    from bench.search import Settings, run

    settings = Settings(
        scale=sf,
        paces=tuple(map(int, numbers("--paces", paces))),
        counts=tuple(map(int, numbers("--counts", counts))),
        share=constraint,
        limit=limit,
    )
    told = measured(own, lambda on_stage: run(settings, on_stage), json)
    if html is not None:
        html.write_text(search_page(told), encoding="utf-8")
    print_table(own.out, table(*_searches(told["lines"], limit)))
    own.out.print(
        f"Wanted of 22 queries at maximum pace 100: below {told['wanted']:g} s;"
        f" the paper: {told['paper']:g} s."
    )


def _searches(lines: Sequence[dict[str, Any]], limit: float) -> tuple[list[str], list[list[Any]]]:
    columns = [
        "queries",
        "maximum pace",
        "costs",
        "split by",
        "seconds",
        "CPU s",
        "plans",
        "subplans",
    ]
    rows = []
    for line in lines:
        found = line["seconds"] is not None
        rows.append(
            [
                line["queries"],
                line["most"],
                line["costs"],
                line["splits"],
                f"{line['seconds']:.2f}" if found else f"more than {limit:g}",
                f"{line['cpu_seconds']:.2f}" if found else "",
                line["tried"] if found else "",
                line["subplans"] if found else "",
                f"{line['total']:.1f}" if found else "",
            ]
        )
    return [*columns, "expected CPU s"], rows
