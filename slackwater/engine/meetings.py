"""How the sides of joins meet, as far as what is really there bears it.

A plan has said so by what it expected (`planner/layout.py`). Spark copies and hashes what it is
told to, however large it is, and runs out of memory; left alone it looks at sizes, and sorts.
"""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.algebra.relation import Join, Relation
from slackwater.planner.places import COPY_LEFT, COPY_RIGHT, HASH_LEFT, HASH_RIGHT, Meeting

COPIED_BYTES = 1_000_000_000
"""A side that is made from more is not copied because a plan says so."""
HASHED_BYTES = 100_000_000
"""In one piece, nor is it hashed."""


def bearable(relation: Relation, sizes: Mapping[str, int], one_piece: bool) -> Relation:
    """A relation without what its joins say where one side is made from too many bytes. Statements
    over few rows exchange them in `one_piece`."""

    def change(node: Relation) -> Relation:
        if not isinstance(node, Meeting) or _is_bearable(node, sizes, one_piece):
            return node
        return Join(node.left, node.right, node.how, node.condition)

    changed: Relation = relation.rewrite(change)
    return changed


def _is_bearable(join: Meeting, sizes: Mapping[str, int], one_piece: bool) -> bool:
    side = join.left if join.meets in (COPY_LEFT, HASH_LEFT) else join.right
    read = sum(sizes.get(scan.source, 0) for scan in side.scans())
    if join.meets in (COPY_LEFT, COPY_RIGHT):
        return read <= COPIED_BYTES
    return not (one_piece and join.meets in (HASH_LEFT, HASH_RIGHT) and read > HASHED_BYTES)
