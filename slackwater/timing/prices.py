"""What work costs, by the time of day."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from slackwater.timing.texts import DAY, EPOCH, MINUTE, NUMBER, clock, minutes_of, plain, utc, wrong

TARIFFS = "a price above 0 such as '0.25 from 22:00 to 06:00', several with commas between"
_HOUR = r"(\d{1,2}:\d{2})"
_PRICE = re.compile(rf"{NUMBER}(?:\s+from\s+{_HOUR}\s+to\s+{_HOUR})?", re.I)


@dataclass(frozen=True)
class Tariff:
    """A price from one minute of the day to another, over midnight if that one is earlier."""

    price: float
    start: int
    end: int

    def holds(self, minute: float) -> bool:
        """At that minute of the day?"""
        if self.start < self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end

    @property
    def text(self) -> str:
        """As it is written."""
        return f"{plain(self.price)} from {clock(self.start)} to {clock(self.end)}"


@dataclass(frozen=True)
class Prices:
    """What a second of work costs, by the time of day in UTC; of several, the first that holds."""

    tariffs: tuple[Tariff, ...] = ()
    otherwise: float = 1.0

    @property
    def text(self) -> str:
        """As it is written."""
        base = [plain(self.otherwise)] if self.otherwise != 1.0 or not self.tariffs else []
        return ", ".join([*base, *(t.text for t in self.tariffs)])

    def at(self, moment: datetime) -> float:
        """The price at a moment."""
        passed = (utc(moment) - EPOCH) % DAY / MINUTE
        return next((t.price for t in self.tariffs if t.holds(passed)), self.otherwise)

    def cheapest(self, start: datetime, end: datetime) -> datetime:
        """The earliest moment of the lowest price from `start` to `end`, both included.

        A price changes only where a tariff begins or ends, so no other moments are looked at.
        """
        turns = {m for t in self.tariffs for m in (t.start, t.end)}
        ahead = ((m * MINUTE - (utc(start) - EPOCH)) % DAY for m in turns)
        moments = [start, *(start + wait for wait in ahead if start + wait <= end)]
        return min(moments, key=lambda moment: (self.at(moment), moment))


def parse_prices(text: str) -> Prices:
    """Prices by time of day; a plain number is the price at all other times, else it is 1.

    >>> night = parse_prices("0.25 from 22:00 to 06:00, 2 from 12:00 to 13:00")
    >>> [night.at(EPOCH + 60 * hour * MINUTE) for hour in (5, 6, 12, 22)]
    [0.25, 1.0, 2.0, 0.25]
    """
    tariffs, plain_prices = [], []
    for part in text.split(","):
        found = _PRICE.fullmatch(" ".join(part.split()))
        if found is None or not float(found[1]) > 0:
            raise wrong("prices", text, TARIFFS)
        if found[2] is None:
            plain_prices.append(float(found[1]))
        else:
            tariffs.append(_tariff(float(found[1]), found[2], found[3], text))
    if len(plain_prices) > 1:
        raise wrong("prices", text, TARIFFS, "names two prices for all other times")
    return Prices(tuple(tariffs), *plain_prices)


def _tariff(price: float, start: str, end: str, text: str) -> Tariff:
    first = minutes_of(start, "prices", text)
    last = 0 if end == "24:00" else minutes_of(end, "prices", text)
    if first == last:
        whole = "a plain number for the whole day"
        raise wrong("prices", text, whole, "ends where it begins")
    return Tariff(price, first, last)
