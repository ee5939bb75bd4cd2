"""What stands in FROM for a stored relation: the rows that its segments add up to.

Most segments hold rows of weight one and are read as they are. Where a segment has other
weights, the rows it names are added up, and only they: rows that no such segment mentions pass
untouched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from slackwater.catalog.model import Segment
from slackwater.engine.dialects import Dialect
from slackwater.types import WEIGHT, Map, Schema

Read = Callable[[Sequence[Segment], Schema], str]
"""FROM text for plain files: the columns of the schema and, with it, the weight."""


def content(segments: Sequence[Segment], schema: Schema, dialect: Dialect, read: Read) -> str:
    """FROM text for the multiset of rows that the segments add up to."""
    live = [s for s in segments if s.rows]
    if not live:
        return f"({_no_rows(schema, dialect)})"
    if all(s.min_weight == s.max_weight == 1 for s in live):
        return read(live, schema)
    plain = [s for s in live if s.min_weight == s.max_weight == 1]
    mixed = [s for s in live if s not in plain]
    if not plain:
        return f"({_summed(read(mixed, schema), schema, dialect)})"
    return f"({_split(read(plain, schema), read(mixed, schema), schema, dialect)})"


def _names(schema: Schema, dialect: Dialect, alias: str) -> str:
    return ", ".join(f"{alias}.{dialect.quote(f.name)}" for f in schema)


def _summed(source: str, schema: Schema, dialect: Dialect) -> str:
    """Add the weights of equal rows and give each row that often."""
    names = _names(schema, dialect, "a")
    total = (
        f"SELECT {names}, CAST(SUM(a.{WEIGHT}) AS BIGINT) AS {WEIGHT} FROM {source} AS a"
        f" GROUP BY {names} HAVING SUM(a.{WEIGHT}) > 0"
    )
    repeat = dialect.repeat.format(weight=f"t.{WEIGHT}")
    return f"SELECT {_names(schema, dialect, 't')} FROM ({total}) AS t {repeat}"


def _split(plain: str, mixed: str, schema: Schema, dialect: Dialect) -> str:
    same = " AND ".join(
        f"p.{dialect.quote(f.name)} {dialect.same} m.{dialect.quote(f.name)}"
        for f in schema
        if not isinstance(f.type, Map)
    )
    mentioned = f"(SELECT DISTINCT {_names(schema, dialect, 'x')} FROM {mixed} AS x) AS m"
    names = _names(schema, dialect, "p")
    untouched = f"SELECT {names} FROM {plain} AS p {dialect.anti_join} {mentioned} ON {same}"
    touched = (
        f"SELECT {names}, p.{WEIGHT} FROM {plain} AS p {dialect.semi_join} {mentioned} ON {same}"
    )
    changes = f"SELECT {_names(schema, dialect, 'y')}, y.{WEIGHT} FROM {mixed} AS y"
    summed = _summed(f"({touched} UNION ALL {changes})", schema, dialect)
    return f"{untouched} UNION ALL {summed}"


def _no_rows(schema: Schema, dialect: Dialect) -> str:
    columns = ", ".join(
        f"CAST(NULL AS {dialect.type_name(f.type)}) AS {dialect.quote(f.name)}" for f in schema
    )
    return f"SELECT {columns}, CAST(NULL AS BIGINT) AS {WEIGHT} WHERE FALSE"
