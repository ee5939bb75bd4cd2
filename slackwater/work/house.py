"""What every piece of work needs: the catalog, the files, the engines, the settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slackwater.catalog.leases import Lease
from slackwater.catalog.store import Catalog
from slackwater.engine.local import LocalEngine
from slackwater.engine.runner import Runner
from slackwater.engine.spark import SparkEngine
from slackwater.engine.storage import Storage
from slackwater.errors import UserError
from slackwater.planner.placement import LOAD_BYTES, PLACEMENTS, QUERY_BYTES


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

    def __post_init__(self) -> None:
        if self.placement not in PLACEMENTS:
            raise UserError(
                f"placement = '{self.placement}' is not known.",
                code="BAD_OPTION",
                hint=f"Choose one of {', '.join(PLACEMENTS)}.",
            )


@dataclass
class House:
    """An open warehouse, without its manners."""

    catalog: Catalog
    storage: Storage
    runner: Runner
    settings: Settings

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
            storage, local, spark, settings.placement, settings.load_bytes, settings.query_bytes
        )
        return cls(Catalog.open(url), storage, runner, settings)

    def lease(self, *ids: str) -> Lease:
        """The right to change some relations."""
        return self.catalog.lease(
            ids, self.settings.lease_wait_seconds, self.settings.lease_seconds
        )

    def close(self) -> None:
        """Let go of everything."""
        self.runner.local.close()
        self.runner.spark.close()
        self.catalog.close()
