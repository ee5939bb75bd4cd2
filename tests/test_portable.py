"""Both engines give the same for every portable function: values, and errors where Spark raises.

For each tuple of argument types there is a table of interesting values, and every function that
takes such arguments is computed on it by both engines. Rows on which the local engine raises are
found by halving; Spark computes the others in bulk and a sample of those one by one.
"""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import logging
import math
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from slackwater.algebra.coercion import is_interval
from slackwater.algebra.expr import (
    Column,
    Expr,
    Frame,
    Literal,
    SortKey,
    is_portable,
    substitute,
)
from slackwater.algebra.functions import PORTABLE, aggregate, call, cast, literal, window
from slackwater.algebra.functions.aggregates import AGGREGATES, FRAMELESS, WINDOWS
from slackwater.engine import local_sql, spark_sql
from slackwater.engine.local_raising import may_raise
from slackwater.errors import SqlError
from slackwater.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    Atomic,
    DataType,
    Decimal,
    Field,
    to_arrow,
    to_arrow_schema,
)
from tests.conftest import SEED

ASKED = 10
"""Errors of each tuple of types that Spark is asked for."""
D = decimal.Decimal
_WIDE = decimal.Context(prec=60)


def _integers(bits: int) -> list[int | None]:
    top = 2 ** (bits - 1)
    return [None, 0, 1, -1, 2, 7, -13, 25, 100 if bits > 8 else 99, top - 1, -top]


def _decimals(t: Decimal) -> list[D | None]:
    """Counts of the smallest unit, and whole numbers; negation that keeps all digits."""
    units = [0, 1, 5, 15, 10**t.precision - 1] + [n * 10**t.scale for n in (1, 3, 7)]
    found = [D(n).scaleb(-t.scale, _WIDE) for n in units if n < 10**t.precision]
    return [None, *found, *(d.copy_negate() for d in found if d)]


_NAN, _INF = math.nan, math.inf
_DOUBLES = [None, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.7, 1e-9, 1e10, -3e18, 1e300, _NAN, _INF, -_INF]
_DAYS = [
    (1970, 1, 1),
    (1969, 12, 31),
    (2020, 2, 29),
    (2021, 1, 31),
    (2000, 12, 31),
    (1582, 10, 4),
    (1, 1, 1),
    (9999, 12, 31),
    (2024, 7, 6),
]
_CLOCKS = [(0, 0, 0, 0), (23, 59, 59, 999999), (12, 30, 15, 120000)]
_MOMENTS = [dt.datetime(*d, *c) for d, c in zip(_DAYS, itertools.cycle(_CLOCKS), strict=False)]
_TEXTS = ["", " ", "a", "abc", " Ab c ", "12", "-7", " 15 ", "1.5", "2020-02-29", "true", "N"]
_TEXTS += ["x,y,,z", "a_b%c", "äöü", "日本", "9999999999999999999", "1e3", "\tq\n"]

VALUES: dict[DataType, list[Any]] = {
    BOOLEAN: [None, True, False],
    TINYINT: _integers(8),
    SMALLINT: _integers(16),
    INT: _integers(32),
    BIGINT: _integers(64),
    FLOAT: [None, 0.0, 1.0, -1.5, 0.25, 1e10, -3e18, 1e38, _NAN, _INF, -_INF],
    DOUBLE: _DOUBLES,
    **{t: _decimals(t) for t in (Decimal(5, 2), Decimal(12, 2), Decimal(20, 0), Decimal(38, 10))},
    STRING: [None, *_TEXTS],
    DATE: [None, *(dt.date(*d) for d in _DAYS)],
    TIMESTAMP: [None, *(m.replace(tzinfo=dt.UTC) for m in _MOMENTS)],
    TIMESTAMP_NTZ: [None, *_MOMENTS],
}
_DECIMALS = [t for t in VALUES if isinstance(t, Decimal)]
_COUNTS = [None, 1, 25, 25, -7, 15, 99, None, 0]
_D5, _D12, _D20, _D38 = (t for t in VALUES if isinstance(t, Decimal))

