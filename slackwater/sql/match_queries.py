"""EXISTS, IN and ANY become semi joins, anti joins, or columns that say whether a row matches."""

from __future__ import annotations

from slackwater.algebra.expr import (
    FALSE,
    TRUE,
    Call,
    Column,
    Expr,
    Literal,
    columns,
    conjunction,
    conjuncts,
    transform,
)
from slackwater.algebra.relation import (
    Aggregate,
    Distinct,
    Join,
    Project,
    Relation,
)
from slackwater.sql import build
from slackwater.sql.depend import depend
from slackwater.sql.joining import (
    domain_of,
    inner_columns,
    inner_only,
    joined_conditions,
    outer_values,
    reads_inner,
    same_domain,
    unsorted,
)
from slackwater.sql.pullup import Pulled, equality, pull_up
from slackwater.sql.subquery import (
    Inner,
    MatchQuery,
    is_correlated,
)
from slackwater.types import BIGINT, BOOLEAN


def semi_join(relation: Relation, node: MatchQuery, how: str) -> Relation:
    """The rows for which the query has a match ("semi"), or surely none ("anti")."""
    query = unsorted(node.query)
    pulled = pull_up(query) if is_correlated(query) else Pulled(query, [], False, None)
    at = relation.width
    if pulled is not None and pulled.default is None:
        right, met = pulled.relation, joined_conditions(pulled.conditions, node.outer, at)
    else:
        right = depend(query, domain_of(relation, node.outer))
        met = conjuncts(same_domain(node.outer, right, at, query.width))
    matched = inner_columns(node.match, at)
    if how == "anti" and node.match.nullable:
        matched = build.disjunction(matched, build.is_null(matched))
    return Join(relation, right, how, conjunction([*met, matched]))


def mark(relation: Relation, node: MatchQuery) -> tuple[Relation, Expr]:
    query = unsorted(node.query)
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
        pairs.append((outer_values(pair[0], node.outer), pair[1], pair[2]))
    for part in conjuncts(node.match):
        if not (isinstance(part, Call) and part.name in ("=", "<=>")):
            return None
        sides = [inner_only(a) for a in part.args]
        if sides[0] is None and sides[1] is not None and not reads_inner(part.args[0]):
            pairs.append((part.args[0], sides[1], part.name))
        elif sides[1] is None and sides[0] is not None and not reads_inner(part.args[1]):
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
    domain = domain_of(relation, outer)
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
    joined = Join(relation, counted, "left", same_domain(outer, counted, at, 0))
    matches = Column(BIGINT, True, at + len(outer))
    unknown = Column(BIGINT, True, at + len(outer) + 1)
    zero = Literal(BIGINT, False, 0)
    some = build.greater_than_zero(Call(BIGINT, False, "coalesce", (matches, zero)))
    if node.two_valued or not node.match.nullable:
        return joined, some
    maybe = build.greater_than_zero(Call(BIGINT, False, "coalesce", (unknown, zero)))
    return joined, build.case(some, TRUE, maybe, build.null(BOOLEAN), FALSE)
