"""`slackwater bench goals`: what results in time cost, measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    engine: Annotated[str, typer.Option(help="local, spark or auto.")] = "auto",
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
    finish(own, told, html, page)


def _print_goals(own: Session, told: dict[str, Any]) -> None:
    if told["lines"]:
        print_table(own.out, table(*_lines(told["lines"])))
        print_table(own.out, table(*_summary(told["summary"])))
        print_table(own.out, table(*_beside(told["beside"])))
        for text in _in_all(told):
            own.out.print(text)
    for part in ("bias", "bursts"):
        if part in told:
            print_table(own.out, table(*_cases(told[part])))
    if "cardinality" in told:
        print_table(own.out, table(*_cardinality(told["cardinality"])))


def finish(own: Session, told: dict[str, Any], html: Path | None, page: Any) -> None:
    """The chart, what went wrong, and the exit code."""
    if html is not None:
        html.write_text(page(told), encoding="utf-8")
    for problem in told["problems"]:
        own.out.print(problem, markup=False)
    if not told["exact"]:
        raise typer.Exit(exits.DIFFERENT)


def exact(line: dict[str, Any]) -> Text:
    """Do all results equal a recompute?"""
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
                exact(line),
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


def _beside(lines: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    """Figure 3.5: what paths add to the CPU of one run as a share of what others add."""
    columns = ["query", "constraint", "+ CPU: paths ÷ one pace", "÷ leaves"]
    columns += ["latency ÷ batch: paths", "one pace", "leaves", "thesis"]
    rows = []
    for line in lines:
        shares = [_beside_thesis(line, name) for name in ("uniform", "leaves")]
        latencies = [line["latency_ratios"].get(n) for n in ("paths", "uniform", "leaves")]
        shown = ["" if ratio is None else f"{ratio:.2f}" for ratio in latencies]
        rows.append([line["query"], f"{line['constraint']:g}", *shares, *shown, line["thesis"]])
    return columns, rows


def _beside_thesis(line: dict[str, Any], name: str) -> str:
    """Ours, and the thesis's where it gives a number."""
    own, thesis = line["shares"].get(name), line["thesis_shares"].get(name)
    shown = "-" if own is None else f"{own:.2f}"
    return shown if thesis is None else f"{shown} (thesis {thesis:g})"


def _in_all(told: dict[str, Any]) -> Iterator[str]:
    """How often constraints were met, and how much sooner results come for a CPU second."""
    for line in told["met"]:
        yield _met(line)
    for line in told["thrift"]:
        yield (
            f"{line['approach']}, {line['constraint']:g}: {line['seconds_per_cpu_second']:.3f} s "
            f"sooner for each additional CPU second, mean of {line['queries']} queries"
        )


def _met(line: dict[str, Any]) -> str:
    """How often, of which constraints; the thesis has others."""

    def listed(constraints: Sequence[float]) -> str:
        return ", ".join(f"{share:g}" for share in constraints)

    text = (
        f"{line['approach']}: last run within its constraint for {line['met']} of {line['asked']}, "
        f"{line['met'] / line['asked']:.0%} of {listed(line['constraints'])}"
    )
    if line["thesis"] is None:
        return text
    return f"{text} (the thesis: {line['thesis']:.0%} of {listed(line['thesis_constraints'])})"


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
                exact(line),
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
            f"{line['error_after_half']:+.1%}",
            f"{line['thesis']:+.1%}" if line["thesis"] is not None else "",
            f"{line['postgresql']:+.1%}" if line["postgresql"] is not None else "",
            exact(line),
        ]
        for line in lines
    ]
    columns = ["query", "runs", "rows per run", "expected", "error", "after half, later"]
    return [*columns, "thesis: InQP", "thesis: PostgreSQL", "exact"], rows
