"""What stands in FROM for a stored relation: the rows that its segments add up to.

Columns that were added after a segment was written are filled in as constants.

Most segments hold rows of weight one and are read as they are. Where a segment has other
weights, its rows are added up, together with the stored rows that it takes away, and only they:
all other rows pass untouched. Where there are few, all are added up, which reads them once.

Where rows have a key, the many that were there before the first deletion are read once, and only
the columns that somebody wants (`engine/keyed.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from slackwater.catalog.model import Segment
from slackwater.engine.dialects import Dialect
from slackwater.engine.keyed import Keyed, age
from slackwater.engine.telling import telling_columns
from slackwater.types import BIGINT, WEIGHT, Map, Schema

SUMMED_BYTES = 2_000_000
"""Stored rows up to this size are all added up with their changes."""

Read = Callable[[Sequence[Segment], Schema], str]
"""FROM text for plain files: the columns of the schema and, with it, the weight."""


def content(
    segments: Sequence[Segment],
    schema: Schema,
    dialect: Dialect,
    read: Read,
    wanted: Schema | None = None,
    key: Sequence[str] = (),
) -> str:
    """FROM text for the multiset of rows that the segments add up to: the columns of `schema` that
    are `wanted` (all, if None). The columns of the `key`, if there is one, are never NULL."""
    wanted = schema if wanted is None else wanted
    read = _filling(_whole(read, schema), dialect)
    live = [s for s in segments if s.rows]
    if not live:
        return f"({_no_rows(wanted, dialect)})"
    if all(s.min_weight == s.max_weight == 1 for s in live):
        return read(live, wanted)
    plain = [s for s in live if s.min_weight == s.max_weight == 1]
    mixed = [s for s in live if s not in plain]
    deleting = [s for s in mixed if s.min_weight < 0]
    if not plain or (deleting and sum(s.bytes for s in plain) < SUMMED_BYTES):
        return f"({_summed(read(live, wanted), wanted, dialect)})"
    if not deleting:
        return f"({_added(read(plain, wanted), read(mixed, wanted), wanted, dialect)})"
    first = min(age(s) for s in deleting)
    if key and (base := [s for s in plain if age(s) < first]):
        since = [s for s in live if s not in base]
        return f"({Keyed(schema, wanted, key, dialect, read).content(base, since)})"
    telling = [schema[i].name for i in telling_columns(schema, live)]
    fields = tuple(f for f in schema if f in wanted or f.name in telling)
    rows, changes = read(plain, fields), read(mixed, fields)
    deletions = changes if deleting == mixed else read(deleting, fields)
    alike = _alike(fields, telling, dialect)
    return f"({_split(rows, changes, deletions, alike, fields, dialect)})"


def weighted(segments: Sequence[Segment], schema: Schema, dialect: Dialect, read: Read) -> str:
    """FROM text for the rows of the segments with their weights, not added up."""
    live = [s for s in segments if s.rows]
    return _filling(read, dialect)(live, schema) if live else f"({_no_rows(schema, dialect)})"


def with_ones(source: str) -> str:
    """FROM text for plain rows, each with the weight one."""
    return f"(SELECT f.*, CAST(1 AS BIGINT) AS {WEIGHT} FROM {source} AS f)"


def _whole(read: Read, schema: Schema) -> Read:
    """Reads files under all columns that they have: Spark takes the columns that are wanted of them
    for that part of their size, and of files with few columns for all of it, and then sends no
    rows to others that could be sent."""

    def whole(segments: Sequence[Segment], wanted: Schema) -> str:
        lacking = {name for segment in segments for name in segment.missing}
        return read(segments, tuple(f for f in schema if f.name not in lacking))

    return whole


def _filling(read: Read, dialect: Dialect) -> Read:
    """Reads each group of segments that lack the same of the columns asked for."""

    def filled(segments: Sequence[Segment], schema: Schema) -> str:
        groups: dict[tuple[str, ...], list[Segment]] = {}
        for segment in segments:
            lacking = tuple(f.name for f in schema if f.name in segment.missing)
            groups.setdefault(lacking, []).append(segment)
        if list(groups) == [()]:
            return read(segments, schema)
        parts = [_with_constants(group, schema, dialect, read) for group in groups.values()]
        return f"({' UNION ALL '.join(parts)})"

    return filled


def _with_constants(
    segments: Sequence[Segment], schema: Schema, dialect: Dialect, read: Read
) -> str:
    missing = segments[0].missing
    source = read(segments, tuple(f for f in schema if f.name not in missing))
    items = [f"f.{WEIGHT}"]
    for f in schema:
        name = dialect.quote(f.name)
        if f.name in missing:
            value = dialect.render(missing[f.name], [])
            items.append(f"CAST({value} AS {dialect.type_name(f.type)}) AS {name}")
        else:
            items.append(f"f.{name}")
    return f"SELECT {', '.join(items)} FROM {source} AS f"


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


def _added(plain: str, changes: str, schema: Schema, dialect: Dialect) -> str:
    """Rows that only come: those of weight one as they are, the others as often as they say."""
    repeat = dialect.repeat.format(weight=f"t.{WEIGHT}")
    repeated = f"SELECT {_names(schema, dialect, 't')} FROM {changes} AS t {repeat}"
    return f"SELECT {_names(schema, dialect, 'p')} FROM {plain} AS p UNION ALL {repeated}"


def _alike(schema: Schema, telling: Sequence[str], dialect: Dialect) -> dict[str, str]:
    """The columns by which stored rows that a change takes away are looked up, and how they are
    compared. A few are enough: rows like a deleted one are added up with it, and stay."""
    every = [f.name for f in schema if not isinstance(f.type, Map)]
    how = "=" if telling else dialect.same
    return {dialect.quote(name): how for name in telling or every}


def _split(
    plain: str,
    changes: str,
    deletions: str,
    alike: dict[str, str],
    schema: Schema,
    dialect: Dialect,
) -> str:
    """Stored rows that are unlike all that is taken away, and the sum of all others.

    A row that only comes again need not meet its stored equals: their number is the sum.
    """
    same = " AND ".join(f"p.{name} {how} m.{name}" for name, how in alike.items())
    names = ", ".join(f"x.{name}" for name in alike)
    taken = f"(SELECT {names} FROM {deletions} AS x WHERE x.{WEIGHT} < 0)"
    names = _names(schema, dialect, "p")
    untouched = f"SELECT {names} FROM {plain} AS p {dialect.anti_join} {taken} AS m ON {same}"
    touched = (
        f"SELECT {names}, p.{WEIGHT} FROM {plain} AS p {dialect.semi_join} {taken} AS m ON {same}"
    )
    changed = f"SELECT {_names(schema, dialect, 'y')}, y.{WEIGHT} FROM {changes} AS y"
    summed = _summed(f"({touched} UNION ALL {changed})", schema, dialect)
    return f"{untouched} UNION ALL {summed}"


def _no_rows(schema: Schema, dialect: Dialect) -> str:
    columns = [(f.type, dialect.quote(f.name)) for f in schema] + [(BIGINT, WEIGHT)]
    nulls = ", ".join(f"CAST(NULL AS {dialect.type_name(t)}) AS {name}" for t, name in columns)
    return f"SELECT {nulls} WHERE FALSE"
