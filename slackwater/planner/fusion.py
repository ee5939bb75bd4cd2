"""Statements fused into blocks (002, 5.3.2): what can be done at once, and how few times rows move.

Every statement has a mode: moves, and what is computed for the driver, run on the driver; all else
on the workers. In *single transformer form* a statement is a move of something stored, or has no
move in it. What several statements move the same way is moved once. Then blocks of one mode are put
together as far as nothing between them stands in the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from slackwater.algebra.relation import Relation, Scan
from slackwater.planner.places import DRIVER, Move, Place, Where, placed
from slackwater.tvr.time import OLD, split

LOCAL, DISTRIBUTED = "local", "distributed"


@dataclass(frozen=True)
class Statement:
    """Rows that are computed and added to something."""

    target: str
    relation: Relation
    mode: str

    @property
    def reads(self) -> frozenset[str]:
        """The names of what it is computed from, as it is after this refresh."""
        scanned = (split(scan.source) for scan in self.relation.scans())
        return frozenset(id for id, time in scanned if time != OLD)

    def commutes(self, other: Statement) -> bool:
        """May it as well come after what comes after it?"""
        return self.target not in other.reads and other.target not in self.reads


@dataclass(frozen=True)
class Block:
    """Statements that run in one go, in one mode."""

    mode: str
    statements: tuple[Statement, ...]

    def commutes(self, other: Block) -> bool:
        """May it as well come after what comes after it?"""
        return all(s.commutes(t) for s in self.statements for t in other.statements)


@dataclass(frozen=True)
class Target:
    """What is computed for something stored, and where that is."""

    name: str
    relation: Relation
    place: Place


def program(targets: Sequence[Target], where: Where, once: bool = True) -> list[Statement]:
    """The statements of a refresh, each with at most one move. `once`: what several need is made
    and moved once."""
    found = _Single(once)
    for target in targets:
        own = placed(target.relation, where, target.place)
        rest = found.without_moves(own.relation)
        mode = LOCAL if target.place == DRIVER else DISTRIBUTED
        found.statements.append(Statement(target.name, rest, mode))
    return found.statements


class _Single:
    """Single transformer form: moves get statements of their own."""

    def __init__(self, once: bool) -> None:
        self._once = once
        self.statements: list[Statement] = []
        self._stored: dict[Relation, Scan] = {}

    def without_moves(self, relation: Relation) -> Relation:
        """A relation over what its moves bring."""
        changed: Relation = relation.rewrite(
            lambda node: self._moved(node) if isinstance(node, Move) else node
        )
        return changed

    def _moved(self, move: Move) -> Scan:
        mode = LOCAL if move.source == DRIVER else DISTRIBUTED
        below = move.input
        if not isinstance(below, Scan):
            below = self._store(below, "made", below, mode)
        return self._store(move, move.how, replace(move, input=below), LOCAL)

    def _store(self, node: Relation, what: str, relation: Relation, mode: str) -> Scan:
        if node not in self._stored or not self._once:
            name = f"{what} {len(self.statements) + 1}"
            self._stored[node] = Scan(name, name, node.schema)
            self.statements.append(Statement(name, relation, mode))
        return self._stored[node]


def blocks(statements: Iterable[Statement]) -> list[Block]:
    """Each statement by itself."""
    return [Block(statement.mode, (statement,)) for statement in statements]


def fused(separate: Sequence[Block]) -> list[Block]:
    """As few blocks as reordering what may be reordered gives."""
    found: list[Block] = []
    rest = list(separate)
    while rest:
        head, left = _merged(rest[0], rest[1:])
        if head == rest[0]:
            found.append(head)
            rest = rest[1:]
        else:
            rest = [head, *left]
    return found


def _merged(head: Block, others: Iterable[Block]) -> tuple[Block, list[Block]]:
    """A block with all later ones of its mode that may come before what is between."""
    between: list[Block] = []
    for block in others:
        if block.mode == head.mode and all(b.commutes(block) for b in between):
            head = Block(head.mode, head.statements + block.statements)
        else:
            between.append(block)
    return head, between
