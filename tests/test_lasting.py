"""How many refreshes states are expected to serve, by what came of the last decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from slackwater.catalog.model import Event
from slackwater.planner.choice import FUTURE, INCREMENTAL, PLAIN
from slackwater.work.lasting import Lasting

ORDERS, ALL = ("orders",), ("orders", "customers")


def refresh(
    *changed: str,
    mode: str = "incremental",
    reasons: Sequence[str] = (),
    kept: Sequence[str] = ("sums",),
    expected: Sequence[str] | None = ORDERS,
    cpu: float = 1.0,
    anew: float = 10.0,
) -> Event:
    """What changed before it, how it was done at what cost, what was kept for which change."""
    states: dict[str, Any] = {"kept": list(kept), "expected": None}
    if expected is not None:
        states["expected"] = {name: 5.0 * (name in expected) for name in ALL}
    body = {
        "mode": mode,
        "reasons": list(reasons),
        "states": states,
        "sources": {name: _size(name in changed) for name in ALL},
        "chosen": {"method": INCREMENTAL, "cpu_seconds": cpu},
        "candidates": [
            {"method": PLAIN, "cpu_seconds": anew, "applicable": True},
            {"method": PLAIN, "cpu_seconds": 0.1, "applicable": False},
        ],
    }
    return Event("refresh", "v", "", body)


def _size(changed: bool) -> Mapping[str, int]:
    return {"rows": 100, "bytes": 1000, "changed_rows": 5 * changed}


def served(*newest_first: Event) -> float:
    return Lasting(newest_first).refreshes()


FIRST = refresh(mode="full", reasons=["FIRST_REFRESH"])
ANEW = refresh(*ALL, mode="full", reasons=["CHANGE_TOO_LARGE"], kept=())


def test_before_anything_came_many_are_expected() -> None:
    assert served() == FUTURE
    assert served(FIRST) == FUTURE
    assert Lasting([]).if_anew(kept=True, changed=["orders"]) is None


def test_states_that_serve_will_go_on() -> None:
    assert served(refresh("orders"), refresh("orders"), FIRST) == FUTURE


def test_states_that_were_built_in_vain_are_not_built_again_soon() -> None:
    """The more often the less, and the less long ago."""
    once = served(ANEW, FIRST)
    assert once < 1
    assert served(ANEW, ANEW, FIRST) < once < served(ANEW, refresh("orders"), FIRST)
    assert once < served(refresh("orders"), ANEW, FIRST) < FUTURE


def test_following_changes_at_more_than_computing_anew_costs_is_in_vain() -> None:
    assert served(refresh(*ALL, cpu=11.0), FIRST) == served(ANEW, FIRST)
    assert served(refresh(*ALL, cpu=9.0), FIRST) == FUTURE


def test_where_none_are_kept_right_expectations_bring_trust_back() -> None:
    """And wrong ones keep it away."""
    none = refresh("orders", mode="full", reasons=["CHANGE_TOO_LARGE"], kept=())
    again = served(none, ANEW, FIRST)
    assert served(ANEW, FIRST) < 1 < again
    assert served(ANEW, ANEW, ANEW, FIRST) < served(ANEW, ANEW, FIRST)


def test_states_of_a_view_that_cannot_follow_changes_are_in_vain() -> None:
    for reason in ("FULL_REQUESTED", "SOURCE_REPLACED", "SOURCE_ROWS_GONE"):
        anew = refresh("orders", mode="full", reasons=[reason], kept=())
        assert served(anew, anew, FIRST) == served(ANEW, ANEW, FIRST)


def test_this_refresh_counts_if_it_computes_anew() -> None:
    past = Lasting([refresh("orders", kept=()), FIRST])
    assert past.if_anew(kept=True, changed=["orders"]) is False
    assert past.if_anew(kept=False, changed=["orders"]) is True
    assert past.if_anew(kept=False, changed=ALL) is False
    assert past.if_anew(kept=False, changed=None) is False
    assert past.refreshes(False) < 2 < past.refreshes(None)


def test_what_says_nothing_does_not_count() -> None:
    """Refreshes that found nothing changed, those without a budget, an earlier definition."""
    unasked = refresh(*ALL, mode="none", expected=None)
    assert served(unasked, refresh("orders"), unasked, FIRST) == FUTURE
    assert served(ANEW, refresh("orders", expected=None)) == FUTURE
    assert served(refresh("orders"), FIRST, ANEW, ANEW) == FUTURE


@pytest.mark.parametrize(("before", "now", "known"), [(7, 7, True), (7, 9, False)])
def test_files_of_others_have_changed_if_their_size_has(before: int, now: int, known: bool) -> None:
    events = [refresh(mode="full", reasons=["CHANGE_TOO_LARGE"]), refresh(kept=()), FIRST]
    for event, size in zip(events, (now, before), strict=False):
        event.body["sources"]["customers"] = {"bytes": size}
    assert (served(*events) == FUTURE) is known
