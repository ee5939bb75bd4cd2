"""Semi and anti joins by how many partners a key has: what is read, and what is found."""

from __future__ import annotations

import pytest

from slackwater import Warehouse
from slackwater.algebra.relation import Join, Relation
from slackwater.tvr.delta import Deltas
from slackwater.tvr.laws.partners import delta_by_partners
from tests.test_laws import SCHEMAS, bound

OVER_A_JOIN = "SELECT a FROM r WHERE b IN (SELECT t.c FROM t JOIN u ON t.a = u.b)"
OVER_GROUPS = "SELECT a FROM r WHERE b IN (SELECT a FROM t GROUP BY a HAVING SUM(c) > 2)"


def _read(text: str) -> tuple[Deltas, Join, list[Relation]]:
    """After a change of t: what is asked, the semi join, and all that its change is computed from
    besides the change of its right side."""
    join = next(n for n in bound(text).walk() if isinstance(n, Join) and n.how != "inner")
    deltas = Deltas(frozenset("t"), frozenset(SCHEMAS))
    found = delta_by_partners(deltas, join)
    assert found is not None
    assert deltas.notes[join].law == "partners_by_count"
    change = set(deltas.sure(join.right).walk())
    return deltas, join, [node for node in found.walk() if node not in change]


def test_what_partners_are_looked_for_in_is_computed_as_it_is_now_alone() -> None:
    _, _, read = _read(OVER_A_JOIN)
    joins = [node for node in read if isinstance(node, Join) and node.how == "inner"]
    assert len([j for j in joins if {scan.name for scan in j.scans()} == {"t", "u"}]) == 1


def test_where_keys_are_there_once_the_change_tells_all() -> None:
    deltas, join, read = _read(OVER_GROUPS)
    assert deltas.z(join.left) in read
    assert deltas.rows(join.right) not in read
    assert deltas.z(join.right) not in read


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM r WHERE EXISTS (SELECT 1 FROM t WHERE t.a = r.a AND t.c <> r.b)",
        "SELECT a FROM r WHERE EXISTS (SELECT 1 FROM t WHERE t.a <=> r.a)",
    ],
    ids=["more than equality", "NULLs are equal"],
)
def test_other_joins_have_another_law(text: str) -> None:
    join = next(n for n in bound(text).walk() if isinstance(n, Join))
    assert delta_by_partners(Deltas(frozenset("t")), join) is None


def test_the_first_partner_and_the_last_one_count(any_db: Warehouse) -> None:
    """Others do not, nor do NULLs; a key that loses one partner and finds another stays."""
    any_db.sql("CREATE TABLE r (a INT, b INT); CREATE TABLE t (c INT); CREATE TABLE u (c INT)")
    any_db.sql("INSERT INTO r VALUES (1, 1), (2, 2), (2, 2), (3, 3), (4, NULL)")
    any_db.sql("INSERT INTO t VALUES (1), (2), (2), (NULL); INSERT INTO u VALUES (1), (2), (3)")
    among = "(SELECT t.c FROM t JOIN u ON t.c = u.c)"
    any_db.sql(f"CREATE MATERIALIZED VIEW present AS SELECT a FROM r WHERE b IN {among}")
    any_db.sql(f"""CREATE MATERIALIZED VIEW absent AS
        SELECT a FROM r WHERE NOT EXISTS (SELECT 1 FROM {among} x WHERE x.c = r.b)""")
    any_db.refresh()
    for change, present, absent in (
        ("DELETE FROM u WHERE c = 1", [2, 2], [1, 3, 4]),
        ("INSERT INTO t VALUES (3)", [2, 2, 3], [1, 4]),
        ("INSERT INTO u VALUES (2), (NULL)", [2, 2, 3], [1, 4]),
        ("DELETE FROM t WHERE c = 2; INSERT INTO t VALUES (2)", [2, 2, 3], [1, 4]),
        ("DELETE FROM t WHERE c = 2; INSERT INTO u VALUES (1)", [1, 3], [2, 2, 4]),
    ):
        any_db.sql(change)
        reports = any_db.refresh()
        assert {report.mode for report in reports} <= {"incremental", "none"}
        for view, expected in (("present", present), ("absent", absent)):
            rows = any_db.sql(f"SELECT a FROM {view} ORDER BY a").fetchall()
            assert rows == [(a,) for a in expected], (change, view)
