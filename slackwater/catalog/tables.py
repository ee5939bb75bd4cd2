"""The catalog's tables, as the newest migration leaves them.

Rows with `added_commit` and `removed_commit` are visible to the snapshot of commit n exactly
when added_commit <= n < removed_commit (or removed_commit is NULL), so old snapshots stay
readable while new commits arrive. Moments are seconds since 1970 by the catalog's own clock.
"""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Dialect,
    Double,
    ForeignKey,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
)


class Json(TypeDecorator[Any]):
    """JSON proper, kept as text: without the NaN that Python would write."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str:
        return json.dumps(value, allow_nan=False)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return None if value is None else json.loads(value)


metadata = MetaData()
_ROWID = BigInteger().with_variant(Integer, "sqlite")

schema_version = Table(
    "schema_version",
    metadata,
    Column("version", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column("applied_at", Text, nullable=False),
)

# One row. Every writing transaction holds it, which makes all writers queue up.
# `horizon`: the oldest commit whose snapshot is still whole.
head = Table(
    "head",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("commit_id", BigInteger, nullable=False),
    Column("horizon", BigInteger, nullable=False),
)

commits = Table(
    "commits",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
)

relations = Table(
    "relations",
    metadata,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),  # 'table' or 'view'
    Column("owner", Text),  # of a state: its view
)

definitions = Table(
    "definitions",
    metadata,
    Column("row_id", _ROWID, primary_key=True),
    Column("relation_id", Text, ForeignKey("relations.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("folded_name", Text, nullable=False),  # unique among the rows not removed
    Column("body", Json, nullable=False),
    Column("added_commit", BigInteger, nullable=False),
    Column("removed_commit", BigInteger),
)

versions = Table(
    "versions",
    metadata,
    Column("row_id", _ROWID, primary_key=True),
    Column("relation_id", Text, ForeignKey("relations.id"), nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("as_of", Json, nullable=False),
    Column("refreshed_at", Text),
    Column("log_from", BigInteger, nullable=False),
    Column("arrived_rows", BigInteger, nullable=False),  # however many were merged since
    Column("added_commit", BigInteger, nullable=False),
    Column("removed_commit", BigInteger),
)

segments = Table(
    "segments",
    metadata,
    Column("row_id", _ROWID, primary_key=True),
    Column("relation_id", Text, ForeignKey("relations.id"), nullable=False),
    Column("path", Text, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("min_weight", BigInteger, nullable=False),
    Column("max_weight", BigInteger, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("since", BigInteger, nullable=False),
    Column("stats", Json, nullable=False),
    Column("width", BigInteger, nullable=False),
    Column("added_commit", BigInteger, nullable=False),
    Column("removed_commit", BigInteger),
)

leases = Table(
    "leases",
    metadata,
    Column("name", Text, primary_key=True),
    Column("token", BigInteger, nullable=False),  # grows with every holder
    Column("holder", Text),  # NULL: free
    Column("owner", Json, nullable=False),
    Column("since", Double, nullable=False),
    Column("expires", Double, nullable=False),
)

pins = Table(
    "pins",
    metadata,
    Column("id", Text, primary_key=True),
    Column("commit_id", BigInteger, nullable=False),
    Column("owner", Json, nullable=False),
    Column("expires", Double, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("token", Text, nullable=False),
    Column("state", Text, nullable=False),  # open, committed, aborted, revoked
    Column("directory", Text, nullable=False),
    Column("leases", Json, nullable=False),  # name -> token
    Column("owner", Json, nullable=False),
    Column("expires", Double, nullable=False),
    Column("begun_at", Double, nullable=False),
    Column("ended_at", Double),
    Column("commit_id", BigInteger),
    Column("error", Text),
    Column("swept", Integer, nullable=False),  # 1: nothing in its directory is garbage
)

measurements = Table(
    "measurements",
    metadata,
    Column("row_id", _ROWID, primary_key=True),
    Column("run_id", Text, ForeignKey("runs.id"), nullable=False),
    Column("step", Text, nullable=False),
    Column("engine", Text, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("cpu_seconds", Double, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("row_id", _ROWID, primary_key=True),
    Column("commit_id", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("relation_id", Text),
    Column("at", Text, nullable=False),
    Column("body", Json, nullable=False),
)

settings = Table(
    "settings",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", Json, nullable=False),
)

# What users set for the whole warehouse; `settings` above is what we keep for ourselves.
warehouse_settings = Table(
    "warehouse_settings",
    metadata,
    Column("row_id", _ROWID, primary_key=True),
    Column("key", Text, nullable=False),  # unique among the rows not removed
    Column("value", Text, nullable=False),
    Column("added_commit", BigInteger, nullable=False),
    Column("removed_commit", BigInteger),
)
