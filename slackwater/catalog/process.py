"""Who holds a lease, a pin or a run: a process, known so well that its death can be seen.

A process of this machine is dead when no process has its pid, or one with another start time.
The boot id and the pid namespace say whether pids of the two are comparable at all: for
a process of another machine or container only its missing heartbeat tells.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

_PROC = Path("/proc")
_ENDED_STATES = ("Z", "X")


@dataclass(frozen=True, slots=True)
class Owner:
    """A process, across machines, restarts and reuse of its pid."""

    host: str
    boot: str
    namespace: str
    pid: int
    started: str

    @property
    def json(self) -> dict[str, Any]:
        """The form the catalog keeps."""
        return {name: getattr(self, name) for name in _FIELDS}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Owner:
        """The owner the catalog kept."""
        return Owner(**value)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


_FIELDS = tuple(field.name for field in fields(Owner))


def this_process() -> Owner:
    """The calling process."""
    return _known(os.getpid())


def is_dead(owner: Owner) -> bool:
    """Whether the owner is known to be gone; False also where it cannot be known."""
    if not owner.boot or (owner.host, owner.boot, owner.namespace) != _machine():
        return False
    return _started(owner.pid) != owner.started


def is_live(owner: Mapping[str, Any], expires: float, now: float) -> bool:
    """Whether what this owner holds until `expires` still counts."""
    return expires > now and not is_dead(Owner.from_json(owner))


@cache
def _known(pid: int) -> Owner:
    """A process that runs until the end of this one, as itself does."""
    return Owner(*_machine(), pid, _started(pid) or "")


@cache
def _machine() -> tuple[str, str, str]:
    """Host name, boot id and pid namespace; the last two are empty where there is no /proc."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        namespace = os.readlink(_PROC / "self/ns/pid")
    except OSError:
        boot, namespace = "", ""
    return socket.gethostname(), boot, namespace


def _started(pid: int) -> str | None:
    """When the process began, in ticks since boot; None when it has ended."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    # The command, in parentheses, may itself hold spaces and parentheses.
    state, *numbers = stat.rpartition(")")[2].split()
    return None if state in _ENDED_STATES else numbers[18]
