"""Several results from one statement: each in columns of its own, all others NULL."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from slackwater.engine.dialects import Dialect
from slackwater.types import Schema

_WHICH = "o"


def put_together(statements: Sequence[str], schemas: Sequence[Schema], dialect: Dialect) -> str:
    """One statement for several that give columns named as their schemas say."""
    if len(statements) == 1:
        return statements[0]
    selects = []
    for i, (statement, own) in enumerate(zip(statements, schemas, strict=True)):
        columns = [f"{i} AS {_WHICH}"]
        for j, schema in enumerate(schemas):
            for k, f in enumerate(schema):
                text = f"CAST(NULL AS {dialect.type_name(f.type)})"
                if j == i:
                    text = f"r.{dialect.quote(own[k].name)}"
                columns.append(f"{text} AS {_WHICH}{j}_{k}")
        selects.append(f"SELECT {', '.join(columns)} FROM ({statement}) AS r")
    return " UNION ALL ".join(selects)


def take_apart(table: pa.Table, schemas: Sequence[Schema]) -> list[pa.Table]:
    """The results of the statements, in their order."""
    if len(schemas) == 1:
        return [table]
    found, at = [], 1
    for i, schema in enumerate(schemas):
        places = list(range(at, at + len(schema)))
        rows = table.filter(pc.equal(table.column(_WHICH), i))
        found.append(rows.select(places))
        at += len(schema)
    return found
