"""`slackwater plan`: what is maintained how, what that takes, and what it would rebuild.

statements supposed → paces → report → (applied)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count

from slackwater.catalog.ids import timestamp
from slackwater.catalog.model import View
from slackwater.errors import UserError
from slackwater.planner.pace import LADDER
from slackwater.timing.texts import in_units
from slackwater.work import parts
from slackwater.work.goals import effective_options
from slackwater.work.house import House
from slackwater.work.pacing import Options, Paced, planned
from slackwater.work.plan_figures import rhythm
from slackwater.work.plan_report import Figures, PlannedView, PlanReport, Rhythm, Unpaced
from slackwater.work.reachable import without_pace
from slackwater.work.rebuilding import rebuild
from slackwater.work.supposing import supposing
from slackwater.work.together import together
from slackwater.work.tradeoff import SHARES, Tradeoff, tradeoff
from slackwater.work.unpaced import unpaced
from slackwater.work.world import World

OnStage = Callable[[str, int, int], None]
"""Told what is done now, how many stages are over, and how many there are."""


def plan(
    house: House,
    options: Options,
    suppose: Sequence[str] = (),
    apply: bool = False,
    simulate: bool = False,
    on_stage: OnStage | None = None,
) -> PlanReport:
    """The plan of all views, after some statements if they are supposed. Curves take a while, of
    which `on_stage` is told."""
    _check(options, suppose, apply)
    now, snapshot = house.now(), house.catalog.snapshot()
    here = World(house, snapshot, defining=True)
    world = World(house, supposing(house, snapshot, suppose), defining=True)
    found = planned(house, now, options, world)
    wanted = together(world, found)
    told = PlanReport(
        timestamp(now.timestamp()),
        {"paces": options.paces, "sharing": options.sharing, "max_pace": options.most},
        tuple(suppose),
        tuple(rhythm(world, paced) for paced in found),
        _left_out(world, found),
        rebuild(here, world, wanted),
        simulation=_simulated(found, on_stage) if simulate else None,
    )
    if suppose:
        before = planned(house, now, options, here)
        told = _beside(told, [rhythm(here, paced) for paced in before])
    if apply:
        parts.apply(house, wanted)
    return replace(told, applied=apply)


def _simulated(found: Sequence[Paced], on_stage: OnStage | None) -> tuple[Tradeoff, ...]:
    """The curves of all rhythms."""
    done, total = count(), len(SHARES) * len(found)

    def curves(paced: Paced) -> Tradeoff:
        own = f"every {in_units(paced.period_seconds)}".replace("every 1 ", "every ")

        def on_point(share: float) -> None:
            if on_stage is not None:
                on_stage(f"{own}: {share:g}x", next(done), total)

        return tradeoff(paced, on_point)

    return tuple(map(curves, found))


def _check(options: Options, suppose: Sequence[str], apply: bool) -> None:
    if apply and suppose:
        raise UserError(
            "What is only supposed cannot be applied.",
            code="BAD_OPTION",
            hint="Run the statements first, then apply the plan.",
        )
    if not 1 <= options.most <= LADDER[-1]:
        raise UserError(
            f"A pace of {options.most} is not possible.",
            code="BAD_OPTION",
            hint=f"Use a number from 1 to {LADDER[-1]}.",
        )


def _left_out(world: World, found: Sequence[Paced]) -> tuple[Unpaced, ...]:
    paced = {name for p in found for name in p.dag.roots}
    return tuple(_unpaced(world, v) for v in world.snapshot.views() if v.name not in paced)


def _unpaced(world: World, view: View) -> Unpaced:
    said = effective_options(view, world.snapshot.settings)
    found = unpaced(world, view)
    note = without_pace(world, view)
    asked = said.get("schedule"), said.get("within")
    return Unpaced(view.name, *asked, found.code, found.means, note, found.at, found.rewrite)


def _beside(told: PlanReport, before: Sequence[Rhythm]) -> PlanReport:
    """Every view with its figures as they are without what is supposed."""
    known = {view.view: view for own in before for view in own.views}
    rhythms = tuple(
        replace(own, views=tuple(_compared(view, known) for view in own.views))
        for own in told.rhythms
    )
    return replace(told, rhythms=rhythms)


def _compared(view: PlannedView, known: Mapping[str, PlannedView]) -> PlannedView:
    if view.view not in known:
        return view
    before = known[view.view]
    return replace(view, now=Figures(before.final_seconds, before.cpu_seconds))
