"""Options of views and tables: what they are called and what they may say."""

from __future__ import annotations

import re
from collections.abc import Mapping

from slackwater.errors import UserError, nearest

_UNIT = r"(second|minute|hour|day|week)s?"
_CRON = r"(\S+\s+){4}\S+"
_FORMS = {
    "schedule": (
        rf"manual|every\s+\d+\s+({_UNIT}|rows?)|daily\s+\d{{1,2}}:\d{{2}}|{_CRON}",
        "'every 10 minutes', 'daily 06:00', 'every 100000 rows', a cron line, or 'manual'",
    ),
    "within": (
        rf"\d+(\.\d+)?\s*({_UNIT}|ms|milliseconds?)|\d*\.?\d+x",
        "a duration such as '30 seconds', or a share of batch work such as '0.1x'",
    ),
    "refresh": (
        r"auto|incremental|incremental\s+strict|full",
        "'auto', 'incremental', 'incremental strict' or 'full'",
    ),
    "state_budget": (r"\d+(\.\d+)?\s*(b|kb|mb|gb|tb)", "a size such as '2 GB'"),
}


def check_view_options(options: Mapping[str, str], view: str) -> dict[str, str]:
    """The options in lower case, or a message that says what they may be."""
    checked = {}
    for key, value in options.items():
        name = key.lower()
        if name not in _FORMS:
            raise UserError(
                f"Option '{key}' of view '{view}' is not known.",
                code="UNKNOWN_OPTION",
                hint=nearest(key, _FORMS),
            )
        form, example = _FORMS[name]
        if not re.fullmatch(form, value.strip(), re.I):
            raise UserError(
                f"Option {name} = '{value}' of view '{view}' cannot be understood.",
                code="BAD_OPTION",
                hint=f"Write {example}.",
            )
        if name == "schedule":
            _check_time(value, view)
        checked[name] = value.strip()
    return checked


def _check_time(value: str, view: str) -> None:
    found = re.fullmatch(r"daily\s+(\d{1,2}):(\d{2})", value.strip(), re.I)
    if found and not (int(found[1]) < 24 and int(found[2]) < 60):
        raise UserError(
            f"Option schedule = '{value}' of view '{view}' names no time of day.",
            code="BAD_OPTION",
            hint="Hours go from 0 to 23, minutes from 0 to 59.",
        )
