"""Z-relations: rows with an integer weight as last column, and their arithmetic, as algebra.

A change is a Z-relation: weight −1 for a row that goes, +1 for one that comes. Adding changes is
putting them together; `consolidate` adds the weights of equal rows and drops zeros.
"""

from __future__ import annotations

from collections.abc import Sequence

from slackwater.algebra.expr import AggCall, Call, Column, Expr, Literal, columns
from slackwater.algebra.relation import Aggregate, Filter, Project, Relation, Union, Values
from slackwater.types import BIGINT, BOOLEAN, WEIGHT, Field

ONE = Literal(BIGINT, False, 1)
MINUS_ONE = Literal(BIGINT, False, -1)
ZERO = Literal(BIGINT, False, 0)


def names(relation: Relation) -> tuple[str, ...]:
    """The column names of a relation."""
    return tuple(f.name for f in relation.schema)


def weight(z: Relation) -> Column:
    """The weight of a Z-relation's row."""
    return columns(z.schema)[-1]


def with_weight(relation: Relation, value: Expr = ONE) -> Relation:
    """A plain relation as a Z-relation: every row with the same weight."""
    return Project(relation, (*columns(relation.schema), value), (*names(relation), WEIGHT))


def unweighted(z: Relation) -> Relation:
    """The rows of a Z-relation, their weights forgotten."""
    if isinstance(z, Project):
        bare = Project(z.input, z.exprs[:-1], z.names[:-1])
        return z.input if bare.exprs == columns(z.input.schema) else bare
    row = columns(z.schema)
    return Project(z, row[:-1], names(z)[:-1])


def is_plain(z: Relation) -> bool:
    """Has every row the weight one, as one can see?"""
    return isinstance(z, Project) and z.exprs[-1] is ONE


def product(weights: Sequence[Expr]) -> Expr:
    """The weight of a row joined from rows of these weights."""
    result: Expr = ONE
    for one in weights:
        result = one if result is ONE else Call(BIGINT, False, "*", (result, one))
    return result


def minus(relation: Relation) -> Relation:
    """A plain relation, taken away."""
    return with_weight(relation, MINUS_ONE)


def negate(z: Relation) -> Relation:
    """−z."""
    row = columns(z.schema)
    flipped = Call(BIGINT, row[-1].nullable, "neg", (row[-1],))
    return Project(z, (*row[:-1], flipped), names(z))


def coming(z: Relation) -> Relation:
    """The rows of a change that come."""
    return Filter(z, Call(BOOLEAN, False, ">", (weight(z), ZERO)))


def going(z: Relation) -> Relation:
    """The rows of a change that go, as they were."""
    return negate(Filter(z, Call(BOOLEAN, False, "<", (weight(z), ZERO))))


def absolute(z: Relation) -> Relation:
    """What comes and what goes alike."""
    row = columns(z.schema)
    size = Call(BIGINT, row[-1].nullable, "abs", (row[-1],))
    return Project(z, (*row[:-1], size), names(z))


def nothing(relation: Relation) -> Relation:
    """No change of a relation's rows."""
    return Values((), (*relation.schema, Field(WEIGHT, BIGINT, False)))


def plus(parts: Sequence[Relation]) -> Relation:
    """The sum of Z-relations."""
    return parts[0] if len(parts) == 1 else Union(tuple(parts))


def consolidate(z: Relation) -> Relation:
    """Each different row once, with the sum of its weights; none with weight zero."""
    row = columns(z.schema)
    total = AggCall(BIGINT, True, "sum", (row[-1],))
    summed = Aggregate(z, row[:-1], (total,), names(z))
    kept = Call(BOOLEAN, True, "!=", (columns(summed.schema)[-1], ZERO))
    return Filter(summed, kept)
