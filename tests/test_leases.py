"""Leases: one holder at a time, takeover from the dead, no commit by the late."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from slackwater import faults
from slackwater.catalog.keepalive import Keepalive
from slackwater.catalog.model import CreateTable, FinishRun, LeaseIs, VersionIs
from slackwater.catalog.process import is_dead, this_process
from slackwater.catalog.store import Catalog
from slackwater.errors import InternalError, StateError
from tests.catalogs import BACKENDS, finish, fresh_url, line_of, python, table

HOLD = """
import sys
from slackwater.catalog.store import Catalog
catalog = Catalog.open(sys.argv[1])
lease = catalog.lease(["sales"], ttl_seconds=float(sys.argv[2]))
run = catalog.begin_run("test", lease)
print(lease.token("sales"), flush=True)
sys.stdin.readline()
"""

HOLD_THEN_COMMIT = (
    HOLD
    + """
from slackwater.errors import StateError
from tests.catalogs import table
from slackwater.catalog.model import CreateTable
try:
    catalog.commit(lease.requirements, [CreateTable(table("late"))])
    print("committed")
except StateError as error:
    print(error.code)
"""
)

COUNT = """
import sys
from slackwater.catalog.store import Catalog
catalog, path = Catalog.open(sys.argv[1]), sys.argv[2]
for _ in range(15):
    with catalog.lease(["counter"]) as lease:
        number = int(open(path).read())
        open(path, "w").write(str(number + 1))
        catalog.commit(lease.requirements)
catalog.close()
"""


@pytest.fixture(params=BACKENDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return fresh_url(request.param, tmp_path)


@pytest.fixture
def catalog(url: str) -> Iterator[Catalog]:
    with Catalog.open(url) as opened:
        yield opened


def test_tokens_grow_with_every_holder(catalog: Catalog) -> None:
    for expected in (1, 2, 3):
        with catalog.lease(["sales"]) as lease:
            assert lease.token("sales") == expected
            assert lease.requirements == (LeaseIs("sales", expected),)


def test_a_held_lease_is_waited_for_and_its_holder_named(catalog: Catalog) -> None:
    with catalog.lease(["sales"]):
        began = time.monotonic()
        with pytest.raises(StateError, match=f"'sales'.*process {os.getpid()} on .* since 2") as e:
            catalog.lease(["sales"], wait_seconds=0.3)
        assert e.value.code == "LEASE_HELD"
        assert time.monotonic() - began > 0.25
    catalog.lease(["sales"], wait_seconds=0).release()


def test_another_thread_of_the_holder_waits_like_anybody(catalog: Catalog) -> None:
    order: list[str] = []

    def second() -> None:
        with catalog.lease(["sales"]):
            order.append("second")

    with catalog.lease(["sales"]):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.3)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_all_names_or_none(catalog: Catalog) -> None:
    with catalog.lease(["b"]):
        with pytest.raises(StateError, match="'b'"):
            catalog.lease(["a", "b", "c"], wait_seconds=0)
        with catalog.lease(["c", "a"], wait_seconds=0) as free:
            assert free.names == ("a", "c")


def test_crossing_orders_do_not_lock_up(catalog: Catalog) -> None:
    def work(names: list[str]) -> None:
        for _ in range(5):
            with catalog.lease(names):
                pass

    threads = [threading.Thread(target=work, args=(n,)) for n in (["a", "b"], ["b", "a"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
        assert not thread.is_alive()


def test_a_lease_outlives_its_ttl_by_its_heartbeat(catalog: Catalog) -> None:
    with catalog.lease(["sales"], ttl_seconds=2) as lease:
        time.sleep(3)
        assert not lease.lost
        catalog.commit(lease.requirements)


def test_a_lease_without_heartbeat_is_lost_for_good(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = catalog.lease(["sales"], ttl_seconds=0.4)
    monkeypatch.setattr(faults, "stopped", lambda: True)
    time.sleep(0.6)
    monkeypatch.undo()
    with pytest.raises(StateError, match="expired or was released") as error:
        catalog.commit(lease.requirements)
    assert error.value.code == "LEASE_LOST"
    deadline = time.monotonic() + 5
    while not lease.lost and time.monotonic() < deadline:
        time.sleep(0.05)
    assert lease.lost  # the heartbeat that came too late has seen it


def test_a_pause_stops_the_heartbeat(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACKWATER_PAUSE_AT", "commit.before:0.8")
    with catalog.lease(["sales"], ttl_seconds=0.4) as lease:
        with pytest.raises(StateError) as error:
            catalog.commit(lease.requirements, [CreateTable(table("late"))])
        assert error.value.code == "LEASE_LOST"


def test_a_released_lease_does_not_commit(catalog: Catalog) -> None:
    with catalog.lease(["sales"]) as lease:
        pass
    with pytest.raises(StateError):
        catalog.commit(lease.requirements)
    with pytest.raises(InternalError):
        lease.token("orders")


def test_releasing_late_does_not_free_the_next_holder(catalog: Catalog) -> None:
    late = catalog.lease(["sales"], ttl_seconds=0.2)
    catalog._keepalive.remove(late)
    time.sleep(0.3)
    with catalog.lease(["sales"], wait_seconds=5) as mine:
        late.release()
        catalog.commit(mine.requirements)


def test_closing_the_catalog_releases_its_leases(url: str) -> None:
    Catalog.open(url).close()
    one = Catalog.open(url)
    one.lease(["sales"])
    one.close()
    with Catalog.open(url) as two:
        two.lease(["sales"], wait_seconds=0).release()


def test_two_processes_take_turns(url: str, tmp_path: Path) -> None:
    Catalog.open(url).close()
    counter = tmp_path / "counter"
    counter.write_text("0")
    for process in [python(COUNT, url, str(counter)) for _ in range(2)]:
        finish(process)
    assert counter.read_text() == "30"
    with Catalog.open(url) as catalog:
        assert catalog.lease(["counter"]).token("counter") == 31


def test_a_killed_holder_is_followed_at_once(catalog: Catalog, url: str) -> None:
    holder = python(HOLD, url, "600")
    assert line_of(holder) == "1"
    with pytest.raises(StateError, match=f"process {holder.pid} "):
        catalog.lease(["sales"], wait_seconds=0.1)
    holder.kill()
    with catalog.lease(["sales"], wait_seconds=10) as lease:  # the holder is not even reaped
        assert lease.token("sales") == 2
    holder.communicate()


def test_a_holder_paused_past_its_lease_cannot_commit(catalog: Catalog, url: str) -> None:
    holder = python(HOLD_THEN_COMMIT, url, "1")
    line_of(holder)
    holder.send_signal(signal.SIGSTOP)
    try:
        with catalog.lease(["sales"], wait_seconds=10) as lease:
            catalog.commit(lease.requirements, [CreateTable(table("mine"))])
    finally:
        holder.send_signal(signal.SIGCONT)
    output, _ = holder.communicate("\n", timeout=30)
    assert output.strip() == "LEASE_LOST"
    assert catalog.snapshot().find("late") is None


def test_a_paused_holder_cannot_commit_even_if_nobody_took_over(catalog: Catalog, url: str) -> None:
    holder = python(HOLD_THEN_COMMIT, url, "0.8")
    line_of(holder)
    holder.send_signal(signal.SIGSTOP)
    time.sleep(1.2)
    holder.send_signal(signal.SIGCONT)
    output, _ = holder.communicate("\n", timeout=30)
    assert output.strip() == "LEASE_LOST"


def test_death_is_seen_only_where_it_can_be_known() -> None:
    me = this_process()
    assert not is_dead(me)
    assert is_dead(replace(me, started="1"))  # the pid was given to another process
    assert is_dead(replace(me, pid=2**22 + 1))
    assert not is_dead(replace(me, host="elsewhere", pid=2**22 + 1))
    assert not is_dead(replace(me, boot="another boot", pid=2**22 + 1))
    assert not is_dead(replace(me, namespace="another container", pid=2**22 + 1))


def test_what_could_not_be_given_back_is_given_back_on_closing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pin, a lease and a run that end while the catalog's disk is full."""

    def full(*_: object, **__: object) -> None:
        raise StateError("The disk is full.", code="DISK_FULL", hint="")

    monkeypatch.setattr(Keepalive, "_beat", lambda self: None)  # it would not wait for the closing
    with Catalog.open(url) as catalog:
        pin, lease = catalog.pin(), catalog.lease(["t"])
        run = catalog.begin_run("write", lease)
        with monkeypatch.context() as broken:
            broken.setattr(catalog._database, "writing", full)
            catalog.abort_run(run, "the disk is full")
            lease.release()
            pin.release()
        assert catalog.runs()[0].state == "open"
    with Catalog.open(url) as again:
        assert (again.runs()[0].state, again.runs()[0].error) == ("aborted", "the disk is full")
        again.commit(updates=[CreateTable(table("t"))])
        assert again.collection.advance_horizon(0) == 1  # no pin is in the way
        again.lease(["t"], wait_seconds=0).release()


