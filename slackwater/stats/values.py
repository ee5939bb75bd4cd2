"""How many different values expressions take, and how many rows predicates keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Protocol

import numpy as np

from slackwater.algebra.expr import (
    AggCall,
    Call,
    Cast,
    Column,
    Expr,
    Literal,
    conjuncts,
    shift,
    used_columns,
)
from slackwater.algebra.relation import (
    Aggregate,
    Bag,
    Expand,
    Filter,
    Join,
    Project,
    Relation,
    Scan,
    Union,
    Window,
)
from slackwater.stats.amounts import least, most
from slackwater.stats.chance import Normal, of_average, of_count, of_sum
from slackwater.stats.sound import MOST_VALUES, Sound
from slackwater.tvr.restrict import equal_sides
from slackwater.types import BOOLEAN, WEIGHT

GUESSED_DISTINCT = 0.8
"""The power of the row count that stands for the distinct values of a column not known."""
RANGE, LIKE, IS_NULL, OTHER = 1 / 3, 0.1, 0.05, 0.25
"""The share of rows that a predicate keeps when nothing is known of its values."""
PRESENT = 0.99
"""Of groups that partial sums are kept of, those that have rows."""

Count = Callable[[Relation], float]
"""The rows of a relation."""


@dataclass(frozen=True, slots=True)
class Values:
    """What is known of a stored column."""

    distinct: float
    nulls: float = 0.0  # the share of rows
    low: float | None = None  # of numbers, and of days as their number since 1970
    high: float | None = None
    all_there: bool = False  # is each of them in the rows at hand, however many these are?


class Known(Protocol):
    """What is known of stored relations. None: nothing."""

    def values(self, source: str, column: str) -> Values | None:
        """Of a column."""

    def selectivity(self, node: Relation) -> float | None:
        """The share of its input that a filter, or of all pairs that a join, was measured to
        keep."""


class Ignorance:
    """Nothing is known."""

    def values(self, source: str, column: str) -> Values | None:
        return None

    def selectivity(self, node: Relation) -> float | None:
        return None


def drawn(values: float, rows: float) -> float:
    """How many of `values` different values so many random rows show: the rest stays unseen.

    >>> round(drawn(10, 1)), round(drawn(10, 1000)), round(drawn(1000, 1000)), round(drawn(1e20, 9))
    (1, 10, 632, 9)
    """
    if isinstance(values, np.ndarray):
        several = most(values, 1 + 1e-9)
        seen: float = np.where(values <= 1, values, values * _share_seen(several, rows))
        return least(rows, seen)
    if values <= 1:
        return least(values, rows)
    return least(rows, values * _share_seen(values, rows))


def _share_seen(values: float, rows: float) -> float:
    """1 − (1 − 1/values)^rows, also where there are more values than a float tells from none."""
    share: float = -np.expm1(rows * np.log1p(-1 / values))
    return share


def number(expr: Expr) -> float | None:
    """A constant as a number; a day as its number since 1970."""
    value = expr.value if isinstance(expr, Literal) else None
    match value:
        case bool() | datetime():
            return None
        case date():
            return float(value.toordinal() - date(1970, 1, 1).toordinal())
        case int() | float() | Decimal():
            return float(value)
    return None


def origin(node: Relation, expr: Expr) -> tuple[Scan, str] | None:
    """The scan and the stored column that an expression over a relation's row is."""
    while isinstance(expr, Column):
        if isinstance(node, Scan):
            return node, node.fields[expr.index].name
        found = _one_below(node, expr)
        if found is None:
            return None
        node, expr = found
    return None


def _one_below(node: Relation, column: Column) -> tuple[Relation, Expr] | None:
    """The input of an operator that only passes a column on, and what the column is there."""
    match node:
        case Project(below, exprs):
            return below, exprs[column.index]
        case Join(left, right) if column.index >= left.width:
            return right, shift(column, -left.width)
        case Join() | Filter() | Window() | Bag() if column.index < node.inputs[0].width:
            return node.inputs[0], column
    return None


def uncast(expr: Expr) -> Expr:
    """What an expression is a cast of, or itself."""
    while isinstance(expr, Cast):
        expr = expr.arg
    return expr


