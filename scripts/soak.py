"""Kills a stream of changes, refreshes and compactions at random, and looks for lost rows.

    python -m scripts.soak --kills 200 --minutes 30
    python -m scripts.soak --seed 4711          # the same kills again

After every kill the next process opens the warehouse, compares every table with what the stream
wrote and every view with a recompute, and goes on. Exit code 0 if all went well, 1 after a
failure; the warehouse is then kept for a look.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.killing import build, finish, kill_one

REPORT_SECONDS = 10


def main() -> int:
    """Kill until it was often enough or the time is over."""
    options = _options()
    seed = options.seed if options.seed is not None else int(time.time())
    path = Path(tempfile.mkdtemp(prefix="slackwater-soak-")) / "warehouse"
    print(f"seed {seed}, at most {options.kills} kills and {options.minutes:g} minutes", flush=True)
    build(path)
    try:
        killed = _kill(path, seed, options.kills, options.minutes * 60)
        runs = finish(path, seed)
    except AssertionError as failure:
        print(f"seed {seed} FAILED, the warehouse is in {path}:\n{failure}")
        return 1
    shutil.rmtree(path.parent)
    print(f"no row lost or doubled in {killed.total()} kills (seed {seed})")
    for (kind, state), count in sorted(runs.items()):
        print(f"  {kind} runs {state}: {count}")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--kills", type=int, default=200, help="how many (default 200)")
    parser.add_argument("--minutes", type=float, default=30.0, help="how long (default 30)")
    parser.add_argument("--seed", type=int, help="as a run prints it (default: by the clock)")
    return parser.parse_args()


def _kill(path: Path, seed: int, kills: int, seconds: float) -> Counter[str]:
    """Kill the stream again and again; at which points how often."""
    rng = random.Random(seed)
    started = told = time.monotonic()
    killed: Counter[str] = Counter()
    while killed.total() < kills and time.monotonic() - started < seconds:
        killed[kill_one(path, seed, rng).partition(":")[0]] += 1
        if time.monotonic() - told > REPORT_SECONDS:
            told = time.monotonic()
            print(f"{told - started:,.0f} s: {killed.total()} kills", flush=True)
    print(", ".join(f"{point} {count}" for point, count in sorted(killed.items())))
    return killed


if __name__ == "__main__":
    sys.exit(main())
