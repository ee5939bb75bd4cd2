"""What has no rows is left out of a step, with all that it makes empty.

    R ⋈ ∅ = ∅    R ⟕ ∅ = R × {NULL}    R ▷ ∅ = R    R + ∅ = R    γ[keys](∅) = ∅

A batch seldom changes all tables that a view reads, and what the ranges of keys rule out is not
read: then whole branches of a change have nothing in them, which is known before any engine has
seen them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from slackwater.algebra.expr import Expr, Literal, columns
from slackwater.algebra.relation import (
    Aggregate,
    Bag,
    Distinct,
    Expand,
    Filter,
    Generate,
    Join,
    Project,
    Relation,
    Scan,
    SetOp,
    Sort,
    TopK,
    Union,
    Values,
    Window,
    under_names,
)
from slackwater.engine.sources import Files, Given, Log, Made, Source, Sources, Stored
from slackwater.planner.steps import Output
from slackwater.types import Schema

_ROW_BY_ROW = (Bag, Distinct, Expand, Filter, Generate, Project, Sort, TopK, Window)
"""Operators that make nothing of nothing."""


def not_empty(
    outputs: Sequence[Output], sources: Sources
) -> tuple[tuple[Output, ...], dict[str, Source]]:
    """The outputs of a step that may have rows, without branches that have none; and the sources,
    in which an output that has no rows is no longer read."""
    left, kept = dict(sources), []
    for output in outputs:
        nothing = {name for name, source in left.items() if _is_empty(source)}
        relation = fold(output.relation, nothing)
        if _is_nothing(relation):
            for name, source in left.items():
                if isinstance(source, Made) and source.target == output.target:
                    left[name] = source.before or Log((), source.schema)
        else:
            kept.append(replace(output, relation=relation))
    return tuple(kept), left


def fold(relation: Relation, nothing: Collection[str]) -> Relation:
    """The same rows under the same names, where the sources in `nothing` are known to be empty."""

    def change(node: Relation) -> Relation:
        if isinstance(node, Scan):
            return _nothing(node.schema) if node.source in nothing else node
        return _folded(node) if any(_is_nothing(i) for i in node.inputs) else node

    return under_names(relation.rewrite(change), _names(relation)) if nothing else relation


def _folded(node: Relation) -> Relation:
    """An operator of which some input is empty."""
    match node:
        case Join():
            return _join(node)
        case Union():
            return _union(node)
        case SetOp(left, right, how, all):
            if _is_nothing(left) or how == "intersect":
                return _nothing(node.schema)
            assert _is_nothing(right)
            return left if all else Distinct(left)
        case Aggregate(_, keys):
            return _nothing(node.schema) if keys else node
    return _nothing(node.schema) if isinstance(node, _ROW_BY_ROW) else node


def _join(join: Join) -> Relation:
    """By the sides that are kept without a partner."""
    left, right = join.left, join.right
    if _is_nothing(left) and join.how in ("right", "full") and not _is_nothing(right):
        return _beside_nulls(join, (*_nulls(left.schema), *columns(right.schema)), right)
    if _is_nothing(left) or join.how in ("inner", "semi", "right"):
        return _nothing(join.schema)
    if join.how == "anti":
        return left
    return _beside_nulls(join, (*columns(left.schema), *_nulls(right.schema)), left)


def _beside_nulls(join: Join, exprs: tuple[Expr, ...], side: Relation) -> Relation:
    return Project(side, exprs, _names(join))


def _nulls(schema: Schema) -> tuple[Literal, ...]:
    return tuple(Literal(f.type, True, None) for f in schema)


def _union(union: Union) -> Relation:
    rest = tuple(p for p in union.parts if not _is_nothing(p))
    if not rest:
        return _nothing(union.schema)
    whole = rest[0] if len(rest) == 1 else Union(rest)
    return under_names(whole, _names(union))


def _names(relation: Relation) -> tuple[str, ...]:
    return tuple(f.name for f in relation.schema)


def _nothing(schema: Schema) -> Values:
    return Values((), schema)


def _is_nothing(relation: Relation) -> bool:
    return isinstance(relation, Values) and not relation.rows


def _is_empty(source: Source) -> bool:
    match source:
        case Stored(segments) | Log(segments):
            return not any(s.rows for s in segments)
        case Files(paths):
            return not paths
        case Given(data):
            return source.is_local and not data.num_rows
    return False
