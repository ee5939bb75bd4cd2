"""Subqueries become joins and aggregates.

Two ways, the cheaper first:

* `pull_up`: where the enclosing row is read only in filters that can be moved to the top, they
  become the condition of a join (with equalities, below an aggregate too: its keys grow).
* `depend`: in general the query is computed for every distinct value `d` of what it reads,
  D = δ(outer values), each operator carrying d along, and joined back on d. This is the unnesting
  of arbitrary queries by Neumann and Kemper.

The count bug: an aggregate without keys has a row even where nothing matches. After `pull_up` the
join gives NULLs there, so the value of the select list over the empty input stands in.
"""

from __future__ import annotations

from collections.abc import Sequence

from slackwater.algebra.expr import (
    FALSE,
    TRUE,
    AggCall,
    Call,
    Cast,
    Column,
    Expr,
    Literal,
    columns,
    conjunction,
    conjuncts,
    shift,
    transform,
)
from slackwater.algebra.relation import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Project,
    Relation,
    Sort,
    Values,
)
from slackwater.sql import build
from slackwater.sql.depend import depend
from slackwater.sql.pullup import Pulled, equality, pull_up
from slackwater.sql.subquery import (
    Inner,
    MatchQuery,
    Param,
    ScalarQuery,
    has_subquery,
    is_correlated,
)
from slackwater.types import BIGINT, BOOLEAN

_STRICT = frozenset({"+", "-", "*", "/", "%", "neg", "div", "abs", "round"})


def filter_by(relation: Relation, predicate: Expr) -> Relation:
    """The rows that satisfy a predicate, which may hold subqueries."""
    plain = [p for p in conjuncts(predicate) if not has_subquery(p)]
    result: Relation = Filter(relation, conjunction(plain)) if plain else relation
    for part in conjuncts(predicate):
        if has_subquery(part):
            result = _filter_one(result, part)
    return result


def _filter_one(relation: Relation, predicate: Expr) -> Relation:
    if isinstance(predicate, MatchQuery):
        return _semi_join(relation, predicate, "semi")
    if isinstance(predicate, Call) and predicate.name == "not":
        inner = predicate.args[0]
        if isinstance(inner, MatchQuery):
            return _semi_join(relation, inner, "anti")
    lifted, (condition,) = lift(relation, [two_valued(predicate)])
    return build.first_columns(Filter(lifted, condition), relation.width)


def two_valued(predicate: Expr) -> Expr:
    """Mark matches that stand under AND and OR only, where NULL is as good as FALSE."""
    if isinstance(predicate, Call) and predicate.name in ("and", "or"):
        return predicate.replace(args=tuple(two_valued(a) for a in predicate.args))
    return predicate.replace(two_valued=True) if isinstance(predicate, MatchQuery) else predicate


def negations_inward(expr: Expr) -> Expr:
    """NOT (x IN q) means "surely not in q": (x IN q) IS FALSE, with the unknown told apart.

    Like Spark's optimizer we move NOT through AND and OR first.
    """

    def change(e: Expr) -> Expr | None:
        if not (isinstance(e, Call) and e.name == "not" and has_subquery(e)):
            return None
        inner = e.args[0]
        if isinstance(inner, MatchQuery):
            exact = inner.replace(two_valued=False)
            return Call(BOOLEAN, e.nullable, "is_false", (exact,)) if inner.two_valued else None
        if isinstance(inner, Call) and inner.name == "not":
            return negations_inward(inner.args[0])
        if isinstance(inner, Call) and inner.name in ("and", "or"):
            parts = tuple(negations_inward(build.negation(a)) for a in inner.args)
            return inner.replace(name="or" if inner.name == "and" else "and", args=parts)
        return None

    result: Expr = transform(expr, change)
    return result


def lift(relation: Relation, exprs: Sequence[Expr]) -> tuple[Relation, list[Expr]]:
    """The relation with a column added behind for each subquery in the expressions, and the
    expressions reading those columns."""
    found: dict[Expr, Expr] = {}
    exprs = [negations_inward(e) for e in exprs]
    for expr in exprs:
        for node in expr.walk():
            if isinstance(node, ScalarQuery | MatchQuery) and node not in found:
                relation, found[node] = _lift_one(relation, _replaced(node, found))
    return relation, [_replaced(e, found) for e in exprs]


