"""Function calls: scalar, aggregate and window, portable or Spark's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from slackwater.algebra import functions
from slackwater.algebra.expr import Expr, Frame, SortKey, WindowCall
from slackwater.errors import SqlError
from slackwater.sql.names import (
    AGGREGATES,
    CLOCKS,
    GENERATORS,
    NOT_DETERMINISTIC,
    WINDOW_FUNCTIONS,
)
from slackwater.types import BIGINT, INT, TINYINT, is_numeric

if TYPE_CHECKING:
    from slackwater.sql.scalars import Scalars

DATE_PARTS = {
    "year": "year",
    "y": "year",
    "yr": "year",
    "quarter": "quarter",
    "qtr": "quarter",
    "month": "month",
    "mon": "month",
    "week": "weekofyear",
    "w": "weekofyear",
    "day": "day",
    "d": "day",
    "dayofweek": "dayofweek",
    "dow": "dayofweek",
    "doy": "dayofyear",
    "hour": "hour",
    "minute": "minute",
}
_UNIT_FIRST = frozenset(
    "dateadd date_add timestampadd datediff date_diff timestampdiff".split(),
)
_INFIX = frozenset("+ - * / % div = != < <= > >= <=> and or || & | ^ << >>".split())
_WORDS = {"div": "DIV", "and": "AND", "or": "OR", "like": "LIKE", "ilike": "ILIKE"}
_POSTFIX = {
    "is_null": "IS NULL",
    "is_not_null": "IS NOT NULL",
    "is_true": "IS TRUE",
    "is_false": "IS FALSE",
    "is_not_true": "IS NOT TRUE",
    "is_not_false": "IS NOT FALSE",
}


@dataclass(frozen=True, eq=False)
class Grouping(Expr):
    """GROUPING(key), or GROUPING_ID(keys…): resolved by the block's grouping sets."""

    name: str
    args: tuple[Expr, ...]


def function(s: Scalars, node: exp.Expr) -> Expr:
    """A call `name(args)`."""
    name = node.name.lower()
    if name in ("grouping", "grouping_id"):
        return _grouping(s, name, node)
    if name in AGGREGATES:
        return aggregate(s, node)
    if name in WINDOW_FUNCTIONS:
        raise SqlError(
            f"Window function {name}() needs an OVER clause.",
            code="WINDOW_MISUSE",
            hint=f"Write {name}(…) OVER (PARTITION BY … ORDER BY …).",
        )
    if name in GENERATORS:
        raise s.context.unsupported("GENERATOR_IN_EXPRESSION", f"{name}() inside an expression")
    if any(isinstance(a, exp.Lambda | exp.Kwarg) for a in node.expressions):
        return spark_syntax(s, node)
    if name in CLOCKS and not node.expressions:
        return s.context.clock(name)
    if name == "struct":
        return _struct(s, node)
    if name == "positive" and len(node.expressions) == 1:
        return _positive(s, node)
    if name in _UNIT_FIRST and len(node.expressions) == 3:
        return _with_unit(s, name, node)
    return _scalar(s, name, s.bind_all(node.expressions))


def _scalar(s: Scalars, name: str, args: list[Expr]) -> Expr:
    made = functions.call(name, args)
    if made is not None:
        return made
    places = ", ".join(f"{{{i}}}" for i in range(len(args)))
    return s.context.spark_call(f"{name}({places})", args, name not in NOT_DETERMINISTIC)


def _struct(s: Scalars, node: exp.Expr) -> Expr:
    """struct(k, 1 AS one): fields are called after columns and aliases, else col1, col2, …"""
    parts = [p.this if isinstance(p, exp.Alias) else p for p in node.expressions]
    names = [
        part.alias_or_name if isinstance(part, exp.Alias | exp.Column | exp.Dot) else f"col{i}"
        for i, part in enumerate(node.expressions, 1)
    ]
    fields = ", ".join(f"{_quoted(name)}, {{{i}}}" for i, name in enumerate(names))
    return s.context.spark_call(f"named_struct({fields})", s.bind_all(parts))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + escaped.replace("{", "{{").replace("}", "}}") + "'"


def _positive(s: Scalars, node: exp.Expr) -> Expr:
    arg = s.bind(node.expressions[0])
    if is_numeric(arg.type):
        return arg
    return s.context.spark_call("positive({0})", [arg])


def _with_unit(s: Scalars, name: str, node: exp.Expr) -> Expr:
    unit = node.expressions[0].name.upper()
    args = s.bind_all(node.expressions[1:])
    return s.context.spark_call(f"{name}({unit}, {{0}}, {{1}})", args)