def test_work_starts_and_ends_in_one_transaction_each(catalog: Catalog) -> None:
    """Lease, run and pin come together, and go together with the commit."""
    start = catalog.start("test", ["sales"], lambda: "noon")
    assert start.at == "noon"
    assert start.pin.commit == catalog.snapshot().commit
    with pytest.raises(StateError, match="being changed"):
        catalog.lease(["sales"], wait_seconds=0)
    with catalog.working(start) as snapshot:
        assert snapshot.commit == start.pin.commit
        catalog.commit(start.requirements, [FinishRun(start.run.id)], [start.lease, start.pin])
        catalog.lease(["sales"], wait_seconds=0).release()  # before the block has ended
    assert [run.state for run in catalog.runs()] == ["committed"]
    assert not catalog._keepalive.held()


def test_what_could_not_be_committed_is_given_back_at_the_end(catalog: Catalog) -> None:
    start = catalog.start("test", ["sales"])
    wrong = [*start.requirements, VersionIs("gone", 1)]
    with (
        pytest.raises(StateError, match="version 1"),
        catalog.working(start),
    ):
        catalog.commit(wrong, [FinishRun(start.run.id)], [start.lease, start.pin])
    assert [run.state for run in catalog.runs()] == ["aborted"]
    assert not catalog._keepalive.held()
    catalog.lease(["sales"], wait_seconds=0).release()


def test_work_that_must_wait_registers_nothing(catalog: Catalog) -> None:
    with catalog.lease(["sales"]), pytest.raises(StateError, match="being changed"):
        catalog.start("test", ["sales"], wait_seconds=0)
    assert catalog.runs() == ()
    assert not catalog._keepalive.held()
