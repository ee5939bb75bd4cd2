"""Other ways to choose states under a budget, for comparison: the table of the thesis, and all
subsets.

The table is over (operator, what is asked, budget in units). Costs never grow with the budget, so
between two budgets with the same cost nothing else is computed (000, 5.3).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, combinations
from math import inf

from slackwater.planner.budget import CHANGE, ROWS, Action, Kept, Operator, Way


@dataclass
class Grid:
    """The dynamic program of 000, 5.2.3, with the binary search of 5.3."""

    kept: Mapping[str, Kept]
    computed: int = 0
    _known: dict[tuple[Operator, int], dict[int, float]] = field(default_factory=dict)

    def cost(self, root: Operator, budget: int) -> float:
        """The least seconds of a view within a budget."""
        return min(self.of(root, ask, budget) for ask in (CHANGE, ROWS))

    def of(self, operator: Operator, ask: int, budget: int) -> float:
        """The least seconds for what is asked of an operator and all below it."""
        if not ask:
            return 0.0
        if budget < 0:
            return inf
        known = self._known.setdefault((operator, ask), {})
        if budget not in known:
            below = [known[m] for m in sorted(known) if m < budget][-1:]
            above = [known[m] for m in sorted(known) if m > budget][:1]
            if below and below == above:
                known[budget] = below[0]  # it never grows with the budget
            else:
                self.computed += 1
                known[budget] = min(self._by(a, ask, budget) for a in operator.actions)
        return known[budget]

    def whole(self, operator: Operator, ask: int, budget: int) -> list[float]:
        """The costs at all budgets up to one, by halving ranges whose ends differ."""

        def fill(low: int, high: int) -> None:
            if high - low > 1 and self.of(operator, ask, low) != self.of(operator, ask, high):
                middle = (low + high) // 2
                fill(low, middle)
                fill(middle, high)

        self.of(operator, ask, 0)
        self.of(operator, ask, budget)
        fill(0, budget)
        return [self.of(operator, ask, m) for m in range(budget + 1)]

    def _by(self, action: Action, ask: int, budget: int) -> float:
        way = action.way(ask)
        left = budget - sum(int(self.kept[s].bytes) for s in action.keeps)
        if way is None or left < 0:
            return inf
        own = way.seconds + sum(self.kept[s].seconds for s in action.keeps)
        return own + self._split(tuple(zip(action.inputs, way.asks, strict=True)), left)

    def _split(self, asked: Sequence[tuple[Operator, int]], budget: int) -> float:
        """A budget divided among the inputs in the best way."""
        if not asked:
            return 0.0
        (first, ask), *others = asked
        if not others:
            return self.of(first, ask, budget)
        return min(
            self.of(first, ask, m) + self._split(others, budget - m) for m in range(budget + 1)
        )


def by_all_subsets(root: Operator, kept: Mapping[str, Kept], budget: float) -> float:
    """The least seconds of a view over all sets of states that fit."""
    names = sorted(kept)
    subsets = chain.from_iterable(combinations(names, n) for n in range(len(names) + 1))
    fitting = (frozenset(s) for s in subsets if sum(kept[n].bytes for n in s) <= budget)
    return min(
        (seconds(root, ask, states, kept) for states in fitting for ask in (CHANGE, ROWS)),
        default=inf,
    )


def seconds(
    operator: Operator, ask: int, states: frozenset[str], kept: Mapping[str, Kept]
) -> float:
    """With exactly these states, each operator doing what is best."""
    if not ask:
        return 0.0
    found = [inf]
    for action in _with(operator, states):
        way = action.way(ask)
        if way is not None:
            own = way.seconds + sum(kept[s].seconds for s in action.keeps)
            asked = zip(action.inputs, way.asks, strict=True)
            found.append(own + sum(seconds(o, a, states, kept) for o, a in asked))
    return min(found)


def _with(operator: Operator, states: frozenset[str]) -> Iterator[Action]:
    return (a for a in operator.actions if states.issuperset(a.keeps))


# -- random operators


@dataclass
class Maker:
    """Random trees of operators like those of queries."""

    rng: random.Random
    kept: dict[str, Kept] = field(default_factory=dict)

    def state(self) -> tuple[str, ...]:
        """A state of its own size."""
        name = f"s{len(self.kept)}"
        build = self.rng.choice([0.0, 0.0, self.rng.random()])
        self.kept[name] = Kept(self.rng.randint(0, 6), build)
        return (name,)

    def operator(self, depth: int) -> Operator:
        """An aggregate, a join or a sort, or a table."""
        kind = self.rng.choice(["table", "aggregate", "join", "join", "materialize"])
        if depth == 0 or kind == "table":
            return self.table()
        if kind == "aggregate":
            return self.aggregate(self.operator(depth - 1))
        if kind == "materialize":
            return self.materialized(self.operator(depth - 1))
        return self.join(self.operator(depth - 1), self.operator(depth - 1))

    def time(self, factor: float = 1.0) -> float:
        return round(factor * self.rng.random(), 3)

    def table(self) -> Operator:
        """It changes by little, and is read in full."""
        return Operator("table", (Action((), (), Way(self.time(0.1)), Way(self.time(4))),))

    def aggregate(self, below: Operator) -> Operator:
        """Actions 4 and 5 of the thesis; some cannot give a change without their state."""
        anew, scan, little = self.time(3), self.time(), self.time(0.2)
        dropped = None if self.rng.random() < 0.2 else Way(anew, (ROWS,))
        return Operator(
            "aggregate",
            (
                Action((), (below,), dropped, Way(anew, (ROWS,))),
                Action(
                    self.state(),
                    (below,),
                    Way(little, (CHANGE,)),
                    Way(little + scan, (CHANGE,)),
                    Way(little + scan, (CHANGE,)),
                ),
            ),
        )

    def materialized(self, below: Operator) -> Operator:
        """Actions 1 and 2."""
        scan, little = self.time(), self.time(0.2)
        return Operator(
            "materialize",
            (
                Action((), (below,), Way(little, (CHANGE,)), Way(little, (ROWS,))),
                Action(
                    self.state(), (below,), Way(little, (CHANGE,)), Way(little + scan, (CHANGE,))
                ),
            ),
        )

    def join(self, left: Operator, right: Operator) -> Operator:
        """Action 6, the same for the other side, both sides and neither."""
        a, b = self.state(), self.state()
        full = self.time(3)
        sides = (((), 3, 3), (a, 1, 3), (b, 3, 1), (a + b, 1, 1))
        actions = [
            Action(
                keeps,
                (left, right),
                Way(self.time(), (on_left, on_right)),
                Way(full, (min(on_left, 2), min(on_right, 2))),
            )
            for keeps, on_left, on_right in sides
        ]
        return Operator("join", tuple(actions))


@cache
def random_tree(seed: object, depth: int = 3) -> tuple[Operator, dict[str, Kept]]:
    """A tree with at most a dozen states."""
    rng = random.Random(f"budget/{seed}")
    while True:
        maker = Maker(rng)
        root = maker.operator(depth)
        if len(maker.kept) <= 10:
            return root, maker.kept
