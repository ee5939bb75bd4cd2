"""Errors of the local engine in Spark's terms.

Emulations raise `[CLASS] message` with Spark's error class. DuckDB's own checks are left to work
where they mean the same; their messages are put into classes here. What cannot be told is
NEEDS_SPARK: the step runs there, and Spark raises or answers.
"""

from __future__ import annotations

import re

NEEDS_SPARK = "NEEDS_SPARK"

_NATIVE: tuple[tuple[str, str], ...] = (
    (r"Overflow in \w+ of INT(8|16)\b", "BINARY_ARITHMETIC_OVERFLOW"),
    (r"Overflow in \w+ of INT(32|64)\b", "ARITHMETIC_OVERFLOW"),
    (r"Overflow in negation of", "ARITHMETIC_OVERFLOW"),
    (r"Overflow on abs\(", "ARITHMETIC_OVERFLOW"),
    (r"Type INT128 with value \S+ can't be cast", "ARITHMETIC_OVERFLOW"),
)
"""What DuckDB says → Spark's error class, for checks that both make alike."""


def error_class(message: str) -> str:
    """Spark's error class for an error of the local engine.

    >>> error_class("Invalid Input Error: [DIVIDE_BY_ZERO] Division by zero.")
    'DIVIDE_BY_ZERO'
    >>> error_class("Out of Range Error: Overflow in addition of INT32 (2147483647 + 1)!")
    'ARITHMETIC_OVERFLOW'
    >>> error_class("Out of Range Error: STDDEV_POP is out of range!")
    'NEEDS_SPARK'
    """
    if own := re.search(r"Error: \[([A-Z_.]+)\] ", message):
        return own[1]
    return next((name for text, name in _NATIVE if re.search(text, message)), NEEDS_SPARK)


def fail(name: str, message: str) -> str:
    """SQL that raises an error of Spark's class `name`."""
    quoted = f"[{name}] {message}".replace("'", "''")
    return f"error('{quoted}')"


def needs_spark(why: str) -> str:
    """SQL that sends the step to Spark."""
    return fail(NEEDS_SPARK, f"The local engine does not compute this exactly: {why}.")
