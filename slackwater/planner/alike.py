"""Which pieces of queries are alike, and queries over what they have in common.

Inner joins are first put into one order, by how often two sources are joined over all queries, so
that queries which join the same sources begin alike. Then pieces that are alike are merged, the
largest first; how each group of them is split says who shares with whom.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from slackwater.algebra.expr import columns, conjunction, remap, used_columns
from slackwater.algebra.relation import Join, Project, Relation, Scan
from slackwater.planner.sharing import likeness, peel, share
from slackwater.planner.subplans import PASSING, has_work
from slackwater.tvr.laws.joins import Inner, flatten

Member = tuple[str, Relation]
"""A query, and a piece of it."""
Edge = frozenset[str]
"""Two sources that are joined."""


@dataclass(frozen=True)
class Group:
    """Pieces that are alike."""

    likeness: object
    members: tuple[Member, ...]

    @property
    def size(self) -> int:
        """Operators of the largest."""
        return max(sum(1 for _ in node.walk()) for _, node in self.members)


Merged = tuple[Group, tuple[Member, ...], Relation]
"""Of a group, members that share a piece, and the piece."""
Split = Callable[[Group], Sequence[Sequence[Member]]]
"""Who shares: the members of a group, in sets."""


def all_together(group: Group) -> Sequence[Sequence[Member]]:
    """Everybody shares."""
    return (group.members,)


def groups(queries: Mapping[str, Relation]) -> list[Group]:
    """Pieces of several queries, or several of one, that are alike: the largest first."""
    found: dict[object, list[Member]] = {}
    for name, query in queries.items():
        for node in tops(query):
            kind = likeness(node)
            if kind is not None and has_work(node):
                found.setdefault(kind, []).append((name, node))
    several = (Group(kind, tuple(own)) for kind, own in found.items() if len(own) > 1)
    return sorted(several, key=lambda g: -g.size)


def tops(query: Relation) -> Iterator[Relation]:
    """Operators that are not merely passed on by the one above."""
    passed = {node.inputs[0] for node in query.walk() if isinstance(node, PASSING)}
    return (node for node in query.walk() if node not in passed)


@dataclass(frozen=True)
class Sharing:
    """Queries over what they share, and these pieces."""

    queries: Mapping[str, Relation]
    pieces: frozenset[Relation]
    merged: tuple[Merged, ...] = ()


def shared(
    queries: Mapping[str, Relation],
    split: Split = all_together,
    first: Collection[object] = (),
) -> Sharing:
    """Queries that read merged pieces wherever pieces are alike and are not split. Those of some
    likenesses are merged `first`; what is merged of larger ones then reads them."""
    candidates = groups(queries)
    if first:
        return _Upon(queries, [g for g in candidates if g.likeness in first], split).sharing()
    merged, instead = _merged(candidates, split)
    replaced = {name: _replaced(name, query, instead, {}) for name, query in queries.items()}
    return Sharing(replaced, frozenset(piece for _, _, piece in merged), tuple(merged))


def _merged(
    candidates: Sequence[Group], split: Split
) -> tuple[list[Merged], dict[Member, Relation]]:
    """What is merged of some groups, the first ones first, and what each member then is."""
    inside: dict[str, set[Relation]] = {}
    instead: dict[Member, Relation] = {}
    merged: list[Merged] = []
    for group in candidates:
        for own in split(group):
            free = tuple(m for m in own if m[1] not in inside.get(m[0], ()))
            for fitting, piece, readers in _fitting(free):
                merged.append((group, fitting, piece))
                for (name, node), reader in zip(fitting, readers, strict=True):
                    instead[name, node] = reader
                    inside.setdefault(name, set()).update(node.walk())
    return merged, instead


class _Upon:
    """Queries over pieces that were merged before: to what is merged then, they are like sources
    (leaves)."""

    def __init__(
        self, queries: Mapping[str, Relation], below: Sequence[Group], split: Split
    ) -> None:
        self._split = split
        self._lower, instead = _merged(below, split)
        pieces = dict.fromkeys(piece for _, _, piece in self._lower)
        leaves = {p: Scan(f"&{i}", f"&{i}", p.schema) for i, p in enumerate(pieces)}
        self._whole: dict[Relation, Relation] = {leaf: piece for piece, leaf in leaves.items()}
        over: dict[Member, Relation] = {}
        for (name, node), reader in instead.items():
            own = {(name, piece): leaf for piece, leaf in leaves.items()}
            over[name, node] = _replaced(name, reader, own, {})
        self._queries: dict[str, Relation] = {}
        self._was: dict[Member, Member] = {}
        for name, query in queries.items():
            became: dict[Relation, Relation] = {}
            self._queries[name] = _replaced(name, query, over, became)
            for old, new in became.items():
                self._was.setdefault((name, new), (name, old))

    def sharing(self) -> Sharing:
        """What is merged of larger pieces, and all of it without leaves."""
        upper, instead = _merged(groups(self._queries), self._split_as_before)
        queries = {
            name: self._expanded(_replaced(name, query, instead, {}))
            for name, query in self._queries.items()
        }
        above = [
            (self._before(group), tuple(self._was[m] for m in members), self._expanded(piece))
            for group, members, piece in upper
        ]
        merged = (*above, *self._lower)
        return Sharing(queries, frozenset(piece for _, _, piece in merged), merged)

    def _before(self, group: Group) -> Group:
        """The pieces as they were in the queries; what came with a leaf was in none of them."""
        members = tuple(self._was[m] for m in group.members if m in self._was)
        return Group(likeness(members[0][1]) if members else None, members)

    def _split_as_before(self, group: Group) -> Sequence[Sequence[Member]]:
        now = {self._was[m]: m for m in group.members if m in self._was}
        sets = self._split(self._before(group)) if now else ()
        return [[now[m] for m in own if m in now] for own in sets]

    def _expanded(self, relation: Relation) -> Relation:
        found: Relation = relation.rewrite(lambda node: self._whole.get(node, node))
        return found


def _fitting(
    members: Sequence[Member],
) -> Iterator[tuple[tuple[Member, ...], Relation, tuple[Relation, ...]]]:
    """Sets of members that can be merged, as large as can be, each with what they share and how
    each reads it."""
    waiting = list(members)
    while len({node for _, node in waiting}) > 1:
        own, found = [waiting[0]], None
        for member in waiting[1:]:
            tried = share([node for _, node in (*own, member)])
            if tried is not None:
                own.append(member)
                found = tried
        waiting = [m for m in waiting if m not in own]
        if found is not None and len({node for _, node in own}) > 1:
            yield tuple(own), *found


def _replaced(
    name: str,
    query: Relation,
    instead: Mapping[Member, Relation],
    known: dict[Relation, Relation],
) -> Relation:
    """A query with others instead of some of its operators. `known`: what each became."""

    def visit(node: Relation) -> Relation:
        if node not in known:
            reader = instead.get((name, node))
            known[node] = node.with_children(visit) if reader is None else reader
        return known[node]

    return visit(query)


# -- one order of joins


def in_one_order(queries: Mapping[str, Relation]) -> dict[str, Relation]:
    """The same queries, their inner joins in one order over all of them."""
    often: Counter[Edge] = Counter()
    for query in queries.values():
        edges = {e for join in _whole_joins(query) for e in _edges(flatten(join))}
        often.update(edges)
    return {name: _reordered(query, often) for name, query in queries.items()}


def _whole_joins(query: Relation) -> Iterator[Join]:
    """Inner joins that are not part of a larger one."""
    inner = [n for n in query.walk() if isinstance(n, Join) and n.how == "inner"]
    below = {child for join in inner for child in join.inputs}
    return (join for join in inner if join not in below)


def _source(relation: Relation) -> str:
    """What an input of a join is known by."""
    scans = peel(relation).core.scans()
    return scans[0].source if len(scans) == 1 else relation.digest()


def _edges(inner: Inner) -> dict[Edge, tuple[int, int]]:
    names = [_source(r) for r in inner.inputs]
    found: dict[Edge, tuple[int, int]] = {}
    for i in range(len(names)):
        for j in range(i + 1, len(names)):
            if inner.equalities(i, j):
                found.setdefault(frozenset((names[i], names[j])), (i, j))
    return found


def _reordered(query: Relation, often: Counter[Edge]) -> Relation:
    whole = set(_whole_joins(query))
    known: dict[Relation, Relation] = {}

    def visit(node: Relation) -> Relation:
        if node not in known:
            if node in whole and isinstance(node, Join):
                inner = flatten(node)
                below = Inner(tuple(map(visit, inner.inputs)), inner.conditions)
                known[node] = _joined(below, _order(inner, often))
            else:
                known[node] = node.with_children(visit)
        return known[node]

    return visit(query)


def _order(inner: Inner, often: Counter[Edge]) -> list[int]:
    """From the most usual pair outward, each input after one that it is joined with."""
    names = [_source(r) for r in inner.inputs]
    edges = sorted(_edges(inner).items(), key=lambda e: (-often[e[0]], sorted(e[0])))
    order: list[int] = []
    while len(order) < len(names):
        usual = (pair for _, pair in edges if len(set(pair) - set(order)) > 0)
        linked = (p for p in usual if not order or set(p) & set(order))
        pair = next(linked, None)
        rest = [i for i in range(len(names)) if i not in order]
        new = sorted((set(pair) if pair else {rest[0]}) - set(order), key=lambda i: names[i])
        order += new
    return order


def _joined(inner: Inner, order: Sequence[int]) -> Relation:
    """The inputs joined in an order, each condition where all that it reads is there."""
    starts: dict[int, int] = {}
    width = 0
    for i in order:
        starts[i] = width
        width += inner.inputs[i].width
    place = {inner.start(i) + c: starts[i] + c for i in order for c in range(inner.inputs[i].width)}
    waiting = [remap(c, place.__getitem__) for c in inner.conditions]
    relation = inner.inputs[order[0]]
    for i in order[1:]:
        end = relation.width + inner.inputs[i].width
        ready = [c for c in waiting if max(used_columns(c), default=0) < end]
        waiting = [c for c in waiting if c not in ready]
        relation = Join(relation, inner.inputs[i], "inner", conjunction(ready))
    row = columns(relation.schema)
    names = tuple(f.name for r in inner.inputs for f in r.schema)
    return Project(relation, tuple(row[place[c]] for c in range(width)), names)
