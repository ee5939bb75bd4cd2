"""Slackwater keeps SQL views over changing tables fresh on Apache Spark, exactly and thriftily."""

from slackwater.errors import (
    InternalError,
    SlackwaterError,
    SqlError,
    StateError,
    UserError,
)
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
