"""Identifiers and times, made by us and never from what users typed."""

from __future__ import annotations

import secrets
import time
from datetime import UTC, datetime


def new_id(prefix: str) -> str:
    """A fresh identifier that sorts by time and is safe as a file name.

    >>> new_id("t").startswith("t")
    True
    """
    return f"{prefix}{time.time_ns() // 1_000_000:012x}{secrets.token_hex(5)}"


def timestamp(seconds: float | None = None) -> str:
    """A moment (now, or seconds since 1970) as the catalog writes it: ISO 8601 in UTC.

    >>> timestamp(0)
    '1970-01-01T00:00:00.000000+00:00'
    """
    moment = time.time() if seconds is None else seconds
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="microseconds")
