"""How many rows are still to come to a table, from what has come so far."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import numpy as np

from slackwater.catalog.model import Table
from slackwater.stats.arrival import curve, predict
from slackwater.work.arrivals import history
from slackwater.work.house import House
from slackwater.work.world import World

STEPS = 24
"""Between two results, in which rows are told to come sooner or later."""


class Arriving:
    """What one scheduler expects."""

    def __init__(self, house: House) -> None:
        self._house = house

    def rows(self, table: Table, start: datetime, end: datetime, margin: float = 0.0) -> float:
        """Changed rows of a table from one moment to another, by what had come until the first,
        and more by so many times the error of such predictions. An update changes two, as in what
        is measured."""
        world = World(self._house, self._house.catalog.snapshot(), defining=True)
        return predict(history(world, table), start, end).at_most(margin).rows

    def course(self, tables: Iterable[Table], start: datetime, end: datetime) -> tuple[float, ...]:
        """The shares of the rows to come that are there at even steps, of tables together."""
        world = World(self._house, self._house.catalog.snapshot(), defining=True)
        total = np.zeros(STEPS + 1)
        for table in tables:
            past = history(world, table)
            rows = predict(past, start, end).change.rows
            total += rows * curve(past, start, end, STEPS)
        return tuple((total / total[-1]).tolist()) if total[-1] > 0 else (0.0, 1.0)
