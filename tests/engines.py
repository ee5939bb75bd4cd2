"""Cases for both engines: all of them on the local one, a seeded sample of them on Spark.

`make proof` runs all of them on Spark, too.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest

from tests.conftest import SEED


def on_both(names: str, cases: Iterable[Any], sample: int) -> pytest.MarkDecorator:
    """Parametrizes a test over `any_db` and the cases, which are single values or tuples."""
    rows = [c if isinstance(c, tuple) else (c,) for c in cases]
    chosen = set(random.Random(f"{SEED}/{names}").sample(range(len(rows)), sample))
    params = [pytest.param("local", *row, id=_id("local", row)) for row in rows]
    for i, row in enumerate(rows):
        marks = [pytest.mark.spark] if i in chosen else [pytest.mark.spark, pytest.mark.proof]
        params.append(pytest.param("spark", *row, marks=marks, id=_id("spark", row)))
    return pytest.mark.parametrize(f"any_db, {names}", params, indirect=["any_db"])


def _id(engine: str, row: tuple[Any, ...]) -> str:
    return f"{engine}-{row[0]}"[:60]
