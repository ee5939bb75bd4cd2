"""Settings of Spark sessions: what results depend on, what we start with, what suits few rows."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PINNED = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.variable.substitute": "false",  # '${x}' is text
}
"""Settings that decide what SQL means; they hold in a session handed in, too."""

CORES = max(2, os.cpu_count() or 2)

PIECES = {
    "spark.sql.shuffle.partitions": str(CORES),
    "spark.sql.adaptive.coalescePartitions.initialPartitionNum": str(32 * CORES),
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": f"{max(1, 32 // CORES)}m",
}
"""Rows are exchanged in many pieces, and small ones are put together until there is one for each
core. A task has a core's share of the memory; to sort rows it takes up to twenty times what they
took on their way, compressed, and what follows in the same task cannot make it give that back. In
one piece per core, 40 million keys (TPC-H's q4 at scale factor 10) left nothing for a count."""

DEFAULTS = {
    **PIECES,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # What the page would show of plans is kept even where there is none.
    "spark.sql.ui.retainedExecutions": "200",
    "spark.driver.memory": "4g",
    # Every side that is hashed takes a page at least, and keeps it while its task runs. A statement
    # in one piece hashes many; with pages of 64 MB, as Spark has them here by itself, 34 are all.
    "spark.buffer.pageSize": "2m",
    # Refreshing a few views needs more than the 100 compiled classes that Spark keeps by default.
    "spark.sql.codegen.cache.maxEntries": "1000",
    # Code is found again wherever it is the same, not only as the same stage of a statement. The
    # rows of a table are a union: where it has changed once more, all of it would be new code.
    "spark.sql.codegen.useIdInClassName": "false",
    "spark.sql.codegen.wholeStage.union.enabled": "false",
    # What is bucketed is read so; where this may look for other ways, Spark clones the session to
    # cache rows.
    "spark.sql.sources.bucketing.autoBucketedScan.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.sources.default": "parquet",
    "spark.log.level": "ERROR",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}

SHORT_LIVED = "-XX:ReservedCodeCacheSize=256m -XX:+UseParallelGC"
"""For a Java that ends after minutes: collecting garbage beside the work costs more than it
saves."""
BRIEF_JAVA = f"-XX:TieredStopAtLevel=1 {SHORT_LIVED}"
"""The same where every core is busy: compiling Spark to the last costs more than it saves, too."""

SHORT = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.execution.arrow.localRelationThreshold": "100KB",
}
"""For statements that begin with few rows: planning again after every exchange, and tasks without
rows, take longer than the rows do. Rows that the driver hands in are part of the plan, which is
copied and compared many times over, only where they are very few."""

TINY = {"spark.sql.codegen.wholeStage": "false"}
"""For statements that read few rows altogether: code written and compiled for the one statement
takes longer than the rows do."""


WHOLE = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.excludedRules": (
        "org.apache.spark.sql.catalyst.optimizer.PushDownLeftSemiAntiJoin"
    ),
    "spark.sql.sources.fileCompressionFactor": "0.000001",
    "spark.sql.defaultSizeInBytes": "1",
}
"""For statements whose rows are all in one piece. To send some would take a job of its own; semi
joins are not to go down to where rows are in several pieces yet; and Spark, which takes a join for
as large as its sides multiplied, is to think nothing too large for one piece."""


class Overlay:
    """Settings of sessions while somebody asks for them; afterwards they have their own again."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._users: Counter[SparkSession] = Counter()
        self._own: dict[SparkSession, dict[str, str | None]] = {}

    @contextmanager
    def on(self, session: SparkSession) -> Iterator[None]:
        """The settings hold, for whoever else uses the session meanwhile, too."""
        with self._lock:
            if not self._users[session]:
                self._own[session] = {key: session.conf.get(key, None) for key in self._settings}
                set_all(session, self._settings)
            self._users[session] += 1
        try:
            yield
        finally:
            with self._lock:
                self._users[session] -= 1
                if not self._users[session]:
                    del self._users[session]
                    set_all(session, self._own.pop(session))


def set_all(session: SparkSession, settings: Mapping[str, str | None]) -> None:
    """Change settings of a running session; those without a value are left to Spark."""
    for key, value in settings.items():
        if value is None:
            session.conf.unset(key)
        else:
            session.conf.set(key, value)


FROM_FEW_ROWS = Overlay(SHORT)
OVER_FEW_ROWS = Overlay(TINY)
NOTHING_SENT = Overlay(WHOLE)
