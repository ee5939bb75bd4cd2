"""Segments as record batches, with weights or as plain rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from slackwater.catalog.model import Segment, View
from slackwater.engine.storage import Storage
from slackwater.errors import InternalError
from slackwater.types import WEIGHT

_BATCH_ROWS = 64 * 1024


def read_segments(
    storage: Storage, view: View, segments: Sequence[Segment]
) -> Iterator[pa.RecordBatch]:
    """The rows of segments whose weights are all above zero; others need consolidation."""
    for segment in segments:
        if segment.min_weight < 1:
            raise InternalError(f"segment {segment.path} of '{view.name}' deletes rows")
        storage.check(segment)
        with pq.ParquetFile(storage.path(segment), coerce_int96_timestamp_unit="us") as file:
            yield from file.iter_batches(_BATCH_ROWS)


def plain_rows(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Each row as often as its weight says, in the columns of `schema`."""
    weights = batch.column(WEIGHT)
    rows = batch.select(schema.names).cast(schema)
    if pc.min_max(weights).as_py() == {"min": 1, "max": 1} or not batch.num_rows:
        return rows
    positions = np.repeat(np.arange(batch.num_rows), weights.to_numpy(zero_copy_only=False))
    return rows.take(pa.array(positions))
