"""SELECT over tables and views, at one catalog commit."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from slackwater.result import Result
from slackwater.work.house import House
from slackwater.work.world import Pending, World


def select(house: House, text: str, pending: Pending | None = None) -> Result:
    """The rows of a query. Tables are read as they are now, views as last refreshed."""
    with house.catalog.reading() as snapshot:
        world = World(house, snapshot, pending)
        relation = house.bound.bind(text, world.context())
        with world.steady_files():
            table = house.runner.query(relation, world.sources(relation))

    def to_spark(rows: pa.Table) -> Any:
        return house.runner.spark.session.createDataFrame(rows)

    return Result(relation.schema, lambda: table, to_spark=to_spark)
