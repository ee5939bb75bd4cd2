"""Running steps: on the engine that suits, measured, into segments of the run's own."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, TypeVar

import pyarrow as pa

from slackwater import faults
from slackwater.algebra.relation import Filter, Project, Relation, Scan
from slackwater.catalog.model import Measurement, Run, Segment
from slackwater.engine.compile import compile_program, compile_query
from slackwater.engine.emptiness import not_empty
from slackwater.engine.local import LocalEngine, LocalSession, conform
from slackwater.engine.meetings import bearable
from slackwater.engine.meter import Meter, Reading
from slackwater.engine.programs import HEAVY, Part, Program
from slackwater.engine.sharing import most_repeated
from slackwater.engine.skipping import narrowed
from slackwater.engine.sources import (
    Given,
    Log,
    Made,
    Sources,
    Stored,
    changed_bytes,
    from_texts,
    thin,
)
from slackwater.engine.spark import SparkEngine
from slackwater.engine.spark_errors import OUT_OF_MEMORY
from slackwater.engine.storage import Storage
from slackwater.engine.suited import SHORT_BYTES, Suited, suited
from slackwater.engine.together import put_together, take_apart
from slackwater.errors import NeedsSpark, StateError, UserError
from slackwater.planner.placement import LOAD_BYTES, QUERY_BYTES, Placement, choose
from slackwater.planner.steps import Output, StepReport, WriteSegments
from slackwater.types import to_arrow_schema

BROADCAST_BYTES = 32_000_000
"""Changes up to this size are sent whole to wherever large inputs are read."""
COLLECT_BYTES = 64_000_000
"""What comes of changes up to this size is written by the driver, all outputs of a step in one
statement: Spark needs longer to set a write up for each than the rows take to arrive."""

T = TypeVar("T")
Segments = dict[str, tuple[Segment, ...]]
"""What was written for each target."""


@dataclass(frozen=True)
class Written:
    """What a step has written: the segments of each output, and what they cost."""

    segments: Segments
    report: StepReport

    @property
    def only(self) -> tuple[Segment, ...]:
        """The segments of a step with one output."""
        (segments,) = self.segments.values()
        return segments


@dataclass
class Runner:
    """Both engines, and the rule which of them runs a step."""

    storage: Storage
    local: LocalEngine
    spark: SparkEngine
    meter: Meter
    placement: str = "auto"
    load_bytes: int = LOAD_BYTES
    query_bytes: int = QUERY_BYTES
    on_step: Callable[[StepReport], None] | None = None
    _too_many: float = inf  # operators that one task had no memory for
    _telling: threading.RLock = field(default_factory=threading.RLock)

    # -- questions

    def place(
        self, relations: Sequence[Relation], sources: Sources, load: bool, setting: str = ""
    ) -> Placement:
        """The engine for some relations that are computed together, by the runner's setting
        unless another is given."""
        scanned = {s.source: sources[s.source] for r in relations for s in r.scans()}
        if any(isinstance(s, Given) and not s.is_local for s in scanned.values()):
            return Placement("spark", "a Spark DataFrame was handed in")
        limit = self.load_bytes if load else self.query_bytes
        size = sum(s.bytes for s in scanned.values())
        setting = setting or self.placement
        chosen = choose(relations, size, limit, setting)
        if chosen.engine == "spark" and setting == "auto" and not self.spark.is_available:
            alone = choose(relations, 0, limit, setting)  # whatever its size
            if alone.engine == "local":
                return Placement("local", "no Java was found for Spark")
        return chosen

    def query(self, relation: Relation, sources: Sources) -> pa.Table:
        """The rows of a relation, on the driver."""
        sources = narrowed([Output("", relation)], sources)
        relation = thin(relation, sources)
        self._require_segments(relation, sources)
        placement = self.place([relation], sources, load=False)
        schema = to_arrow_schema(relation.schema)
        with self._measured("query", placement) as measure:
            table = self._query(relation, sources, schema, measure)
            measure.rows = table.num_rows
            measure.done()
        return table

    def _query(
        self, relation: Relation, sources: Sources, schema: pa.Schema, measure: _Measure
    ) -> pa.Table:
        if measure.engine == "local":
            try:
                return pa.Table.from_batches(self._local_rows(relation, sources), schema)
            except NeedsSpark:
                self._leave_local(measure)
        return self._spark_table(relation, sources)

    def copied(self, relation: Relation, sources: Sources) -> Iterator[pa.RecordBatch]:
        """The rows of a relation in batches, for the driver to write elsewhere, unmeasured.

        Nothing but weights is added up, so under 'spark', too, the driver does it by itself where
        it can: Spark would hand it all rows anyway.
        """
        self._require_segments(relation, sources)
        setting = "auto" if self.placement == "spark" else self.placement
        if self.place([relation], sources, load=False, setting=setting).engine == "local":
            return self._local_rows(relation, sources)
        return iter(self._spark_table(relation, sources).to_batches())

    def frame(self, relation: Relation, sources: Sources) -> Any:
        """The relation as a lazy Spark DataFrame, under its own column names."""
        self._require_segments(relation, sources)
        names = [f.name for f in relation.schema]
        inputs = from_texts(self.spark, relation, sources, self.spark.given, {})
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
            for segment in source.segments if isinstance(source, Stored | Log | Made) else ():
                self.storage.check(segment)

    def _leave_local(self, measure: _Measure) -> None:
        """The local engine met what it cannot compute: on to Spark, if that is allowed."""
        if self.placement == "local":
            raise _not_exact() from None
        measure.engine = "spark"

    def _local_rows(self, relation: Relation, sources: Sources) -> Iterator[pa.RecordBatch]:
        schema = to_arrow_schema(relation.schema)
        with self.local.session(_bytes(sources)) as session:
            sql = self._local_sql(session, relation, sources, {}, "")
            yield from session.batches(sql, schema)

    def _local_sql(
        self,
        session: LocalSession,
        relation: Relation,
        sources: Sources,
        made: Mapping[str, str],
        prefix: str,
    ) -> str:
        """The statement for the local engine, its parts computed."""
        inputs = from_texts(self.local, relation, sources, session.give, made)
        names = [f.name for f in relation.schema] if prefix else None
        program = compile_program(relation, self.local.dialect, inputs, names, prefix)
        for part in program.parts:
            session.keep(part.name, part.sql)
        return program.sql

    def _spark_table(self, relation: Relation, sources: Sources) -> pa.Table:
        def computed(how: Suited) -> pa.Table:
            return self.spark.table(self._spark_program(relation, sources, {}, how).sql)

        found = self._on_spark(sources, [relation], computed)
        return conform(found, to_arrow_schema(relation.schema))

    def _on_spark(
        self, sources: Sources, relations: Sequence[Relation], work: Callable[[Suited], T]
    ) -> T:
        """Work on Spark, as it is best run. What one task has no memory for is run in several, and
        so is then whatever has as many operators."""
        how, operators = suited(sources, relations), sum(len(list(r.walk())) for r in relations)
        if operators >= self._too_many:
            how = replace(how, one_piece=False)
        try:
            with self.spark.statement(how.overlays, how.one_piece):
                return work(how)
        except StateError as error:
            if error.code != OUT_OF_MEMORY or not how.one_piece:
                raise
        self._too_many = operators
        return self._on_spark(sources, relations, work)

    def _spark_program(
        self,
        relation: Relation,
        sources: Sources,
        made: Mapping[str, Part],
        how: Suited,
        most: int = HEAVY[0],
    ) -> Program:
        """The statement for Spark, its parts registered."""
        texts = {target: part.name for target, part in made.items()}
        inputs = from_texts(self.spark, relation, sources, self.spark.given, texts)
        sizes = {
            name: made[source.target].size
            for name, source in sources.items()
            if isinstance(source, Made) and source.target in made
        }
        changes = changed_bytes(sources)
        read = {name: source.bytes for name, source in sources.items()}
        program = compile_program(
            bearable(relation, read, one_piece=how.from_few),
            how.dialect,
            inputs,
            [f.name for f in relation.schema],
            _fresh(),
            read if changes < BROADCAST_BYTES else None,
            sizes,
            most,
        )
        for part in program.parts:
            self.spark.part(replace(part, small=part.small and changes < SHORT_BYTES))
        return program

    # -- steps

    def run(self, step: WriteSegments, run: Run, sources: Sources) -> Written:
        """Compute a step's rows and write them as segments of the run."""
        nothing: Segments = {output.target: () for output in step.outputs}
        outputs, sources = not_empty(step.outputs, narrowed(step.outputs, sources))
        outputs = tuple(replace(o, relation=thin(o.relation, sources)) for o in outputs)
        step = replace(step, outputs=outputs)
        relations = [output.relation for output in outputs]
        for relation in relations:
            self._require_segments(relation, sources)
        placement = Placement("local", "there is nothing to compute")
        if outputs:
            placement = self.place(relations, sources, step.load)
            if step.engine and placement.engine != step.engine:
                placement = Placement(step.engine, "it costs less there")
        with self._measured(step.name, placement) as measure:
            segments = nothing | self._write(step, run, sources, measure)
            written = [s for found in segments.values() for s in found]
            measure.rows = sum(s.rows for s in written)
            measure.bytes = sum(s.bytes for s in written)
            return Written(segments, measure.done())

    def _write(
        self, step: WriteSegments, run: Run, sources: Sources, measure: _Measure
    ) -> Segments:
        if measure.engine == "local":
            try:
                return self._write_local(step, run, sources)
            except NeedsSpark:
                self._leave_local(measure)
        spread = any(output.spread for output in step.outputs)
        few = not step.load and not spread and _has_change(sources, COLLECT_BYTES)
        write = self._collect if few else self._write_spark

        def written(how: Suited) -> Segments:
            return write(step, run, self._spark_statements(step, sources, how))

        return self._on_spark(sources, [output.relation for output in step.outputs], written)

    def _write_local(self, step: WriteSegments, run: Run, sources: Sources) -> Segments:
        segments: Segments = {}
        made: dict[str, str] = {}
        with self.local.session(_bytes(sources)) as session:
            for i, output in enumerate(step.outputs):
                sql = self._local_sql(session, output.relation, sources, made, f"o{i}_")
                if output.target in _read_later(step, i, sources):
                    made[output.target] = f"o{i}"
                    session.keep(f"o{i}", sql)
                    sql = f"SELECT * FROM o{i}"
                schema = to_arrow_schema(output.relation.schema)
                batches = session.batches(sql, schema)
                segments[output.target] = self.storage.write(run, output.target, batches, schema)
        return segments

    def _spark_statements(self, step: WriteSegments, sources: Sources, how: Suited) -> list[str]:
        """A statement per output; what later ones read is computed once."""
        statements = []
        made: dict[str, Part] = {}
        made_by = {name: s.target for name, s in sources.items() if isinstance(s, Made)}
        most = most_repeated([(o.target, o.relation) for o in step.outputs], made_by)
        small = changed_bytes(sources) < SHORT_BYTES
        for i, output in enumerate(step.outputs):
            program = self._spark_program(output.relation, sources, made, how, most)
            sql = program.sql
            if output.target in _read_later(step, i, sources):
                part = Part(_fresh(), sql, program.size, small, most)
                self.spark.part(part)
                made[output.target] = part
                sql = f"SELECT * FROM {part.name}"
            statements.append(sql)
        return statements

    def _collect(self, step: WriteSegments, run: Run, statements: Sequence[str]) -> Segments:
        """All outputs in one go, by way of the driver."""
        schemas = [output.relation.schema for output in step.outputs]
        rows = self.spark.table(put_together(statements, schemas, self.spark.dialect))
        segments: Segments = {}
        for output, table in zip(step.outputs, take_apart(rows, schemas), strict=True):
            schema = to_arrow_schema(output.relation.schema)
            batches = conform(table, schema).to_batches()
            segments[output.target] = self.storage.write(run, output.target, batches, schema)
        return segments

    def _write_spark(self, step: WriteSegments, run: Run, statements: Sequence[str]) -> Segments:
        """Each output by Spark itself."""
        segments: Segments = {}
        for output, sql in zip(step.outputs, statements, strict=True):
            directory = self.storage.fresh_directory(run, output.target)
            faults.reached("segment.writing")
            few_files = _is_exchanged(output.relation)
            self.spark.write(sql, directory, few_files, output.spread, output.most_files)
            segments[output.target] = self.storage.adopt(run, output.target, directory)
        return segments

    @contextmanager
    def _measured(self, name: str, placement: Placement) -> Iterator[_Measure]:
        measure = _Measure(self, name, placement)
        self.tell(StepReport(name, placement.engine, 0, 0, 0, 0, "start", placement.reason))
        try:
            yield measure
        finally:
            measure.stop()

    def tell(self, report: StepReport) -> None:
        """Let whoever listens know."""
        with self._telling:
            if self.on_step is not None:
                self.on_step(report)


