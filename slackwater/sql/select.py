"""SELECT blocks: FROM → WHERE → GROUP BY → HAVING → windows → QUALIFY → select list → order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from sqlglot import exp

from slackwater.algebra.expr import (
    Column,
    Expr,
    Literal,
    SortKey,
    WindowCall,
    transform,
    used_columns,
)
from slackwater.algebra.relation import Distinct, Project, Relation, Window
from slackwater.errors import SqlError, nearest
from slackwater.sql import build, tables
from slackwater.sql.calls import sort_key
from slackwater.sql.context import Context
from slackwater.sql.decorrelate import filter_by, lift
from slackwater.sql.grouping import group, is_aggregate
from slackwater.sql.names import GENERATORS, ORDER_SENSITIVE_WINDOWS
from slackwater.sql.ordering import limited, ordinal, tie_break
from slackwater.sql.parse import span
from slackwater.sql.pretty import output_name
from slackwater.sql.scalars import Scalars, dotted
from slackwater.sql.scope import OuterColumn, Scope, scope_of, side_by_side
from slackwater.types import DataType, Map


@dataclass
class Block:
    """What a SELECT asks for, as expressions over the same row; steps replace the row."""

    relation: Relation
    items: list[Expr]
    names: list[str]
    order: list[SortKey]
    having: Expr | None
    qualify: Expr | None

    def every(self) -> list[Expr]:
        """All expressions, in a fixed order."""
        extra = [e for e in (self.having, self.qualify) if e is not None]
        return [*self.items, *self.order, *extra]

    def changed(self, relation: Relation, exprs: list[Expr]) -> Block:
        """The block over another row, its expressions given as `every()` orders them."""
        rest = iter(exprs)
        items = [next(rest) for _ in self.items]
        order = [_as_key(next(rest)) for _ in self.order]
        having = next(rest) if self.having is not None else None
        qualify = next(rest) if self.qualify is not None else None
        return replace(
            self, relation=relation, items=items, order=order, having=having, qualify=qualify
        )


def _as_key(expr: Expr) -> SortKey:
    assert isinstance(expr, SortKey)
    return expr


def bind_select(context: Context, tree: exp.Expr, parent: Scope | None) -> Relation:
    """The relation of one SELECT. A mistake that knows no better place is at the SELECT."""
    try:
        return _bind_select(context, tree, parent)
    except SqlError as error:
        if error.start is None:
            error.start, error.end = span(tree)
        raise


def _bind_select(context: Context, tree: exp.Expr, parent: Scope | None) -> Relation:
    _refuse(context, tree)
    context = replace(context, windows=_named_windows(context, tree))
    scope = tables.from_clause(context, tree, parent)
    scope = _where(context, tree, scope)
    scope, tree = _generators(context, tree, scope)
    block = _bind_clauses(context, tree, scope)
    if is_aggregate(tree, block.every()):
        block = group(context, tree, scope, block)
        if block.having is not None:
            block.relation = filter_by(block.relation, block.having)
            block.having = None
    block = _windows(block)
    return _deliver(context, tree, block)


def _refuse(context: Context, tree: exp.Expr) -> None:
    for clause in ("cluster", "distribute", "sort", "match", "connect", "into", "kind"):
        if tree.args.get(clause):
            if clause in ("cluster", "distribute", "sort"):
                tree.set(clause, None)  # how rows are spread says nothing about which they are
                continue
            raise context.unsupported("UNSUPPORTED_OPERATOR", clause.upper())


def _named_windows(context: Context, tree: exp.Expr) -> dict[str, exp.Expr]:
    named = {w.name.lower(): w for w in tree.args.get("windows") or []}
    return {**context.windows, **named}


def _where(context: Context, tree: exp.Expr, scope: Scope) -> Scope:
    where = tree.args.get("where")
    if where is None:
        return scope
    predicate = Scalars(context, scope, "WHERE").predicate(where.this)
    return scope.over(filter_by(scope.relation, predicate))


def _generators(context: Context, tree: exp.Expr, scope: Scope) -> tuple[Scope, exp.Expr]:
    """SELECT explode(…) is a LATERAL VIEW whose columns stand in the select list."""
    made = [e for e in tree.expressions if _is_generator(_unaliased(e))]
    if not made:
        return scope, tree
    if len(made) > 1:
        raise SqlError("Only one generator may stand in a select list.", code="GENERATOR_MISUSE")
    call = _unaliased(made[0])
    name = call.name.lower()
    outer = name.endswith("_outer")
    aliases = [made[0].alias] if isinstance(made[0], exp.Alias) else []
    if isinstance(made[0], exp.Aliases):
        aliases = [a.name for a in made[0].args["expressions"]]
    relation, added = tables.generate(context, scope, call, outer, aliases)
    wide = side_by_side(relation, scope, scope_of(tables._only(added), "__generated__", None))
    tree = tree.copy()
    stand_ins = [exp.column(f.name, table="__generated__", quoted=True) for f in added]
    position = next(i for i, e in enumerate(tree.expressions) if _is_generator(_unaliased(e)))
    items = tree.expressions
    tree.set("expressions", [*items[:position], *stand_ins, *items[position + 1 :]])
    return wide, tree


def _unaliased(node: exp.Expr) -> exp.Expr:
    inner: exp.Expr = node.this if isinstance(node, exp.Alias | exp.Aliases) else node
    return inner


def _is_generator(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in GENERATORS


# -- clauses to expressions


def _bind_clauses(context: Context, tree: exp.Expr, scope: Scope) -> Block:
    s = Scalars(context, scope, "the select list", aggregates=True, windows=True)
    items, names = _select_list(s, tree)
    aliases: dict[str, Expr] = {}
    for name, expr in zip(names, items, strict=True):
        aliases.setdefault(name.lower(), expr)
    grouped = _grouped_names(tree, scope)
    first = {name: expr for name, expr in aliases.items() if name not in grouped}
    in_having = replace(s, clause="HAVING", windows=False, aliases=first, aliases_first=True)
    having = _predicate(in_having, tree, "having")
    qualify = _predicate(replace(s, clause="QUALIFY", aliases=aliases), tree, "qualify")
    by = replace(s, clause="ORDER BY", aliases=aliases, aliases_first=True)
    order = tree.args.get("order")

    def bind(node: exp.Expr) -> Expr:
        index = ordinal(node, len(items), "ORDER BY")
        return items[index] if index is not None else by.bind(node)

    nodes = order.expressions if order else []
    if len(nodes) == 1 and _is_all(nodes[0], scope):
        keys = [sort_key(by, nodes[0], partial(_same, item)) for item in items]
    else:
        keys = [sort_key(by, o, bind) for o in nodes]
    return Block(scope.relation, items, names, keys, having, qualify)


def _same(item: Expr, node: exp.Expr) -> Expr:
    return item


def _grouped_names(tree: exp.Expr, scope: Scope) -> set[str]:
    """Columns that GROUP BY names: in HAVING they go before aliases, all others behind."""
    clause = tree.args.get("group")
    named = {c.name.lower() for c in clause.find_all(exp.Column)} if clause is not None else set()
    return named & {n.column.lower() for n in scope.names}


def _is_all(node: exp.Expr, scope: Scope) -> bool:
    """ORDER BY ALL, unless a column is called so."""
    if isinstance(node.this, exp.All):
        return True
    named = isinstance(node.this, exp.Column | exp.Var) and node.this.name.lower() == "all"
    return named and scope.resolve_here(["all"]) is None


def _predicate(s: Scalars, tree: exp.Expr, clause: str) -> Expr | None:
    node = tree.args.get(clause)
    return s.predicate(node.this) if node is not None else None


def _select_list(s: Scalars, tree: exp.Expr) -> tuple[list[Expr], list[str]]:
    items: list[Expr] = []
    names: list[str] = []
    for node in tree.expressions:
        if _is_star(node):
            for name, expr in _star(s, node):
                items.append(expr)
                names.append(name)
            continue
        bound = s.bind(node.this if isinstance(node, exp.Alias) else node)
        items.append(bound)
        names.append(output_name(node, _Types(s)))
        if isinstance(node, exp.Alias):
            s.aliases.setdefault(node.alias.lower(), bound)
    if not items:
        raise SqlError("The select list is empty.", code="SYNTAX_ERROR")
    return items, names


@dataclass(frozen=True)
class _Types:
    """Types of syntax nodes, for the names of columns."""

    scalars: Scalars

    def __call__(self, node: exp.Expr) -> DataType:
        return self.scalars.bind(node).type

    def is_field(self, node: exp.Expr) -> bool:
        """Is a dotted name a field of a struct, not a column of a table?"""
        found = self.scalars.scope.resolve(dotted(node))
        return found is not None and bool(found[1])


def _is_star(node: exp.Expr) -> bool:
    return isinstance(node, exp.Star) or (
        isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
    )


def _star(s: Scalars, node: exp.Expr) -> list[tuple[str, Expr]]:
    star = node if isinstance(node, exp.Star) else node.this
    qualifier = node.table if isinstance(node, exp.Column) else None
    found = s.scope.star(qualifier)
    start, end = span(node)
    if not found:
        known = sorted({n.qualifier for n in s.scope.names if n.qualifier})
        raise SqlError(
            f"'{node.sql(dialect='spark')}' stands for no columns.",
            code="UNKNOWN_TABLE",
            hint=nearest(qualifier or "", known) or "The query has no FROM clause.",
            start=start,
            end=end,
        )
    excluded = {e.name.lower() for e in star.args.get("except_") or []}
    unknown = excluded - {n.column.lower() for n in found}
    if unknown:
        name = sorted(unknown)[0]
        raise SqlError(
            f"EXCEPT column '{name}' is not among the columns.",
            code="UNKNOWN_COLUMN",
            hint=nearest(name, [n.column for n in found]),
            start=start,
            end=end,
        )
    return [(n.column, s.scope.column(n.index)) for n in found if n.column.lower() not in excluded]


# -- windows


def _windows(block: Block) -> Block:
    """Compute window functions behind the row, then QUALIFY."""
    relation, exprs = block.relation, block.every()
    calls = [n for e in exprs for n in e.walk() if isinstance(n, WindowCall)]
    if calls:
        ties = [e for e in block.items if _breaks_ties(e)]
        relation, lifted = lift(relation, [*calls, *ties])
        ordered = [_tie_broken(c, lifted[len(calls) :]) for c in lifted[: len(calls)]]
        distinct = list(dict.fromkeys(ordered))
        at = relation.width
        relation = Window(relation, tuple(distinct), tuple(f"w{i}" for i in range(len(distinct))))
        places: dict[Expr, Expr] = {}
        for call, new in zip(calls, ordered, strict=True):
            places[call] = Column(call.type, call.nullable, at + distinct.index(new))
        block = block.changed(relation, [transform(e, places.get) for e in exprs])
    if block.qualify is not None:
        block.relation = filter_by(block.relation, block.qualify)
        block.qualify = None
    return block


def _breaks_ties(expr: Expr) -> bool:
    """Can a select-list expression order peers? Not a window value, a constant or a map."""
    nodes = list(expr.walk())
    return (
        not any(isinstance(n, WindowCall) for n in nodes)
        and any(isinstance(n, Column | OuterColumn) for n in nodes)
        and not isinstance(expr.type, Map)
    )


def _tie_broken(call: Expr, ties: list[Expr]) -> WindowCall:
    assert isinstance(call, WindowCall)
    if not _depends_on_peers(call):
        return call
    known = {k.arg for k in call.order_by} | set(call.partition_by)
    read = [a for a in call.args if _breaks_ties(a)]  # alike in that, too: the same value
    added = tuple(tie_break(t) for t in dict.fromkeys([*ties, *read]) if t not in known)
    return call.replace(order_by=call.order_by + added)


def _depends_on_peers(call: WindowCall) -> bool:
    if call.name in ORDER_SENSITIVE_WINDOWS:
        return True
    if call.frame is None or call.frame.unit != "rows":
        return _from_the_start(call) or _to_the_end(call)
    bounded = call.frame.start is not None or call.frame.end is not None
    return bounded or call.name in ("first_value", "last_value", "nth_value", "first", "last")


def _from_the_start(call: WindowCall) -> bool:
    """The first value of a range that begins with the partition: order by more columns makes the
    range shorter at its other end only."""
    begins = call.frame is not None and call.frame.start is None and bool(call.order_by)
    return begins and call.name in ("first_value", "first")


def _to_the_end(call: WindowCall) -> bool:
    """The last value of a range that ends with the partition."""
    ends = call.frame is not None and call.frame.end is None and bool(call.order_by)
    return ends and call.name in ("last_value", "last")


# -- select list, DISTINCT, order


def _deliver(context: Context, tree: exp.Expr, block: Block) -> Relation:
    relation, exprs = lift(block.relation, [*block.items, *block.order])
    items = exprs[: len(block.items)]
    keys = [_as_key(e) for e in exprs[len(block.items) :]]
    distinct = bool(tree.args.get("distinct"))
    if distinct and tree.args["distinct"].args.get("on"):
        raise context.unsupported("UNSUPPORTED_OPERATOR", "DISTINCT ON")
    hidden: list[Expr] = []
    placed = [_placed(k, items, hidden, distinct) for k in keys if not _constant(k)]
    names = tuple(block.names) + tuple(f"o{i}" for i in range(len(hidden)))
    result: Relation = Project(relation, (*items, *hidden), names)
    if distinct:
        result = Distinct(result)
    result = limited(context, tree, result, tuple(placed), len(items))
    return build.first_columns(result, len(items)) if hidden else result


def _constant(key: SortKey) -> bool:
    return isinstance(key.arg, Literal) or (
        not used_columns(key.arg)
        and not any(isinstance(n, OuterColumn) for n in key.arg.walk())
        and all(not hasattr(n, "deterministic") for n in key.arg.walk())
    )


def _placed(key: SortKey, items: list[Expr], hidden: list[Expr], distinct: bool) -> SortKey:
    """The key as a column of the select list's row, to which it may add a hidden column."""
    if key.arg in items:
        at = items.index(key.arg)
    elif distinct:
        inner = {item: Column(item.type, item.nullable, i) for i, item in enumerate(items)}
        over_output = transform(key.arg, inner.get)
        if used_columns(over_output) <= set(range(len(items))) and over_output is not key.arg:
            return key.replace(arg=over_output)
        raise SqlError(
            "With DISTINCT, ORDER BY may use only what the select list has.",
            code="ORDER_BY_NOT_IN_SELECT",
            hint="Add the expression to the select list, or use GROUP BY.",
        )
    else:
        if key.arg not in hidden:
            hidden.append(key.arg)
        at = len(items) + hidden.index(key.arg)
    return key.replace(arg=Column(key.arg.type, key.arg.nullable, at))
