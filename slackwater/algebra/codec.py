"""Relations as text, and back: for definitions that no SQL was written for.

Every distinct node is written once, in an order in which it comes after all that it is made of, so
that shared parts stay shared.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from slackwater.algebra.expr import Expr, Frame
from slackwater.algebra.relation import Relation
from slackwater.errors import StateError
from slackwater.tree import Node, field_names, walk_values
from slackwater.types import DataType, Field, type_from_json


def to_text(relation: Relation) -> str:
    """A relation as text."""
    places: dict[Node, int] = {}
    lines: list[list[Any]] = []
    for node in _in_order(relation):
        values = [_encoded(getattr(node, name), places) for name in field_names(type(node))]
        places[node] = len(lines)
        lines.append([type(node).__name__, *values])
    return json.dumps(lines, ensure_ascii=False, separators=(",", ":"))


def from_text(text: str) -> Relation:
    """The relation that a text was made of."""
    made: list[Any] = []
    try:
        for name, *values in json.loads(text):
            made.append(_classes()[name](*(_decoded(value, made) for value in values)))
        relation: Relation = made[-1]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise StateError(
            "A stored definition cannot be read: it was written by another version.",
            code="BAD_DEFINITION",
            hint="Run 'slackwater plan --apply' to make it anew from the view's SQL.",
        ) from error
    return relation


@cache
def _classes() -> dict[str, type[Node]]:
    """Every kind of node, by name."""
    found: list[type[Node]] = [Relation, Expr]
    for kind in found:
        found += kind.__subclasses__()
    return {kind.__name__: kind for kind in found}


def _in_order(root: Node) -> Iterator[Node]:
    """Each distinct node, expressions too, after those in its fields."""
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(below, False) for below in walk_values(node.values(), Node)]


def _encoded(value: Any, places: dict[Node, int]) -> Any:
    match value:
        case Node():
            return {"node": places[value]}
        case tuple():
            return [_encoded(item, places) for item in value]
        case DataType():
            return {"type": value.json}
        case Field(name, type, nullable):
            return {"field": [name, type.json, nullable]}
        case Frame(unit, start, end):
            return {"frame": [unit, start, end]}
        case float():
            return {"float": repr(value)}
        case decimal.Decimal():
            return {"decimal": str(value)}
        case bytes():
            return {"bytes": value.hex()}
        case dt.datetime():
            return {"datetime": value.isoformat()}
        case dt.date():
            return {"date": value.isoformat()}
        case dt.timedelta():
            return {"timedelta": [value.days, value.seconds, value.microseconds]}
    return value


def _decoded(value: Any, made: list[Any]) -> Any:
    if isinstance(value, list):
        return tuple(_decoded(item, made) for item in value)
    if not isinstance(value, dict):
        return value
    ((kind, body),) = value.items()
    match kind:
        case "node":
            return made[body]
        case "type":
            return type_from_json(body)
        case "field":
            return Field(body[0], type_from_json(body[1]), body[2])
        case "frame":
            return Frame(*body)
        case "float":
            return float(body)
        case "decimal":
            return decimal.Decimal(body)
        case "bytes":
            return bytes.fromhex(body)
        case "datetime":
            return dt.datetime.fromisoformat(body)
        case "date":
            return dt.date.fromisoformat(body)
        case "timedelta":
            return dt.timedelta(*body)
    raise ValueError(kind)
