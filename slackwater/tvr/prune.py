"""Columns that nobody reads are left out, right above the scans.

Rows with weights are added up by all their columns, which no engine can make fewer by itself;
narrow rows are fewer, too, once equal ones are put together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, singledispatch

from slackwater.algebra.expr import Expr, remap, used_columns
from slackwater.algebra.relation import (
    Aggregate,
    Expand,
    Filter,
    Generate,
    Join,
    Project,
    Relation,
    Scan,
    Union,
    Values,
    Window,
)
from slackwater.sql import build

Needs = dict[Relation, set[int]]


@lru_cache(maxsize=250)
def prune(relation: Relation) -> Relation:
    """The same rows, computed from as few columns as possible."""
    nodes = list(relation.walk())
    needs: Needs = {node: set() for node in nodes}
    needs[relation] = set(range(relation.width))
    for node in reversed(nodes):  # parents first
        for child, wanted in zip(node.inputs, _below(node, needs[node]), strict=True):
            needs[child] |= wanted
    made: dict[Relation, Relation] = {}
    for node in nodes:
        made[node] = _Narrowed(needs, made).of(node)
    return made[relation]


@singledispatch
def _below(node: Relation, needed: set[int]) -> Sequence[set[int]]:
    """What an operator reads of its inputs to give some columns: everything, unless known."""
    return [set(range(child.width)) for child in node.inputs]


@_below.register
def _(node: Filter, needed: set[int]) -> Sequence[set[int]]:
    return [needed | used_columns(node.predicate)]


@_below.register
def _(node: Project, needed: set[int]) -> Sequence[set[int]]:
    return [used_columns(*(node.exprs[i] for i in needed))]


@_below.register
def _(node: Join, needed: set[int]) -> Sequence[set[int]]:
    width = node.left.width
    read = needed | used_columns(node.condition)
    return [{i for i in read if i < width}, {i - width for i in read if i >= width}]


@_below.register
def _(node: Aggregate, needed: set[int]) -> Sequence[set[int]]:
    return [used_columns(*node.keys, *_kept(node.aggs, needed, len(node.keys)))]


@_below.register
def _(node: Union, needed: set[int]) -> Sequence[set[int]]:
    return [set(needed) for _ in node.parts]


@_below.register
def _(node: Window, needed: set[int]) -> Sequence[set[int]]:
    width = node.input.width
    read = used_columns(*_kept(node.calls, needed, width))
    return [{i for i in needed if i < width} | read]


@_below.register
def _(node: Expand, needed: set[int]) -> Sequence[set[int]]:
    return [used_columns(*(p[i] for p in node.projections for i in needed))]


@_below.register
def _(node: Generate, needed: set[int]) -> Sequence[set[int]]:
    read = {i for i in needed if i < node.input.width}
    return [read | used_columns(node.generator)]


def _kept(items: Sequence[Expr], needed: set[int], start: int) -> list[Expr]:
    return [e for i, e in enumerate(items) if start + i in needed]


class _Narrowed:
    """Operators over narrowed inputs; each gives exactly the columns that are needed of it."""

    def __init__(self, needs: Needs, made: dict[Relation, Relation]) -> None:
        self.needs = needs
        self.made = made

    def of(self, node: Relation) -> Relation:
        """The operator, narrowed."""
        needed = sorted(self.needs[node])
        match node:
            case Scan() | Values():
                return build.pick(node, needed)
            case Filter():
                return self._filter(node, needed)
            case Project():
                place = self._places(node.input)
                exprs = tuple(remap(node.exprs[i], place) for i in needed)
                return Project(self.made[node.input], exprs, tuple(node.names[i] for i in needed))
            case Join():
                return self._join(node, needed)
            case Aggregate():
                return self._aggregate(node, needed)
            case Union():
                return Union(tuple(self._exactly(p, needed) for p in node.parts))
            case Window():
                return self._window(node, needed)
            case Expand():
                place = self._places(node.input)
                picked = tuple(tuple(remap(p[i], place) for i in needed) for p in node.projections)
                return Expand(self.made[node.input], picked, tuple(node.names[i] for i in needed))
            case Generate():
                return self._generate(node, needed)
        return build.pick(node.with_children(lambda child: self.made[child]), needed)

    def _places(self, *inputs: Relation) -> Callable[[int], int]:
        """Where the columns of the inputs, side by side, are now."""
        found: dict[int, int] = {}
        before = now = 0
        for child in inputs:
            for i, column in enumerate(sorted(self.needs[child])):
                found[before + column] = now + i
            before += child.width
            now += len(self.needs[child])
        return found.__getitem__

    def _exactly(self, child: Relation, needed: Iterable[int]) -> Relation:
        place = self._places(child)
        return build.pick(self.made[child], [place(i) for i in needed])

    def _filter(self, node: Filter, needed: list[int]) -> Relation:
        place = self._places(node.input)
        kept = Filter(self.made[node.input], remap(node.predicate, place))
        return build.pick(kept, [place(i) for i in needed])

    def _join(self, node: Join, needed: list[int]) -> Relation:
        place = self._places(node.left, node.right)
        left, right = self.made[node.left], self.made[node.right]
        joined = node.replace(left=left, right=right, condition=remap(node.condition, place))
        return build.pick(joined, [place(i) for i in needed])

    def _aggregate(self, node: Aggregate, needed: list[int]) -> Relation:
        place, count = self._places(node.input), len(node.keys)
        kept = [i for i in needed if i >= count]
        made = Aggregate(
            self.made[node.input],
            tuple(remap(k, place) for k in node.keys),
            tuple(remap(node.aggs[i - count], place) for i in kept),
            (*node.names[:count], *(node.names[i] for i in kept)),
        )
        at = {old: count + i for i, old in enumerate(kept)}
        return build.pick(made, [i if i < count else at[i] for i in needed])

    def _window(self, node: Window, needed: list[int]) -> Relation:
        place, width = self._places(node.input), node.input.width
        below = self.made[node.input]
        kept = [i for i in needed if i >= width]
        if not kept:
            return self._exactly(node.input, needed)
        calls = tuple(remap(node.calls[i - width], place) for i in kept)
        made = Window(below, calls, tuple(node.names[i - width] for i in kept))
        at = {old: below.width + i for i, old in enumerate(kept)}
        return build.pick(made, [place(i) if i < width else at[i] for i in needed])

    def _generate(self, node: Generate, needed: list[int]) -> Relation:
        place, width = self._places(node.input), node.input.width
        below = self.made[node.input]
        made = Generate(below, remap(node.generator, place), node.outer, node.added)
        moved = below.width - width
        return build.pick(made, [place(i) if i < width else i + moved for i in needed])
