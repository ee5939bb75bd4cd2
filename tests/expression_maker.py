"""Random scalar expressions and conditions, from a seed, over the columns of sources in FROM."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

Columns = tuple[tuple[str, str], ...]
"""Names and kinds."""

KINDS = ("number", "number", "number", "price", "real", "text", "text", "day", "time", "flag")
LITERALS: dict[str, list[str]] = {
    "number": ["0", "1", "2", "3"],
    "price": ["1.50", "2.25", "0.00"],
    "real": ["0.5D", "2.0D"],
    "text": ["'a'", "'b'", "'ä'", "''"],
    "day": ["DATE'2024-02-29'", "DATE'2024-01-31'"],
    "time": ["TIMESTAMP'2024-02-29 09:30:07'"],
    "flag": ["TRUE", "FALSE"],
}
FORMS: dict[str, list[str]] = {
    "number": [
        "{number} + {number}",
        "{number} - 1",
        "-{number}",
        "abs({number})",
        "{number} * 2",
        "{number} % 3",
        "coalesce({number}, 0)",
        "nullif({number}, 1)",
        "CASE WHEN {flag} THEN {number} ELSE {number} END",
        "length({text})",
        "month({day})",
        "hour({time})",
        "datediff({day}, DATE'2024-02-01')",
        "CAST({flag} AS INT)",
        "CAST({price} AS INT)",
    ],
    "price": [
        "{price} + {price}",
        "{price} * 2",
        "-{price}",
        "round({price}, 1)",
        "coalesce({price}, 0.5)",
        "CAST({number} AS DECIMAL(12,2))",
        "CASE WHEN {flag} THEN {price} END",
    ],
    "real": ["{real} + {real}", "{real} * 2", "abs({real})", "CAST({number} AS DOUBLE)"],
    "text": [
        "upper({text})",
        "lower({text})",
        "{text} || {text}",
        "trim({text})",
        "substring({text}, 1, 1)",
        "coalesce({text}, 'none')",
        "concat_ws('-', {text}, {text})",
        "replace({text}, 'a', 'o')",
        "CAST({number} AS STRING)",
        "CASE WHEN {flag} THEN {text} ELSE 'else' END",
    ],
    "day": [
        "date_add({day}, 1)",
        "last_day({day})",
        "trunc({day}, 'MONTH')",
        "coalesce({day}, DATE'2000-01-01')",
        "CAST({time} AS DATE)",
    ],
    "time": ["date_trunc('HOUR', {time})", "CAST({day} AS TIMESTAMP)"],
}
CONDITIONS = [
    "{number} > {number}",
    "{number} <= 2",
    "{number} = {number}",
    "{number} <> 1",
    "{number} BETWEEN 0 AND {number}",
    "{number} IN (1, 2, NULL)",
    "{number} NOT IN (0, 3)",
    "{number} IS NULL",
    "{price} > 1.00",
    "{price} <= {number}",
    "{real} < 2",
    "{real} IS NOT NULL",
    "{text} LIKE 'a%'",
    "{text} IN ('a', 'b', 'ä')",
    "{text} = {text}",
    "{text} <> 'a'",
    "{text} <=> {text}",
    "{text} IS NOT NULL",
    "{day} >= DATE'2024-02-01'",
    "{time} < TIMESTAMP'2024-02-29 12:00:00'",
    "{flag}",
    "NOT {flag}",
]
RAISING = ["{number} DIV {number}", "CAST({text} AS INT)", "{number} * {number}"]
"""Forms that raise for some rows."""


@dataclass(frozen=True)
class Source:
    """A table, view or derived table in FROM, under its alias."""

    text: str
    alias: str
    columns: Columns

    def of(self, kind: str) -> list[str]:
        """Its columns of a kind."""
        return [f"{self.alias}.{name}" for name, k in self.columns if k == kind]


Sources = Sequence[Source]


class Expressions:
    """Scalar expressions and conditions over sources."""

    def __init__(self, rng: random.Random, wild: bool) -> None:
        self.rng = rng
        self.wild = wild

    def column(self, kind: str, sources: Sources) -> str | None:
        """A column of a kind, if there is one."""
        found = [c for s in sources for c in s.of(kind)]
        return self.rng.choice(found) if found else None

    def simple(self, kind: str, sources: Sources) -> str:
        """A column of a kind, or a constant."""
        return self.column(kind, sources) or self.rng.choice(LITERALS[kind])

    def kind(self, sources: Sources) -> str:
        """A kind that some column has."""
        there = [k for k in KINDS if any(k == kind for s in sources for _, kind in s.columns)]
        return self.rng.choice(there or ["number"])

    def kinds(self, sources: Sources, count: int) -> list[str]:
        """Some kinds that columns have."""
        return [self.kind(sources) for _ in range(count)]

    def chosen(self, forms: Sequence[str], sources: Sources) -> str:
        """A form whose places columns can fill; any form if there is none such."""
        there = {kind for s in sources for _, kind in s.columns}
        fit = [f for f in forms if set(re.findall(r"{(\w+)}", f)) <= there]
        return self.rng.choice(fit or list(forms))

    def value(self, kind: str, sources: Sources, depth: int = 1) -> str:
        """An expression of a kind."""
        if depth <= 0 or self.rng.random() < 0.55:
            return self.simple(kind, sources)
        if kind == "flag":
            return self.condition(sources, depth - 1)
        if self.wild and kind == "number" and self.rng.random() < 0.2:
            return f"({self.fill(self.chosen(RAISING, sources), sources, 0)})"
        return f"({self.fill(self.chosen(FORMS[kind], sources), sources, depth - 1)})"

    def fill(self, form: str, sources: Sources, depth: int) -> str:
        """The form with a value in each of its places."""
        parts = form.split("{")
        made = parts[0]
        for part in parts[1:]:
            kind, rest = part.split("}", 1)
            made += self.value(kind, sources, depth) + rest
        return made

    def condition(self, sources: Sources, depth: int = 1) -> str:
        """A boolean expression without subqueries."""
        made = self.fill(self.chosen(CONDITIONS, sources), sources, depth)
        if self.rng.random() < 0.25:
            other = self.fill(self.chosen(CONDITIONS, sources), sources, 0)
            made = f"{made} {self.rng.choice(['AND', 'OR'])} {other}"
        return f"(NOT ({made}))" if self.rng.random() < 0.1 else f"({made})"
