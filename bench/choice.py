"""`slackwater bench choice`: is the way that is chosen the cheapest?

For TPC-H and TPC-DS views and changes of several sizes: the way that a refresh would choose, and
what every way takes, each tried so often on the same state and taken back (once, if it took five
times as long as another way). A way whose states are not there is tried with states built before,
which is not counted. A choice is right where it is within 10% of the cheapest, or less than 50 ms
dearer: of the ways that it could take then, and of all.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import slackwater
from bench import corpus
from bench.streams import apply, load, stream_of, texts
from slackwater.planner.choice import INCREMENTAL, PLAIN
from slackwater.work.trying import Tried, try_ways

SHARES = (0.0001, 0.001, 0.01, 0.1, 0.5)
NEAR, TIE = 1.1, 0.05
ALWAYS = (INCREMENTAL, PLAIN)
"""What choices are compared with."""
OF_ALL = "_of_all"
OnStage = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Settings:
    """What to measure."""

    scale: float = 0.1
    shares: tuple[float, ...] = SHARES
    kinds: tuple[str, ...] = corpus.KINDS
    queries: tuple[str, ...] = ()
    """Names of queries of both corpora; TPC-H's 22 and some of TPC-DS's when there are none."""
    repeat: int = 3
    engines: tuple[str, ...] = ("local", "spark")
    seed: int = 7
    data: Path | None = None
    spark_master: str = "local[*]"

    def texts(self, kind: str) -> dict[str, str]:
        """The chosen queries of a corpus."""
        return texts(kind, self.queries)


def run(settings: Settings, on_stage: OnStage | None = None, spark: Any = None) -> dict[str, Any]:
    """Measure, and tell."""
    lines: list[dict[str, Any]] = []
    stages = sum((1 + len(settings.shares)) * len(settings.texts(k)) for k in settings.kinds)
    done = 0

    def stage(what: str) -> None:
        nonlocal done
        if on_stage is not None:
            on_stage(what, done, stages)
        done += 1

    data = settings.data or corpus.data_folder()
    data.mkdir(parents=True, exist_ok=True)
    for kind in settings.kinds:
        with tempfile.TemporaryDirectory(dir=data, prefix="bench-") as folder:
            lines += _of_corpus(kind, settings, Path(folder), stage, spark)
    return report(settings, lines)


def _of_corpus(
    kind: str, settings: Settings, folder: Path, stage: Callable[[str], None], spark: Any
) -> list[dict[str, Any]]:
    files = corpus.generate(kind, settings.scale, settings.data)
    stream: Any = stream_of(kind, files, settings.shares, settings.seed)
    placement = "auto" if len(settings.engines) > 1 else settings.engines[0]
    options = {"spark": spark, "spark_master": settings.spark_master, "refresh": "incremental"}
    lines = []
    with slackwater.connect(folder / "w", placement=placement, **options) as db:
        load(db, kind, stream.at_first(folder / "first"))
        if "spark" in settings.engines:
            _warm(db)
        for name, text in settings.texts(kind).items():
            stage(f"{kind} {name}: first computation")
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {text}")
            db.refresh(name)
        for batch in stream.batches:
            apply(db, stream.change(batch))
            for name in settings.texts(kind):
                stage(f"{kind} {name}: {batch.share:.2%} changed")
                choice, tried = try_ways(db._house, name, settings.repeat)
                lines.append(_line(kind, name, batch.share, choice.chosen, tried))
                db.refresh(name)
    return lines


def _warm(db: slackwater.Warehouse) -> None:
    """Start Spark: what its start costs is not what is compared."""
    db.spark.range(1).collect()


def _line(
    kind: str, name: str, share: float, chosen: Any, tried: Sequence[Tried]
) -> dict[str, Any]:
    ways = [
        {
            "method": way.candidate.method,
            "engine": way.candidate.engine,
            "possible": way.is_possible,
            "expected": way.candidate.cpu,
            "cpu_seconds": median(way.cpu),
            "seconds": median(way.seconds),
            "work": list(way.candidate.work.amounts),
        }
        for way in tried
    ]
    return {
        "corpus": kind,
        "query": name,
        "change": share,
        "chosen": {"method": chosen.method, "engine": chosen.engine},
        "ways": ways,
    }


# -- how good it was


def report(settings: Settings, lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Every line with the regret of the choice, and the share of right ones, beside what always
    doing the same would have given."""
    told = [line | _judged(line) for line in lines]
    ways = [f"{method}, {engine}" for method in ALWAYS for engine in settings.engines]
    always = {way: _scores(told, way) for way in ways}
    return {"sf": settings.scale, "lines": told, **_scores(told, "regret"), "always": always}


def _scores(lines: Sequence[dict[str, Any]], what: str) -> dict[str, Any]:
    """How often something was right, and what it took more than was necessary: among the ways that
    could be taken, and among all, had the states of each been there."""
    of_all = f"{what}{OF_ALL}"
    return {
        "right": _right(lines, what),
        "regret_seconds": _sum(lines, what),
        "of_all": {
            "right": _right(lines, of_all, "best_of_all"),
            "regret_seconds": _sum(lines, of_all),
        },
    }


def _judged(line: dict[str, Any]) -> dict[str, Any]:
    """How much dearer than the cheapest possible way the chosen one is, and each other; and than
    the cheapest of all, had its states been there."""
    every = {(w["method"], w["engine"]): w["cpu_seconds"] for w in line["ways"]}
    could = {(w["method"], w["engine"]) for w in line["ways"] if w.get("possible", True)}
    took = {way: seconds for way, seconds in every.items() if way in could}
    best, of_all = min(took.values()), min(every.values())
    chosen = took[line["chosen"]["method"], line["chosen"]["engine"]]
    found: dict[str, Any] = {"best": best, "regret": chosen - best}
    found |= {"best_of_all": of_all, f"regret{OF_ALL}": chosen - of_all}
    for method in ALWAYS:
        for engine in ("local", "spark"):
            way, own = f"{method}, {engine}", took.get((method, engine))
            found[way] = None if own is None else own - best
            found[f"{way}{OF_ALL}"] = None if own is None else own - of_all
    return found


def _sum(lines: Sequence[dict[str, Any]], what: str) -> float:
    return float(sum(line[what] or 0.0 for line in lines))


def _right(lines: Sequence[dict[str, Any]], what: str, best: str = "best") -> float:
    """The share of lines where a way was right; one that is not possible is not."""
    good = [
        line[what] is not None and line[what] <= max(TIE, (NEAR - 1) * line[best]) for line in lines
    ]
    return sum(good) / len(good) if good else 1.0
