"""What the columns of a statement's relations are called in it.

A column that an operator passes on keeps its name, from the stored relation up. An engine that
sees a column under another name at each operator takes it for another column: Spark then finds
no filters for one input of a join in what is known of the other (TPC-H's q20 read eight times as
many rows of lineitem so).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from slackwater.algebra.expr import Column, Expr
from slackwater.algebra.relation import Bag, Expand, Join, Opaque, Relation, Scan, Values
from slackwater.engine.blocks import Block


@dataclass
class Labels:
    """The names of columns, no two of a relation alike in whatever case they are written."""

    block_of: Callable[[Relation], Block | None]
    """The block that an operator is written as."""
    _known: dict[Relation, tuple[str, ...]] = field(default_factory=dict)
    _made: int = 0

    def of(self, node: Relation) -> tuple[str, ...]:
        """The names of a relation's columns."""
        if node not in self._known:
            self._known[node] = tuple(self._unlike(self._wished(node)))
        return self._known[node]

    def _wished(self, node: Relation) -> Sequence[str]:
        """The names that columns have below; empty for those that an operator makes."""
        block = self.block_of(node)
        if block is not None:
            row = tuple(label for leaf in block.leaves for label in self.of(leaf))
            return [_picked(expr, row) for expr in block.row]
        match node:
            case Scan():
                return [f.name for f in node.fields]
            case Values() | Opaque():
                return [""] * node.width
            case Expand():
                row = self.of(node.input)
                ways = zip(*node.projections, strict=True)
                return [_picked(way[0], row) if len({*way}) == 1 else "" for way in ways]
            case Bag():
                return self.of(node.input)[:-1]
            case Join():
                return (*self.of(node.left), *self.of(node.right))[: node.width]
        below = self.of(node.inputs[0]) if node.inputs else ()
        return [*below, *[""] * (node.width - len(below))][: node.width]

    def _unlike(self, wished: Sequence[str]) -> Iterator[str]:
        taken = {label.lower() for label in wished}
        seen: set[str] = set()
        for label in wished:
            if not label or label.lower() in seen:
                label = self._fresh(taken)
            seen.add(label.lower())
            yield label

    def _fresh(self, taken: set[str]) -> str:
        while True:
            self._made += 1
            if (label := f"c{self._made - 1}") not in taken:
                return label


def _picked(expr: Expr, row: Sequence[str]) -> str:
    return row[expr.index] if isinstance(expr, Column) else ""
