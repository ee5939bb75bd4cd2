"""Which columns of what is stored are read: the others stay in their files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from slackwater.algebra.expr import used_columns
from slackwater.algebra.relation import Project, Relation, Scan


def read_columns(relations: Iterable[Relation]) -> dict[str, set[str]]:
    """By source, the columns of which some relations read values."""
    found: dict[str, set[str]] = {}
    for scan, places in _reads(relations):
        found.setdefault(scan.source, set()).update(scan.fields[i].name for i in places)
    return found


def columns_read(relations: Iterable[Relation]) -> dict[str, int]:
    """By source, of how many columns some relations read values."""
    found: dict[str, set[int]] = {}
    for scan, places in _reads(relations):
        found.setdefault(scan.source, set()).update(places)
    return {source: len(places) for source, places in found.items()}


def _reads(relations: Iterable[Relation]) -> Iterator[tuple[Scan, Collection[int]]]:
    """Each scan with the columns that are read by one who reads it; by nobody: all."""
    for relation in relations:
        if isinstance(relation, Scan):
            yield relation, range(relation.width)
        for node in relation.walk():
            for below in node.inputs:
                if isinstance(below, Scan):
                    picked = isinstance(node, Project)
                    yield below, used_columns(*node.exprs) if picked else range(below.width)
