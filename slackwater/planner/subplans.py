"""Queries cut into pieces that are run at paces of their own: subplans (000, 3.1.2 and 4.1.2).

A query is cut below operators that hold rows back (aggregates, distinct, windows, top-k, set
operations) wherever more than filters and projections follow, and, where queries share, at every
piece that several read. What a piece gives is a log of changes; who reads it remembers how far it
has read. A *path* is one input of one subplan: rows wait there until the path is flushed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from slackwater.algebra.relation import (
    Aggregate,
    Distinct,
    Expand,
    Filter,
    Join,
    Opaque,
    Project,
    Relation,
    Scan,
    SetOp,
    TopK,
    Union,
    Window,
)
from slackwater.errors import InternalError

BLOCKING = (Aggregate, Distinct, Window, TopK, SetOp, Opaque)
"""Operators whose rows may be taken back by later input, and are better held back."""
PASSING = (Filter, Project)
LIGHT = (*PASSING, Expand, Union)
"""Operators that merely pass rows on: those of one input, or more of them."""

Path = tuple[int, str]
"""A subplan's number and one of its inputs."""


@dataclass(frozen=True)
class Subplan:
    """A piece of some queries: over sources, and other subplans by name."""

    number: int
    relation: Relation
    queries: frozenset[str]

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """What it reads, each once."""
        return tuple(dict.fromkeys(scan.source for scan in self.relation.scans()))

    @cached_property
    def children(self) -> tuple[int, ...]:
        """The subplans among its inputs."""
        return tuple(number_of(name) for name in self.inputs if is_subplan(name))

    @property
    def paths(self) -> tuple[Path, ...]:
        """Its inputs, as paths."""
        return tuple((self.number, name) for name in self.inputs)


def name_of(number: int) -> str:
    """What a subplan is called where it is read.

    >>> name_of(3), number_of("#3"), is_subplan("#3"), is_subplan("t1")
    ('#3', 3, True, False)
    """
    return f"#{number}"


def number_of(name: str) -> int:
    """The subplan of a name."""
    return int(name[1:])


def is_subplan(name: str) -> bool:
    """Is it the name of a subplan, not of a source?"""
    return name.startswith("#")


@dataclass(frozen=True)
class Dag:
    """Subplans, each after those that it reads, and which of them gives each query's result."""

    subplans: tuple[Subplan, ...]
    roots: Mapping[str, int]

    def __post_init__(self) -> None:
        for place, subplan in enumerate(self.subplans):
            if subplan.number != place or any(c >= place for c in subplan.children):
                raise InternalError(f"subplan {subplan.number} is out of order")

    @cached_property
    def parents(self) -> tuple[tuple[int, ...], ...]:
        """By number, the subplans that read each."""
        found: list[list[int]] = [[] for _ in self.subplans]
        for subplan in self.subplans:
            for child in subplan.children:
                found[child].append(subplan.number)
        return tuple(map(tuple, found))

    def of(self, query: str) -> Iterator[Subplan]:
        """The subplans that a query needs."""
        return (s for s in self.subplans if query in s.queries)

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """All sources, each once."""
        names = (name for s in self.subplans for name in s.inputs if not is_subplan(name))
        return tuple(dict.fromkeys(names))

    def expanded(self, number: int) -> Relation:
        """A subplan's rows over sources alone."""
        return self._expanded[number]

    def over_sources(self, node: Relation) -> Relation:
        """A relation over subplans, over sources alone."""
        return _whole(node, self._expanded)

    def with_inside(self, number: int, inside: Collection[int]) -> Subplan:
        """A subplan with some others in it, which it reads, or which those read."""
        own = self.subplans[number]
        below = {n: self.with_inside(n, inside).relation for n in own.children if n in inside}
        return Subplan(number, _whole(own.relation, below), own.queries) if below else own

    @cached_property
    def only_readers(self) -> tuple[int | None, ...]:
        """By number, the subplan that reads it, if that is all."""
        roots = set(self.roots.values())
        return tuple(
            readers[0] if len(readers) == 1 and number not in roots else None
            for number, readers in enumerate(self.parents)
        )

    @cached_property
    def only_read(self) -> tuple[tuple[int, ...], ...]:
        """By number, the subplans that nothing else reads."""
        return tuple(
            tuple(c for c in subplan.children if self.only_readers[c] == subplan.number)
            for subplan in self.subplans
        )

    @cached_property
    def _expanded(self) -> dict[int, Relation]:
        found: dict[int, Relation] = {}
        for subplan in self.subplans:
            found[subplan.number] = _whole(subplan.relation, found)
        return found


