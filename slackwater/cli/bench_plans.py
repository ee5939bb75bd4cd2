"""`slackwater bench choice`, `planning`, `methods` and `progressive`: how well, how fast, and from
how much it is decided what to do, and what early runs bring."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles
from typing import Annotated, Any

import typer

from slackwater.cli.bench import find_bench, measured, names
from slackwater.cli.context import session
from slackwater.cli.output import print_table, table
from slackwater.errors import UserError

KEYS = "Declare the keys and references of sales and returns, to rely on."


def planning(
    ctx: typer.Context,
    queries: Annotated[str, typer.Option(help="For example q1,q3; all when not given.")] = "",
    points: Annotated[
        str, typer.Option(help="Time points; 3,9 compares both, all else is of the first.")
    ] = "3",
    pruning: Annotated[bool, typer.Option(help="Leave out ways that seldom pay.")] = True,
    symmetry: Annotated[bool, typer.Option(help="Explore one interval for all.")] = True,
    left_deep: Annotated[bool, typer.Option(help="Merge changes one after the other.")] = True,
    prompt: Annotated[bool, typer.Option(help="Work waits for the next run at most.")] = True,
    scenario: Annotated[str, typer.Option(help="pdw (one result) or ivm (one at each).")] = "pdw",
    keys: Annotated[bool, typer.Option(help=KEYS)] = False,
    full_search: Annotated[
        float, typer.Option(min=0, help="Seconds for the search that leaves nothing out.")
    ] = 0.0,
    speedups: Annotated[
        bool, typer.Option("--speedups", help="Also with each speed-up switched off by itself.")
    ] = False,
    limit: Annotated[
        float, typer.Option(min=0.001, help="Seconds for each such search; see --speedups.")
    ] = 20.0,
    json: Annotated[Path | None, typer.Option(help="Write all figures to this file.")] = None,
) -> None:
    """How long it takes to plan TPC-DS queries over several runs, with all methods."""
    own = session(ctx)
    find_bench()
    from bench.planning import Settings, run
    from slackwater.planner.plan import Speedups

    first, *others = _points(points)
    settings = Settings(
        queries=names(queries),
        points=first,
        compared=tuple(others),
        scenario=scenario,
        speedups=Speedups(pruning, symmetry, left_deep, prompt),
        keys=keys,
        full_search=full_search,
        each_off=limit if speedups else 0.0,
    )
    told = measured(own, lambda on_stage: run(settings, on_stage), json)
    print_table(own.out, table(*_plans(told)))
    taken = sorted(line["seconds"] for line in told["queries"])
    if len(taken) > 1:
        most = quantiles(taken, n=5, method="inclusive")[-1]
        own.out.print(f"80% within {most:.2f} s, all within {taken[-1]:.2f} s")
    if others:
        print_table(own.out, table(*_by_points(told["compared"])))
    if full_search:
        own.out.print(_quality(told["queries"]))
    if speedups:
        print_table(own.out, table(*_speedups(told)))
    print_table(own.out, table(["rule", "fired"], [list(item) for item in told["fired"].items()]))
    for query, steps in told["extracted"].items():
        each = ", ".join(f"{method} ({count} steps)" for method, count in steps.items())
        own.out.print(f"Plans of one method in the memo of {query}: {each}")


def _points(text: str) -> tuple[int, ...]:
    """Numbers of time points, each once, the first one first."""
    found = tuple(dict.fromkeys(int(count) for count in numbers("--points", text)))
    if not found or min(found) < 2:
        raise UserError(
            "--points takes numbers of two or more.",
            code="BAD_OPTION",
            hint="For example: --points 3,9",
        )
    return found


def _by_points(lines: list[dict[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    """How long all queries take together by number of points, beside the first number."""
    rows = [
        [
            line["points"],
            f"{line['explored_seconds']:.2f} (× {line['explored_seconds_ratio']:.2f})",
            f"{line['seconds']:.2f} (× {line['seconds_ratio']:.2f})",
        ]
        for line in lines
    ]
    return ["points", "exploring, s", "planning in all, s"], rows


def _quality(lines: list[dict[str, Any]]) -> str:
    """What the speed-ups lose."""
    compared = [line for line in lines if line["lost"] is not None]
    if not compared:
        return "The full search did not end in time for any query"
    worst = max(compared, key=lambda line: float(line["lost"]))
    dearer = sum(line["lost"] > 1e-6 for line in compared)
    return (
        f"The full search ended for {len(compared)} of {len(lines)} queries; plans are dearer with "
        f"the speed-ups for {dearer}, at most by {max(0.0, worst['lost']):.2%} ({worst['query']})"
    )


def _speedups(told: dict[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """What each speed-up by itself brings, and what it loses."""
    columns = ["switched off", "ended", "planning, s", "groups", "expressions", "rules fired"]
    rows = []
    for line in told["speedups"]:
        row = [line["off"], f"{line['ended']} of {line['queries']}"]
        if not line["ended"]:
            rows.append([*row, *["-"] * 7])
            continue
        for figure, form in (
            ("seconds", ".2f"),
            ("groups", ","),
            ("expressions", ","),
            ("rules_fired", ","),
        ):
            row.append(f"{line[figure]:{form}} (× {line[f'{figure}_ratio']:.2f})")
        most = f"{line['most_lost']:.2%} ({line['worst']})" if line["dearer"] else "-"
        rows.append([*row, line["dearer"], most, line["cheaper"]])
    return [*columns, "plans dearer with it", "by at most", "cheaper with it"], rows


def _plans(told: dict[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """What was explored, and how long that took."""
    columns = ["query", "seconds", "exploring", "groups", "expressions", "rules fired", "methods"]
    rows = [
        [
            line["query"],
            f"{line['seconds']:.2f}",
            f"{line['explored_seconds']:.2f}",
            line["groups"],
            line["expressions"],
            line["rules_fired"],
            ", ".join(line["methods"]),
        ]
        for line in told["queries"]
    ]
    return columns, rows


def methods(
    ctx: typer.Context,
    queries: Annotated[str, typer.Option(help="For example q10,q40; ten when not given.")] = "",
    patterns: Annotated[str, typer.Option(help="Arrival patterns; all when not given.")] = "",
    scenarios: Annotated[str, typer.Option(help="pdw, ivm, or both with a comma.")] = "",
    keys: Annotated[bool, typer.Option(help=KEYS)] = True,
    json: Annotated[Path | None, typer.Option(help="Write all figures to this file.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a chart to this file.")] = None,
) -> None:
    """What plans from all methods are expected to cost beside those from each alone."""
    own = session(ctx)
    find_bench()
    from bench.methods import Settings, page, run

    usual = Settings()
    spelled = {name.lower(): name for name in usual.patterns}
    settings = Settings(
        queries=names(queries) or usual.queries,
        patterns=tuple(spelled.get(n, n) for n in names(patterns)) or usual.patterns,
        scenarios=names(scenarios) or usual.scenarios,
        keys=keys,
    )
    told = measured(own, lambda on_stage: run(settings, on_stage), json)
    print_table(own.out, table(*_costs(told)))
    own.out.print(
        f"All methods together: {'never' if told['never_above'] else 'NOT never'} above the best "
        f"alone, below it in {told['below']} of {len(told['lines'])}"
    )
    if html is not None:
        html.write_text(page(told), encoding="utf-8")


def _costs(told: dict[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """CPU seconds of each method alone, and how many times that of all the best of them costs."""
    from bench.methods import mark

    alone = list(told["lines"][0]["alone"])
    rows = [
        [
            line["query"],
            line["scenario"],
            line["pattern"],
            *(f"{line['alone'][m]:,.4g}" for m in alone),
            f"{line['mixed']:,.4g}",
            f"{mark(line)} {1 / line['ratio']:.2f} {line['best']}",
            ", ".join(line["methods"]),
        ]
        for line in told["lines"]
    ]
    columns = ["query", "scenario", "pattern", *alone, "all, CPU s", "best alone ÷ all"]
    return [*columns, "taken from"], rows


def progressive(
    ctx: typer.Context,
    sf: Annotated[float, typer.Option(help="Scale factor of both corpora.")] = 0.1,
    kinds: Annotated[str, typer.Option(help="tpch, tpcds, or both with a comma.")] = "tpch,tpcds",
    queries: Annotated[str, typer.Option(help="For example q1,q3; the usual when not given.")] = "",
    prices: Annotated[str, typer.Option(help="Of each run; the last is due.")] = "0.25,0.3,1",
    arrivals: Annotated[
        str, typer.Option(help="Shares of the rows that arrive up to each later run.")
    ] = "0.2,0.2",
    going: Annotated[
        float, typer.Option(min=0, max=0.5, help="Of what arrives, the part that takes rows away.")
    ] = 0.0,
    engine: Annotated[str, typer.Option(help="local, spark, or auto: of each run.")] = "local",
    repeat: Annotated[int, typer.Option(min=1, help="Each is run so often.")] = 3,
    untold: Annotated[
        bool, typer.Option(help="Also with all physical choices left to Spark.")
    ] = False,
    json: Annotated[Path | None, typer.Option(help="Write all figures to this file.")] = None,
    data: Annotated[Path | None, typer.Option(help="Where generated data is kept.")] = None,
    seed: Annotated[int, typer.Option(help="Of the choice of rows that arrive.")] = 7,
) -> None:
    """What early runs at a lower price save over one run at the due time."""
    own = session(ctx)
    find_bench()
    from bench.progressive import Settings, run

    settings = Settings(
        scale=sf,
        kinds=names(kinds),
        queries=names(queries),
        prices=numbers("--prices", prices),
        arrivals=numbers("--arrivals", arrivals),
        going=going,
        engine=engine,
        repeat=repeat,
        untold=untold,
        seed=seed,
        data=data,
        spark_master=own.spark_master,
    )
    told = measured(own, lambda on_stage: run(settings, on_stage), json)
    print_table(own.out, table(*_early(told)))
    for line in _saved(told):
        own.out.print(line)


def _saved(told: dict[str, Any]) -> Iterator[str]:
    """What early runs save in all, and what telling Spark how rows meet does."""
    if "total_cost_ratio" in told:
        yield (
            f"Weighted CPU: {told['total_cost_ratio']:.2f} of one run at the due time in all, "
            f"{told['median_cost_ratio']:.2f} in the median; CPU at the due time: "
            f"{told['median_due_ratio']:.2f} in the median, lower for {told['lower_at_due']:.0%}"
        )
    if told.get("layout_ratio"):
        yield (
            f"Told how rows meet and are spread: {told['layout_ratio']:.2f} of the weighted CPU of "
            "the same plans with that left to Spark"
        )


def _early(told: dict[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """What each run took, beside one at the due time."""
    columns = ["corpus", "query", "runs: CPU s", "at once", "cost ÷", "due ÷", "taken from"]
    rows = []
    for line in told["queries"]:
        start = [line["corpus"], line["query"]]
        if "cost_ratio" not in line:
            rows.append([*start, line["problem"], "", "", "", ""])
            continue
        runs = ", ".join(f"{seconds:.2f}" for seconds in line["cpu_seconds"])
        ratios = [f"{line[key]:.2f}" for key in ("at_once", "cost_ratio", "due_ratio")]
        taken = ", ".join(line["methods"]) + ("" if line["exact"] else " NOT EXACT")
        rows.append([*start, runs, *ratios, taken])
    return columns, rows


def choice(
    ctx: typer.Context,
    sf: Annotated[float, typer.Option(help="Scale factor of both corpora.")] = 0.1,
    kinds: Annotated[str, typer.Option(help="tpch, tpcds, or both with a comma.")] = "tpch,tpcds",
    queries: Annotated[str, typer.Option(help="For example q1,q3; the usual when not given.")] = "",
    changes: Annotated[
        str, typer.Option(help="Shares of the rows that change.")
    ] = "0.0001,0.001,0.01,0.1,0.5",
    engines: Annotated[str, typer.Option(help="local, spark, or both.")] = "local,spark",
    repeat: Annotated[int, typer.Option(min=1, help="Each way is tried so often.")] = 3,
    json: Annotated[Path | None, typer.Option(help="Write all figures to this file.")] = None,
    data: Annotated[Path | None, typer.Option(help="Where generated data is kept.")] = None,
    seed: Annotated[int, typer.Option(help="Of the choice of changed rows.")] = 7,
) -> None:
    """Is the way that a refresh chooses the cheapest? Every way is tried on the same state."""
    own = session(ctx)
    find_bench()
    from bench.choice import Settings, run

    settings = Settings(
        scale=sf,
        shares=numbers("--changes", changes),
        kinds=names(kinds),
        queries=names(queries),
        repeat=repeat,
        engines=names(engines),
        seed=seed,
        data=data,
        spark_master=own.spark_master,
    )
    told = measured(own, lambda on_stage: run(settings, on_stage), json)
    print_table(own.out, table(*_choices(told)))
    print_table(own.out, table(*_scores(told)))


def numbers(option: str, text: str) -> tuple[float, ...]:
    """Numbers with commas between them."""
    try:
        return tuple(float(share) for share in names(text))
    except ValueError as error:
        raise UserError(
            f"{option} takes numbers: {error}.",
            code="BAD_OPTION",
            hint=f"For example: {option} 0.25,1",
        ) from error


def _choices(told: dict[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """What was chosen, and the CPU seconds of each way, expected and measured."""
    columns = ["corpus", "query", "change", "chosen", "regret s", "ways: CPU s expected → measured"]
    rows = []
    for line in told["lines"]:
        ways = ", ".join(
            f"{w['method']} {w['engine']}{'' if w['possible'] else ' (states built before)'} "
            f"{w['expected']:.2f} → {w['cpu_seconds']:.2f}"
            for w in line["ways"]
        )
        chosen = f"{line['chosen']['method']} {line['chosen']['engine']}"
        start = [line["corpus"], line["query"], f"{line['change']:.2%}", chosen]
        rows.append([*start, f"{line['regret']:.2f}", ways])
    return columns, rows


def _scores(told: dict[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """How often the choice was right among the ways that it could take and among all, beside always
    doing the same."""
    scores = {"chosen": told} | {f"always {way}": own for way, own in told["always"].items()}
    rows = [
        [
            name,
            *(
                f"{own['right']:.1%}, {own['regret_seconds']:.2f} s"
                for own in (score, score["of_all"])
            ),
        ]
        for name, score in scores.items()
    ]
    possible = "right, regret (CPU): among the ways that it could take"
    return ["way", possible, "among all (with states built before)"], rows
