"""Random FROM and WHERE clauses, from a seed: joins of every kind, and subqueries."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Mapping

from tests.expression_maker import Columns, Expressions, Source, Sources

MATCHES = ("number", "number", "number", "text", "text", "price", "day", "flag", "real", "time")
"""Kinds to join on, by how often."""


class FromMaker(Expressions):
    """What a query reads, and which rows of it."""

    def __init__(
        self,
        rng: random.Random,
        relations: Mapping[str, Columns],
        wild: bool = False,
        portable: bool = True,
    ) -> None:
        super().__init__(rng, wild)
        self.portable = portable
        self.relations = dict(relations)
        self.names = 0
        self.inputs = 0
        self.wide_joins = 0

    @abstractmethod
    def _query(self, depth: int) -> tuple[str, Columns]:
        """A query of any shape, with its columns."""

    def _name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    # -- FROM

    def _from(self, depth: int) -> tuple[list[Source], str]:
        sources = [self._source(depth)]
        text = sources[0].text
        for _ in range(self.rng.choice([0, 0, 0, 1, 1, 1, 2])):
            if self.inputs >= 5:
                break
            right = self._source(depth - 1)
            how, on = self._join(sources, right)
            text += f" {how} {right.text}{on}"
            if how not in ("LEFT SEMI JOIN", "LEFT ANTI JOIN"):
                sources.append(right)
        return sources, text

    def _source(self, depth: int) -> Source:
        alias = self._name("s")
        if depth > 0 and self.rng.random() < 0.4:
            text, columns = self._query(depth - 1)
            return Source(f"({text}) {alias}", alias, columns)
        return self._relation(alias)

    def _relation(self, alias: str) -> Source:
        self.inputs += 1
        name = self.rng.choice(list(self.relations))
        return Source(f"{name} {alias}", alias, self.relations[name])

    def _join(self, sources: Sources, right: Source) -> tuple[str, str]:
        """The words before the right side, and the condition after it."""
        on = self._equal(self.rng.choice(sources), right)
        words = ["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]
        words += ["LEFT SEMI JOIN", "LEFT ANTI JOIN"]
        if on is None or (self.rng.random() < 0.12 and not self.wide_joins):
            self.wide_joins += 1
            return self._wide_join(sources, right)
        if self.rng.random() < 0.2:
            on = f"{on} AND {self._residual(sources, right)}"
        return self.rng.choice(words), f" ON {on}"

    def _wide_join(self, sources: Sources, right: Source) -> tuple[str, str]:
        left = self.column("number", sources)
        key = self.column("number", [right])
        if left is None or key is None or self.rng.random() < 0.3:
            return "CROSS JOIN", ""
        word = self.rng.choice(["JOIN", "JOIN", "LEFT JOIN", "FULL JOIN"])
        return word, f" ON {left} {self.rng.choice(['<', '>=', '<>'])} {key}"

    def _equal(self, left: Source, right: Source) -> str | None:
        """An equality of two columns of one kind; None if they share none."""
        shared = [k for k in MATCHES if left.of(k) and right.of(k)]
        if not shared:
            return None
        kind = self.rng.choice(shared)
        sign = self.rng.choice(["=", "=", "=", "=", "<=>"])
        return f"{self.column(kind, [left])} {sign} {self.column(kind, [right])}"

    def _residual(self, sources: Sources, right: Source) -> str:
        kind = self.rng.choice(["number", "text"])
        a, b = self.simple(kind, sources), self.simple(kind, [right])
        return self.rng.choice([f"{a} <> {b}", f"{a} < {b}", self.condition([right], 0)])

    # -- WHERE

    def _where(self, sources: Sources, depth: int) -> str:
        roll = self.rng.random()
        if roll < 0.4:
            return ""
        if roll < 0.7 or self.inputs >= 5:
            return f" WHERE {self.condition(sources)}"
        made = self._match(sources)
        if self.rng.random() < 0.2:
            made = f"{made} OR {self.condition(sources, 0)}"
        elif self.rng.random() < 0.3:
            made = f"{made} AND {self.condition(sources, 0)}"
        return f" WHERE {made}"

    def _match(self, sources: Sources) -> str:
        """A condition with a subquery: EXISTS, IN, or a comparison with a value."""
        inner = self._relation(self._name("s"))
        where = self._correlation(sources, inner)
        word = self.rng.choice(["", "NOT "])
        match self.rng.choice(["exists", "in", "in", "compare"]):
            case "exists":
                return f"{word}EXISTS (SELECT 1 FROM {inner.text}{where})"
            case "in":
                kind = self.rng.choice(["number", "number", "text"])
                value, column = self.simple(kind, sources), self.column(kind, [inner])
                if column is None:
                    return f"{word}EXISTS (SELECT 1 FROM {inner.text}{where})"
                return f"{value} {word}IN (SELECT {column} FROM {inner.text}{where})"
        call = self._call_on(inner)
        sign = self.rng.choice(["=", "<", ">=", "<>"])
        return f"{self.simple('number', sources)} {sign} (SELECT {call} FROM {inner.text}{where})"

    def _correlation(self, sources: Sources, inner: Source) -> str:
        """The WHERE of a subquery: about the outer row, its own rows, both or nothing."""
        parts = []
        if self.rng.random() < 0.65:
            outer = self.rng.choice(sources)
            equal = self._equal(inner, outer)
            parts += [equal] if equal else []
            if self.rng.random() < 0.15:
                parts.append(self._residual([inner], outer))
        if self.rng.random() < 0.25:
            parts.append(self.condition([inner], 0))
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def _call_on(self, inner: Source) -> str:
        number = self.simple("number", [inner])
        return self.rng.choice(["count(*)", f"max({number})", f"sum({number})", f"min({number})"])

    def _scalar_query(self, sources: Sources) -> str:
        """A subquery that gives one value."""
        inner = self._relation(self._name("s"))
        call = self._call_on(inner)
        return f"(SELECT {call} FROM {inner.text}{self._correlation(sources, inner)})"
