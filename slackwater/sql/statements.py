"""Statements as data. What sqlglot does not know is read from tokens here."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from slackwater.errors import SqlError
from slackwater.sql import constraints
from slackwater.sql.column_defs import ColumnDef, added_columns, added_constraints, column_def
from slackwater.sql.cursor import Cursor
from slackwater.sql.parse import Script, parse, split
from slackwater.sql.tables import table_name


@dataclass(frozen=True)
class Statement:
    """One statement, with its text."""

    text: str


@dataclass(frozen=True)
class Query(Statement):
    """SELECT, WITH, VALUES."""


@dataclass(frozen=True)
class CreateTable(Statement):
    """CREATE TABLE."""

    name: str
    columns: tuple[ColumnDef, ...]
    source: str = "managed"
    options: dict[str, str] = field(default_factory=dict)
    if_not_exists: bool = False
    query: str | None = None
    constraints: tuple[constraints.ConstraintDef, ...] = ()


@dataclass(frozen=True)
class CreateView(Statement):
    """CREATE MATERIALIZED VIEW."""

    name: str
    query: str
    offset: int  # where the query stands in the text
    columns: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class Change(Statement):
    """INSERT, UPDATE, DELETE or MERGE on one table."""

    table: str
    tree: exp.Expr


@dataclass(frozen=True)
class Truncate(Statement):
    """TRUNCATE TABLE."""

    table: str


@dataclass(frozen=True)
class Refresh(Statement):
    """REFRESH MATERIALIZED VIEW name [FULL]."""

    name: str
    full: bool = False


@dataclass(frozen=True)
class AlterView(Statement):
    """ALTER MATERIALIZED VIEW name SET (…) or RESET (…)."""

    name: str
    options: dict[str, str]
    taken_back: tuple[str, ...] = ()


@dataclass(frozen=True)
class AlterWarehouse(Statement):
    """ALTER WAREHOUSE SET (…) or RESET (…)."""

    settings: dict[str, str]
    taken_back: tuple[str, ...] = ()


@dataclass(frozen=True)
class AddColumns(Statement):
    """ALTER TABLE name ADD COLUMN[S] …"""

    table: str
    columns: tuple[ColumnDef, ...]


@dataclass(frozen=True)
class AddConstraints(Statement):
    """ALTER TABLE name ADD [CONSTRAINT name] PRIMARY KEY, UNIQUE or FOREIGN KEY …"""

    table: str
    constraints: tuple[constraints.ConstraintDef, ...]


@dataclass(frozen=True)
class DropConstraint(Statement):
    """ALTER TABLE name DROP CONSTRAINT [IF EXISTS] name"""

    table: str
    name: str
    if_exists: bool


@dataclass(frozen=True)
class Drop(Statement):
    """DROP TABLE or DROP [MATERIALIZED] VIEW."""

    name: str
    kind: str  # "table" or "view"
    if_exists: bool = False


@dataclass(frozen=True)
class Explain(Statement):
    """EXPLAIN [ALTERNATIVES] [FORMAT JSON] query-or-view."""

    target: str
    json: bool = False
    alternatives: bool = False


@dataclass(frozen=True)
class Show(Statement):
    """SHOW TABLES, SHOW VIEWS or SHOW SETTINGS."""

    what: str


@dataclass(frozen=True)
class Describe(Statement):
    """DESCRIBE name."""

    name: str


def statements(text: str) -> list[Statement]:
    """The statements of a script."""
    return [read(script) for script in split(text)]


def read(script: Script) -> Statement:
    """One statement."""
    try:
        return _read(script)
    except SqlError as error:
        raise error.located(script.text) from None


def _read(script: Script) -> Statement:
    words = script.words(6)
    for start, reader in _BY_WORDS.items():
        if _begins(words, start.split()):
            return reader(Cursor(script))
    if words[0] in ("SELECT", "VALUES"):
        return Query(script.text)  # which is parsed when it is bound
    tree = parse(script.text)
    if isinstance(tree, exp.Query):
        return Query(script.text)
    reader_of_tree = _BY_TREE.get(type(tree))
    if reader_of_tree is None:
        raise SqlError(
            f"Statement '{words[0]}' is not supported.",
            code="UNSUPPORTED_STATEMENT",
            hint="See the README for the statements Slackwater understands.",
            start=0,
            end=len(words[0]),
        )
    return reader_of_tree(script.text, tree)


def _begins(words: tuple[str, ...], start: list[str]) -> bool:
    rest = [w for w in words if w not in ("OR", "REPLACE")] if "OR" in words[1:2] else list(words)
    return rest[: len(start)] == start


def _create_view(c: Cursor) -> Statement:
    c.expect("CREATE")
    or_replace = c.accept("OR", "REPLACE")
    c.expect("MATERIALIZED", "VIEW")
    if_not_exists = c.accept("IF", "NOT", "EXISTS")
    name = c.name()
    columns = _names(c)
    if c.accept("COMMENT"):
        c.value()
    options: dict[str, str] = {}
    if c.accept("WITH"):
        options = c.options()
    elif c.sees("OPTIONS", "TBLPROPERTIES"):
        raise c.error("options are written WITH (schedule = 'daily 06:00', …)")
    c.expect("AS")
    query, offset = c.rest()
    return CreateView(
        c.script.text, name, query, offset, columns, options, or_replace, if_not_exists
    )


def _names(c: Cursor) -> tuple[str, ...]:
    names: list[str] = []
    if c.accept("("):
        while not c.accept(")"):
            names.append(c.name())
            if not c.accept(","):
                c.expect(")")
                break
    return tuple(names)


def _plain_view(c: Cursor) -> Statement:
    raise SqlError(
        "Only materialized views are kept.",
        code="UNSUPPORTED_STATEMENT",
        hint="Write CREATE MATERIALIZED VIEW.",
        start=0,
        end=6,
    )


def _refresh(c: Cursor) -> Statement:
    c.expect("REFRESH")
    c.accept("MATERIALIZED")
    c.expect("VIEW")
    name = c.name()
    full = c.accept("FULL")
    c.end()
    return Refresh(c.script.text, name, full)


def _alter(c: Cursor) -> Statement:
    c.expect("ALTER")
    c.accept("MATERIALIZED")
    c.expect("VIEW")
    name = c.name()
    return AlterView(c.script.text, name, *_set_or_reset(c))


def _alter_warehouse(c: Cursor) -> Statement:
    c.expect("ALTER", "WAREHOUSE")
    return AlterWarehouse(c.script.text, *_set_or_reset(c))


def _set_or_reset(c: Cursor) -> tuple[dict[str, str], tuple[str, ...]]:
    """What is said from now on, and what is no longer said."""
    if not c.accept("SET") and not c.accept("RESET"):
        raise c.error("SET or RESET is expected")
    said: dict[str, str] = {}
    taken_back: tuple[str, ...] = ()
    if c.tokens[c.at - 1].text.upper() == "SET":
        said = c.options()
    else:
        taken_back = _names(c)
    c.end()
    return said, taken_back


def _alter_table(c: Cursor) -> Statement:
    c.expect("ALTER", "TABLE")
    name = c.name()
    if c.accept("ADD", "COLUMN") or c.accept("ADD", "COLUMNS"):
        return AddColumns(c.script.text, name, added_columns(c))
    if c.accept("DROP", "CONSTRAINT"):
        if_exists = c.accept("IF", "EXISTS")
        return DropConstraint(c.script.text, name, c.name(), if_exists)
    if c.accept("ADD") and c.sees("CONSTRAINT", "PRIMARY", "FOREIGN", "UNIQUE"):
        return AddConstraints(c.script.text, name, added_constraints(c))
    raise SqlError(
        "Of ALTER TABLE, only ADD COLUMN, ADD CONSTRAINT and DROP CONSTRAINT are supported.",
        code="UNSUPPORTED_STATEMENT",
        hint="For other changes, CREATE TABLE … AS SELECT makes a new table of the old one.",
        start=0,
        end=len("ALTER TABLE"),
    )


_EXPLAINED = re.compile(
    r"(?P<others>ALTERNATIVES\s+)?(?P<json>(FORMAT\s+)?JSON\s+)?(MATERIALIZED\s+VIEW\s+)?(?P<what>.+)",
    re.IGNORECASE | re.DOTALL,
)


def _explain(c: Cursor) -> Statement:
    """What follows EXPLAIN is one token: a view's name or a query, after words that say how."""
    c.expect("EXPLAIN")
    token = c.peek()
    found = _EXPLAINED.fullmatch(token.text.strip()) if token is not None else None
    if found is None:
        raise c.error("a view or a query is expected")
    json, others = bool(found["json"]), bool(found["others"])
    return Explain(c.script.text, found["what"], json, others)


