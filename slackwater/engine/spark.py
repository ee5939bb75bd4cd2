"""Spark: the one place that talks to PySpark.

The session starts when something first needs it. Its settings that change results are pinned:
ANSI mode on, time zone UTC.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from slackwater.algebra.expr import Column, Expr
from slackwater.catalog.model import Segment
from slackwater.engine import pieces
from slackwater.engine.dialects import SPARK
from slackwater.engine.java import NEEDED, java_version, own_options, require_java
from slackwater.engine.programs import Part
from slackwater.engine.spark_errors import translate
from slackwater.engine.spark_settings import DEFAULTS, PINNED, Overlay, set_all
from slackwater.engine.spark_sql import fill, render
from slackwater.errors import SlackwaterError, StateError
from slackwater.planner.steps import Spread
from slackwater.sql.scope import OuterColumn
from slackwater.types import (
    WEIGHT,
    DataType,
    Field,
    Schema,
    quote,
    schema_from_json,
    schema_to_json,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
PARTITIONS = "spark.sql.shuffle.partitions"

ROW_GROUP_BYTES = 4 * 1024 * 1024
"""Of what Spark writes: row groups small enough that a change of some keys reads few of them."""


class SparkEngine:
    """Runs statements on Spark, and answers for its analyzer."""

    dialect = SPARK
    name = "spark"

    def __init__(
        self,
        root: Path,
        session: SparkSession | None = None,
        master: str = "local[*]",
        config: Mapping[str, str] | None = None,
    ) -> None:
        self._root = root
        self._given = session
        self._session: SparkSession | None = None
        self._master = master
        self._config = dict(config or {})
        self._lock = threading.Lock()
        self._described: dict[Any, Any] = {}

    @property
    def started(self) -> bool:
        """Has anything needed Spark yet?"""
        return self._session is not None

    @property
    def is_running(self) -> bool:
        """Is there a session already?"""
        return self.started or self._given is not None

    @property
    def session(self) -> SparkSession:
        """The session, started on first use."""
        with self._lock:
            if self._session is None:
                self._session = self._given or self._start()
                set_all(self._session, PINNED)
            return self._session

    def _start(self) -> SparkSession:
        require_java()
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.appName("slackwater").master(self._master)
        quiet = Path(__file__).with_name("log4j2.properties").as_uri()
        own = {**DEFAULTS, "spark.sql.warehouse.dir": str(self._root / "spark"), **self._config}
        asked = own.get(JAVA_OPTIONS) or own_options(self._master)
        options = f"-Dlog4j2.configurationFile={quiet} {asked}"
        for key, value in {**own, JAVA_OPTIONS: options.strip()}.items():
            builder = builder.config(key, value)
        try:
            return _OWN.join(builder)
        except Exception as error:
            raise StateError(
                f"Spark did not start: {str(error).splitlines()[0]}",
                code="SPARK_NOT_STARTED",
                hint="Run 'slackwater doctor' to see what Spark needs.",
            ) from error

    def read(
        self, segments: Sequence[Segment], schema: Schema, spread: Spread | None = None
    ) -> str:
        """FROM text for plain Parquet files: a view that `statement` registers for its run."""
        paths = [os.path.join(self._root, s.path) for s in segments]
        return self.read_paths(paths, schema, weights=True, spread=spread)

    def read_paths(
        self,
        paths: Sequence[str],
        schema: Schema,
        weights: bool,
        spread: Spread | None = None,
    ) -> str:
        """A temporary view on files, named after nothing else. Of files that Spark wrote spread by
        columns it is told so."""
        from pyspark.sql.types import StructType

        fields = tuple(Field(f.name, f.type, True) for f in schema)
        if weights:
            fields += (_weight_field(),)
        struct = StructType.fromJson(schema_to_json(fields))
        if spread is None or not set(spread.by) <= {f.name for f in fields}:
            return self._view(self.session.read.schema(struct).parquet(*paths))
        return self._view(self._in_pieces(paths, struct, spread))

    def _in_pieces(self, paths: Sequence[str], struct: StructType, spread: Spread) -> DataFrame:
        """Files in pieces. Spark knows of such through tables in its catalog alone; there is none
        here, so it is told where it is told of the files."""
        from pyspark.sql import DataFrame

        jvm: Any = self.session.sparkContext._jvm
        own, seq = self.session._jsparkSession, jvm.PythonUtils.toSeq
        spec = jvm.org.apache.spark.sql.catalyst.catalog.BucketSpec(
            spread.pieces, seq(list(spread.by)), seq([])
        )
        source = jvm.org.apache.spark.sql.execution.datasources.DataSource(
            own,
            "parquet",
            seq(list(paths)),
            jvm.scala.Some(own.parseDataType(struct.json())),
            seq([]),
            jvm.scala.Some(spec),
            jvm.PythonUtils.toScalaMap({}),
            jvm.scala.Option.empty(),  # no table of a catalog
            jvm.scala.Option.empty(),  # nor anything that a stream is told by its user
        )
        as_usual = (getattr(source, f"resolveRelation$default${n}")() for n in (1, 2, 3))
        relation = source.resolveRelation(*as_usual)
        return DataFrame(own.baseRelationToDataFrame(relation), self.session)

    def given(self, frame: Any) -> str:
        """FROM text for a DataFrame or an Arrow table that a user hands in."""
        if isinstance(frame, pa.Table):
            frame = self.session.createDataFrame(frame)
        return self._view(frame)

    def files(self, paths: Sequence[Path], format: str, schema: Schema) -> DataFrame:
        """Files of others, read under a table's columns; bad rows raise."""
        from pyspark.sql.types import StructType

        reader = self.session.read.format(format)
        if format != "parquet":
            fields = tuple(Field(f.name, f.type, True) for f in schema)
            reader = reader.schema(StructType.fromJson(schema_to_json(fields)))
            reader = reader.option("mode", "FAILFAST")
        if format == "csv":
            reader = reader.option("header", "true").option("enforceSchema", "false")
        return reader.load([str(p) for p in paths])

    def _view(self, frame: DataFrame) -> str:
        name = f"slackwater_{uuid.uuid4().hex}"
        _distinguished(self._placed(frame), name).createOrReplaceTempView(name)
        _views().append(name)
        return quote(name)

    def _placed(self, frame: DataFrame) -> DataFrame:
        """Rows that a statement reads: in one piece, if all that it reads is."""
        return frame.coalesce(1) if _LOCAL.one_piece else frame

    @contextmanager
    def statement(self, suited: Iterable[Overlay] = (), one_piece: bool = False) -> Iterator[None]:
        """Views registered inside are gone afterwards; Spark's errors become ours. Meanwhile
        Spark has the settings that suit the statement. What is read is in one piece, if told so:
        then one task computes all, and nothing is exchanged or sent."""
        outer = _LOCAL.views, _LOCAL.kept, _LOCAL.one_piece
        _LOCAL.views, _LOCAL.kept, _LOCAL.one_piece = [], [], one_piece
        try:
            with ExitStack() as settings:
                for overlay in suited:
                    settings.enter_context(overlay.on(self.session))
                yield
        except SlackwaterError:
            raise
        except Exception as error:
            raise translate(error) from error
        finally:
            for name in _views():
                self.session.catalog.dropTempView(name)
            for let_go in reversed(_LOCAL.kept):  # those that read others first
                let_go()
            _LOCAL.views, _LOCAL.kept, _LOCAL.one_piece = outer

    def part(self, part: Part) -> None:
        """Rows that later statements read under a name, computed once: when first read, or now.

        Spark plans a persisted frame again wherever it is read, and a plan that holds the same
        parts many times over takes it minutes. So heavy ones are computed now: few rows come to
        the driver and go out again as a table, many stay where they are.
        """
        frame = self.session.sql(part.sql)
        if not part.heavy:
            frame = _distinguished(frame, part.name).persist()
            _LOCAL.kept.append(frame.unpersist)
        elif part.small:
            frame = self._placed(self.session.createDataFrame(frame.toArrow(), frame.schema))
        else:
            frame = frame.localCheckpoint()
            rows = frame._jdf.queryExecution().logical().rdd()
            _LOCAL.kept.append(lambda: rows.unpersist(False))
        frame.createOrReplaceTempView(part.name)
        _LOCAL.views.append(part.name)

    def frame(self, sql: str) -> DataFrame:
        """The (lazy) DataFrame of a statement."""
        return self.session.sql(sql)

    def table(self, sql: str) -> pa.Table:
        """The rows of a statement, on the driver."""
        return self.frame(sql).toArrow()

    def write(
        self,
        sql: str,
        directory: Path,
        few_files: bool = False,
        spread: Spread | None = None,
        most_files: int | None = None,
    ) -> None:
        """Run a statement and write its rows as Parquet files into a fresh directory: one for each
        piece in which they come, or no more than there would be without adaptive planning, which
        makes pieces that suit memory and are small for files; at most so many, if that is said; or
        spread by columns."""
        frame = self.frame(sql)
        limits = [most_files] if most_files is not None else []
        if few_files:
            limits.append(int(str(self.session.conf.get(PARTITIONS))))
        if spread is not None:
            frame = frame.repartitionById(spread.pieces, _piece(spread))
        elif limits:
            frame = frame.coalesce(min(limits))
        writer = frame.write.option("compression", "zstd")
        writer = writer.option("parquet.block.size", ROW_GROUP_BYTES)
        writer.mode("errorifexists").parquet(str(directory))
        if spread is not None:
            pieces.number(directory)

    def function_kinds(self) -> dict[str, frozenset[str]]:
        """The names of Spark's built-in functions by the group it puts them in."""
        registry = self.session._jsparkSession.sessionState().functionRegistry()
        listed = registry.listFunction()
        kinds: dict[str, set[str]] = {}
        for i in range(listed.size()):
            name = listed.apply(i)
            group = registry.lookupFunction(name).get().getGroup()
            kinds.setdefault(group, set()).add(name.funcName())
        return {group: frozenset(found) for group, found in kinds.items()}

    @property
    def process_id(self) -> int | None:
        """The JVM's process, where it is one of ours."""
        if self._session is None:
            return None
        gateway = getattr(self._session.sparkContext, "_gateway", None)
        process = getattr(gateway, "proc", None)
        return None if process is None else int(process.pid)

    def records(self) -> tuple[Any, Any]:
        """Spark's own records of what has run, up to date: jobs and stages, SQL executions."""
        state = self.session._jsparkSession
        state.sparkContext().listenerBus().waitUntilEmpty()
        return state.sparkContext().statusStore(), state.sharedState().statusStore()

    # -- Spark's analyzer, as types.TypeOracle

    def describe(self, text: str, args: Sequence[Expr]) -> tuple[DataType, bool, bool]:
        """Type, nullability and determinism of an expression over arguments of these types."""
        filled, fields = _with_columns(text, args)
        key = (filled, fields)
        if key not in self._described:
            self._described[key] = self._describe(filled, fields)
        found: tuple[DataType, bool, bool] = self._described[key]
        return found

    def _describe(self, text: str, fields: Schema) -> tuple[DataType, bool, bool]:
        with self.statement():
            frame = self.session.sql(f"SELECT {text} AS x FROM {self._empty(fields)}")
            field = schema_from_json(frame.schema.jsonValue())[0]
            plan = frame._jdf.queryExecution().analyzed()
            return field.type, field.nullable, bool(plan.deterministic())

    def describe_query(self, text: str, inputs: Sequence[Schema]) -> Schema:
        """Output schema of a query over inputs of these schemas."""
        with self.statement():
            filled = fill(text, [self._empty(fields) for fields in inputs])
            return schema_from_json(self.session.sql(filled).schema.jsonValue())

    def describe_generator(self, text: str, args: Sequence[Expr], aliases: Sequence[str]) -> Schema:
        """The columns that a generator makes."""
        filled, fields = _with_columns(text, args)
        named = f" AS ({', '.join(quote(a) for a in aliases)})" if aliases else ""
        with self.statement():
            frame = self.session.sql(f"SELECT {filled}{named} FROM {self._empty(fields)}")
            return schema_from_json(frame.schema.jsonValue())

    def _empty(self, fields: Schema) -> str:
        from pyspark.sql.types import StructType

        struct = StructType.fromJson(schema_to_json(fields or (_weight_field(),)))
        return self._view(self.session.createDataFrame([], struct))

    @property
    def is_available(self) -> bool:
        """Is there a session, or a Java to start one with?"""
        return self.is_running or (java_version() or 0) >= NEEDED

    def close(self) -> None:
        """Let go of a session that we did not get from the user."""
        with self._lock:
            if self._session is not None and self._given is None:
                _OWN.leave()
            self._session = None


