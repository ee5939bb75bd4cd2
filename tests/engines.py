"""Cases for both engines: all of them on the local one, a seeded sample of them on Spark.

`make proof` runs more of them on Spark.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest

from tests.conftest import SEED


def on_both(
    names: str, cases: Iterable[Any], sample: int, proof: int | None = None
) -> pytest.MarkDecorator:
    """Parametrizes a test over `any_db` and the cases, which are single values or tuples. In
    `make proof`, Spark gets so many of them, or all."""
    rows = [c if isinstance(c, tuple) else (c,) for c in cases]
    order = random.Random(f"{SEED}/{names}").sample(range(len(rows)), len(rows))
    params = [pytest.param("local", *row, id=_id("local", row)) for row in rows]
    for place, i in enumerate(order[:proof]):
        marks = [pytest.mark.spark] if place < sample else [pytest.mark.spark, pytest.mark.proof]
        params.append(pytest.param("spark", *rows[i], marks=marks, id=_id("spark", rows[i])))
    return pytest.mark.parametrize(f"any_db, {names}", params, indirect=["any_db"])


def _id(engine: str, row: tuple[Any, ...]) -> str:
    return f"{engine}-{row[0]}"[:60]