PAIRS: list[tuple[DataType, ...]] = [
    *((t, t) for t in VALUES),
    *((a, b) for a, b in itertools.pairwise((TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE))),
    (_D5, _D12),
    (_D12, INT),
    (INT, _D12),
    (_D38, _D20),
    (_D20, _D38),
    (_D12, BIGINT),
    (_D5, DOUBLE),
    (STRING, INT),
    (INT, STRING),
    (STRING, DOUBLE),
    (STRING, DATE),
    (BOOLEAN, STRING),
    (DATE, INT),
    (DATE, TIMESTAMP),
    (TIMESTAMP, TIMESTAMP_NTZ),
]
TRIPLES: list[tuple[DataType, ...]] = [
    (STRING, STRING, STRING),
    (STRING, INT, INT),
    (STRING, INT, STRING),
    (STRING, STRING, INT),
    (INT, INT, INT),
    (BOOLEAN, INT, _D12),
    (BOOLEAN, BOOLEAN, BOOLEAN),
    (DATE, DATE, DATE),
]
SHAPES = [*((t,) for t in VALUES), *PAIRS, *TRIPLES]
_SMALL = {STRING: [None, "", "a", "abcab", "äb"], INT: [None, 0, 1, -2, 2**31 - 1]}
_WORDS = [None, "", "Ab c", " -7 ", "1.5", "2020-02-29", "true", "äb"]
SCALARS = sorted(
    PORTABLE - set(AGGREGATES) - set(WINDOWS) - {"cast", "try_cast", "repeat", "lpad", "rpad"}
)
PADDING = ("repeat", "lpad", "rpad")


@dataclass(frozen=True)
class Case:
    """An expression over the columns of a shape's table."""

    name: str
    expr: Expr


def _rows(shape: tuple[DataType, ...]) -> list[tuple[Any, ...]]:
    if len(shape) == 2:
        values = [_WORDS if t == STRING else VALUES[t] for t in shape]
    else:
        values = [_SMALL.get(t, VALUES[t]) if len(shape) > 2 else VALUES[t] for t in shape]
    return list(itertools.product(*values))


def _columns(shape: tuple[DataType, ...]) -> list[Column]:
    return [Column(t, True, i) for i, t in enumerate(shape)]


def _cases(shape: tuple[DataType, ...]) -> Iterator[Case]:
    """Every portable function that takes arguments of these types."""
    columns = _columns(shape)
    for name in SCALARS:
        yield from _try(name, columns)
    yield from _special(shape, columns)


def _try(name: str, args: list[Any]) -> Iterator[Case]:
    try:
        expr = call(name, args)
    except SqlError:
        return
    if expr is not None and is_portable(expr) and not is_interval(expr.type):
        yield Case(name, expr)


def _special(shape: tuple[DataType, ...], columns: list[Column]) -> Iterator[Case]:
    """Functions that want constants, and casts."""
    first: Any = columns[0]
    if len(shape) == 1:
        yield from _casts(first)
        for name, constants in _CONSTANTS.get(shape[0], ()):
            for values in constants:
                at = 0 if name != "date_trunc" else 1
                args = [literal(v) if not isinstance(v, Literal) else v for v in values]
                yield from _try(name, [*args[:at], first, *args[at:]])
    if shape == (STRING, INT, STRING):
        few = call("least", [columns[1], literal(9)])
        for name in PADDING[1:]:
            yield from _try(name, [first, few, columns[2]])
    if shape == (STRING, INT):
        yield from _try("repeat", [first, call("least", [columns[1], literal(9)])])


def _casts(column: Column) -> Iterator[Case]:
    for target, safe in itertools.product(VALUES, (False, True)):
        try:
            expr = cast(column, target, safe)
        except SqlError:
            continue
        if expr is not None:
            yield Case("try_cast" if safe else "cast", expr)


