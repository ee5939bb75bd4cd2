"""`slackwater sql`: statements from arguments, files, a pipe, or a prompt."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slackwater.cli.context import Session, session
from slackwater.cli.output import Format, print_result
from slackwater.errors import UserError

if TYPE_CHECKING:
    from slackwater import Warehouse


def sql(
    ctx: typer.Context,
    statements: Annotated[
        list[str] | None, typer.Argument(help="SQL; several statements end with ';' each.")
    ] = None,
    file: Annotated[
        list[Path] | None, typer.Option("--file", "-f", help="Run the statements of a file.")
    ] = None,
    style: Annotated[Format, typer.Option("--format", help="How rows are written.")] = Format.table,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per statement.")] = False,
) -> None:
    """Run SQL. Without statements: what is piped in, or an interactive prompt.

    A failing statement ends the call; those before it stay done.
    """
    own = session(ctx)
    style = Format.json if json else style
    if not statements and not file and sys.stdin.isatty():
        from slackwater.cli.prompt import run_prompt

        with own.open() as db:
            run_prompt(own, db, style)
        return
    texts = list(_texts(statements or [], file or []))
    with own.open() as db:
        for text in texts:
            run_script(own, db, text, style)


def run_script(own: Session, db: Warehouse, text: str, style: Format) -> None:
    """Run each statement of a text and print its result at once."""
    for statement, result in db.execute_script(text):
        print_result(own, result, style, statement)


def _texts(statements: list[str], files: list[Path]) -> Iterator[str]:
    """The SQL texts to run: files first, then arguments; the pipe when there are neither."""
    for file in files:
        yield _read(file)
    yield from statements
    if not statements and not files:
        yield sys.stdin.read()


def _read(file: Path) -> str:
    if str(file) == "-":
        return sys.stdin.read()
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"File '{file}' cannot be read: {error}.",
            code="BAD_FILE",
            hint="It must be a UTF-8 text file of SQL statements.",
        ) from error
