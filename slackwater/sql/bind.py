"""SQL text to typed algebra: the entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sqlglot import exp

from slackwater.algebra.expr import is_portable
from slackwater.algebra.relation import Opaque, Relation
from slackwater.errors import SqlError
from slackwater.sql.context import Context, Reasons
from slackwater.sql.parse import parse
from slackwater.sql.queries import bind_query
from slackwater.types import TypeOracle


def context(
    lookup: Callable[[str], Relation | None],
    known_names: Callable[[], list[str]],
    oracle: TypeOracle,
    now: datetime | None = None,
) -> Context:
    """What binding needs, from what the warehouse has."""
    return Context(lookup, known_names, oracle, bind_query, now or datetime.now(UTC))


def bind(text: str, surroundings: Context) -> Relation:
    """The relation of a query text. Mistakes are `SqlError`s that know their place."""
    try:
        tree = parse(text)
        if not isinstance(tree, exp.Query | exp.Values):
            raise SqlError(
                "This is not a query.",
                code="SYNTAX_ERROR",
                hint="A query begins with SELECT, WITH, VALUES or '('.",
                start=0,
            )
        return bind_query(surroundings, tree, None)
    except SqlError as error:
        raise error.located(text) from None


@dataclass(frozen=True)
class _Bound:
    relation: Relation
    reasons: Reasons
    names: Mapping[str, Relation | None]  # what the names in the text meant


class Bound:
    """Texts bound before: right for as long as each name in them means the same."""

    def __init__(self, size: int = 500) -> None:
        self._size = size
        self._known: dict[str, _Bound] = {}

    def bind(self, text: str, surroundings: Context) -> Relation:
        """What `bind` gives, from memory where it can."""
        known = self._known.get(text)
        if known is not None and all(surroundings.lookup(n) == r for n, r in known.names.items()):
            surroundings.reasons.update(known.reasons)
            return known.relation
        names: dict[str, Relation | None] = {}

        def lookup(name: str) -> Relation | None:
            names[name] = surroundings.lookup(name)
            return names[name]

        relation = bind(text, replace(surroundings, lookup=lookup))
        if "NOT_DETERMINISTIC" not in surroundings.reasons and _is_ours(relation):
            self._keep(text, _Bound(relation, dict(surroundings.reasons), names))
        return relation

    def _keep(self, text: str, bound: _Bound) -> None:
        if len(self._known) >= self._size:
            self._known.clear()
        self._known[text] = bound


def _is_ours(relation: Relation) -> bool:
    """Does nothing in it depend on what a Spark session knows?"""
    return all(
        not isinstance(node, Opaque) and all(map(is_portable, node.expressions))
        for node in relation.walk()
    )