def _bytes(sources: Sources) -> int:
    return sum(s.bytes for s in sources.values())


def _has_change(sources: Sources, below: int) -> bool:
    """Is there a change, of fewer bytes?"""
    return 0 < changed_bytes(sources) < below


def _is_exchanged(relation: Relation) -> bool:
    """Do rows meet others? Those that do not are written in the pieces in which they are read."""
    return any(not isinstance(node, Scan | Project | Filter) for node in relation.walk())


def _fresh() -> str:
    """A name that nothing else in the Spark session has."""
    return f"slackwater_{secrets.token_hex(8)}_"


def _read_later(step: WriteSegments, i: int, sources: Sources) -> set[str]:
    """What the outputs after one read of what the step itself makes."""
    scanned = (sources[s.source] for o in step.outputs[i + 1 :] for s in o.relation.scans())
    return {source.target for source in scanned if isinstance(source, Made)}


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
    reading: Reading = field(default_factory=Reading)

    def __post_init__(self) -> None:
        self.engine = self.placement.engine
        self.reading = self.runner.meter.begin()

    def stop(self) -> None:
        """No more is counted."""
        self.runner.meter.end(self.reading)

    def done(self) -> StepReport:
        """The report, told to whoever listens."""
        self.stop()
        report = StepReport(
            self.name,
            self.engine,
            time.perf_counter() - self.started,
            self.reading.cpu_seconds,
            self.rows,
            self.bytes,
            "end",
            self.placement.reason,
            int(self.reading.bytes_read),
        )
        self.runner.tell(report)
        return report


def measurements(reports: Sequence[StepReport]) -> tuple[Measurement, ...]:
    """Step reports as the catalog keeps them."""
    return tuple(
        Measurement(r.name, r.engine, r.seconds, r.cpu_seconds, r.rows, r.bytes) for r in reports
    )


def _not_exact() -> UserError:
    return UserError(
        "The local engine met a value that only Spark computes exactly.",
        code="NEEDS_SPARK",
        hint="Use placement = 'auto' or 'spark'.",
    )
