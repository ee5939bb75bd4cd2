"""What the catalog knows: relations, segments, events; and a change of it, as data.

A change is a list of requirements and a list of updates. `Catalog.commit` checks the first and
does the second in one transaction, so that what a writer believed when it began is still true
when its work becomes visible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from slackwater.algebra.expr import Literal
from slackwater.types import Schema


@dataclass(frozen=True, slots=True)
class Segment:
    """One immutable Parquet file that holds rows of a relation, weights included.

    `path` is relative to the warehouse folder, or absolute for a file that is not ours.
    `version` is the relation's version that added the segment, and `since` the first of those whose
    changes were merged into it; the commit sets both. `missing` are the columns that its table was
    given after the file was written, and what they hold in its rows; the snapshot sets it.
    """

    path: str
    rows: int
    bytes: int
    min_weight: int
    max_weight: int
    version: int = 0
    stats: Mapping[str, Any] = field(default_factory=dict, hash=False)
    width: int = (
        0  # columns of the file, the weight not counted; 0: those that the table began with
    )
    missing: Mapping[str, Literal] = field(default_factory=dict, compare=False, repr=False)
    since: int = 0

    def straddles(self, version: int) -> bool:
        """Does it hold changes up to that version together with later ones?"""
        return self.since <= version < self.version


@dataclass(frozen=True, slots=True)
class Key:
    """Columns whose values no two rows of a table share. It is promised, not checked."""

    name: str
    columns: tuple[str, ...]
    primary: bool = False


@dataclass(frozen=True, slots=True)
class Reference:
    """Columns whose values, where none is NULL, are a key of a row of another table, whose id this
    is. It is promised, not checked."""

    name: str
    columns: tuple[str, ...]
    table: str
    theirs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table: `managed` (we keep its segments) or external (`parquet`).

    From version `log_from` on, the segments of each version are the change that it made.
    Columns are added at the end, each with an entry in `fills`. `arrived_rows` counts all rows that
    were ever written, as they came: a merge makes fewer of them, and a deletion is a row, too.
    """

    id: str
    name: str
    schema: Schema
    version: int = 0
    source: str = "managed"
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    defaults: Mapping[str, str] = field(default_factory=dict, hash=False)  # column -> SQL text
    log_from: int = 0
    fills: Mapping[str, Literal] = field(default_factory=dict, hash=False)
    """What an added column holds in rows that were there before it."""
    keys: tuple[Key, ...] = ()
    references: tuple[Reference, ...] = ()
    arrived_rows: int = 0

    @property
    def constraints(self) -> list[str]:
        """The names of its keys and references."""
        return [k.name for k in self.keys] + [r.name for r in self.references]

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of a key that are never NULL: the primary one, or another; none if no key
        is known."""
        nullable = {f.name for f in self.schema if f.nullable}
        whole = [k for k in self.keys if nullable.isdisjoint(k.columns)]
        return min(whole, key=lambda k: not k.primary).columns if whole else ()

    @property
    def first_width(self) -> int:
        """How many columns the table began with."""
        return len(self.schema) - len(self.fills)

    def missing(self, width: int) -> Mapping[str, Literal]:
        """What a segment of that width lacks of the added columns."""
        return {f.name: self.fills[f.name] for f in self.schema[max(width, self.first_width) :]}


@dataclass(frozen=True, slots=True)
class View:
    """A materialized view. `as_of` says at which version of each source it was computed.

    `widths` says how many columns each table had when the view was defined: it reads no others,
    so that its meaning stays when columns are added. `form` is the query as algebra where it is
    computed otherwise than as its SQL says: over parts. A `part` is such a piece of one view or
    several, brought along at a pace of its own; it has no SQL, and nobody sees it.
    """

    id: str
    name: str
    schema: Schema
    version: int = 0
    sql: str = ""
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    depends: tuple[str, ...] = ()
    as_of: Mapping[str, Any] = field(default_factory=dict, hash=False)
    refreshed_at: str | None = None
    log_from: int = 0
    widths: Mapping[str, int] = field(default_factory=dict, hash=False)
    form: str = ""
    part: bool = False


@dataclass(frozen=True, slots=True)
class State:
    """What is kept of one operator of a view between its refreshes.

    It changes in the view's commits only, and goes with the view.
    """

    id: str
    name: str
    schema: Schema
    version: int = 0
    view: str = ""  # the view's id
    kind: str = "rows"  # how its segments add up: "rows", "sums", "buffer"
    signature: str = ""  # tells the operator and all below it
    log_from: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, for people and for the planner to read."""

    kind: str
    relation: str | None
    at: str
    body: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a step of a run really cost."""

    step: str
    engine: str
    seconds: float
    cpu_seconds: float
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Run:
    """An attempt to change something; it writes only into its own fresh directory."""

    id: str
    token: str
    directory: str  # relative to the warehouse folder
    kind: str

    @property
    def requirement(self) -> RunIs:
        """What a commit of this run requires of the run itself."""
        return RunIs(self.id, self.token)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as the catalog remembers it: `open`, `committed`, `aborted` or `revoked`."""

    id: str
    kind: str
    state: str
    directory: str
    host: str
    pid: int
    begun_at: str
    ended_at: str | None
    commit: int | None
    error: str | None


