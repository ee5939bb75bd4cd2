"""What applying a plan would compute anew, told before it happens.

Who reads what is computed anew is computed anew, too: of what was replaced, nobody can tell what
changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from slackwater.algebra.explain import gist
from slackwater.algebra.relation import Relation
from slackwater.catalog.model import ChangeOptions, CreateView, Drop, SetForm, View
from slackwater.tvr.normal import normalize
from slackwater.work.loading import Loading
from slackwater.work.meaning import as_written, definition
from slackwater.work.options_ahead import NO_RUN, Ahead, OptionsAhead, stored_states
from slackwater.work.parts import VIEWS, Forms, changes
from slackwater.work.plan_report import Made, Rebuild, StateMade
from slackwater.work.refreshing import order
from slackwater.work.supposing import after
from slackwater.work.upkeep import Upkeep
from slackwater.work.world import World


def rebuild(before: World, world: World, wanted: Forms) -> Rebuild:
    """The parts that would come, change and go, the views that would be computed anew, and the
    states that would come and go; `before`: what is there, `world`: after what is supposed."""
    return _Rebuilding(before, world, wanted).rebuild()


class _Rebuilding:
    """Forms against the catalog."""

    def __init__(self, before: World, world: World, wanted: Forms) -> None:
        self._before = before
        self._world = world
        self._wanted = wanted
        self._updates = list(changes(world, wanted))
        self._loading = Loading(world)
        self._formed = {u.id for u in self._updates if isinstance(u, SetForm)}

    def rebuild(self) -> Rebuild:
        """All of it."""
        made = {p.id: self._made(p.id, p.id, p.relation, p.views) for p in self._wanted.parts}
        new = {u.view.id for u in self._updates if isinstance(u, CreateView)}
        changed = {u.id for u in self._updates if isinstance(u, ChangeOptions)}
        views = self._world.snapshot.views()
        ahead = self._ahead.values()
        return Rebuild(
            tuple(m for id, m in made.items() if id in new),
            tuple(m for id, m in made.items() if id in changed),
            tuple(self._dropped_parts()),
            tuple(self._of_view(v) for v in views if v.id in self._ahead and self._is_anew(v.id)),
            tuple(self._of_view(v) for v in views if v.refreshed_at is None),
            (*self._replaced_states(), *(s for own in ahead for s in own.dropped)),
            tuple(s for own in ahead for s in own.built),
        )

    def _is_anew(self, id: str) -> bool:
        return id in self._ahead and self._ahead[id].anew

    @cached_property
    def _ahead(self) -> dict[str, Ahead]:
        """What becomes of views and parts with content, each after those that it reads."""
        applied = after(self._world.snapshot, self._updates)
        then = World(self._world.house, applied, defining=True)
        options, found = OptionsAhead(self._before, then), dict[str, Ahead]()
        for view in order(then, [v.name for v in applied.views()]):
            if view.refreshed_at is not None:
                own = Ahead()
                if view.id in self._formed or self._reads_anew(then, view, found):
                    own = Ahead(anew=True)
                elif options.concern(view):
                    own = options.of(view)
                found[view.id] = own
        return found

    def _reads_anew(self, then: World, view: View, found: dict[str, Ahead]) -> bool:
        """Does it read a view that was replaced, or is computed anew before it?"""
        sources = (then.snapshot.get(id) for id in view.depends)
        views = (source for source in sources if isinstance(source, View))
        return any(v.refreshed_at is None or found[v.id].anew for v in views)

    def _of_view(self, view: View) -> Made:
        return self._made(view.id, view.name, self._form(view), (view.name,))

    def _form(self, view: View) -> Relation:
        wanted = self._wanted.views.get(view.name)
        return normalize(as_written(self._world, view)[0]) if wanted is None else wanted

    def _made(self, id: str, name: str, relation: Relation, views: tuple[str, ...]) -> Made:
        load = self._loading.load(id, relation)
        return Made(name, gist(relation), views, load.rows, load.cpu_seconds)

    # -- what goes

    def _dropped_parts(self) -> Iterator[Made]:
        """By the plan, or with a view that is supposed to be gone or replaced."""
        dropped = {u.id for u in self._updates if isinstance(u, Drop)}
        for part in reversed(self._before.snapshot.parts()):
            if part.id in dropped or part.id not in self._world.snapshot:
                relation, _ = definition(self._before, part)
                views = tuple(part.options.get(VIEWS, "").split("\n"))
                rows = self._before.rows(part.id)
                yield Made(part.id, gist(relation), views, rows, 0.0)

    def _replaced_states(self) -> Iterator[StateMade]:
        """Those of views that are defined anew."""
        for view in self._before.snapshot.views():
            known = self._world.snapshot
            if view.refreshed_at is None or view.id not in known:
                continue
            if self._world.view(view.name).refreshed_at is None:
                query, _ = definition(self._before, view)
                upkeep = Upkeep(self._before, NO_RUN, view, query)
                yield from (state for _, state in stored_states(upkeep))
