"""Did it commit? The answer when the connection breaks while the database is committing.

The next writing transaction cannot begin before the broken one has ended, so whoever holds the
write lock afterwards sees for certain whether the commit is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import select

from slackwater.catalog.database import Database
from slackwater.catalog.tables import commits, head
from slackwater.catalog.transaction import Transaction
from slackwater.errors import StateError


class Outcome:
    """The commit that was asked for last, once all its work was done."""

    def __init__(self) -> None:
        self.asked: Transaction | None = None

    def expect(self, tx: Transaction) -> None:
        """From here on only the database's own commit is left to do."""
        self.asked = tx


@contextmanager
def outcome(database: Database) -> Iterator[Outcome]:
    """Swallows the failure of a commit that has happened; raises when it has not."""
    result = Outcome()
    try:
        yield result
    except StateError as error:
        if result.asked is None or not _landed(database, result.asked, error):
            raise


def _landed(database: Database, tx: Transaction, failure: StateError) -> bool:
    """Whether the commit is in the catalog."""
    try:
        with database.writing() as connection:
            newest = connection.execute(select(head.c.commit_id)).scalar_one()
            at = connection.scalar(select(commits.c.at).where(commits.c.id == tx.commit))
    except StateError as error:
        raise _unknown(failure) from error
    if at is None and newest >= tx.commit:  # already collected: nobody can tell whose it was
        raise _unknown(failure)
    return at == tx.now


def _unknown(failure: StateError) -> StateError:
    return StateError(
        f"It is not known whether the change was committed: {failure.message}",
        code="COMMIT_UNKNOWN",
        hint="Look at the table or view when the catalog can be reached again, before you repeat "
        "the change.",
    )
