"""What all tests share: one Spark session, small warehouses, one seed.

* `spark` is started once, at the first test that asks for it. Tests that ask for it, or for
  `spark_db`, carry the mark `spark` by themselves; `--no-spark` leaves them out.
* `SLACKWATER_SEED` changes the seed of every random sample; the header prints it.
* `SLACKWATER_PROOF=1` (as `make proof` sets it) asks for the long form of a test.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from slackwater.engine.spark_settings import BRIEF_JAVA, DEFAULTS, PINNED
from slackwater.engine.suited import Suited, suited

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from slackwater import Warehouse
    from slackwater.algebra.relation import Relation
    from slackwater.engine.sources import Sources

os.environ.setdefault("SPARK_SUBMIT_OPTS", BRIEF_JAVA)  # for processes that start a Spark, too
ROOT = Path(__file__).parent.parent
SEED = int(os.environ.get("SLACKWATER_SEED", "20260401"))
LONG = os.environ.get("SLACKWATER_LONG") == "1"
PROOF = LONG or os.environ.get("SLACKWATER_PROOF") == "1"
SPARK_FIXTURES = {"spark", "spark_db"}
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Of thousands of statements over a few rows each, none runs for as long as its code compiles."""
NO_JAVA = "No Java 17+ was found: run scripts/install_java.sh, or set JAVA_HOME."

_slow_is_fine = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile(
    "sample", max_examples=60, deadline=None, derandomize=True, suppress_health_check=_slow_is_fine
)
settings.register_profile("proof", settings.get_profile("sample"), max_examples=300)
settings.load_profile("proof" if PROOF else "sample")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-spark", action="store_true", help="leave out every test on Spark")


def pytest_report_header() -> str:
    return f"slackwater: seed {SEED} (SLACKWATER_SEED), {'proof' if PROOF else 'sample'}"


@pytest.hookimpl(tryfirst=True)  # before the groups are read
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if SPARK_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker("spark")
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    if config.getoption("--no-spark"):
        left_out = [i for i in items if i.get_closest_marker("spark")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [i for i in items if not i.get_closest_marker("spark")]


def _group(item: pytest.Item) -> str:
    """What one process runs: all tests on the shared Spark session, and those of a file. Tests
    that ask for a Java alone start a process of their own with it."""
    asked = set(getattr(item, "fixturenames", ()))
    starts_own = "java_home" in asked and not SPARK_FIXTURES & asked
    shares = item.get_closest_marker("spark") and not starts_own
    return "spark" if shares else item.location[0]


@pytest.fixture(scope="session")
def java_home() -> str:
    """The home of a Java 17+; tests that need it fail in one line without it."""
    found = subprocess.run([ROOT / "scripts" / "find_java.sh"], capture_output=True, text=True)
    home = found.stdout.strip()
    if not home:
        pytest.fail(NO_JAVA, pytrace=False)
    return home


@pytest.fixture(scope="session")
def spark(java_home: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark session of all tests."""
    from pyspark.sql import SparkSession

    if "PYTEST_XDIST_WORKER" in os.environ:
        (tmp_path_factory.getbasetemp().parent / "spark").touch(exist_ok=False)  # no second one
    os.environ["JAVA_HOME"] = java_home
    folder = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("slackwater-tests")
        .config(map={**DEFAULTS, **PINNED})
        .config(map=INTERPRETED)
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.local.dir", str(folder / "local"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("slackwater.engine.runner.suited", suited_or_not)
        yield session
    session.stop()
    shutil.rmtree(folder, ignore_errors=True)


def in_pieces(sources: Sources, relations: Sequence[Relation]) -> Suited:
    """A statement is run as if it read much: in several pieces, which are exchanged."""
    return replace(suited(sources, relations), one_piece=False)


def suited_or_not(sources: Sources, relations: Sequence[Relation]) -> Suited:
    """So every other statement is run; each of them the same way each time, whatever ran before."""
    shape = " ".join(type(node).__name__ for relation in relations for node in relation.walk())
    own = suited if zlib.crc32(shape.encode()) % 2 == 0 else in_pieces
    return own(sources, relations)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Warehouse]:
    """An empty warehouse on the local engine. Views follow their changes, whatever the cost."""
    import slackwater

    settings = {"placement": "local", "refresh": "incremental"}
    with slackwater.connect(tmp_path / "warehouse", **settings) as warehouse:
        yield warehouse


@pytest.fixture
def spark_db(tmp_path: Path, spark: SparkSession) -> Iterator[Warehouse]:
    """An empty warehouse that runs everything, by changes where it can, on the shared session."""
    import slackwater

    path = tmp_path / "spark_warehouse"
    settings = {"placement": "spark", "refresh": "incremental", "spark": spark}
    with slackwater.connect(path, **settings) as warehouse:
        yield warehouse


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def any_db(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """An empty warehouse, once per engine."""
    return request.getfixturevalue("db" if request.param == "local" else "spark_db")


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Random numbers that depend on the seed and on the test's name only."""
    return random.Random(f"{SEED}/{request.node.nodeid}")
