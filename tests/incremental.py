"""Was a refresh incremental? Each operator that was not computed from its changes is measured.

*Incremental* means: no recompute above a changed input of more than 1,000 rows, and no set of
changed keys that covers more than half of such an input, at a change of 1%.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from slackwater.algebra.explain import describe
from slackwater.algebra.expr import Literal, columns
from slackwater.algebra.relation import (
    Aggregate,
    Distinct,
    Join,
    Project,
    Relation,
    SetOp,
    Union,
    Window,
)
from slackwater.sql import build
from slackwater.tvr.delta import Deltas, Note
from slackwater.tvr.laws.keyed import affected, shared_partition
from slackwater.tvr.restrict import Keys, distinct_keys, equi_keys, restrict
from slackwater.types import BIGINT
from slackwater.work.upkeep import Following, Upkeep, Upkept

FEW_ROWS = 1_000
MOST_KEYS = 0.5
KEYED = ("recompute_affected_keys", "partners_of_changed_keys", "partners_by_count")
"""Laws that read what has the keys of a change."""
COVERED = "KEYS_COVER_MOST_ROWS"
"""The reason where the changed keys cover more than half of an input."""


@dataclass(frozen=True)
class Reading:
    """What an operator read of one of its inputs besides the change."""

    operator: str
    law: str
    reason: str
    rows: int
    read: int

    @property
    def is_incremental(self) -> bool:
        """Does it stay within the definition?"""
        if self.rows <= FEW_ROWS:
            return True
        return self.reason == COVERED and self.read <= MOST_KEYS * self.rows

    def __str__(self) -> str:
        return f"{self.law} [{self.reason}] {self.read:,} of {self.rows:,} rows: {self.operator}"


class MeasuredUpkeep(Upkeep):
    """Upkeep that also counts what its operators read, by view."""

    readings: ClassVar[dict[str, list[Reading]]] = {}

    def incremental(self, following: Following) -> Upkept:
        done = super().incremental(following)
        self.readings[self.view.name] = self._counted(following.deltas)
        return done

    def _counted(self, deltas: Deltas) -> list[Reading]:
        asked = [(node, note, *pair) for node, note, pair in _inputs(deltas)]
        counts = self._count([r for _, _, rows, read in asked for r in (rows, read)])
        sizes = iter(counts)
        return [
            Reading(describe(node), note.law, note.reason or COVERED, next(sizes), next(sizes))
            for node, note, _, _ in asked
        ]

    def _count(self, relations: Sequence[Relation]) -> list[int]:
        """The sizes of some relations, asked in one statement."""
        if not relations:
            return []
        counts = [_numbered(i, relation) for i, relation in enumerate(relations)]
        question = counts[0] if len(counts) == 1 else Union(tuple(counts))
        answer = self.world.house.runner.query(question, self.interval.sources([question]))
        found = dict(zip(*(c.to_pylist() for c in answer.columns), strict=True))
        return [found[i] for i in range(len(relations))]


def _numbered(i: int, relation: Relation) -> Relation:
    count = Aggregate(relation, (), (build.count_star(),), ("n",))
    return Project(count, (Literal(BIGINT, False, i), *columns(count.schema)), ("i", "n"))


def _inputs(deltas: Deltas) -> Iterator[tuple[Relation, Note, tuple[Relation, Relation]]]:
    """Of each operator that read more than changes: an input as it is now, and what it read."""
    for node, note in deltas.notes.items():
        if note.law == "recompute" or note.reason:
            for rows in map(deltas.rows, node.inputs):
                yield node, note, (rows, rows)
        elif note.law in KEYED:
            keys = _keys(node)
            changed = node.inputs if note.law == "recompute_affected_keys" else node.inputs[1:]
            wanted = _affected(deltas, node, keys, len(changed))
            for child, own in zip(node.inputs, keys, strict=True):
                rows = deltas.rows(child)
                yield node, note, (rows, restrict(rows, own, wanted))


def _affected(deltas: Deltas, node: Relation, keys: Sequence[Keys], inputs: int) -> Relation:
    if inputs == len(node.inputs):
        return affected(deltas, node.inputs, keys)
    return distinct_keys([deltas.sure(node.inputs[1])], [keys[1]])


def _keys(node: Relation) -> list[Keys]:
    """The keys over each input to which an operator is local."""
    match node:
        case Aggregate():
            return [node.keys]
        case Window():
            return [shared_partition(node)]
        case Join():
            pairs = equi_keys(node)
            return [tuple(a for a, _ in pairs), tuple(b for _, b in pairs)]
        case Distinct() | SetOp():
            return [columns(child.schema) for child in node.inputs]
    raise AssertionError(f"{type(node).__name__} is not local to a key")
