"""What of a statement is worth computing once: shared parts, if small, reducing or heavy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from slackwater.algebra.relation import (
    Aggregate,
    Bag,
    Distinct,
    Filter,
    Join,
    Project,
    Relation,
    Scan,
    SetOp,
    TopK,
    Window,
)
from slackwater.engine.programs import HEAVY, MOST_APART
from slackwater.tvr.time import CHANGE

_REDUCING = (Aggregate, Bag, Distinct, SetOp, TopK, Window)


class Sharing:
    """How often the operators of a statement are read, and how much there is to them."""

    def __init__(
        self, top: Relation, cuts_heavy: bool, made: Mapping[str, int], most: int = HEAVY[0]
    ) -> None:
        self._cuts_heavy = cuts_heavy
        self._most = most
        self._made = made  # scanned sources behind which there are so many operators
        self._parents = Counter(child for node in top.walk() for child in node.inputs)
        self._small: dict[Relation, bool] = {}
        self._sizes: dict[Relation, int] = {}  # operators, those shared repeated

    def is_shared(self, node: Relation) -> bool:
        """Do several operators read it?"""
        return self._parents[node] > 1

    def is_once(self, node: Relation) -> bool:
        """Worth computing once: what several operators read and what is smaller than its input.
        All else is better seen through by the optimizer, which moves filters into it."""
        if not self.is_shared(node) or isinstance(node, Scan):
            return False
        source = node
        while isinstance(source, Project | Filter):
            source = source.input
        return isinstance(source, _REDUCING) or self.is_small(node) or self.is_heavy(node)

    def is_heavy(self, node: Relation) -> bool:
        """Would an engine that cannot be told to compute it once plan too much of it twice?"""
        return self._cuts_heavy and self.size(node) > self._most

    def size(self, node: Relation) -> int:
        """How many operators there are to plan, those that are shared repeated."""
        for below in node.walk() if node not in self._sizes else ():  # inputs first
            if below not in self._sizes:
                own = self._made.get(below.source, 1) if isinstance(below, Scan) else 1
                self._sizes[below] = own + sum(self._sizes[i] for i in below.inputs)
        return self._sizes[node]

    def cut(self, node: Relation) -> None:
        """From now on it is read like a table."""
        self._sizes[node] = 1

    def is_small(self, node: Relation) -> bool:
        """Is it a part of a change, or cut down to one?"""
        if node not in self._small:
            match node:
                case Scan():
                    small = node.source.endswith(CHANGE)
                case Join(how="inner" | "semi"):
                    small = self.is_small(node.left) or self.is_small(node.right)
                case Join(how="left" | "anti"):
                    small = self.is_small(node.left)
                case _:
                    small = bool(node.inputs) and all(self.is_small(i) for i in node.inputs)
            self._small[node] = small
        return self._small[node]


def reads_change(relation: Relation) -> bool:
    """Does it begin with a change?"""
    return any(scan.source.endswith(CHANGE) for scan in relation.scans())


def most_repeated(outputs: Sequence[tuple[str, Relation]], made_by: Mapping[str, str]) -> int:
    """How many operators a part may have that later statements hold again, such that few parts
    are computed apart. `made_by`: what some scanned sources are made by, of the outputs before."""
    return next((n for n in HEAVY if _apart(outputs, made_by, n) <= MOST_APART), HEAVY[-1])


def _apart(outputs: Sequence[tuple[str, Relation]], made_by: Mapping[str, str], most: int) -> int:
    """How many parts have more operators."""
    sizes: dict[str, int] = {}
    found = 0
    for i, (target, relation) in enumerate(outputs):
        made = {name: sizes[by] for name, by in made_by.items() if by in sizes}
        sharing = Sharing(relation, reads_change(relation), made, most)
        for node in relation.walk():
            if sharing.is_once(node) and sharing.is_heavy(node):
                sharing.cut(node)
                found += 1
        later = (scan.source for _, after in outputs[i + 1 :] for scan in after.scans())
        if any(made_by.get(source) == target for source in later):
            heavy = sharing.size(relation) > most
            sizes[target] = 1 if heavy else sharing.size(relation)
            found += heavy
    return found
