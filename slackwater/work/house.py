"""What every piece of work needs: the catalog, the files, the engines, the settings."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from slackwater.catalog.ids import timestamp
from slackwater.catalog.leases import Lease
from slackwater.catalog.model import Segment
from slackwater.catalog.starting import Start
from slackwater.catalog.store import Catalog
from slackwater.engine.garbage import collect_garbage
from slackwater.engine.local import LocalEngine
from slackwater.engine.meter import Meter
from slackwater.engine.runner import Runner
from slackwater.engine.spark import SparkEngine
from slackwater.engine.storage import Storage
from slackwater.errors import UserError
from slackwater.planner.choice import OPTIONAL
from slackwater.planner.placement import LOAD_BYTES, PLACEMENTS, QUERY_BYTES
from slackwater.sql.bind import Bound
from slackwater.sql.options import REFRESHES
from slackwater.tvr import preaggregate
from slackwater.work.contents import Contents
from slackwater.work.experience import Experience
from slackwater.work.keeper import Keeper
from slackwater.work.profiling import Profiling
from slackwater.work.recent import Recent

if TYPE_CHECKING:
    from slackwater.work.situation import Planned

MOST_PLANS = 200
"""The ways to refresh a view are remembered for so many situations."""
MOST_COLUMNS = 500
FEW_ROWS = 5_000
"""Columns of so many segments are remembered, if they are that short."""
COLLECT_SECONDS = 10.0
"""From one collection of garbage to the next, at least."""


class Clock(Protocol):
    """What time it is: the machine's, or a simulated one."""

    def now(self) -> datetime:
        """This moment, in UTC."""


@dataclass(frozen=True)
class Settings:
    """How a warehouse is opened."""

    placement: str = "auto"
    catalog_url: str | None = None
    spark: Any = None
    spark_master: str = "local[*]"
    spark_config: Mapping[str, str] = field(default_factory=dict)
    lease_wait_seconds: float = 30.0
    lease_seconds: float = 30.0
    load_bytes: int = LOAD_BYTES
    query_bytes: int = QUERY_BYTES
    local_memory: str = ""
    at_once: int = max(1, (os.cpu_count() or 2) // 2)  # views that are refreshed side by side
    compact: bool = True  # merge small segments beside the work
    preaggregation: str = "auto"  # are changes summed up before they are joined?
    refresh: str = "auto"  # of views that do not say themselves
    methods: Collection[str] = OPTIONAL  # beside plain incremental refreshes and full ones
    clock: Clock | None = None  # the machine's, unless another is given

    def __post_init__(self) -> None:
        _require("placement", self.placement, PLACEMENTS)
        _require("preaggregation", self.preaggregation, preaggregate.MODES)
        _require("refresh", self.refresh, REFRESHES)
        for method in self.methods:
            _require("methods", method, OPTIONAL)
        if self.at_once < 1:
            raise UserError(
                f"at_once = {self.at_once} is too few.", code="BAD_OPTION", hint="Use 1 or more."
            )


def _require(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UserError(
            f"{name} = '{value}' is not known.",
            code="BAD_OPTION",
            hint=f"Choose one of {', '.join(known)}.",
        )


@dataclass
class House:
    """An open warehouse, without its manners."""

    catalog: Catalog
    storage: Storage
    runner: Runner
    settings: Settings
    matches: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict)
    """By state and table: the table's rows, and how many each of them gives when it is joined."""
    bound: Bound = field(default_factory=Bound)
    experience: Experience = field(init=False)
    profiling: Profiling = field(init=False)
    contents: Contents = field(init=False)
    clock: Clock | None = None
    keeper: Keeper = field(default_factory=Keeper)
    """Of the states that views keep under a budget."""
    plans: Recent[Planned] = field(default_factory=lambda: Recent(MOST_PLANS))
    """The ways to refresh views, by situation."""
    _columns: Recent[pa.Table] = field(default_factory=lambda: Recent(MOST_COLUMNS))
    _collected: float = -inf

    def __post_init__(self) -> None:
        self.clock = self.settings.clock
        self.experience = Experience(self.catalog)
        self.profiling = Profiling(self.catalog, self.runner.local)
        self.contents = Contents(self.runner)

    @classmethod
    def open(cls, root: Path, settings: Settings) -> House:
        """The folder's catalog, files and engines."""
        storage = Storage(root)
        url = settings.catalog_url or f"sqlite:///{root / 'catalog.db'}"
        local = LocalEngine(root, settings.local_memory)
        spark = SparkEngine(
            root, settings.spark, settings.spark_master, dict(settings.spark_config)
        )
        runner = Runner(
            storage,
            local,
            spark,
            Meter(lambda: spark.process_id),
            settings.placement,
            settings.load_bytes,
            settings.query_bytes,
        )
        return cls(Catalog.open(url), storage, runner, settings)

    def now(self) -> datetime:
        """What is written down as the moment of a change or a refresh, and what `current_date` is
        taken from. Leases and pins go by the catalog's own clock."""
        return datetime.now(UTC) if self.clock is None else self.clock.now()

    def timestamp(self) -> str:
        """The same, as the catalog writes it."""
        return timestamp(self.now().timestamp())

    @cached_property
    def pool(self) -> ThreadPoolExecutor:
        """The threads for what is done side by side."""
        return ThreadPoolExecutor(self.settings.at_once, "slackwater")

    def lease(self, *ids: str) -> Lease:
        """The right to change some relations."""
        return self.catalog.lease(
            ids, self.settings.lease_wait_seconds, self.settings.lease_seconds
        )

    def start(self, kind: str, *ids: str) -> Start:
        """The same with a run that makes use of it, and what is there by then pinned."""
        wait, ttl = self.settings.lease_wait_seconds, self.settings.lease_seconds
        return self.catalog.start(kind, ids, self.timestamp, wait, ttl)

    def aside(self) -> House:
        """The same to try things in: what is decided there is not remembered here."""
        found = copy(self)
        found.keeper = replace(self.keeper, decided=dict(self.keeper.decided))
        found.plans = Recent(MOST_PLANS)
        return found

    def columns(self, segment: Segment, names: Sequence[str]) -> pa.Table:
        """Some columns of a small segment. Views that read the same change ask for the same."""

        def read() -> pa.Table:
            return self.storage.columns(segment, names)

        if segment.rows > FEW_ROWS:
            return read()
        return self._columns.of((segment.path, tuple(names)), read)

    def collect_garbage(self) -> None:
        """Delete what nobody needs, unless that was just done: it waits for a grace period
        anyway."""
        if time.monotonic() - self._collected > COLLECT_SECONDS:
            self._collected = time.monotonic()
            collect_garbage(self.catalog, self.storage)

    def close(self) -> None:
        """Let go of everything."""
        self.pool.shutdown()
        self.runner.local.close()
        self.runner.spark.close()
        self.catalog.close()
