"""What work costs: its amounts by kind, and the seconds that an engine takes for each.

    seconds = Σ price(engine, kind) · amount(kind)

The amounts of a step follow from the estimated rows at each of its operators. The prices begin
with a prior and are fitted to what steps were measured to take (`stats/calibrate.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache

import numpy as np

from slackwater.algebra.expr import Call, Expr, Literal
from slackwater.algebra.relation import (
    Aggregate,
    Bag,
    Distinct,
    Join,
    Opaque,
    Relation,
    Scan,
    SetOp,
    Sort,
    TopK,
    Window,
)
from slackwater.stats.amounts import least, most
from slackwater.stats.reading import columns_read
from slackwater.stats.sound import MOST, is_finite, sound
from slackwater.tvr.restrict import equi_keys

Count = Callable[[Relation], float]
"""The expected rows of a relation."""
Merged = Callable[[Scan], float]
"""The rows that are hashed to read a scan's rows without weights."""


def nothing(scan: Scan) -> float:
    """All rows are stored as they are read."""
    return 0.0


MATCHING = 30
"""To search a row's text for a pattern takes as long as passing on so many rows."""


@dataclass(frozen=True, slots=True)
class Work:
    """How much there is to do, by kind."""

    steps: float = 0.0  # statements
    operators: float = 0.0  # operators in them, which are planned and set up
    scanned: float = 0.0  # values read from storage, of columns that are used
    streamed: float = 0.0  # rows that pass an operator
    hashed: float = 0.0  # rows put into a hash table, or looked up in one
    paired: float = 0.0  # pairs of rows that a join without equality tries
    sorted: float = 0.0  # comparisons
    written: float = 0.0  # values written to storage

    @property
    def amounts(self) -> tuple[float, ...]:
        """By kind, in the order of `KINDS`."""
        return tuple(getattr(self, kind) for kind in KINDS)

    def __add__(self, other: Work) -> Work:
        return Work(*(a + b for a, b in zip(self.amounts, other.amounts, strict=True)))


NO_WORK = Work()
KINDS = tuple(f.name for f in fields(Work))
MEASURES = ("cpu", "latency")

Prices = tuple[float, ...]
"""Seconds for one of each kind of work, in the order of `KINDS`."""

PRIOR: dict[tuple[str, str], Prices] = {
    # steps, operators, scanned, streamed, hashed, paired, sorted, written
    ("local", "cpu"): (0.013, 0.0003, 4e-9, 7e-9, 6e-8, 4e-9, 1e-8, 1e-7),
    ("local", "latency"): (0.012, 0.0003, 2e-9, 5e-9, 3e-8, 3e-9, 6e-9, 8e-8),
    ("spark", "cpu"): (0.28, 0.011, 4.8e-9, 2.3e-8, 2.6e-7, 2e-8, 2.8e-8, 4.4e-7),
    ("spark", "latency"): (0.19, 0.0064, 2.6e-9, 1.3e-8, 1.4e-7, 1e-8, 1.7e-8, 3e-7),
}
"""By engine and measure, what to believe before anything was measured: two cores. Spark's are
fitted to TPC-H's queries and their refreshes at scale factors 10 and 1, in this order."""


@dataclass(frozen=True)
class Model:
    """The prices of the engines."""

    prices: Mapping[tuple[str, str], Prices] = field(default_factory=lambda: PRIOR)

    def __post_init__(self) -> None:
        if self.prices is not PRIOR:
            object.__setattr__(self, "prices", _sound(self.prices))

    def seconds(self, work: Work, engine: str, measure: str = "cpu") -> float:
        """What some work takes."""
        prices = self.prices[engine, measure]
        return sound(sum(p * a for p, a in zip(prices, work.amounts, strict=True)), MOST)


def _sound(prices: Mapping[tuple[str, str], Prices]) -> dict[tuple[str, str], Prices]:
    """What is no price is as it was believed to be before anything was measured."""
    found = dict(PRIOR)
    for key, prior in PRIOR.items():
        said = (*prices.get(key, ()), *prior)[: len(prior)]
        found[key] = tuple(
            p if is_finite(p) and p > 0 else q for p, q in zip(said, prior, strict=True)
        )
    return found


def step_work(outputs: Iterable[Relation], rows: Count, merged: Merged = nothing) -> Work:
    """What it takes to compute some relations in one step and to write them; what they have in
    common is computed once. `merged` are rows that have to be added up before they are read."""
    return Work(steps=1.0) + work_of((), outputs, rows, merged)


def work_of(
    relations: Iterable[Relation],
    written: Iterable[Relation],
    rows: Count,
    merged: Merged = nothing,
    is_given: Callable[[Scan], bool] = lambda scan: False,
) -> Work:
    """What it takes to compute relations, and to write some of them; what is given is not read."""
    written = tuple(written)
    computed = (*relations, *written)
    read = columns_read(computed)
    totals = dict.fromkeys(KINDS, 0.0)
    totals["written"] = sum(rows(output) * output.width for output in written)
    for node in {n for relation in computed for n in relation.walk()}:
        if isinstance(node, Scan):
            if is_given(node):
                continue
            totals["hashed"] += merged(node)
            totals["scanned"] += rows(node) * read[node.source]
        totals["operators"] += 1.0
        for kind, amount in operator_work(node, rows):
            totals[kind] += amount
    return Work(**totals)


def operator_work(node: Relation, rows: Count) -> Iterator[tuple[str, float]]:
    """What one operator takes, its inputs being there: amounts of kinds of work."""
    below = sum(rows(child) for child in node.inputs)
    match node:
        case Scan():
            return
        case Join() if not equi_keys(node):
            yield "paired", rows(node.left) * rows(node.right)
            yield "streamed", rows(node)
        case Join() | Aggregate() | Bag() | Distinct() | SetOp():
            yield "hashed", below
            yield "streamed", rows(node)
        case TopK(_, _, limit, offset) if limit is not None:  # each is compared with those kept
            yield "streamed", below
            yield "sorted", below * np.log2(most(2.0, least(below, float(limit + offset))))
        case Window() | Sort() | TopK():
            yield "streamed", below
            yield "sorted", below * np.log2(most(2.0, below))
        case Opaque():
            yield "hashed", below + rows(node)
        case _:
            yield "streamed", below * (1 + MATCHING * sum(map(_patterns, node.expressions)))


@lru_cache(maxsize=2**14)
def _patterns(expr: Expr) -> int:
    """How often a text is searched for a pattern; the beginning, the end or a part of it is found
    without."""
    return sum(
        isinstance(node, Call) and node.name in ("like", "ilike") and not _is_simple(node.args[1])
        for node in expr.walk()
    )


def _is_simple(pattern: Expr) -> bool:
    """Is a LIKE pattern of the form 'x%', '%x' or '%x%'?"""
    text = pattern.value if isinstance(pattern, Literal) else None
    return isinstance(text, str) and not set("%_") & set(text.removeprefix("%").removesuffix("%"))
