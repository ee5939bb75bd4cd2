"""Plans out of the memo: one way for each group, put together as algebra over what is stored.

A group is computed in one way wherever a plan needs it. That is not only cheaper: the keys that a
change touches may be more or fewer by the way the change is computed, and what was and what is
must be taken for the same keys.
"""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.algebra.relation import Relation, Scan
from slackwater.errors import InternalError
from slackwater.tvr.memo import CHANGED, Member, Memo, Ref
from slackwater.tvr.time import CHANGE, NEW, NOW, OLD, weighted_scan

Chosen = Mapping[int, Member]
"""The member to take of each group, by the group's number."""


class Extraction:
    """The relations of groups by chosen members."""

    def __init__(self, memo: Memo, chosen: Chosen) -> None:
        self._memo = memo
        self._chosen = chosen
        self._found: dict[Ref, Relation] = {}

    def of(self, ref: Ref) -> Relation:
        """A group's relation as algebra over sources."""
        if ref not in self._found:
            self._found[ref] = self._make(ref)
        return self._found[ref]

    def _make(self, ref: Ref) -> Relation:
        group = self._memo.group(ref)
        if group.stored:
            return stored(self._memo, ref)
        relation: Relation = self._chosen[group.id].relation.rewrite(self._resolved)
        return relation

    def _resolved(self, node: Relation) -> Relation:
        return self.of(node) if isinstance(node, Ref) else node


def stored(memo: Memo, ref: Ref) -> Relation:
    """A source's rows with weights, at a time, or its change."""
    node = ref.tvr.node
    if not isinstance(node, Scan):
        raise InternalError(f"{ref} is not stored")
    if ref.trait.kind == CHANGED:
        time = CHANGE
    elif not memo.changes(node):
        time = NOW
    else:
        time = OLD if ref.trait.old else NEW
    return weighted_scan(node.source, node.name, node.fields, time)
