"""Paces tuned by what was measured (003, figure 13): goals that were missed are asked for anew.

Where a result came later than its goal allows, beyond noise, half as much is asked for as before;
then all of it is planned and measured again, a few times. Of each approach the try counts that
misses least, and of those the one of least CPU. Where half as much changes no plan, the goal is out
of reach, and nothing is tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.missing import Result
from bench.sharing_approaches import APPROACHES, OURS

TIGHTER = 0.5
PAPER = {"unshared, one pace": 0.777, "unshared": 0.8, "shared, one pace": 0.279}
"""iShare's CPU seconds as a share of each baseline's, at constraints of 0.1."""
Line = dict[str, Any]
Shares = Mapping[str, float]
"""By query, the share of its own batch that is asked for."""
Wanted = Mapping[str, tuple[Shares, Shares]]
"""By approach, what was asked for before, and what is now."""
Again = Callable[[Wanted], Sequence[Line]]
"""Plans and measures again; the lines of those that plan otherwise for it."""


@dataclass(frozen=True)
class Try:
    """What was asked for, and what came of it."""

    asked: Shares
    line: Line
    number: int = 1

    @property
    def late(self) -> dict[str, float]:
        """By query that missed its goal beyond noise, the seconds that were too many."""
        took, batch = self.line["latency_seconds"], self.line["batch_latency_seconds"]
        wanted = self.line["constraints"]
        found = (Result(q, s, s * batch[q], took[q], False) for q, s in wanted.items())
        return {own.query: own.late for own in found if own.is_beyond_noise}

    @property
    def badness(self) -> tuple[float, float]:
        """Missed goals first, then cost."""
        return sum(self.late.values()), self.line["cpu_seconds"]

    def tighter(self) -> Shares:
        """Half as much for what was late."""
        late = self.late
        return {q: share * (TIGHTER if q in late else 1) for q, share in self.asked.items()}


def tuned(first: Sequence[Line], again: Again, tries: int) -> Iterator[Line]:
    """The best try of each approach that runs anything early, of one set of queries."""
    latest = {
        line["approach"]: Try(line["constraints"], line)
        for line in first
        if APPROACHES[line["approach"]].paces != "none"
    }
    best = dict(latest)
    for number in range(2, tries + 1):
        asked = {name: (own.asked, own.tighter()) for name, own in latest.items() if own.late}
        found = again(asked) if asked else ()
        latest = {line["approach"]: Try(asked[line["approach"]][1], line, number) for line in found}
        for name, own in latest.items():
            best[name] = min(best[name], own, key=lambda one: one.badness)
        if not latest:
            break
    for own in best.values():
        more = {"tries": own.number, "asked": dict(own.asked), "late_seconds": own.badness[0]}
        yield own.line | more


def ratios(lines: Sequence[Line]) -> Iterator[Line]:
    """Our CPU as a share of each other approach's, over the sets where both were tuned."""
    for name in dict.fromkeys(line["approach"] for line in lines):
        theirs = {line["case"]: line["cpu_seconds"] for line in lines if line["approach"] == name}
        ours = {
            line["case"]: line["cpu_seconds"]
            for line in lines
            if line["approach"] == OURS and line["case"] in theirs
        }
        if ours and name != OURS:
            own = sum(theirs[case] for case in ours)
            told = {"against": name, "cpu_ratio": sum(ours.values()) / own}
            yield told | {"paper": PAPER.get(name)}