class _OwnSession:
    """The session of this process, which all warehouses share that were given none.

    The last of them to leave stops it, unless somebody else had started it: then they have a
    session of their own in it, and its other users notice nothing.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._session: SparkSession | None = None
        self._users = 0
        self._started = False

    def join(self, builder: SparkSession.Builder) -> SparkSession:
        """The session, for one more."""
        from pyspark import SparkContext

        with self._lock:
            running = SparkContext._active_spark_context is not None
            if self._session is None or not running:  # none yet, or stopped by somebody
                self._users, self._started = 0, not running
                self._session = _beside() if running else builder.getOrCreate()
            self._users += 1
            return self._session

    def leave(self) -> None:
        """One fewer."""
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._session is not None:
                if self._started:
                    self._session.stop()
                self._session = None


def _beside() -> SparkSession:
    """A session in the running Spark, with settings and views of its own."""
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    return running.newSession()


_OWN = _OwnSession()


class _Views(threading.local):
    views: list[str]
    kept: list[Any]
    one_piece: bool

    def __init__(self) -> None:
        self.kept = []
        self.views = []
        self.one_piece = False


_LOCAL = _Views()


def _views() -> list[str]:
    return _LOCAL.views


def _piece(spread: Spread) -> Any:
    """The number of the piece that a row belongs to, by which Spark reads it again. It is computed
    here: rows that happen to be exchanged by these columns already may lie in fewer pieces, which
    adaptive planning has put together."""
    from pyspark.sql import functions

    hashed = functions.hash(*(quote(name) for name in spread.by))
    return functions.pmod(hashed, functions.lit(spread.pieces))


def _distinguished(frame: DataFrame, name: str) -> DataFrame:
    """The same rows by a plan that no other is equal to.

    Spark takes equal plans for one: who drops a view or lets go of a cached table drops what
    another statement, or the user, has cached of the same rows.
    """
    return frame.where(f"'{name}' = '{name}'")


def _weight_field() -> Field:
    from slackwater.types import BIGINT

    return Field(WEIGHT, BIGINT, True)


def _with_columns(text: str, args: Sequence[Expr]) -> tuple[str, Schema]:
    """The text over columns a0, a1, … for its arguments; constants stay constants."""
    values, fields = [], []
    for i, arg in enumerate(args):
        if any(isinstance(n, Column | OuterColumn) for n in arg.walk()) or not _renders(arg):
            values.append(f"a{i}")
            fields.append(Field(f"a{i}", arg.type, arg.nullable))
        else:
            values.append(render(arg, []))
    return fill(text, values), tuple(fields)


def _renders(arg: Expr) -> bool:
    from slackwater.algebra.expr import AggCall, WindowCall

    return not any(isinstance(n, AggCall | WindowCall) for n in arg.walk())