_UNITS = ["year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond"]
_MONTHS = Literal(Atomic("interval month"), False, 13)
_DAYS_LITERAL = Literal(Atomic("interval day"), False, dt.timedelta(days=-45))
_SECONDS = Literal(
    Atomic("interval day to second"), False, dt.timedelta(days=1, seconds=3, microseconds=7)
)
_STEPS = [[_MONTHS], [_DAYS_LITERAL]]
_PATTERNS = [["a%"], ["%b%"], ["_"], ["a\\_%"], ["%"], [""], ["%ü"]]
_DIGITS: list[list[Any]] = [[0], [1], [2], [-1], [-2], [12]]
_CONSTANTS: dict[DataType, list[tuple[str, list[list[Any]]]]] = {
    DATE: [
        ("trunc", [[u] for u in ("YEAR", "quarter", "MM", "week")]),
        ("date_trunc", [[u] for u in _UNITS[:4]]),
        ("next_day", [["MO"], ["sunday"], ["Thu"]]),
        ("+", [*_STEPS, [_SECONDS], [3]]),
        ("-", [*_STEPS, [3]]),
        ("add_months", [[1], [-25]]),
    ],
    TIMESTAMP: [("date_trunc", [[u] for u in _UNITS]), ("+", [*_STEPS, [_SECONDS]])],
    TIMESTAMP_NTZ: [("+", [*_STEPS, [_SECONDS]])],
    STRING: [
        ("like", _PATTERNS),
        ("ilike", _PATTERNS),
        ("translate", [["abc", "xy"], ["", "x"]]),
        ("substring", [[2, 2], [0, 2], [-2, 1], [3], [-30, 29], [1, 0], [1, -1]]),
        ("split_part", [[",", 2], [",", -1], ["b", 1]]),
        ("in", [["a", "abc"], ["a", None]]),
    ],
    **{t: [("round", _DIGITS), ("bround", _DIGITS)] for t in VALUES if isinstance(t, Decimal)},
    **{t: [("round", _DIGITS), ("bround", _DIGITS)] for t in (TINYINT, SMALLINT, INT, BIGINT)},
}


# ---- running ------------------------------------------------------------------------------


class Tables:
    """One shape's rows on both engines."""

    def __init__(self, spark: Any, shape: tuple[DataType, ...]) -> None:
        self.spark = spark
        self.shape = shape
        self.rows = _rows(shape)
        self.names = [f"a{i}" for i in range(len(shape))]
        fields = tuple(Field(n, t) for n, t in zip(self.names, shape, strict=True))
        arrays = [
            pa.array(c, to_arrow(f.type))
            for c, f in zip(zip(*self.rows, strict=True), fields, strict=True)
        ]
        self.arrow = pa.Table.from_arrays(arrays, schema=to_arrow_schema(fields))
        self.duck = duckdb.connect(config={"threads": 1})
        self.duck.execute("SET TimeZone = 'UTC'")
        self.duck.register(
            "arrow_rows", self.arrow.append_column("rid", [list(range(len(self.rows)))])
        )
        typed = ", ".join(
            f"CAST({n} AS {local_sql.duck_type(t)}) AS {n}"
            for n, t in zip(self.names, shape, strict=True)
        )
        self.duck.execute(f"CREATE TABLE t AS SELECT rid, {typed} FROM arrow_rows")

    def local(self, case: Case) -> tuple[list[Any], dict[int, str]]:
        """Values per row, and the error class of rows that raise."""
        values: list[Any] = [None] * len(self.rows)
        errors: dict[int, str] = {}
        sql = local_sql.render(case.expr, self.names)

        def run(first: int, last: int) -> None:
            try:
                found = self.duck.execute(
                    f"SELECT {sql} AS x FROM t WHERE rid BETWEEN {first} AND {last} ORDER BY rid"
                ).to_arrow_table()
            except duckdb.BinderException:
                raise
            except duckdb.Error as error:
                if first == last:
                    errors[first] = local_sql.error_class(str(error))
                    return
                middle = (first + last) // 2
                run(first, middle)
                run(middle + 1, last)
                return
            _same_type(case, found.schema.field(0).type, sql)
            values[first : last + 1] = plain(found.column(0))

        run(0, len(self.rows) - 1)
        return values, errors

    def on_spark(self, cases: list[tuple[Case, dict[int, str]]]) -> list[list[Any]]:
        """Values of all cases, with NULL for rows in `errors`; raises if any other row raises."""
        masks = [pa.array([i not in errors for i in range(len(self.rows))]) for _, errors in cases]
        table = self.arrow
        for i, mask in enumerate(masks):
            table = table.append_column(f"ok{i}", mask)
        table = table.append_column("rid", [list(range(len(self.rows)))])
        self.spark.createDataFrame(table).createOrReplaceTempView("portable_rows")
        items = ", ".join(
            f"CASE WHEN ok{i} THEN {spark_sql.render(c.expr, self.names)} END AS x{i}"
            for i, (c, _) in enumerate(cases)
        )
        found = self.spark.sql(f"SELECT rid, {items} FROM portable_rows").toArrow().sort_by("rid")
        return [plain(found.column(f"x{i}")) for i in range(len(cases))]

    def spark_error(self, case: Case, row: int) -> str:
        """The error class Spark raises for one row, '' for none."""
        constants = tuple(
            literal(v, t) if v is not None else literal(None, t)
            for v, t in zip(self.rows[row], self.shape, strict=True)
        )
        text = spark_sql.render(substitute(case.expr, constants), [])
        try:
            self.spark.sql(f"SELECT {text} AS x").collect()
        except PySparkException as error:
            found = re.search(r"\[([A-Z_]+)(\.[A-Z_]+)*\]", str(error))
            return found[1] if found else str(error)[:200]
        return ""


