"""Slackwater keeps SQL views over changing tables fresh on Apache Spark, exactly and thriftily."""

from typing import TYPE_CHECKING, Any

from slackwater.errors import (
    InternalError,
    SlackwaterError,
    SqlError,
    StateError,
    UserError,
)

if TYPE_CHECKING:
    from slackwater.warehouse import Warehouse, connect

__version__ = "0.1.0"

__all__ = [
    "InternalError",
    "SlackwaterError",
    "SqlError",
    "StateError",
    "UserError",
    "Warehouse",
    "__version__",
    "connect",
]


def __getattr__(name: str) -> Any:
    """The engines load when they are first asked for, so that `slackwater --help` is quick."""
    if name in ("Warehouse", "connect"):
        from slackwater import warehouse

        return getattr(warehouse, name)
    raise AttributeError(f"module 'slackwater' has no attribute {name!r}")
