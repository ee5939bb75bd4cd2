"""Semi and anti joins by which keys are there.

    L ⋉[a=b] S = L ⋉[a=b] γ[b](S)        ▷ alike

How often each key is there is kept. So a change of S tells by itself which keys appear and which
vanish, and S is read no more: neither computed for the keys that it touches, nor looked through
for them where it is a table.
"""

from __future__ import annotations

from slackwater.algebra.expr import columns, conjunction
from slackwater.algebra.relation import Aggregate, Filter, Join
from slackwater.tvr.eager import equal, equalities, is_grouped


def counted(join: Join) -> tuple[Join, Aggregate] | None:
    """A semi or anti join with the keys of its right side, and these; None where there are other
    conditions than equality, or where the right side has each key once."""
    if join.how not in ("semi", "anti"):
        return None
    pairs, own = equalities(join)
    if pairs is None or is_grouped(join.right, {b for _, b in pairs}):
        return None
    rows = Filter(join.right, conjunction(own)) if own else join.right
    names = tuple(f"k{i}" for i in range(len(pairs)))
    keys = Aggregate(rows, tuple(b for _, b in pairs), (), names)
    theirs = columns(keys.schema, join.left.width)
    same = [equal(a, b) for (a, _), b in zip(pairs, theirs, strict=True)]
    return Join(join.left, keys, join.how, conjunction(same)), keys
