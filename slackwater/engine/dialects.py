"""Where the SQL of the two engines differs, besides expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from slackwater.algebra.expr import Expr
from slackwater.engine import local_sql, spark_sql
from slackwater.types import TIMESTAMP, DataType, Field, quote

Grouped = Callable[
    [Sequence[Expr], Sequence[Expr], Sequence[str], str], tuple[list[str], list[str]] | None
]
"""Keys, aggregates, the row they are of, and an alias → what is selected from each group, and what
is made of that under the alias; None where all is as well said at once."""


@dataclass(frozen=True)
class Dialect:
    """One engine's way of writing SQL."""

    name: str
    render: Callable[[Expr, Sequence[str]], str]
    predicate: Callable[[Expr, Sequence[str]], str]  # where NULL is as good as FALSE
    grouped: Grouped | None  # how aggregates that take several calls are written
    quote: Callable[[str], str]
    type_name: Callable[[DataType], str]
    stored: Callable[[Field, str], str]  # a stored column as the engine computes with it
    semi_join: str
    anti_join: str
    same: str  # null-safe equality
    repeat: str  # joins each row with 1 … {weight}
    number: str  # joins each row with each of {numbers}, (0), (1), …, as e.i
    broadcast: str  # hint that some inputs are small
    one_piece: bool  # are all rows in one piece, so that every join hashes one side where it is?
    join_hints: bool  # can it be told how the sides of a join meet?
    prunes_by_equality: bool  # does a scan read less where keys are compared by `=` alone?
    cte_hints: bool  # can it be told whether to compute a common table expression once?
    packs_keys: bool  # is one whole number looked up faster than several?
    scalar_subqueries: bool  # is one value better found first than joined?
    infers_from_in: bool  # does it infer more from `x IN (query)` than from a semi join?
    repeats: bool  # are statements the same at each refresh, but for what they read?


def _quote_local(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _stored_local(field: Field, text: str) -> str:
    """DuckDB reads UTC-adjusted timestamps with a zone; inside we compute on UTC without."""
    return f"CAST({text} AS TIMESTAMP)" if field.type == TIMESTAMP else text


SPARK = Dialect(
    name="spark",
    render=spark_sql.render,
    predicate=spark_sql.render,
    grouped=None,
    quote=quote,
    type_name=lambda t: t.sql,
    stored=lambda field, text: text,
    semi_join="LEFT SEMI JOIN",
    anti_join="LEFT ANTI JOIN",
    same="<=>",
    repeat="LATERAL VIEW explode(sequence(CAST(1 AS BIGINT), {weight})) r AS i",
    number="LATERAL VIEW explode(array({numbers})) e AS i",
    broadcast="/*+ BROADCAST({}) */ ",
    one_piece=False,
    join_hints=True,
    prunes_by_equality=False,
    cte_hints=False,
    packs_keys=True,
    scalar_subqueries=True,
    infers_from_in=True,
    repeats=False,  # names are fresh each time
)

IN_ONE_PIECE = replace(
    SPARK, broadcast="/*+ SHUFFLE_HASH({}), COALESCE(1) */ ", one_piece=True, infers_from_in=False
)
"""Where all rows are in one piece, they are where others need them: nothing is sent anywhere, and
what would be sent is what is hashed. Spark has to be told that what an inner join gives is still in
one piece."""

LOCAL = Dialect(
    name="local",
    render=local_sql.render,
    predicate=local_sql.predicate,
    grouped=local_sql.grouped,
    quote=_quote_local,
    type_name=local_sql.duck_type,
    stored=_stored_local,
    semi_join="SEMI JOIN",
    anti_join="ANTI JOIN",
    same="IS NOT DISTINCT FROM",
    repeat="CROSS JOIN LATERAL (SELECT unnest(range(CAST({weight} AS BIGINT))) AS i) r",
    number="CROSS JOIN (VALUES {numbers}) AS e(i)",
    broadcast="",
    one_piece=False,
    join_hints=False,
    prunes_by_equality=True,
    cte_hints=True,
    packs_keys=False,
    scalar_subqueries=False,
    infers_from_in=False,
    repeats=True,
)
