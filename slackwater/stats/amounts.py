"""Numbers, or arrays of them: what is worked out for one case is worked out for many at once.

Estimates are formulas. Given plain numbers they give one; given NumPy arrays, one for each entry,
which is how a subplan's hundred runs are looked at in one pass.
"""

from __future__ import annotations

import numpy as np

Amount = float
"""A number, or an array of them."""


def least(first: Amount, *others: Amount) -> Amount:
    """The smallest, case by case.

    >>> least(3.0, 2.0), least(np.array([1.0, 5.0]), 2.0).tolist()
    (2.0, [1.0, 2.0])
    """
    for other in others:
        if isinstance(first, np.ndarray) or isinstance(other, np.ndarray):
            first = np.minimum(first, other)
        elif other < first:
            first = other
    return first


def most(first: Amount, *others: Amount) -> Amount:
    """The largest, case by case.

    >>> most(3.0, 2.0), most(np.array([1.0, 5.0]), 2.0).tolist()
    (3.0, [2.0, 5.0])
    """
    for other in others:
        if isinstance(first, np.ndarray) or isinstance(other, np.ndarray):
            first = np.maximum(first, other)
        elif other > first:
            first = other
    return first


def is_any(amount: Amount) -> bool:
    """Is there anything, in any case?"""
    return bool(amount.any()) if isinstance(amount, np.ndarray) else bool(amount)


def ratio(part: Amount, whole: Amount) -> Amount:
    """Their quotient; nothing of nothing is nothing.

    >>> ratio(1.0, 2.0), ratio(1.0, 0.0), ratio(np.ones(2), np.array([0.0, 4.0])).tolist()
    (0.5, 0.0, [0.0, 0.25])
    """
    if isinstance(part, np.ndarray) or isinstance(whole, np.ndarray):
        safe = np.where(whole == 0, 1.0, whole)
        quotient: Amount = np.where(whole == 0, 0.0, part / safe)
        return quotient
    return part / whole if whole else 0.0