def _show(c: Cursor) -> Statement:
    c.expect("SHOW")
    c.accept("MATERIALIZED")
    if not (c.accept("TABLES") or c.accept("VIEWS") or c.accept("SETTINGS")):
        raise c.error("TABLES, VIEWS or SETTINGS is expected")
    what = c.tokens[c.at - 1].text.lower()
    c.end()
    return Show(c.script.text, what)


def _describe(c: Cursor) -> Statement:
    c.at += 1
    for word in ("TABLE", "VIEW", "EXTENDED"):
        c.accept(word)
    name = c.name()
    c.end()
    return Describe(c.script.text, name)


def _drop(c: Cursor) -> Statement:
    c.expect("DROP")
    c.accept("MATERIALIZED")
    kind = "table" if c.accept("TABLE") else "view"
    if kind == "view":
        c.expect("VIEW")
    if_exists = c.accept("IF", "EXISTS")
    name = c.name()
    c.end()
    return Drop(c.script.text, name, kind, if_exists)


def _truncate(c: Cursor) -> Statement:
    c.expect("TRUNCATE")
    c.accept("TABLE")
    name = c.name()
    c.end()
    return Truncate(c.script.text, name)


_BY_WORDS: dict[str, Callable[[Cursor], Statement]] = {
    "CREATE MATERIALIZED VIEW": _create_view,
    "CREATE VIEW": _plain_view,
    "REFRESH": _refresh,
    "ALTER MATERIALIZED": _alter,
    "ALTER VIEW": _alter,
    "ALTER TABLE": _alter_table,
    "ALTER WAREHOUSE": _alter_warehouse,
    "EXPLAIN": _explain,
    "SHOW": _show,
    "DESCRIBE": _describe,
    "DESC": _describe,
    "DROP TABLE": _drop,
    "DROP VIEW": _drop,
    "DROP MATERIALIZED": _drop,
    "TRUNCATE": _truncate,
}


