"""A process killed at any named point of any work leaves the old version or the new, whole.

Each case is a copy of one small warehouse, a child that opens it, works and is killed by SIGKILL
at the point, and the test that opens it again. A seeded sample of the product runs always, all of
it in `make proof`.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
from pathlib import Path

import pytest

import slackwater
from slackwater import faults
from tests import killing
from tests.conftest import SEED
from tests.processes import Child, python
from tests.works import (
    WORKS,
    State,
    build,
    do,
    require_no_garbage,
    require_published,
    state,
)

COMMIT = ("commit.before", "commit.inside", "commit.after")
WRITE = ("run.begun", "segment.writing", "segment.written", *COMMIT)
TWICE = ("segment.writing:2", "segment.written:2")
PUBLISH = ("publish.writing", "publish.before_pointer", "publish.after")
COLLECT = ("collect.before", "collect.between")
OPEN = ("collect.before",)  # every process passes here when it opens the warehouse

REACHED: dict[str, tuple[str, ...]] = {
    "insert": WRITE,
    "update": WRITE,
    "append": WRITE,
    "apply": (*WRITE, "commit.after:2"),
    "transaction": (*WRITE, *TWICE, "segment.written:3"),
    "load": WRITE,
    "create": COMMIT,
    "alter": COMMIT,
    "create_view": COMMIT,
    "drop": COMMIT,
    "refresh": (*WRITE, *PUBLISH, "collect.before:2"),
    "refresh_both": (*WRITE, *TWICE, *PUBLISH, "publish.after:2", "collect.before:2"),
    "refresh_changes": (*WRITE, *TWICE, "segment.written:3", *PUBLISH, "collect.before:2"),
    "compact": (*WRITE, *TWICE, "commit.inside:2", "commit.after:3"),
    "collect": (*COLLECT, "collect.before:2", "collect.between:2", "collect.between:3"),
    "reopen": (*OPEN, *PUBLISH),
}
"""Where each work passes: `point:2` is the second time the process comes by."""

CASES = [(work, point) for work, points in REACHED.items() for point in points]
SAMPLE = set(random.Random(SEED).sample(CASES, 20))


def test_every_work_and_every_point_has_its_cases() -> None:
    assert set(REACHED) == set(WORKS)
    assert {p.partition(":")[0] for _, p in CASES} == set(faults.POINTS)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kills") / "built"
    build(path)
    return path


@pytest.fixture
def warehouse(built: Path, tmp_path: Path) -> Path:
    """A copy of the warehouse, to be worked on."""
    return Path(shutil.copytree(built, tmp_path / "warehouse"))


@pytest.fixture(scope="module")
def states(built: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, State]:
    """What the warehouse holds after each work that nobody disturbs."""
    found: dict[str, State] = {}
    for name in ("reopen", *WORKS):
        path = shutil.copytree(built, tmp_path_factory.mktemp("states") / name)
        with slackwater.connect(path, placement="local") as db:
            WORKS[name](db)
            found[name] = state(db)
    return found


def cases() -> list[object]:
    return [
        pytest.param(*case, marks=() if case in SAMPLE else pytest.mark.proof) for case in CASES
    ]


@pytest.mark.parametrize(("work", "point"), cases())
def test_a_killed_process_leaves_the_old_or_the_new_version_whole(
    warehouse: Path, states: dict[str, State], work: str, point: str
) -> None:
    if work == "reopen":
        shutil.rmtree(warehouse / "published")  # as if killed before it was made
    kill(warehouse, work, point)
    require_whole(warehouse, work, states["reopen"], expected(states, work, point))


def kill(warehouse: Path, work: str, point: str) -> None:
    child = Child(do, warehouse, work, env={"SLACKWATER_CRASH_AT": point})
    assert child.exit_code() == -signal.SIGKILL, f"{work} does not pass {point}"


def expected(states: dict[str, State], work: str, point: str) -> State | None:
    """The state that must be found; None where the work had only half of its commits done."""
    if point == "commit.after:2" or work in ("collect", "compact", "reopen"):
        return states[work]
    if work == "apply" and point == "commit.after":
        return None
    return states["reopen" if point in BEFORE else work]


BEFORE = {*WRITE, *TWICE, *OPEN, "segment.written:3"} - {"commit.after"}


def require_whole(warehouse: Path, work: str, old: State, wanted: State | None) -> None:
    """The warehouse is as expected, can be worked on at once, and holds no garbage."""
    with slackwater.connect(warehouse, placement="local", lease_wait_seconds=10) as db:
        found = state(db)
        assert wanted is None or found == wanted
        assert wanted is not None or found != old
        require_published(db)
        WORKS[work](db)
        db.refresh()
        for view in db.catalog.snapshot().views():
            verification = db.verify(view.name)
            assert verification, str(verification)
        require_published(db)
        assert not list((db.path / "published").rglob(".writing-*"))
        require_no_garbage(db)


def test_a_second_kill_while_the_first_is_cleared_up_loses_nothing(
    warehouse: Path, states: dict[str, State]
) -> None:
    """Killed in a refresh, then in the publication, then in the collection that follow."""
    kill(warehouse, "refresh_both", "commit.after")
    kill(warehouse, "reopen", "publish.writing")
    kill(warehouse, "reopen", "publish.before_pointer")
    kill(warehouse, "collect", "collect.between")
    require_whole(warehouse, "refresh_both", states["reopen"], states["refresh_both"])


@pytest.mark.parametrize(
    "kills", [4, pytest.param(40, marks=[pytest.mark.proof, pytest.mark.timeout(600)])]
)
def test_a_stream_that_is_killed_again_and_again_loses_and_doubles_nothing(
    tmp_path: Path, rng: random.Random, kills: int
) -> None:
    """Changes, refreshes and compactions; `make soak` kills 200 times."""
    seed = rng.randrange(10**6)
    killing.build(tmp_path / "stream")
    for _ in range(kills):
        killing.kill_one(tmp_path / "stream", seed, rng)
    killing.finish(tmp_path / "stream", seed)


SPARK_WORK = """
import sys
from pathlib import Path
from tests.works import do
do(Path(sys.argv[1]), sys.argv[2], placement="spark")
"""


@pytest.mark.spark
@pytest.mark.parametrize(
    ("work", "point"),
    [
        ("transaction", "segment.written:2"),
        pytest.param("refresh_both", "segment.writing:4", marks=pytest.mark.proof),
        pytest.param("append", "commit.after", marks=pytest.mark.proof),
    ],
)
def test_a_process_killed_on_spark(
    warehouse: Path, states: dict[str, State], java_home: str, work: str, point: str
) -> None:
    env = os.environ | {"SLACKWATER_CRASH_AT": point, "JAVA_HOME": java_home}
    killed = python(SPARK_WORK, str(warehouse), work, env=env)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    wanted = states[work if point == "commit.after" else "reopen"]
    require_whole(warehouse, work, states["reopen"], wanted)
