"""What a commit requires: one check per requirement, within the commit's transaction."""

from __future__ import annotations

from functools import singledispatch

from sqlalchemy import bindparam, select

from slackwater.catalog.codec import fold
from slackwater.catalog.leases import is_held, is_held_by
from slackwater.catalog.model import (
    Exists,
    LeaseIs,
    NameIsFree,
    NotNeeded,
    Requirement,
    RunIs,
    VersionIs,
)
from slackwater.catalog.tables import definitions, leases, relations, versions
from slackwater.catalog.transaction import Transaction, name_of, run_revoked
from slackwater.errors import InternalError, StateError, UserError

_NAMED = (
    select(definitions.c.name, relations.c.kind)
    .join(relations, relations.c.id == definitions.c.relation_id)
    .where(definitions.c.folded_name == bindparam("folded"), definitions.c.removed_commit.is_(None))
)


@singledispatch
def check(requirement: Requirement, tx: Transaction) -> None:
    """Raise unless the requirement holds."""
    raise InternalError(f"requirement {requirement!r} is not known")


@check.register
def _(requirement: VersionIs, tx: Transaction) -> None:
    row = tx.find(versions, requirement.id)
    if row is not None and row.version == requirement.version:
        return
    now = "was dropped" if row is None else f"is at version {row.version}"
    raise StateError(
        f"'{name_of(tx.connection, requirement.id)}' {now}; "
        f"this change was made for version {requirement.version}.",
        code="VERSION_CONFLICT",
        hint="Somebody else changed it meanwhile. Try again on its present content.",
    )


@check.register
def _(requirement: LeaseIs, tx: Transaction) -> None:
    name, token = requirement.name, requirement.token
    known = tx.leases.get(name)
    if is_held_by(known, token, tx.now) or is_held(tx.connection, name, token, tx.now):
        return
    latest = tx.connection.scalar(select(leases.c.token).where(leases.c.name == name))
    cause = "another writer took over" if latest != token else "it expired or was released"
    raise StateError(
        f"The lease on '{name_of(tx.connection, name)}' is lost: {cause}.",
        code="LEASE_LOST",
        hint="Nothing of this change is visible. Try again.",
    )


@check.register
def _(requirement: RunIs, tx: Transaction) -> None:
    row = tx.run(requirement.run_id)
    if row is None or row.token != requirement.token or row.state != "open":
        raise run_revoked(requirement.run_id, None if row is None else row.state)


@check.register
def _(requirement: NameIsFree, tx: Transaction) -> None:
    _require_text(requirement.name)
    tx.flush(definitions)
    row = tx.connection.execute(_NAMED, {"folded": fold(requirement.name)}).one_or_none()
    if row is not None:
        raise UserError(
            f"A {row.kind} named '{row.name}' exists already.",
            code="NAME_TAKEN",
            hint="Choose another name, or drop it first. Names do not differ by case.",
        )


@check.register
def _(requirement: Exists, tx: Transaction) -> None:
    if not tx.exists(requirement.id):
        raise tx.gone(requirement.id)


@check.register
def _(requirement: NotNeeded, tx: Transaction) -> None:
    tx.flush(definitions)
    query = select(definitions.c.name, definitions.c.body).where(
        definitions.c.removed_commit.is_(None)
    )
    rows = tx.connection.execute(query.order_by(definitions.c.name))
    views = [row.name for row in rows if requirement.id in row.body.get("depends", ())]
    if views:
        raise UserError(
            f"'{name_of(tx.connection, requirement.id)}' is needed by: {', '.join(views)}.",
            code="STILL_NEEDED",
            hint="Drop those views first.",
        )


def _require_text(name: str) -> None:
    """Databases do not keep NUL and halves of characters; anything else is a name."""
    if not name or any(char == "\0" or "\ud800" <= char <= "\udfff" for char in name):
        raise UserError(
            f"{name!r} cannot be the name of a table or view.",
            code="BAD_NAME",
            hint="A name has at least one character, and none that is not text.",
        )
