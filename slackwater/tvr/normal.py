"""The normal form that laws speak of.

No right joins, no delivery order; NOT IN as an anti join and two flags; distinct aggregates as
aggregates of distinct rows; extrema of a whole relation as extrema of its first row in order;
no outer join whose unmatched rows nobody reads; conditions in the joins that they speak of; right
sides of outer joins grouped before they are joined; no groups and no columns that nobody reads.
"""

from __future__ import annotations

from functools import lru_cache

from slackwater.algebra.expr import Call, Expr, Literal, columns, conjunction, remap, shift
from slackwater.algebra.patterns import null_aware_key
from slackwater.algebra.relation import Aggregate, Filter, Join, Project, Relation, Sort
from slackwater.sql import build
from slackwater.tvr.aggregates import simplified
from slackwater.tvr.eager import group_first
from slackwater.tvr.narrowing import narrow
from slackwater.tvr.outer import without_idle_outer_joins
from slackwater.tvr.prune import prune
from slackwater.tvr.push import push
from slackwater.types import BIGINT, BOOLEAN


@lru_cache(500)
def normalize(relation: Relation) -> Relation:
    """The same multiset in normal form. A view has it at every refresh."""
    plain: Relation = relation.rewrite(_normal)
    for improve in (without_idle_outer_joins, push, group_first, narrow, prune):
        plain = improve(plain)
    return plain


def _normal(node: Relation) -> Relation:
    match node:
        case Sort():
            return node.input
        case Join(how="right"):
            return _flipped(node)
        case Join(how="anti"):
            return _without_unknown(node)
        case Aggregate():
            return simplified(node)
    return node


def _flipped(join: Join) -> Relation:
    a, b = join.left.width, join.right.width
    condition = remap(join.condition, lambda i: i + b if i < a else i - a)
    flipped = Join(join.right, join.left, "left", condition)
    row = columns(flipped.schema)
    names = tuple(f.name for f in join.schema)
    return Project(flipped, row[b:] + row[:b], names)


def _without_unknown(join: Join) -> Relation:
    """x NOT IN S: an equality anti join, kept where S is empty, or holds no NULL and x is none.

    The flags change when S's first or last row, or its first or last NULL, comes or goes; only
    then is more than the rows with changed keys affected.
    """
    pair = null_aware_key(join)
    if pair is None:
        return join
    outer, inner = pair
    width = join.left.width
    equal = Call(BOOLEAN, True, "=", (outer, inner))
    unmatched = Join(join.left, join.right, "anti", equal)
    nulls = build.count_if(build.is_null(shift(inner, -width)))
    counts = Aggregate(join.right, (), (build.count_star(), nulls), ("rows", "nulls"))
    row = columns(counts.schema)
    zero = Literal(BIGINT, False, 0)
    flags: tuple[Expr, ...] = tuple(Call(BOOLEAN, False, "=", (c, zero)) for c in row)
    known = Project(counts, flags, ("empty", "without_null"))
    joined = Join(unmatched, known, "inner", conjunction([]))
    empty, without_null = columns(joined.schema)[width:]
    kept = build.disjunction(empty, conjunction([without_null, build.is_not_null(outer)]))
    return build.first_columns(Filter(joined, kept), width)
