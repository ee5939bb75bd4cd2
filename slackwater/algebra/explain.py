"""One printer for every tree of relations."""

from __future__ import annotations

from typing import Any

from slackwater.algebra.expr import (
    AggCall,
    Call,
    Cast,
    Column,
    Expr,
    Frame,
    Literal,
    SortKey,
    SparkCall,
    WindowCall,
)
from slackwater.algebra.relation import (
    Aggregate,
    Bag,
    Expand,
    Filter,
    Generate,
    Join,
    Opaque,
    Project,
    Relation,
    Scan,
    SetOp,
    Sort,
    TopK,
    Union,
    Values,
    Window,
)
from slackwater.types import Schema

_INFIX = frozenset("+ - * / % div = != < <= > >= <=> and or || like & | ^ << >>".split())
_SUFFIX = {"is_null": "is null", "is_not_null": "is not null"}


def explain(relation: Relation) -> str:
    """The tree, an operator a line; a part used twice is printed once and then referred to."""
    lines: list[str] = []
    numbers: dict[Relation, int] = {}
    parents = _parents(relation)

    def visit(node: Relation, depth: int) -> None:
        pad = "  " * depth
        if node in numbers:
            lines.append(f"{pad}↑ {numbers[node]}")
            return
        mark = ""
        if parents[node] > 1 and node.inputs:
            numbers[node] = len(numbers) + 1
            mark = f"{numbers[node]}: "
        lines.append(f"{pad}{mark}{describe(node)}")
        for child in node.inputs:
            visit(child, depth + 1)

    visit(relation, 0)
    return "\n".join(lines)


def _parents(relation: Relation) -> dict[Relation, int]:
    counts: dict[Relation, int] = {relation: 1}
    for node in relation.walk():
        for child in node.inputs:
            counts[child] = counts.get(child, 0) + 1
    return counts


def describe(node: Relation) -> str:
    """One operator, its columns by name."""
    row = _row(node)
    match node:
        case Scan():
            return f"Scan {node.name}"
        case Values():
            return f"Values {len(node.rows)} rows"
        case Filter():
            return f"Filter {text(node.predicate, row)}"
        case Project():
            return f"Project {_named(node.exprs, node.names, row)}"
        case Join():
            return f"Join {node.how} on {text(node.condition, row)}"
        case Aggregate():
            keys = ", ".join(text(k, row) for k in node.keys) or "()"
            return f"Aggregate by {keys}: {', '.join(text(a, row) for a in node.aggs) or 'none'}"
        case Union():
            return "Union all"
        case SetOp():
            return f"{node.how.capitalize()}{' all' if node.all else ''}"
        case Window():
            return f"Window {', '.join(text(c, row) for c in node.calls)}"
        case Sort():
            return f"Sort {', '.join(text(k, row) for k in node.keys)}"
        case TopK():
            keys = ", ".join(text(k, row) for k in node.keys)
            return f"TopK limit {node.limit} offset {node.offset} by {keys}"
        case Expand():
            return f"Expand into {len(node.projections)} projections"
        case Bag():
            return "Bag of weighted rows"
        case Generate():
            return f"Generate {text(node.generator, row)}"
        case Opaque():
            return f"Opaque [{node.reason}] {node.text}"
    return type(node).__name__


def gist(relation: Relation) -> str:
    """What a relation is about: its operator below those that merely pass rows on, if any."""
    node = relation
    while isinstance(node, Filter | Project):
        node = node.input
    return describe(relation if isinstance(node, Scan) else node)


def to_json(relation: Relation) -> dict[str, Any]:
    """The tree as plain data."""

    def answer(node: Relation, inputs: tuple[Any, ...]) -> dict[str, Any]:
        columns = [
            {"name": f.name, "type": f.type.sql, "nullable": f.nullable} for f in node.schema
        ]
        return {
            "operator": type(node).__name__,
            "detail": describe(node),
            "columns": columns,
            "inputs": list(inputs),
        }

    return relation.map(answer)


def _row(node: Relation) -> list[str]:
    """Names of the columns that an operator's expressions read; doubled names get a number."""
    fields: Schema = tuple(f for child in node.inputs for f in child.schema)
    names = [f.name for f in fields]
    return [n if names.count(n) == 1 else f"{n}#{i}" for i, n in enumerate(names)]


def _named(exprs: tuple[Expr, ...], names: tuple[str, ...], row: list[str]) -> str:
    parts = []
    for expr, name in zip(exprs, names, strict=True):
        shown = text(expr, row)
        parts.append(shown if shown == name else f"{shown} as {name}")
    return ", ".join(parts)


def text(expr: Expr, row: list[str]) -> str:
    """An expression over named columns."""

    def answer(e: Expr, args: tuple[str, ...]) -> str:
        match e:
            case Column():
                return row[e.index] if e.index < len(row) else f"#{e.index}"
            case Literal():
                return (
                    "null"
                    if e.value is None
                    else repr(e.value)
                    if isinstance(e.value, str)
                    else str(e.value)
                )
            case Cast():
                return f"{'try_' if e.safe else ''}cast({args[0]} as {e.type.sql.lower()})"
            case SortKey():
                return f"{args[0]}{'' if e.ascending else ' desc'}"
            case SparkCall():
                return e.text.format(*args)
            case Call():
                return _call(e.name, args)
            case AggCall():
                return _aggregate(e, args)
            case WindowCall():
                return _window(e, args)
        return f"{type(e).__name__}({', '.join(args)})"

    result: str = expr.map(answer)
    return result


def _call(name: str, args: tuple[str, ...]) -> str:
    if name in _INFIX and len(args) == 2:
        return f"({args[0]} {name} {args[1]})"
    if name in _SUFFIX:
        return f"({args[0]} {_SUFFIX[name]})"
    if name == "not":
        return f"(not {args[0]})"
    return f"{name}({', '.join(args)})"


def _aggregate(e: AggCall, args: tuple[str, ...]) -> str:
    count = len(e.args)
    inner = ", ".join(args[:count]) or "*"
    where = f" filter ({args[count]})" if e.where is not None else ""
    return f"{e.name}({'distinct ' if e.distinct else ''}{inner}){where}"


def _window(e: WindowCall, args: tuple[str, ...]) -> str:
    a, p = len(e.args), len(e.partition_by)
    parts = []
    if p:
        parts.append(f"partition by {', '.join(args[a : a + p])}")
    if e.order_by:
        parts.append(f"order by {', '.join(args[a + p : a + p + len(e.order_by)])}")
    if e.frame is not None:
        parts.append(_frame(e.frame))
    return f"{e.name}({', '.join(args[:a])}) over ({' '.join(parts)})"


def _frame(frame: Frame) -> str:
    def bound(value: int | str | None, side: str) -> str:
        if value is None:
            return f"unbounded {side}"
        if value == 0:
            return "current row"
        if isinstance(value, str):
            return value.lower()
        return f"{abs(value)} {'preceding' if value < 0 else 'following'}"

    return f"{frame.unit} {bound(frame.start, 'preceding')} to {bound(frame.end, 'following')}"
