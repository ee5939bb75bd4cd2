"""NULLs where there must be none, found without reading a row."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.parquet as pq

from slackwater.catalog.model import Segment
from slackwater.engine.storage import Storage
from slackwater.errors import UserError
from slackwater.types import Schema


def require_not_null(
    segments: Sequence[Segment], schema: Schema, storage: Storage, table: str
) -> None:
    """Refuse NULLs in NOT NULL columns, as the files' own statistics tell them."""
    strict = {f.name for f in schema if not f.nullable}
    for segment in segments if strict else ():
        storage.check(segment)
        footer = pq.read_metadata(storage.path(segment))
        for group in range(footer.num_row_groups):
            for i in range(footer.num_columns):
                chunk = footer.row_group(group).column(i)
                if chunk.path_in_schema in strict and chunk.statistics.null_count:
                    raise UserError(
                        f"NULL in column '{chunk.path_in_schema}' of '{table}', which is NOT NULL.",
                        code="NULL_IN_NOT_NULL",
                        hint="Give a value, or declare the column without NOT NULL.",
                    )
