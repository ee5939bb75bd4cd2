"""A block's joins written one inside the other, outward from a small input.

An engine that is told which side to send to the other keeps the order it is given, so the order
must be a good one: each input is joined by an equality with those before it, where there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from slackwater.algebra.expr import Call, Expr, conjunction, used_columns
from slackwater.engine.blocks import Block
from slackwater.engine.dialects import Dialect


@dataclass(frozen=True)
class Input:
    """An input of a block as it stands in FROM, the names of its columns, and whether it has few
    rows."""

    text: str
    labels: Sequence[str]
    few: bool


def order(block: Block, start: int) -> list[int]:
    """The block's inputs, outward from one of them; else as they are written."""
    owner = [i for i, leaf in enumerate(block.leaves) for _ in range(leaf.width)]
    links = [
        {owner[c] for c in used_columns(condition)}
        for condition in block.conditions
        if isinstance(condition, Call) and condition.name in ("=", "<=>")
    ]
    found, rest = [start], [i for i in range(len(block.leaves)) if i != start]
    while rest:
        linked = (i for i in rest if any(i in link and link <= {i, *found} for link in links))
        found.append(next(linked, rest[0]))
        rest.remove(found[-1])
    return found


def joined(
    block: Block, start: int, inputs: Sequence[Input], dialect: Dialect
) -> tuple[list[str], str, str]:
    """The texts of the block's columns, its FROM and WHERE, and the hint for its SELECT.

    At each join the input with few rows is sent to the other side, or else what the joins before
    it give.
    """
    starts = [0, *accumulate(leaf.width for leaf in block.leaves)]
    first, *others = order(block, start)
    inner = inputs[first].text
    known = {starts[first] + j: label for j, label in enumerate(inputs[first].labels)}
    waiting = list(block.conditions)
    for i in others:
        here = {c: f"a.{text}" for c, text in known.items()}
        here |= {starts[i] + j: f"t.{label}" for j, label in enumerate(inputs[i].labels)}
        row = [here.get(c, "") for c in range(block.width)]
        now = [c for c in waiting if used_columns(c) <= set(here)]
        waiting = [c for c in waiting if c not in now]
        source = f"FROM {inner} AS a CROSS JOIN {inputs[i].text} AS t{_where(now, row, dialect)}"
        hint = dialect.broadcast.format("t" if inputs[i].few else "a")
        later = used_columns(*block.row, *waiting) & set(here)
        items = ", ".join(f"{here[c]} AS x{c}" for c in sorted(later)) or "1 AS x"
        inner = f"(SELECT {hint}{items} {source})"
        known = {c: f"x{c}" for c in later}
    return row, source, hint


def _where(conditions: Sequence[Expr], row: list[str], dialect: Dialect) -> str:
    return f" WHERE {dialect.predicate(conjunction(conditions), row)}" if conditions else ""
