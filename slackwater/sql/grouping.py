"""GROUP BY: keys, aggregates, GROUPING SETS, and the misuse of either."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from sqlglot import exp

from slackwater.algebra.expr import (
    AggCall,
    Call,
    Cast,
    Column,
    Expr,
    Literal,
    columns,
    transform,
)
from slackwater.algebra.relation import Aggregate, Expand, Relation
from slackwater.errors import SqlError
from slackwater.sql.calls import Grouping
from slackwater.sql.context import Context
from slackwater.sql.decorrelate import lift
from slackwater.sql.names import AGGREGATES
from slackwater.sql.ordering import ordinal
from slackwater.sql.parse import span
from slackwater.sql.scalars import Scalars
from slackwater.sql.scope import Scope
from slackwater.types import BIGINT, INT, TINYINT, Map

if TYPE_CHECKING:
    from slackwater.sql.select import Block

Sets = list[tuple[int, ...]]
"""Grouping sets, as positions of keys."""


def is_aggregate(tree: exp.Expr, exprs: list[Expr]) -> bool:
    """Does the block group rows?"""
    if tree.args.get("group") is not None or tree.args.get("having") is not None:
        return True
    return any(isinstance(n, AggCall | Grouping) for e in exprs for n in e.walk())


def group(context: Context, tree: exp.Expr, scope: Scope, block: Block) -> Block:
    """The block over the row of an aggregate: keys, then aggregates."""
    keys, sets = _keys(context, tree, scope, block)
    exprs = block.every()
    aggs = list(dict.fromkeys(n for e in exprs for n in e.walk() if isinstance(n, AggCall)))
    relation, lifted = lift(block.relation, [*keys, *aggs])
    bound_keys, bound_aggs = lifted[: len(keys)], lifted[len(keys) :]
    if sets is None:
        grouped = _aggregate(relation, bound_keys, bound_aggs)
        places: dict[Expr, Expr] = {k: Column(k.type, k.nullable, i) for i, k in enumerate(keys)}
        start = len(keys)
    else:
        grouped, start = _grouping_sets(relation, bound_keys, bound_aggs, sets)
        places = {k: Column(k.type, grouped.schema[i].nullable, i) for i, k in enumerate(keys)}
        places |= _grouping_calls(exprs, keys, len(keys))
    places |= {a: Column(a.type, a.nullable, start + i) for i, a in enumerate(aggs)}
    for literal in [k for k in places if isinstance(k, Literal)]:
        del places[literal]
    try:
        regrouped = [_regroup(e, places) for e in exprs]
    except _Ungrouped as ungrouped:
        raise _ungrouped(tree, block.relation, ungrouped.column) from None
    return block.changed(grouped, regrouped)


def _aggregate(relation: Relation, keys: list[Expr], aggs: list[Expr]) -> Relation:
    names = [_key_name(k, relation, i) for i, k in enumerate(keys)]
    names += [f"a{i}" for i in range(len(aggs))]
    calls = tuple(a for a in aggs if isinstance(a, AggCall))
    return Aggregate(relation, tuple(keys), calls, tuple(names))


def _key_name(key: Expr, relation: Relation, i: int) -> str:
    return relation.schema[key.index].name if isinstance(key, Column) else f"g{i}"


class _Ungrouped(Exception):
    """A column that is neither a key nor inside an aggregate."""

    def __init__(self, column: Column) -> None:
        self.column = column
        super().__init__()


def _ungrouped(tree: exp.Expr, relation: Relation, column: Column) -> SqlError:
    name = relation.schema[column.index].name
    start, end = span(_outside_aggregates(tree, name))
    return SqlError(
        f"Column '{name}' is neither in GROUP BY nor inside an aggregate.",
        code="AGGREGATE_MISUSE",
        hint=f"Add it to GROUP BY, or wrap it, as in any_value({name}) or max({name}).",
        start=start,
        end=end,
    )


def _outside_aggregates(tree: exp.Expr, name: str) -> exp.Expr | None:
    """Where a query names a column without an aggregate around it."""
    clauses = [*tree.expressions, *(tree.args.get(c) for c in ("having", "qualify", "order"))]
    for clause in clauses:
        found: list[exp.Expr] = list(clause.find_all(exp.Column)) if clause is not None else []
        for node in found:
            if node.name.lower() == name.lower() and not _inside_aggregate(node):
                return node
    return None


def _inside_aggregate(node: exp.Expr) -> bool:
    call = node.find_ancestor(exp.Anonymous, exp.Select)
    while isinstance(call, exp.Anonymous):
        if call.name.lower() in AGGREGATES:
            return True
        call = call.find_ancestor(exp.Anonymous, exp.Select)
    return False


def _regroup(expr: Expr, places: dict[Expr, Expr]) -> Expr:
    def change(e: Expr) -> Expr | None:
        if e in places:
            return places[e]
        if isinstance(e, Column):
            raise _Ungrouped(e)
        if isinstance(e, Grouping):
            raise SqlError(
                f"{e.name.upper()}() needs GROUPING SETS, ROLLUP or CUBE over its argument.",
                code="AGGREGATE_MISUSE",
            )
        return None

    result: Expr = transform(expr, change)
    return result


# -- keys


def _keys(
    context: Context, tree: exp.Expr, scope: Scope, block: Block
) -> tuple[list[Expr], Sets | None]:
    """The distinct key expressions, and the grouping sets if there are any."""
    clause = tree.args.get("group")
    if clause is None:
        return [], None
    aliases: dict[str, Expr] = {}
    for name, item in zip(block.names, block.items, strict=True):
        aliases.setdefault(name.lower(), item)
    s = Scalars(context, scope, "GROUP BY", aliases=aliases)
    if clause.args.get("all"):
        return [i for i in block.items if not _aggregates(i)], None
    keys: list[Expr] = []

    def place(node: exp.Expr) -> int:
        key = _key(s, node, block)
        if key not in keys:
            keys.append(key)
        return keys.index(key)

    plain = tuple(place(n) for n in clause.expressions if not _is_set(n))
    dimensions = [_dimension(n, place, plain) for n in _set_nodes(clause)]
    if not dimensions:
        return keys, None
    if any(not n.expressions for n in _set_nodes(clause)):
        plain = ()  # GROUP BY a, b WITH ROLLUP
    sets = [
        tuple(sorted({*plain, *(p for part in parts for p in part)}))
        for parts in product(*dimensions)
    ]
    return keys, sets


def _key(s: Scalars, node: exp.Expr, block: Block) -> Expr:
    index = ordinal(node, len(block.items), "GROUP BY")
    key = block.items[index] if index is not None else s.bind(node)
    if _aggregates(key):
        raise SqlError("GROUP BY cannot hold an aggregate.", code="AGGREGATE_MISUSE")
    if isinstance(key.type, Map):
        raise SqlError("GROUP BY cannot hold a MAP.", code="WRONG_TYPES")
    return key


def _aggregates(expr: Expr) -> bool:
    return any(isinstance(n, AggCall | Grouping) for n in expr.walk())


def _is_set(node: exp.Expr) -> bool:
    return isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets)


def _set_nodes(clause: exp.Expr) -> list[exp.Expr]:
    nodes = [n for n in clause.expressions if _is_set(n)]
    for name in ("grouping_sets", "rollup", "cube"):
        nodes += [n for n in clause.args.get(name) or [] if isinstance(n, exp.Expr)]
    return nodes


def _dimension(node: exp.Expr, place: object, plain: tuple[int, ...]) -> Sets:
    """The alternatives that one ROLLUP, CUBE or GROUPING SETS offers."""
    assert callable(place)
    if isinstance(node, exp.GroupingSets):
        found: Sets = []
        for part in node.expressions:
            if _is_set(part):
                found += _dimension(part, place, plain)
            else:
                found.append(tuple(place(n) for n in _members(part)))
        return found
    groups = [tuple(place(n) for n in _members(part)) for part in node.expressions]
    if not groups:
        groups = [(p,) for p in plain]
    if isinstance(node, exp.Rollup):
        return [tuple(p for g in groups[:count] for p in g) for count in range(len(groups), -1, -1)]
    return [
        tuple(p for g, kept in zip(groups, chosen, strict=True) if kept for p in g)
        for chosen in product((True, False), repeat=len(groups))
    ]


def _members(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    if isinstance(node, exp.Paren):
        return [node.this]
    return [node]


# -- grouping sets


def _grouping_sets(
    relation: Relation, keys: list[Expr], aggs: list[Expr], sets: Sets
) -> tuple[Relation, int]:
    """Expand, then aggregate: per set the keys it lacks are NULL, and a number tells them apart.

    Row of the expansion: input columns, keys, grouping id and, where a set comes twice, its place.
    """
    row = columns(relation.schema)
    twice = len(set(sets)) < len(sets)
    projections = []
    for place, chosen in enumerate(sets):
        nulled = tuple(
            k if i in chosen else Literal(k.type, True, None) for i, k in enumerate(keys)
        )
        number = Literal(BIGINT, False, _grouping_id(chosen, len(keys)))
        position = (Literal(INT, False, place),) if twice else ()
        projections.append((*row, *nulled, number, *position))
    names = [f.name for f in relation.schema] + [f"g{i}" for i in range(len(keys))]
    names += ["grouping_id"] + (["grouping_pos"] if twice else [])
    expanded = Expand(relation, tuple(projections), tuple(names))
    new_keys = columns(expanded.schema)[relation.width :]
    return _aggregate(expanded, list(new_keys), aggs), len(new_keys)


def _grouping_id(chosen: tuple[int, ...], count: int) -> int:
    """One bit per key, the first key highest: 1 where the set lacks it."""
    return sum(1 << (count - 1 - i) for i in range(count) if i not in chosen)


def _grouping_calls(exprs: list[Expr], keys: list[Expr], at: int) -> dict[Expr, Expr]:
    number = Column(BIGINT, False, at)
    places: dict[Expr, Expr] = {}
    for call in (n for e in exprs for n in e.walk() if isinstance(n, Grouping)):
        args = call.args or tuple(keys)
        unknown = [a for a in args if a not in keys]
        if unknown:
            continue
        bits = [_bit(number, len(keys) - 1 - keys.index(a)) for a in args]
        places[call] = _tiny(bits[0]) if call.name == "grouping" else _combined(bits)
    return places


def _bit(number: Expr, shift: int) -> Expr:
    shifted = Call(BIGINT, False, ">>", (number, Literal(INT, False, shift)))
    return Call(BIGINT, False, "&", (shifted, Literal(BIGINT, False, 1)))


def _tiny(bit: Expr) -> Expr:
    return Cast(TINYINT, False, bit)


def _combined(bits: list[Expr]) -> Expr:
    total = bits[0]
    for bit in bits[1:]:
        doubled = Call(BIGINT, False, "*", (total, Literal(BIGINT, False, 2)))
        total = Call(BIGINT, False, "+", (doubled, bit))
    return total
