"""Units, clocks and errors that all texts about time share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import ceil, floor, log10

from slackwater.errors import InternalError, UserError

SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86_400.0, "week": 604_800.0}
SHORT = {"s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0, "ms": 0.001, "millisecond": 0.001}
NUMBER = r"(\d+(?:\.\d+)?|\.\d+)"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
DIGITS = 2


def wrong(name: str, text: str, example: str, problem: str = "cannot be understood") -> UserError:
    """The text is of no use there; this is how it may be written."""
    return UserError(f"{name} = '{text}' {problem}.", code="BAD_OPTION", hint=f"Write {example}.")


def utc(moment: datetime) -> datetime:
    """The moment in UTC. One without a time zone could be any."""
    if moment.tzinfo is None:
        raise InternalError(f"{moment} has no time zone")
    return moment.astimezone(UTC)


def seconds_of(unit: str) -> float | None:
    """What a unit of time lasts, in the singular, in the plural or short."""
    unit = unit.lower()
    known = SECONDS | SHORT
    return known.get(unit, known.get(unit.removesuffix("s")))


def minutes_of(clock: str, name: str, text: str) -> int:
    """The minute of the day that a clock shows."""
    hour, minute = (int(part) for part in clock.split(":"))
    if hour > 23 or minute > 59:
        times = "a time of day: hours go from 0 to 23, minutes from 0 to 59"
        raise wrong(name, text, times, "names no time of day")
    return hour * 60 + minute


def clock(minutes: int) -> str:
    """
    >>> clock(minutes_of("6:05", "schedule", "daily 6:05"))
    '06:05'
    """
    return f"{minutes // 60:02}:{minutes % 60:02}"


def plain(number: float) -> str:
    """A number that reads back as itself, without an exponent.

    >>> plain(600.0), plain(0.25), plain(1e-05)
    ('600', '0.25', '0.00001')
    """
    text = repr(float(number))
    if "e" in text:
        text = f"{number:.20f}".rstrip("0")
    return text.removesuffix(".0").removesuffix(".")


def in_units(seconds: float) -> str:
    """A duration in the largest unit of which it is a whole number.

    >>> in_units(600), in_units(60), in_units(0.5)
    ('10 minutes', '1 minute', '0.5 seconds')
    """
    whole = [(unit, length) for unit, length in SECONDS.items() if seconds % length == 0]
    unit, length = whole[-1] if whole and seconds else ("second", 1.0)
    count = seconds / length
    return f"{plain(count)} {unit}{'' if count == 1 else 's'}"


def rounded_up(amount: float) -> float:
    """Two digits, never less: a promise.

    >>> rounded_up(3.14), rounded_up(0.0151), rounded_up(120.5), rounded_up(2.0)
    (3.2, 0.016, 130.0, 2.0)
    """
    if amount <= 0:
        return 0.0
    places = DIGITS - 1 - floor(log10(amount))
    scaled = amount * 10.0**places
    return float(round(ceil(scaled - 1e-9) / 10.0**places, max(places, 0)))
