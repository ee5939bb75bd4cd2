"""Queries that have nothing in common are looked at one by one.

Queries that may share anything, with one another or through others, are a *family*. Those that do,
in a dag, are a *part* of it. What a part costs at its paces, and which paces are found for it, has
nothing to do with other parts: total(dag) = Σ total(part), and so for what is missed. So whoever
changes who shares in one family leaves all others as they were found, and a part that several plans
have in common is searched once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from slackwater.algebra.relation import Relation
from slackwater.planner.alike import tops
from slackwater.planner.sharing import likeness
from slackwater.planner.subplans import Dag, Subplan, has_work, renumbered


def connected(of: Mapping[str, Collection[object]]) -> list[list[str]]:
    """Names that have anything in common, with one another or through others.

    >>> connected({"a": {1}, "b": {2}, "c": {1, 3}, "d": {3}})
    [['a', 'c', 'd'], ['b']]
    """
    groups: list[tuple[list[str], set[object]]] = []
    for name, own in of.items():
        linked = [g for g in groups if not g[1].isdisjoint(own)]
        names = [n for g in linked for n in g[0]]
        groups = [g for g in groups if g[1].isdisjoint(own)]
        groups.append(([*names, name], set(own).union(*(g[1] for g in linked))))
    place = {name: i for i, name in enumerate(of)}
    found = [sorted(names, key=place.__getitem__) for names, _ in groups]
    return sorted(found, key=lambda names: place[names[0]])


def families(queries: Mapping[str, Relation]) -> list[dict[str, Relation]]:
    """Queries by what they may share: pieces that are alike, or equal."""
    found = connected({name: set(_pieces(query)) for name, query in queries.items()})
    return [{name: queries[name] for name in own} for own in found]


def _pieces(query: Relation) -> Iterator[object]:
    working = {node for node in query.walk() if has_work(node)}
    yield from working
    for node in tops(query):
        kind = likeness(node) if node in working else None
        if kind is not None:
            yield kind


def parts(dag: Dag) -> Iterator[Dag]:
    """The subplans of queries that have some in common, as dags of their own."""
    numbers = {query: {s.number for s in dag.of(query)} for query in dag.roots}
    for names in connected(numbers):
        own = sorted(set().union(*(numbers[name] for name in names)))
        place = {number: i for i, number in enumerate(own)}
        yield Dag(
            tuple(_moved(dag.subplans[number], place) for number in own),
            {name: place[dag.roots[name]] for name in names},
        )


def _moved(subplan: Subplan, place: Mapping[int, int]) -> Subplan:
    relation = renumbered(subplan.relation, place.__getitem__)
    return Subplan(place[subplan.number], relation, subplan.queries)
