"""Where rows are, how few times they move, and what runs in one go (002, 5.2 and 5.3)."""

from __future__ import annotations

from slackwater.algebra.expr import AggCall, Call, columns, conjunction, shift
from slackwater.algebra.relation import Aggregate, Distinct, Join, Project, Relation, Scan, Union
from slackwater.planner.fusion import (
    DISTRIBUTED,
    LOCAL,
    Block,
    Statement,
    Target,
    blocks,
    fused,
    program,
)
from slackwater.planner.places import ANYHOW, COPIED, DRIVER, Place, Where, by, placed
from slackwater.types import BIGINT, BOOLEAN, Field


def relation(name: str, names: str) -> Scan:
    """Something stored with such columns."""
    return Scan(name, name, tuple(Field(n, BIGINT) for n in names.split()))


def natural(left: Relation, right: Relation) -> Relation:
    """Joined by the columns of one name, which are there once."""
    ours = {f.name: c for f, c in zip(left.schema, columns(left.schema), strict=True)}
    theirs = columns(right.schema)
    same = [
        Call(BOOLEAN, True, "=", (ours[f.name], shift(c, left.width)))
        for f, c in zip(right.schema, theirs, strict=True)
        if f.name in ours
    ]
    joined = Join(left, right, "inner", conjunction(same))
    row, names = columns(joined.schema), [f.name for f in joined.schema]
    kept = [i for i, n in enumerate(names) if names.index(n) == i]
    return Project(joined, tuple(row[i] for i in kept), tuple(names[i] for i in kept))


def summed(below: Relation, keys: str, value: str = "v") -> Relation:
    """Sum[keys](below)."""
    row = {f.name: c for f, c in zip(below.schema, columns(below.schema), strict=True)}
    total = AggCall(BIGINT, True, "sum", (row[value],))
    named = keys.split()
    return Aggregate(below, tuple(row[k] for k in named), (total,), (*named, value))


def stored(**places: Place) -> Where:
    return lambda scan: places[scan.name.split("@")[0]]


def test_one_repartition_is_enough_where_two_would_do() -> None:
    """Example 5.2.1: M(A) += Sum[A](M1(A, B) * M2(A, B)), M2 spread by B."""
    query = summed(natural(relation("m1", "a b v"), relation("m2", "a b")), "a")
    found = placed(query, stored(m1=by(0), m2=by(1)), by(0))
    (move,) = found.moves()
    assert (move.how, move.source, move.target) == ("repartition", by(1), by(0))
    assert [scan.name for scan in move.scans()] == ["m2"]


def test_rows_that_are_together_do_not_move() -> None:
    query = summed(natural(relation("m1", "a b v"), relation("m2", "a c")), "a")
    assert placed(query, stored(m1=by(0), m2=by(0)), by(0)).moves() == []


def test_a_change_moves_rather_than_a_view() -> None:
    query = natural(relation("d@change", "a v"), relation("m", "a b"))
    (move,) = placed(query, stored(d=by(1), m=ANYHOW), ANYHOW).moves()
    assert move.how == "broadcast"
    assert [scan.name for scan in move.scans()] == ["d@change"]


def test_a_result_for_the_driver_is_gathered_at_the_end() -> None:
    query = summed(relation("m", "a v"), "a")
    found = placed(query, stored(m=by(0)), DRIVER)
    assert [move.how for move in found.moves()] == ["gather"]
    assert found.relation.input is query  # type: ignore[attr-defined]


def test_what_is_on_the_driver_is_scattered_to_a_view() -> None:
    found = placed(relation("d@change", "a v"), stored(d=DRIVER), by(0))
    assert [move.how for move in found.moves()] == ["scatter"]


def test_groups_and_distinct_rows_meet_by_some_of_their_columns() -> None:
    rows = relation("m", "a b v")
    assert placed(Distinct(rows), stored(m=by(1)), ANYHOW).moves() == []
    assert placed(summed(rows, "a b"), stored(m=by(0)), by(0)).moves() == []
    (move,) = placed(summed(rows, "a"), stored(m=by(1)), by(0)).moves()
    assert move.target == by(0)


def test_a_union_is_where_its_parts_are() -> None:
    both = Union((relation("m", "a v"), relation("n", "a v")))
    assert placed(both, stored(m=by(0), n=by(0)), by(0)).moves() == []
    assert len(placed(both, stored(m=by(0), n=ANYHOW), by(0)).moves()) == 1
    assert placed(both, stored(m=by(0), n=ANYHOW), ANYHOW).moves() == []


def test_a_join_without_equality_needs_a_copy() -> None:
    query = Join(relation("m", "a"), relation("n", "b"), "inner", conjunction([]))
    (move,) = placed(query, stored(m=ANYHOW, n=ANYHOW), ANYHOW).moves()
    assert move.target == COPIED


# -- blocks


def test_blocks_of_one_mode_are_fused_over_what_they_do_not_touch() -> None:
    one = Statement("x", relation("a", "k"), DISTRIBUTED)
    between = Statement("y", relation("b", "k"), LOCAL)
    two = Statement("z", relation("c", "k"), DISTRIBUTED)
    assert [b.mode for b in fused(blocks([one, between, two]))] == [DISTRIBUTED, LOCAL]


def test_blocks_stay_apart_where_one_reads_what_the_other_makes() -> None:
    one = Statement("x", relation("a", "k"), DISTRIBUTED)
    moved = Statement("y", relation("x", "k"), LOCAL)
    two = Statement("z", relation("y", "k"), DISTRIBUTED)
    found = fused(blocks([one, moved, two]))
    assert found == [Block(DISTRIBUTED, (one,)), Block(LOCAL, (moved,)), Block(DISTRIBUTED, (two,))]


def test_what_is_moved_twice_in_the_same_way_is_moved_once() -> None:
    change = relation("d@change", "a v")
    targets = [Target(name, natural(change, relation(name, "a b")), by(0)) for name in ("m", "n")]
    where = stored(d=ANYHOW, m=by(0), n=by(0))
    assert [s.mode for s in program(targets, where)] == [LOCAL, DISTRIBUTED, DISTRIBUTED]
    assert len(program(targets, where, once=False)) == 4
