"""Which columns updates change, and so whether an operator sees one as an update at all.

| an update of | is for |
|---|---|
| no column that a predicate reads | a filter an update, or nothing, as the row was |
| no column that is passed on | a projection nothing |
| no key | a join an update of the joined rows, a group an update of it |
| a key | a join or a group a row that goes and one that comes |
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from slackwater.algebra.expr import Expr, used_columns
from slackwater.algebra.relation import (
    Aggregate,
    Bag,
    Distinct,
    Expand,
    Filter,
    Join,
    Project,
    Relation,
    Scan,
    Sort,
    TopK,
    Union,
    Window,
)

MOVED = 0.1
"""The share of updates that change a column, where nobody says which columns they change; and of
groups that are updated, the share whose sum or count crosses a bound."""

Shares = tuple[float, ...]
"""By column, of the updates of a relation's rows those that change it."""
Updated = Mapping[str, Collection[str]]
"""By source, the only columns that updates change, where that is known."""


def shares(node: Relation, below: Callable[[Relation], Shares], updated: Updated) -> Shares:
    """Of the columns of an operator, by those of its inputs. What updates a group leaves its keys
    as they are; another row is another row, so that nothing updates distinct ones."""
    match node:
        case Scan():
            known = updated.get(node.source)
            return tuple(MOVED if known is None else float(f.name in known) for f in node.fields)
        case Project():
            return _of_all(node.exprs, below(node.input))
        case Expand():
            found = [_of_all(exprs, below(node.input)) for exprs in node.projections]
            return tuple(map(max, zip(*found, strict=True)))
        case Aggregate():
            return (0.0,) * len(node.keys) + (MOVED,) * len(node.aggs)
        case Distinct():
            return (0.0,) * node.width
        case Join():
            right = () if node.how in ("semi", "anti") else below(node.right)
            return (*below(node.left), *right)
        case Union():
            return tuple(map(max, zip(*map(below, node.parts), strict=True)))
        case Window():
            own = below(node.input)
            return (*own, *(MOVED,) * (node.width - len(own)))
        case Filter() | Sort() | TopK() | Bag():
            return below(node.inputs[0])[: node.width]
    return (MOVED,) * node.width


def _of_all(exprs: Iterable[Expr], below: Shares) -> Shares:
    return tuple(most_moved(used_columns(expr), below) for expr in exprs)


def most_moved(columns: Iterable[int], of: Shares) -> float:
    """Of the updates, those that change any of some columns: as many as change one of them.

    >>> most_moved([0, 2], (0.0, 1.0, 0.1)), most_moved([], (1.0,))
    (0.1, 0.0)
    """
    return max((of[i] for i in columns), default=0.0)
