"""Which columns of what is stored are read: the others stay in their files."""

from __future__ import annotations

from collections.abc import Iterable

from slackwater.algebra.expr import used_columns
from slackwater.algebra.relation import Project, Relation, Scan


def read_columns(relations: Iterable[Relation]) -> dict[str, set[str]]:
    """By source, the columns of which some relations read values."""
    found: dict[str, set[str]] = {}

    def reads(scan: Relation, places: Iterable[int]) -> None:
        if isinstance(scan, Scan):
            found.setdefault(scan.source, set()).update(scan.fields[i].name for i in places)

    for relation in relations:
        reads(relation, range(relation.width))
        for node in relation.walk():
            for below in node.inputs:
                picked = isinstance(node, Project)
                reads(below, used_columns(*node.exprs) if picked else range(below.width))
    return found


def columns_read(relations: Iterable[Relation]) -> dict[str, int]:
    """By source, of how many columns some relations read values."""
    return {source: len(read) for source, read in read_columns(relations).items()}
