"""The engines that run here."""

from __future__ import annotations

from slackwater.planner.choice import ENGINES
from slackwater.work.house import House


def engines(house: House) -> list[str]:
    """Where steps can run."""
    placement = house.settings.placement
    found = [e for e in ENGINES if placement in ("auto", e)]
    if "spark" in found and not house.runner.spark.is_available:
        found.remove("spark")
    return found
