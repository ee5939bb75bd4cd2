"""Compute a correlated query for every value of a domain: the general unnesting.

depend(Q, D) has the columns of Q, then those of D, and holds for every d in D the rows of Q
computed with its `Param`s set to d. Each operator carries d along:

| operator | law |
|---|---|
| not correlated | Q × D |
| σ, π, Γ | over depend(input); π keeps d |
| inner ⋈ | the correlated side carries d; if both do, they meet on equal d |
| left ⟕, ⋉, ▷ | the left side carries d, the right side too if it is correlated |
| γ | d joins the keys; without keys, D ⟕ γ, so that empty groups have their row |
| δ, ∪, ∩, − | of rows with d |
| window, top-k | partitions by d; LIMIT becomes row_number() <= n |
"""

from __future__ import annotations

from collections.abc import Callable

from slackwater.algebra.expr import (
    TRUE,
    AggCall,
    Call,
    Column,
    Expr,
    Literal,
    WindowCall,
    columns,
    conjunction,
    remap,
    transform,
)
from slackwater.algebra.relation import (
    Aggregate,
    Distinct,
    Expand,
    Filter,
    Generate,
    Join,
    Project,
    Relation,
    SetOp,
    Sort,
    TopK,
    Union,
    Window,
)
from slackwater.errors import UserError
from slackwater.sql import build
from slackwater.sql.pullup import ZERO_WHEN_EMPTY
from slackwater.sql.subquery import Param, is_correlated
from slackwater.types import BIGINT, BOOLEAN, INT


def depend(query: Relation, domain: Relation) -> Relation:
    """The query for every row of the domain; see the table above."""
    if not is_correlated(query):
        return Join(query, domain, "inner", TRUE)
    law = _LAWS.get(type(query))
    if law is None:
        raise UserError(
            f"A correlated subquery cannot reach into {type(query).__name__}.",
            code="UNSUPPORTED_CORRELATION",
            hint="Move the reference to the enclosing query into a WHERE clause.",
        )
    return law(query, domain)


def _bind(expr: Expr, start: int) -> Expr:
    """`Param`s read the domain columns, which begin at `start`."""
    result: Expr = transform(
        expr,
        lambda e: Column(e.type, e.nullable, start + e.index) if isinstance(e, Param) else None,
    )
    return result


def _domain_columns(relation: Relation, domain: Relation) -> tuple[Column, ...]:
    return columns(relation.schema)[-domain.width :]


def _names(domain: Relation) -> tuple[str, ...]:
    return tuple(f.name for f in domain.schema)


def _filter(node: Filter, domain: Relation) -> Relation:
    below = depend(node.input, domain)
    return Filter(below, _bind(node.predicate, node.input.width))


def _project(node: Project, domain: Relation) -> Relation:
    below = depend(node.input, domain)
    exprs = tuple(_bind(e, node.input.width) for e in node.exprs)
    return Project(below, exprs + _domain_columns(below, domain), node.names + _names(domain))


def _join(node: Join, domain: Relation) -> Relation:
    a, b, d = node.left.width, node.right.width, domain.width
    if node.how == "right":
        flipped = remap(node.condition, lambda i: i + b if i < a else i - a)
        swapped = depend(Join(node.right, node.left, "left", flipped), domain)
        return build.pick(swapped, [*range(b, b + a), *range(b), *range(a + b, a + b + d)])
    right_needs = is_correlated(node.right) or node.how == "full"
    if node.how == "inner" and not is_correlated(node.left) and right_needs:
        right = depend(node.right, domain)
        return Join(node.left, right, "inner", _bind(node.condition, a + b))
    left = depend(node.left, domain)
    right = depend(node.right, domain) if right_needs else node.right
    condition = remap(node.condition, lambda i: i if i < a else i + d)
    parts = [_bind(condition, a)]
    if right_needs:
        parts += [
            build.null_safe_equal(x, y)
            for x, y in zip(
                columns(left.schema)[a:], columns(right.schema, left.width)[b:], strict=True
            )
        ]
    joined = Join(left, right, node.how, conjunction(parts))
    if node.how in ("semi", "anti"):
        return joined
    if node.how == "full":
        return _either_domain(joined, a, b, d)
    return build.pick(joined, [*range(a), *range(a + d, a + d + b), *range(a, a + d)])