def _grouping(s: Scalars, name: str, node: exp.Expr) -> Expr:
    args = tuple(s.bind_all(node.expressions))
    if name == "grouping" and len(args) != 1:
        raise SqlError("GROUPING() takes one column.", code="WRONG_TYPES")
    return Grouping(TINYINT if name == "grouping" else BIGINT, False, name, args)


# -- what only Spark computes


def spark_operator(s: Scalars, name: str, args: list[Expr]) -> Expr:
    """An operator over bound arguments that is not portable for their types."""
    places = [f"{{{i}}}" for i in range(len(args))]
    if name in _POSTFIX:
        text = f"({places[0]} {_POSTFIX[name]})"
    elif name in _INFIX or name in ("like", "ilike"):
        escape = f" ESCAPE {places[2]}" if len(places) > 2 else ""
        text = f"({places[0]} {_WORDS.get(name, name)} {places[1]}{escape})"
    elif name in ("not", "neg", "~"):
        text = f"({ {'not': 'NOT', 'neg': '-', '~': '~'}[name] } {places[0]})"
    elif name == "in":
        text = f"({places[0]} IN ({', '.join(places[1:])}))"
    elif name == "case":
        text = _case_text(places)
    else:
        text = f"{name}({', '.join(places)})"
    return s.context.spark_call(text, args)


def _case_text(places: list[str]) -> str:
    pairs = zip(places[:-1:2], places[1:-1:2], strict=True)
    whens = " ".join(f"WHEN {c} THEN {v}" for c, v in pairs)
    return f"CASE {whens} ELSE {places[-1]} END"


def spark_syntax(s: Scalars, node: exp.Expr) -> Expr:
    """Any other syntax: its direct parts are bound, the rest is left to Spark as written."""
    if isinstance(node, exp.Query):
        raise s.context.unsupported("UNSUPPORTED_EXPRESSION", type(node).__name__)
    copy = node.copy()
    args: list[Expr] = []
    _replace_parts(s, copy, args)
    text = copy.sql(dialect="spark").replace("{", "{{").replace("}", "}}")
    for i in range(len(args)):
        text = text.replace(f"__arg{i}__", f"{{{i}}}")
    return s.context.spark_call(text, args)


def _replace_parts(s: Scalars, node: exp.Expr, args: list[Expr]) -> None:
    for part in list(node.iter_expressions()):
        if isinstance(part, exp.Lambda):
            inner = replace(s, variables=s.variables | {p.name.lower() for p in part.expressions})
            _replace_columns(inner, part.this, args)
        elif isinstance(part, exp.Column) and part.name.lower() in s.variables:
            continue
        elif isinstance(part, exp.Condition) and not isinstance(part, exp.Identifier):
            args.append(s.bind(part))
            part.replace(exp.column(f"__arg{len(args) - 1}__"))
        else:
            _replace_parts(s, part, args)


def _replace_columns(s: Scalars, node: exp.Expr, args: list[Expr]) -> None:
    """Inside a lambda only columns of the row are bound; its own parameters stay."""
    for column in list(node.find_all(exp.Column)):
        if column.parts[0].name.lower() not in s.variables:
            args.append(s.bind(column))
            column.replace(exp.column(f"__arg{len(args) - 1}__"))


# -- aggregates


def aggregate(s: Scalars, node: exp.Expr, where: exp.Expr | None = None) -> Expr:
    """An aggregate call, with its DISTINCT and FILTER."""
    name = node.name.lower()
    if not s.aggregates:
        raise SqlError(
            f"Aggregate {name}() cannot stand in {s.clause}.",
            code="AGGREGATE_MISUSE",
            hint=_way_out(s.clause),
        )
    inner = _argument_scope(s)
    distinct, args = _arguments(inner, node)
    predicate = inner.predicate(where) if where is not None else None
    made = functions.aggregate(name, args, distinct=distinct, where=predicate)
    return made if made is not None else s.context.spark_aggregate(name, args, distinct, predicate)


def _argument_scope(s: Scalars) -> Scalars:
    """Inside an aggregate columns go before aliases, and neither aggregates nor windows stand."""
    clause = "an aggregate's argument"
    return replace(s, aggregates=False, windows=False, aliases_first=False, clause=clause)


def _way_out(clause: str) -> str:
    if clause == "WHERE":
        return "Filter on aggregates with HAVING."
    if clause == "an aggregate's argument":
        return "Aggregates do not nest; compute the inner one in a subquery."
    return "Compute the aggregate in a subquery."


