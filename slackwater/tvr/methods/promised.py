"""What promises tell of rows with changed keys, so that nobody looks for them.

    R'|K = ΔR⁺|K   and   R|K = ΔR⁻|K        ΔR⁺: what comes, ΔR⁻: what goes

where each key in K is that of a row of R which changes, and R has it once; or that of a row which
comes or goes, and R refers to it by K: before such a row comes and after it goes, nothing does.
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.algebra.expr import Column, Expr, columns, substitute
from slackwater.algebra.relation import (
    Bag,
    Distinct,
    Filter,
    Join,
    Project,
    Relation,
    Scan,
    Union,
)
from slackwater.tvr import zset
from slackwater.tvr.memo import CHANGED, ROWS, WEIGHTED, Memo, Ref, Rule
from slackwater.tvr.references import Reference, origin
from slackwater.tvr.restrict import Keys, restrict

Changed = tuple[Relation, Keys]
"""An expression, and expressions over its rows: their values in all rows that change."""


def rows_of_change(memo: Memo, ref: Ref, form: Relation) -> Iterator[Relation]:
    """R'|K = ΔR⁺|K, R|K = ΔR⁻|K"""
    keys, wanted = ref.trait.keys, ref.trait.wanted
    assert wanted is not None
    if not memo.changes(form):
        return
    sources = changed_values(wanted)
    if not sources or not all(_tells(memo, changed, (form, keys)) for changed in sources):
        return
    whole, all_of_it = memo.ref(form, CHANGED), (form, keys) in sources
    change = zset.consolidate(whole if all_of_it else restrict(whole, keys, wanted))
    rows = zset.going(change) if ref.trait.old else zset.coming(change)
    yield Bag(rows) if ref.trait.kind == ROWS else rows


def changed_values(relation: Relation) -> list[Changed]:
    """What a relation has the values of, if they are all from changes; else nothing."""
    match relation:
        case Ref(tvr, trait) if trait.kind == CHANGED and trait.wanted is None:
            return [(tvr.node, columns(relation.schema)[:-1])]
        case Distinct(input):
            return changed_values(input)
        case Project(input, exprs):
            below = changed_values(input)
            return [(node, tuple(substitute(e, own) for e in exprs)) for node, own in below]
        case Union(parts):
            found = [changed_values(part) for part in parts]
            return [changed for part in found for changed in part] if all(found) else []
    return []


def _tells(memo: Memo, changed: Changed, asked: Changed) -> bool:
    """Is the change of what is asked for all that there is of it with the changed keys?"""
    return has_once(memo, changed, asked) or refers(memo, changed, asked)


def has_once(memo: Memo, changed: Changed, asked: Changed) -> bool:
    """Are the keys those of rows that change, and is each in no more than one?"""
    (node, theirs), (form, ours) = changed, asked
    if any(key.nullable for key in ours):
        return False
    while node is not form and isinstance(node, (Filter, Project)):
        if isinstance(node, Project):
            theirs = tuple(substitute(key, node.exprs) for key in theirs)
        node = node.input
    if node is not form or theirs != ours:
        return False
    own = {origin(form, key, rows_only=True) for key in ours}
    return any({(source, name) for name in names} <= own for source, names in memo.promises.keys)


def refers(memo: Memo, changed: Changed, asked: Changed) -> bool:
    """Do the keys name rows that come or go, and refers what is asked for to those?"""
    (node, theirs), (form, ours) = changed, asked
    pairs = {
        (origin(form, own), _coming_or_going(memo, node, other))
        for own, other in zip(ours, theirs, strict=True)
    }
    return any(_columns(reference) <= pairs for reference in memo.promises.references)


def _columns(reference: Reference) -> set[tuple[tuple[str, str], tuple[str, str]]]:
    """Those that refer, each with the one that it refers to."""
    named = zip(reference.columns, reference.theirs, strict=True)
    return {((reference.source, ours), (reference.target, theirs)) for ours, theirs in named}


def _coming_or_going(memo: Memo, relation: Relation, expr: Expr) -> tuple[str, str] | None:
    """The source and column of which each value that a changed row has is in a row that changes."""
    if not isinstance(expr, Column) or expr.nullable:
        return None
    match relation:
        case Scan(source, _, fields):
            return source, fields[expr.index].name
        case Filter(input):
            return _coming_or_going(memo, input, expr)
        case Project(input, exprs):
            return _coming_or_going(memo, input, exprs[expr.index])
        case Join(left, right, how) if how in ("inner", "left", "semi", "anti"):
            if expr.index < left.width and not memo.changes(right):
                return _coming_or_going(memo, left, expr)
            if expr.index >= left.width and how == "inner" and not memo.changes(left):
                at = Column(expr.type, expr.nullable, expr.index - left.width)
                return _coming_or_going(memo, right, at)
    return None


RULES = (Rule("rows_of_change", "", (ROWS, WEIGHTED), rows_of_change, restricted=True, first=True),)
