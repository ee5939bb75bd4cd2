"""IM-2 (001, 4.2): an outer join as a part that never retracts and a part that may wait.

    L ⟕ R = (L ⋈ R) + (L ▷ R) × NULL

While rows only come, the inner join only grows. What has no partner yet may still find one: it is
computed when a result is due.
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.algebra.expr import columns, remap
from slackwater.algebra.relation import Aggregate, Join, Project, Relation, Union
from slackwater.sql import build
from slackwater.tvr import zset
from slackwater.tvr.laws.keyed import over
from slackwater.tvr.laws.linear import LINEAR
from slackwater.tvr.memo import SUMS, SUMS_CHANGED, Memo, Ref, Rewrite, Rule
from slackwater.tvr.rules import Operators
from slackwater.tvr.states.sums import SumState, is_invertible

METHOD = "im2"


def in_parts(node: Join) -> Union:
    """L ⟕ R = (L ⋈ R) + (L ▷ R) × NULL; of ⟗ also NULL × (R ▷ L)"""
    names = tuple(f.name for f in node.schema)
    left, right, width = node.left, node.right, node.left.width
    alone = node.replace(how="anti")
    nulls = tuple(build.null(f.type) for f in right.schema)
    parts: list[Relation] = [node.replace(how="inner")]
    parts.append(Project(alone, (*columns(left.schema), *nulls), names))
    if node.how == "full":
        turned = remap(node.condition, lambda i: i + right.width if i < width else i - width)
        other = Join(right, left, "anti", turned)
        nulls = tuple(build.null(f.type) for f in left.schema)
        parts.append(Project(other, (*nulls, *columns(right.schema)), names))
    return Union(tuple(parts))


def parts_of_outer_join(memo: Memo, node: Relation) -> Iterator[Relation]:
    """L ⟕ R = (L ⋈ R) + (L ▷ R) × NULL; of ⟗ also NULL × (R ▷ L)"""
    assert isinstance(node, Join)
    yield in_parts(node)


def over_parts(memo: Memo, node: Relation) -> Iterator[Relation]:
    """σ(R + S) = σ(R) + σ(S), and all that is linear likewise"""
    for below, _ in memo.forms(memo.tvr(node.inputs[0])):
        if isinstance(below, Union) and below is not node.inputs[0]:
            yield Union(tuple(over(node, [part]) for part in below.parts))


def sums_of_parts(memo: Memo, ref: Ref, form: Relation) -> Iterator[Relation]:
    """γ(R + S) = γ(R) ⊕ γ(S): partial sums of parts that are computed at different times"""
    assert isinstance(form, Aggregate)
    if not is_invertible(form):
        return
    schema, kind = SumState(form, "#").schema, ref.trait.kind
    for below, _ in memo.forms(memo.tvr(form.input)):
        if not isinstance(below, Union) or below is form.input:
            continue
        parts = [form.replace(input=part) for part in below.parts]
        if kind == SUMS_CHANGED:
            parts = [part for part in parts if memo.changes(part)]
        found: list[Relation] = [memo.ref(part, kind, ref.trait.old, schema) for part in parts]
        if found:
            yield zset.plus(found)


OUTER_JOINS = Operators((Join,), joins=("left", "full"))

REWRITES = (
    Rewrite("parts_of_outer_join", METHOD, parts_of_outer_join, OUTER_JOINS),
    Rewrite("over_parts", METHOD, over_parts, Operators(LINEAR)),
)
RULES = (
    Rule(
        "sums_of_parts",
        METHOD,
        (SUMS, SUMS_CHANGED),
        sums_of_parts,
        Operators((Aggregate,)),
        restricted=False,
    ),
)
