"""Other processes of a test: forked from a server that has imported everything already.

A child starts in some milliseconds and shares no thread, connection or engine with the test. The
environment given to it is in force before its work begins, as `SLACKWATER_CRASH_AT` needs it.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SECONDS = 60.0  # longer than any child may take

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["slackwater", "slackwater.warehouse", "tests.processes"])


class Child:
    """A process that runs one function of an importable module and hands back its result."""

    def __init__(
        self, work: Callable[..., Any], *arguments: Any, env: Mapping[str, str] | None = None
    ) -> None:
        self._answer, theirs = _context.Pipe(duplex=False)
        self._process = _context.Process(
            target=_run, args=(theirs, dict(env or {}), work, arguments), daemon=True
        )
        self._process.start()
        theirs.close()

    @property
    def running(self) -> bool:
        """Has it not ended?"""
        return self._process.is_alive()

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process.pid is not None
        return self._process.pid

    def exit_code(self, seconds: float = SECONDS) -> int:
        """How it ended: 0, 1 after an exception, minus the signal that killed it."""
        self._process.join(seconds)
        if self._process.exitcode is None:
            self._process.kill()
            raise AssertionError(f"the process was still running after {seconds:g} s")
        return self._process.exitcode

    def result(self, seconds: float = SECONDS) -> Any:
        """What its function returned; what it raised is a failure here."""
        if not self._answer.poll(seconds):
            self._process.kill()
            raise AssertionError(f"the process gave no answer within {seconds:g} s")
        try:
            value, error = self._answer.recv()
        except EOFError:
            raise AssertionError(f"the process died: {self.exit_code()}") from None
        self.exit_code()
        assert error is None, error
        return value


def _run(
    answer: Connection, env: Mapping[str, str], work: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    os.environ.update(env)
    try:
        answer.send((work(*arguments), None))
    except BaseException:
        answer.send((None, traceback.format_exc()))
        raise


def python(
    code: str, *arguments: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter that runs `code`; `env` replaces the environment where it is given."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=dict(os.environ if env is None else env),
        timeout=300,
        check=False,
    )
