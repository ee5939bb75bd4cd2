"""The sweep over batch sizes: three modes side by side, equal rows, figures of known shape."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from bench import corpus
from bench.preaggregation import VIEWS, Sample, Settings, report, run
from slackwater.cli import exits
from slackwater.cli.app import app
from slackwater.errors import UserError
from slackwater.tvr.preaggregate import MODES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCALE = 0.001


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"engines": ("duck",)}, "There is no engine 'duck'"),
        ({"views": ("q99",)}, "There is no view 'q99'"),
        ({"sizes": ()}, "at least one line"),
        ({"repeat": 0}, "at least one round"),
    ],
)
def test_settings_are_checked(settings: dict[str, object], told: str) -> None:
    with pytest.raises(UserError, match=told):
        Settings(**settings)  # type: ignore[arg-type]


def test_modes_are_compared_with_off_by_medians() -> None:
    settings = Settings(sizes=(10,), views=("q3",), repeat=3)
    seconds = {"off": (2.0, 8.0, 4.0), "on": (1.0, 2.0, 9.0), "auto": (4.0, 4.0, 1.0)}
    samples = [
        Sample("local", "q3", 10, 8, mode, s, 2 * s, mode == "on")
        for mode in MODES
        for s in seconds[mode]
    ]
    (line,) = report(settings, samples, [])["lines"]
    assert (line["view"], line["size"], line["lines"]) == ("q3", 10, 8)
    assert line["off"]["seconds"] == 4
    assert (line["on"]["latency_ratio"], line["on"]["cpu_ratio"]) == (2, 2)
    assert (line["on"]["summed_first"], line["auto"]["summed_first"]) == (1, 0)
    assert line["auto"]["latency_ratio"] == 1


@pytest.mark.proof
def test_all_modes_give_the_same_rows(tmp_path: Path) -> None:
    corpus.generate("tpch", SCALE)
    stages: list[str] = []
    settings = Settings(scale=SCALE, sizes=(10, 100), repeat=1)
    told = run(settings, lambda what, done, total: stages.append(f"{done}<{total}"))
    assert told["exact"], told["problems"]
    assert [(t["view"], t["size"]) for t in told["lines"]] == [
        (view, size) for view in VIEWS for size in settings.sizes
    ]
    for line in told["lines"]:
        assert line["on"]["summed_first"] == 1
        assert line["off"]["summed_first"] == line["auto"]["summed_first"] == 0
    assert stages == [f"{i}<{len(stages)}" for i in range(len(stages))]


@pytest.mark.proof
def test_all_modes_give_the_same_rows_on_spark(spark: SparkSession) -> None:
    settings = Settings(
        scale=SCALE, sizes=(10,), repeat=1, engines=("spark",), views=("supplier_nation",)
    )
    told = run(settings, spark=spark)
    assert told["exact"], told["problems"]
    assert told["lines"][0]["on"]["summed_first"] == 1


def test_mistakes_in_options_are_told() -> None:
    result = CliRunner().invoke(app, ["bench", "preaggregation", "--rows", "ten"])
    assert result.exit_code == exits.USER_ERROR
    assert "--rows takes numbers" in result.stderr
    result = CliRunner().invoke(app, ["bench", "preaggregation", "--engines", "duck"])
    assert result.exit_code == exits.USER_ERROR
    assert "Choose from local, spark" in result.stderr