# What a commit may require.


@dataclass(frozen=True, slots=True)
class VersionIs:
    """The relation still has this version."""

    id: str
    version: int


@dataclass(frozen=True, slots=True)
class LeaseIs:
    """The lease is still held under this fencing token."""

    name: str
    token: int


@dataclass(frozen=True, slots=True)
class RunIs:
    """The run is open and its token was not revoked."""

    run_id: str
    token: str


@dataclass(frozen=True, slots=True)
class NameIsFree:
    """No table or view has this name."""

    name: str


@dataclass(frozen=True, slots=True)
class Exists:
    """The relation was not dropped."""

    id: str


@dataclass(frozen=True, slots=True)
class NotNeeded:
    """No live view depends on the relation."""

    id: str


Requirement = VersionIs | LeaseIs | RunIs | NameIsFree | Exists | NotNeeded

# What a commit may change.


@dataclass(frozen=True, slots=True)
class CreateTable:
    """A new table; its name must be free."""

    table: Table


@dataclass(frozen=True, slots=True)
class CreateView:
    """A new view; its name must be free and what it depends on must exist."""

    view: View


@dataclass(frozen=True, slots=True)
class CreateState:
    """A new state of a view that exists."""

    state: State


@dataclass(frozen=True, slots=True)
class ReplaceView:
    """A new definition, `as_of` and `refreshed_at` under the id of an existing view.

    The version goes on; segments stay unless the commit replaces them, too. States go.
    """

    view: View


@dataclass(frozen=True, slots=True)
class SetForm:
    """How a view is computed from now on, and from what. Its rows and states stay."""

    id: str
    form: str
    depends: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AlterRelation:
    """The options of a relation as they are from now on (all of them)."""

    id: str
    options: Mapping[str, str] = field(hash=False)


@dataclass(frozen=True, slots=True)
class ChangeOptions:
    """Some options of a relation from now on; None takes one back. The others stay."""

    id: str
    changes: Mapping[str, str | None] = field(hash=False)


@dataclass(frozen=True, slots=True)
class SetSettings:
    """Some settings of the warehouse from now on; None takes one back. The others stay."""

    changes: Mapping[str, str | None] = field(hash=False)


@dataclass(frozen=True, slots=True)
class AddColumns:
    """More columns at the end of a table. The version stays: no row comes or goes."""

    id: str
    columns: Schema
    fills: Mapping[str, Literal] = field(hash=False)  # one for each
    defaults: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class SetPromises:
    """The keys and references of a table, from now on."""

    id: str
    keys: tuple[Key, ...]
    references: tuple[Reference, ...]


@dataclass(frozen=True, slots=True)
class Drop:
    """The relation, its segments and its states are gone from this commit on."""

    id: str


@dataclass(frozen=True, slots=True)
class AddSegments:
    """New rows. The relation's version grows by one, once per commit."""

    id: str
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class ReplaceSegments:
    """The relation consists of exactly these segments. The version grows as for adding.

    Segments whose path was there before stay as they were. The log of changes begins anew.
    """

    id: str
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class CompactSegments:
    """Segments written anew as others that add up to the same. The version stays.

    Whoever has read some of the versions among them, but not all, can no longer tell what is new.
    """

    id: str
    removed: tuple[Segment, ...]
    added: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class SetAsOf:
    """A view's sources (id -> version or files) and the time of its refresh."""

    id: str
    as_of: Mapping[str, Any] = field(hash=False)
    at: str


@dataclass(frozen=True, slots=True)
class FinishRun:
    """The run has committed; it cannot commit again."""

    run_id: str
    measurements: tuple[Measurement, ...] = ()


@dataclass(frozen=True, slots=True)
class WriteEvent:
    """An event that becomes visible with the commit."""

    event: Event


Update = (
    CreateTable
    | CreateView
    | CreateState
    | ReplaceView
    | SetForm
    | AlterRelation
    | ChangeOptions
    | SetSettings
    | AddColumns
    | SetPromises
    | Drop
    | AddSegments
    | ReplaceSegments
    | CompactSegments
    | SetAsOf
    | FinishRun
    | WriteEvent
)
