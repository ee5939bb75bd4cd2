"""Results and reports as text for people, and as JSON or CSV for machines."""

from __future__ import annotations

import base64
import csv
import datetime
import decimal
import json
import math
import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.segment import Segments
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from slackwater.cli.context import Session
    from slackwater.result import Result
    from slackwater.work.reasons import Why


_WIDEST = 100_000


class Format(StrEnum):
    """How rows are written."""

    table = "table"
    json = "json"
    csv = "csv"


def plain(value: Any) -> Any:
    """A value as JSON holds it without loss: decimals, dates and NaN as text.

    >>> plain({"a": decimal.Decimal("1.50"), "b": (datetime.date(2024, 2, 29), float("nan"))})
    {'a': '1.50', 'b': ['2024-02-29', 'NaN']}
    """
    match value:
        case dict():
            return {str(k): plain(v) for k, v in value.items()}
        case list() | tuple() | set():
            return [plain(v) for v in value]
        case float() if math.isnan(value):
            return "NaN"
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case None | bool() | int() | float() | str():
            return value
        case datetime.datetime() | datetime.date():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
    return str(value)


def to_json(value: Any, indent: int | None = None) -> str:
    """A JSON text of any report."""
    return json.dumps(plain(value), indent=indent, ensure_ascii=False)


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(to_json(value, indent=2) + "\n")


def result_as_dict(result: Result, statement: str) -> dict[str, Any]:
    """The JSON form of a statement's result; rows are arrays, since column names may repeat."""
    if not result.has_rows:
        return {"statement": statement, "message": result.message}
    return {
        "statement": statement,
        "columns": [{"name": f.name, "type": f.type.sql} for f in result.schema],
        "rows": result.fetchall(),
    }


def print_result(session: Session, result: Result, style: Format, statement: str = "") -> None:
    """One statement's result on stdout, in the form asked for."""
    if style is Format.json:
        sys.stdout.write(to_json(result_as_dict(result, statement)) + "\n")
    elif style is Format.csv:
        if result.has_rows:
            _print_csv([f.name for f in result.schema], result.fetchall())
    elif result.has_rows:
        rows = result.fetchall()
        print_table(session.out, table([f.name for f in result.schema], rows))
        session.out.print(counted(len(rows), "row"), style="dim")
    elif result.message:
        session.out.print(Text(result.message))


def table(names: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "") -> Table:
    """Rows as a table: numbers to the right, NULL told apart from the text 'NULL'."""
    rows = list(rows)
    shown = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False)
    for i, name in enumerate(names):
        numeric = all(_is_number(row[i]) for row in rows if row[i] is not None)
        shown.add_column(
            Text(name),
            justify="right" if rows and numeric else "left",
            no_wrap=True,
            overflow="fold",
        )
    for row in rows:
        shown.add_row(*(cell(value) for value in row))
    return shown


def print_reasons(session: Session, found: Iterable[tuple[str, Why]]) -> None:
    """Why views are computed as they are, and what to do instead; nothing where all is well."""
    rows = [(view, why.code, why.means, why.at, why.rewrite) for view, why in found]
    if rows:
        names = ("view", "reason", "means", "at", "instead")
        print_table(session.out, table(names, rows, title="Reasons"))


def print_table(console: Console, shown: Table) -> None:
    """The whole table, however wide: a cut value is a wrong value."""
    wide = console.options.update(max_width=_WIDEST)
    needed = console.measure(shown, options=wide).maximum
    console.print(Segments(console.render(shown, wide.update(width=needed))), crop=False, end="")


def cell(value: Any) -> Text:
    """One value, as a cell of a table."""
    if value is None:
        return Text("NULL", "dim italic")
    if isinstance(value, Text):
        return value
    if isinstance(value, bool):
        return Text(str(value).lower())
    if isinstance(value, bytes):
        return Text(value.hex(" ").upper())
    return Text(value if isinstance(value, str) else str(value))


def counted(count: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "row"), counted(1500, "row")
    ('1 row', '1,500 rows')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def size(count: int | None) -> str:
    """Bytes for people.

    >>> size(None), size(512), size(1_500_000)
    ('-', '512 B', '1.5 MB')
    """
    if count is None:
        return "-"
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | decimal.Decimal) and not isinstance(value, bool)


def _print_csv(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """RFC 4180, with a header line; NULL is an empty field."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow(["" if v is None else plain(v) for v in row])