def _whole(relation: Relation, below: Mapping[int, Relation]) -> Relation:
    """With subplans put in, of which that is known."""

    def whole(node: Relation) -> Relation:
        if isinstance(node, Scan) and is_subplan(node.source):
            return below.get(number_of(node.source), node)
        return node

    found: Relation = relation.rewrite(whole)
    return found


def cut(
    queries: Mapping[str, Relation],
    blocking: bool = True,
    sharing: bool = True,
    at: Collection[Relation] = (),
) -> Dag:
    """Queries in normal form as subplans: cut where rows are `blocking`, where queries share
    pieces, and `at` others. Without `sharing`, queries have nothing in common."""
    if sharing:
        return _Cutting(queries, blocking, shared=True, at=at).dag()
    return united(
        [_Cutting({name: query}, blocking, shared=False).dag() for name, query in queries.items()]
    )


def united(dags: Iterable[Dag]) -> Dag:
    """Several that have nothing in common, as one."""
    found: list[Subplan] = []
    roots: dict[str, int] = {}
    for own in dags:
        start = len(found)
        for subplan in own.subplans:
            relation = renumbered(subplan.relation, lambda n, start=start: n + start)
            found.append(Subplan(start + subplan.number, relation, subplan.queries))
        roots |= {name: start + root for name, root in own.roots.items()}
    return Dag(tuple(found), roots)


def renumbered(relation: Relation, place: Mapping[int, int] | object) -> Relation:
    """A subplan's relation where other subplans have other numbers."""

    def moved(node: Relation) -> Relation:
        if isinstance(node, Scan) and is_subplan(node.source):
            number = place(number_of(node.source))  # type: ignore[operator]
            return node.replace(source=name_of(number), name=name_of(number))
        return node

    result: Relation = relation.rewrite(moved)
    return result


class _Cutting:
    """The pieces of some queries."""

    def __init__(
        self,
        queries: Mapping[str, Relation],
        blocking: bool,
        shared: bool,
        at: Collection[Relation] = (),
    ) -> None:
        self._queries = queries
        self._readers = self._by_reader()
        self._cuts = {*queries.values(), *at}
        for query in queries.values():
            if blocking:
                self._cuts |= {self._lifted(n) for n in held_back(query)}
            if shared:
                self._cuts |= {self._lifted(n) for n in query.walk() if self._is_shared(n)}
        self._found: list[Subplan] = []
        self._numbers: dict[Relation, int] = {}

    def _by_reader(self) -> dict[Relation, set[Relation]]:
        """By operator, the operators right above it."""
        found: dict[Relation, set[Relation]] = {}
        for node in {n for query in self._queries.values() for n in query.walk()}:
            for below in node.inputs:
                found.setdefault(below, set()).add(node)
        return found

    def _is_shared(self, node: Relation) -> bool:
        """Do several operators read it, and is it more than a source passed on?"""
        return len(self._readers.get(node, ())) > 1 and has_work(node)

    def _lifted(self, node: Relation) -> Relation:
        """The last of the operators that merely pass its rows on, to one reader each."""
        while node not in self._cuts:
            readers = self._readers.get(node, set())
            if len(readers) != 1 or not isinstance(reader := next(iter(readers)), PASSING):
                break
            node = reader
        return node

    def dag(self) -> Dag:
        """All of them."""
        for query in self._queries.values():
            for node in query.walk():
                if node in self._cuts and node not in self._numbers:
                    self._add(node)
        return Dag(tuple(self._found), {n: self._numbers[q] for n, q in self._queries.items()})

    def _add(self, node: Relation) -> None:
        users = frozenset(n for n, query in self._queries.items() if node in set(query.walk()))
        relation: Relation = node.with_children(self._over)
        self._numbers[node] = len(self._found)
        self._found.append(Subplan(len(self._found), relation, users))

    def _over(self, node: Relation) -> Relation:
        """What a piece reads here: another piece, or what it computes itself."""
        if node in self._numbers:
            name = name_of(self._numbers[node])
            return Scan(name, name, node.schema)
        changed: Relation = node.with_children(self._over)
        return changed


def held_back(query: Relation) -> Iterator[Relation]:
    """Operators that hold rows back below more than what merely passes rows on."""
    seen: set[tuple[Relation, bool]] = set()
    stack = [(query, False)]
    while stack:
        node, below_work = stack.pop()
        if (node, below_work) in seen:
            continue
        seen.add((node, below_work))
        if below_work and isinstance(node, BLOCKING):
            yield node
        works = below_work or not isinstance(node, LIGHT)
        stack += [(child, works) for child in node.inputs]


def has_work(node: Relation) -> bool:
    """Is more done than passing on the rows of one source?"""
    return any(isinstance(below, (Join, *BLOCKING)) for below in node.walk())
