"""What an engine is given: statements, some of whose rows later ones read."""

from __future__ import annotations

from dataclasses import dataclass

HEAVY = 24
"""Operators in a shared part from which on it is computed apart where there are no hints."""


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

    @property
    def heavy(self) -> bool:
        """Are there so many operators that no later statement should hold them again?"""
        return self.operators > HEAVY

    @property
    def size(self) -> int:
        """How much a statement that reads it has to plan for it."""
        return 1 if self.heavy else self.operators
