"""Any relation as one SQL statement, or a few, for either engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from slackwater.algebra.relation import Relation
from slackwater.engine.dialects import Dialect
from slackwater.engine.programs import HEAVY, Program
from slackwater.engine.sharing import reads_change
from slackwater.engine.templates import Template, place_of
from slackwater.engine.writer import Inputs, Writer, delivery

MOST_TEMPLATES = 500
"""So many statements are remembered without their inputs."""


def compile_query(
    relation: Relation, dialect: Dialect, inputs: Inputs, names: Sequence[str] | None = None
) -> str:
    """The statement that computes a relation; columns are named `names`, or c0, c1, …"""
    return Writer(dialect, inputs).statement(relation, names)


def compile_program(
    relation: Relation,
    dialect: Dialect,
    inputs: Inputs,
    names: Sequence[str] | None = None,
    prefix: str = "",
    broadcast: Mapping[str, int] | None = None,
    made: Mapping[str, int] | None = None,
    most: int = HEAVY[0],
) -> Program:
    """The same as few statements: what the change of a relation reads several times comes first,
    so that an engine plans the rest with its true size. `prefix` makes names unique. Where the
    change is small, `broadcast` gives the bytes of each source. `made` says how much there is
    behind sources that are statements themselves, `most` how much later statements may repeat.

    Where statements repeat themselves, all but the inputs is written once."""
    wanted = None if names is None else tuple(names)
    if dialect.repeats and not broadcast and not made:
        return _template(relation, dialect, wanted, prefix, most).filled(inputs)
    return _program(relation, dialect, inputs, wanted, prefix, broadcast or {}, made or {}, most)


@lru_cache(MOST_TEMPLATES)
def _template(
    relation: Relation, dialect: Dialect, names: tuple[str, ...] | None, prefix: str, most: int
) -> Template:
    places = {scan.source: place_of(scan.source) for scan in relation.scans()}
    return Template(_program(relation, dialect, places, names, prefix, {}, {}, most))


def _program(
    relation: Relation,
    dialect: Dialect,
    inputs: Inputs,
    names: tuple[str, ...] | None,
    prefix: str,
    broadcast: Mapping[str, int],
    made: Mapping[str, int],
    most: int,
) -> Program:
    apart = reads_change(relation)
    writer = Writer(dialect, inputs, prefix, broadcast, apart, made, most)
    sql = writer.statement(relation, names)
    return Program(tuple(writer.parts), sql, writer.sharing.size(delivery(relation)[0]))
