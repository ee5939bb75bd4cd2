"""SQL text to typed algebra: the entry."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from sqlglot import exp

from slackwater.algebra.relation import Relation
from slackwater.errors import SqlError
from slackwater.sql.context import Context
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
