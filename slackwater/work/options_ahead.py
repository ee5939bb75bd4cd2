"""What the next refresh makes of a view's states when its options are others: tried, not done.

    options → ways to refresh → states kept, built, let go

A `state_budget` or a `refresh` option does nothing by itself: the next refresh goes by it. What
that one would do is asked of the same code, for the rows that wait or, where none do, for those
that are expected to come.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from slackwater.catalog.model import Run, View
from slackwater.planner.choice import PLAIN
from slackwater.tvr.states import State
from slackwater.work.coming import Coming
from slackwater.work.expecting import Foreseen
from slackwater.work.goals import refresh_mode
from slackwater.work.interval import Interval
from slackwater.work.keeping import kept_under_budget
from slackwater.work.loading import Loading
from slackwater.work.meaning import definition
from slackwater.work.one_run import OneRun
from slackwater.work.parts import views_of
from slackwater.work.plan_report import StateMade
from slackwater.work.reports import Ways
from slackwater.work.room import budget_of, bytes_of, is_over_budget
from slackwater.work.state_bytes import FILE_BYTES, bytes_of_states
from slackwater.work.telling import is_fresh
from slackwater.work.upkeep import Upkeep
from slackwater.work.world import Pending, World

NO_RUN = Run("", "", "", "explain")


@dataclass(frozen=True)
class Ahead:
    """Of one view: is it computed anew, and which states come and go?"""

    anew: bool = False
    dropped: tuple[StateMade, ...] = ()
    built: tuple[StateMade, ...] = ()


class OptionsAhead:
    """Views and parts in a world as it might be, beside the one that is there."""

    def __init__(self, before: World, world: World) -> None:
        self._before = before
        self._world = World(world.house.aside(), world.snapshot, Pending(), defining=True)
        self._work = OneRun(self._world, NO_RUN, full=False, named=set())
        self._loading = Loading(self._world)
        self._bytes_of = bytes_of_states(self._world)

    # -- of whom there is anything to tell

    def concern(self, view: View) -> bool:
        """Were options changed that say what is kept of a view, and has no refresh gone by them?"""
        if view.refreshed_at is None:
            return False
        if is_over_budget(self._world, view):
            return True
        if view.part:
            found = (self._world.snapshot.find(name) for name in views_of(view))
            return any(isinstance(v, View) and self._differ(v) for v in found)
        has_states = bool(self._world.snapshot.states(view.id))
        return self._differ(view) or (has_states and self._mode(self._world, view) == "full")

    def _differ(self, view: View) -> bool:
        if view.id not in self._before.snapshot:
            return False
        old = self._before.view(view.name)
        modes = (self._mode(self._before, old), self._mode(self._world, view))
        budgets = (budget_of(self._before, old), budget_of(self._world, view))
        return modes[0] != modes[1] or budgets[0] != budgets[1]

    def _mode(self, world: World, view: View) -> str:
        return refresh_mode(view, world.snapshot.settings, world.house.settings.refresh)

    # -- what its next refresh does

    def of(self, view: View) -> Ahead:
        """Each after those that it reads."""
        if is_fresh(self._world, view) and is_over_budget(self._world, view):
            return self._left_alone(view)
        found = self._work.ways(view, Foreseen(self._world, view, dict(self._more(view))))
        states, sizes = self._kept(found), self._bytes(found)
        keeping, stored = found.upkeep.keeping, found.upkeep.known.keys()
        kept = states.keys() if keeping is None else keeping.settle(sizes)
        built = tuple(
            StateMade(view.name, states[s].name, round(sizes[s]))
            for s in states
            if s in kept - stored
        )
        return Ahead(found.choice.following is None, self._gone(found.upkeep, kept), built)

    def _more(self, view: View) -> Iterator[tuple[str, float]]:
        """Rows that are not there yet: where none wait, those that come; else those of views that
        are refreshed with it."""
        waits = not is_fresh(self._world, view)
        for id, change in Coming(Interval(self._world, view)).expected_changes(view).items():
            source = self._world.snapshot.get(id)
            stale = isinstance(source, View) and not is_fresh(self._world, source)
            if stale or not waits:
                yield id, max(1.0, change.rows) if stale else change.rows

    def _kept(self, found: Ways) -> dict[str, State]:
        """By signature, what there is after a refresh."""
        return {state.node.digest(): state for state in _kept_by(found)}

    def _bytes(self, found: Ways) -> dict[str, float]:
        """What these take then: what is stored, and a file more where it changes; or as it is told
        with a budget, or as others like them."""
        keeping, way = found.upkeep.keeping, found.choice.following
        told = {} if keeping is None else keeping.bytes_after(found.choice.chosen.method)
        sizes = {}
        for signature, state in self._kept(found).items():
            known = found.upkeep.known.get(signature)
            if known is not None and way is not None:
                more = FILE_BYTES if state.id in way.changes else 0.0
                sizes[signature] = bytes_of(self._world.segments(known.id)) + more
            else:
                sizes[signature] = told.get(signature) or self._like(state)
        return sizes

    def _like(self, state: State) -> float:
        return self._bytes_of(self._loading.rows(state.node), len(state.schema))

    def _left_alone(self, view: View) -> Ahead:
        """Nothing waits for it; but its states take more room than there is now."""
        upkeep = Upkeep(self._world, NO_RUN, view, definition(self._world, view)[0])
        keeping = kept_under_budget(upkeep, upkeep.maintenance(), anew=False)
        assert keeping is not None  # or else nothing would be too much
        sizes = {s: bytes_of(self._world.segments(k.id)) for s, k in upkeep.known.items()}
        return Ahead(dropped=self._gone(upkeep, keeping.settle(sizes)))

    def _gone(self, upkeep: Upkeep, kept: Collection[str]) -> tuple[StateMade, ...]:
        return tuple(s for signature, s in stored_states(upkeep) if signature not in kept)


def stored_states(upkeep: Upkeep) -> Iterator[tuple[str, StateMade]]:
    """Those of a view that are there, by signature, under the names that refreshes tell."""
    names = {s.node.digest(): s.name for s in upkeep.maintenance().kept}
    for signature, known in upkeep.known.items():
        size = bytes_of(upkeep.world.segments(known.id))
        name = names.get(signature, known.kind)
        yield signature, StateMade(upkeep.view.name, name, round(size))


def _kept_by(found: Ways) -> Sequence[State]:
    """The states that a view has after it was refreshed in the way that was chosen."""
    choice, keeping = found.choice, found.upkeep.keeping
    if found.plan is None or choice.chosen.method == PLAIN:
        return ()
    if choice.following is None:
        return found.plan.kept
    stay = None if keeping is None else {s.id for s in keeping.next.kept}
    staying = [s for s in choice.following.plan.kept if stay is None or s.id in stay]
    return [*staying, *(choice.building.kept if choice.building is not None else ())]
