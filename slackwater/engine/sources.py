"""Where the rows of what a step scans are, and what stands for them in FROM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from slackwater.algebra.relation import Relation
from slackwater.catalog.model import Segment
from slackwater.engine.inputs import content, weighted, with_ones
from slackwater.tvr.time import CHANGE
from slackwater.types import Schema

if TYPE_CHECKING:
    from slackwater.engine.local import LocalEngine
    from slackwater.engine.spark import SparkEngine


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
            case Stored(segments, schema):
                inputs[scan.source] = content(segments, schema, engine.dialect, engine.read)
            case Log(segments, schema):
                inputs[scan.source] = weighted(segments, schema, engine.dialect, engine.read)
            case Made(target, schema, None):
                inputs[scan.source] = made[target]
            case Made(target, schema, Log(segments)):
                before = weighted(segments, schema, engine.dialect, engine.read)
                columns = ", ".join(engine.dialect.quote(f.name) for f in scan.schema)
                both = f"SELECT {columns} FROM {before} UNION ALL SELECT {columns} FROM {{}}"
                inputs[scan.source] = f"({both.format(made[target])})"
            case Files((), schema):
                inputs[scan.source] = content((), schema, engine.dialect, engine.read)
            case Files(paths, schema, _, weights):
                read = engine.read_paths(paths, schema, weights=False)
                inputs[scan.source] = with_ones(read) if weights else read
            case Given(data):
                inputs[scan.source] = give(data)
    return inputs
