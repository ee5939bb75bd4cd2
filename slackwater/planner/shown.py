"""How many rows subplans change, as refreshes of views and parts have shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from slackwater.algebra.relation import Relation
from slackwater.planner.subplans import Dag, is_subplan, number_of
from slackwater.stats.rows import Estimates, Rows
from slackwater.stats.turnover import Turnover, result
from slackwater.stats.values import Known

Times = NDArray[np.float64]
WHOLE = np.zeros(1), np.ones(1)
"""From the start to the due point."""


@dataclass
class Shown:
    """Of the subplans of a dag. `flow`: the rows of an input between some times; `values`: what is
    known of its values then."""

    dag: Dag
    turnover: Turnover
    known: Known
    flow: Callable[[str, Times, Times], Rows]
    values: Callable[[Mapping[str, tuple[Times, Times]]], Known]
    _factors: dict[int, tuple[bool, float] | None] = field(default_factory=dict)

    def correct(self, number: int, found: Estimates, start: Times, end: Times) -> None:
        """Let estimates between some times know how many rows of a subplan change."""
        factor = self._factor(number)
        if factor is None:
            return
        by_inputs, times = factor
        relation = self.dag.subplans[number].relation
        rows = said = found.of(relation)
        if not by_inputs:
            whole = self.dag.expanded(number)
            said = Estimates(self._arriving(whole, start, end), self.known).of(whole)
        found.tell(relation, Rows(rows.before, said.change.times(times)))

    def _factor(self, number: int) -> tuple[bool, float] | None:
        """How many times the rows that are estimated a subplan changes: as estimated by the changes
        of its inputs, or else by those of sources; None where nothing was seen of it."""
        if number not in self._factors:
            self._factors[number] = self._seen(number) if self.turnover.seen else None
        return self._factors[number]

    def _seen(self, number: int) -> tuple[bool, float] | None:
        subplan, key = self.dag.subplans[number], self._key(number)
        if key not in self.turnover.seen:
            return None
        names = {n: self._key(number_of(n)) if is_subplan(n) else n for n in subplan.inputs}
        flows = {n: self.flow(n, *WHOLE) for n in names}
        known = self.values(dict.fromkeys(names, WHOLE))
        factor = self.turnover.factor(key, subplan.relation, flows, known, names)
        if factor is not None:
            return True, factor
        whole = self.dag.expanded(number)
        factor = self.turnover.factor(key, whole, self._arriving(whole, *WHOLE), self.known)
        return None if factor is None else (False, factor)

    def _key(self, number: int) -> str:
        return result(self.dag.expanded(number))

    def _arriving(self, relation: Relation, start: Times, end: Times) -> dict[str, Rows]:
        return {s.source: self.flow(s.source, start, end) for s in relation.scans()}
