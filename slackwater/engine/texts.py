"""The texts of relations, and how later texts read them: by name, or with the text put in.

A text that is read once stands where it is read. Spark resolves common table expressions one
after the other, each with a pass over the whole statement, and a few dozen of them take it longer
than all else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from slackwater.algebra.relation import Relation

DEEP = 20
"""So far queries stand inside each other; a parser's stack has an end."""


@dataclass
class Texts:
    """What is written so far."""

    needs: Callable[[Relation], Sequence[Relation]]
    """What the text of a relation reads."""
    names: dict[Relation, str] = field(default_factory=dict)
    _ctes: dict[Relation, str] = field(default_factory=dict)
    _inlined: dict[Relation, str] = field(default_factory=dict)
    _depths: dict[Relation, int] = field(default_factory=dict)

    def define(self, node: Relation, text: str, hint: str = "") -> None:
        """A common table expression, which may be read many times."""
        self._ctes[node] = f"{hint}({text})"

    def inline(self, node: Relation, text: str) -> None:
        """A text that is read once."""
        depth = 1 + max((self._depths.get(n, 0) for n in self.needs(node)), default=0)
        if depth == DEEP:
            self.define(node, text)
        else:
            self._depths[node] = depth
            self._inlined[node] = f"({text})"

    def table(self, node: Relation) -> str:
        """What stands in FROM for a relation, to be followed by an alias."""
        return self._inlined.get(node, self.names[node])

    def named(self, node: Relation) -> str:
        """What stands in FROM for a relation under its own name."""
        text = self._inlined.get(node)
        return self.names[node] if text is None else f"{text} AS {self.names[node]}"

    def with_clause(self, read: Sequence[Relation]) -> str:
        """The common table expressions behind what a statement reads."""
        wanted: set[Relation] = set()
        queue = [*read]
        while queue:
            node = queue.pop()
            if node not in wanted and (node in self._ctes or node in self._inlined):
                wanted.add(node)
                queue.extend(self.needs(node))
        texts = [f"{self.names[n]} AS {text}" for n, text in self._ctes.items() if n in wanted]
        return "WITH " + ",\n".join(texts) + "\n" if texts else ""
