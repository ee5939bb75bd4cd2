"""A stream as a Python script of its own, to be run, read and put into a bug report."""

from __future__ import annotations

from collections.abc import Iterator

from tests.change_maker import Batch
from tests.streams import Stream, expanded

HEAD = """\
import datetime
import tempfile
from decimal import Decimal

import pyarrow as pa

import slackwater
from slackwater.engine.compare import compare

nan, inf = float("nan"), float("inf")
db = slackwater.connect(tempfile.mkdtemp(), placement={placement!r}, refresh="incremental")


def change(table, rows, weights=None):
    schema = db.sql(f"SELECT * FROM {{table}}").to_arrow().schema
    columns = [pa.array([r[i] for r in rows], f.type) for i, f in enumerate(schema)]
    data = pa.table(columns, schema=schema)
    if weights is None:
        db.append(table, data)
    else:
        db.apply(table, data.append_column("w", pa.array(weights, pa.int64())), weight_column="w")


def check():
    print([(r.view, r.mode) for r in db.refresh()])
    for name, query in QUERIES.items():
        found = compare(db.sql(f"SELECT * FROM {{name}}").to_arrow(), db.sql(query).to_arrow())
        print(name, found)
        assert found.equal

"""


def script(stream: Stream, placement: str = "local") -> str:
    """The stream in small steps."""
    return "\n".join([HEAD.format(placement=placement), *_lines(stream)]) + "\n"


def _lines(stream: Stream) -> Iterator[str]:
    queries = {v.name: expanded(v, stream.views) for v in stream.views}
    yield f"QUERIES = {queries!r}"
    for table in stream.tables:
        yield f"db.sql({table.ddl!r})"
    for batch in stream.batches[: stream.early]:
        yield from _batch(batch)
    for view in stream.views:
        yield f"db.sql({f'CREATE MATERIALIZED VIEW {view.name} AS {view.sql}'!r})"
    yield "check()"
    for batch in stream.batches[stream.early :]:
        yield from _batch(batch)
        yield "check()"


def _batch(batch: Batch) -> Iterator[str]:
    if not batch:
        return
    yield "with db.transaction():"
    for change in batch:
        if change.sql:
            yield f"    db.sql({change.sql!r})"
        else:
            weights = "" if change.weights is None else f", {list(change.weights)!r}"
            yield f"    change({change.table!r}, {list(change.rows)!r}{weights})"
