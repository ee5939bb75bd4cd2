"""The corpora as streams: which queries, how their tables change, and a warehouse that follows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

import slackwater
from bench import corpus
from bench.changes import WEIGHT_COLUMN, Stream, make_stream
from bench.row_changes import RowStream, make_row_stream

FACTS = (
    "store_sales",
    "store_returns",
    "catalog_sales",
    "catalog_returns",
    "web_sales",
    "web_returns",
)
"""The tables of TPC-DS that change."""
TPCDS = (
    "q1 q3 q7 q10 q13 q15 q19 q25 q26 q33 q35 q40 q42 q43 q48 q52 q55 q60 q65 q68 q73 q79 q80 q96"
).split()


def texts(kind: str, queries: Sequence[str]) -> dict[str, str]:
    """The named queries of a corpus; TPC-H's 22 or some of TPC-DS's when none is named."""
    every = corpus.queries(kind)
    named = queries or (TPCDS if kind == "tpcds" else tuple(every))
    return {name: text for name, text in every.items() if name in named}


def stream_of(
    kind: str, files: dict[str, Path], shares: Sequence[float], seed: int, going: float = 0.5
) -> Stream | RowStream:
    """A batch of changes for each share of the rows, of which a part goes and the rest comes."""
    if kind == "tpch":
        return make_stream(files, [(share, True) for share in shares], seed, going)
    return make_row_stream(files, FACTS, shares, seed, going)


def load(db: slackwater.Warehouse, kind: str, files: dict[str, Path]) -> None:
    """The tables of a corpus."""
    for table, statement in corpus.ddl(kind).items():
        db.sql(statement)
        db.ingest(table, files[table])


def apply(db: slackwater.Warehouse, changes: dict[str, pa.Table]) -> None:
    """A batch, as one version of all its tables."""
    with db.transaction():
        for table, rows in changes.items():
            db.apply(table, rows, weight_column=WEIGHT_COLUMN)
