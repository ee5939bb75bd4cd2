"""The `slackwater` command: global options, the list of commands, errors to exit codes."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from slackwater.cli import (
    bench,
    bench_budget,
    bench_goals,
    bench_plans,
    bench_search,
    bench_sharing,
    compacting,
    create,
    demo,
    doctor,
    ingest,
    inspecting,
    planning,
    refreshing,
    running,
    statements,
)
from slackwater.cli.context import Session
from slackwater.cli.exits import EPILOG, report

GLOBAL_OPTIONS = {"-w": 2, "--warehouse": 2, "--placement": 2, "--catalog-url": 2}
GLOBAL_OPTIONS |= {"--spark-master": 2, "--debug": 1}


class Placement(StrEnum):
    """Where steps run."""

    auto = "auto"
    spark = "spark"
    local = "local"


class Commands(TyperGroup):
    """Global options may stand before or after the command; errors become exit codes."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, hoist(args))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, Exception) as error:
            if _is_for_typer(error):
                raise
            raise typer.Exit(report(error, bool(ctx.params.get("debug")))) from error


def hoist(args: list[str]) -> list[str]:
    """Global options first, wherever they stood before a `--`.

    >>> hoist(["sql", "SELECT 1", "-w", "here", "--json"])
    ['-w', 'here', 'sql', 'SELECT 1', '--json']
    """
    first: list[str] = []
    rest: list[str] = []
    i = 0
    while i < len(args) and args[i] != "--":
        name, equals, _ = args[i].partition("=")
        width = GLOBAL_OPTIONS.get(name, 0)
        taken = 1 if equals else max(1, width)
        (first if width else rest).extend(args[i : i + taken])
        i += taken
    return first + rest + args[i:]


def _is_for_typer(error: BaseException) -> bool:
    """Usage errors, exits and a reader that went away: the option parser ends the call itself."""
    return isinstance(error, BrokenPipeError) or type(error).__module__.split(".")[0] in (
        "typer",
        "click",
    )


app = typer.Typer(
    name="slackwater",
    cls=Commands,
    help="Keep SQL views over changing tables fresh on Apache Spark, exactly and thriftily.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"slackwater {version('slackwater')}")
        raise typer.Exit()


@app.callback()
def options(
    ctx: typer.Context,
    warehouse: Annotated[
        str, typer.Option("--warehouse", "-w", envvar="SLACKWATER_WAREHOUSE", help="Its folder.")
    ] = "warehouse",
    placement: Annotated[
        Placement, typer.Option(envvar="SLACKWATER_PLACEMENT", help="Where steps run.")
    ] = Placement.auto,
    catalog_url: Annotated[
        str | None,
        typer.Option(envvar="SLACKWATER_CATALOG_URL", help="A PostgreSQL catalog, by URL."),
    ] = None,
    spark_master: Annotated[
        str, typer.Option(envvar="SLACKWATER_SPARK_MASTER", help="Any Spark master.")
    ] = "local[*]",
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """Read the options that all commands share."""
    ctx.obj = Session(warehouse, placement.value, catalog_url, spark_master, debug)


app.command("init")(create.init)
app.command("sql")(statements.sql)
app.command("ingest")(ingest.ingest)
app.command("refresh")(refreshing.refresh)
app.command("verify")(refreshing.verify)
app.command("run")(running.run)
app.command("plan")(planning.plan)
app.command("explain")(inspecting.explain)
app.command("status")(inspecting.status)
app.command("history")(inspecting.history)
app.command("compact")(compacting.compact)
app.command("doctor")(doctor.doctor)
app.command("demo")(demo.demo)
bench.app.command("planning")(bench_plans.planning)
bench.app.command("choice")(bench_plans.choice)
bench.app.command("methods")(bench_plans.methods)
bench.app.command("progressive")(bench_plans.progressive)
bench.app.command("budget")(bench_budget.budget)
bench.app.command("goals")(bench_goals.goals)
bench.app.command("sharing")(bench_sharing.sharing)
bench.app.command("day")(bench_sharing.day)
bench.app.command("search")(bench_search.search)
app.add_typer(bench.app, name="bench")