def _plain(expr: Expr) -> Expr:
    """Without casts, and without the constant that stands for NULL."""
    expr = uncast(expr)
    if isinstance(expr, Call) and expr.name == "coalesce" and isinstance(expr.args[-1], Literal):
        return _plain(expr.args[0]) if len(expr.args) == 2 else expr
    return expr


def aggregated(node: Relation, expr: Expr) -> tuple[Aggregate, AggCall] | None:
    """The groups, and what is computed of each, that an expression over a relation's row is."""
    while isinstance(expr := _plain(expr), Column):
        if isinstance(node, Aggregate):
            place = expr.index - len(node.keys)
            return (node, node.aggs[place]) if node.keys and place >= 0 else None
        found = _one_below(node, expr)
        if found is None:
            return None
        node, expr = found
    return None


def _counts_stored_rows(node: Relation, expr: Expr) -> bool:
    """Is it how many rows groups have, by the weights of stored partial sums?"""
    match aggregated(node, expr):
        case (Aggregate(Scan() as stored), AggCall(_, _, "sum", (Column(_, _, place),))):
            return stored.fields[place].name == WEIGHT
    return False


@dataclass(frozen=True)
class Domain:
    """Distinct values and selectivities over relations whose sizes are known."""

    known: Known
    count: Count
    _found: dict[tuple[Relation, int], float] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "known", Sound.of(self.known))

    # -- how many values

    def possible(self, node: Relation, exprs: Sequence[Expr]) -> float:
        """The combinations of the values of some expressions, whether there are rows or not."""
        found = 1.0
        for expr in dict.fromkeys(exprs):
            found *= self._of(node, expr)
        return least(found, MOST_VALUES)

    def are_all_there(self, node: Relation, exprs: Sequence[Expr]) -> bool:
        """Are all values of some expressions in the rows at hand, as in the sums of groups?"""
        if not isinstance(node, Scan):
            return False
        stored = [self._stored(node, e) for e in exprs]
        return all(known is not None and known.all_there for known in stored)

    def distinct(self, node: Relation, exprs: Sequence[Expr]) -> float:
        """The different values of some expressions together, at least one."""
        return most(1.0, least(self.possible(node, exprs), self.count(node)))

    def _of(self, node: Relation, expr: Expr) -> float:
        if isinstance(expr, Literal):
            return 1.0
        if isinstance(expr, Column):
            return most(1.0, least(self.column(node, expr.index), self.count(node)))
        if expr.type == BOOLEAN:
            return 3.0 if expr.nullable else 2.0
        return self.distinct(node, [c for c in expr.walk() if isinstance(c, Column)])

    def column(self, node: Relation, i: int) -> float:
        """The different values of a column."""
        key = (node, i)
        if key not in self._found:
            self._found[key] = self._values(node, i)
        return self._found[key]

    def _values(self, node: Relation, i: int) -> float:
        match node:
            case Scan():
                known = self.known.values(node.source, node.fields[i].name)
                guess: float = self.count(node) ** GUESSED_DISTINCT
                return guess if known is None else known.distinct + (known.nulls > 0)
            case Project():
                return self._of(node.input, node.exprs[i])
            case Aggregate() if i < len(node.keys):
                return self._of(node.input, node.keys[i])
            case Aggregate() if node.aggs[i - len(node.keys)].name == "count" and node.keys:
                counts = of_count(self._rows_of_groups(node)).whole_numbers
                return least(counts, self.count(node))
            case Expand():
                return most(*(self._of(node.input, p[i]) for p in node.projections)) + 1
            case Join() if i >= node.left.width:
                return self._seen(node.right, i - node.left.width, node)
            case Union():
                return sum(self.column(part, i) for part in node.parts)
            case Filter() | Join() | Window() if i < node.inputs[0].width:
                return self._seen(node.inputs[0], i, node)
            case _ if node.inputs and i < node.inputs[0].width:
                return self.column(node.inputs[0], i)
        result: float = self.count(node) ** GUESSED_DISTINCT
        return result

    def _seen(self, below: Relation, i: int, above: Relation) -> float:
        """The values of a column below that are left above."""
        return drawn(self.column(below, i), self.count(above))

    # -- how many rows

    def kept(self, node: Filter) -> float:
        """The share of rows that a filter keeps."""
        measured = self.known.selectivity(node)
        return self._share(node.input, node.predicate) if measured is None else measured

    def matching(self, node: Join) -> float:
        """The probability that two rows, one of each side, match."""
        measured = self.known.selectivity(node)
        if measured is not None:
            return measured
        result, pairs = 1.0, []
        for part in conjuncts(node.condition):
            sides = equal_sides(part, node.left.width)
            if sides is None:
                result *= self._share(node, part)
            else:
                pairs.append(sides)
        if pairs:  # of several columns, only combinations that are there can meet
            left, right = zip(*pairs, strict=True)
            result /= most(self.distinct(node.left, left), self.distinct(node.right, right))
        return result

    def _share(self, node: Relation, predicate: Expr) -> float:
        """The share of rows for which a predicate is true."""
        if isinstance(predicate, Literal):
            return 1.0 if predicate.value else 0.0
        if not isinstance(predicate, Call):
            return OTHER if not isinstance(predicate, Column) else 0.5
        shares = [self._share(node, a) for a in predicate.args if a.type == BOOLEAN]
        match predicate.name:
            case "and":
                return shares[0] * shares[1]
            case "or":
                return shares[0] + shares[1] - shares[0] * shares[1]
            case "not":
                return 1 - shares[0]
            case "=" | "<=>":
                return 1 / most(*(self._of_input(node, a) for a in predicate.args))
            case "!=" | "<>":
                return 1 - 1 / most(*(self._of_input(node, a) for a in predicate.args))
            case "in":
                values = self._of_input(node, predicate.args[0])
                return least(1.0, (len(predicate.args) - 1) / values)
            case "<" | "<=" | ">" | ">=":
                return self._between(node, predicate)
            case "is_null":
                return self._nulls(node, predicate.args[0])
            case "is_not_null":
                return 1 - self._nulls(node, predicate.args[0])
            case "like":
                return LIKE
        return OTHER

    def _of_input(self, node: Relation, expr: Expr) -> float:
        """Distinct values of an expression over the row that a predicate of `node` reads."""
        if isinstance(node, Join):
            width = node.left.width
            used = used_columns(expr)
            if used and min(used) >= width:
                return self.distinct(node.right, [shift(expr, -width)])
            if used and max(used) >= width:
                return most(1.0, self.count(node.left) ** GUESSED_DISTINCT)
            return self.distinct(node.left, [expr])
        return self.distinct(node, [expr])

    def _stored(self, node: Relation, expr: Expr) -> Values | None:
        """What is known of the stored column that an expression is."""
        found = origin(node, expr)
        return None if found is None else self.known.values(found[0].source, found[1])

    def _by_chance(self, node: Relation, expr: Expr) -> Normal | None:
        """How the values of an expression are spread, if it is a count, sum or average of groups
        and that is known of its argument."""
        found = aggregated(node, expr)
        if found is None:
            return None
        (groups, call), rows = found, self._rows_of_groups(found[0])
        if call.distinct or call.where is not None:
            return None
        if call.name == "count":
            return of_count(rows)
        of = {"sum": of_sum, "avg": of_average}.get(call.name)
        known = self._stored(groups.input, uncast(call.args[0])) if of else None
        if of is None or known is None or known.low is None or known.high is None:
            return None
        return of(rows, known.low, known.high)

    def _rows_of_groups(self, node: Aggregate) -> float:
        return self.count(node.input) / most(1.0, self.count(node))

    def _nulls(self, node: Relation, expr: Expr) -> float:
        if not expr.nullable:
            return 0.0
        known = self._stored(node, expr)
        return IS_NULL if known is None else known.nulls

    def _between(self, node: Relation, call: Call) -> float:
        """The share of a range that a bound leaves; a third where either is not known."""
        (left, right), name = map(uncast, call.args), call.name
        if isinstance(left, Literal):
            left, right, name = right, left, name.translate(str.maketrans("<>", "><"))
        known, bound = self._stored(node, left), number(right)
        if bound == 0 and _counts_stored_rows(node, left):
            return 1 - PRESENT if "<" in name else PRESENT
        if bound is not None and (found := self._by_chance(node, left)) is not None:
            above = found.above(bound)
            return 1 - above if "<" in name else above
        if known is None or bound is None or known.low is None or known.high is None:
            return RANGE
        width = known.high - known.low
        below = min(1.0, max(0.0, (bound - known.low) / width)) if width else float("<" in name)
        return (1 - known.nulls) * (below if "<" in name else 1 - below)