def _arguments(s: Scalars, node: exp.Expr) -> tuple[bool, list[Expr]]:
    parts = node.expressions
    distinct = bool(parts) and isinstance(parts[0], exp.Distinct)
    if distinct:
        parts = parts[0].expressions
    if node.name.lower() == "count" and len(parts) == 1 and isinstance(parts[0], exp.Star):
        return distinct, []
    return distinct, s.bind_all(parts)


def filtered(s: Scalars, node: exp.Expr) -> Expr:
    """agg(…) FILTER (WHERE …)."""
    if not isinstance(node.this, exp.Anonymous) or node.this.name.lower() not in AGGREGATES:
        raise SqlError("FILTER belongs to an aggregate.", code="AGGREGATE_MISUSE")
    return aggregate(s, node.this, node.expression.this)


def within_group(s: Scalars, node: exp.Expr) -> Expr:
    """percentile_cont(…) WITHIN GROUP (ORDER BY …): Spark's own."""
    if not s.aggregates:
        return aggregate(s, node.this)
    inner = _argument_scope(s)
    args = inner.bind_all(node.this.expressions)
    keys = [sort_key(inner, o) for o in node.expression.expressions]
    places = ", ".join(f"{{{i}}}" for i in range(len(args)))
    order = ", ".join(
        f"{{{len(args) + i}}}" + ("" if k.ascending else " DESC") for i, k in enumerate(keys)
    )
    text = f"{node.this.name}({places}) WITHIN GROUP (ORDER BY {order})"
    return s.context.spark_aggregate_text(node.this.name, text, [*args, *(k.arg for k in keys)])


# -- windows


def windowed(s: Scalars, node: exp.Expr) -> Expr:
    """f(…) OVER (…)."""
    if not s.windows:
        raise SqlError(
            f"A window function cannot stand in {s.clause}.",
            code="WINDOW_MISUSE",
            hint="Filter on window functions with QUALIFY, or compute them in a subquery.",
        )
    inner = replace(s, windows=False, clause="a window function")
    node = s.context.named_window(node)
    call, where, ignore_nulls = _window_target(node.this)
    partition_by = tuple(inner.bind_all(node.args.get("partition_by") or []))
    order = node.args.get("order")
    order_by = tuple(sort_key(inner, o) for o in order.expressions) if order else ()
    frame = _frame(inner, node.args.get("spec"))
    _, args = _arguments(inner, call)
    predicate = inner.predicate(where) if where is not None else None
    name = call.name.lower()
    if name not in AGGREGATES and name not in WINDOW_FUNCTIONS:
        raise SqlError(f"{name}() is not a window function.", code="WINDOW_MISUSE")
    made = functions.window(
        name, args, partition_by, order_by, frame, where=predicate, ignore_nulls=ignore_nulls
    )
    if made is not None:
        return made
    return s.context.spark_window(
        WindowCall(
            INT, True, name, tuple(args), partition_by, order_by, frame, "", predicate, ignore_nulls
        )
    )


def _window_target(node: exp.Expr) -> tuple[exp.Expr, exp.Expr | None, bool]:
    where, ignore_nulls = None, False
    while True:
        if isinstance(node, exp.Filter):
            where, node = node.expression.this, node.this
        elif isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
            ignore_nulls, node = isinstance(node, exp.IgnoreNulls), node.this
        else:
            return node, where, ignore_nulls


def sort_key(s: Scalars, node: exp.Expr, bind: Callable[[exp.Expr], Expr] | None = None) -> SortKey:
    """One ORDER BY item; NULLs are small unless the user says otherwise."""
    arg = (bind or s.bind)(node.this)
    descending = bool(node.args.get("desc"))
    nulls_first = bool(node.args.get("nulls_first"))
    return SortKey(arg.type, arg.nullable, arg, not descending, nulls_first)


def _frame(s: Scalars, spec: exp.Expr | None) -> Frame | None:
    if spec is None:
        return None
    unit = (spec.args.get("kind") or "RANGE").lower()
    start = _bound(s, unit, spec.args.get("start"), spec.args.get("start_side"))
    end = _bound(s, unit, spec.args.get("end") or "CURRENT ROW", spec.args.get("end_side"))
    return Frame(unit, start, end)


def _bound(
    s: Scalars, unit: str, value: exp.Expr | str | None, side: str | None
) -> int | str | None:
    if value == "UNBOUNDED":
        return None
    if value == "CURRENT ROW":
        return 0
    assert isinstance(value, exp.Expr)
    sign = -1 if (side or "").upper() == "PRECEDING" else 1
    if unit == "rows":
        try:
            return sign * int(value.sql(dialect="spark"))
        except ValueError as error:
            raise SqlError("A ROWS frame takes whole numbers.", code="WRONG_TYPES") from error
    return f"{value.sql(dialect='spark')} {(side or '').upper()}"
