"""Times: a relation before a change, after it, and the change itself.

A refresh goes from one time to the next. Sources that changed in between are scanned under three
names; all others are the same at both times.
"""

from __future__ import annotations

from slackwater.algebra.relation import Relation, Scan
from slackwater.types import BIGINT, WEIGHT, Field

OLD = "@old"
NEW = "@new"
CHANGE = "@change"


def source_at(id: str, time: str) -> str:
    """What a source is called at a time.

    >>> source_at("t1", OLD)
    't1@old'
    """
    return id + time


def change_of(scan: Scan) -> Scan:
    """The rows with weights by which a source changed."""
    fields = (*scan.fields, Field(WEIGHT, BIGINT, False))
    return Scan(source_at(scan.source, CHANGE), scan.name, fields)


def reads(relation: Relation, changed: frozenset[str]) -> bool:
    """Does the relation read anything that changed?"""
    return any(scan.source in changed for scan in relation.scans())
