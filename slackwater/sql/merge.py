"""MERGE INTO t USING s ON …, with all its clauses, as one relation of weighted rows.

Matched pairs come from t ⋈ s, rows for NOT MATCHED from s ▷ t, for NOT MATCHED BY SOURCE from
t ▷ s. In each part the first clause whose condition holds acts.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from slackwater.algebra.expr import (
    TRUE,
    Call,
    Expr,
    Literal,
    WindowCall,
    columns,
    conjunction,
    remap,
)
from slackwater.algebra.relation import (
    Aggregate,
    Filter,
    Join,
    Project,
    Relation,
    Union,
    Values,
    Window,
)
from slackwater.errors import SqlError
from slackwater.sql import build
from slackwater.sql.assign import (
    MINUS,
    PLUS,
    Target,
    assign,
    assignment,
    default_value,
    is_default,
    position,
)
from slackwater.sql.context import Context
from slackwater.sql.decorrelate import filter_by, lift
from slackwater.sql.ordering import tie_break
from slackwater.sql.parse import span
from slackwater.sql.scalars import Scalars
from slackwater.sql.scope import Scope, field_index, scope_of, side_by_side
from slackwater.sql.subquery import has_subquery
from slackwater.sql.tables import item as from_item
from slackwater.types import BIGINT, BOOLEAN, INT, WEIGHT, Field


def merge(context: Context, target: Target, tree: exp.Expr) -> tuple[Relation, Relation | None]:
    """The changes, and the target rows that more than one source row would change."""
    left = scope_of(target.scan, tree.this.alias or target.name, None)
    right = from_item(context, tree.args["using"], None)
    both = side_by_side(Join(left.relation, right.relation, "inner", TRUE), left, right)
    on = Scalars(context, both, "the ON condition").predicate(tree.args["on"])
    if has_subquery(on):
        raise SqlError("A subquery in MERGE … ON is not supported.", code="UNSUPPORTED_STATEMENT")
    whens = tree.args["whens"].expressions
    matched = [w for w in whens if w.args.get("matched")]
    by_source = [w for w in whens if not w.args.get("matched") and w.args.get("source")]
    by_target = [w for w in whens if not w.args.get("matched") and not w.args.get("source")]
    parts: list[Relation] = []
    many = None
    if matched:
        # one unconditional DELETE may meet a row several times: it is gone once
        once = len(matched) == 1 and _deletes_all(matched[0])
        pairs = Join(left.relation, right.relation, "semi" if once else "inner", on)
        scope = left.over(pairs) if once else both.over(pairs)
        parts += _clauses(context, target, scope, matched)
        many = None if once else _many_matches(context, left, right, on, matched)
    if by_source:
        scope = left.over(Join(left.relation, right.relation, "anti", on))
        parts += _clauses(context, target, scope, by_source)
    if by_target:
        mirrored = remap(on, _swap(left.relation.width, right.relation.width))
        scope = right.over(Join(right.relation, left.relation, "anti", mirrored))
        parts += _clauses(context, target, scope, by_target)
    if not parts:
        fields = (*target.schema, Field(WEIGHT, BIGINT, False))
        return Values((), fields), None
    return (Union(tuple(parts)) if len(parts) > 1 else parts[0]), many


def _swap(left: int, right: int) -> Callable[[int], int]:
    return lambda i: i + right if i < left else i - left


def _clauses(
    context: Context, target: Target, scope: Scope, whens: list[exp.Expr]
) -> list[Relation]:
    """The changes of clauses over the same rows; a row is for the first that takes it."""
    parts: list[Relation] = []
    for when, rows in _taken(context, scope, whens):
        parts += _action(context, target, scope.over(rows), when)
    return parts


def _taken(
    context: Context, scope: Scope, whens: list[exp.Expr]
) -> list[tuple[exp.Expr, Relation]]:
    rest = scope.relation
    found = []
    for when in whens:
        condition = when.args.get("condition")
        if condition is None:
            found.append((when, rest))
            break
        wanted = Scalars(context, scope, "a WHEN condition").predicate(condition)
        found.append((when, filter_by(rest, wanted)))
        sure = Call(BOOLEAN, False, "is_true", (wanted,))
        rest = filter_by(rest, build.negation(sure))
    return found


def _action(context: Context, target: Target, scope: Scope, when: exp.Expr) -> list[Relation]:
    then = when.args["then"]
    if isinstance(then, exp.Var):
        if then.name.upper() == "DELETE":
            return [_weighted(target, scope.relation, list(columns(target.schema)), MINUS)]
        raise SqlError(f"MERGE cannot {then.name}.", code="UNSUPPORTED_STATEMENT")
    if isinstance(then, exp.Update):
        return _update(context, target, scope, then)
    if isinstance(then, exp.Insert):
        return [_insert(context, target, scope, then)]
    start, end = span(then)
    raise SqlError(
        "MERGE takes UPDATE, DELETE or INSERT.", code="SYNTAX_ERROR", start=start, end=end
    )


def _weighted(target: Target, relation: Relation, exprs: list[Expr], weight: Expr) -> Relation:
    relation, lifted = lift(relation, exprs)
    names = (*(f.name for f in target.schema), WEIGHT)
    return Project(relation, (*lifted, weight), names)


def _update(context: Context, target: Target, scope: Scope, then: exp.Expr) -> list[Relation]:
    old = list(columns(target.schema))
    new = list[Expr](old)
    scalars = Scalars(context, scope, "SET")
    if _is_star(then.expressions):
        for i, f in enumerate(target.schema):
            new[i] = assign(_source_column(scope, f.name, len(target.schema)), target, i)
    else:
        for item in then.expressions:
            index, value = assignment(context, scalars, target, item)
            new[index] = value
    return [
        _weighted(target, scope.relation, list(old), MINUS),
        _weighted(target, scope.relation, new, PLUS),
    ]


def _is_star(nodes: list[exp.Expr]) -> bool:
    return len(nodes) == 1 and isinstance(nodes[0], exp.Star)


def _source_column(scope: Scope, name: str, start: int) -> Expr:
    """The source's column for SET * and INSERT *."""
    fields = scope.relation.schema[start:]
    index = field_index(fields, name)
    if index is None:
        raise SqlError(
            f"The source of MERGE has no column '{name}'.",
            code="UNKNOWN_COLUMN",
            hint=f"Existing: {', '.join(f.name for f in fields)}.",
        )
    return scope.column(start + index)


