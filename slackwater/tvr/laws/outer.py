"""Left joins by what their change meets directly, and what follows from that (001, 4.2).

    Δ(L ⟕ R) = ΔL ⟕ R' + L ⋈ ΔR + ((L|K ▷ R') − (L ▷ R)|K) × NULL        K: the keys in ΔR

The tables change one after the other, R first. Rows that ΔR meets come and go with it; rows of L
that thereby lose their last partner, or find their first, come and go padded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slackwater.algebra.expr import columns, conjuncts
from slackwater.algebra.relation import Join, Project, Relation
from slackwater.sql import build
from slackwater.tvr import zset
from slackwater.tvr.laws import joins
from slackwater.tvr.restrict import distinct_keys, equi_keys, restrict
from slackwater.types import WEIGHT

if TYPE_CHECKING:
    from slackwater.tvr.delta import Deltas


def delta_direct_and_indirect(deltas: Deltas, node: Join) -> Relation | None:
    """ΔL ⟕ R' + L ⋈ ΔR + ((L|K ▷ R') − (L ▷ R)|K) × NULL, of a left join with an equality"""
    pairs = equi_keys(node)
    if node.how != "left" or not pairs:
        return None
    deltas.note(node, "direct_and_indirect")
    ours, theirs = tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
    terms = []
    if deltas.changes(node.left):
        met = distinct_keys([deltas.sure(node.left)], [ours])
        partners = restrict(deltas.rows(node.right), theirs, met)
        terms.append(joins.by_left_rows(node, deltas.sure(node.left), partners))
    if deltas.changes(node.right):
        wanted = distinct_keys([deltas.sure(node.right)], [theirs])
        before = restrict(deltas.z(node.left, old=True), ours, wanted)
        terms.append(joins.outward(matching(node), [before, deltas.sure(node.right)], 1))
        alone = node.replace(how="anti")
        partners = restrict(deltas.rows(node.right), theirs, wanted)
        terms.append(padded(node, joins.by_left_rows(alone, before, partners)))
        were = restrict(deltas.z(alone, old=True), ours, wanted)
        terms.append(padded(node, zset.negate(were)))
    return zset.plus(terms)


def matching(node: Join) -> joins.Inner:
    """Rows of both sides that match, whatever the sides are."""
    return joins.Inner((node.left, node.right), tuple(conjuncts(node.condition)))


def padded(node: Join, z: Relation) -> Relation:
    """Left rows with weights, NULL in place of a partner."""
    nulls = tuple(build.null(f.type) for f in node.right.schema)
    row = columns(z.schema)
    return Project(z, (*row[:-1], *nulls, row[-1]), (*(f.name for f in node.schema), WEIGHT))
