"""Running steps: on the engine that suits, measured, into segments of the run's own."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from slackwater import faults
from slackwater.algebra.relation import Relation
from slackwater.catalog.model import Measurement, Run, Segment
from slackwater.engine.compile import compile_program, compile_query
from slackwater.engine.inputs import content, weighted, with_ones
from slackwater.engine.local import LocalEngine, conform
from slackwater.engine.spark import SparkEngine
from slackwater.engine.storage import Storage
from slackwater.errors import NeedsSpark, UserError
from slackwater.planner.placement import LOAD_BYTES, QUERY_BYTES, Placement, choose
from slackwater.planner.steps import StepReport, WriteSegments
from slackwater.tvr.time import CHANGE
from slackwater.types import Schema, to_arrow_schema

BROADCAST_BYTES = 32_000_000
"""Changes up to this size are sent whole to wherever large inputs are read."""
COLLECT_BYTES = 8_000_000
"""What comes of changes up to this size is written by the driver: Spark needs longer to set a
write up than a few rows take to arrive."""


@dataclass(frozen=True)
class Stored:
    """A table or view as the sum of segments."""

    segments: tuple[Segment, ...]
    schema: Schema

    @property
    def bytes(self) -> int:
        """How much there is to read."""
        return sum(s.bytes for s in self.segments)


@dataclass(frozen=True)
class Log:
    """Segments as they are: rows with weights, not added up. The schema is without the weight."""

    segments: tuple[Segment, ...]
    schema: Schema

    @property
    def bytes(self) -> int:
        """How much there is to read."""
        return sum(s.bytes for s in self.segments)


@dataclass(frozen=True)
class Files:
    """Plain Parquet files of somebody else; with `weights`, each row is given the weight one."""

    paths: tuple[str, ...]
    schema: Schema
    bytes: int
    weights: bool = False


@dataclass(frozen=True)
class Given:
    """Rows handed in: an Arrow table, or a Spark DataFrame."""

    data: Any
    schema: Schema
    bytes: int


Source = Stored | Log | Files | Given
"""Where the rows of a scanned relation are."""

Sources = Mapping[str, Source]


@dataclass
class Runner:
    """Both engines, and the rule which of them runs a step."""

    storage: Storage
    local: LocalEngine
    spark: SparkEngine
    placement: str = "auto"
    load_bytes: int = LOAD_BYTES
    query_bytes: int = QUERY_BYTES
    on_step: Callable[[StepReport], None] | None = None
    reports: list[StepReport] = field(default_factory=list)

    # -- questions

    def place(self, relation: Relation, sources: Sources, load: bool) -> Placement:
        """The engine for a relation."""
        size = sum(sources[s.source].bytes for s in relation.scans())
        if any(not _is_local(sources[s.source]) for s in relation.scans()):
            return Placement("spark", "a Spark DataFrame was handed in")
        limit = self.load_bytes if load else self.query_bytes
        return choose(relation, size, limit, self.placement)

    def query(self, relation: Relation, sources: Sources) -> tuple[pa.Table, StepReport]:
        """The rows of a relation, on the driver."""
        self._require_segments(relation, sources)
        placement = self.place(relation, sources, load=False)
        schema = to_arrow_schema(relation.schema)
        with self._measured("query", placement) as measure:
            if placement.engine == "local":
                try:
                    table = self._local_table(relation, sources, schema)
                    measure.rows = table.num_rows
                    return table, measure.done("local")
                except NeedsSpark:
                    if self.placement == "local":
                        raise _not_exact() from None
            table = self._spark_table(relation, sources, schema)
            measure.rows = table.num_rows
            return table, measure.done("spark")

    def rows(self, relation: Relation, sources: Sources) -> Iterator[pa.RecordBatch]:
        """The rows of a relation in batches, on the driver, unmeasured."""
        self._require_segments(relation, sources)
        schema = to_arrow_schema(relation.schema)
        if self.place(relation, sources, load=False).engine == "local":
            return self._local_batches(relation, sources, schema)
        return iter(self._spark_table(relation, sources, schema).to_batches())

    def frame(self, relation: Relation, sources: Sources) -> Any:
        """The relation as a lazy Spark DataFrame, under its own column names."""
        self._require_segments(relation, sources)
        names = [f.name for f in relation.schema]
        inputs = self._spark_inputs(relation, sources)
        return self.spark.frame(compile_query(relation, self.spark.dialect, inputs, names))

    def statement(self, relation: Relation, sources: Sources, engine: str) -> str:
        """The SQL that would run, for EXPLAIN; inputs under their own names."""
        dialect = self.spark.dialect if engine == "spark" else self.local.dialect
        inputs = {s.source: dialect.quote(s.name) for s in relation.scans()}
        return compile_query(relation, dialect, inputs)

    def _require_segments(self, relation: Relation, sources: Sources) -> None:
        """Every file that is to be read is there, in full length: a look costs microseconds, and
        an engine's own complaint would not say what to do."""
        for scan in relation.scans():
            source = sources[scan.source]
            for segment in source.segments if isinstance(source, Stored | Log) else ():
                self.storage.check(segment)

    def _local_table(self, relation: Relation, sources: Sources, schema: pa.Schema) -> pa.Table:
        return pa.Table.from_batches(self._local_batches(relation, sources, schema), schema)

    def _local_batches(
        self, relation: Relation, sources: Sources, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        given: dict[str, pa.Table] = {}

        def give(data: pa.Table) -> str:
            name = f"given_{len(given)}"
            given[name] = data
            return name

        inputs = _inputs(self.local, relation, sources, give)
        program = compile_program(relation, self.local.dialect, inputs)
        parts = [(part.name, part.sql) for part in program.parts]
        return self.local.batches(program.sql, schema, given, parts)

    def _spark_inputs(self, relation: Relation, sources: Sources) -> dict[str, str]:
        return _inputs(self.spark, relation, sources, self.spark.given)

    def _spark_table(self, relation: Relation, sources: Sources, schema: pa.Schema) -> pa.Table:
        with self.spark.statement():
            return conform(self.spark.table(self._spark_sql(relation, sources)), schema)

    def _spark_sql(
        self, relation: Relation, sources: Sources, names: Sequence[str] | None = None
    ) -> str:
        """The statement for Spark, its parts registered."""
        inputs = self._spark_inputs(relation, sources)
        few = _changed_bytes(sources) < BROADCAST_BYTES
        prefix = f"slackwater_{secrets.token_hex(8)}_"
        program = compile_program(relation, self.spark.dialect, inputs, names, prefix, few)
        for part in program.parts:
            self.spark.part(part)
        return program.sql

    # -- steps

    def run(self, step: WriteSegments, run: Run, sources: Sources) -> tuple[Segment, ...]:
        """Compute a step's rows and write them as segments of the run."""
        self._require_segments(step.relation, sources)
        placement = self.place(step.relation, sources, step.load)
        with self._measured(step.name, placement) as measure:
            segments = self._write(step, run, sources, placement, measure)
            measure.rows = sum(s.rows for s in segments)
            measure.bytes = sum(s.bytes for s in segments)
            measure.done(measure.engine)
        return segments

    def _write(
        self,
        step: WriteSegments,
        run: Run,
        sources: Sources,
        placement: Placement,
        measure: _Measure,
    ) -> tuple[Segment, ...]:
        if placement.engine == "local":
            try:
                schema = to_arrow_schema(step.relation.schema)
                batches = self._local_batches(step.relation, sources, schema)
                measure.engine = "local"
                return self.storage.write(run, step.target, batches, schema)
            except NeedsSpark:
                if self.placement == "local":
                    raise _not_exact() from None
        measure.engine = "spark"
        names = [f.name for f in step.relation.schema]
        if not step.load and 0 < _changed_bytes(sources) < COLLECT_BYTES:
            schema = to_arrow_schema(step.relation.schema)
            table = self._spark_table(step.relation, sources, schema)
            return self.storage.write(run, step.target, table.to_batches(), schema)
        directory = self.storage.fresh_directory(run, step.target)
        with self.spark.statement():
            sql = self._spark_sql(step.relation, sources, names)
            faults.reached("segment.writing")
            self.spark.write(sql, directory)
        return self.storage.adopt(run, step.target, directory)

    @contextmanager
    def _measured(self, name: str, placement: Placement) -> Iterator[_Measure]:
        measure = _Measure(self, name, placement)
        if self.on_step is not None:
            self.on_step(StepReport(name, placement.engine, 0, 0, 0, 0, "start", placement.reason))
        yield measure


def _changed_bytes(sources: Sources) -> int:
    return sum(source.bytes for name, source in sources.items() if name.endswith(CHANGE))


def _inputs(
    engine: LocalEngine | SparkEngine,
    relation: Relation,
    sources: Sources,
    give: Callable[[Any], str],
) -> dict[str, str]:
    """What stands in FROM for everything that a relation scans."""
    inputs = {}
    for scan in relation.scans():
        match sources[scan.source]:
            case Stored(segments, schema):
                inputs[scan.source] = content(segments, schema, engine.dialect, engine.read)
            case Log(segments, schema):
                inputs[scan.source] = weighted(segments, schema, engine.dialect, engine.read)
            case Files((), schema):
                inputs[scan.source] = content((), schema, engine.dialect, engine.read)
            case Files(paths, schema, _, weights):
                read = engine.read_paths(paths, schema, weights=False)
                inputs[scan.source] = with_ones(read) if weights else read
            case Given(data):
                inputs[scan.source] = give(data)
    return inputs


@dataclass
class _Measure:
    """The clocks of a step."""

    runner: Runner
    name: str
    placement: Placement
    engine: str = ""
    rows: int = 0
    bytes: int = 0
    started: float = field(default_factory=time.perf_counter)
    cpu: float = -1.0
    read: int = 0

    def __post_init__(self) -> None:
        self.engine = self.placement.engine
        self.cpu = self._cpu()
        self.read = self._read()

    def _read(self) -> int:
        return bytes_read(os.getpid()) + bytes_read(self.runner.spark.process_id)

    def _cpu(self) -> float:
        return time.process_time() + cpu_seconds(self.runner.spark.process_id)

    def done(self, engine: str) -> StepReport:
        """The report, told to whoever listens."""
        seconds = time.perf_counter() - self.started
        spent = max(0.0, self._cpu() - self.cpu)
        reason = self.placement.reason
        read = max(0, self._read() - self.read)
        report = StepReport(
            self.name, engine, seconds, spent, self.rows, self.bytes, "end", reason, read
        )
        self.runner.reports.append(report)
        if self.runner.on_step is not None:
            self.runner.on_step(report)
        return report


def measurements(reports: Sequence[StepReport]) -> tuple[Measurement, ...]:
    """Step reports as the catalog keeps them."""
    return tuple(
        Measurement(r.name, r.engine, r.seconds, r.cpu_seconds, r.rows, r.bytes) for r in reports
    )


def cpu_seconds(process_id: int | None) -> float:
    """CPU time of another process of this machine, children not included; 0 if unknown."""
    if process_id is None:
        return 0.0
    try:
        fields = Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bytes_read(process_id: int | None) -> int:
    """What a process of this machine has read from files, cached or not; 0 if unknown."""
    if process_id is None:
        return 0
    try:
        fields = Path(f"/proc/{process_id}/io").read_text().split()
    except OSError:
        return 0
    return int(fields[fields.index("rchar:") + 1])


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


def _is_local(source: Source) -> bool:
    return not (isinstance(source, Given) and not isinstance(source.data, pa.Table))


def _not_exact() -> UserError:
    return UserError(
        "The local engine met a value that only Spark computes exactly.",
        code="NEEDS_SPARK",
        hint="Use placement = 'auto' or 'spark'.",
    )
