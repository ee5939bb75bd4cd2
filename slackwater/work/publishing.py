"""Publishing: the newest version of views as plain Parquet, after their commit."""

from __future__ import annotations

from collections.abc import Sequence

from slackwater.catalog.model import View
from slackwater.engine.publish import is_published, publish_view
from slackwater.errors import StateError
from slackwater.work.house import House
from slackwater.work.side_by_side import side_by_side


def publish(house: House, refreshed: Sequence[View], commit: int) -> None:
    """Plain Parquet of the newest versions, for other tools; of views that a commit has refreshed,
    unless that changed nothing. Parts are nobody's results."""
    results = [view for view in refreshed if not view.part]
    ids = {view.id for view in results if not is_published(house.storage, view, commit)}
    if not ids:
        return
    with house.catalog.reading() as snapshot:

        def publish_one(view: View) -> None:
            segments = snapshot.segments(view.id)
            try:
                publish_view(house.storage, view, segments, snapshot.commit, house.contents.rows_of)
            except StateError as error:
                raise _not_published(view, error) from error

        views = [v for v in snapshot.views() if v.id in ids]
        side_by_side(views, lambda _: (), publish_one, house.pool)


def _not_published(view: View, error: StateError) -> StateError:
    return StateError(
        f"View '{view.name}' is refreshed and committed, but not published: {error.message}",
        code=error.code,
        hint="SELECT sees the new version. When the cause is gone, the next opening of the "
        "warehouse publishes it.",
    )
