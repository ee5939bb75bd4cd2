"""What an engine is given: statements, some of whose rows later ones read."""

from __future__ import annotations

from dataclasses import dataclass

HEAVY = (24, 36, 60, 90)
"""Operators in a shared part beyond which it is computed apart where there are no hints: the first
of these with which few parts are, each of which is a job of its own."""
MOST_APART = 2
"""As many are few."""


@dataclass(frozen=True)
class Program:
    """Parts that several later ones read, each computed once under its name; then the rest."""

    parts: tuple[Part, ...]
    sql: str
    size: int  # operators behind the statement, those of parts that are not heavy repeated


@dataclass(frozen=True)
class Part:
    """A statement whose rows later ones read under its name."""

    name: str
    sql: str
    operators: int  # behind it, those of other parts repeated
    small: bool
    most: int = HEAVY[0]  # operators that later statements may hold again

    @property
    def heavy(self) -> bool:
        """Are there so many operators that no later statement should hold them again?"""
        return self.operators > self.most

    @property
    def size(self) -> int:
        """How much a statement that reads it has to plan for it."""
        return 1 if self.heavy else self.operators
