"""Outer-join view maintenance (001, 4.2): what a change meets directly, and what follows from it.

    Δ(L ⟕ R) = ΔL ⟕ R' + L ⋈ ΔR + ((L|K ▷ R') − (L ▷ R)|K) × NULL        K: the keys in ΔR

The tables change one after the other, R first. Rows that ΔR meets come and go with it; rows of L
that thereby lose their last partner, or find their first, come and go padded. Which of them were
without a partner before is read from what is known of L ▷ R.
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.algebra.expr import columns, conjuncts
from slackwater.algebra.relation import Bag, Join, Project, Relation
from slackwater.sql import build
from slackwater.tvr import zset
from slackwater.tvr.explore import Inputs
from slackwater.tvr.laws import joins
from slackwater.tvr.memo import CHANGED, WEIGHTED, Memo, Ref, Rule
from slackwater.tvr.methods.promised import has_once, refers
from slackwater.tvr.restrict import distinct_keys, equi_keys, restrict, semi_join
from slackwater.tvr.rules import Operators
from slackwater.types import WEIGHT

METHOD = "ojv"


def direct_and_indirect(memo: Memo, ref: Ref, form: Relation) -> Iterator[Relation]:
    """ΔL ⟕ R' + L ⋈ ΔR + ((L|K ▷ R') − (L ▷ R)|K) × NULL"""
    assert isinstance(form, Join)
    pairs = equi_keys(form)
    if not pairs:
        return
    ours, theirs = tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
    inputs, terms = Inputs(memo), []
    if memo.changes(form.left):
        met = distinct_keys([inputs.sure(form.left)], [ours])
        partners = restrict(inputs.rows(form.right), theirs, met)
        terms.append(joins.by_left_rows(form, inputs.sure(form.left), partners))
    if memo.changes(form.right):
        wanted = distinct_keys([inputs.sure(form.right)], [theirs])
        before = restrict(inputs.z(form.left, old=True), ours, wanted)
        terms.append(joins.outward(_both(form), [before, inputs.sure(form.right)], 1))
        alone = form.replace(how="anti")
        partners = restrict(inputs.rows(form.right), theirs, wanted)
        terms.append(_padded(form, joins.by_left_rows(alone, before, partners)))
        were = restrict(memo.ref(alone, WEIGHTED, old=True), ours, wanted)
        terms.append(_padded(form, zset.negate(were)))
    yield zset.plus(terms)


def direct_and_indirect_by_promises(memo: Memo, ref: Ref, form: Relation) -> Iterator[Relation]:
    """ΔL ⟕ D⁺ + L ⋈ D + ((L ▷ D⁺) − (L ▷ D⁻))|D × NULL, D = ΔR ⋉ (L + ΔL), where R refers to L by
    a key of its own: before a row of L comes and after it goes, it has no partner, and what is in
    D is all there is of R with its keys"""
    assert isinstance(form, Join)
    pairs = equi_keys(form)
    if len(pairs) != len(conjuncts(form.condition)) or not memo.changes(form.right):
        return
    ours, theirs = tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
    (left, right), inputs = form.inputs, Inputs(memo)
    asked = (right, theirs)
    if not has_once(memo, asked, asked) or not refers(memo, (left, ours), asked):
        return
    met, sides = inputs.sure(right), [inputs.z(left, old=True)]
    if memo.changes(left):
        sides.append(inputs.sure(left))
    change = zset.consolidate(semi_join(met, theirs, distinct_keys(sides, [ours] * len(sides))))
    before = semi_join(sides[0], ours, distinct_keys([change], [theirs]))
    comes, goes = Bag(zset.coming(change)), Bag(zset.going(change))
    both, alone = _both(form), form.replace(how="anti")
    terms = [joins.by_left_rows(form, side, comes) for side in sides[1:]]
    terms.append(joins.outward(both, [before, change], 1))
    terms.append(_padded(form, joins.by_left_rows(alone, before, comes)))
    terms.append(_padded(form, zset.negate(joins.by_left_rows(alone, before, goes))))
    yield zset.plus(terms)


def _both(form: Join) -> joins.Inner:
    """Rows of both sides that match, whatever the sides are."""
    return joins.Inner((form.left, form.right), tuple(conjuncts(form.condition)))


def _padded(form: Join, z: Relation) -> Relation:
    """Left rows with weights, NULL in place of a partner."""
    nulls = tuple(build.null(f.type) for f in form.right.schema)
    row = columns(z.schema)
    return Project(z, (*row[:-1], *nulls, row[-1]), (*(f.name for f in form.schema), WEIGHT))


LEFT_JOINS = Operators((Join,), joins=("left",))

RULES = tuple(
    Rule(apply.__name__, METHOD, (CHANGED,), apply, LEFT_JOINS, restricted=False)
    for apply in (direct_and_indirect, direct_and_indirect_by_promises)
)
