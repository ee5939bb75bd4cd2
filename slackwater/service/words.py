"""Durations for people."""

from __future__ import annotations


def seconds(amount: float) -> str:
    """A duration in the unit that people would take.

    >>> seconds(0.25), seconds(95), seconds(3 * 3600), seconds(200_000)
    ('0.25 s', '1.6 min', '3.0 h', '2.3 days')
    """
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if amount >= size * (1 if unit != "days" else 2):
            return f"{amount / size:.1f} {unit}"
    return f"{amount:.3g} s"
