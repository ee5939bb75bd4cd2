"""Semi and anti joins by how many partners each key has.

    Δ(R ⋉ S) = ΔR ⋉ S' + R ⋈ ±K        ▷: the signs turned

±K: the keys that find their first partner in S, and those that lose their last one. How many there
are now, and ΔS, tell how many there were: S is not read as it was. Where S has each key once at
most, ΔS alone tells, and S is read for the rows of ΔR alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from slackwater.algebra.expr import AggCall, Call, Expr, columns, conjunction
from slackwater.algebra.relation import Aggregate, Filter, Join, Project, Relation, Union
from slackwater.sql import build
from slackwater.tvr import zset
from slackwater.tvr.eager import equal, equalities, is_grouped
from slackwater.tvr.laws.joins import by_left_rows
from slackwater.tvr.restrict import Keys, distinct_keys, restrict
from slackwater.types import BIGINT, BOOLEAN, WEIGHT

if TYPE_CHECKING:
    from slackwater.tvr.delta import Deltas


def delta_by_partners(deltas: Deltas, node: Join) -> Relation | None:
    """Δ(R ⋉ S) = ΔR ⋉ S' + R ⋈ ±K for ⋉ and ▷ by equality alone"""
    if node.how not in ("semi", "anti") or not deltas.changes(node.right):
        return None
    pairs, own = equalities(node)
    if pairs is None:
        return None
    deltas.note(node, "partners_by_count")
    ours, theirs = (tuple(pair[i] for pair in pairs) for i in (0, 1))
    wanted = distinct_keys([deltas.sure(node.right)], [theirs])
    before = deltas.z(node.left, old=True)
    if not deltas.is_linear(node.left):
        before = restrict(before, ours, wanted)
    turned = _meeting(before, ours, _turning(deltas, node.right, theirs, own, wanted))
    terms = [turned if node.how == "semi" else zset.negate(turned)]
    if deltas.changes(node.left):
        came = deltas.sure(node.left)
        partners = deltas.rows(node.right)
        if deltas.narrows:
            partners = restrict(partners, theirs, distinct_keys([came], [ours]))
        terms.append(by_left_rows(node, came, partners))
    return zset.plus(terms)


def _turning(
    deltas: Deltas, right: Relation, keys: Keys, own: list[Expr], wanted: Relation
) -> Relation:
    """±K: keys with a weight, of those in ΔS (`wanted`)."""
    change = deltas.sure(right)
    if is_grouped(right, set(keys)):
        return _signs_once(change, keys, own)
    now = deltas.z(right)
    return _signs(restrict(now, keys, wanted) if deltas.narrows else now, change, keys, own)


def _signs_once(change: Relation, keys: Keys, own: list[Expr]) -> Relation:
    """±K where each key is in S once at most: keys that come, and keys that go."""
    return zset.consolidate(_keyed(change, keys, own, {WEIGHT: zset.weight(change)}))


def _signs(now: Relation, change: Relation, keys: Keys, own: list[Expr]) -> Relation:
    """±K from the partners that there are now: before the change, there were as many less it."""
    many, more = zset.weight(now), zset.weight(change)
    less = Call(BIGINT, more.nullable, "neg", (more,))
    both = Union(
        (
            _keyed(now, keys, own, {"now": many, "before": many}),
            _keyed(change, keys, own, {"now": zset.ZERO, "before": less}),
        )
    )
    *key, after, before = columns(both.schema)
    sums = tuple(AggCall(BIGINT, True, "sum", (n,)) for n in (after, before))
    counted = Aggregate(both, tuple(key), sums, zset.names(both))
    *key, after, before = columns(counted.schema)
    sign = Call(BIGINT, False, "-", (_any(after), _any(before)))
    signs = Project(counted, (*key, sign), (*zset.names(both)[:-2], WEIGHT))
    return Filter(signs, Call(BOOLEAN, False, "!=", (zset.weight(signs), zset.ZERO)))


def _keyed(z: Relation, keys: Keys, own: list[Expr], values: Mapping[str, Expr]) -> Relation:
    """The keys of those rows of S that meet its own conditions, with some values."""
    met = Filter(z, conjunction(own)) if own else z
    names = (*(f"k{i}" for i in range(len(keys))), *values)
    return Project(met, (*keys, *values.values()), names)


def _any(count: Expr) -> Expr:
    """One where there are any, else zero."""
    return build.case(Call(BOOLEAN, count.nullable, ">", (count, zset.ZERO)), zset.ONE, zset.ZERO)


def _meeting(z: Relation, keys: Keys, signs: Relation) -> Relation:
    """Rows with weights times the signs of their keys."""
    same = map(equal, keys, columns(signs.schema, z.width))
    joined = Join(z, signs, "inner", conjunction(list(same)))
    *row, weight = columns(joined.schema)[: z.width]
    weights = [] if zset.is_plain(z) else [weight]
    total = zset.product([*weights, zset.weight(joined)])
    return Project(joined, (*row, total), zset.names(z))
