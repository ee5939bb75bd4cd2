"""Semi joins on keys that may be NULL, in a form that reads few row groups.

DuckDB hands the range of a small side's keys to the scan of the large side where they are compared
by `=`, not where by IS NOT DISTINCT FROM. So one key is compared by `=`, and rows where it is NULL
are looked for apart. That needs no scan where the small side has no such key, as is the rule:

    R ⋉[k <=> j] S  =  R ⋉[k = j] S  +  R ⋉[k <=> j] σ[j IS NULL](S)
"""

from __future__ import annotations

from slackwater.algebra.expr import Call, Column, Expr, conjunction, conjuncts
from slackwater.algebra.relation import Filter, Join, Project, Relation, Scan


def equal_keys(node: Join) -> tuple[Expr, int | None] | None:
    """A semi join's condition by `=`, and the right column whose NULLs it leaves out, if it does.

    None where no key is compared null-safely, or the left side is not a scan.
    """
    parts, width = conjuncts(node.condition), node.left.width
    keys = {part: key for part in parts if (key := _right_key(part, width)) is not None}
    if node.how != "semi" or not keys or not _is_scan(node.left):
        return None
    sure = {part for part in keys if not all(a.nullable for a in _sides(part))}
    first = next(iter(keys))
    plain = sure or {first}
    missed = None if sure else keys[first].index - width
    return conjunction([_equal(p) if p in plain else p for p in parts]), missed


def _right_key(part: Expr, width: int) -> Column | None:
    """The right column of a null-safe comparison of two columns, one of each side."""
    if not (isinstance(part, Call) and part.name == "<=>"):
        return None
    found = [a for a in part.args if isinstance(a, Column)]
    right = [a for a in found if a.index >= width]
    return right[0] if len(found) == 2 and len(right) == 1 else None


def _sides(part: Expr) -> tuple[Expr, ...]:
    assert isinstance(part, Call)
    return part.args


def _equal(part: Expr) -> Expr:
    sides = _sides(part)
    return Call(part.type, any(a.nullable for a in sides), "=", sides)


def _is_scan(node: Relation) -> bool:
    """Does it read one relation, row by row?"""
    while isinstance(node, Filter | Project):
        node = node.input
    return isinstance(node, Scan)
