"""CREATE and DROP of tables and views."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from slackwater.algebra.relation import Scan
from slackwater.catalog.ids import new_id
from slackwater.catalog.model import (
    AddSegments,
    CreateTable,
    CreateView,
    Drop,
    FinishRun,
    NameIsFree,
    NotNeeded,
    ReplaceSegments,
    ReplaceView,
    Table,
    VersionIs,
    View,
)
from slackwater.engine.publish import unpublish
from slackwater.engine.runner import measurements
from slackwater.errors import SlackwaterError, SqlError, UserError
from slackwater.planner.steps import Output, WriteSegments
from slackwater.sources import parquet
from slackwater.sql import bind, statements
from slackwater.sql.assign import Target, default_value
from slackwater.sql.options import check_view_options
from slackwater.sql.scope import unique_names
from slackwater.sql.tables import renamed, unordered
from slackwater.tvr import zset
from slackwater.types import NULL, WEIGHT, Field, Schema, to_arrow
from slackwater.work import parts
from slackwater.work.basis import readers
from slackwater.work.house import House
from slackwater.work.promises import primary_columns, promising
from slackwater.work.reachable import notice
from slackwater.work.world import World

LATER = {
    "delta": "Delta Lake tables",
    "iceberg": "Iceberg tables",
    "kafka": "Kafka topics",
}
LONGEST_NAME = 1000


def create_table(house: House, statement: statements.CreateTable) -> str:
    """A managed table, an external one, or one filled by a query."""
    world = World(house, house.catalog.snapshot())
    if _exists(world, statement.name, statement.if_not_exists):
        return f"'{statement.name}' exists already"
    if statement.source in LATER:
        raise UserError(
            f"{LATER[statement.source]} are not supported yet.",
            code="SOURCE_NOT_YET",
            hint="Managed tables and Parquet folders (USING parquet) are.",
        )
    if statement.query is not None:
        with _tolerating("NAME_TAKEN", statement.if_not_exists):
            return _create_from_query(house, statement)
        return f"'{statement.name}' exists already"
    if statement.source == "parquet" and "path" in statement.options:
        table = _external(statement)
        table = promising(world, table, statement.constraints)
    elif statement.source in ("managed", "parquet"):
        table = _managed(world, statement)
    else:
        raise UserError(
            f"USING {statement.source} is not known.",
            code="BAD_OPTION",
            hint="Leave it out for a managed table, or write USING parquet OPTIONS (path '…').",
        )
    with _tolerating("NAME_TAKEN", statement.if_not_exists) as met:
        house.catalog.commit([NameIsFree(table.name)], [CreateTable(table)])
    return f"'{table.name}' exists already" if met else f"table '{table.name}' created"


@contextmanager
def _tolerating(code: str, tolerated: bool) -> Iterator[list[str]]:
    """IF [NOT] EXISTS holds, too, when somebody else was faster; the list then says so."""
    met: list[str] = []
    try:
        yield met
    except SlackwaterError as error:
        if error.code != code or not tolerated:
            raise
        met.append(code)


def _exists(world: World, name: str, tolerated: bool) -> bool:
    if not name.strip() or len(name) > LONGEST_NAME:
        raise UserError(
            f"A name has 1 to {LONGEST_NAME} characters; this one has {len(name)}.",
            code="BAD_NAME",
        )
    found = world.snapshot.find(name)
    if found is not None and not tolerated:
        kind = "view" if isinstance(found, View) else "table"
        raise UserError(
            f"A {kind} named '{found.name}' exists already.",
            code="NAME_TAKEN",
            hint="Choose another name, or drop it first.",
        )
    return found is not None


def check_columns(schema: Schema, what: str) -> None:
    if not schema:
        raise UserError(f"{what} has no columns.", code="BAD_COLUMNS")
    twice = unique_names(f.name for f in schema)
    if twice is not None:
        raise UserError(
            f"{what} has two columns named '{twice}'.",
            code="BAD_COLUMNS",
            hint="Give each column a name of its own, with AS in a query.",
        )
    for f in schema:
        if f.name.lower() == WEIGHT or not f.name:
            raise UserError(f"'{f.name}' cannot name a column.", code="BAD_COLUMNS")
        if f.type == NULL:
            raise UserError(
                f"Column '{f.name}' of {what} has no type, being always NULL.",
                code="UNSUPPORTED_TYPE",
                hint="Write CAST(NULL AS type).",
            )
        to_arrow(f.type)


def _managed(world: World, statement: statements.CreateTable) -> Table:
    never_null = primary_columns(statement.constraints)
    schema = tuple(
        Field(c.name, c.type, c.nullable and c.name.lower() not in never_null)
        for c in statement.columns
    )
    check_columns(schema, f"Table '{statement.name}'")
    defaults = {c.name: c.default for c in statement.columns if c.default is not None}
    table = Table(new_id("t"), statement.name, schema, options=statement.options, defaults=defaults)
    _check_defaults(world, table)
    return promising(world, table, statement.constraints)


def _check_defaults(world: World, table: Table) -> None:
    """Each default binds, over no columns, to a value that its column can hold."""
    target = Target(table.name, Scan(table.id, table.name, table.schema), table.defaults)
    for i, f in enumerate(table.schema):
        if f.name in table.defaults:
            default_value(world.context(), target, i)


def _external(statement: statements.CreateTable) -> Table:
    folder = str(Path(statement.options["path"]).absolute())
    if any(not c.nullable or c.default is not None for c in statement.columns):
        raise UserError(
            "NOT NULL and DEFAULT cannot be kept for files of others.",
            code="BAD_COLUMNS",
            hint="Leave them out; filter NULLs in the views.",
        )
    found = parquet.files(folder)
    declared = tuple(Field(c.name, c.type, True) for c in statement.columns)
    schema = declared or parquet.infer_schema(folder, found)
    check_columns(schema, f"Table '{statement.name}'")
    parquet.check_schema(schema, found, statement.name)
    options = {**statement.options, "path": folder}
    return Table(new_id("t"), statement.name, schema, source="parquet", options=options)


def _create_from_query(house: House, statement: statements.CreateTable) -> str:
    """CREATE TABLE … AS SELECT: definition and rows in one commit."""
    with house.catalog.reading() as snapshot:
        return _load(house, World(house, snapshot), statement)


def _load(house: House, world: World, statement: statements.CreateTable) -> str:
    assert statement.query is not None
    relation = unordered(bind.bind(statement.query, world.context()))
    if statement.columns or statement.constraints:
        raise UserError("CREATE TABLE … AS takes its columns from the query.", code="BAD_COLUMNS")
    schema = tuple(Field(f.name, f.type, True) for f in relation.schema)
    check_columns(schema, f"Table '{statement.name}'")
    table = Table(new_id("t"), statement.name, schema, options=statement.options)
    with house.catalog.running("load") as run:
        output = Output(table.id, zset.with_weight(relation))
        step = WriteSegments(f"load {table.name}", (output,))
        with world.steady_files():
            written = house.runner.run(step, run, world.sources(relation))
        house.catalog.commit(
            [NameIsFree(table.name), run.requirement],
            [
                CreateTable(table),
                AddSegments(table.id, written.only),
                FinishRun(run.id, measurements([written.report])),
            ],
        )
    return f"table '{table.name}' created with {written.report.rows} rows"


def create_view(house: House, statement: statements.CreateView) -> str:
    """CREATE [OR REPLACE] MATERIALIZED VIEW; its content comes with the first refresh."""
    world = World(house, house.catalog.snapshot(), defining=True)
    view = view_of(world, statement)
    if view is None:
        return f"'{statement.name}' exists already"
    if view.id in world.snapshot:
        return _replace_view(house, world, view)
    with _tolerating("NAME_TAKEN", statement.if_not_exists) as met:
        house.catalog.commit([NameIsFree(view.name)], [CreateView(view)])
    if met:
        return f"'{view.name}' exists already"
    told = notice(house, view.name)
    return f"view '{view.name}' created; refresh it to compute its content{told}"


def view_of(world: World, statement: statements.CreateView) -> View | None:
    """The view that a statement makes, under the id of the one that it replaces or a new one;
    None where there is one already and that is fine."""
    options = check_view_options(statement.options, statement.name)
    known = world.snapshot.find(statement.name)
    if isinstance(known, View) and statement.or_replace:
        view = _view(world, statement, options, known.id)
        _check_replaceable(world, known, view)
        return view
    if _exists(world, statement.name, statement.if_not_exists):
        return None
    return _view(world, statement, options, new_id("v"))


def _view(world: World, statement: statements.CreateView, options: dict[str, str], id: str) -> View:
    try:
        relation = unordered(bind.bind(statement.query, world.context()))
        if statement.columns:
            relation = renamed(relation, list(statement.columns), statement.name)
    except SqlError as error:
        if error.sql == statement.query and error.start is not None:
            error.sql = statement.text
            error.start += statement.offset
            error.end = None if error.end is None else error.end + statement.offset
        raise
    schema = relation.schema
    check_columns(schema, f"View '{statement.name}'")
    depends = tuple(dict.fromkeys(s.source for s in relation.scans()))
    options = dict(options)
    if statement.columns:
        options["columns"] = "\n".join(statement.columns)
    return View(
        id=id,
        name=statement.name,
        schema=schema,
        sql=statement.query,
        options=options,
        depends=depends,
        widths={t.id: len(t.schema) for t in world.snapshot.tables() if t.id in depends},
    )


def _check_replaceable(world: World, known: View, view: View) -> None:
    if known.id in upstream(world, view):
        raise UserError(
            f"View '{view.name}' would depend on itself.",
            code="CYCLE",
            hint="A view may read only what does not read it.",
        )
    needed = world.snapshot.dependents(known.id)
    if needed and view.schema != known.schema:
        raise UserError(
            f"View '{view.name}' is read by {', '.join(v.name for v in needed)}, "
            "and its columns would change.",
            code="STILL_NEEDED",
            hint="Drop those views first, or keep the columns.",
        )


def _replace_view(house: House, world: World, view: View) -> str:
    known = world.view(view.name)
    formed = [reader.id for reader in readers(world.snapshot, known) if reader.form]
    with house.lease(known.id, *formed) as lease:
        newest = World(house, house.catalog.snapshot(), defining=True)
        house.catalog.commit(
            [*lease.requirements, VersionIs(known.id, known.version)],
            [
                ReplaceView(replace(view, refreshed_at=None)),
                ReplaceSegments(known.id, ()),
                *parts.replaced(newest, known),
            ],
        )
    told = notice(house, view.name)
    return f"view '{view.name}' replaced; refresh it to compute its content{told}"


def upstream(world: World, view: View) -> set[str]:
    """Ids of everything a view reads, directly or through other views."""
    found: set[str] = set()
    queue = list(view.depends)
    while queue:
        id = queue.pop()
        if id not in found:
            found.add(id)
            relation = world.snapshot.get(id)
            queue += relation.depends if isinstance(relation, View) else ()
    return found


def drop(house: House, statement: statements.Drop) -> str:
    """DROP TABLE or DROP VIEW; refused while a view needs it."""
    world = World(house, house.catalog.snapshot())
    found = world.snapshot.find(statement.name)
    kind = "view" if isinstance(found, View) else "table"
    if found is None or kind != statement.kind:
        if found is None and statement.if_exists:
            return f"{statement.kind} '{statement.name}' does not exist"
        if found is not None:
            raise UserError(
                f"'{found.name}' is a {kind}, not a {statement.kind}.",
                code="WRONG_KIND",
                hint=f"Write DROP {'MATERIALIZED VIEW' if kind == 'view' else 'TABLE'}.",
            )
        world.view(statement.name) if statement.kind == "view" else world.table(statement.name)
    assert found is not None
    tolerating = _tolerating("RELATION_GONE", statement.if_exists)
    with tolerating, house.lease(found.id) as lease:
        newest = house.catalog.snapshot()
        gone = parts.without(newest, found) if isinstance(found, View) else []
        house.catalog.commit([NotNeeded(found.id), *lease.requirements], [Drop(found.id), *gone])
    if isinstance(found, View):
        unpublish(house.storage, found)
    return f"{kind} '{found.name}' dropped"
