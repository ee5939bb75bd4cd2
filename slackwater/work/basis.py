"""What forms of views are made from, so that none is kept or made when that is another.

    form of a view = its query, with those of all views below it put in, over parts

So a form goes with the definition of any of these views, and a plan that took long is applied only
where all of them are still as it found them. Tables need no look: one that a view reads is not
dropped, and columns that it is given later change no view.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from slackwater.catalog.model import View
from slackwater.catalog.snapshot import Snapshot
from slackwater.errors import StateError


@dataclass(frozen=True)
class Basis:
    """What forms were made from: by view, the definitions that its rows follow from, none where
    there was no such view; and the parts that there were."""

    views: Mapping[str, tuple[View, ...]] = field(default_factory=dict)
    parts: frozenset[str] = frozenset()

    @classmethod
    def of(cls, snapshot: Snapshot, names: Iterable[str]) -> Basis:
        """That of forms of some views."""
        views = {name: _definitions(snapshot, name) for name in names}
        return cls(views, frozenset(part.id for part in snapshot.parts()))

    @property
    def ids(self) -> frozenset[str]:
        """Of all these views."""
        return frozenset(view.id for own in self.views.values() for view in own)

    def require(self, snapshot: Snapshot, used: Collection[str]) -> None:
        """Refuse what was made from anything that is not so any more. `used`: the parts that it
        reads or makes."""
        for name, then in self.views.items():
            changed = set(then) ^ set(_definitions(snapshot, name))
            if changed:
                raise _outdated(f"view '{min(view.name for view in changed)}'")
        gone = sorted(id for id in self.parts.intersection(used) if id not in snapshot)
        if gone:
            raise _outdated(f"part '{gone[0]}'")


def readers(snapshot: Snapshot, view: View) -> list[View]:
    """The views that read a view, themselves or through others."""
    found: dict[str, View] = {}
    queue = [view.id]
    while queue:
        above = [v for v in snapshot.dependents(queue.pop()) if not v.part and v.id not in found]
        found |= {v.id: v for v in above}
        queue += [v.id for v in above]
    return list(found.values())


def _definitions(snapshot: Snapshot, name: str) -> tuple[View, ...]:
    """Those of a view and of all views below it."""
    found: dict[str, View] = {}
    queue = [snapshot.find(name)]
    while queue:
        relation = queue.pop()
        if isinstance(relation, View) and not relation.part and relation.id not in found:
            found[relation.id] = _definition(relation)
            queue += [snapshot.get(id) for id in relation.depends]
    return tuple(view for _, view in sorted(found.items()))


def _definition(view: View) -> View:
    """A view as far as its rows follow from it."""
    options = {name: value for name, value in view.options.items() if name == "columns"}
    return View(view.id, view.name, view.schema, sql=view.sql, options=options, widths=view.widths)


def _outdated(what: str) -> StateError:
    return StateError(
        f"The plan is outdated: {what} was dropped or defined anew while it was made.",
        code="PLAN_OUTDATED",
        hint="Nothing was changed. Plan again.",
    )
