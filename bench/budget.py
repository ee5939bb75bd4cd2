"""`slackwater bench budget`: what states bring under a budget (DISS; 000, 5.4).

Flat TPC-H queries (select, project, join, aggregate) as views, in three ways beside each other:

    recompute   computed anew after every change; nothing is kept
    all         every state: sums, rows, and each part of a join around what changes most, and the
                parts of those, as higher-order maintenance has them
    budget      those that pay for the change that is expected next, within `state_budget`

Every result is compared with the one that was computed anew.
"""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from bench import corpus
from bench.budget_trials import (
    ANEW,
    CHANGING,
    Sample,
    Sizes,
    Trial,
    Way,
    arriving,
    cleaned,
    only,
)
from bench.row_changes import RowStream
from slackwater.errors import UserError, nearest
from slackwater.tvr.methods.divided import Injected

QUERIES = tuple("q1 q3 q5 q6 q7 q8 q9 q10 q12 q14 q19".split())
MANY_JOINS = ("q3", "q7", "q8", "q9")
PARTS = ("late", "budgets", "prediction", "deletes", "injected", "cleaning")
LATE = (0.09, 0.009, 0.001)
FRACTIONS = (0.0, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
WRONG = 30.0
SIZES = {"small": 0.01, "large": 0.3}
GOING = (0.0, 0.25, 0.5, 0.75, 1.0)
INJECTED = {"every table": CHANGING, "lineitem": ("lineitem",), "orders": ("orders",)}
"""What changes, where parts of joins are kept or not."""
OF_Q8 = ("lineitem", "orders", "part", "customer", "supplier")
"""The tables of q8 that change, the largest first."""
CLEANED = ("supplier", "customer", "part", "orders", "lineitem")
ROOM = "1 TB"
OnStage = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Settings:
    """What to measure."""

    scale: float = 0.1
    what: tuple[str, ...] = PARTS
    queries: tuple[str, ...] = QUERIES
    cleaning_batches: int = 4
    """Batches for each table that is cleaned."""
    engine: str = "auto"
    spark_master: str = "local[*]"
    seed: int = 7
    data: Path | None = None

    def __post_init__(self) -> None:
        for given, known in ((self.what, PARTS), (self.queries, QUERIES)):
            if unknown := [name for name in given if name not in known]:
                raise UserError(
                    f"'{unknown[0]}' is not known.",
                    code="BAD_OPTION",
                    hint=nearest(unknown[0], known) or f"Choose from {', '.join(known)}.",
                )

    def among(self, queries: Sequence[str]) -> tuple[str, ...]:
        """Those of some queries that were asked for."""
        return tuple(q for q in queries if q in self.queries)


def run(settings: Settings, on_stage: OnStage | None = None) -> dict[str, Any]:
    """Measure; all that was measured, as plain data."""
    bench = _Bench(settings, on_stage or (lambda *_: None))
    for what in settings.what:
        getattr(bench, what)()
    return bench.told()


class _Bench:
    """One run."""

    def __init__(self, settings: Settings, on_stage: OnStage) -> None:
        self.settings = settings
        self._on_stage = on_stage
        self._stages = 0
        self._found: dict[str, list[dict[str, Any]]] = {}
        self._problems: list[str] = []
        self._refreshes = 0

    def told(self) -> dict[str, Any]:
        """Everything."""
        return {
            "sf": self.settings.scale,
            "engine": self.settings.engine,
            "seed": self.settings.seed,
            "cores": os.cpu_count(),
            "machine": platform.platform(),
            "refreshes": self._refreshes,
            "exact": not self._problems,
            "problems": self._problems,
            **self._found,
        }

    # -- parts

    def late(self) -> None:
        """000, 5.4.3: 90% at first, then 9%, 0.9% and 0.1% of all tables but region and nation."""
        ways = (Way(ANEW), Way("all", ROOM, everything=True), Way("budget", ROOM))
        samples = self._play("late", self._arriving(LATE), self.settings.queries, ways)
        self._found["late"] = [_line(samples, q, ways) for q in self.settings.queries]

    def budgets(self) -> None:
        """000, 5.4.5: a change of 1%, at parts of the bytes that all states take."""
        lines = []
        for query in self.settings.queries:
            stream = self._arriving((0.01, 0.01))
            probe = (Way(ANEW), Way("all", ROOM, everything=True))
            before = self._play(f"budgets {query}", stream, (query,), probe)
            most = max(s.state_bytes for s in before if s.way == "all")
            ways = [
                Way(f"budget {fraction:g}", f"{int(fraction * most)} B") for fraction in FRACTIONS
            ]
            ways.append(Way("unlimited", ROOM))
            after = self._play(f"budgets {query}", stream, (query,), (Way(ANEW), *ways))
            lines.append(_line([*before, *after], query, (*probe, *ways)) | {"all_bytes": most})
        self._found["budgets"] = lines

    def prediction(self) -> None:
        """000, 5.4.4: sizes wrong by a factor of 30, at every budget, and too many or too few
        tables."""
        lines: list[dict[str, Any]] = []
        for query in self.settings.among(("q8",)):
            for name, share in SIZES.items():
                lines += self._sizes(query, name, share)
            lines += self._tables(query)
        self._found["prediction"] = lines

    def _sizes(self, query: str, name: str, share: float) -> Iterator[dict[str, Any]]:
        """One change, expected rightly and wrongly, at parts of the bytes that all states take."""
        stream = only(self._arriving((share,)), OF_Q8)
        factor = WRONG if name == "small" else 1 / WRONG
        probe = (Way(ANEW), Way("all", ROOM, everything=True))
        samples = self._play(f"prediction {name}", stream, (query,), probe)
        most = max(s.state_bytes for s in samples)
        rooms = {f"{fraction:g}": f"{int(fraction * most)} B" for fraction in FRACTIONS}
        rooms["unlimited"] = ROOM
        ways = [Way(f"right {at}", room) for at, room in rooms.items()]
        ways += [Way(f"wrong {at}", room, predicts=_times(factor)) for at, room in rooms.items()]
        samples = self._play(f"prediction {name}", stream, (query,), (Way(ANEW), *ways))
        found = _line(samples, query, (Way(ANEW), *ways))
        for at in rooms:
            own = {"right": found[f"right {at}"], "wrong": found[f"wrong {at}"]}
            told = {"query": query, ANEW: found[ANEW], **own, "all_bytes": most}
            yield told | {"change": f"{name}, room {at}", "room": at}

    def _tables(self, query: str) -> Iterator[dict[str, Any]]:
        for count in range(1, len(OF_Q8) + 1):
            some = OF_Q8[:count]
            ways = (Way(ANEW), Way("right", ROOM), Way("wrong", ROOM, predicts=_every))
            stream = only(self._arriving((0.003,) * 3), some)
            samples = self._play(f"prediction {count} change", stream, (query,), ways)
            yield _line(samples, query, ways) | {"change": f"all expected, {count} change"}
            if count < len(OF_Q8):
                ways = (Way(ANEW), Way("right", ROOM), Way("wrong", ROOM, predicts=_few(some)))
                stream = only(self._arriving((0.003,) * 3), OF_Q8)
                samples = self._play(f"prediction {count} expected", stream, (query,), ways)
                yield _line(samples, query, ways) | {"change": f"{count} expected, all change"}

    def deletes(self) -> None:
        """000, 5.4.7: of a change of 1%, a part goes."""
        lines = []
        for going in GOING:
            ways = (Way(ANEW), Way("all", ROOM, everything=True), Way("budget", ROOM))
            stream = self._arriving((0.01, 0.01), going)
            samples = self._play(f"deletes {going:.0%}", stream, self.settings.queries, ways)
            lines += [
                _line(samples, query, ways) | {"going": going} for query in self.settings.queries
            ]
        self._found["deletes"] = lines

    def injected(self) -> None:
        """000, 5.4.6: with sums and rows alone; with what operators give in the order of the query
        to choose from, too; and with all parts of joins. All tables change, or one at a time."""
        lines = []
        ways = (
            Way(ANEW),
            Way("without", ROOM, injected=Injected.NOTHING),
            Way("materialize", ROOM, injected=Injected.GIVEN),
            Way("with", ROOM),
        )
        queries = self.settings.among(MANY_JOINS)
        for name, tables in INJECTED.items():
            stream = only(self._arriving((0.01, 0.01)), tables)
            samples = self._play(f"injected {name}", stream, queries, ways)
            lines += [_line(samples, query, ways) | {"changes": name} for query in queries]
        self._found["injected"] = lines

    def cleaning(self) -> None:
        """000, 5.4.3: a fifth of each table comes late, one table after the other."""
        own = self.settings
        found = list(cleaned(own.scale, 0.2, CLEANED, own.cleaning_batches, own.seed, own.data))
        files = corpus.generate("tpch", own.scale, own.data)
        stream = RowStream(files, tuple(batch for _, batch in found))
        ways = (Way(ANEW), Way("all", ROOM, everything=True), Way("budget", ROOM))
        samples = self._play("cleaning", stream, own.among(("q8",)), ways)
        tables = ["", *(table for table, _ in found)]
        self._found["cleaning"] = [
            sample.to_json() | {"table": tables[sample.batch]} for sample in samples
        ]

    # -- playing

    def _arriving(self, shares: Sequence[float], going: float = 0.0) -> RowStream:
        own = self.settings
        return arriving(own.scale, shares, own.seed, own.data, going)

    def _play(
        self, label: str, stream: RowStream, queries: Sequence[str], ways: Sequence[Way]
    ) -> list[Sample]:
        data = self.settings.data or corpus.data_folder()
        data.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=data, prefix="bench-") as folder:
            trial = Trial(
                Path(folder),
                stream,
                queries,
                ways,
                self._stage,
                label,
                self.settings.engine,
                self.settings.spark_master,
            ).run()
        self._problems += trial.problems
        self._refreshes += len(trial.samples)
        return trial.samples

    def _stage(self, what: str) -> None:
        self._on_stage(what, self._stages, max(self._stages + 1, self._expected))
        self._stages += 1

    @property
    def _expected(self) -> int:
        """Roughly, how many stages there are."""
        count = len(self.settings.queries)
        each = {
            "late": 4 * count,
            "budgets": 6 * count,
            "prediction": 2 * 2 * 2 + 9 * 4,
            "deletes": 3 * len(GOING) * count,
            "injected": 3 * len(INJECTED) * len(self.settings.among(MANY_JOINS)),
            "cleaning": 1 + len(CLEANED) * self.settings.cleaning_batches,
        }
        return sum(each[what] for what in self.settings.what)


