"""How many rows of a relation a change of its sources changes, as refreshes before have shown.

The model of `stats/rows.py` knows values one column at a time. What it says is corrected by what it
would have said of the last refreshes, and what was counted then:

    expected = said · (few + Σ wᵢ · countedᵢ) / (few + Σ wᵢ · saidᵢ)
    wᵢ = likeness of what came · FADING^(refreshes since)
    few = FEW · the share of what was said in what was said and counted

What came is alike as far as the same tables had the same share of inserts, updates and deletes, so
that each kind of change of each table has a selectivity of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np

from slackwater.algebra.relation import Relation
from slackwater.stats.amounts import Amount
from slackwater.stats.rows import Change, Estimates, Rows
from slackwater.stats.sound import sound
from slackwater.stats.updates import Updated
from slackwater.stats.values import Known

FEW = 1.0
"""Rows that the model is worth: where few were said and counted, they say little."""
LEAST = 1e-9
"""Of less rows nobody tells how many times too few they are."""
FADING = 0.7
"""What a refresh counts for after one more."""
MOST = 8
"""The newest so many refreshes count."""

Sources = Mapping[str, Rows]


def result(relation: Relation) -> str:
    """What stands for the rows of a view or part; for a state, the digest of its operator does."""
    return f"={relation.digest()}"


@dataclass(frozen=True, slots=True)
class Seen:
    """A refresh by changes: its sources, and how many rows of a relation it changed."""

    sources: Sources
    rows: float


@dataclass(frozen=True)
class Turnover:
    """What was seen of relations, the newest last, by what stands for each of them."""

    seen: Mapping[str, Sequence[Seen]] = field(default_factory=dict)

    @classmethod
    def of(cls, events: Iterable[Mapping[str, Any]]) -> Turnover:
        """What some refreshes showed, the newest last."""
        found: dict[str, list[Seen]] = {}
        for event in events:
            for key, shown in seen(event):
                found.setdefault(key, []).append(shown)
        return cls({key: shown[-MOST:] for key, shown in found.items()})

    def factor(
        self,
        key: str,
        node: Relation,
        now: Sources,
        known: Known,
        names: Mapping[str, str] | None = None,
    ) -> float | None:
        """How many times the rows that the model says for a relation are to be expected; None
        where nothing was seen of it. `names`: what its sources were called then."""
        read = {scan.source for scan in node.scans()}
        names = names or {name: name for name in now if name in read}
        found = [s for s in self.seen.get(key, ()) if all(n in s.sources for n in names.values())]
        if not found:
            return None
        then = {name: _together([s.sources[old] for s in found]) for name, old in names.items()}
        said = np.broadcast_to(Estimates(then, known).of(node).change.rows, len(found))
        came = [{name: s.sources[old].change for name, old in names.items()} for s in found]
        comes = {name: now[name].change for name in names}
        weights = np.array(
            [FADING**age * alike(own, comes) for age, own in enumerate(reversed(came))][::-1]
        )
        counted = np.array([s.rows for s in found])
        return _ratio(float((weights * counted).sum()), float((weights * said).sum()))

    def expected(self, key: str, node: Relation, now: Sources, known: Known) -> Amount | None:
        """The rows by which a relation changes; None where nothing was seen of it."""
        factor = self.factor(key, node, now, known)
        return None if factor is None else factor * Estimates(now, known).of(node).change.rows

    def corrected(
        self, query: Relation, now: Sources, known: Known, updated: Updated | None = None
    ) -> Estimates:
        """The rows of every operator of a query, by what was seen where anything was."""
        found, said = (Estimates(now, known, updated) for _ in range(2))
        for key, node in _keys(query):
            factor = self.factor(key, node, now, known) if key in self.seen else None
            if factor is not None:
                rows = said.of(node)
                found.tell(node, Rows(rows.before, rows.change.times(factor)))
        return found


def _keys(query: Relation) -> Iterator[tuple[str, Relation]]:
    """The operators of a query and, last, its result, each with what stands for it."""
    yield from ((node.digest(), node) for node in query.walk())
    yield result(query), query


def seen(event: Mapping[str, Any]) -> Iterator[tuple[str, Seen]]:
    """What an event shows, by what stands for each relation; nothing where it does not."""
    shown = event.get("turnover") or {}
    sources = {
        id: Rows(sound(before, 0.0), Change(*kinds).sound)
        for id, (before, *kinds) in (shown.get("sources") or {}).items()
    }
    for key, rows in (shown.get("rows") or {}).items():
        yield key, Seen(sources, sound(rows, 0.0))


def _ratio(counted: float, said: float) -> float:
    """Of what was counted to what was said, nearer to one where both are few."""
    if said <= LEAST:  # nothing times whatever is nothing
        return 1.0
    few = FEW * said / (said + counted)
    return (few + counted) / (few + said)


def alike(one: Mapping[str, Change], other: Mapping[str, Change]) -> float:
    """From 0, nothing of the same kind came to the same source, to 1: the same mixture did.

    >>> inserts, deletes = {"t": Change(10)}, {"t": Change(0, 0, 5)}
    >>> alike(inserts, {"t": Change(500)}), alike(inserts, deletes)
    (1.0, 0.0)
    """
    a, b = (_mixture(came) for came in (one, other))
    length = sqrt(sum(x * x for x in a.values()) * sum(x * x for x in b.values()))
    return sum(a[kind] * b.get(kind, 0.0) for kind in a) / length if length else 0.0


def _mixture(came: Mapping[str, Change]) -> dict[tuple[str, int], float]:
    """Rows by source and kind."""
    return {
        (source, i): float(np.sum(rows))
        for source, change in came.items()
        for i, rows in enumerate((change.inserts, change.updates, change.deletes))
    }


def _together(rows: Sequence[Rows]) -> Rows:
    """Many cases at once."""
    kinds = (
        np.array([getattr(r.change, kind) for r in rows])
        for kind in ("inserts", "updates", "deletes")
    )
    return Rows(np.array([r.before for r in rows]), Change(*kinds))  # type: ignore[arg-type]
