"""What applying a plan would compute anew, told before it happens."""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.algebra.explain import gist
from slackwater.algebra.relation import Relation
from slackwater.catalog.model import ChangeOptions, CreateView, Drop, SetForm, View
from slackwater.tvr.normal import normalize
from slackwater.work.loading import Loading
from slackwater.work.meaning import as_written, definition
from slackwater.work.parts import VIEWS, Forms, changes
from slackwater.work.plan_report import Made, Rebuild
from slackwater.work.world import World


def rebuild(world: World, wanted: Forms) -> Rebuild:
    """The parts that would come, change and go, and the views that would be computed anew."""
    return _Rebuilding(world, wanted).rebuild()


class _Rebuilding:
    """Forms against the catalog."""

    def __init__(self, world: World, wanted: Forms) -> None:
        self._world = world
        self._wanted = wanted
        self._updates = list(changes(world, wanted))
        self._loading = Loading(world)

    def rebuild(self) -> Rebuild:
        """All of it."""
        made = {p.id: self._made(p.id, p.id, p.relation, p.views) for p in self._wanted.parts}
        new = {u.view.id for u in self._updates if isinstance(u, CreateView)}
        changed = {u.id for u in self._updates if isinstance(u, ChangeOptions)}
        gone = [u.id for u in self._updates if isinstance(u, Drop)]
        return Rebuild(
            tuple(m for id, m in made.items() if id in new),
            tuple(m for id, m in made.items() if id in changed),
            tuple(map(self._dropped, gone)),
            tuple(self._views(has_content=True)),
            tuple(self._views(has_content=False)),
        )

    def _views(self, has_content: bool) -> Iterator[Made]:
        """Those of another form than before, or those that were never computed."""
        formed = {u.id for u in self._updates if isinstance(u, SetForm)}
        for view in self._world.snapshot.views():
            if (view.refreshed_at is not None) == has_content and (
                view.id in formed or not has_content
            ):
                yield self._made(view.id, view.name, self._form(view), (view.name,))

    def _form(self, view: View) -> Relation:
        wanted = self._wanted.views.get(view.name)
        return normalize(as_written(self._world, view)[0]) if wanted is None else wanted

    def _made(self, id: str, name: str, relation: Relation, views: tuple[str, ...]) -> Made:
        load = self._loading.load(id, relation)
        return Made(name, gist(relation), views, load.rows, load.cpu_seconds)

    def _dropped(self, id: str) -> Made:
        part = self._world.snapshot.get(id)
        assert isinstance(part, View)
        relation, _ = definition(self._world, part)
        views = tuple(part.options.get(VIEWS, "").split("\n"))
        return Made(id, gist(relation), views, self._world.rows(id), 0.0)