def _insert(context: Context, target: Target, scope: Scope, then: exp.Expr) -> Relation:
    given = then.this
    if isinstance(given, exp.Star) or given is None:
        exprs = [
            assign(_source_column(scope, f.name, 0), target, i) for i, f in enumerate(target.schema)
        ]
        return _weighted(target, scope.relation, exprs, PLUS)
    named = [position(target, c.name, c) for c in given.expressions]
    cells = then.expression.expressions
    if len(cells) != len(named):
        raise SqlError(
            f"INSERT names {len(named)} columns and gives {len(cells)} values.",
            code="COLUMN_COUNT",
        )
    scalars = Scalars(context, scope, "INSERT")
    exprs = []
    for i in range(len(target.schema)):
        if i not in named:
            exprs.append(default_value(context, target, i))
            continue
        cell = cells[named.index(i)]
        if is_default(cell):
            exprs.append(default_value(context, target, i))
        else:
            exprs.append(assign(scalars.bind(cell), target, i))
    return _weighted(target, scope.relation, exprs, PLUS)


def _many_matches(
    context: Context, left: Scope, right: Scope, on: Expr, whens: list[exp.Expr]
) -> Relation:
    """Target rows that several source rows would change; equal rows are told apart by number."""
    row = columns(left.relation.schema)
    order = tuple(tie_break(c) for c in row)
    number = WindowCall(INT, False, "row_number", (), tuple(row), order, None)
    numbered = Window(left.relation, (number,), ("rn",))
    width = left.relation.width
    moved = remap(on, lambda i: i if i < width else i + 1)
    joined = Join(numbered, right.relation, "inner", moved)
    names = scope_of(numbered, None, None)
    wide = side_by_side(joined, names, right)
    wide = Scope(
        joined,
        (*(n for n in left.names), *(n for n in wide.names if n.index > width)),
        None,
        left.aliases | right.aliases,
    )
    acted = [rows for _, rows in _taken(context, wide, whens)]
    keys = columns(joined.schema)[: width + 1]
    labels = (*(f.name for f in numbered.schema),)
    picked = [Project(rows, tuple(keys), labels) for rows in acted]
    everything: Relation = Union(tuple(picked)) if len(picked) > 1 else picked[0]
    count_names = (*labels, "matches")
    counted = Aggregate(everything, tuple(keys), (build.count_star(),), count_names)
    matches = columns(counted.schema)[-1]
    twice = Call(BOOLEAN, False, ">", (matches, Literal(BIGINT, False, 1)))
    return build.first_columns(Filter(counted, conjunction([twice])), width)


def _deletes_all(when: exp.Expr) -> bool:
    then = when.args["then"]
    return (
        isinstance(then, exp.Var)
        and then.name.upper() == "DELETE"
        and not when.args.get("condition")
    )
