"""How many values columns take of what is computed of sources and stored: states, subplans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from slackwater.algebra.relation import Relation
from slackwater.stats.values import Domain, Known, Values
from slackwater.tvr.time import split


@dataclass(frozen=True)
class Computed:
    """What a stored relation is computed as, where each of its columns is in that, as far as it is
    one of its columns, and what is known of the values there."""

    node: Relation
    places: Mapping[str, int]
    domain: Domain
    is_state: bool = True  # and thus all that there is, not what comes of it

    def values(self, column: str) -> Values | None:
        """Of a column."""
        place = self.places.get(column)
        if place is None:
            return None
        return Values(self.domain.column(self.node, place), all_there=self.is_state)


@dataclass(frozen=True)
class Derived:
    """What is known of sources, and by that of what is computed of them."""

    known: Known
    find: Callable[[str], Computed | None]
    """By id; None: a source."""

    def values(self, source: str, column: str) -> Values | None:
        """Of a column, at any time."""
        found = self.find(split(source)[0])
        return self.known.values(source, column) if found is None else found.values(column)

    def selectivity(self, node: Relation) -> float | None:
        """As it was measured."""
        return self.known.selectivity(node)