def _replaced(expr: Expr, found: dict[Expr, Expr]) -> Expr:
    result: Expr = transform(expr, found.get)
    return result


def _lift_one(relation: Relation, node: Expr) -> tuple[Relation, Expr]:
    if isinstance(node, ScalarQuery):
        return _scalar(relation, node)
    assert isinstance(node, MatchQuery)
    marked, value = _mark(relation, node)
    return marked, value.replace(nullable=node.nullable) if node.nullable else value


# -- scalar subqueries


def _scalar(relation: Relation, node: ScalarQuery) -> tuple[Relation, Expr]:
    query = build.first_columns(_unsorted(node.query), 1)
    if not is_correlated(query):
        return _uncorrelated_scalar(relation, node, query)
    pulled = pull_up(query)
    if pulled is None:
        return _dependent_scalar(relation, node, query)
    if pulled.single:
        return _joined_scalar(relation, node, pulled)
    if all(equality(c) for c in pulled.conditions):
        return _grouped_scalar(relation, node, pulled)
    return _dependent_scalar(relation, node, query)


def _uncorrelated_scalar(
    relation: Relation, node: ScalarQuery, query: Relation
) -> tuple[Relation, Expr]:
    if _has_one_row(query):
        joined = Join(relation, query, "inner", TRUE)
        return joined, Column(node.type, True, relation.width)
    joined = Join(relation, _counted(query, ()), "inner", TRUE)
    return joined, _single(node, relation.width)


def _joined_scalar(relation: Relation, node: ScalarQuery, pulled: Pulled) -> tuple[Relation, Expr]:
    right, at = pulled.relation, relation.width
    value: Expr = Column(node.type, True, at)
    if pulled.default is not None and not _is_null(pulled.default):
        present = Column(BOOLEAN, True, at + right.width)
        right = build.marker(right)
        value = build.case(build.is_null(present), pulled.default, value)
    condition = _condition(pulled.conditions, node.outer, at)
    return Join(relation, right, "left", condition), value


def _grouped_scalar(relation: Relation, node: ScalarQuery, pulled: Pulled) -> tuple[Relation, Expr]:
    """At most one row may match: count per key, and raise only where an outer row meets two."""
    pairs = [equality(c) for c in pulled.conditions]
    keys = tuple(inner for pair in pairs if pair for inner in [pair[1]])
    right = _counted(pulled.relation, keys)
    at = relation.width
    parts = []
    for i, pair in enumerate(p for p in pairs if p):
        outer = _outer_values(pair[0], node.outer)
        key = Column(pair[1].type, pair[1].nullable, at + 2 + i)
        parts.append(Call(BOOLEAN, outer.nullable or key.nullable, pair[2], (outer, key)))
    return Join(relation, right, "left", conjunction(parts)), _single(node, at)


def _counted(query: Relation, keys: tuple[Expr, ...]) -> Relation:
    """(rows, greatest value) of the first column, then the keys, per key."""
    first = columns(query.schema)[0]
    greatest = AggCall(first.type, True, "max", (first,))
    names = (*(f"k{i}" for i in range(len(keys))), "rows", "value")
    counted = Aggregate(query, keys, (build.count_star(), greatest), names)
    return build.pick(counted, [len(keys), len(keys) + 1, *range(len(keys))])


def _single(node: ScalarQuery, at: int) -> Expr:
    """The value of a `_counted` relation at `at`, raising where there is more than one row."""
    args = (Column(BIGINT, True, at), Column(node.type, True, at + 1))
    return Call(node.type, True, "single_value", args)


def _dependent_scalar(
    relation: Relation, node: ScalarQuery, query: Relation
) -> tuple[Relation, Expr]:
    values = depend(query, _domain(relation, node.outer))
    at, count = relation.width, len(node.outer)
    if _has_one_row(query):
        right = values
        value: Expr = Column(node.type, True, at)
        first = 1
    else:
        right = _counted(values, columns(values.schema)[1:])
        value, first = _single(node, at), 2
    condition = _same_domain(node.outer, right, at, first)
    assert right.width == first + count
    return Join(relation, right, "left", condition), value


# -- EXISTS, IN, ANY


