"""Results of statements: rows or a message, in whatever form the user wants them."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from slackwater.types import Schema

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

SHOWN_ROWS = 20
SHOWN_WIDTH = 60


class Result:
    """The rows of a query, or the message of a statement that has none."""

    def __init__(
        self,
        schema: Schema = (),
        rows: Callable[[], pa.Table] | None = None,
        message: str = "",
        to_spark: Callable[[pa.Table], DataFrame] | None = None,
    ) -> None:
        self.schema = schema
        self.message = message
        self._rows = rows
        self._table: pa.Table | None = None
        self._to_spark = to_spark

    @property
    def has_rows(self) -> bool:
        """Is this the result of a query?"""
        return self._rows is not None

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return int(self.to_arrow().num_rows)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [f.name for f in self.schema]

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        if self._table is None:
            self._table = self._rows() if self._rows is not None else pa.table({})
        return self._table

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_spark(self) -> DataFrame:
        """The rows as a Spark DataFrame."""
        if self._to_spark is None:
            raise TypeError("this statement has no rows")
        return self._to_spark(self.to_arrow())

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows as Python tuples."""
        table = self.to_arrow()
        columns = [c.to_pylist() for c in table.columns]
        return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """The first row, or None."""
        rows = self.fetchall()
        return rows[0] if rows else None

    def show(self, n: int = SHOWN_ROWS) -> None:
        """Print the first rows as a table."""
        from rich.console import Console

        Console().print(self._text(n), markup=False, highlight=False, soft_wrap=True)

    def _text(self, most: int) -> str:
        if not self.has_rows:
            return self.message or "OK"
        table = self.to_arrow()
        cells = [[_cell(v) for v in row] for row in _head(table, most)]
        names = self.columns
        widths = [max([len(names[i]), *(len(row[i]) for row in cells)]) for i in range(len(names))]
        right = [
            pa.types.is_integer(t) or pa.types.is_decimal(t) or pa.types.is_floating(t)
            for t in table.schema.types
        ]
        lines = [_line(names, widths, [False] * len(names)), "-+-".join("-" * w for w in widths)]
        lines += [_line(row, widths, right) for row in cells]
        return "\n".join([*lines, self._footer(most)])

    def _footer(self, most: int) -> str:
        count = self.num_rows
        unit = "row" if count == 1 else "rows"
        return f"({count} {unit})" if count <= most else f"({count} {unit}, first {most} shown)"

    def __str__(self) -> str:
        return self._text(SHOWN_ROWS)

    __repr__ = __str__

    def __len__(self) -> int:
        return self.num_rows

    def __iter__(self) -> Any:
        return iter(self.fetchall())

    def _repr_html_(self) -> str:
        if not self.has_rows:
            return f"<p>{escape(self.message or 'OK')}</p>"
        head = "".join(f"<th>{escape(n)}</th>" for n in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(_cell(v))}</td>" for v in row) + "</tr>"
            for row in _head(self.to_arrow(), SHOWN_ROWS)
        )
        foot = escape(self._footer(SHOWN_ROWS))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{foot}</p>"


def _head(table: pa.Table, most: int) -> list[tuple[Any, ...]]:
    columns = [c.to_pylist() for c in table.slice(0, most).columns]
    return list(zip(*columns, strict=True)) if columns else []


def _line(cells: list[str], widths: list[int], right: list[bool]) -> str:
    return " | ".join(
        c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True)
    ).rstrip()


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value).replace("\n", "\\n")
    return text if len(text) <= SHOWN_WIDTH else text[: SHOWN_WIDTH - 1] + "…"
