"""Semi joins by how often their keys are there.

    L ⋉[a=b] S = π[L](L ⋈[a=b] γ[b](S))

The number of rows of each key is kept. So a change of S tells by itself which keys appear and which
vanish, and S is not computed again, as it was and as it is, for the keys that it touches.
"""

from __future__ import annotations

from slackwater.algebra.expr import columns, conjunction
from slackwater.algebra.relation import Aggregate, Filter, Join, Relation
from slackwater.sql import build
from slackwater.tvr.eager import equal, equalities, is_grouped


def counted(join: Join) -> tuple[Relation, Aggregate] | None:
    """A semi join as an inner one with the keys of its right side, and these; None where there are
    other conditions than equality, or where the right side is stored, or has each key once."""
    if join.how != "semi" or not _is_computed(join.right):
        return None
    pairs, own = equalities(join)
    if pairs is None or is_grouped(join.right, {b for _, b in pairs}):
        return None
    rows = Filter(join.right, conjunction(own)) if own else join.right
    names = tuple(f"k{i}" for i in range(len(pairs)))
    keys = Aggregate(rows, tuple(b for _, b in pairs), (), names)
    theirs = columns(keys.schema, join.left.width)
    same = [equal(a, b) for (a, _), b in zip(pairs, theirs, strict=True)]
    joined = Join(join.left, keys, "inner", conjunction(same))
    return build.first_columns(joined, join.left.width), keys


def _is_computed(node: Relation) -> bool:
    """Is it more than rows and columns of what is stored?"""
    return any(len(below.inputs) > 1 or isinstance(below, Aggregate) for below in node.walk())
