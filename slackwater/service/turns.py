"""In which order results are served that are due at one moment, and which of them in one call.

Views of which one reads the other, or that read a view or part in common, are a *family*: they are
brought to one version, in one call and one commit. Families have tables in common at most, so each
may have a call of its own, that one first which has least time left. A call takes time, too: so
families are served together where all of them are expected to be there in time for the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from math import inf
from typing import Protocol, TypeVar

from slackwater.catalog.model import View
from slackwater.catalog.snapshot import Snapshot
from slackwater.service.desk import Desk
from slackwater.service.goals import GOAL, Due
from slackwater.work.standing import Standing

HASTE = 1.25
"""So many times what families took last must be left to the first of them."""


class OfView(Protocol):
    """Something that is about one view."""

    @property
    def view(self) -> View:
        """Which."""


T = TypeVar("T", bound=OfView)


class Turns:
    """Of one scheduler."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def calls(self, dues: Sequence[Due]) -> list[list[Due]]:
        """What is refreshed in one call, in the order in which it is. Loads are long, and nobody
        waits for them together."""
        loads = [[due] for due in dues if due.is_load]
        ordered = sorted((d for d in dues if not d.is_load), key=lambda d: d.moment)
        found = [
            call
            for _, together in groupby(ordered, key=lambda d: d.moment)
            for call in self._of_one_moment(list(together))
        ]
        return sorted(found, key=_deadline) + loads

    def _of_one_moment(self, dues: Sequence[Due]) -> list[list[Due]]:
        snapshot = self._desk.house.catalog.snapshot()
        now = self._desk.clock.now().timestamp()
        found: list[list[Due]] = []
        passed = 0.0
        for family in sorted(families(snapshot, dues), key=_deadline):
            passed += sum(self.seconds(due.view, inf) for due in family)
            if found and HASTE * passed <= _deadline(found[-1]) - now:
                found[-1] += family
            else:
                found.append(family)
        return found

    def delay(self, standings: Sequence[Standing], now: datetime, due: datetime) -> float:
        """Seconds after a moment for which results that were due before it are still served."""
        took = [(s, timedelta(seconds=self.seconds(s.view, 0.0))) for s in standings]
        free = max(now, due - sum((own for _, own in took), timedelta()))
        ahead = [(s.schedule.next_due(free), own) for s, own in took]
        for at, own in sorted((at, own) for at, own in ahead if at is not None and at < due):
            free = max(free, at) + own
        return max(0.0, (free - due).total_seconds())

    def seconds(self, view: View, unknown: float) -> float:
        """What the last result of a view took, from when it was begun."""
        goal = self._desk.newest.of(view, GOAL)
        return unknown if goal is None else float(goal.body.get("seconds") or unknown)


def families(snapshot: Snapshot, items: Sequence[T]) -> list[list[T]]:
    """Those that are to be at one version, in the order in which they come."""
    found: list[tuple[set[str], list[T]]] = []
    for item in items:
        ids, members = {*_read(snapshot, item.view)}, [item]
        for own in [own for own in found if own[0] & ids]:
            found.remove(own)
            ids, members = ids | own[0], own[1] + members
        found.append((ids, members))
    return [members for _, members in found]


def _read(snapshot: Snapshot, view: View) -> Iterator[str]:
    """A view, and the views and parts that it reads, themselves or through others."""
    seen: set[str] = set()
    queue = [view.id]
    while queue:
        id = queue.pop()
        relation = snapshot.get(id) if id in snapshot and id not in seen else None
        if isinstance(relation, View):
            seen.add(id)
            queue += relation.depends
            yield id


def _deadline(call: Sequence[Due]) -> float:
    return min(due.deadline for due in call)
