"""The smallest stream that still fails in the same way, and a script that shows it."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

import sqlglot
from sqlglot import exp

from slackwater import UserError, Warehouse
from tests.change_maker import NAN, Batch, Change, Row, Table
from tests.streams import Failure, Opening, Stream, View, apply_batch, expanded, play, reads

T = TypeVar("T")


class Shrinker:
    """Makes a failing stream smaller, one accepted step after the other."""

    def __init__(self, stream: Stream, failure: Failure, opening: Opening, seconds: float) -> None:
        self.stream = stream
        self.failure = failure
        self.opening = opening
        self.until = time.monotonic() + seconds

    def shrink(self) -> Stream:
        """Views first, then batches and rows, then the query, until nothing helps."""
        self._take(self._one_view())
        self._take([_with_rows(self.stream, self.opening)])
        before = None
        while before != self.stream and time.monotonic() < self.until:
            before = self.stream
            for smaller in (self._batches, self._rows, self._columns, self._queries):
                while self._take(smaller()):
                    pass
        return self.stream

    def _take(self, candidates: Iterable[Stream]) -> bool:
        """Keep the first candidate that fails in the same way."""
        for candidate in candidates:
            if time.monotonic() > self.until:
                return False
            failure = failing(candidate, self.opening)
            if failure is not None and failure.kind == self.failure.kind:
                self.stream, self.failure = candidate, failure
                return True
        return False

    def _one_view(self) -> Iterator[Stream]:
        """The view alone over the tables; or with the views it reads."""
        views = self.stream.views
        for view in (v for v in views if v.name == self.failure.view):
            yield replace(self.stream, views=(View("v", expanded(view, views)),))
            needed, more = {view.name}, True
            while more:
                found = needed.union(*(reads(v.sql) for v in views if v.name in needed))
                needed, more = found, found != needed
            yield replace(self.stream, views=tuple(v for v in views if v.name in needed))

    def _batches(self) -> Iterator[Stream]:
        batches, early = self.stream.batches, self.stream.early
        for i in range(len(batches)):
            rest = (*batches[:i], *batches[i + 1 :])
            yield replace(self.stream, batches=rest, early=early - (i < early))
        for i in range(len(batches) - 1):  # two as one
            merged = (*batches[:i], batches[i] + batches[i + 1], *batches[i + 2 :])
            yield replace(self.stream, batches=merged, early=early - (i < early))
        for i, batch in enumerate(batches):
            for k in range(len(batch)):
                rest = (*batch[:k], *batch[k + 1 :])
                yield replace(self.stream, batches=(*batches[:i], rest, *batches[i + 1 :]))
        if len(self.stream.views) > 1 and not self.stream.together:
            yield replace(self.stream, together=True)

    def _rows(self) -> Iterator[Stream]:
        """Without a row in all batches, then without a row in one of them."""
        changes = [c for batch in self.stream.batches for c in batch]
        for table in {c.table for c in changes}:
            for row in dict.fromkeys(r for c in changes if c.table == table for r in c.rows):
                yield self._mapped(lambda c, t=table, r=row: _without(c, t, r))
        for change in changes:
            for i in range(len(change.rows)):
                less = Change(
                    change.table,
                    _drop(change.rows, i),
                    None if change.weights is None else _drop(change.weights, i),
                )
                yield self._mapped(lambda c, old=change, new=less: new if c is old else c)

    def _mapped(self, changed: object) -> Stream:
        assert callable(changed)
        batches = tuple(
            tuple(c for c in map(changed, batch) if c.sql or c.rows)
            for batch in self.stream.batches
        )
        return replace(self.stream, batches=batches)

    def _columns(self) -> Iterator[Stream]:
        """Without tables and columns that nothing reads."""
        used = set().union(*(reads(v.sql) for v in self.stream.views))
        kept = tuple(t for t in self.stream.tables if t.name in used)
        if len(kept) < len(self.stream.tables):
            batches = tuple(
                tuple(c for c in batch if c.table in used) for batch in self.stream.batches
            )
            yield replace(self.stream, tables=kept, batches=batches)
        if any(c.sql for batch in self.stream.batches for c in batch):
            return
        for table in self.stream.tables:
            for i in range(len(table.columns) if len(table.columns) > 1 else 0):
                less = Table(table.name, _drop(table.columns, i))
                tables = tuple(less if t is table else t for t in self.stream.tables)
                narrow = self._mapped(lambda c, t=table.name, i=i: _narrow(c, t, i))
                if self._binds(tables, self.stream.views):
                    yield replace(narrow, tables=tables)

    def _queries(self) -> Iterator[Stream]:
        """Views with shorter queries, the shortest first."""
        for place, view in enumerate(self.stream.views):
            for sql in sorted(simpler(view.sql), key=len):
                views = list(self.stream.views)
                views[place] = View(view.name, sql)
                if self._binds(self.stream.tables, tuple(views)):
                    yield replace(self.stream, views=tuple(views))

    def _binds(self, tables: tuple[Table, ...], views: tuple[View, ...]) -> bool:
        """Are the queries ones that the front end takes?"""
        with self.opening() as (db, refresher):
            for table in tables:
                db.sql(table.ddl)
            try:
                for view in views:
                    refresher.explain(expanded(view, views))
            except (UserError, sqlglot.ParseError):
                return False
        return True


def failing(stream: Stream, opening: Opening) -> Failure | None:
    """How the stream fails; None if it does not, or if its own changes cannot be applied."""
    try:
        play(stream, opening)
    except Failure as failure:
        return failure
    except UserError:
        return None
    return None


def simpler(sql: str) -> set[str]:
    """Shorter texts: parts left out, or a part in the place of the whole."""
    made = set()
    count = len(list(sqlglot.parse_one(sql, dialect="spark").walk()))
    for i in range(count):
        for edit in range(64):
            tree = sqlglot.parse_one(sql, dialect="spark")
            changed = _edited(tree, list(tree.walk())[i], edit)
            if changed is None:
                break
            text = _text(changed)
            if text and len(text) < len(sql):
                made.add(text)
    return made


def _text(tree: exp.Expr) -> str | None:
    """The tree as text that can be read again; None if an edit took what it cannot do without."""
    try:
        text = tree.sql(dialect="spark")
        sqlglot.parse_one(text, dialect="spark")
    except (sqlglot.errors.SqlglotError, AttributeError, TypeError, ValueError):
        return None
    return text


def _edited(tree: exp.Expr, node: exp.Expr, edit: int) -> exp.Expr | None:
    """The tree after the edit of this number at a node; None if the node has fewer."""
    for key, value in list(node.args.items()):
        children = value if isinstance(value, list) else [value]
        for i, child in enumerate(children):
            if not isinstance(child, exp.Expr) and child is not True:
                continue
            if edit == 0 and node.arg_types.get(key) and len(children) == 1:
                return tree  # the node is nothing without it
            if edit == 0:
                rest = [c for k, c in enumerate(children) if k != i]
                node.set(key, rest if isinstance(value, list) else None)
                return tree
            if edit == 1 and isinstance(child, exp.Expr):
                return _lifted(tree, node, child)
            edit -= 2
    return None


def _lifted(tree: exp.Expr, node: exp.Expr, child: exp.Expr) -> exp.Expr:
    if isinstance(child, exp.Subquery) and isinstance(node, exp.Query | exp.From | exp.Join):
        child = child.this
    if node is tree:
        return child.copy()
    node.replace(child.copy())
    return tree


def _without(change: Change, table: str, row: Row) -> Change:
    if change.table != table or change.sql:
        return change
    places = [i for i, r in enumerate(change.rows) if r != row]
    weights = None if change.weights is None else tuple(change.weights[i] for i in places)
    return Change(table, tuple(change.rows[i] for i in places), weights)


def _narrow(change: Change, table: str, place: int) -> Change:
    if change.table != table:
        return change
    return replace(change, rows=tuple(_drop(r, place) for r in change.rows))


def _drop(values: tuple[T, ...], place: int) -> tuple[T, ...]:
    return (*values[:place], *values[place + 1 :])


# -- statements as rows


def _with_rows(stream: Stream, opening: Opening) -> Stream:
    """The same stream, its batches as rows with weights, so that rows can be left out."""
    batches: list[Batch] = []
    with opening() as (db, _):
        for table in stream.tables:
            db.sql(table.ddl)
        before = {t.name: Counter[Row]() for t in stream.tables}
        for batch in stream.batches:
            apply_batch(db, stream.tables, batch)
            after = {t.name: _rows(db, t) for t in stream.tables}
            batches.append(
                tuple(_net(t.name, before[t.name], after[t.name]) for t in stream.tables)
            )
            before = after
    return replace(stream, batches=tuple(tuple(c for c in b if c.rows) for b in batches))


def _rows(db: Warehouse, table: Table) -> Counter[Row]:
    found = db.sql(f"SELECT * FROM {table.name}").fetchall()
    return Counter(
        tuple(NAN if isinstance(v, float) and math.isnan(v) else v for v in row) for row in found
    )


def _net(table: str, before: Counter[Row], after: Counter[Row]) -> Change:
    change = Counter(after)
    change.subtract(before)
    rows = tuple(row for row, n in change.items() if n)
    return Change(table, rows, tuple(change[row] for row in rows))
