"""What holds for a view: its own options, and those of the warehouse where it says nothing."""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.catalog.model import View
from slackwater.sql.options import VIEW_OPTIONS, parse_refresh

AUTO = "auto"


def effective_options(view: View, settings: Mapping[str, str]) -> dict[str, str]:
    """Each option by name, as the view or else the warehouse says; left out if neither does."""
    said = {**settings, **view.options}
    return {name: said[name] for name in VIEW_OPTIONS if name in said}


def refresh_mode(view: View, settings: Mapping[str, str], opened: str = AUTO) -> str:
    """How a view may be refreshed: as it says, or else as the warehouse was opened, or else as is
    set for the warehouse."""
    if opened != AUTO:
        settings = {**settings, "refresh": opened}
    return parse_refresh(effective_options(view, settings).get("refresh", AUTO))
