"""View-streams: views under random batches, equal to recompute after every refresh.

A stream is plain data: tables, views, batches of changes. It is played twice. In small steps,
with a refresh after each batch, every view equals its query over the tables as they are. At
once, all batches in one transaction and one refresh, every view holds the same. Where the query
itself raises, the refresh raises too and the view keeps what it held.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import sqlglot
from sqlglot import exp

import slackwater
from slackwater import UserError, Warehouse
from slackwater.engine.compare import compare
from slackwater.work.reports import RefreshReport
from tests.change_maker import Batch, Change, ChangeMaker, Table
from tests.view_maker import ViewMaker

T = TypeVar("T")
Opening = Callable[[], AbstractContextManager[tuple[Warehouse, Warehouse]]]
"""Opens a new, empty warehouse twice: to change and read its tables, and to refresh its views."""

NO_ANSWER = {"NOT_PORTABLE", "NEEDS_SPARK"}
"""Codes of queries that the local engine leaves to Spark."""
MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class View:
    """A view of a stream."""

    name: str
    sql: str


@dataclass(frozen=True)
class Stream:
    """Tables, views over them, and batches of changes."""

    tables: tuple[Table, ...]
    views: tuple[View, ...]
    batches: tuple[Batch, ...]
    early: int = 1
    """So many batches come before the views are created."""
    together: bool = True
    """All views are refreshed in one run, or each in its own."""


@dataclass
class Outcome:
    """What came of a stream."""

    views: int = 0
    compared: int = 0
    raised: int = 0
    modes: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    """Views that could not be created or answered, by error code."""

    def add(self, other: Outcome) -> None:
        """Sum both up here."""
        self.views += other.views
        self.compared += other.compared
        self.raised += other.raised
        self.modes.update(other.modes)
        self.refused.update(other.refused)

    def __str__(self) -> str:
        modes = ", ".join(f"{n:,} {mode}" for mode, n in sorted(self.modes.items()))
        return (
            f"{self.views:,} view-streams, {self.compared:,} comparisons, refreshes {modes}, "
            f"{self.raised:,} raised as their query does, refused {dict(self.refused)}"
        )


class Failure(AssertionError):
    """A view that is not what its query gives. `kind` says in which way, in short."""

    def __init__(self, kind: str, view: str, detail: str) -> None:
        self.kind = kind
        self.view = view
        self.detail = detail
        super().__init__(f"{kind} ({view or 'no view'})\n{detail}")


def make_stream(seed: object, views: int = 6, batches: int = 4, spark: bool = False) -> Stream:
    """A random stream of two batches or more, and at most so many. Those for Spark use what only
    Spark computes, and no value at the limits of its type, where Spark raises or not by the order
    of rows."""
    rng = random.Random(f"stream/{seed}")
    wild = rng.random() < 0.15 and not spark
    changes = ChangeMaker(rng, wild)
    load = changes.load()
    made = (load, *(changes.batch() for _ in range(batches)))
    length = random.Random(f"length/{seed}").randint(2, batches)
    relations = {t.name: tuple((c.name, c.kind) for c in t.columns) for t in changes.tables}
    maker = ViewMaker(rng, relations, wild, portable=not spark)
    return Stream(
        changes.tables,
        tuple(_make_views(maker, views)),
        made[: 1 + length],
        early=rng.choice([0, 1, 1, 1]),
        together=rng.random() < 0.8,
    )


def _make_views(maker: ViewMaker, count: int) -> Iterator[View]:
    """Most views are over tables; some read views before them."""
    tables = dict(maker.relations)
    readable = dict(tables)
    for i in range(count):
        maker.relations = readable if maker.rng.random() < 0.4 else tables
        rough = i >= count // 2  # what others may read has no rough columns
        sql, columns = maker.query(rough)
        yield View(f"v{i}", sql)
        if not rough:
            readable[f"v{i}"] = columns


# -- names of views inside queries


@cache
def reads(sql: str) -> set[str]:
    """The tables and views that a query names."""
    tree = sqlglot.parse_one(sql, dialect="spark")
    return {t.name for t in tree.find_all(exp.Table)}


def expanded(view: View, views: Sequence[View]) -> str:
    """The view's query over tables alone."""
    texts = {v.name: v.sql for v in views}
    if not reads(view.sql) & set(texts):
        return view.sql
    tree = sqlglot.parse_one(view.sql, dialect="spark")
    for table in list(tree.find_all(exp.Table)):
        if table.name in texts:
            inner = expanded(View(table.name, texts[table.name]), views)
            named = table.alias or table.name
            table.replace(
                exp.Subquery(
                    this=_with_own_names(sqlglot.parse_one(inner, dialect="spark"), table.name),
                    alias=exp.TableAlias(this=exp.to_identifier(named)),
                )
            )
    return tree.sql(dialect="spark")


