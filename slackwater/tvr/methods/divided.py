"""An inner join in the forms in which what it joins may be kept: one side, the other, both.

    R ⋈ S ⋈ T = π(σR) ⋈ π(S ⋈ T) = π(σR) ⋈ π(σS) ⋈ π(σT)

Around each of some inputs, with the others put together as they hold together without it, or with
every input by itself. Several inputs are a part, and so is one that is worth keeping by itself,
the one in the middle, too; whether a part is kept is a choice of its own (`planner/budget.py`). A
table that is joined whole is none: it is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache

from slackwater.algebra.relation import Join, Project, Relation
from slackwater.tvr.methods.higher_order import Spread, components, divided, parts, spread

Groups = tuple[tuple[int, ...], ...]


class Injected(Enum):
    """What of joins may be kept besides what operators keep by themselves (000, 5.4.6)."""

    NOTHING = "nothing"
    GIVEN = "given"
    """What operators give in the order that the query is written in: the thesis's MATERIALIZE."""
    ALL = "all"
    """What inputs give in any other order, too: its HASH, the other side of a symmetric join."""


def divisions(join: Join, middles: Iterable[int], injected: Injected) -> Iterator[Project]:
    """The forms around some inputs, and that of all inputs by themselves, each once."""
    if injected is Injected.NOTHING:
        return
    whole = spread(join)
    for groups in _groupings(whole, middles):
        if injected is Injected.ALL or _is_given(whole, groups):
            form = divided(whole, join, groups)
            if form is not None:
                yield form


def _groupings(whole: Spread, middles: Iterable[int]) -> Iterator[Groups]:
    """In what groups inputs are joined; the same groups in another order are the same."""
    around = (((i,), *map(tuple, components(whole.inner, i))) for i in middles)
    alone = tuple((i,) for i in range(len(whole.inner.inputs)))
    found: dict[frozenset[tuple[int, ...]], Groups] = {}
    for groups in (*around, alone):
        found.setdefault(frozenset(groups), groups)
    yield from found.values()


def _is_given(whole: Spread, groups: Groups) -> bool:
    """Does an operator of the query give each of the groups?"""
    return all(len(group) == 1 or group in whole.joined for group in groups)


@lru_cache(500)
def every_division(join: Join) -> tuple[Project, ...]:
    """The forms around any input. A view whose states are chosen asks for them at every refresh."""
    return tuple(divisions(join, range(len(spread(join).inner.inputs)), Injected.ALL))


@dataclass(frozen=True)
class Wish:
    """Parts of joins that are wanted, by signature. They are those of one form of each join, and of
    one form of the join within each of its parts; so of all forms the one that holds most."""

    signatures: frozenset[str]
    _held: dict[Relation, frozenset[str]] = field(default_factory=dict)

    def form(self, join: Join) -> Project | None:
        """The form of a join; None where none holds anything that is wanted. Of two that hold the
        same, the one with fewer joins that nobody wants by themselves."""
        if not self.signatures:
            return None
        best = max(every_division(join), key=self._worth, default=None)
        return best if best is not None and self._holds(best) else None

    def _worth(self, form: Project) -> tuple[int, int, int]:
        own = parts(form)
        wanted = [part for part in own if part.digest() in self.signatures]
        idle = [part for part in own if part not in wanted and _join_of(part) is not None]
        return len(self._holds(form)), len(wanted), -len(idle)

    def _holds(self, form: Project) -> frozenset[str]:
        return frozenset[str]().union(*map(self._within, parts(form)))

    def _within(self, part: Relation) -> frozenset[str]:
        """What is wanted of a part and of its join."""
        if part not in self._held:
            join = _join_of(part)
            form = None if join is None else self.form(join)
            below = frozenset[str]() if form is None else self._holds(form)
            self._held[part] = below | ({part.digest()} & self.signatures)
        return self._held[part]


def _join_of(part: Relation) -> Join | None:
    """The join of its inputs; None if it is one input: joins below that have forms of their own."""
    (below,) = part.inputs
    return below if isinstance(below, Join) and below.how == "inner" else None
