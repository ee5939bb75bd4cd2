"""An operator cut off from those below it, which are put in as scans; what is done over them.

Rows are those before the change that is expected, after it, and of the change itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from slackwater.algebra.expr import Column
from slackwater.algebra.relation import Relation, Scan
from slackwater.planner.budget import CHANGE, ROWS, Operator, Way
from slackwater.stats.cost import Work, nothing, work_of
from slackwater.stats.derived import Computed
from slackwater.stats.rows import Estimates, Rows
from slackwater.stats.values import Known, Values
from slackwater.tvr import time, zset
from slackwater.tvr.delta import Deltas
from slackwater.tvr.methods.higher_order import Part
from slackwater.tvr.references import Reference
from slackwater.tvr.states import State
from slackwater.types import Field

TIMES = (time.OLD, time.NEW, time.NOW, time.CHANGE)


@dataclass(frozen=True)
class Scene:
    """What is there and what is expected to come: rows by source, what is known of their values,
    what work takes, the sources that are stored with weights, and the references to rely on."""

    rows: Mapping[str, Rows]
    known: Known
    seconds: Callable[[Work], float]
    weighted: frozenset[str] = frozenset()
    references: frozenset[Reference] = frozenset()
    merged: Callable[[Scan], float] = nothing
    """Rows that are hashed to read a source without its weights."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", {id: rows.sound for id, rows in self.rows.items()})

    @cached_property
    def estimates(self) -> Estimates:
        """Of operators over the sources."""
        return Estimates(self.rows, self.known)

    @cached_property
    def changed(self) -> frozenset[str]:
        """The sources that change."""
        return frozenset(id for id, rows in self.rows.items() if rows.change.rows)

    @cached_property
    def at(self) -> At:
        """How many rows there are of anything over the sources alone."""
        return At(self, {}, {})


@dataclass(frozen=True)
class Cut:
    """An operator with those below it put in as scans."""

    scene: Scene
    node: Relation
    tree: Relation
    leaves: tuple[Relation, ...]
    operators: tuple[Operator, ...]
    kept: Mapping[str, tuple[State, Rows]]

    @cached_property
    def at(self) -> At:
        """How many rows there are of anything over it."""
        leaves = {_leaf_id(i): leaf for i, leaf in enumerate(self.leaves)}
        return At(self.scene, leaves, self.kept)

    @property
    def is_whole(self) -> bool:
        """Is no join of it put around an input?"""
        return not any(isinstance(leaf, Part) for leaf in self.leaves)

    @property
    def changes(self) -> bool:
        """Does anything below it?"""
        return time.reads(self.node, self.scene.changed)

    @property
    def nothing(self) -> tuple[int, ...]:
        """Asked of those below."""
        return (0,) * len(self.leaves)

    @cached_property
    def anew(self) -> Way:
        """All rows, with nothing kept."""
        return self.way([self._plain])

    @cached_property
    def _plain(self) -> Relation:
        return zset.with_weight(Deltas(frozenset(), self.scene.weighted).rows(self.tree))

    def deltas(self, states: Mapping[Relation, State]) -> Deltas:
        """For its change."""
        changing = {
            _leaf_id(i)
            for i, leaf in enumerate(self.leaves)
            if time.reads(leaf, self.scene.changed)
        }
        changed = self.scene.changed | changing
        return Deltas(changed, self.scene.weighted, states, references=self.scene.references)

    def way(self, relations: Sequence[Relation], written: Iterable[Relation] = ()) -> Way:
        """What it takes to compute relations over the scans, and to write some, and what of the
        operators below they read."""
        asks = [0] * len(self.leaves)
        for relation in relations:
            for scan in relation.scans():
                id, when = time.split(scan.source)
                if id in self.at.leaves:
                    own = list(self.at.leaves).index(id)
                    asks[own] |= CHANGE if when == time.CHANGE else ROWS
        work = work_of(relations, written, self.at.count, is_given=self._is_given)
        return Way(float(self.scene.seconds(work)), tuple(asks))

    def _is_given(self, scan: Scan) -> bool:
        return time.split(scan.source)[0] in self.at.leaves


class At:
    """The rows of relations over sources, leaves and states at any time."""

    def __init__(
        self,
        scene: Scene,
        leaves: Mapping[str, Relation],
        states: Mapping[str, tuple[State, Rows]],
    ) -> None:
        self.leaves = leaves
        self._scene = scene
        self._states = {id: state for id, (state, _) in states.items()}
        over = {**scene.rows, **{id: rows for id, (_, rows) in states.items()}}
        over |= {id: scene.estimates.of(leaf) for id, leaf in leaves.items()}
        sizes = {id: Rows(rows.after) for id, rows in over.items()}
        for id, rows in over.items():
            counts = (rows.before, rows.after, rows.after, rows.change.rows)
            sizes |= {id + t: Rows(n) for t, n in zip(TIMES, counts, strict=True)}
        self._estimates = Estimates(sizes, self)

    def count(self, relation: Relation) -> float:
        """How many."""
        return float(self._estimates.of(relation).before)

    def values(self, source: str, column: str) -> Values | None:
        """What is known of a column; of a leaf's or a state's, what follows from those below it."""
        id, _ = time.split(source)
        domain = self._scene.estimates.domain
        if id in self._states:
            state = self._states[id]
            return Computed(state.node, state.places, domain).values(column)
        if id not in self.leaves:
            return self._scene.known.values(source, column)
        leaf, place = self.leaves[id], column.removeprefix("c")
        if not place.isdigit():
            return None
        own = leaf.schema[int(place)]
        return Values(domain.distinct(leaf, [Column(own.type, own.nullable, int(place))]))

    def selectivity(self, node: Relation) -> float | None:
        """As it was measured."""
        return self._scene.known.selectivity(node)


def _leaf_id(i: int) -> str:
    return f"leaf{i}"


def leaf(node: Relation, i: int) -> Scan:
    """An operator, put in as a scan."""
    fields = tuple(Field(f"c{k}", f.type, f.nullable) for k, f in enumerate(node.schema))
    return Scan(_leaf_id(i), _leaf_id(i), fields)
