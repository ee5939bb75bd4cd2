"""When a result is due, how long it may take, what work costs then: texts to values and back.

All moments are in UTC: no due time is then skipped or repeated when clocks are changed.
"""

from slackwater.timing.amounts import Within, parse_size, parse_within
from slackwater.timing.prices import Prices, Tariff, parse_prices
from slackwater.timing.rhythms import Rhythm, longest_gap, rhythm_of
from slackwater.timing.schedules import (
    Cron,
    Daily,
    Every,
    EveryRows,
    Manual,
    Schedule,
    parse_schedule,
    period_seconds,
)

__all__ = [
    "Cron",
    "Daily",
    "Every",
    "EveryRows",
    "Manual",
    "Prices",
    "Rhythm",
    "Schedule",
    "Tariff",
    "Within",
    "longest_gap",
    "parse_prices",
    "parse_schedule",
    "parse_size",
    "parse_within",
    "period_seconds",
    "rhythm_of",
]