def _semi_join(relation: Relation, node: MatchQuery, how: str) -> Relation:
    relation_width = relation.width
    relation, outer_and_match = lift(relation, [*node.outer, node.match])
    outer, match = tuple(outer_and_match[:-1]), outer_and_match[-1]
    query = _unsorted(node.query)
    pulled = pull_up(query) if is_correlated(query) else Pulled(query, [], False, None)
    at = relation.width
    if pulled is not None and pulled.default is None:
        right, conditions = pulled.relation, _conditions(pulled.conditions, outer, at)
    else:
        right = depend(query, _domain(relation, outer))
        conditions = conjuncts(_same_domain(outer, right, at, query.width))
    matched = _inner_columns(match, at)
    if how == "anti" and match.nullable:
        matched = build.disjunction(matched, build.is_null(matched))
    joined = Join(relation, right, how, conjunction([*conditions, matched]))
    return build.first_columns(joined, relation_width)


def _mark(relation: Relation, node: MatchQuery) -> tuple[Relation, Expr]:
    query = _unsorted(node.query)
    if not is_correlated(query) and node.match is TRUE:
        counted = Aggregate(query, (), (build.count_star(),), ("rows",))
        joined = Join(relation, counted, "inner", TRUE)
        return joined, build.greater_than_zero(Column(BIGINT, False, relation.width))
    exact = node.two_valued or not node.match.nullable
    pulled = pull_up(query) if is_correlated(query) else Pulled(query, [], False, None)
    if pulled is not None and pulled.default is None and exact:
        pairs = _equalities(node, pulled)
        if pairs is not None:
            return _mark_by_keys(relation, pulled.relation, pairs)
    if pulled is not None and not pulled.conditions and isinstance(node.match, Call):
        pairs = _equalities(node, pulled)
        if pairs is not None and len(pairs) == 1:
            return _mark_nullable(relation, pulled.relation, pairs[0])
    return _mark_by_domain(relation, node, query)


def _equalities(node: MatchQuery, pulled: Pulled) -> list[tuple[Expr, Expr, str]] | None:
    """(outer value, inner value, operator) per condition, if all conditions are equalities."""
    pairs = []
    for condition in pulled.conditions:
        pair = equality(condition)
        if pair is None:
            return None
        pairs.append((_outer_values(pair[0], node.outer), pair[1], pair[2]))
    for part in conjuncts(node.match):
        if not (isinstance(part, Call) and part.name in ("=", "<=>")):
            return None
        sides = [_inner_only(a) for a in part.args]
        if sides[0] is None and sides[1] is not None and not _reads_inner(part.args[0]):
            pairs.append((part.args[0], sides[1], part.name))
        elif sides[1] is None and sides[0] is not None and not _reads_inner(part.args[1]):
            pairs.append((part.args[1], sides[0], part.name))
        else:
            return None
    return pairs


def _mark_by_keys(
    relation: Relation, query: Relation, pairs: list[tuple[Expr, Expr, str]]
) -> tuple[Relation, Expr]:
    inner = tuple(p[1] for p in pairs)
    names = tuple(f"k{i}" for i in range(len(inner)))
    right = build.marker(Distinct(Project(query, inner, names)))
    at = relation.width
    parts: list[Expr] = []
    for i, (outer, key, op) in enumerate(pairs):
        column = Column(key.type, key.nullable, at + i)
        nullable = op == "=" and (outer.nullable or key.nullable)
        parts.append(Call(BOOLEAN, nullable, op, (outer, column)))
    joined = Join(relation, right, "left", conjunction(parts))
    return joined, build.is_not_null(Column(BOOLEAN, True, at + len(pairs)))


def _mark_nullable(
    relation: Relation, query: Relation, pair: tuple[Expr, Expr, str]
) -> tuple[Relation, Expr]:
    """x IN (uncorrelated query) with its NULL meaning: besides the match, it matters whether
    the query has rows and whether it has NULLs."""
    width = relation.width
    joined, matched = _mark_by_keys(relation, query, [pair])
    totals = (build.count_star(), build.count_if(build.is_null(pair[1])))
    at = joined.width
    joined = Join(joined, Aggregate(query, (), totals, ("rows", "nulls")), "inner", TRUE)
    rows, nulls = Column(BIGINT, False, at), Column(BIGINT, False, at + 1)
    unknown = build.disjunction(build.is_null(pair[0]), build.greater_than_zero(nulls))
    assert width < at
    value = build.case(
        matched,
        TRUE,
        build.negation(build.greater_than_zero(rows)),
        FALSE,
        unknown,
        build.null(BOOLEAN),
        FALSE,
    )
    return joined, value


