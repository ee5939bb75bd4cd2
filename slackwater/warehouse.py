"""`connect()`: a folder of tables and views, and what one can do with it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import pyarrow as pa

from slackwater.catalog.store import Catalog
from slackwater.engine.publish import publish_missing
from slackwater.errors import InternalError, UserError
from slackwater.planner.problem import Problem
from slackwater.planner.steps import StepReport
from slackwater.result import Result
from slackwater.sql import statements as s
from slackwater.sql.parse import split
from slackwater.work import (
    altering,
    compacting,
    definitions,
    explaining,
    files,
    pacing,
    planning,
    plans,
    reading,
    refreshing,
    setting,
    telling,
    verifying,
)
from slackwater.work.changes import Transaction
from slackwater.work.compacting import CompactReport
from slackwater.work.house import Clock, House, Settings
from slackwater.work.plan_report import PlanReport
from slackwater.work.reports import RefreshReport, Telling
from slackwater.work.tidying import Tidier
from slackwater.work.verifying import Verification

T = TypeVar("T")


def connect(path: str | Path, *, create: bool = True, **settings: Any) -> Warehouse:
    """Open the warehouse in a folder; the folder is created when missing.

    Settings: `placement` ('auto', 'spark', 'local'), `catalog_url` (PostgreSQL instead of
    SQLite), `spark` (a session of yours), `spark_master`, `spark_config`,
    `lease_wait_seconds`, `load_bytes`, `query_bytes`, `local_memory`, `compact` (False: small
    segments are merged only when asked for), `at_once` (how many views are refreshed side by
    side), `preaggregation` ('auto', 'on', 'off': are changes summed up before they are joined),
    `refresh` (of views that do not say themselves), `methods` (which of 'ojv', 'im2' and
    'higher-order' refreshes may take beside following each change; all, unless told otherwise),
    `clock` (what time it is, if not the machine's).
    """
    root = _folder(path, create, bool(settings.get("catalog_url")))
    try:
        chosen = Settings(**settings)
    except TypeError as error:
        known = ", ".join(Settings.__dataclass_fields__)
        raise UserError(
            f"connect() does not know this setting: {error}.",
            code="UNKNOWN_OPTION",
            hint=f"Existing: create, {known}.",
        ) from error
    return Warehouse(House.open(root, chosen))


def _folder(path: str | Path, create: bool, has_catalog: bool) -> Path:
    text = str(path)
    if "://" in text:
        raise UserError(
            f"A warehouse on remote storage ({text.split('://')[0]}) is not supported yet.",
            code="REMOTE_NOT_YET",
            hint="Use a folder of this machine.",
        )
    root = Path(path).expanduser().absolute()
    if root.exists() and not root.is_dir():
        raise UserError(f"'{root}' is not a folder.", code="NO_WAREHOUSE")
    if not create and not has_catalog and not (root / "catalog.db").exists():
        raise UserError(
            f"There is no warehouse in '{root}'.",
            code="NO_WAREHOUSE",
            hint="Create one with 'slackwater init', or check the path.",
        )
    return root


class Warehouse:
    """Tables, views, and the ways to change, refresh and ask them."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._tidier = Tidier(house)
        self._transaction: Transaction | None = None
        self._closed = False
        self._recover()

    def _recover(self) -> None:
        """Finish what a dead process left: garbage, and results not yet published."""
        self._house.collect_garbage()
        with self._house.catalog.reading() as snapshot:
            publish_missing(self._house.storage, snapshot, self._house.contents.rows_of)

    # -- statements

    def sql(self, text: str) -> Result:
        """Run SQL; of several statements the result of the last is returned."""
        results = [result for _, result in self.execute_script(text)]
        return results[-1] if results else Result(message="nothing to do")

    def execute_script(self, text: str) -> Iterator[tuple[str, Result]]:
        """Run the statements of a script one by one, giving each with its result."""
        self._require_open()
        for script in split(text):
            yield script.text, self._execute(s.read(script))

    def _execute(self, statement: s.Statement) -> Result:
        house = self._house
        match statement:
            case s.Query():
                pending = self._transaction.pending if self._transaction else None
                return reading.select(house, statement.text, pending)
            case s.Change():
                kind = type(statement.tree).__name__.upper()
                rows = self._changing(lambda t: t.change(statement))
                return Result(message=f"{kind}: {rows} rows")
            case s.Truncate():
                self._changing(lambda t: t.truncate(statement))
                return Result(message=f"table '{statement.table}' truncated")
            case s.Explain():
                format = "json" if statement.json else "text"
                told = explaining.explain(house, statement.target, format, statement.alternatives)
                return telling.text_result("plan", told)
            case s.Show(what="settings"):
                return setting.show_settings(house)
            case s.Show():
                return telling.show(house, statement.what)
            case s.Describe():
                return telling.describe(house, statement.name)
        return Result(message=self._define(statement))

    def _define(self, statement: s.Statement) -> str:
        self._require_no_transaction(statement.text.split(None, 1)[0].upper())
        house = self._house
        match statement:
            case s.CreateTable():
                return definitions.create_table(house, statement)
            case s.CreateView():
                return definitions.create_view(house, statement)
            case s.AlterView():
                return setting.alter_view(house, statement)
            case s.AlterWarehouse():
                return setting.alter_warehouse(house, statement)
            case s.AddColumns():
                return altering.add_columns(house, statement)
            case s.AddConstraints():
                return altering.add_constraints(house, statement)
            case s.DropConstraint():
                return altering.drop_constraint(house, statement)
            case s.Drop():
                return definitions.drop(house, statement)
            case s.Refresh():
                report = self.refresh(statement.name, full=statement.full)[-1]
                return _told(report)
        raise InternalError(f"statement {type(statement).__name__} has no work")

    # -- changes

    def append(self, name: str, data: Any) -> int:
        """Add rows (Arrow, pandas, Spark, dictionaries) to a table; how many."""
        return self._changing(lambda t: t.append(name, data))

    def apply(
        self,
        name: str,
        data: Any,
        *,
        op_column: str | None = None,
        weight_column: str | None = None,
    ) -> int:
        """Apply a change batch: rows with an operation (insert, delete) or a weight (+n, −n)."""
        return self._changing(lambda t: t.apply(name, data, op_column, weight_column))

    def ingest(
        self, name: str, source: str | Path | Iterable[pa.RecordBatch], format: str = "parquet"
    ) -> int:
        """Add the rows of files (a path or pattern), or of a stream of batches."""
        return self._changing(lambda t: files.ingest(t, name, source, format))

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """Changes inside become visible together at the end, or not at all."""
        self._require_open()
        self._require_no_transaction("transaction()")
        self._transaction = Transaction(self._house)
        try:
            yield self
            self._require_open()
        except BaseException as error:
            self._transaction.rollback(error)
            raise
        else:
            self._commit(self._transaction)
        finally:
            self._transaction = None

    def _changing(self, work: Callable[[Transaction], T]) -> T:
        self._require_open()
        if self._transaction is not None:
            return work(self._transaction)
        transaction = Transaction(self._house)
        try:
            done = work(transaction)
        except BaseException as error:
            transaction.rollback(error)
            raise
        self._commit(transaction)
        return done

    def _commit(self, transaction: Transaction) -> None:
        transaction.commit()
        self._tidier.changed(t.name for t in transaction.tables.values())

    # -- views

    def refresh(
        self, *names: str, full: bool = False, telling: Telling | None = None
    ) -> list[RefreshReport]:
        """Bring views (all, if none is named) and the views they read to one version.

        `telling` is called with the reports before the commit; the events that it returns become
        visible with it.
        """
        self._require_open()
        self._require_no_transaction("REFRESH")
        chosen = names or tuple(v.name for v in self._house.catalog.snapshot().views())
        reports = refreshing.refresh(self._house, chosen, full, telling)
        self._tidier.changed(r.view for r in reports if r.mode != "none")
        return reports

    def tidy(self, names: Iterable[str]) -> None:
        """Merge segments of tables, views or parts (by id) that have new ones, where these have
        become many: beside the work, if it is done at all."""
        self._tidier.changed(names)

    def scheduler(self, clock: Clock | None = None, **options: Any) -> Any:
        """What refreshes views by their schedules: a `slackwater.service.scheduler.Scheduler`.

        Options: `poll_seconds` from one look at the sources to the next, `paces` (what is run
        early), `listener` (called with all that is done).
        """
        self._require_open()
        service = import_module("slackwater.service.scheduler")  # it stands below, and needs us
        return service.Scheduler(self, self._house, clock, **options)

    def compact(self, name: str | None = None) -> list[CompactReport]:
        """Merge the segments of a table or view (all, if none is named) and of its states.

        This happens beside the work, too, whenever small segments have become many.
        """
        self._require_open()
        self._require_no_transaction("compact()")
        return compacting.compact(self._house, name)

    def verify(self, name: str) -> Verification:
        """Compare a view with a recompute, both ways, row by row."""
        self._require_open()
        return verifying.verify(self._house, name)

    def explain(self, what: str, format: str = "text", *, alternatives: bool = False) -> str:
        """How a view is refreshed or a query runs, and why so; with `alternatives`, every way to
        refresh a view now, and what it is expected to cost."""
        self._require_open()
        return explaining.explain(self._house, what, format, alternatives)

    def problem(
        self,
        query: str,
        changes: Mapping[str, planning.Expected],
        prices: Sequence[float] = (1.0, 1.0),
        *,
        due: Collection[int] = (),
        last_first: bool = False,
    ) -> Problem:
        """A view's name or a query's text as a planning problem: what changes from each time point
        to the next (`Change`s of each table, or an `Arrival` that says its rows, too), what work
        costs at each point, and where a result is due (the last, by default).
        `slackwater.planner.plan.plan` answers it; nothing is run."""
        self._require_open()
        return planning.problem(self._house, query, changes, prices, due, last_first)

    def plan(
        self,
        *,
        apply: bool = False,
        supposing: str | Sequence[str] = (),
        simulate: bool = False,
        paces: str = "subplans",
        sharing: bool = True,
        max_pace: int = 100,
        on_stage: plans.OnStage | None = None,
    ) -> PlanReport:
        """What is maintained how, shared with whom, at which pace, what that is expected to take,
        and what would be computed anew for it; `apply` does so.

        `supposing`: the plan as it would be after statements that define or alter views, which
        are not run.
        `simulate`: what shorter results cost; a plan is made for each of some goals, of which
        `on_stage` is told (what, how many are done, of how many). `paces` ('subplans', 'paths',
        'leaves', 'uniform'), `sharing` and `max_pace` say what is looked for.
        """
        self._require_open()
        if apply:
            self._require_no_transaction("plan(apply=True)")
        options = pacing.Options(paces, sharing, max_pace, assuming=True)
        supposed = [supposing] if isinstance(supposing, str) else supposing
        return plans.plan(self._house, options, supposed, apply, simulate, on_stage)

    # -- looking around

    def tables(self) -> Result:
        """The tables."""
        self._require_open()
        return telling.show(self._house, "tables")

    def views(self) -> Result:
        """The views."""
        self._require_open()
        return telling.show(self._house, "views")

    def status(self) -> dict[str, Any]:
        """Tables and views with versions, sizes and freshness."""
        self._require_open()
        return telling.status(self._house)

    def history(self, name: str | None = None, limit: int = 50) -> list[dict[str, Any]]:
        """The newest events."""
        self._require_open()
        return telling.history(self._house, name, limit)

    events = history

    @property
    def path(self) -> Path:
        """The warehouse's folder."""
        return self._house.storage.root

    @property
    def catalog(self) -> Catalog:
        """The catalog, for tools."""
        return self._house.catalog

    @property
    def spark(self) -> Any:
        """The Spark session, started if need be."""
        return self._house.runner.spark.session

    @property
    def spark_started(self) -> bool:
        """Has anything needed Spark yet?"""
        return self._house.runner.spark.started

    def settings(self) -> dict[str, Any]:
        """How the warehouse was opened."""
        return dict(vars(self._house.settings))

    @property
    def on_step(self) -> Callable[[StepReport], None] | None:
        """Called when a step starts and ends."""
        return self._house.runner.on_step

    @on_step.setter
    def on_step(self, listener: Callable[[StepReport], None] | None) -> None:
        self._house.runner.on_step = listener

    # -- the end

    def close(self) -> None:
        """Let go of everything; an open transaction is rolled back."""
        if not self._closed:
            if self._transaction is not None:
                self._transaction.rollback()
            self._closed = True
            self._tidier.close()
            self._house.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Warehouse {self.path}{' (closed)' if self._closed else ''}>"

    def _require_open(self) -> None:
        if self._closed:
            raise UserError("The warehouse is closed.", code="CLOSED", hint="Connect again.")

    def _require_no_transaction(self, what: str) -> None:
        if self._transaction is not None:
            raise UserError(
                f"{what} cannot run inside a transaction.",
                code="IN_TRANSACTION",
                hint="End the transaction first; only changes of rows belong inside.",
            )


def _told(report: RefreshReport) -> str:
    if report.mode == "none":
        return f"view '{report.view}' is fresh already (version {report.version})"
    return (
        f"view '{report.view}' refreshed to version {report.version}: {report.mode} "
        f"[{', '.join(report.reasons)}], {report.rows} rows in {report.seconds:.2f} s "
        f"on {report.engine}"
    )
