"""Spark SQL types, and their forms in DDL, in JSON and in Arrow.

The JSON form is the one Spark's own schemas use, so that a schema travels to Spark and back
without translation tables.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from slackwater.errors import InternalError, UserError

WEIGHT = "__w"
"""The hidden column that holds a row's weight in change batches and segments."""


@dataclass(frozen=True, slots=True)
class DataType:
    """A Spark SQL type. `sql` is its DDL form."""

    @property
    def sql(self) -> str:
        raise InternalError(f"{type(self).__name__} has no DDL or JSON form")

    @property
    def json(self) -> Any:
        raise InternalError(f"{type(self).__name__} has no DDL or JSON form")

    def __str__(self) -> str:
        return self.sql


@dataclass(frozen=True, slots=True)
class Atomic(DataType):
    """A type without parameters, by its Spark JSON name."""

    name: str

    @property
    def sql(self) -> str:
        return _DDL.get(self.name, self.name).upper()

    @property
    def json(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Decimal(DataType):
    """DECIMAL(precision, scale), at most 38 digits."""

    precision: int = 10
    scale: int = 0

    @property
    def sql(self) -> str:
        return f"DECIMAL({self.precision},{self.scale})"

    @property
    def json(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class Array(DataType):
    """ARRAY<element>."""

    element: DataType
    contains_null: bool = True

    @property
    def sql(self) -> str:
        return f"ARRAY<{self.element.sql}>"

    @property
    def json(self) -> Any:
        return {
            "type": "array",
            "elementType": self.element.json,
            "containsNull": self.contains_null,
        }


@dataclass(frozen=True, slots=True)
class Map(DataType):
    """MAP<key, value>."""

    key: DataType
    value: DataType
    value_contains_null: bool = True

    @property
    def sql(self) -> str:
        return f"MAP<{self.key.sql}, {self.value.sql}>"

    @property
    def json(self) -> Any:
        return {
            "type": "map",
            "keyType": self.key.json,
            "valueType": self.value.json,
            "valueContainsNull": self.value_contains_null,
        }


@dataclass(frozen=True, slots=True)
class Field:
    """A named, typed column."""

    name: str
    type: DataType
    nullable: bool = True

    @property
    def json(self) -> Any:
        return {
            "name": self.name,
            "type": self.type.json,
            "nullable": self.nullable,
            "metadata": {},
        }


Schema = tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Struct(DataType):
    """STRUCT<fields>."""

    fields: Schema

    @property
    def sql(self) -> str:
        inner = ", ".join(
            f"{quote(f.name)}: {f.type.sql}{'' if f.nullable else ' NOT NULL'}" for f in self.fields
        )
        return f"STRUCT<{inner}>"

    @property
    def json(self) -> Any:
        return schema_to_json(self.fields)


BOOLEAN = Atomic("boolean")
TINYINT = Atomic("byte")
SMALLINT = Atomic("short")
INT = Atomic("integer")
BIGINT = Atomic("long")
FLOAT = Atomic("float")
DOUBLE = Atomic("double")
STRING = Atomic("string")
BINARY = Atomic("binary")
DATE = Atomic("date")
TIMESTAMP = Atomic("timestamp")
TIMESTAMP_NTZ = Atomic("timestamp_ntz")
NULL = Atomic("void")
DAY_TIME = Atomic("interval day to second")
YEAR_MONTH = Atomic("interval year to month")

INTEGRAL: tuple[DataType, ...] = (TINYINT, SMALLINT, INT, BIGINT)
FRACTIONAL: tuple[DataType, ...] = (FLOAT, DOUBLE)

_DDL = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
}
_NAMES = {
    "boolean": BOOLEAN,
    "bool": BOOLEAN,
    "tinyint": TINYINT,
    "byte": TINYINT,
    "smallint": SMALLINT,
    "short": SMALLINT,
    "int": INT,
    "integer": INT,
    "bigint": BIGINT,
    "long": BIGINT,
    "float": FLOAT,
    "real": FLOAT,
    "double": DOUBLE,
    "string": STRING,
    "text": STRING,
    "binary": BINARY,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "timestamp_ltz": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ,
    "void": NULL,
    "null": NULL,
}


def is_integral(t: DataType) -> bool:
    """TINYINT, SMALLINT, INT or BIGINT."""
    return t in INTEGRAL


def is_fractional(t: DataType) -> bool:
    """FLOAT or DOUBLE: compared with tolerance, never cancelled exactly."""
    return t in FRACTIONAL


def is_numeric(t: DataType) -> bool:
    """Any number type."""
    return is_integral(t) or is_fractional(t) or isinstance(t, Decimal)


def is_atomic(t: DataType) -> bool:
    """Not an array, map or struct."""
    return isinstance(t, Atomic | Decimal)


def quote(name: str) -> str:
    """A name as a Spark identifier.

    >>> quote("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def quote_text(value: str) -> str:
    """A string literal of Spark SQL.

    >>> print(quote_text("it's"))
    'it\\'s'
    """
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def schema_to_json(schema: Schema) -> Any:
    """The JSON form of a schema, as `StructType.jsonValue()` gives it."""
    return {"type": "struct", "fields": [f.json for f in schema]}


def type_from_json(value: Any) -> DataType:
    """The type that Spark's JSON form stands for."""
    if isinstance(value, str):
        if match := re.fullmatch(r"decimal\((\d+),\s*(-?\d+)\)", value):
            return Decimal(int(match[1]), int(match[2]))
        if re.fullmatch(r"(char|varchar)\(\d+\)", value) or value.startswith("string"):
            return STRING
        return Atomic(value)
    match value["type"]:
        case "array":
            return Array(type_from_json(value["elementType"]), value["containsNull"])
        case "map":
            key, inner = type_from_json(value["keyType"]), type_from_json(value["valueType"])
            return Map(key, inner, value["valueContainsNull"])
        case "struct":
            return Struct(schema_from_json(value))
    return Atomic(str(value["type"]))


def schema_from_json(value: Any) -> Schema:
    """The schema that Spark's JSON form stands for."""
    return tuple(
        Field(f["name"], type_from_json(f["type"]), f.get("nullable", True))
        for f in value["fields"]
    )


def parse_type(text: str) -> DataType:
    """A type from its DDL form.

    >>> parse_type("decimal(12, 2)").sql
    'DECIMAL(12,2)'
    >>> parse_type("array<struct<a: int, b: string>>").sql
    'ARRAY<STRUCT<`a`: INT, `b`: STRING>>'
    """
    name, _, rest = text.strip().partition("<")
    if rest:
        return _parse_nested(name.strip().lower(), rest.rstrip()[:-1], text)
    word = re.sub(r"\s+", " ", text.strip().lower())
    if match := re.fullmatch(
        r"(?:decimal|dec|numeric)(?:\s?\(\s?(\d+)\s?(?:,\s?(\d+)\s?)?\))?", word
    ):
        precision, scale = int(match[1] or 10), int(match[2] or 0)
        if not 1 <= precision <= 38 or scale > precision:
            raise UserError(
                f"DECIMAL({precision},{scale}) is out of range.",
                code="BAD_TYPE",
                hint="Precision goes from 1 to 38, scale from 0 to the precision.",
            )
        return Decimal(precision, scale)
    if re.fullmatch(r"(var)?char\s?(\(\s?\d+\s?\))?|character varying\s?(\(\s?\d+\s?\))?", word):
        return STRING
    if word in _NAMES:
        return _NAMES[word]
    if word.startswith("interval ") or word in ("variant", "time"):
        return Atomic(word)
    raise UserError(f"Type '{text}' is not known.", code="BAD_TYPE", hint="Use a Spark SQL type.")


def _parse_nested(name: str, inner: str, text: str) -> DataType:
    parts = _split(inner)
    if name == "array" and len(parts) == 1:
        return Array(parse_type(parts[0]))
    if name == "map" and len(parts) == 2:
        return Map(parse_type(parts[0]), parse_type(parts[1]))
    if name == "struct":
        return Struct(tuple(_parse_field(p) for p in parts))
    raise UserError(f"Type '{text}' is not known.", code="BAD_TYPE", hint="Use a Spark SQL type.")


def _parse_field(text: str) -> Field:
    match = re.fullmatch(
        r"\s*(`(?:[^`]|``)+`|[^\s:]+)\s*:?\s*(.+?)(\s+not\s+null)?\s*", text, re.I | re.S
    )
    if match is None:
        raise UserError(f"Field '{text}' is not a name and a type.", code="BAD_TYPE")
    return Field(match[1].strip("`").replace("``", "`"), parse_type(match[2]), match[3] is None)


def _split(text: str) -> list[str]:
    """Split at commas that stand outside any bracket."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]]


_ARROW: dict[DataType, pa.DataType] = {
    BOOLEAN: pa.bool_(),
    TINYINT: pa.int8(),
    SMALLINT: pa.int16(),
    INT: pa.int32(),
    BIGINT: pa.int64(),
    FLOAT: pa.float32(),
    DOUBLE: pa.float64(),
    STRING: pa.string(),
    BINARY: pa.binary(),
    DATE: pa.date32(),
    TIMESTAMP: pa.timestamp("us", tz="UTC"),
    TIMESTAMP_NTZ: pa.timestamp("us"),
    NULL: pa.null(),
    DAY_TIME: pa.duration("us"),
}


def to_arrow(t: DataType) -> pa.DataType:
    """The Arrow type that holds values of `t`."""
    match t:
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case Array(element, contains_null):
            return pa.list_(pa.field("element", to_arrow(element), contains_null))
        case Map(key, value, contains_null):
            return pa.map_(to_arrow(key), pa.field("value", to_arrow(value), contains_null))
        case Struct(fields):
            return pa.struct([pa.field(f.name, to_arrow(f.type), f.nullable) for f in fields])
    if t in _ARROW:
        return _ARROW[t]
    raise UserError(
        f"Values of type {t.sql} cannot be stored or fetched.",
        code="UNSUPPORTED_TYPE",
        hint="Cast the column to a type that Parquet holds, such as STRING.",
    )


def to_arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema of a relation's rows."""
    return pa.schema([pa.field(f.name, to_arrow(f.type), f.nullable) for f in schema])


def from_arrow(t: pa.DataType) -> DataType:
    """The Spark type that holds values of an Arrow type."""
    if pa.types.is_decimal(t):
        return Decimal(t.precision, t.scale)
    if pa.types.is_timestamp(t):
        return TIMESTAMP_NTZ if t.tz is None else TIMESTAMP
    if pa.types.is_list(t) or pa.types.is_large_list(t):
        return Array(from_arrow(t.value_type), t.value_field.nullable)
    if pa.types.is_map(t):
        return Map(from_arrow(t.key_type), from_arrow(t.item_type))
    if pa.types.is_struct(t):
        return Struct(tuple(Field(f.name, from_arrow(f.type), f.nullable) for f in t))
    if pa.types.is_dictionary(t):
        return from_arrow(t.value_type)
    if pa.types.is_duration(t):
        return DAY_TIME
    for spark, arrow in _ARROW.items():
        if t == arrow:
            return spark
    if t in _ARROW_ALIASES:
        return _ARROW_ALIASES[t]
    raise UserError(
        f"Arrow type {t} has no Spark SQL counterpart.",
        code="UNSUPPORTED_TYPE",
        hint="Cast the column before handing it in.",
    )


_ARROW_ALIASES: dict[pa.DataType, DataType] = {
    pa.large_string(): STRING,
    pa.string_view(): STRING,
    pa.large_binary(): BINARY,
    pa.uint8(): SMALLINT,
    pa.uint16(): INT,
    pa.uint32(): BIGINT,
    pa.uint64(): Decimal(20, 0),
    pa.date64(): DATE,
    pa.float16(): FLOAT,
}


class TypeOracle(Protocol):
    """Somebody who knows the type of any Spark expression: Spark's analyzer."""

    def describe(self, text: str, args: Sequence[Any]) -> tuple[DataType, bool, bool]:
        """Type, nullability and determinism of Spark expression `text`, in which `{0}` stands
        for the first of `args` (expressions of the algebra)."""
        ...

    def describe_query(self, text: str, inputs: Sequence[Schema]) -> Schema:
        """Output schema of Spark query `text`, in which `{0}` stands for the first input."""
        ...

    def describe_generator(self, text: str, args: Sequence[Any], aliases: Sequence[str]) -> Schema:
        """The columns that generator `text` makes, under `aliases` if there are any."""
        ...
