"""Goals that cannot be met, and the nearest that can: told when they are said, and in plans."""

from __future__ import annotations

import logging

from slackwater.catalog.model import View
from slackwater.timing import parse_within
from slackwater.timing.texts import in_units, plain, rounded_up
from slackwater.work.allowed import allowed_seconds
from slackwater.work.goals import effective_options
from slackwater.work.house import House
from slackwater.work.obstacles import obstacles
from slackwater.work.pacing import Options, planned
from slackwater.work.rhythms import rhythm
from slackwater.work.unpaced import NEVER_DUE, unpaced
from slackwater.work.without_pace import WithoutPace
from slackwater.work.world import World

logger = logging.getLogger("slackwater.goals")
ENOUGH = 1.001
"""What is expected and what is wanted are the same, but for so much."""


def notice(house: House, name: str) -> str:
    """What is to be said of a view that was defined or altered: if its goal cannot be met, and what
    of it cannot follow changes. A view is what it is whatever is expected of it, so nothing here
    makes its definition fail."""
    try:
        world = World(house, house.catalog.snapshot(), defining=True)
        view = world.view(name)
        told = _told(world, view)
        found = [w for w in obstacles(world, view) if w.code != "FULL_BY_OPTION"]  # it is wanted
    except Exception as error:  # noqa: BLE001 - the view is there, and the notice is a courtesy
        logger.warning("What '%s' can reach is not known: %s", name, error)
        return ""
    goal = f". {told}" if told else ""
    return goal + "".join(f"\n{w.line}. {w.rewrite}" for w in found)


def _told(world: World, view: View) -> str:
    said = effective_options(view, world.snapshot.settings)
    if "within" not in said or "schedule" not in said:
        return ""
    if rhythm(world, view, world.house.now()) is None:
        return without_pace(world, view)
    found = planned(world.house, world.house.now(), Options(assuming=True), world, [view.name])
    for paced in found:
        for goal in paced.expectations():
            if not goal.is_met:
                return out_of_reach(said["within"], goal.wanted, goal.final, goal.nearest)
    return ""


def without_pace(world: World, view: View) -> str:
    """Of a view that is refreshed when it is due, and never before."""
    said = effective_options(view, world.snapshot.settings)
    if "within" not in said or unpaced(world, view).code in NEVER_DUE:
        return ""
    refresh = WithoutPace(world, view)
    takes, wanted = refresh.seconds(), allowed_seconds(world, view, refresh.rows)
    if wanted is None or takes <= wanted * ENOUGH:
        return ""
    return out_of_reach(said["within"], wanted, takes, takes)


def out_of_reach(within: str, wanted: float, final: float, nearest: float) -> str:
    """A goal that is missed: because it cannot be met, or because that would cost too much.

    >>> out_of_reach("1 second", 1.0, 4.0, 3.14)
    "within = '1 second' cannot be met: about 3.2 seconds can."
    >>> out_of_reach("0.1x", 2.0, 4.0, 3.14)
    "within = '0.1x' cannot be met: about 0.16x (3.2 seconds) can."
    >>> out_of_reach("1 second", 1.0, 4.0, 0.9)
    "within = '1 second' would cost more than it is worth: about 4 seconds are planned."
    """
    shown = final if nearest <= wanted else nearest
    text = in_units(rounded_up(shown))
    share = parse_within(within).share
    if share is not None and wanted > 0:
        text = f"{plain(rounded_up(shown / wanted * share))}x ({text})"
    if nearest <= wanted:
        return f"within = '{within}' would cost more than it is worth: about {text} are planned."
    return f"within = '{within}' cannot be met: about {text} can."
