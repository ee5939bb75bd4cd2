"""How many rows are still to come to a table, from what has come so far."""

from __future__ import annotations

from datetime import datetime

from slackwater.catalog.model import Table
from slackwater.stats.arrival import predict
from slackwater.work.arrivals import history
from slackwater.work.house import House
from slackwater.work.world import World


class Arriving:
    """What one scheduler expects."""

    def __init__(self, house: House) -> None:
        self._house = house

    def rows(self, table: Table, start: datetime, end: datetime) -> float:
        """Changed rows of a table from one moment to another, by what had come until the first.
        An update changes two, as in what is measured."""
        world = World(self._house, self._house.catalog.snapshot(), defining=True)
        return predict(history(world, table), start, end).change.rows