def _same_type(case: Case, found: pa.DataType, sql: str) -> None:
    wanted = to_arrow(case.expr.type)
    if pa.types.is_timestamp(wanted):
        wanted = pa.timestamp("us")
    assert found == wanted, f"{case.name} gives {found}, not {wanted}: {sql}"


def plain(column: pa.ChunkedArray) -> list[Any]:
    """Python values; days and microseconds as numbers, so that every year fits."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_date(column.type):
        return column.cast(pa.int32()).to_pylist()  # type: ignore[no-any-return]
    return column.to_pylist()  # type: ignore[no-any-return]


def same(a: Any, b: Any) -> bool:
    """Equal; floats to relative 1e-9."""
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return a == b or math.isclose(a, b, rel_tol=1e-9)
    return bool(a == b)


def _shapes() -> list[Any]:
    """All shapes, all but a seeded third of them marked as proof."""
    chosen = random.Random(SEED).sample(range(len(SHAPES)), len(SHAPES) // 3)
    return [
        pytest.param(
            shape,
            id="-".join(t.sql for t in shape),
            marks=() if i in chosen else pytest.mark.proof,
        )
        for i, shape in enumerate(SHAPES)
    ]


@pytest.mark.parametrize("shape", _shapes())
def test_same_on_both_engines(spark: Any, shape: tuple[DataType, ...]) -> None:
    logging.getLogger("SQLQueryContextLogger").disabled = True  # refusals are expected here
    tables = Tables(spark, shape)
    results = [(case, *tables.local(case)) for case in _cases(shape)]
    if not results:
        return
    spark_values = tables.on_spark([(case, errors) for case, _, errors in results])
    wrong = []
    for (case, values, errors), others in zip(results, spark_values, strict=True):
        for i, (mine, theirs) in enumerate(zip(values, others, strict=True)):
            if i not in errors and not same(mine, theirs):
                wrong.append(
                    f"{_written(case)} of {tables.rows[i]}: local {mine!r}, Spark {theirs!r}"
                )
                break
    assert wrong == []
    assert _wrong_errors(tables, results) == []


def _written(case: Case) -> str:
    return spark_sql.render(case.expr, ["a0", "a1", "a2"])


def _wrong_errors(
    tables: Tables, results: list[tuple[Case, list[Any], dict[int, str]]]
) -> list[str]:
    """One row per function and error class, some of them asked of Spark one by one."""
    sample: dict[tuple[str, str], tuple[Case, int]] = {}
    for case, _, errors in results:
        for row, name in errors.items():
            # With a NULL among constants Spark's optimizer answers without evaluating the rest.
            if name != "NEEDS_SPARK" and None not in tables.rows[row]:
                sample.setdefault((case.name, name), (case, row))
    wrong = []
    asked = random.Random(f"{SEED}/{tables.shape}").sample(list(sample), min(ASKED, len(sample)))
    for key in asked:
        (_, name), (case, row) = key, sample[key]
        theirs = tables.spark_error(case, row)
        if theirs != name:
            wrong.append(
                f"{_written(case)} of {tables.rows[row]}: {name}, Spark {theirs or 'answers'}"
            )
    return wrong


# ---- aggregates and windows ---------------------------------------------------------------

_MODERATE: dict[DataType, list[Any]] = {
    **{t: [None, 1, 2, 2, -3, 7, 100, None, 0] for t in (TINYINT, SMALLINT, INT, BIGINT)},
    **{t: [None, 0.5, 2.0, 2.0, -3.25, 7.0, 1e6, None, 0.0] for t in (FLOAT, DOUBLE)},
    **{
        t: [D(n).scaleb(-min(t.scale, 1)) if n is not None else None for n in _COUNTS]
        for t in _DECIMALS
    },
    BOOLEAN: [None, True, False, True, True, None, False, True, True],
    STRING: [None, "a", "b", "ä", "", "B", "b", None, "c"],
    DATE: [None, *VALUES[DATE][1:9]],
    TIMESTAMP: [None, *VALUES[TIMESTAMP][1:9]],
}


def _groups() -> list[str | None]:
    """One group of everything, one of a single value, one of NULLs alone, and NULL's own."""
    return ["x", "x", "x", "x", "x", "y", None, "z", None]


