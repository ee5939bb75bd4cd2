"""ANSI store assignment: a value made into one of a column's type.

The laws are those of Spark's `TableOutputResolver`. A cast in which a number may be too large
carries the column's path (`Cast.column`) and raises `CAST_OVERFLOW_IN_TABLE_INSERT`, which a cast
that a user wrote never does. All other casts are plain ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.algebra.coercion import can_assign, can_upcast, cast_nullable, make_cast
from slackwater.algebra.expr import Cast, Expr, SparkCall
from slackwater.errors import SqlError
from slackwater.types import (
    NULL,
    Array,
    DataType,
    Decimal,
    Field,
    Map,
    Struct,
    is_atomic,
    is_fractional,
    is_integral,
    is_numeric,
    quote,
    quote_text,
)

OVERFLOW = "CAST_OVERFLOW_IN_TABLE_INSERT"
_VALUE = "\0"  # stands for the value until the text is made


def store_assign(expr: Expr, type: DataType, column: str, *, by_name: bool = False) -> Expr:
    """The value as the column stores it; fields of structs go by position, or by name."""
    source, path = expr.type, quote(column)
    if source == type:
        return expr
    text = _assigned(_VALUE, source, type, _Place(path, by_name))
    plain = make_cast(expr, type)
    if isinstance(plain, Cast):
        return plain.replace(column=path) if can_overflow(source, type) else plain
    escaped = text.replace("{", "{{").replace("}", "}}").replace(_VALUE, "{0}")
    return SparkCall(type, plain.nullable, escaped, (expr,))


def can_overflow(source: DataType, target: DataType) -> bool:
    """Does Spark check the assignment of such a number?

    >>> from slackwater.types import BIGINT, INT
    >>> can_overflow(BIGINT, INT), can_overflow(INT, BIGINT)
    (True, False)
    """
    if not is_numeric(source):
        return False
    if isinstance(target, Decimal):
        return cast_nullable(source, target)
    return is_integral(target) and not can_upcast(source, target)


def overflow_message(source: DataType, target: DataType, path: str) -> str:
    """What Spark says of a number that is too large for a column."""
    return (
        f'Fail to assign a value of "{source.sql}" type to the "{target.sql}" type column or '
        f"variable {path} due to an overflow. Use `try_cast` on the input value to tolerate "
        "overflow and return NULL instead."
    )


def checked_cast(text: str, source: DataType, target: DataType, path: str) -> str:
    """The cast as Spark SQL; a value that fits is computed once.

    Spark makes NULL of a NaN or an infinity that becomes a decimal.
    """
    finite = is_fractional(source) and isinstance(target, Decimal)
    given = f"abs({text}) < double('Infinity')" if finite else f"{text} IS NOT NULL"
    message = quote_text(f"[{OVERFLOW}] {overflow_message(source, target, path)}")
    raised = f"CAST(raise_error({message}) AS {target.sql})"
    return f"coalesce(TRY_CAST({text} AS {target.sql}), CASE WHEN {given} THEN {raised} END)"


# ---- part by part -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Place:
    """Where a value goes: the quoted path, and how deep inside the column that is."""

    path: str
    by_name: bool
    depth: int = 0

    def inside(self, name: str) -> _Place:
        return _Place(f"{self.path}.{quote(name)}", self.by_name, self.depth + 1)


def _assigned(text: str, source: DataType, target: DataType, place: _Place) -> str:
    """`text` as Spark SQL of the target type; refuses what Spark refuses."""
    if source == target:
        return text
    if source == NULL or (is_atomic(source) and is_atomic(target)):
        if not can_assign(source, target):
            raise _refusal(source, target, place)
        if can_overflow(source, target):
            return checked_cast(text, source, target, place.path)
        return f"CAST({text} AS {target.sql})"
    made = _rebuilt(text, source, target, place)
    return f"CAST({text} AS {target.sql})" if _is_plain(source, target, place.by_name) else made


def _rebuilt(text: str, source: DataType, target: DataType, place: _Place) -> str:
    """An array, map or struct made anew of its assigned parts."""
    match source, target:
        case Array(), Array():
            return _array(text, source, target, place)
        case Map(), Map():
            return _map(text, source, target, place)
        case Struct(), Struct():
            return _struct(text, source, target, place)
    raise _refusal(source, target, place)


def _array(text: str, source: Array, target: Array, place: _Place) -> str:
    inside = place.inside("element")
    _require_room(source.contains_null, target.contains_null, inside)
    e = f"e{place.depth}"
    return f"transform({text}, {e} -> {_assigned(e, source.element, target.element, inside)})"


def _map(text: str, source: Map, target: Map, place: _Place) -> str:
    inside = place.inside("value")
    _require_room(source.value_contains_null, target.value_contains_null, inside)
    k, v = f"k{place.depth}", f"v{place.depth}"
    key = _assigned(k, source.key, target.key, place.inside("key"))
    value = _assigned(v, source.value, target.value, inside)
    keyed = text if key == k else f"transform_keys({text}, ({k}, {v}) -> {key})"
    return keyed if value == v else f"transform_values({keyed}, ({k}, {v}) -> {value})"


def _struct(text: str, source: Struct, target: Struct, place: _Place) -> str:
    parts = []
    for given, wanted in _pairs(source, target, place):
        inside = place.inside(wanted.name)
        _require_room(given.nullable, wanted.nullable, inside)
        part = _assigned(f"({text}).{quote(given.name)}", given.type, wanted.type, inside)
        parts.append(f"{quote_text(wanted.name)}, {part}")
    return f"(CASE WHEN {text} IS NOT NULL THEN named_struct({', '.join(parts)}) END)"


def _pairs(source: Struct, target: Struct, place: _Place) -> list[tuple[Field, Field]]:
    """The field that each field of the target is made of; all are needed, none is left."""
    given = {f.name.lower(): f for f in source.fields}
    names = [f.name.lower() for f in target.fields]
    if len(source.fields) != len(names) or (place.by_name and set(given) != set(names)):
        raise _refusal(source, target, place)
    if not place.by_name:
        return list(zip(source.fields, target.fields, strict=True))
    return [(given[name], f) for name, f in zip(names, target.fields, strict=True)]


def _is_plain(source: DataType, target: DataType, by_name: bool) -> bool:
    """Is one CAST, which takes fields by position and never checks, the assignment?"""
    match source, target:
        case Array(), Array():
            return _is_plain(source.element, target.element, by_name)
        case Map(), Map():
            key = _is_plain(source.key, target.key, by_name)
            return key and _is_plain(source.value, target.value, by_name)
        case Struct(), Struct():
            return all(
                _is_plain(f.type, g.type, by_name)
                and (not by_name or f.name.lower() == g.name.lower())
                for f, g in zip(source.fields, target.fields, strict=True)
            )
    return not can_overflow(source, target)


def _require_room(nullable: bool, allowed: bool, place: _Place) -> None:
    """Refuse what may be NULL inside a value that must hold none."""
    if nullable and not allowed:
        raise SqlError(
            f"{place.path} takes no NULL, and the value may hold one.",
            code="WRONG_TYPES",
            hint="Put coalesce around it, inside the value.",
        )


def _refusal(source: DataType, target: DataType, place: _Place) -> SqlError:
    where = f" in {place.path}" if place.depth else ""
    return SqlError(
        f"A value of type {source.sql} cannot be stored as {target.sql}{where}.",
        code="WRONG_TYPES",
        hint="Write CAST(value AS type) to convert it on purpose.",
    )