def _with_own_names(query: exp.Expression, view: str) -> exp.Expression:
    """The query of a view with common table expressions that no other query has."""
    names = {cte.alias for cte in query.find_all(exp.CTE)}
    for cte in query.find_all(exp.CTE):
        cte.args["alias"].set("this", exp.to_identifier(f"{view}_{cte.alias}"))
    for table in query.find_all(exp.Table):
        if table.name in names:
            if not table.alias:
                table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name)))
            table.set("this", exp.to_identifier(f"{view}_{table.name}"))
    return query


# -- playing


def apply_batch(db: Warehouse, tables: Sequence[Table], changes: Sequence[Change]) -> None:
    """The changes of a batch, in one transaction."""
    named = {t.name: t for t in tables}
    with db.transaction():
        for change in changes:
            if change.sql:
                db.sql(change.sql)
                continue
            rows = named[change.table].arrow(change.rows, change.weights)
            if change.weights is None:
                db.append(change.table, rows)
            else:
                db.apply(change.table, rows, weight_column="w")


def play(stream: Stream, opening: Opening) -> Outcome:
    """The stream in small steps and at once; raises Failure where a view is wrong."""
    outcome = Outcome()
    later = stream.batches[stream.early :]
    with opening() as (db, refresher):
        steps = _Player(db, refresher, stream, outcome)
        steps.start()
        steps.refresh(set())
        for batch in later:
            apply_batch(db, stream.tables, batch)
            steps.refresh({change.table for change in batch})
    with opening() as (db, refresher):
        once = _Player(db, refresher, stream, Outcome())
        once.start(steps.views)
        once.refresh_all()
        apply_batch(db, stream.tables, [change for batch in later for change in batch])
        once.require_same(steps)
    return outcome


