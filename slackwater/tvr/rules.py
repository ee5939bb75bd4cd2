"""Rules that fill the memo, and where each applies (001, 5.2).

A rule has a pattern: over operators, which of them it is about, and over the edges between a TVR
and its relations, which of these it gives ways for. The memo looks rules up by what it has at hand,
so that a rule is asked only where its pattern fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from slackwater.algebra.relation import Join, Relation

if TYPE_CHECKING:
    from slackwater.tvr.memo import Memo, Ref


@dataclass(frozen=True)
class Operators:
    """A pattern over operators: of some types, or, where none is named, all but some; of joins,
    only some kinds.

    >>> Operators((Join,), joins=("left",)).fits(Join, "inner")
    False
    """

    types: tuple[type[Relation], ...] = (Relation,)
    joins: tuple[str, ...] = ()
    but: tuple[type[Relation], ...] = ()

    def fits(self, kind: type[Relation], how: str) -> bool:
        """Is an operator of this type, if it is a join of this kind, one of them?"""
        if not issubclass(kind, self.types) or issubclass(kind, self.but):
            return False
        return not self.joins or not how or how in self.joins

    def fit(self, node: Relation) -> bool:
        """Is this one?"""
        return self.fits(type(node), _how(node))


ANY = Operators()


class Place(NamedTuple):
    """Where in the memo a rule may apply: at which relation of a TVR, and to which form of it."""

    kind: str
    restricted: bool  # to keys
    after: bool  # at the new time of an expression that changes
    first: bool  # the form by which the TVR is known


@dataclass(frozen=True)
class Rule:
    """Gives members: for a group, and a form of its TVR, relations over other groups.

    The law is the docstring of `apply`. All else is the pattern: `kinds` and what follows say of
    which groups, `operators` for which forms. None: either way.
    """

    name: str
    method: str
    kinds: tuple[str, ...]
    apply: Callable[[Memo, Ref, Relation], Iterable[Relation]]
    operators: Operators = ANY
    restricted: bool | None = None
    after: bool | None = None
    first: bool | None = None

    def fits(self, place: Place) -> bool:
        """Does the pattern over the edges of a TVR fit?"""
        wanted = ((self.restricted, place.restricted), (self.after, place.after))
        return place.kind in self.kinds and all(
            asked is None or asked == found for asked, found in (*wanted, (self.first, place.first))
        )


@dataclass(frozen=True)
class Rewrite:
    """Gives other forms of an expression: the same rows, from other operators."""

    name: str
    method: str
    apply: Callable[[Memo, Relation], Iterable[Relation]]
    operators: Operators = ANY


@dataclass(frozen=True)
class Fitting:
    """Rules by where they apply."""

    rules: tuple[Rule, ...]
    _found: dict[tuple[Place, type[Relation], str], tuple[Rule, ...]] = field(default_factory=dict)

    def of(self, place: Place, form: Relation) -> tuple[Rule, ...]:
        """The rules whose patterns fit, in their order."""
        key = (place, type(form), _how(form))
        if key not in self._found:
            self._found[key] = tuple(
                rule for rule in self.rules if rule.fits(place) and rule.operators.fits(*key[1:])
            )
        return self._found[key]


def _how(node: Relation) -> str:
    return node.how if isinstance(node, Join) else ""