def _mark_by_domain(relation: Relation, node: MatchQuery, query: Relation) -> tuple[Relation, Expr]:
    """Count true and unknown matches for each distinct value of all that the match reads."""
    read = tuple(dict.fromkeys(n for n in node.match.walk() if isinstance(n, Column)))
    outer = (*node.outer, *read)
    domain = _domain(relation, outer)
    values = depend(query, domain)
    places = {
        c: Column(c.type, c.nullable, query.width + len(node.outer) + i) for i, c in enumerate(read)
    }
    match = transform(
        node.match,
        lambda e: Column(e.type, e.nullable, e.index) if isinstance(e, Inner) else places.get(e),
    )
    keys = columns(values.schema)[query.width :]
    names = (*(f.name for f in values.schema[query.width :]), "matches", "unknown")
    totals = (build.count_if(match), build.count_if(build.is_null(match)))
    counted = Aggregate(values, keys, totals, names)
    at = relation.width
    joined = Join(relation, counted, "left", _same_domain(outer, counted, at, 0))
    matches = Column(BIGINT, True, at + len(outer))
    unknown = Column(BIGINT, True, at + len(outer) + 1)
    zero = Literal(BIGINT, False, 0)
    some = build.greater_than_zero(Call(BIGINT, False, "coalesce", (matches, zero)))
    if node.two_valued or not node.match.nullable:
        return joined, some
    maybe = build.greater_than_zero(Call(BIGINT, False, "coalesce", (unknown, zero)))
    return joined, build.case(some, TRUE, maybe, build.null(BOOLEAN), FALSE)


# -- shared pieces


def _domain(relation: Relation, outer: tuple[Expr, ...]) -> Relation:
    """D: the distinct values of what the subquery reads."""
    return Distinct(Project(relation, outer, tuple(f"d{i}" for i in range(len(outer)))))


def _same_domain(outer: tuple[Expr, ...], right: Relation, at: int, first: int) -> Expr:
    keys = columns(right.schema, at)[first:]
    pairs = zip(outer, keys, strict=False)
    return conjunction([build.null_safe_equal(o, k) for o, k in pairs])


def _condition(conditions: list[Expr], outer: tuple[Expr, ...], at: int) -> Expr:
    return conjunction(_conditions(conditions, outer, at))


def _conditions(conditions: list[Expr], outer: tuple[Expr, ...], at: int) -> list[Expr]:
    """Conditions over the subquery's row and `Param`s, made conditions over the joined row."""
    return [_outer_values(shift(c, at), outer) for c in conditions]


def _outer_values(expr: Expr, outer: tuple[Expr, ...]) -> Expr:
    result: Expr = transform(expr, lambda e: outer[e.index] if isinstance(e, Param) else None)
    return result


def _inner_columns(match: Expr, at: int) -> Expr:
    result: Expr = transform(
        match,
        lambda e: Column(e.type, e.nullable, at + e.index) if isinstance(e, Inner) else None,
    )
    return result


def _inner_only(expr: Expr) -> Expr | None:
    """The expression over the subquery's row, if it reads nothing else."""
    if any(isinstance(n, Column) for n in expr.walk()) or not _reads_inner(expr):
        return None
    return _inner_columns(expr, 0)


def _reads_inner(expr: Expr) -> bool:
    return any(isinstance(n, Inner) for n in expr.walk())


def _unsorted(query: Relation) -> Relation:
    return query.input if isinstance(query, Sort) else query


def _has_one_row(query: Relation) -> bool:
    """Is there exactly one row, whatever the data?"""
    if isinstance(query, Project):
        return _has_one_row(query.input)
    if isinstance(query, Values):
        return len(query.rows) == 1
    return isinstance(query, Aggregate) and not query.keys


def _is_null(expr: Expr) -> bool:
    """Is a constant expression surely NULL?"""
    if isinstance(expr, Literal):
        return expr.value is None
    if isinstance(expr, Cast):
        return _is_null(expr.arg)
    return isinstance(expr, Call) and expr.name in _STRICT and any(map(_is_null, expr.args))
