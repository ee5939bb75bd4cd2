"""What a piece of work costs: time, CPU, bytes read, and what Spark ran for it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from slackwater.engine.meter import bytes_read, cpu_seconds
from slackwater.engine.spark import SparkEngine

T = TypeVar("T")

QUIET_SECONDS = 0.05
MOST_WAIT_SECONDS = 3.0


@dataclass(frozen=True)
class Cost:
    """The cost of one measured piece of work."""

    seconds: float
    cpu_seconds: float
    """Of this process, in which the local engine runs, and of Spark's."""
    bytes_read: int | None
    """From files, by both processes, shuffles included; None where the system does not tell."""
    task_cpu_seconds: float
    """What Spark's tasks say; part of `cpu_seconds`."""
    task_input_bytes: int
    """What Spark's tasks say; reads by threads that are not theirs are missing in it."""
    shuffle_bytes: int
    executions: int
    """Spark SQL executions that ran a job."""
    commands: int
    """Those that ran none, such as naming a temporary view."""
    jobs: int
    stages: int


@dataclass(frozen=True)
class Meter:
    """The clocks of this process and of Spark's."""

    engine: SparkEngine

    def measure(self, work: Callable[[], T]) -> tuple[T, Cost]:
        """Do the work, once Spark has come to rest from what ran before; what it cost."""
        self._settle()
        before = _Ran.until_now(self.engine)
        read, cpu, begun = self._read(), self._cpu(), time.perf_counter()
        done = work()
        seconds, cpu = time.perf_counter() - begun, self._cpu() - cpu
        read_now = self._read()
        ran = _Ran.until_now(self.engine, after=before)
        return done, Cost(
            seconds=seconds,
            cpu_seconds=cpu + (0 if self._is_local() else ran.task_cpu_seconds),
            bytes_read=None if read is None or read_now is None else read_now - read,
            task_cpu_seconds=ran.task_cpu_seconds,
            task_input_bytes=ran.input_bytes,
            shuffle_bytes=ran.shuffle_bytes,
            executions=ran.executions,
            commands=ran.commands,
            jobs=ran.jobs,
            stages=ran.stages,
        )

    def _settle(self) -> None:
        """Wait until the JVM is idle: what it compiles and collects late belongs to work before."""
        deadline = time.perf_counter() + MOST_WAIT_SECONDS
        busy = True
        while busy and time.perf_counter() < deadline:
            before = cpu_seconds(self.engine.process_id)
            time.sleep(QUIET_SECONDS)
            busy = cpu_seconds(self.engine.process_id) - before > QUIET_SECONDS / 2

    def _cpu(self) -> float:
        return time.process_time() + cpu_seconds(self.engine.process_id)

    def _read(self) -> int | None:
        """None where the system does not tell."""
        jvm = self.engine.process_id
        counts = [bytes_read(id) for id in (os.getpid(), jvm) if id is not None]
        return sum(counts) if all(counts) else None

    def _is_local(self) -> bool:
        """Do Spark's tasks run in the one JVM that is ours?"""
        known = self.engine.process_id is not None
        return known and str(self.engine.session.sparkContext.master).startswith("local")


@dataclass
class _Ran:
    """What Spark has run since an earlier moment."""

    last_job: int = -1
    last_execution: int = -1
    jobs: int = 0
    stages: int = 0
    executions: int = 0
    commands: int = 0
    task_cpu_seconds: float = 0.0
    input_bytes: int = 0
    shuffle_bytes: int = 0

    @classmethod
    def until_now(cls, engine: SparkEngine, after: _Ran | None = None) -> _Ran:
        """Count what ran after a moment; without one, only find where we are."""
        jobs, executions = engine.records()
        listed = jobs.jobsList(None)  # newest first
        ran = cls(last_job=listed.head().jobId() if listed.size() else -1)
        queries = executions.executionsList()  # oldest first
        ran.last_execution = queries.last().executionId() if queries.size() else -1
        if after is not None:
            ran._count_jobs(jobs, listed, after.last_job)
            ran._count_executions(queries, after.last_execution)
        return ran

    def _count_jobs(self, store: Any, listed: Any, last: int) -> None:
        stages: set[int] = set()
        for i in range(listed.size()):
            job = listed.apply(i)
            if job.jobId() <= last:
                break
            self.jobs += 1
            ids = job.stageIds()
            stages |= {ids.apply(k) for k in range(ids.size())}
        for id in stages:
            self._count_stage(store.lastStageAttempt(id))

    def _count_stage(self, stage: Any) -> None:
        if stage.status().toString() == "SKIPPED":
            return
        self.stages += 1
        self.task_cpu_seconds += stage.executorCpuTime() / 1e9
        self.input_bytes += stage.inputBytes()
        self.shuffle_bytes += stage.shuffleReadBytes()

    def _count_executions(self, queries: Any, last: int) -> None:
        for i in range(queries.size() - 1, -1, -1):
            query = queries.apply(i)
            if query.executionId() <= last:
                break
            if query.jobs().size():
                self.executions += 1
            else:
                self.commands += 1
