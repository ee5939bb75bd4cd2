"""Where the rows of what a step scans are, and what stands for them in FROM."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from slackwater.algebra.expr import remap, used_columns
from slackwater.algebra.relation import Project, Relation, Scan
from slackwater.catalog.model import Segment
from slackwater.engine.dialects import Dialect
from slackwater.engine.inputs import Read, content, weighted, with_ones
from slackwater.planner.steps import Spread
from slackwater.tvr.time import CHANGE
from slackwater.types import DATE, Field, Schema

if TYPE_CHECKING:
    from slackwater.engine.local import LocalEngine
    from slackwater.engine.spark import SparkEngine


Within = Mapping[str, tuple[int, int]]
"""By column, the whole numbers or days outside of which a row is of no use."""


@dataclass(frozen=True)
class Stored:
    """A table or view as the sum of segments. No two of its rows share the values of its `key`,
    if it has one, and none of them is NULL."""

    segments: tuple[Segment, ...]
    schema: Schema
    within: Within = field(default_factory=dict)
    key: tuple[str, ...] = ()
    spread: Spread | None = None  # as Spark wrote it

    @property
    def bytes(self) -> int:
        """How much there is to read."""
        return sum(s.bytes for s in self.segments)


@dataclass(frozen=True)
class Log:
    """Segments as they are: rows with weights, not added up. The schema is without the weight."""

    segments: tuple[Segment, ...]
    schema: Schema
    within: Within = field(default_factory=dict)
    spread: Spread | None = None  # as Spark wrote it

    @property
    def bytes(self) -> int:
        """How much there is to read."""
        return sum(s.bytes for s in self.segments)


@dataclass(frozen=True)
class Made:
    """What an earlier output of the same step adds to a relation, and, if given, what was there
    before."""

    target: str
    schema: Schema
    before: Log | None = None

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The files to read."""
        return self.before.segments if self.before else ()

    @property
    def bytes(self) -> int:
        """How much there is to read from files."""
        return self.before.bytes if self.before else 0


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

    @property
    def is_local(self) -> bool:
        """Can the local engine read it?"""
        return isinstance(self.data, pa.Table)


Source = Stored | Log | Made | Files | Given
"""Where the rows of a scanned relation are."""

Sources = Mapping[str, Source]


def changed_bytes(sources: Sources) -> int:
    """The size of the changes among some sources."""
    return sum(source.bytes for name, source in sources.items() if name.endswith(CHANGE))


def from_texts(
    engine: LocalEngine | SparkEngine,
    relation: Relation,
    sources: Sources,
    give: Callable[[Any], str],
    made: Mapping[str, str],
) -> dict[str, str]:
    """What stands in FROM for everything that a relation scans; `made` names the outputs that
    the step has made so far."""
    inputs = {}
    for scan in relation.scans():
        match sources[scan.source]:
            case Stored(segments, schema, within, key, spread):
                wanted = _wanted(relation, scan.source, schema)
                read = _reader(engine, spread)
                text = content(segments, schema, engine.dialect, read, wanted, key)
                inputs[scan.source] = _inside(text, segments, wanted, within, engine.dialect)
            case Log() as log:
                inputs[scan.source] = _log(log, engine)
            case Made(target, schema, None):
                inputs[scan.source] = made[target]
            case Made(target, schema, Log() as log):
                columns = ", ".join(engine.dialect.quote(f.name) for f in scan.schema)
                before = f"SELECT {columns} FROM {_log(log, engine)}"
                both = f"{before} UNION ALL SELECT {columns} FROM {{}}"
                inputs[scan.source] = f"({both.format(made[target])})"
            case Files((), schema):
                inputs[scan.source] = content((), schema, engine.dialect, engine.read)
            case Files(paths, schema, _, weights):
                files = engine.read_paths(paths, schema, weights=False)
                inputs[scan.source] = with_ones(files) if weights else files
            case Given(data):
                inputs[scan.source] = give(data)
    return inputs


def thin(relation: Relation, sources: Sources) -> Relation:
    """The same, scanning those columns only of what is stored that are read."""
    stored = frozenset(name for name, source in sources.items() if isinstance(source, Stored))
    return _thinned(relation, stored)


@lru_cache(500)
def _thinned(relation: Relation, stored: frozenset[str]) -> Relation:
    """The same at every refresh."""
    return relation.rewrite(lambda node: _thin(node, stored))  # type: ignore[no-any-return]


def _thin(node: Relation, stored: Collection[str]) -> Relation:
    if not isinstance(node, Project) or not isinstance(node.input, Scan):
        return node
    scan = node.input
    kept = sorted(used_columns(*node.exprs)) or [0]
    if scan.source not in stored or len(kept) == scan.width:
        return node
    place = {old: new for new, old in enumerate(kept)}.__getitem__
    fewer = replace(scan, fields=tuple(scan.fields[i] for i in kept))
    return Project(fewer, tuple(remap(e, place) for e in node.exprs), node.names)


def _wanted(relation: Relation, source: str, schema: Schema) -> Schema:
    """The columns of a source that some scan of it gives."""
    names = {f.name for scan in relation.scans() if scan.source == source for f in scan.fields}
    return tuple(f for f in schema if f.name in names)


def _reader(engine: LocalEngine | SparkEngine, spread: Spread | None) -> Read:
    """How an engine reads segments, told by what their rows are spread."""
    return engine.read if spread is None else partial(engine.read, spread=spread)


def _log(log: Log, engine: LocalEngine | SparkEngine) -> str:
    text = weighted(log.segments, log.schema, engine.dialect, _reader(engine, log.spread))
    return _inside(text, log.segments, log.schema, log.within, engine.dialect)


def _inside(
    text: str, segments: Sequence[Segment], schema: Schema, within: Within, dialect: Dialect
) -> str:
    """FROM text without rows that are of no use, so that the engine skips parts of files. Where
    NULLs are kept, it reads all: so they are looked for only where a segment may have some."""
    conditions = [
        _condition(f, *within[f.name], any(f.name not in s.stats for s in segments), dialect)
        for f in schema
        if f.name in within
    ]
    if not conditions:
        return text
    return f"(SELECT i.* FROM {text} AS i WHERE {' AND '.join(conditions)})"


def _condition(field: Field, low: int, high: int, nulls: bool, dialect: Dialect) -> str:
    name = f"i.{dialect.quote(field.name)}"
    ends = [str(low), str(high)]
    if field.type == DATE:
        ends = [f"DATE '{date(1970, 1, 1) + timedelta(end)}'" for end in (low, high)]
    condition = f"{name} BETWEEN {ends[0]} AND {ends[1]}"
    return f"({condition} OR {name} IS NULL)" if field.nullable and nulls else condition