def _either_domain(joined: Relation, a: int, b: int, d: int) -> Relation:
    """After a full join d stands on the left, on the right, or on both."""
    row = columns(joined.schema)
    both = tuple(
        Call(row[a + i].type, True, "coalesce", (row[a + i], row[a + d + b + i])) for i in range(d)
    )
    names = tuple(f.name for f in joined.schema)
    return Project(
        joined,
        row[:a] + row[a + d : a + d + b] + both,
        names[:a] + names[a + d : a + d + b] + names[a : a + d],
    )


def _aggregate(node: Aggregate, domain: Relation) -> Relation:
    below = depend(node.input, domain)
    k, n, d = len(node.keys), len(node.aggs), domain.width
    keys = tuple(_bind(e, node.input.width) for e in node.keys)
    aggs: tuple[AggCall, ...] = tuple(_bind(e, node.input.width) for e in node.aggs)  # type: ignore[misc]
    names = node.names[:k] + _names(domain) + node.names[k:]
    grouped = Aggregate(below, keys + _domain_columns(below, domain), aggs, names)
    if keys:
        return build.pick(grouped, [*range(k), *range(k + d, k + d + n), *range(k, k + d)])
    return _with_empty_groups(grouped, node, domain)


def _with_empty_groups(grouped: Relation, node: Aggregate, domain: Relation) -> Relation:
    """D ⟕ γ: an aggregate without keys has a row for every d."""
    d = domain.width
    row = columns(domain.schema)
    meets = zip(row, columns(grouped.schema, d)[:d], strict=True)
    joined = Join(
        domain, grouped, "left", conjunction([build.null_safe_equal(x, y) for x, y in meets])
    )
    values: list[Expr] = []
    for i, agg in enumerate(node.aggs):
        value: Expr = Column(agg.type, True, 2 * d + i)
        if agg.name in ZERO_WHEN_EMPTY:
            value = Call(agg.type, False, "coalesce", (value, Literal(BIGINT, False, 0)))
        values.append(value)
    return Project(joined, tuple(values) + row, node.names + _names(domain))


def _distinct(node: Distinct, domain: Relation) -> Relation:
    return Distinct(depend(node.input, domain))


def _sort(node: Sort, domain: Relation) -> Relation:
    return depend(node.input, domain)


def _union(node: Union, domain: Relation) -> Relation:
    return Union(tuple(depend(p, domain) for p in node.parts))


def _set_op(node: SetOp, domain: Relation) -> Relation:
    return SetOp(depend(node.left, domain), depend(node.right, domain), node.how, node.all)


def _window(node: Window, domain: Relation) -> Relation:
    below = depend(node.input, domain)
    a, d = node.input.width, domain.width
    own = _domain_columns(below, domain)
    calls = []
    for call in node.calls:
        bound = _bind(call, a)
        assert isinstance(bound, WindowCall)
        calls.append(bound.replace(partition_by=bound.partition_by + own))
    windowed = Window(below, tuple(calls), node.names)
    return build.pick(windowed, [*range(a), *range(a + d, a + d + len(calls)), *range(a, a + d)])


def _top_k(node: TopK, domain: Relation) -> Relation:
    below = depend(node.input, domain)
    own = _domain_columns(below, domain)
    number = WindowCall(INT, False, "row_number", (), own, node.keys, None)
    windowed = Window(below, (number,), ("rn",))
    at = Column(INT, False, below.width)
    parts: list[Expr] = []
    if node.offset:
        parts.append(Call(BOOLEAN, False, ">", (at, Literal(INT, False, node.offset))))
    if node.limit is not None:
        last = Literal(INT, False, node.offset + node.limit)
        parts.append(Call(BOOLEAN, False, "<=", (at, last)))
    return build.first_columns(Filter(windowed, conjunction(parts)), below.width)


def _expand(node: Expand, domain: Relation) -> Relation:
    below = depend(node.input, domain)
    own = _domain_columns(below, domain)
    projections = tuple(
        tuple(_bind(e, node.input.width) for e in p) + own for p in node.projections
    )
    return Expand(below, projections, node.names + _names(domain))


def _generate(node: Generate, domain: Relation) -> Relation:
    below = depend(node.input, domain)
    a, d, n = node.input.width, domain.width, len(node.added)
    made = Generate(below, _bind(node.generator, a), node.outer, node.added)
    return build.pick(made, [*range(a), *range(a + d, a + d + n), *range(a, a + d)])


_LAWS: dict[type[Relation], Callable[..., Relation]] = {
    Filter: _filter,
    Project: _project,
    Join: _join,
    Aggregate: _aggregate,
    Distinct: _distinct,
    Sort: _sort,
    Union: _union,
    SetOp: _set_op,
    Window: _window,
    TopK: _top_k,
    Expand: _expand,
    Generate: _generate,
}
