"""Groups that a selective condition elsewhere rules out are not computed.

    R ⋈[a=k] γ[k](S) = R ⋈[a=k] γ[k](S ⋉[k=b] C)      C a part of R, a's values among b's

R may be anything that takes its values of a from C: the chosen parts of TPC-H's q17 are a
thousandth of all, and averages are kept of these alone. No engine does so by itself. C is a
stored relation under a condition that picks rows by their values; of joins, computing the keys
would cost more than what is spared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from slackwater.algebra.expr import (
    Call,
    Cast,
    Column,
    Expr,
    Literal,
    columns,
    conjuncts,
    is_deterministic,
)
from slackwater.algebra.relation import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Project,
    Relation,
    Scan,
    Sort,
    TopK,
    Window,
)
from slackwater.tvr.restrict import equi_keys, restrict, semi_join


@dataclass(frozen=True)
class _Core:
    """A stored relation under a selective condition, and one of its columns."""

    rows: Filter
    index: int

    @property
    def keys(self) -> Relation:
        """The column's values."""
        return Project(self.rows, (columns(self.rows.schema)[self.index],), ("k0",))


def narrow(relation: Relation) -> Relation:
    """The same multiset, computed without groups that are known not to matter."""
    nodes = list(relation.walk())
    readers = Counter(child for node in nodes for child in node.inputs)
    found: dict[Relation, dict[Expr, _Core]] = {}
    for join in nodes:
        for aggregate, key, core in _narrowing(join, readers):
            found.setdefault(aggregate, {}).setdefault(key, core)
    if not found:
        return relation
    made: dict[Relation, Relation] = {}
    for node in nodes:
        over = node.with_children(made.__getitem__)
        for key, core in found.get(node, {}).items():
            cut = restrict if _is_its_own(node.inputs[0], readers) else semi_join
            over = over.replace(input=cut(over.inputs[0], (key,), core.keys))
        made[node] = over
    return made[relation]


def _is_its_own(relation: Relation, readers: Counter[Relation]) -> bool:
    """Are all operators below read by each other alone, but for stored rows and their filters? What
    others read as well is narrowed where it is read, not where it is computed."""
    below = list(relation.walk())
    inside = Counter(child for node in below for child in node.inputs)
    inside[relation] += 1
    return all(readers[node] == inside[node] or _is_stored(node) for node in below)


def _is_stored(relation: Relation) -> bool:
    """Is it a stored relation, or rows and columns of one?"""
    if isinstance(relation, Filter | Project):
        return _is_stored(relation.inputs[0])
    return isinstance(relation, Scan)


def _narrowing(
    join: Relation, readers: Counter[Relation]
) -> Iterator[tuple[Aggregate, Expr, _Core]]:
    """The groups below a join that are joined with a core: of which aggregate, by which key."""
    if not isinstance(join, Join) or join.how in ("full", "right"):
        return
    for pair in equi_keys(join):
        sides = [(pair[0], join.left), (pair[1], join.right)]
        for (own, rows), (other, picked) in (sides[::-1], sides)[: 1 + (join.how == "inner")]:
            if isinstance(own, Column) and isinstance(other, Column):
                grouped = _group_of(rows, own.index, readers)
                core = next(_cores(picked, other.index), None) if grouped else None
                if grouped and core and core.rows not in grouped[0].walk():
                    yield *grouped, core


def _group_of(
    node: Relation, index: int, readers: Counter[Relation]
) -> tuple[Aggregate, Expr] | None:
    """The aggregate that a column is a key of, and the key; None where others read its groups."""
    if readers[node] > 1:
        return None
    match node:
        case Aggregate() if index < len(node.keys):
            return node, node.keys[index]
        case Filter():
            return _group_of(node.input, index, readers)
        case Project() if isinstance(key := node.exprs[index], Column):
            return _group_of(node.input, key.index, readers)
    return None


def _cores(node: Relation, index: int) -> Iterator[_Core]:
    """Selective parts that all values of a column come from."""
    match node:
        case Filter():
            if _is_stored(node) and _picks(node.predicate):
                yield _Core(node, index)
            yield from _cores(node.input, index)
        case Project() if isinstance(origin := node.exprs[index], Column):
            yield from _cores(node.input, origin.index)
        case Aggregate() if index < len(node.keys):
            if isinstance(origin := node.keys[index], Column):
                yield from _cores(node.input, origin.index)
        case Distinct() | Sort() | TopK():
            yield from _cores(node.input, index)
        case Window() if index < node.input.width:
            yield from _cores(node.input, index)
        case Join():
            yield from _cores_of_join(node, index)


def _cores_of_join(join: Join, index: int) -> Iterator[_Core]:
    """From its own side, or from the column of the other side that it is equal to."""
    if join.how in ("full", "right"):
        return
    width = join.left.width
    of_left = index < width
    if of_left or join.how == "inner":
        yield from _cores(join.left, index) if of_left else _cores(join.right, index - width)
    if join.how in ("inner", "semi"):
        for a, b in equi_keys(join):
            if isinstance(a, Column) and isinstance(b, Column):
                if of_left and a.index == index:
                    yield from _cores(join.right, b.index)
                elif not of_left and b.index == index - width:
                    yield from _cores(join.left, a.index)


def _picks(predicate: Expr) -> bool:
    """Does a condition pick rows by the values of a column?"""
    return is_deterministic(predicate) and any(_is_pick(part) for part in conjuncts(predicate))


def _is_pick(part: Expr) -> bool:
    match part:
        case Call(name="=" | "<=>"):
            return any(_is_constant(arg) for arg in part.args)
        case Call(name="in" | "like"):
            return all(_is_constant(arg) for arg in part.args[1:])
        case Call(name="or"):
            return all(_is_pick(arg) for arg in part.args)
    return False


def _is_constant(expr: Expr) -> bool:
    return isinstance(expr, Literal) or (isinstance(expr, Cast) and _is_constant(expr.arg))
