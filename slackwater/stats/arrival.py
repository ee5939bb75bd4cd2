"""What will arrive at a source until a moment, told from what has arrived, and how far such
predictions were off.

Every model is tried on the past: it predicts what came after earlier moments from what was known
then. The one that was nearest is believed, and its error is the margin that a plan should leave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf

import numpy as np

from slackwater.stats.arrival_models import DAY, Floats, Model, Past, daily, overall, steady, tail
from slackwater.stats.rows import Change

MOST = 500
"""Arrivals that are looked at, the newest."""
TRIES = 16
"""Moments of the past that predictions are tried at."""
SHORT = 0.05
"""Nothing is tried where less was known, in parts of the seconds ahead: the rate between a load and
a batch right after it says nothing about the hours to come."""
BETTER = {"bursts": 0.5}
"""A model that says more is believed if its error is that part of the simpler one's, or less (0.9
if not told here): among batches that come by chance, many patterns are seen that are none."""
UNTRIED = 1.0
"""The error where the past is too short to try anything."""
WORST = 10.0
"""No margin is larger than so many times what is expected."""
FEW, LARGE, IRREGULAR, WIDE = 5, 8.0, 0.6, 0.25


@dataclass(frozen=True, slots=True)
class Arrived:
    """What came in one batch."""

    at: datetime
    rows: Change


@dataclass(frozen=True, slots=True)
class Expected:
    """What will come, the relative error of such predictions, and the model that says so."""

    change: Change
    error: float
    model: str

    def at_most(self, margin: float = 1.0) -> Change:
        """What to be ready for: more by so many times the error. Of what nobody knows, nothing."""
        return self.change.times(1 + margin * min(self.error, WORST))


NOTHING = Expected(Change(), inf, "nothing")


def predict(history: Sequence[Arrived], start: datetime, end: datetime) -> Expected:
    """What arrives after `start`, until `end`, by what had arrived until `start`.

    | model | says | believed when |
    |---|---|---|
    | steady | the recent rate goes on | nothing else is better |
    | bursts | the rate of the whole past goes on | batches are few and uneven |
    | daily | as on the days before, hour by hour | two days are known |
    | tail | each interval brings the same share of what is still missing | rows become fewer |
    | nothing | nothing | fewer than two batches are known |
    """
    past, now = _past(history, start)
    ahead = (end - start).total_seconds()
    if len(past.times) < 2 or now <= 0 or ahead <= 0:
        return NOTHING
    name, rows, error = _believed(past, now, ahead)
    return Expected(_mix(past).times(rows), error, name)


def batches(history: Sequence[Arrived], start: datetime, end: datetime) -> Expected:
    """How many batches arrive, whatever their size: fewer than one where that is not sure."""
    ones = [Arrived(a.at, Change(inserts=1.0)) for a in history if a.rows.sound.rows > 0]
    return predict(ones, start, end)


def curve(history: Sequence[Arrived], start: datetime, end: datetime, parts: int) -> Floats:
    """The share of the expected rows that is there at the begin, and after each of so many even
    parts: `parts + 1` numbers from 0 to 1."""
    even = np.linspace(0.0, 1.0, parts + 1)
    model = predict(history, start, end).model
    if model not in ("daily", "tail"):
        return even
    past, now = _past(history, start)
    ahead = even * (end - start).total_seconds()
    rows = MODELS[model](past, np.full(parts + 1, now), ahead)
    whole = rows[-1] - rows[0]
    return (rows - rows[0]) / whole if whole > 0 else even


MODELS: dict[str, Model] = {"steady": steady, "bursts": overall, "daily": daily, "tail": tail}


def _believed(past: Past, now: float, ahead: float) -> tuple[str, float, float]:
    """The simplest model that no other beats, what it says, and its error."""
    spread = _spread(past, now, ahead)
    possible = {"bursts": spread > 0, "steady": True, "daily": now >= 2 * DAY, "tail": True}
    names = [name for name, is_possible in possible.items() if is_possible]
    tried, length = _tries(past, now, ahead)
    moments, lengths = np.append(tried, now), np.append(np.full(len(tried), length), ahead)
    said = {name: MODELS[name](past, moments, lengths) for name in names}
    said = {name: rows for name, rows in said.items() if not np.isnan(rows[-1])}
    came = past.until(tried + length * (1 + 1e-6)) - past.until(tried)
    errors = _errors({name: rows[:-1] for name, rows in said.items()}, came)
    best, *others = said
    for name in others:
        if errors[name] < BETTER.get(best, 0.9) * errors[best]:
            best = name
    error = errors[best] if errors[best] < inf else UNTRIED
    return best, float(said[best][-1]), max(error, spread) if best == "bursts" else error


def _errors(said: Mapping[str, Floats], came: Floats) -> dict[str, float]:
    """√mean((said − came)²) / mean(came), where all have something to say that speak at most of
    the moments; infinite for others. Squares, because a model that is right on most days and blind
    to the large ones is of no use."""
    silent = {name: np.isnan(rows) for name, rows in said.items()}
    fluent = [name for name in said if silent[name].sum() <= len(came) / 2 and len(came)]
    told = ~np.any([silent[name] for name in fluent], axis=0) & np.ones(len(came), bool)
    errors = {n: _error(said[n][told], came[told]) for n in fluent if told.any()}
    return dict.fromkeys(said, inf) | errors


def _error(said: Floats, came: Floats) -> float:
    scale = max(float(came.mean()), float(said.mean()))
    return float(np.sqrt(np.mean((said - came) ** 2))) / scale if scale > 0 else 0.0


def _tries(past: Past, now: float, ahead: float) -> tuple[Floats, float]:
    """Moments that were followed by that many seconds, or fewer if the past is short: at arrivals
    where these are few, so that regular ones are met, else evenly over the newer half."""
    after = now - float(past.times[1])
    few = len(past.times) <= TRIES
    length = min(ahead, after if few else after / 3)
    if length <= 0:
        return np.empty(0), 0.0
    if few:
        moments = past.times[1:][past.times[1:] <= now - length * (1 - 1e-6)]
    else:
        first = max(float(past.times[1]), min(now / 2, now - 2 * DAY))
        moments = np.linspace(min(first, now - length), now - length, TRIES)
    return moments[moments >= SHORT * length], length


def _spread(past: Past, now: float, ahead: float) -> float:
    """The relative error of batches that come by chance: their sum over T seconds of S varies by
    √(T/S · Σ rows²). 0 where batches are regular and alike, or many."""
    sizes, gaps = past.rows[1:], np.diff(past.times)
    if len(sizes) < FEW or not sizes.sum() > 0:
        return 0.0
    rare = sizes[sizes > LARGE * np.median(sizes)]
    large = rare.sum() >= 0.2 * sizes.sum() and len(rare) <= 0.1 * len(sizes)
    uneven = gaps.std() > IRREGULAR * gaps.mean()
    share = ahead / now
    spread = float(np.sqrt(share * (sizes**2).sum()) / (share * sizes.sum()))
    return spread if (large or uneven) and spread > WIDE else 0.0


def _past(history: Sequence[Arrived], start: datetime) -> tuple[Past, float]:
    """The newest batches until then that brought anything, in their order, and when `start` is."""
    found = np.array([_numbers(a) for a in history]).reshape(-1, 4)
    now = start.timestamp()
    found = found[(found[:, 0] <= now) & (found[:, 1:].sum(axis=1) > 0)]
    found = found[np.argsort(found[:, 0], kind="stable")][-MOST:]
    origin = found[0, 0] if len(found) else now
    return Past(found[:, 0] - origin, found[:, 1:]), now - float(origin)


def _numbers(a: Arrived) -> tuple[float, float, float, float]:
    rows = a.rows.sound
    return a.at.timestamp(), rows.inserts, rows.updates, rows.deletes


def _mix(past: Past) -> Change:
    """Inserts, updates and deletes of one row, after the first batch."""
    total = past.kinds[1:].sum(axis=0)
    return Change(*(float(kind) for kind in total / total.sum()))
