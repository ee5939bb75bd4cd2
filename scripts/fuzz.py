"""Random view-streams, on and on, until one fails; then the smallest case that still does.

    python -m scripts.fuzz --hours 8
    python -m scripts.fuzz --seed 4711          # that stream alone, shrunk if it fails

Exit code 0 if all went well, 1 after a failure.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.shrinking import Shrinker, failing
from tests.stream_script import script
from tests.streams import Failure, Opening, Outcome, Stream, make_stream, opening, play

REPORT_SECONDS = 10


def main() -> int:
    """Play streams until the time is over or one fails."""
    options = _options()
    opened = opening() if options.placement == "local" else opening(placement=options.placement)
    if options.seed is not None:
        stream = make_stream(options.seed, options.views, spark=options.placement != "local")
        failure = failing(stream, opened)
        if failure is None:
            print(f"seed {options.seed}: no failure")
            return 0
        return _told(options, options.seed, stream, failure, opened)
    return _play_on(options, opened)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--hours", type=float, default=8.0, help="how long (default 8)")
    parser.add_argument("--first", type=int, help="the first seed (default: by the clock)")
    parser.add_argument("--seed", help="one seed, as a failing test prints it")
    parser.add_argument("--placement", default="local", choices=["local", "auto", "spark"])
    parser.add_argument("--views", type=int, default=8, help="in a stream (default 8)")
    parser.add_argument("--shrink-seconds", type=float, default=600.0)
    return parser.parse_args()


def _play_on(options: argparse.Namespace, opened: Opening) -> int:
    started = told = time.monotonic()
    seed = options.first if options.first is not None else int(time.time())
    total = Outcome()
    print(f"first seed {seed}", flush=True)
    while time.monotonic() - started < options.hours * 3600:
        stream = make_stream(seed, options.views, spark=options.placement != "local")
        try:
            total.add(play(stream, opened))
        except Failure as failure:
            print(f"after {total}")
            return _told(options, seed, stream, failure, opened)
        seed += 1
        if time.monotonic() - told > REPORT_SECONDS:
            told = time.monotonic()
            print(f"{told - started:,.0f} s, next seed {seed}: {total}", flush=True)
    print(f"no failure: {total}")
    return 0


def _told(
    options: argparse.Namespace, seed: object, stream: Stream, failure: Failure, opened: Opening
) -> int:
    print(f"seed {seed} FAILED: {failure}\n\nshrinking …", flush=True)
    shrinker = Shrinker(stream, failure, opened, options.shrink_seconds)
    smallest = shrinker.shrink()
    print(f"\nthe smallest case found: {shrinker.failure}\n")
    print(script(smallest, options.placement))
    return 1


if __name__ == "__main__":
    sys.exit(main())
