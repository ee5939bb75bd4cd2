"""Relations and segments as rows of the catalog's tables, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sqlalchemy import Row

from slackwater.catalog.model import Segment, State, Table, View
from slackwater.types import schema_from_json, schema_to_json

Relation = Table | View | State


def fold(name: str) -> str:
    """The form in which names are compared.

    >>> fold("Sales") == fold("SALES")
    True
    """
    return name.casefold()


def kind_of(relation: Relation) -> str:
    """`table` or `view`; a state is a table with an owner."""
    return "view" if isinstance(relation, View) else "table"


def body_of(relation: Relation) -> dict[str, Any]:
    """The definition without its name and version."""
    if isinstance(relation, State):
        return {
            "schema": schema_to_json(relation.schema),
            "state": relation.kind,
            "signature": relation.signature,
        }
    body: dict[str, Any] = {
        "schema": schema_to_json(relation.schema),
        "options": dict(relation.options),
    }
    if isinstance(relation, Table):
        return body | {"source": relation.source, "defaults": dict(relation.defaults)}
    return body | {"sql": relation.sql, "depends": list(relation.depends)}


def relation_of(row: Row[Any]) -> Relation:
    """The relation that a row of `definitions` joined with `versions` describes."""
    body = row.body
    schema = schema_from_json(body["schema"])
    if row.owner is not None:
        return State(
            id=row.relation_id,
            name=row.name,
            schema=schema,
            version=row.version,
            view=row.owner,
            kind=body["state"],
            signature=body["signature"],
            log_from=row.log_from,
        )
    if row.kind == "table":
        return Table(
            id=row.relation_id,
            name=row.name,
            schema=schema,
            version=row.version,
            source=body["source"],
            options=body["options"],
            defaults=body["defaults"],
            log_from=row.log_from,
        )
    return View(
        id=row.relation_id,
        name=row.name,
        schema=schema,
        version=row.version,
        sql=body["sql"],
        options=body["options"],
        depends=tuple(body["depends"]),
        as_of=row.as_of,
        refreshed_at=row.refreshed_at,
        log_from=row.log_from,
    )


def segment_row(segment: Segment) -> dict[str, Any]:
    """The segment as columns of `segments`."""
    return asdict(segment) | {"stats": dict(segment.stats)}


def segment_of(row: Row[Any]) -> Segment:
    """The segment that a row of `segments` describes."""
    return Segment(
        path=row.path,
        rows=row.rows,
        bytes=row.bytes,
        min_weight=row.min_weight,
        max_weight=row.max_weight,
        version=row.version,
        stats=row.stats,
    )
