"""One run over some views: each is brought up to date, by its changes or anew, and told of."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from slackwater.algebra.explain import describe
from slackwater.algebra.relation import Relation
from slackwater.catalog.model import (
    Event,
    Exists,
    FinishRun,
    Run,
    SetAsOf,
    Update,
    VersionIs,
    View,
    WriteEvent,
)
from slackwater.engine.runner import measurements
from slackwater.errors import UserError
from slackwater.planner.choice import FULL, NONE, PLAIN
from slackwater.tvr.maintenance import Maintenance
from slackwater.work.choosing import MISSING, Choice, choose_way, nothing_to_do, only_anew
from slackwater.work.experience import has_missed
from slackwater.work.goals import refresh_mode
from slackwater.work.interval import UNEVEN, Interval
from slackwater.work.keeping import kept_under_budget
from slackwater.work.meaning import definition
from slackwater.work.reasons import whys
from slackwater.work.refresh_events import body as event_body
from slackwater.work.reports import RefreshReport, Ways
from slackwater.work.room import is_over_budget
from slackwater.work.side_by_side import side_by_side
from slackwater.work.upkeep import Upkeep, Upkept
from slackwater.work.world import World


class OneRun:
    """One run over some views."""

    def __init__(
        self, world: World, run: Run, full: bool, named: set[str], read_at: str = ""
    ) -> None:
        self.world = world
        self.run = run
        self.full = full
        self.named = {n.lower() for n in named}
        self.read_at = read_at
        self.reports: list[RefreshReport] = []
        self.requires: list[Any] = []
        self._updates: list[Update] = []
        self._versions: dict[str, int] = {}
        self._events: list[dict[str, Any]] = []
        self._queries: dict[str, Relation] = {}  # of views computed in full
        self._missed: list[View] = []  # those that took ten times what was expected
        self._views: list[View] = []  # those that are told of

    @property
    def looks(self) -> bool:
        """Is anything read after the commit, to learn of it?"""
        return bool(self._queries or self._missed)

    def refreshed(self) -> list[View]:
        """The views, as they are after the commit."""
        done = zip(self._views, self.reports, strict=True)
        return [replace(view, version=report.version) for view, report in done]

    def learn(self) -> None:
        """Remember what the work cost, and look at what is read for the first time."""
        for event in self._events:
            self.world.house.experience.learn(event)
        for query in self._queries.values():
            self.world.house.profiling.look(self.world, query)
        for view in self._missed:
            self.world.house.profiling.look(self.world, definition(self.world, view)[0], again=True)

    def updates(self) -> list[Update]:
        """What the commit changes."""
        steps = [s for r in self.reports for s in r.steps]
        return [*self._updates, FinishRun(self.run.id, measurements(steps))]

    def _version(self, id: str) -> int:
        return self._versions.get(id, self.world.snapshot.get(id).version)

    def refresh(self, views: Sequence[View]) -> None:
        """Views, each after those it reads, others at the same time."""
        by_id = {view.id: view for view in views}

        def needs(view: View) -> list[View]:
            return [by_id[id] for id in view.depends if id in by_id]

        found = side_by_side(views, needs, self._refresh, self.world.house.pool)
        for view, done in zip(views, found, strict=True):
            self._tell(view, *done)
        self._views += views

    def _refresh(self, view: View) -> tuple[RefreshReport, list[Update], dict[str, Any]]:
        """One view, from sources at this run's versions."""
        started = time.perf_counter()
        relation, met = definition(self.world, view)
        seen = self._seen(view)
        upkeep = Upkeep(self.world, self.run, view, relation)
        reasons = self._reasons(view, upkeep, met)
        updates: list[Update] = []
        if not self._is_due(view, seen, reasons):
            report, updates = self._left_alone(upkeep)
            report.planning_seconds = time.perf_counter() - started
        else:
            choice, upkept = self._way(upkeep, reasons, met)
            planned = time.perf_counter()
            done = upkept()
            updates, report = done.updates, self._report(view, done, choice)
            report.planning_seconds = planned - started
            report.places = _places(upkeep, report)
            if report.mode == "full":
                self._queries[view.id] = relation
        report.seconds = time.perf_counter() - started
        return report, updates, seen

    def _left_alone(self, upkeep: Upkeep) -> tuple[RefreshReport, list[Update]]:
        """Nothing changed; but the view may have been given a smaller budget."""
        view, met = upkeep.view, Upkept("none", [], 0)
        if is_over_budget(self.world, view):
            upkeep.keeping = kept_under_budget(upkeep, upkeep.maintenance(), anew=False)
            met = upkeep.settled(met)
        report = RefreshReport(view.name, view.version, NONE, [], states=met.states)
        report.choice = nothing_to_do()
        report.places = _places(upkeep, report)
        return report, met.updates

    def _seen(self, view: View) -> dict[str, Any]:
        """What a view is computed from in this run."""
        held = self.world.held.get(view.id, frozenset())
        seen = self.world.seen(view.depends, self._version)
        seen |= {id: view.as_of[id] for id in held}
        return seen | ({UNEVEN: True} if held else {})

    def _is_due(self, view: View, seen: dict[str, Any], reasons: list[str]) -> bool:
        if view.refreshed_at is None or seen != dict(view.as_of):
            return True
        return "FULL_REQUESTED" in reasons or "NOT_DETERMINISTIC" in reasons

    def _reasons(self, view: View, upkeep: Upkeep, met: dict[str, str]) -> list[str]:
        """Why the whole view must be computed anew; none where its changes suffice."""
        if self.full and (view.part or view.name.lower() in self.named):
            return ["FULL_REQUESTED"]
        if view.refreshed_at is None:
            return ["FIRST_REFRESH"]
        broken = upkeep.interval.broken()
        upkeep.places |= met | broken
        reasons = list(broken)
        if "NOT_DETERMINISTIC" in met:
            reasons.append("NOT_DETERMINISTIC")
        if self._option(view) == "full":
            reasons.append("FULL_BY_OPTION")
        return reasons

    def _way(
        self, upkeep: Upkeep, reasons: list[str], met: dict[str, str]
    ) -> tuple[Choice, Callable[[], Upkept]]:
        """How a view is brought up to date, and what does so."""
        view = upkeep.view
        if "NOT_DETERMINISTIC" in met:
            self._refuse_strict(view, reasons)
            choice = only_anew(upkeep, upkeep.query, _always(met, reasons))
            return choice, lambda: upkeep.plain(reasons)
        if self._option(view) == "full":
            plan = upkeep.maintenance()
            choice = only_anew(upkeep, plan.root, _always(met, reasons))
            return choice, lambda: _recomputed(upkeep, plan, reasons, PLAIN)
        plan, known = _planned(upkeep, reasons)
        choice = self._choice(upkeep, plan, known)
        upkeep.engine = choice.chosen.engine
        return choice, lambda: upkeep.settled(self._done(upkeep, plan, choice, known))

    def _choice(self, upkeep: Upkeep, plan: Maintenance, reasons: list[str]) -> Choice:
        by_cost = self._option(upkeep.view) == "auto" and not self._is_read(upkeep.view)
        return choose_way(upkeep, plan, reasons, by_cost and not set(reasons) - {MISSING})

    def ways(self, view: View, interval: Interval | None = None) -> Ways:
        """How a view would be refreshed now, or over another interval, and how else."""
        relation, met = definition(self.world, view)
        upkeep = Upkeep(self.world, self.run, view, relation)
        upkeep.interval = interval or upkeep.interval
        reasons = self._reasons(view, upkeep, met)
        if "NOT_DETERMINISTIC" in met or self._option(view) == "full":
            return Ways(upkeep, None, only_anew(upkeep, relation, _always(met, reasons)), reasons)
        plan, reasons = _planned(upkeep, reasons)
        choice = self._choice(upkeep, plan, reasons)
        if choice.following is None:
            plan = _anew(upkeep, plan)
        return Ways(upkeep, plan, choice, reasons)

    def _done(
        self, upkeep: Upkeep, plan: Maintenance, choice: Choice, reasons: list[str]
    ) -> Upkept:
        view, method = upkeep.view, choice.chosen.method
        if choice.following is None:
            if not set(reasons) - {MISSING} and (method == PLAIN or not reasons):
                reasons = ["CHANGE_TOO_LARGE"]
            self._refuse_strict(view, reasons)
            return _recomputed(upkeep, _anew(upkeep, plan), reasons, method)
        try:
            done = upkeep.incremental(choice.following)
            if choice.building is not None:
                done = upkeep.build(choice.building, choice.following.plan, done)
        except UserError as error:  # data that a step cannot compute with, maybe gone by now
            self._refuse_strict(view, ["STEP_RAISED"])
            upkeep.forget()
            upkeep.places["STEP_RAISED"] = error.message
            return _recomputed(upkeep, _anew(upkeep, plan), ["STEP_RAISED"])
        self._refuse_strict(view, [r for r in done.reasons if r != "BUFFER_REFILLED"])
        return done

    def _option(self, view: View) -> str:
        opened = self.world.house.settings.refresh
        return refresh_mode(view, self.world.snapshot.settings, opened)

    def _is_read(self, view: View) -> bool:
        """Does another view follow the changes of this one?"""
        return bool(self.world.snapshot.dependents(view.id))

    def _refuse_strict(self, view: View, reasons: list[str]) -> None:
        wanted = {"FIRST_REFRESH", "FULL_REQUESTED"}
        if self._option(view) == "incremental strict" and set(reasons) - wanted:
            raise UserError(
                f"View '{view.name}' must be refreshed incrementally, and cannot be: "
                f"{', '.join(reasons)}.",
                code="NOT_INCREMENTAL",
                hint=" ".join(w.rewrite for w in whys(set(reasons) - wanted, {}))
                + " Or set refresh = 'auto' to allow a full refresh.",
            )

    def _report(self, view: View, done: Upkept, choice: Choice) -> RefreshReport:
        changed = done.mode == "full" or done.rows > 0
        version = view.version + 1 if changed else view.version
        self._versions[view.id] = version
        return RefreshReport(
            view.name,
            version,
            done.mode,
            done.reasons,
            done.rows,
            steps=done.steps,
            operators=done.operators,
            choice=choice,
            states=done.states,
            turnover=done.turnover,
        )

    def _tell(
        self, view: View, report: RefreshReport, updates: list[Update], seen: dict[str, Any]
    ) -> None:
        self.reports.append(report)
        self._updates += updates
        self.requires += [VersionIs(view.id, view.version)]
        self.requires += [Exists(id) for id in view.depends]
        if report.mode != "none":
            self._updates.append(SetAsOf(view.id, seen, self.world.house.timestamp()))
        body = event_body(self.world, self.run, self.read_at, view, report)
        self._events.append(body)
        if has_missed(body):
            self._missed.append(view)
        at = self.world.house.timestamp()
        self._updates.append(WriteEvent(Event("refresh", view.id, at, body)))