# -- statements that sqlglot reads


def _create_table(text: str, tree: exp.Expr) -> Statement:
    if (tree.args.get("kind") or "").upper() != "TABLE":
        raise SqlError(
            f"CREATE {tree.args.get('kind')} is not supported.", code="UNSUPPORTED_STATEMENT"
        )
    if tree.args.get("replace"):
        raise SqlError(
            "CREATE OR REPLACE TABLE is not supported.",
            code="UNSUPPORTED_STATEMENT",
            hint="DROP the table first, or TRUNCATE it.",
        )
    target = tree.this
    schema = target if isinstance(target, exp.Schema) else None
    name = table_name(target.this if schema is not None else target)
    items = schema.expressions if schema is not None else []
    columns = tuple(column_def(c) for c in items if not isinstance(c, constraints.NODES))
    source, options = _properties(tree)
    query = tree.expression.sql(dialect="spark") if tree.expression is not None else None
    exists, promised = bool(tree.args.get("exists")), constraints.constraint_defs(items)
    return CreateTable(text, name, columns, source, options, exists, query, promised)


def _properties(tree: exp.Expr) -> tuple[str, dict[str, str]]:
    source, options = "managed", {}
    properties = tree.args.get("properties")
    for item in properties.expressions if properties is not None else []:
        if isinstance(item, exp.FileFormatProperty):
            source = item.this.name.lower()
        elif isinstance(item, exp.OptionsProperty):
            for option in item.expressions:
                options[option.this.name.lower()] = option.args["value"].name
        elif isinstance(item, exp.LocationProperty):
            options["path"] = item.this.name
        elif not isinstance(item, exp.SchemaCommentProperty):
            raise SqlError(
                f"'{item.sql(dialect='spark')}' is not supported on a table.",
                code="UNSUPPORTED_STATEMENT",
            )
    return source, options


def _change(text: str, tree: exp.Expr) -> Statement:
    target = tree.this
    if isinstance(target, exp.Schema):
        target = target.this
    if not isinstance(target, exp.Table):
        raise SqlError("The target must be a table.", code="SYNTAX_ERROR")
    return Change(text, table_name(target), tree)


_BY_TREE: dict[type[exp.Expr], Callable[[str, exp.Expr], Statement]] = {
    exp.Create: _create_table,
    exp.Insert: _change,
    exp.Update: _change,
    exp.Delete: _change,
    exp.Merge: _change,
}
