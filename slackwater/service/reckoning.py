"""What was reckoned with when it was last worked out what results will take."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from slackwater.work.house import House
from slackwater.work.standing import Standing
from slackwater.work.waiting import base_tables, waiting
from slackwater.work.world import World

FAR = 4.0
"""What takes less than this part of what is allowed is far from taking too long."""
MORE = 1.1
"""So many times the rows that were reckoned with are more than these."""

Sizes = Mapping[object, float]
"""By table, the rows that it has, and by view and table, those that will have changed."""


@dataclass(frozen=True)
class Answer:
    """What views refreshed together were expected to take at most, and on what that rests."""

    most: float
    sizes: Sizes

    def at_most(self, sizes: Sizes) -> float:
        """With other sizes: no more than in proportion to what has grown most."""
        grown = (n / max(1.0, self.sizes.get(key, 0.0)) for key, n in sizes.items())
        return self.most * max(1.0, *grown)


class Reckoning:
    """Of views that are due together."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._sizes: dict[Hashable, Sizes] = {}
        self._answers: dict[Hashable, Answer] = {}

    def look(self, group: Sequence[Standing], coming: Mapping[str, float]) -> None:
        """So many rows are to come to tables until views are due."""
        world = World(self._house, self._house.catalog.snapshot(), defining=True)
        tables = base_tables(world, *(found.view for found in group))
        sizes: dict[object, float] = {t.id: float(world.rows(t.id)) for t in tables}
        for found in group:
            for id, rows in waiting(world, found.view, found.marks).items():
                sizes[found.view.id, id] = rows + coming.get(id, 0.0)
        self._sizes[_known_as(group)] = sizes

    def answer(self, group: Sequence[Standing], most: float) -> None:
        """With these, they take so many seconds at most."""
        self._answers[_known_as(group)] = Answer(most, self._sizes[_known_as(group)])

    def is_far(self, group: Sequence[Standing], latency: float, allowed: float) -> bool:
        """Was it far from too long, by an earlier answer and by the last results, and has nothing
        grown so much since that it could be otherwise?"""
        before = self._answers.get(_known_as(group))
        if before is None or not before.most or FAR * max(before.most, latency) > allowed:
            return False
        return FAR * before.at_most(self._sizes[_known_as(group)]) <= allowed

    def is_outgrown(self, group: Sequence[Standing]) -> bool:
        """Have more rows come already than were reckoned with until the result?"""
        world = World(self._house, self._house.catalog.snapshot(), defining=True)
        sizes = self._sizes.get(_known_as(group), {})
        return any(
            rows > MORE * max(1.0, sizes.get((found.view.id, id), inf))
            for found in group
            for id, rows in waiting(world, found.view, found.marks).items()
        )


def _known_as(group: Sequence[Standing]) -> Hashable:
    """Views, and how they are computed."""
    return tuple((found.view.id, found.view.sql, found.view.form) for found in group)