class _Player:
    """One warehouse under the stream."""

    def __init__(
        self, db: Warehouse, refresher: Warehouse, stream: Stream, outcome: Outcome
    ) -> None:
        self.db = db
        self.refresher = refresher
        self.stream = stream
        self.outcome = outcome
        self.views: dict[str, str] = {}
        """The query over tables of each view that could be created."""
        self.held: dict[str, pa.Table | None] = {}
        """What each view held after its last refresh."""
        self.fresh: dict[str, bool] = {}
        self.expected: dict[str, pa.Table | UserError] = {}
        """What the query of each view gave, when it was last asked."""

    def start(self, known: Mapping[str, str] | None = None) -> None:
        """The tables, the first rows, the views: all that can be created, or those known to be."""
        for table in self.stream.tables:
            self.db.sql(table.ddl)
        for batch in self.stream.batches[: self.stream.early]:
            apply_batch(self.db, self.stream.tables, batch)
        for view in self.stream.views:
            if known is None:
                self._create(view)
            elif view.name in known:
                self._define(view)
                self.views[view.name] = known[view.name]

    def _create(self, view: View) -> None:
        names = {v.name for v in self.stream.views}
        if reads(view.sql) & names - set(self.views):
            return  # reads a view that could not be created
        made = self._work(view.name, lambda: self._define(view))
        if isinstance(made, UserError):
            self.outcome.refused[made.code] += 1
            return
        query = expanded(view, self.stream.views)
        answer = self._answer(view.name, query)
        if isinstance(answer, UserError) and answer.code == "NOT_PORTABLE":
            self.outcome.refused[answer.code] += 1
            self.db.sql(f"DROP VIEW {view.name}")
            return
        self.views[view.name] = query
        self.expected[view.name] = answer
        self.held[view.name] = None
        self.outcome.views += 1

    def _define(self, view: View) -> None:
        self.refresher.sql(f"CREATE MATERIALIZED VIEW {view.name} AS {view.sql}")

    def refresh(self, changed: set[str]) -> None:
        """Every view to the newest version after a change of these tables, and equal to its
        query over them."""
        errors = self.refresh_all()
        for name, query in self.views.items():
            if reads(query) & changed:
                self.expected[name] = self._answer(name, query)
            self._check(name, errors.get(name), self.expected[name])

    def require_same(self, other: _Player) -> None:
        """After a refresh, every view that is fresh there holds the same here."""
        errors = self.refresh_all()
        for name in (n for n in self.views if other.fresh.get(n)):
            if name in errors and errors[name].code in NO_ANSWER:
                continue
            if name in errors:
                kind = f"one refresh raises {errors[name].code}, steps do not"
                raise Failure(kind, name, str(errors[name]))
            held = other.held[name]
            _require_equal("steps and one refresh differ", name, self._content(name), held)

    def _answer(self, name: str, query: str) -> pa.Table | UserError:
        return self._work(name, lambda: self.refresher.sql(query).to_arrow())

    def _refresh_one(self, name: str) -> RefreshReport | UserError:
        return self._work(name, lambda: self.refresher.refresh(name)[-1])

    def refresh_all(self) -> dict[str, UserError]:
        """Every view to the newest version; the errors of those that raise."""
        if self.stream.together:
            reports = self._work("", self.refresher.refresh)
            if not isinstance(reports, UserError):
                self.outcome.modes.update(r.mode for r in reports)
                return {}
        errors = {}
        for name in self.views:
            report = self._refresh_one(name)
            if isinstance(report, UserError):
                errors[name] = report
            else:
                self.outcome.modes[report.mode] += 1
        return errors

    def _check(self, name: str, error: UserError | None, expected: pa.Table | UserError) -> None:
        self.fresh[name] = error is None
        if error is not None:
            self._check_raised(name, error, expected)
            return
        held = self._content(name)
        if isinstance(expected, UserError):
            if expected.code not in NO_ANSWER:
                raise Failure("refresh does not raise", name, f"The query raises {expected}")
        else:
            _require_equal("content is wrong", name, held, expected)
            self.outcome.compared += 1
        self.held[name] = held

    def _check_raised(self, name: str, error: UserError, expected: pa.Table | UserError) -> None:
        """A view is not refreshed only if its query raises, or a view it reads was not refreshed,
        or a state of it needs Spark."""
        self.outcome.raised += 1
        broken = [n for n in self._upstream(name) if not self.fresh.get(n, True)]
        excused = broken or error.code in NO_ANSWER
        if not isinstance(expected, UserError) and not excused:
            raise Failure(f"refresh raises {error.code}", name, str(error)) from error
        if (before := self.held[name]) is not None:
            _require_equal(
                "content lost by a refresh that raised", name, self._content(name), before
            )

    def _upstream(self, name: str) -> set[str]:
        direct = reads(next(v.sql for v in self.stream.views if v.name == name)) & set(self.views)
        return direct.union(*(self._upstream(n) for n in direct))

    def _content(self, name: str) -> pa.Table:
        return self._done(name, lambda: self.db.sql(f"SELECT * FROM {name}").to_arrow())

    def _done(self, view: str, work: Callable[[], T]) -> T:
        found = self._work(view, work)
        if isinstance(found, UserError):
            raise Failure(f"view cannot be read: {found.code}", view, str(found)) from found
        return found

    def _work(self, view: str, work: Callable[[], T]) -> T | UserError:
        """What the work gives, or the mistake it finds in the request; all else is our bug."""
        try:
            return work()
        except UserError as error:
            return error
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            raise Failure(f"crash: {type(error).__name__}", view, told) from error


def _require_equal(kind: str, view: str, actual: pa.Table, expected: pa.Table) -> None:
    difference = compare(actual, expected)
    if not difference.equal:
        raise Failure(kind, view, str(difference))


# -- where


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder that is gone afterwards, in memory where the machine has such a place."""
    with tempfile.TemporaryDirectory(
        prefix="slackwater-", dir=MEMORY if MEMORY.is_dir() else None
    ) as folder:
        yield Path(folder)


class NoSpark:
    """In place of a session: what only Spark knows is refused, and no Java is started."""

    sparkContext = None  # noqa: N815

    def __getattr__(self, name: str) -> Any:
        raise UserError("Only Spark could tell.", code="NOT_PORTABLE")


def opening(**settings: Any) -> Opening:
    """Opens warehouses in scratch folders. Tables live on the local engine; views are refreshed
    with these settings, by default there too."""
    followed = {"refresh": "incremental"}  # whatever that costs
    local: dict[str, Any] = {"placement": "local", "spark": NoSpark(), **followed}

    @contextmanager
    def opened() -> Iterator[tuple[Warehouse, Warehouse]]:
        with scratch() as folder, slackwater.connect(folder, **local) as db:
            if not settings:
                yield db, db
                return
            with slackwater.connect(folder, **(followed | settings)) as refresher:
                yield db, refresher

    return opened
