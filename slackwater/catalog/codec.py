"""Relations and segments as rows of the catalog's tables, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sqlalchemy import Row

from slackwater.algebra.expr import Literal
from slackwater.catalog import constants
from slackwater.catalog.model import Key, Reference, Segment, SetPromises, State, Table, View
from slackwater.types import Schema, schema_from_json, schema_to_json

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
        fills = {name: constants.to_json(fill) for name, fill in relation.fills.items()}
        return (
            body
            | {
                "source": relation.source,
                "defaults": dict(relation.defaults),
                "fills": fills,
            }
            | promises_of(relation)
        )
    widths = dict(relation.widths)
    body |= {"sql": relation.sql, "depends": list(relation.depends), "widths": widths}
    return body | {"form": relation.form, "part": relation.part}


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
            fills=_fills(body.get("fills", {}), schema),
            keys=tuple(_key(key) for key in body.get("keys", ())),
            references=tuple(_reference(r) for r in body.get("references", ())),
            arrived_rows=row.arrived_rows,
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
        widths=body.get("widths", {}),
        form=body.get("form", ""),
        part=body.get("part", False),
    )


def _fills(body: dict[str, Any], schema: Schema) -> dict[str, Literal]:
    return {f.name: constants.from_json(body[f.name], f.type) for f in schema if f.name in body}


def promises_of(table: Table | SetPromises) -> dict[str, Any]:
    """The part of a table's definition that tells its keys and references."""
    return {
        "keys": [asdict(key) for key in table.keys],
        "references": [asdict(reference) for reference in table.references],
    }


def _key(body: dict[str, Any]) -> Key:
    return Key(body["name"], tuple(body["columns"]), body["primary"])


def _reference(body: dict[str, Any]) -> Reference:
    return Reference(body["name"], tuple(body["columns"]), body["table"], tuple(body["theirs"]))


def segment_row(segment: Segment) -> dict[str, Any]:
    """The segment as columns of `segments`."""
    return {
        "path": segment.path,
        "rows": segment.rows,
        "bytes": segment.bytes,
        "min_weight": segment.min_weight,
        "max_weight": segment.max_weight,
        "stats": dict(segment.stats),
        "width": segment.width,
    }


def segment_of(row: Row[Any], relation: Relation) -> Segment:
    """The segment of a relation that a row of `segments` describes."""
    return Segment(
        path=row.path,
        rows=row.rows,
        bytes=row.bytes,
        min_weight=row.min_weight,
        max_weight=row.max_weight,
        version=row.version,
        since=row.since,
        stats=row.stats,
        width=row.width,
        missing=relation.missing(row.width) if isinstance(relation, Table) else {},
    )