@pytest.fixture(scope="module")
def grouped(spark: Any) -> Any:
    """Rows with a group, a position, and a column per type."""
    types = list(_MODERATE)
    fields = (
        Field("g", STRING),
        Field("i", INT),
        *(Field(f"c{n}", t) for n, t in enumerate(types)),
    )
    data = [_groups(), list(range(9)), *(_MODERATE[t] for t in types)]
    arrays = [pa.array(c, to_arrow(f.type)) for c, f in zip(data, fields, strict=True)]
    table = pa.Table.from_arrays(arrays, schema=to_arrow_schema(fields))
    spark.createDataFrame(table).createOrReplaceTempView("portable_groups")
    duck = duckdb.connect()
    duck.execute("SET TimeZone = 'UTC'")
    duck.register("arrow_groups", table)
    typed = ", ".join(
        f"CAST({f.name} AS {local_sql.duck_type(f.type)}) AS {f.name}" for f in fields
    )
    duck.execute(f"CREATE TABLE portable_groups AS SELECT {typed} FROM arrow_groups")
    columns = [Column(f.type, True, n) for n, f in enumerate(fields)]
    return duck, columns, [f.name for f in fields]


def _compare(spark: Any, duck: Any, exprs: list[Expr], names: list[str], rest: str) -> list[str]:
    """Differences of the expressions' columns between the engines, for `SELECT … FROM …`."""
    sides = []
    for render in (spark_sql.render, local_sql.render):
        items = ", ".join(f"{render(e, names)} AS x{i}" for i, e in enumerate(exprs))
        sides.append(f"SELECT {items}, {rest}")
    theirs, mine = spark.sql(sides[0]).toArrow(), duck.execute(sides[1]).to_arrow_table()
    assert theirs.num_rows == mine.num_rows
    wrong = []
    for i, expr in enumerate(exprs):
        _same_type(Case("", expr), mine.schema.field(i).type, local_sql.render(expr, names))
        pair = plain(mine.column(i)), plain(theirs.column(i))
        if not all(same(a, b) for a, b in zip(*pair, strict=True)):
            wrong.append(f"{spark_sql.render(expr, names)}: local {pair[0]}, Spark {pair[1]}")
    return wrong


def _aggregates(columns: list[Column]) -> Iterator[Expr]:
    where = call("<", [columns[1], literal(4)])
    for name, (least, _, _) in AGGREGATES.items():
        for args in [[c] for c in columns[2:]] if least else [[], columns[2:4], [columns[2]]]:
            for distinct, kept in ((False, None), (True, None), (False, where)):
                if distinct and (not args or args[0].type not in (INT, _D12, STRING)):
                    continue  # Spark expands its input once per distinct column
                try:
                    found = aggregate(name, args, distinct, kept)
                except SqlError:
                    continue
                if found is not None and is_portable(found) and not may_raise(found):
                    yield found


def test_aggregates(spark: Any, grouped: Any) -> None:
    duck, columns, names = grouped
    exprs = list(_aggregates(columns))
    by_group = "g FROM portable_groups GROUP BY g ORDER BY g NULLS FIRST"
    assert _compare(spark, duck, exprs, names, by_group) == []
    assert _compare(spark, duck, exprs, names, "1 AS one FROM portable_groups WHERE i < 0") == []


_FRAMES = [
    None,
    Frame("rows", -1, 1),
    Frame("rows", None, None),
    Frame("range", 0, None),
    Frame("rows", 1, 2),
]


