"""Constants of the catalog as JSON, and back."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

from slackwater.algebra.coercion import literal
from slackwater.algebra.expr import Literal
from slackwater.types import (
    BINARY,
    BOOLEAN,
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    is_fractional,
    is_integral,
)


def is_kept(t: DataType) -> bool:
    """Can a constant of this type be kept?"""
    known = (BOOLEAN, STRING, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ)
    return t in known or is_integral(t) or is_fractional(t) or isinstance(t, Decimal)


def to_json(constant: Literal) -> Any:
    """The constant's value; the type is kept elsewhere.

    >>> to_json(literal(dt.date(2020, 1, 31))), to_json(literal(b"\x0f"))
    ('2020-01-31', '0f')
    """
    match constant.value:
        case float() | decimal.Decimal() as number:
            return str(number)
        case bytes() as content:
            return content.hex()
        case dt.date() as moment:  # a datetime is one
            return moment.isoformat()
    return constant.value


def from_json(value: Any, t: DataType) -> Literal:
    """The constant of a type that `to_json` made this value of."""
    if value is None:
        return literal(None, t)
    if is_fractional(t):
        value = float(value)
    elif isinstance(t, Decimal):
        value = decimal.Decimal(value)
    elif t == BINARY:
        value = bytes.fromhex(value)
    elif t == DATE:
        value = dt.date.fromisoformat(value)
    elif t in (TIMESTAMP, TIMESTAMP_NTZ):
        value = dt.datetime.fromisoformat(value)
    return literal(value, t)
