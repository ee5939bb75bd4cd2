"""A run as data: which relations are computed, and where each goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slackwater.algebra.relation import Relation


@dataclass(frozen=True, slots=True)
class Spread:
    """Rows in pieces, by the values of some columns: on Spark, those that are joined by these
    columns meet without an exchange."""

    by: tuple[str, ...]
    pieces: int


@dataclass(frozen=True, slots=True)
class Output:
    """Rows with weights that go to a stored relation."""

    target: str  # catalog id of the table, view or state
    relation: Relation  # its last column is the weight
    spread: Spread | None = None  # how Spark lays it out
    most_files: int | None = None  # that Spark writes


@dataclass(frozen=True, slots=True)
class WriteSegments:
    """Compute rows with weights and write them; later outputs may read what earlier ones make."""

    name: str  # what the step is called in displays
    outputs: tuple[Output, ...]
    load: bool = True  # a load or recompute, for which the threshold is low
    engine: str = ""  # where it runs, if that was decided


@dataclass(frozen=True, slots=True)
class StepReport:
    """What a step did and cost."""

    name: str
    engine: str
    seconds: float
    cpu_seconds: float
    rows: int
    bytes: int
    state: str = "end"
    reason: str = ""
    bytes_read: int = 0  # by this process and its Spark; 0 where the system does not tell

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "name": self.name,
            "engine": self.engine,
            "seconds": round(self.seconds, 6),
            "cpu_seconds": round(self.cpu_seconds, 6),
            "rows": self.rows,
            "bytes": self.bytes,
            "bytes_read": self.bytes_read,
            "reason": self.reason,
        }
