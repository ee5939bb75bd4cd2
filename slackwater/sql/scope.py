"""Which names are visible where, and the columns they stand for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from slackwater.algebra.expr import Column, Expr
from slackwater.algebra.relation import Relation, Values
from slackwater.errors import SqlError, nearest
from slackwater.types import Schema


@dataclass(frozen=True, eq=False)
class OuterColumn(Expr):
    """A column of an enclosing query, `level` queries further out. Gone after decorrelation."""

    level: int
    index: int


@dataclass(frozen=True)
class Name:
    """A visible column name: what it is called, whose it is, and where it stands."""

    column: str
    qualifier: str | None
    index: int
    qualified_only: bool = False  # the hidden side of a USING column


@dataclass(frozen=True)
class Scope:
    """The names of one query block, over the row of `relation`, inside `parent`."""

    relation: Relation
    names: tuple[Name, ...]
    parent: Scope | None = None
    aliases: frozenset[str] = field(default_factory=frozenset)

    def column(self, index: int) -> Column:
        """The column at a position of this block's row."""
        f = self.relation.schema[index]
        return Column(f.type, f.nullable, index)

    def resolve(self, parts: list[str]) -> tuple[Expr, list[str]] | None:
        """The column that a dotted name means, and the struct fields that follow it.

        The innermost block that knows the name decides; a name known twice there is an error.
        """
        level = 0
        scope: Scope | None = self
        while scope is not None:
            if found := scope.resolve_here(parts):
                index, rest = found
                f = scope.relation.schema[index]
                if level == 0:
                    return Column(f.type, f.nullable, index), rest
                return OuterColumn(f.type, f.nullable, level, index), rest
            scope, level = scope.parent, level + 1
        return None

    def resolve_here(self, parts: list[str]) -> tuple[int, list[str]] | None:
        """Position and rest of a dotted name in this block alone."""
        low = [p.lower() for p in parts]
        if len(parts) > 1:
            matches = [
                n for n in self.names if _is(n.qualifier, low[0]) and n.column.lower() == low[1]
            ]
            if matches:
                return self._one(matches, parts[:2]), parts[2:]
        matches = [n for n in self.names if n.column.lower() == low[0] and not n.qualified_only]
        if matches:
            return self._one(matches, parts[:1]), parts[1:]
        return None

    def _one(self, matches: list[Name], parts: list[str]) -> int:
        if len({m.index for m in matches}) > 1:
            wanted = ".".join(parts)
            owners = [f"{m.qualifier}.{m.column}" if m.qualifier else m.column for m in matches]
            raise SqlError(
                f"Column '{wanted}' is ambiguous.",
                code="AMBIGUOUS_COLUMN",
                hint=f"Write one of: {', '.join(dict.fromkeys(owners))}.",
            )
        return matches[0].index

    def star(self, qualifier: str | None = None) -> list[Name]:
        """The columns that `*` or `qualifier.*` stands for, in order."""
        if qualifier is None:
            return [n for n in self.names if not n.qualified_only]
        own = [n for n in self.names if _is(n.qualifier, qualifier.lower())]
        return sorted(own, key=lambda n: not n.qualified_only)  # as Spark: hidden ones first

    def knows(self, qualifier: str) -> bool:
        """Is there a table or alias of this name in the block?"""
        return qualifier.lower() in self.aliases

    def known_names(self) -> list[str]:
        """Column names a user could have meant, innermost block first."""
        here = [n.column for n in self.names if not n.qualified_only]
        return here + (self.parent.known_names() if self.parent else [])

    def over(self, relation: Relation) -> Scope:
        """The same names over a relation whose row begins with the same columns."""
        return replace(self, relation=relation)


EMPTY_ROW = Values(((),), ())
"""What SELECT without FROM reads: one row without columns."""

NO_COLUMNS = Scope(EMPTY_ROW, ())
"""Where only constants can be written."""


def scope_of(relation: Relation, alias: str | None, parent: Scope | None) -> Scope:
    """The scope of a table or derived table under its alias."""
    names = tuple(Name(f.name, alias, i) for i, f in enumerate(relation.schema))
    aliases = frozenset([alias.lower()] if alias else [])
    return Scope(relation, names, parent, aliases)


def side_by_side(joined: Relation, left: Scope, right: Scope) -> Scope:
    """The scope of a join whose row is left columns, then right columns."""
    width = left.relation.width
    moved = tuple(replace(n, index=n.index + width) for n in right.names)
    return Scope(joined, left.names + moved, left.parent, left.aliases | right.aliases)


def unknown_column(parts: list[str], scope: Scope) -> SqlError:
    """The error for a name that no block knows."""
    wanted = ".".join(parts)
    if len(parts) > 1 and not _known_qualifier(parts[0], scope):
        known = sorted({n.qualifier for n in scope.names if n.qualifier})
        return SqlError(
            f"Column '{wanted}': no table or alias '{parts[0]}' in this query.",
            code="UNKNOWN_COLUMN",
            hint=nearest(parts[0], known) or "The query has no FROM clause.",
        )
    names = scope.known_names()
    if len(parts) > 1:
        own = [n.column for n in scope.names if _is(n.qualifier, parts[0].lower())]
        names = own or names
    return SqlError(
        f"Column '{wanted}' is not known here.",
        code="UNKNOWN_COLUMN",
        hint=nearest(parts[-1], names) or "The query has no columns to choose from.",
    )


def _known_qualifier(name: str, scope: Scope | None) -> bool:
    while scope is not None:
        if scope.knows(name):
            return True
        scope = scope.parent
    return False


def unique_names(names: Iterable[str]) -> str | None:
    """The first name that comes twice, ignoring case."""
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            return name
        seen.add(name.lower())
    return None


def field_index(schema: Schema, name: str) -> int | None:
    """The position of a column by name, ignoring case."""
    for i, f in enumerate(schema):
        if f.name.lower() == name.lower():
            return i
    return None


def _is(qualifier: str | None, lowered: str) -> bool:
    return qualifier is not None and qualifier.lower() == lowered
