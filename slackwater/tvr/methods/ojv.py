"""Outer-join view maintenance (001, 4.2): what a change meets directly, and what follows from it.

    Δ(L ⟕ R) = ΔL ⟕ R' + L ⋈ ΔR + ((L|K ▷ R') − (L ▷ R)|K) × NULL        K: the keys in ΔR

The tables change one after the other, R first. Rows that ΔR meets come and go with it; rows of L
that thereby lose their last partner, or find their first, come and go padded. Which of them were
without a partner before is read from what is known of L ▷ R.
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.algebra.expr import conjuncts
from slackwater.algebra.relation import Bag, Join, Relation
from slackwater.tvr import zset
from slackwater.tvr.explore import Inputs
from slackwater.tvr.laws import joins, whole_keys
from slackwater.tvr.laws.outer import delta_direct_and_indirect, matching, padded
from slackwater.tvr.memo import CHANGED, Memo, Ref, Rule
from slackwater.tvr.methods.promised import has_once, refers
from slackwater.tvr.restrict import distinct_keys, equi_keys, semi_join
from slackwater.tvr.rules import Operators

METHOD = "ojv"


def direct_and_indirect(memo: Memo, ref: Ref, form: Relation) -> Iterator[Relation]:
    """ΔL ⟕ R' + L ⋈ ΔR + ((L|K ▷ R') − (L ▷ R)|K) × NULL"""
    assert isinstance(form, Join)
    found = delta_direct_and_indirect(Inputs(memo), form)
    if found is not None:
        yield found


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
    both, alone = matching(form), form.replace(how="anti")
    terms = [joins.by_left_rows(form, side, comes) for side in sides[1:]]
    terms.append(joins.outward(both, [before, change], 1))
    terms.append(padded(form, joins.by_left_rows(alone, before, comes)))
    terms.append(padded(form, zset.negate(joins.by_left_rows(alone, before, goes))))
    yield zset.plus(terms)


def is_for(node: Join) -> bool:
    """Is it a join that OJV has a law for?"""
    return node.how == "left" and bool(equi_keys(node))


LAWS = (whole_keys.delta_whole_keys, delta_direct_and_indirect)
"""The laws of such a join in a refresh, best first."""

LEFT_JOINS = Operators((Join,), joins=("left",))

RULES = tuple(
    Rule(apply.__name__, METHOD, (CHANGED,), apply, LEFT_JOINS, restricted=False, after=True)
    for apply in (direct_and_indirect, direct_and_indirect_by_promises)
)
