"""Where a step runs: on Spark, or on the driver's own engine.

For now by size: a Spark job costs 0.1 to 0.5 seconds before it reads a row, so what is small and
portable runs in process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from slackwater.algebra.explain import describe
from slackwater.algebra.expr import is_portable
from slackwater.algebra.relation import Generate, Opaque, Relation
from slackwater.errors import UserError
from slackwater.types import Atomic, DataType, Decimal

PLACEMENTS = ("auto", "spark", "local")
LOAD_BYTES = 2_000_000
"""Loads and recomputes with a larger input run on Spark."""
QUERY_BYTES = 256_000_000
"""Queries of users with a larger input run on Spark."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The engine for a step, and why."""

    engine: str  # "spark" or "local"
    reason: str


def choose(relations: Sequence[Relation], input_bytes: int, limit: int, setting: str) -> Placement:
    """The engine that suits relations whose stored inputs have this size."""
    if setting == "spark":
        return Placement("spark", "placement = 'spark'")
    blocker = next(filter(None, map(not_local, relations)), None)
    if blocker is not None:
        if setting == "local":
            raise UserError(
                f"This cannot run on the local engine: {blocker}.",
                code="NOT_PORTABLE",
                hint="Use placement = 'auto' or 'spark'.",
            )
        return Placement("spark", blocker)
    if setting == "local":
        return Placement("local", "placement = 'local'")
    if input_bytes > limit:
        return Placement("spark", f"input of {input_bytes:,} bytes is over {limit:,}")
    return Placement("local", f"input of {input_bytes:,} bytes is small")


@lru_cache(maxsize=250)
def not_local(relation: Relation) -> str | None:
    """Why the relation needs Spark; None if it does not."""
    for node in relation.walk():
        if isinstance(node, Opaque):
            return f"Opaque ({node.reason})"
        if isinstance(node, Generate):
            return describe(node)
        for field in node.schema:
            if not is_local_type(field.type):
                return f"type {field.type.sql} of column '{field.name}'"
        for expr in node.expressions:
            if not is_portable(expr):
                return f"only Spark computes what is in {describe(node)}"
    return None


def is_local_type(t: DataType) -> bool:
    """Types that the local engine computes with exactly as Spark does."""
    if isinstance(t, Decimal):
        return True
    return isinstance(t, Atomic) and t.name in _LOCAL


_LOCAL = frozenset(
    """boolean byte short integer long float double string binary date timestamp timestamp_ntz
    void""".split()
)
