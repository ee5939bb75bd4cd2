"""What of a statement is computed apart: few parts, however much there is to it."""

from __future__ import annotations

from slackwater.algebra.expr import columns
from slackwater.algebra.relation import Distinct, Project, Relation, Scan, Union
from slackwater.engine.programs import HEAVY
from slackwater.engine.sharing import most_repeated
from slackwater.types import BIGINT, Field

CHANGE = Scan("t@change", "t", (Field("a", BIGINT),))


def _long(relation: Relation, operators: int) -> Relation:
    """So many more operators."""
    for i in range(operators):
        relation = Project(relation, columns(relation.schema), (f"c{i}_{relation.schema[0].name}",))
    return relation


def _shared(relation: Relation, operators: int) -> Relation:
    """A part that is read twice, behind which there are so many more operators."""
    part = Distinct(_long(relation, operators - 1))
    return Union((part, _long(part, 1)))


def _parts(count: int, operators: int) -> Relation:
    """Several such parts, none made of another."""
    own = [_shared(_long(CHANGE, i + 1), operators) for i in range(count)]
    return Union(tuple(own))


def test_two_heavy_parts_are_computed_apart() -> None:
    assert most_repeated([("v", _parts(2, 30))], {}) == HEAVY[0]


def test_of_more_the_lighter_ones_are_repeated() -> None:
    assert most_repeated([("v", _parts(3, 28))], {}) == HEAVY[1]
    assert most_repeated([("v", _parts(3, 50))], {}) == HEAVY[2]


def test_very_heavy_ones_are_computed_apart_however_many_there_are() -> None:
    assert most_repeated([("v", _parts(4, 200))], {}) == HEAVY[-1]


def test_an_output_that_later_ones_read_is_a_part_too() -> None:
    state = _long(CHANGE, 30)
    reading = Scan("s@change", "s", state.schema)
    outputs = [("s", state), ("v", Union((_parts(2, 30), _long(reading, 1))))]
    assert most_repeated(outputs, {"s@change": "s"}) == HEAVY[1]
    assert most_repeated(outputs[:1], {}) == HEAVY[0]


def test_what_begins_with_no_change_has_no_parts() -> None:
    table = Scan("t", "t", CHANGE.fields)
    parts = Union(tuple(_shared(_long(table, i), 40) for i in (1, 2, 3)))
    assert most_repeated([("v", parts)], {}) == HEAVY[0]