def _windows(columns: list[Column]) -> Iterator[Expr]:
    g, i = columns[:2]
    key = SortKey(INT, True, i, ascending=False, nulls_first=False)
    extra: dict[str, list[list[Any]]] = {
        "ntile": [[literal(3)]],
        "nth_value": [[c, literal(2)] for c in columns[2:]],
        **{n: [[c] for c in columns[2:]] + [[i, literal(2), literal(-1)]] for n in ("lag", "lead")},
    }
    for name, (least, _, _) in {**AGGREGATES, **WINDOWS}.items():
        usual: list[list[Any]] = [[c] for c in columns[2:]] if least else [[]]
        for args in extra.get(name, usual):
            if args and args[0].type in (TINYINT, SMALLINT, FLOAT, _D5, _D20):
                continue  # as their neighbours; Spark compiles every window anew
            ranked = name in FRAMELESS
            for frame, order in itertools.product([None] if ranked else _FRAMES, ([key], [])):
                if order or (frame is None and not ranked):
                    yield from _window(name, args, [g], order, frame)
            if name in ("first_value", "last_value", "nth_value", "lag", "lead") and len(args) < 3:
                yield from _window(name, args, [g], [key], None, ignore_nulls=True)


def _window(name: str, args: Any, by: Any, order: Any, frame: Any, **more: Any) -> Iterator[Expr]:
    try:
        found = window(name, args, by, order, frame, **more)
    except SqlError:
        return
    if found is not None and is_portable(found) and not may_raise(found):
        yield found


def test_windows(spark: Any, grouped: Any) -> None:
    duck, columns, names = grouped
    exprs = list(_windows(columns))
    wrong = []
    for start in range(0, len(exprs), 120):  # Spark's code generation slows down beyond that
        part = exprs[start : start + 120]
        wrong += _compare(spark, duck, part, names, "i FROM portable_groups ORDER BY i")
    assert wrong == []


@pytest.mark.parametrize(
    "text",
    [
        "CASE WHEN a <> 0 THEN 10 / a ELSE 0 END",
        "CASE WHEN a <> 0 AND 10 / a > 1 THEN 1 ELSE 0 END",
        "CASE WHEN a = 0 OR 10 / a > 1 THEN 1 ELSE 0 END",
        "COALESCE(CASE WHEN a = 0 THEN 0.5D END, 10 / a)",
    ],
)
def test_guarded_expressions_do_not_raise(text: str) -> None:
    """A guard keeps the raising part from the rows it excludes, repeated or constant or not."""
    a = Column(INT, True, 0)
    ten = literal(10)
    quotient = call("/", [ten, a])
    zero, one = literal(0), literal(1)
    built: dict[str, Any] = {
        "CASE WHEN a <> 0 T": lambda: call("case", [call("!=", [a, zero]), quotient, literal(0.0)]),
        "CASE WHEN a <> 0 A": lambda: call(
            "case", [call("and", [call("!=", [a, zero]), call(">", [quotient, one])]), one, zero]
        ),
        "CASE WHEN a = 0 OR": lambda: call(
            "case", [call("or", [call("=", [a, zero]), call(">", [quotient, one])]), one, zero]
        ),
        "COALESCE(CASE WHEN": lambda: call(
            "coalesce",
            [call("case", [call("=", [a, zero]), literal(0.5), literal(None)]), quotient],
        ),
    }
    sql = local_sql.render(built[text[:18]](), ["a"])
    rows = "(VALUES (0), (1), (20), (NULL)) t(a)"
    twice = f"SELECT {sql} AS x, {sql} AS y FROM {rows} WHERE {sql} IS NOT NULL OR a IS NULL"
    assert len(duckdb.sql(twice).fetchall()) >= 3
    assert duckdb.sql(f"SELECT {sql} FROM (SELECT 0 AS a)").fetchall()


def test_at_least_eighty_are_portable() -> None:
    """Counted are functions that the tests above put to both engines, not names in a list."""
    exercised = {case.name for shape in SHAPES for case in _cases(shape)}
    scalars = {n for n in PORTABLE if n not in AGGREGATES and n not in WINDOWS}
    print(f"\nportable: {len(PORTABLE)}, of them {len(scalars)} scalar")
    assert sorted(scalars - exercised) == []
    assert len(exercised & scalars) >= 80
