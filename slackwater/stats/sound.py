"""Statistics as they can be reckoned with, whatever was said.

What is known of data may be missing or wrong: a count that was never made, a share of 0/0, a rate
that overflowed. Plans are made all the same, dearer ones perhaps, so all that enters estimates is
looked at here:

| said | taken |
|---|---|
| nothing, no number, NaN | what is believed where nothing is known |
| less than there can be | the least |
| infinite, or more than there can be | the most |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slackwater.stats.amounts import Amount, least, most

if TYPE_CHECKING:
    from slackwater.algebra.relation import Relation
    from slackwater.stats.values import Known, Values

MOST = 1e15
"""No source has more rows or values, no state more bytes, and no step takes more seconds."""
MOST_VALUES = 1e100
"""No columns together take more different values."""
UNKNOWN_ROWS = 1_000.0
"""Of a source of which nobody says how many rows it has."""


def sound(amount: Any, unknown: Amount, low: Amount = 0.0, high: Amount = MOST) -> Amount:
    """An amount, or an array of them, that can be reckoned with.

    >>> sound(3.0, 9.0), sound(None, 9.0), sound(float("nan"), 9.0), sound(-1.0, 9.0)
    (3.0, 9.0, 9.0, 0.0)
    >>> sound(float("inf"), 9.0), sound("many", 9.0), sound(np.array([2.0, np.nan]), 9.0).tolist()
    (1000000000000000.0, 9.0, [2.0, 9.0])
    """
    if isinstance(amount, np.ndarray):
        found: Amount = np.clip(np.where(np.isnan(amount), unknown, amount), low, high)  # type: ignore[assignment]
        return found
    if not is_number(amount):
        return unknown
    return least(high, most(low, amount))


def is_number(amount: Any) -> bool:
    """Is it one, infinite ones included?

    >>> is_number(1), is_number(float("inf")), is_number(float("nan")), is_number(None)
    (True, True, False, False)
    """
    return isinstance(amount, int | float | np.number) and amount == amount


def is_finite(amount: Any) -> bool:
    """Is it a number, and neither below nothing nor beyond all reason?"""
    return is_number(amount) and 0 <= amount <= MOST


class Sound:
    """What is known, as far as it can be."""

    def __init__(self, known: Known) -> None:
        self._known = known

    @classmethod
    def of(cls, known: Known) -> Sound:
        """The same if it is looked at already."""
        return known if isinstance(known, Sound) else cls(known)

    def values(self, source: str, column: str) -> Values | None:
        """Of a column; nothing where the number of its values is not known."""
        found = self._known.values(source, column)
        return None if found is None else sound_values(found)

    def selectivity(self, node: Relation) -> float | None:
        """A share between nothing and all; None where it is no number."""
        share = self._known.selectivity(node)
        return _share(share)


def _share(share: Any) -> float | None:
    if isinstance(share, np.ndarray):
        return None if np.isnan(share).any() else np.clip(share, 0.0, 1.0)  # type: ignore[return-value]
    return min(1.0, max(0.0, share)) if is_number(share) and abs(share) <= MOST else None


def sound_values(said: Values) -> Values | None:
    """What is known of a column; the ends of a range are of use together, and in their order. None
    where the number of different values is not known."""
    distinct = said.distinct
    if not isinstance(distinct, np.ndarray) and (not is_number(distinct) or distinct < 0):
        return None
    nulls, low, high = _share(said.nulls), said.low, said.high
    if not (_is_end(low) and _is_end(high) and low <= high):  # type: ignore[operator]
        low = high = None
    known = sound(distinct, 1.0), 0.0 if nulls is None else nulls
    return type(said)(*known, low, high, said.all_there)


def _is_end(value: Any) -> bool:
    return is_number(value) and abs(value) < float("inf")
