"""How long a result may take, and how much may be kept for it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from slackwater.errors import InternalError
from slackwater.timing.texts import NUMBER, in_units, plain, seconds_of, wrong

GOALS = "a duration such as '30 seconds', or a share of batch work such as '0.1x'"
SIZES = "a size such as '2 GB'"
BYTES = {"b": 1, "byte": 1, "bytes": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_AMOUNT = re.compile(rf"{NUMBER}\s*([a-z]+)", re.I)


@dataclass(frozen=True)
class Within:
    """How long a result may take after its data is complete: in seconds, or as a share of the
    work of computing it in one batch. Exactly one is given."""

    seconds: float | None = None
    share: float | None = None

    def __post_init__(self) -> None:
        if (self.seconds is None) == (self.share is None):
            raise InternalError("a goal is either a duration or a share")
        if not (self.seconds or self.share or 0.0) > 0:
            raise wrong("within", self.text, GOALS, "leaves no time")

    @property
    def text(self) -> str:
        """As it is written."""
        return f"{plain(self.share)}x" if self.share is not None else in_units(self.seconds or 0)


def parse_within(text: str) -> Within:
    """The goal that a text says.

    >>> parse_within("1.5 minutes"), parse_within("0.1x")
    (Within(seconds=90.0, share=None), Within(seconds=None, share=0.1))
    """
    found = _AMOUNT.fullmatch(text.strip())
    if found and found[2].lower() == "x":
        return Within(share=float(found[1]))
    unit = seconds_of(found[2]) if found else None
    if found is None or unit is None:
        raise wrong("within", text, GOALS)
    return Within(seconds=float(found[1]) * unit)


def parse_size(text: str) -> int:
    """Bytes; units are decimal.

    >>> parse_size("2 GB"), parse_size("1.5kb")
    (2000000000, 1500)
    """
    found = _AMOUNT.fullmatch(text.strip())
    unit = BYTES.get(found[2].lower()) if found else None
    if found is None or unit is None:
        raise wrong("state_budget", text, SIZES)
    return round(float(found[1]) * unit)
