"""The parts of all rhythms in one: what several of them call for is kept once.

A part runs k times from one result to the next, whichever of its views that is of. Of rhythms that
call for the same part, each says how often it needs it, and that one counts which needs it most
often:

    pace = max over rhythms of ⌈pace · longest gap between results / period⌉
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil

from slackwater.algebra.relation import Relation
from slackwater.timing import Rhythm, longest_gap
from slackwater.work.basis import Basis
from slackwater.work.pacing import Paced
from slackwater.work.parts import Forms, Part
from slackwater.work.world import World

Asked = tuple[Rhythm, Part]
"""A rhythm, and a part that it calls for."""


def together(world: World, found: Sequence[Paced]) -> Forms:
    """Those of all rhythms; views that have no pace any more are as their SQL says."""
    asked: dict[str, list[Asked]] = {}
    for paced in found:
        for part in paced.forms.parts:
            asked.setdefault(part.id, []).append((paced.rhythm, part))
    views: dict[str, Relation | None] = {v.name: None for v in world.snapshot.views() if v.form}
    for paced in found:
        views |= paced.forms.views
    return Forms(tuple(map(_one, asked.values())), views, basis=Basis.of(world.snapshot, views))


def _one(asked: Sequence[Asked]) -> Part:
    """The part that serves all who ask for it."""
    if len(asked) == 1:
        return asked[0][1]
    gap = longest_gap([rhythm for rhythm, _ in asked])
    pace = max(ceil(part.pace * gap / own.period_seconds - 1e-9) for own, part in asked)
    views = {name for _, part in asked for name in part.views}
    every = _least([part.every for _, part in asked])
    return replace(asked[0][1], pace=pace, every=every, views=tuple(sorted(views)))


def _least(asked: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """By source, after how many of its rows it is read by whoever reads it most often."""
    return {id: min(every[id] for every in asked) for id in asked[0]}
