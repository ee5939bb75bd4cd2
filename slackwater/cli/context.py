"""What every command shares: the global options, and how the warehouse is opened."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer
from rich.console import Console

if TYPE_CHECKING:
    from slackwater import Warehouse


QUIET = (Path(__file__).parent / "log4j2.properties").as_uri()
"""Spark's own log would drown ours; only its errors are shown, unless --debug is given."""


@dataclass(frozen=True)
class Session:
    """The global options of one call of the command line."""

    warehouse: str
    placement: str = "auto"
    catalog_url: str | None = None
    spark_master: str = "local[*]"
    debug: bool = False
    out: Console = field(default_factory=lambda: Console(highlight=False, soft_wrap=True))
    err: Console = field(default_factory=lambda: Console(stderr=True, highlight=False))

    def open(self, create: bool = False, **changes: Any) -> Warehouse:
        """Open the warehouse; only `init` and `demo` create one."""
        import slackwater

        if not self.debug:
            os.environ.setdefault("SPARK_SUBMIT_OPTS", f"-Dlog4j2.configurationFile={QUIET}")
        settings: dict[str, Any] = {
            "placement": self.placement,
            "catalog_url": self.catalog_url,
            "spark_master": self.spark_master,
            "create": create,
        }
        return slackwater.connect(self.warehouse, **(settings | changes))


def session(ctx: typer.Context) -> Session:
    """The session that the global options made."""
    return cast(Session, ctx.obj)
