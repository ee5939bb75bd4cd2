"""Options of views and settings of the warehouse: what they are called and what they may say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from slackwater.errors import UserError, nearest
from slackwater.timing import parse_prices, parse_schedule, parse_size, parse_within

REFRESHES = ("auto", "incremental", "incremental strict", "full")


def parse_refresh(text: str) -> str:
    """
    >>> parse_refresh("Incremental  STRICT")
    'incremental strict'
    """
    mode = " ".join(text.lower().split())
    if mode not in REFRESHES:
        *first, last = (f"'{known}'" for known in REFRESHES)
        raise UserError(
            f"refresh = '{text}' cannot be understood.",
            code="BAD_OPTION",
            hint=f"Write {', '.join(first)} or {last}.",
        )
    return mode


VIEW_OPTIONS: Mapping[str, Callable[[str], object]] = {
    "schedule": parse_schedule,
    "within": parse_within,
    "refresh": parse_refresh,
    "state_budget": parse_size,
}
WAREHOUSE_SETTINGS: Mapping[str, Callable[[str], object]] = {"prices": parse_prices, **VIEW_OPTIONS}
"""Those of views are there for views that do not say themselves."""


def check_view_options(options: Mapping[str, str], view: str) -> dict[str, str]:
    """The options that are said, or a message that says what they may be."""
    changes = view_changes(options, (), view)
    return {name: value for name, value in changes.items() if value is not None}


def view_changes(
    options: Mapping[str, str], taken_back: Iterable[str], view: str
) -> dict[str, str | None]:
    """What SET and RESET of a view come to; None takes an option back."""
    return _changes(options, taken_back, VIEW_OPTIONS, f"view '{view}'")


def warehouse_changes(
    settings: Mapping[str, str], taken_back: Iterable[str]
) -> dict[str, str | None]:
    """The same for the warehouse."""
    return _changes(settings, taken_back, WAREHOUSE_SETTINGS, "the warehouse")


def _changes(
    said: Mapping[str, str],
    taken_back: Iterable[str],
    known: Mapping[str, Callable[[str], object]],
    owner: str,
) -> dict[str, str | None]:
    changes = {_known(key, known, owner): value.strip() or None for key, value in said.items()}
    changes |= {_known(key, known, owner): None for key in taken_back}
    for name, value in changes.items():
        if value is not None:
            _check(name, value, known[name], owner)
    return changes


def _known(key: str, known: Mapping[str, object], owner: str) -> str:
    if key.lower() not in known:
        raise UserError(
            f"Option '{key}' of {owner} is not known.",
            code="UNKNOWN_OPTION",
            hint=nearest(key, known),
        )
    return key.lower()


def _check(name: str, value: str, parse: Callable[[str], object], owner: str) -> None:
    try:
        parse(value)
    except UserError as error:
        message = error.message.removeprefix(f"{name} = '{value}'")
        raise UserError(
            f"Option {name} = '{value}' of {owner}{message}", code=error.code, hint=error.hint
        ) from None
