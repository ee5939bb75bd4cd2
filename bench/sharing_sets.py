"""Sets of queries with constraints, as in iShare's experiments (000, 4.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from bench import corpus

TEN = ("q4", "q5", "q7", "q8", "q9", "q15", "q17", "q18", "q20", "q21")
"""Those that overlap most."""
PAIRED = {
    "qa": """SELECT SUM(sum_quantity) AS total_sum_quantity FROM part,
        (SELECT l_partkey, SUM(l_quantity) AS sum_quantity FROM lineitem GROUP BY l_partkey) agg_l
        WHERE p_partkey = l_partkey""",
    "qb": """SELECT ps_partkey, ps_suppkey FROM partsupp,
        (SELECT AVG(sum_quantity) AS avg_quantity FROM part,
            (SELECT l_partkey, SUM(l_quantity) AS sum_quantity FROM lineitem
             GROUP BY l_partkey) agg_l
         WHERE p_partkey = l_partkey AND p_brand = 'Brand#23' AND p_size = 15) of_brand
        WHERE ps_availqty < avg_quantity""",
}
"""QA and QB of 4.4.2."""
PAIRS = {"A": ("q5", "q8"), "B": ("q15", "q7"), "C": ("qa", "qb")}
"""The first one's constraint stays at 1."""


@dataclass(frozen=True)
class Case:
    """Queries, each with the share of its own batch that its last run may take."""

    kind: str
    name: str
    texts: Mapping[str, str]
    constraints: Mapping[str, float]


Make = Callable[[Sequence[float], int, Random], Iterator[Case]]


def _random(constraints: Sequence[float], seeds: int, rng: Random) -> Iterator[Case]:
    texts = corpus.queries("tpch")
    for i in range(seeds):
        drawn = {name: rng.choice(constraints) for name in texts}
        yield Case("random", f"22 queries, random {i + 1}", texts, drawn)


def _even(kind: str, texts: Callable[[], Mapping[str, str]]) -> Make:
    def made(constraints: Sequence[float], seeds: int, rng: Random) -> Iterator[Case]:
        own = texts()
        for share in constraints:
            yield Case(kind, f"{len(own)} queries, {share:g}", own, dict.fromkeys(own, share))

    return made


def _ten() -> dict[str, str]:
    every = corpus.queries("tpch")
    return {name: every[name] for name in TEN}


def _twenty() -> dict[str, str]:
    """The ten, and each with other values: half of the equalities, ranges that overlap by half."""
    folder = corpus.QUERIES / "tpch_varied"
    varied = {f"v{name[1:]}": (folder / f"{name}.sql").read_text() for name in TEN}
    return _ten() | varied


def _pairs(constraints: Sequence[float], seeds: int, rng: Random) -> Iterator[Case]:
    every = corpus.queries("tpch") | PAIRED
    for name, (still, varying) in PAIRS.items():
        texts = {still: every[still], varying: every[varying]}
        for share in constraints:
            wanted = {still: 1.0, varying: share}
            yield Case(f"pair {name}", f"pair {name}, {varying} {share:g}", texts, wanted)


SETS: dict[str, Make] = {
    "random": _random,
    "uniform": _even("uniform", lambda: corpus.queries("tpch")),
    "ten": _even("ten", _ten),
    "twenty": _even("twenty", _twenty),
    "pairs": _pairs,
}
