"""Random nested queries over the tables of `conform_data`, from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass

COLUMNS = {
    "t": {"number": ["id", "k", "n", "p"], "text": ["g"], "date": ["d"], "flag": ["b"]},
    "u": {"number": ["id", "k", "w"], "text": ["s"], "date": ["d"], "flag": []},
    "v": {"number": ["k", "m"], "text": ["s"], "date": [], "flag": []},
    "e": {"number": ["k", "z"], "text": ["s"], "date": [], "flag": []},
}
KINDS = ("number", "text", "date", "flag")


@dataclass(frozen=True)
class Source:
    """A table or derived table in FROM, under its alias."""

    text: str
    alias: str
    columns: dict[str, list[str]]

    def column(self, rng: random.Random, kind: str) -> str | None:
        """A column of a kind, if there is one."""
        names = self.columns.get(kind)
        return f"{self.alias}.{rng.choice(names)}" if names else None


class QueryMaker:
    """Makes query texts that Spark's analyzer accepts."""

    def __init__(self, seed: object) -> None:
        self.rng = random.Random(repr(seed))
        self.names = 0

    def query(self) -> str:
        """A query that delivers all its columns under names."""
        return self._query(2)[0]

    def _name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def _query(self, depth: int) -> tuple[str, dict[str, list[str]]]:
        shape = self.rng.choice(["plain", "plain", "grouped", "set", "cut"])
        if shape == "grouped":
            return self._grouped(depth)
        if shape == "set" and depth:
            return self._set(depth)
        text, columns = self._plain(depth)
        if shape == "cut":
            direction = self.rng.choice(["", " desc", " nulls last"])
            text += f" order by 1{direction} limit {self.rng.randint(0, 6)}"
            return f"select * from ({text}) {self._name('x')}", columns
        return text, columns

    def _plain(self, depth: int) -> tuple[str, dict[str, list[str]]]:
        sources, tables = self._from(depth)
        items, columns = [], dict[str, list[str]]()
        for _ in range(self.rng.randint(1, 4)):
            kind = self.rng.choice(KINDS)
            name = self._name("c")
            items.append(f"{self._value(kind, sources, depth)} as {name}")
            columns.setdefault(kind, []).append(name)
        distinct = self.rng.choice(["", "", "distinct "])
        return (
            f"select {distinct}{', '.join(items)} from {tables}{self._where(sources, depth)}",
            columns,
        )

    def _grouped(self, depth: int) -> tuple[str, dict[str, list[str]]]:
        sources, tables = self._from(depth)
        kind = self.rng.choice(["number", "text", "flag"])
        key = self._value(kind, sources, 0)
        k, a, b = self._name("c"), self._name("c"), self._name("c")
        number = self._value("number", sources, 0)
        call = self.rng.choice(["sum", "min", "max", "count", "count(distinct", "avg"])
        close = "))" if "(" in call else ")"
        first = f"{call}{' ' if '(' in call else '('}{number}{close}"
        head = f"select {key} as {k}, {first} as {a}, count(*) as {b} from {tables}"
        having = self.rng.choice(["", f" having count(*) > {self.rng.randint(0, 2)}"])
        by = self.rng.choice([f"rollup ({key})", key, key, "1"])
        text = f"{head}{self._where(sources, depth)} group by {by}{having}"
        columns = {kind: [k]}
        columns.setdefault("number", []).extend([a, b])
        return text, columns

    def _set(self, depth: int) -> tuple[str, dict[str, list[str]]]:
        name = self._name("c")
        word = self.rng.choice(["union", "union all", "intersect", "except", "except all"])
        kind = self.rng.choice(["number", "text"])
        sides = []
        for _ in range(2):
            sources, tables = self._from(depth - 1)
            value = self._value(kind, sources, 0)
            sides.append(f"select {value} as {name} from {tables}{self._where(sources, 0)}")
        return f" {word} ".join(sides), {kind: [name]}

    def _from(self, depth: int) -> tuple[list[Source], str]:
        sources = [self._source(depth)]
        text = sources[0].text
        if self.rng.random() < 0.5:
            right = self._source(depth - 1)
            how = self.rng.choice(["join", "left join", "right join", "full join", "cross join"])
            kind = self.rng.choice(["number", "text"])
            a, b = sources[0].column(self.rng, kind), right.column(self.rng, kind)
            if how == "cross join" or a is None or b is None:
                text = f"{text} cross join {right.text}"
            else:
                text = f"{text} {how} {right.text} on {a} = {b}"
            sources.append(right)
        return sources, text

    def _source(self, depth: int) -> Source:
        alias = self._name("s")
        if depth > 0 and self.rng.random() < 0.4:
            text, columns = self._query(depth - 1)
            return Source(f"({text}) {alias}", alias, columns)
        table = self.rng.choice(["t", "t", "u", "u", "v", "e"])
        return Source(f"{table} {alias}", alias, COLUMNS[table])

    def _where(self, sources: list[Source], depth: int) -> str:
        if self.rng.random() < 0.4:
            return ""
        return f" where {self._value('flag', sources, depth)}"

    def _value(self, kind: str, sources: list[Source], depth: int) -> str:
        found = self.rng.choice(sources).column(self.rng, kind)
        roll = self.rng.random()
        if kind == "flag" and (roll < 0.8 or found is None):
            return self._condition(sources, depth)
        if kind == "number" and depth and roll < 0.2:
            return self._scalar_query(sources)
        if found is None:
            return {"number": "7", "text": "'a'", "date": "date '2024-01-31'"}[kind]
        if roll < 0.6:
            return found
        forms = {
            "number": ["{0} + 1", "-{0}", "coalesce({0}, 0)", "case when {0} > 2 then {0} end"],
            "text": ["upper({0})", "coalesce({0}, 'none')", "{0} || '!'", "trim({0})"],
            "date": ["{0} + 1", "coalesce({0}, date '2000-01-01')", "last_day({0})"],
            "flag": ["not {0}", "{0} is true", "coalesce({0}, false)"],
        }
        return f"({self.rng.choice(forms[kind]).format(found)})"

    def _condition(self, sources: list[Source], depth: int) -> str:
        number = self._value("number", sources, 0)
        simple = [
            f"{number} > {self.rng.randint(0, 5)}",
            f"{number} is null",
            f"{self._value('text', sources, 0)} in ('a', 'b')",
            f"{self._value('text', sources, 0)} not like 'a%'",
            f"{number} between 1 and {self._value('number', sources, 0)}",
        ]
        one = self.rng.choice(simple)
        if depth and self.rng.random() < 0.5:
            one = self._subquery_condition(sources, number)
        if self.rng.random() < 0.3:
            word = self.rng.choice(["and", "or"])
            one = f"({one}) {word} ({self.rng.choice(simple)})"
        return f"({one})" if self.rng.random() < 0.7 else f"(not ({one}))"

    def _subquery_condition(self, sources: list[Source], number: str) -> str:
        inner = self._source(0)
        local = inner.column(self.rng, "number")
        outer = self.rng.choice(sources).column(self.rng, "number")
        where = ""
        if outer is not None and self.rng.random() < 0.6:
            sign = self.rng.choice(["=", "=", "<=>", "<"])
            where = f" where {inner.column(self.rng, 'number')} {sign} {outer}"
        if self.rng.random() < 0.5:
            return f"exists (select 1 from {inner.text}{where})"
        word = self.rng.choice(["in", "not in"])
        return f"{number} {word} (select {local} from {inner.text}{where})"

    def _scalar_query(self, sources: list[Source]) -> str:
        inner = self._source(0)
        outer = self.rng.choice(sources).column(self.rng, "number")
        call = self.rng.choice(["count(*)", f"max({inner.column(self.rng, 'number')})"])
        where = ""
        if outer is not None:
            where = f" where {inner.column(self.rng, 'number')} = {outer}"
        return f"(select {call} from {inner.text}{where})"
