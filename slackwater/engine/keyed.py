"""Rows that have a key, as SQL: those that were there before the first deletion, each with a key
of its own, and what came and went since.

Where each version since is the work of one statement, versions tell everything: a row is there if
no later version deletes its key. A statement deletes rows that were there before it, so what it
brings itself stays. Nothing is added up, and on Spark nothing is exchanged.

Where several statements made one version, a row may have come and gone in it. Then all that came
since is added up: a row that is less than not there takes the one with its key away.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from slackwater.catalog.model import Segment
from slackwater.engine.dialects import Dialect
from slackwater.types import BIGINT, INT, SMALLINT, TINYINT, WEIGHT, Schema

MOST_VERSIONS = 8
"""With more versions since the first deletion, all are added up."""

Version = Sequence[Segment]
"""The segments of one version of a table."""


def age(segment: Segment) -> float:
    """By which segments are in order; those that are not committed come last."""
    return segment.version or float("inf")


@dataclass(frozen=True)
class Keyed:
    """Rows of a `schema` with a `key`, whose columns are never NULL; which columns of them are
    `wanted`, and how segments are read."""

    schema: Schema
    wanted: Schema
    key: Sequence[str]
    dialect: Dialect
    read: Callable[[Sequence[Segment], Schema], str]

    def content(self, base: Sequence[Segment], since: Sequence[Segment]) -> str:
        """The rows of `base`, from before the first deletion, after all that happened `since`."""
        versions = [[s for s in since if age(s) == v] for v in sorted(set(map(age, since)))]
        same = self._same([*base, *since])
        if len(versions) > MOST_VERSIONS or not all(map(_is_one_statement, versions)):
            return self._added_up(base, since, same)
        last = max(i for i, version in enumerate(versions) if _deletes(version))
        texts = [self._stayed(self.read(base, self._fields), self._deleted(versions), same)]
        if early := [i for i in range(last) if _inserts(versions[i])]:
            texts.append(self._came_and_stayed(versions, early, same))
        if late := [s for version in versions[last:] for s in version if s.max_weight > 0]:
            names = self._names(self.wanted, "n")
            texts.append(f"SELECT {names} FROM {self.read(late, self.wanted)} AS n WHERE n.{_CAME}")
        return " UNION ALL ".join(texts)

    @property
    def _fields(self) -> Schema:
        """The columns to read where keys are compared."""
        return tuple(f for f in self.schema if f in self.wanted or f.name in self.key)

    @property
    def _keys(self) -> Schema:
        return tuple(f for f in self.schema if f.name in self.key)

    def _names(self, schema: Schema, alias: str) -> str:
        return ", ".join(f"{alias}.{self.dialect.quote(f.name)}" for f in schema)

    def _same(self, segments: Sequence[Segment]) -> str:
        """The condition that a row `p` has the key of a row `m`.

        Several whole numbers are put together into one, where their ranges are known and leave
        room for that: Spark looks one up four times as fast as two.
        """
        names = [self.dialect.quote(f.name) for f in self._keys]
        strides = self._strides(segments) if self.dialect.packs_keys and len(names) > 1 else None
        if strides is None:
            return " AND ".join(f"p.{name} = m.{name}" for name in names)
        return " = ".join(
            " + ".join(
                f"(CAST({alias}.{name} AS BIGINT) - {low}L) * {stride}L"
                for name, (low, stride) in zip(names, strides, strict=True)
            )
            for alias in "pm"
        )

    def _strides(self, segments: Sequence[Segment]) -> list[tuple[int, int]] | None:
        """For each column of the key its lowest value, and by what it is multiplied."""
        found, stride = [], 1
        for f in self._keys:
            ranges = [s.stats.get(f.name) for s in segments]
            if f.type not in _WHOLE_NUMBERS or None in ranges:
                return None
            low, high = min(r[0] for r in ranges if r), max(r[1] for r in ranges if r)
            found.append((low, stride))
            stride *= high - low + 1
        return found if stride < 2**62 else None

    def _stayed(self, rows: str, deleted: str, condition: str) -> str:
        """Rows whose keys are not deleted, as the condition says."""
        return (
            f"SELECT {self._names(self.wanted, 'p')} FROM {rows} AS p {self.dialect.anti_join}"
            f" ({deleted}) AS m ON {condition}"
        )

    def _deleted(self, versions: Sequence[Version]) -> str:
        """The keys that some versions delete."""
        segments = [s for version in versions for s in version if s.min_weight < 0]
        names, source = self._names(self._keys, "x"), self.read(segments, self._keys)
        return f"SELECT {names} FROM {source} AS x WHERE x.{_WENT}"

    def _came_and_stayed(self, versions: Sequence[Version], early: Sequence[int], same: str) -> str:
        """What some versions brought, unless a later one deletes it."""
        if len(early) == 1:
            (i,) = early
            inserted = f"(SELECT * FROM {self.read(versions[i], self._fields)} WHERE {_CAME})"
            return self._stayed(inserted, self._deleted(versions[i + 1 :]), same)
        brought = [self._of(versions[i], i, self._fields, _CAME) for i in early]
        after = range(early[0] + 1, len(versions))
        deleted = [self._of(versions[i], i, self._keys, _WENT) for i in after]
        return self._stayed(
            f"({' UNION ALL '.join(brought)})",
            " UNION ALL ".join(deleted),
            f"{same} AND m.{_VERSION} > p.{_VERSION}",
        )

    def _of(self, version: Version, number: int, fields: Schema, condition: str) -> str:
        names, source = self._names(fields, "x"), self.read(version, fields)
        return f"SELECT {names}, {number} AS {_VERSION} FROM {source} AS x WHERE x.{condition}"

    def _added_up(self, base: Sequence[Segment], since: Sequence[Segment], same: str) -> str:
        """Rows whose keys are not taken away, and the rows that came, all changes added up."""
        names, changes = self._names(self._fields, "a"), self.read(since, self._fields)
        total = f"SELECT {names} FROM {changes} AS a GROUP BY {names} HAVING SUM(a.{WEIGHT})"
        stayed = self._stayed(self.read(base, self._fields), f"{total} < 0", same)
        came = f"SELECT {self._names(self.wanted, 'n')} FROM ({total} > 0) AS n"
        return f"{stayed} UNION ALL {came}"


_WHOLE_NUMBERS = (TINYINT, SMALLINT, INT, BIGINT)
_VERSION = "__v"
_CAME, _WENT = f"{WEIGHT} > 0", f"{WEIGHT} < 0"


def _is_one_statement(version: Version) -> bool:
    """Did one statement write all of it, each row once? Each writes into a directory of its own."""
    unit = all(s.min_weight >= -1 and s.max_weight <= 1 for s in version)
    return unit and len({os.path.dirname(s.path) for s in version}) == 1


def _deletes(version: Version) -> bool:
    return any(s.min_weight < 0 for s in version)


def _inserts(version: Version) -> bool:
    return any(s.max_weight > 0 for s in version)
