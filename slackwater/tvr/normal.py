"""The normal form that laws speak of: no right joins, no delivery order."""

from __future__ import annotations

from slackwater.algebra.expr import columns, remap
from slackwater.algebra.relation import Join, Project, Relation, Sort


def normalize(relation: Relation) -> Relation:
    """The same multiset with right joins turned into left joins and sorts dropped."""
    result: Relation = relation.rewrite(_normal)
    return result


def _normal(node: Relation) -> Relation:
    if isinstance(node, Sort):
        return node.input
    if isinstance(node, Join) and node.how == "right":
        return _flipped(node)
    return node


def _flipped(join: Join) -> Relation:
    a, b = join.left.width, join.right.width
    condition = remap(join.condition, lambda i: i + b if i < a else i - a)
    flipped = Join(join.right, join.left, "left", condition)
    row = columns(flipped.schema)
    names = tuple(f.name for f in join.schema)
    return Project(flipped, row[b:] + row[:b], names)
