"""Times: a relation before a change, after it, and the change itself.

A refresh goes from one time to the next. What changes in between is scanned under three names;
all else is the same at both times.
"""

from __future__ import annotations

from slackwater.algebra.relation import Relation, Scan
from slackwater.types import BIGINT, WEIGHT, Field, Schema

OLD = "@old"
NEW = "@new"
CHANGE = "@change"
NOW = "@now"
"""A source that does not change, as rows with weights."""


def source_at(id: str, time: str) -> str:
    """What a source is called at a time.

    >>> source_at("t1", OLD)
    't1@old'
    """
    return id + time


def split(source: str) -> tuple[str, str]:
    """A source's id and time; no time for a relation as it is now.

    >>> split("t1@old"), split("t1")
    (('t1', '@old'), ('t1', ''))
    """
    id, at, time = source.partition("@")
    return id, at + time


def weighted_scan(id: str, name: str, fields: Schema, time: str) -> Scan:
    """The rows of a source at a time, with their weights."""
    return Scan(source_at(id, time), name, (*fields, Field(WEIGHT, BIGINT, False)))


def reads(relation: Relation, changed: frozenset[str]) -> bool:
    """Does the relation read anything that changed?"""
    return any(scan.source in changed for scan in relation.scans())