def _times(factor: float) -> Callable[[Sizes], Sizes]:
    return lambda sizes: {table: change.times(factor) for table, change in sizes.items()}


def _every(sizes: Sizes) -> Sizes:
    """All tables are expected to change as much as the one that changes least does."""
    some = min((change for change in sizes.values() if change.rows), key=lambda c: c.rows)
    return {table: change if change.rows else some for table, change in sizes.items()}


def _few(tables: Sequence[str]) -> Callable[[Sizes], Sizes]:
    return lambda sizes: {table: change for table, change in sizes.items() if table in tables}


def _line(samples: Sequence[Sample], query: str, ways: Sequence[Way]) -> dict[str, Any]:
    """One query: for each way the first computation, the mean of the changes, and the room."""
    told: dict[str, Any] = {"query": query}
    for way in ways:
        own = [s for s in samples if s.query == query and s.way == way.name]
        first, later = [s for s in own if not s.batch], [s for s in own if s.batch]
        told[way.name] = {
            "first_seconds": mean(s.seconds for s in first),
            "first_cpu_seconds": mean(s.cpu_seconds for s in first),
            "seconds": mean(s.seconds for s in later),
            "cpu_seconds": mean(s.cpu_seconds for s in later),
            "state_bytes": max(s.state_bytes for s in own),
            "modes": [s.mode for s in later],
            "kept": list(later[-1].kept),
            "each": [s.cpu_seconds for s in later],
        }
    return told