def _always(met: Mapping[str, str], reasons: Sequence[str]) -> list[str]:
    """Why a view is never refreshed but anew, and why not now. `met`: in binding its query."""
    always = "NOT_DETERMINISTIC" if "NOT_DETERMINISTIC" in met else "FULL_BY_OPTION"
    return list(dict.fromkeys([*reasons, always]))


def _places(upkeep: Upkeep, report: RefreshReport) -> dict[str, str]:
    """Where in the plan the reasons of a refresh hold, and those against other ways."""
    ways = report.choice.candidates if report.choice is not None else ()
    codes = dict.fromkeys([*report.reasons, *(code for way in ways for code in way.reasons)])
    return {code: upkeep.place(code) for code in codes}


def _planned(upkeep: Upkeep, reasons: list[str]) -> tuple[Maintenance, list[str]]:
    """How the view is maintained, and why it has to be computed anew first."""
    plan = upkeep.maintenance()
    upkeep.keeping = kept_under_budget(upkeep, plan, anew=bool(reasons))
    if upkeep.keeping is not None:
        missing = [] if upkeep.keeping.is_possible else [MISSING]
        return plan, reasons or missing
    gone = upkeep.missing(plan)
    if gone:
        upkeep.places[MISSING] = "; ".join(f"{s.name} of {describe(s.node)}" for s in gone)
    return plan, reasons or ([MISSING] if gone else [])


def _anew(upkeep: Upkeep, plan: Maintenance) -> Maintenance:
    """How the view is computed anew: with the states that are then kept."""
    return plan if upkeep.keeping is None else upkeep.keeping.afresh


def _recomputed(
    upkeep: Upkeep, plan: Maintenance, reasons: list[str], method: str = FULL
) -> Upkept:
    """The view anew, with its states or without; as it is written, where a state, or an operator
    in another place, needs a value that cannot be computed and the query does not."""
    try:
        if method == PLAIN:
            return upkeep.plain(reasons, plan.root)
        return upkeep.recompute(plan, reasons)
    except UserError as error:
        upkeep.forget()
        upkeep.places["STEP_RAISED"] = error.message
        return upkeep.plain(list(dict.fromkeys([*reasons, "STEP_RAISED"])))
