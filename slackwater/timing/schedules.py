"""When a result is due."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from cronsim import CronSim, CronSimError

from slackwater.timing.texts import DAY, EPOCH, NUMBER, in_units, minutes_of, seconds_of, utc, wrong

SCHEDULES = "'every 10 minutes', 'daily 06:00', 'every 100000 rows', a cron line, or 'manual'"
SHORTEST, LONGEST = 0.001, 3660.0 * 86_400
"""Seconds from one due time to the next."""
_MICROSECOND = timedelta(microseconds=1)
_EVERY = re.compile(rf"every\s+(?:{NUMBER}\s*)?([a-z]+)", re.I)
_DAILY = re.compile(r"daily\s+(\d{1,2}:\d{2})", re.I)


@dataclass(frozen=True)
class Manual:
    """Due only when somebody asks."""

    text = "manual"

    def next_due(self, after: datetime) -> datetime | None:
        """Never by itself."""
        return None


@dataclass(frozen=True)
class Every:
    """Due at the multiples of a duration since 1970 in UTC, so that a restart moves nothing."""

    seconds: float

    def __post_init__(self) -> None:
        if not SHORTEST <= self.seconds <= LONGEST:
            raise wrong("schedule", self.text, SCHEDULES, "is due too often or too rarely")

    @property
    def text(self) -> str:
        """In the largest unit that gives a whole number."""
        return f"every {in_units(self.seconds)}"

    def next_due(self, after: datetime) -> datetime | None:
        """The first multiple after that moment."""
        period = round(self.seconds * 1e6)
        passed = (utc(after) - EPOCH) // _MICROSECOND
        return EPOCH + (passed // period + 1) * period * _MICROSECOND


@dataclass(frozen=True)
class EveryRows:
    """Due when that many rows have come since the last result."""

    rows: int

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise wrong("schedule", self.text, SCHEDULES, "is always due")

    @property
    def text(self) -> str:
        """As it is written."""
        return f"every {self.rows} rows"

    def next_due(self, after: datetime) -> datetime | None:
        """The clock does not say."""
        return None


@dataclass(frozen=True)
class Daily:
    """Due once a day, at a time in UTC."""

    hour: int
    minute: int

    @property
    def text(self) -> str:
        """As it is written."""
        return f"daily {self.hour:02}:{self.minute:02}"

    def next_due(self, after: datetime) -> datetime | None:
        """Today, or tomorrow if that has passed."""
        after = utc(after)
        today = after.replace(hour=self.hour, minute=self.minute, second=0, microsecond=0)
        return today if today > after else today + DAY


@dataclass(frozen=True)
class Cron:
    """Due when a line of cron says so: minute, hour, day, month, day of week."""

    line: str

    def __post_init__(self) -> None:
        try:
            if len(self.line.split()) != 5:
                raise CronSimError("Wrong number of fields")
            next(CronSim(self.line, EPOCH))
        except CronSimError as error:
            problem = f"cannot be understood ({str(error).lower()})"
            raise wrong("schedule", self.line, SCHEDULES, problem) from None
        except StopIteration:
            raise wrong("schedule", self.line, SCHEDULES, "is never due") from None

    @property
    def text(self) -> str:
        """As it is written."""
        return self.line

    def next_due(self, after: datetime) -> datetime | None:
        """The first such minute after that moment."""
        return next(CronSim(self.line, utc(after)))


Schedule = Manual | Every | EveryRows | Daily | Cron


def parse_schedule(text: str) -> Schedule:
    """The schedule that a text says.

    >>> parse_schedule("every 10 minutes"), parse_schedule("0 6 * * mon-fri")
    (Every(seconds=600.0), Cron(line='0 6 * * mon-fri'))
    >>> print(parse_schedule("daily 06:00").next_due(EPOCH))
    1970-01-01 06:00:00+00:00
    """
    words = " ".join(text.split())
    if words.lower() == "manual":
        return Manual()
    if found := _DAILY.fullmatch(words):
        return Daily(*divmod(minutes_of(found[1], "schedule", text), 60))
    if found := _EVERY.fullmatch(words):
        return _every(found[1] or "1", found[2], text)
    if len(words.split()) == 5:
        return Cron(words)
    raise wrong("schedule", text, SCHEDULES)


def _every(number: str, unit: str, text: str) -> Schedule:
    if unit.lower() in ("row", "rows") and number.isdigit():
        return EveryRows(int(number))
    seconds = seconds_of(unit)
    if seconds is None:
        raise wrong("schedule", text, SCHEDULES)
    return Every(float(number) * seconds)


def period_seconds(schedule: Schedule, at: datetime) -> float | None:
    """From the next due time to the one after it; None where the clock does not say.

    >>> period_seconds(Daily(6, 0), EPOCH)
    86400.0
    """
    first = schedule.next_due(at)
    second = None if first is None else schedule.next_due(first)
    return None if first is None or second is None else (second - first).total_seconds()
