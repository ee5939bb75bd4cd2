"""Random queries for views, from a seed: every operator, nested, over up to five inputs.

Columns have a kind that says what they can be used for. Columns of kind `rough` (averages of
doubles, variances) may differ in their last digits from one plan to another, so nothing is
grouped, compared or ordered by them: only an outermost query delivers them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.expression_maker import Columns, Source, Sources
from tests.from_maker import FromMaker

ROWS = [
    " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
    " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
    " ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
]
RANGES = [
    "",
    " RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
]
SPARK_RANGES = [" RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING"]


class ViewMaker(FromMaker):
    """Makes one query text after the other over named relations."""

    def query(self, rough: bool = True) -> tuple[str, Columns]:
        """A query over at most five inputs, with its columns."""
        while True:
            self.names = self.inputs = self.wide_joins = 0
            made = self._query(self.rng.randint(0, 3), rough)
            if 1 <= self.inputs <= 5:
                return made

    def _query(self, depth: int, rough: bool = False) -> tuple[str, Columns]:
        shapes = ["plain", "plain", "plain", "grouped", "grouped", "grouped", "distinct", "window"]
        shapes += ["cut"]
        if depth > 0:
            shapes += ["set", "set", "cut", "shared", "best"]
        match self.rng.choice(shapes):
            case "grouped":
                return self._grouped(depth, rough)
            case "distinct":
                return self._plain(depth, "DISTINCT ")
            case "window":
                return self._window(depth)
            case "cut":
                return self._cut(depth)
            case "set":
                return self._set(depth)
            case "shared":
                return self._shared(depth)
            case "best":
                return self._best(depth)
        return self._plain(depth)

    # -- shapes of queries

    def _plain(self, depth: int, word: str = "") -> tuple[str, Columns]:
        sources, tables = self._from(depth)
        kinds = self.kinds(sources, self.rng.randint(1, 4))
        items, columns = self._items(kinds, sources, depth)
        where = self._where(sources, depth)
        return f"SELECT {word}{', '.join(items)} FROM {tables}{where}", columns

    def _of_kinds(self, kinds: Sequence[str], depth: int) -> tuple[str, Columns]:
        sources, tables = self._from(depth)
        items, columns = self._items(kinds, sources, depth)
        where = self._where(sources, depth)
        return f"SELECT {', '.join(items)} FROM {tables}{where}", columns

    def _items(
        self, kinds: Sequence[str], sources: Sources, depth: int
    ) -> tuple[list[str], Columns]:
        columns = tuple((self._name("c"), kind) for kind in kinds)
        items = [f"{self._item(kind, sources, depth)} AS {name}" for name, kind in columns]
        return items, columns

    def _item(self, kind: str, sources: Sources, depth: int) -> str:
        if depth > 0 and kind == "number" and self.rng.random() < 0.15:
            return self._scalar_query(sources)
        return self.value(kind, sources)

    def _grouped(self, depth: int, rough: bool) -> tuple[str, Columns]:
        sources, tables = self._from(depth)
        keys: list[tuple[str, str]] = []
        for kind in self.kinds(sources, self.rng.choice([0, 1, 1, 1, 2, 2])):
            expression = self.value(kind, sources)
            if "." in expression and expression not in dict(keys):
                keys.append((expression, kind))  # a constant would be an ordinal
        items, columns = [], []
        for expression, kind in keys:
            columns.append((self._name("c"), kind))
            items.append(f"{expression} AS {columns[-1][0]}")
        for _ in range(self.rng.randint(1, 3)):
            expression, kind = self._aggregate(sources, rough)
            columns.append((self._name("c"), kind))
            items.append(f"{expression} AS {columns[-1][0]}")
        text = f"SELECT {', '.join(items)} FROM {tables}{self._where(sources, depth)}"
        text += self._group_by([expression for expression, _ in keys])
        if self.rng.random() < 0.25:
            text += f" HAVING {self._having(sources)}"
        return text, tuple(columns)

    def _group_by(self, keys: list[str]) -> str:
        if not keys:
            return ""
        listed = ", ".join(keys)
        roll = self.rng.random()
        if roll < 0.08:
            return f" GROUP BY ROLLUP ({listed})"
        if roll < 0.14:
            return f" GROUP BY CUBE ({listed})"
        if roll < 0.2:
            return f" GROUP BY GROUPING SETS (({listed}), ({keys[-1]}), ())"
        return f" GROUP BY {listed}"

    def _aggregate(self, sources: Sources, rough: bool) -> tuple[str, str]:
        made, kind = self._call(sources, rough)
        if self.rng.random() < 0.2:
            made += f" FILTER (WHERE {self.condition(sources, 0)})"
        return made, kind

    def _call(self, sources: Sources, rough: bool) -> tuple[str, str]:
        kind = self.kind(sources)
        value = self.value(kind, sources)
        number, flag = self.value("number", sources), self.value("flag", sources)
        calls = [
            ("count(*)", "number"),
            (f"count({value})", "number"),
            (f"count(DISTINCT {value})", "number"),
            (f"sum({number})", "number"),
            (f"sum({self.value('price', sources)})", "price"),
            (f"sum({self.value('real', sources)})", "real"),
            (f"sum(DISTINCT {number})", "number"),
            (f"avg({self.value('price', sources)})", "price"),
            (f"min({value})", kind),
            (f"max({value})", kind),
            (f"count_if({flag})", "number"),
            (f"bool_or({flag})", "flag"),
        ]
        if rough:
            calls += [
                (f"avg({number})", "rough"),
                (f"avg({self.value('real', sources)})", "rough"),
                (f"stddev({number})", "rough"),
                (f"var_pop({self.value('real', sources)})", "rough"),
            ]
        return self.rng.choice(calls)

    def _having(self, sources: Sources) -> str:
        number = self.value("number", sources, 0)
        tests = ["count(*) > 1", f"sum({number}) > 2", f"max({number}) < 4", "count(*) = 1"]
        return self.rng.choice(tests)

    def _set(self, depth: int) -> tuple[str, Columns]:
        kinds = self.rng.choices(["number", "number", "text", "price"], k=self.rng.randint(1, 2))
        words = ["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"]
        text, columns = self._of_kinds(kinds, depth - 1)
        for _ in range(self.rng.choice([1, 1, 1, 2])):
            other, _ = self._of_kinds(kinds, depth - 2)
            text = f"({text}) {self.rng.choice(words)} ({other})"
        return text, columns

    def _cut(self, depth: int) -> tuple[str, Columns]:
        text, columns = self._query(depth - 1) if depth > 0 else self._plain(depth)
        name, _ = self.rng.choice(columns)
        how = self.rng.choice(["", " DESC", " DESC NULLS LAST", " NULLS LAST"])
        offset = self.rng.choice(["", "", f" OFFSET {self.rng.randint(1, 3)}"])
        limit = f" LIMIT {self.rng.randint(0, 6)}{offset}"
        alias = self._name("x")
        return f"SELECT * FROM ({text}) {alias} ORDER BY {alias}.{name}{how}{limit}", columns

    def _shared(self, depth: int) -> tuple[str, Columns]:
        """A common table expression used twice."""
        inner, columns = self._query(depth - 1)
        name, a, b = self._name("w"), self._name("s"), self._name("s")
        left, right = Source(f"{name} {a}", a, columns), Source(f"{name} {b}", b, columns)
        on = self._equal(left, right) or "TRUE"
        kinds = self.kinds([left], self.rng.randint(1, 3))
        outer = [(self._name("c"), kind) for kind in kinds]
        items = ", ".join(f"{self.value(k, [left, right])} AS {n}" for n, k in outer)
        word = self.rng.choice(["JOIN", "LEFT JOIN", "FULL JOIN"])
        text = f"WITH {name} AS ({inner}) SELECT {items} FROM {left.text} {word} {right.text}"
        return f"{text} ON {on}", tuple(outer)

    def _window(self, depth: int) -> tuple[str, Columns]:
        """One window that may depend on the order of peers, and one that does not.

        Ties are broken by the select list, so it has every column that the windows use.
        """
        sources, tables = self._from(depth)
        items, columns = self._items(self.kinds(sources, self.rng.randint(1, 2)), sources, 0)
        calls = [self._any_window(sources)]
        if self.rng.random() < 0.4:
            calls.append(self._window_of_peers(sources))
        used = {name for call, _ in calls for name in re.findall(r"\bs\d+\.\w+", call)}
        for source in sources:
            for name, kind in source.columns:
                if f"{source.alias}.{name}" in used:
                    calls.append((f"{source.alias}.{name}", kind))
        for call, kind in calls:
            columns = (*columns, (self._name("c"), kind))
            items.append(f"{call} AS {columns[-1][0]}")
        return f"SELECT {', '.join(items)} FROM {tables}{self._where(sources, depth)}", columns

    def _over(self, sources: Sources) -> tuple[str, str]:
        """PARTITION BY, if any, and ORDER BY."""
        part = self.value(self.kind(sources), sources)
        partition = f"PARTITION BY {part} " if self.rng.random() < 0.8 else ""
        direction = self.rng.choice(["", " DESC", " NULLS LAST"])
        return partition, f"ORDER BY {self.simple('number', sources)}{direction}"

    def _any_window(self, sources: Sources) -> tuple[str, str]:
        if self.rng.random() < 0.4:
            return self._window_of_peers(sources)
        kind = self.kind(sources)
        value = self.simple(kind, sources)
        partition, order = self._over(sources)
        calls = [
            ("row_number()", "number"),
            ("ntile(2)", "number"),
            (f"lag({value})", kind),
            (f"lead({value}, 2)", kind),
        ]
        if self.rng.random() < 0.5:
            call, result = self.rng.choice(calls)
            return f"{call} OVER ({partition}{order})", result
        framed = [(f"first_value({value})", kind), (f"last_value({value})", kind)]
        call, result = self.rng.choice([*framed, *self._window_sums(sources)])
        return f"{call} OVER ({partition}{order}{self.rng.choice(ROWS)})", result

    def _window_of_peers(self, sources: Sources) -> tuple[str, str]:
        """All peers get one value."""
        partition, order = self._over(sources)
        if self.rng.random() < 0.3:
            return (
                f"{self.rng.choice(['rank()', 'dense_rank()'])} OVER ({partition}{order})",
                "number",
            )
        call, result = self.rng.choice(self._window_sums(sources))
        if self.rng.random() < 0.3:
            return f"{call} OVER ({partition.strip()})", result
        frames = RANGES if self.portable else RANGES + SPARK_RANGES
        return f"{call} OVER ({partition}{order}{self.rng.choice(frames)})", result

    def _window_sums(self, sources: Sources) -> list[tuple[str, str]]:
        kind = self.kind(sources)
        value = self.simple(kind, sources)
        return [
            (f"sum({self.simple('number', sources)})", "number"),
            ("count(*)", "number"),
            (f"count({value})", "number"),
            (f"min({value})", kind),
            (f"max({value})", kind),
        ]

    def _best(self, depth: int) -> tuple[str, Columns]:
        """The first rows of each group."""
        text, columns = self._query(depth - 1)
        alias, place = self._name("x"), self._name("c")
        part, order = (f"{alias}.{self.rng.choice(columns)[0]}" for _ in range(2))
        over = f"OVER (PARTITION BY {part} ORDER BY {order})"
        word = self.rng.choice(["row_number()", "rank()"])
        inner = f"SELECT {alias}.*, {word} {over} AS {place} FROM ({text}) {alias}"
        listed = ", ".join(name for name, _ in columns)
        outer = self._name("x")
        return f"SELECT {listed} FROM ({inner}) {outer} WHERE {place} <= 2", columns
