"""`slackwater ingest`: files into a table, all of them or none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from slackwater.cli.context import Session, session
from slackwater.cli.formats import FileFormat, Reading, expand
from slackwater.cli.output import counted, print_json
from slackwater.errors import UserError, nearest

if TYPE_CHECKING:
    from slackwater import Warehouse
    from slackwater.cli.files import Advance
    from slackwater.types import Schema


def ingest(
    ctx: typer.Context,
    table: Annotated[str, typer.Argument(help="The table that takes the rows.")],
    files: Annotated[list[str], typer.Argument(help="Files, globs in quotes, or folders.")],
    style: Annotated[
        FileFormat | None, typer.Option("--format", help="Told by the file's name otherwise.")
    ] = None,
    create: Annotated[
        bool, typer.Option("--create", help="Create a missing table, inferring its types.")
    ] = False,
    delimiter: Annotated[str | None, typer.Option(help="Between the fields of a CSV file.")] = None,
    header: Annotated[bool, typer.Option(help="Does a CSV file begin with names?")] = True,
    null: Annotated[str, typer.Option(help="The text that stands for NULL in CSV.")] = "",
    json: Annotated[bool, typer.Option("--json", help="Report as JSON.")] = False,
) -> None:
    """Add the rows of CSV, JSON-lines or Parquet files to a table, in one version."""
    own = session(ctx)
    reading = Reading(style, delimiter, header, null)
    paths = expand(files)
    with own.open() as db:
        schema = table_schema(db, table, paths, reading, create)
        rows = _load(own, db, table, paths, reading, schema)
    if json:
        print_json({"table": table, "files": [str(p) for p in paths], "rows": rows})
    else:
        own.out.print(f"{counted(rows, 'row')} of {counted(len(paths), 'file')} into {table}.")


def table_schema(
    db: Warehouse, table: str, paths: list[Path], reading: Reading, create: bool
) -> Schema:
    """The table's columns; a missing table is created where that was asked for."""
    from slackwater.cli.files import infer
    from slackwater.types import quote

    names = [str(entry["name"]) for entry in db.status()["tables"]]
    if table.lower() not in [n.lower() for n in names]:
        if not create:
            raise UserError(
                f"Table '{table}' does not exist.",
                code="UNKNOWN_TABLE",
                hint=f"{nearest(table, names)} --create makes it from the first file.".strip(),
            )
        columns = ", ".join(f"{quote(f.name)} {f.type.sql}" for f in infer(paths[0], reading))
        db.sql(f"CREATE TABLE {quote(table)} ({columns})")
    return db.sql(f"SELECT * FROM {quote(table)} LIMIT 0").schema


def _load(
    own: Session,
    db: Warehouse,
    table: str,
    paths: list[Path],
    reading: Reading,
    schema: Schema,
) -> int:
    """Hand all batches of all files to one ingest; the number of rows."""
    from slackwater.cli.files import read

    rows = 0

    def batches(advance: Advance) -> Iterator[Any]:
        nonlocal rows
        for path in paths:
            for batch in read(path, reading, schema, advance):
                rows += batch.num_rows
                yield batch

    with _progress(own, table, sum(p.stat().st_size for p in paths)) as advance:
        db.ingest(table, batches(advance))
    return rows


@contextmanager
def _progress(own: Session, table: str, total: int) -> Iterator[Advance]:
    """A bar on stderr that counts the bytes read."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=own.err, transient=True) as progress:
        task = progress.add_task(table, total=total)
        yield lambda count: progress.advance(task, count)
