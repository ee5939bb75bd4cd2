"""A PostgreSQL server of the tests' own, in a temporary folder, reached by a Unix socket."""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg

NOT_FOUND = (
    "No PostgreSQL server was found. Run scripts/install_postgres.sh, or install the package "
    "by hand (Debian: apt-get install postgresql)."
)


class Server:
    """A running server; every test gets a database of its own."""

    def __init__(self, binaries: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="slackwater-postgres-"))
        self._as_user = _unprivileged(self.folder)
        self._log = (self.folder / "log").open("w")
        self._call(binaries / "initdb", "-D", self.folder / "data", "-U", "tester", "-A", "trust")
        options = ("listen_addresses=", f"unix_socket_directories={self.folder}", "fsync=off")
        command = [binaries / "postgres", "-D", self.folder / "data"]
        self._process = subprocess.Popen(
            [*command, *(part for option in options for part in ("-c", option))],
            stdout=self._log,
            stderr=self._log,
            **self._as_user,
        )
        atexit.register(self.stop)
        self._wait()

    def fresh_url(self) -> str:
        """The URL of a new, empty database."""
        name = f"test_{uuid4().hex}"
        with self._connect() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"postgresql+psycopg://tester@/{name}?host={self.folder}"

    def stop(self) -> None:
        """Stop the server and remove its files."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait()
        self._log.close()
        shutil.rmtree(self.folder)

    def _call(self, *command: Any) -> None:
        subprocess.run(
            command, check=True, stdout=self._log, stderr=self._log, cwd="/", **self._as_user
        )

    def _connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(
            host=str(self.folder), user="tester", dbname="postgres", autocommit=True
        )

    def _wait(self) -> None:
        deadline = time.monotonic() + 30
        while True:
            try:
                self._connect().close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise
                time.sleep(0.05)


@cache
def server() -> Server:
    """The one server of all tests."""
    return Server(_binaries())


def _binaries() -> Path:
    found = [Path(p) for p in (shutil.which("initdb"),) if p]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    for homebrew in ("/opt/homebrew/opt", "/usr/local/opt"):
        found += sorted(Path(homebrew).glob("postgresql*/bin/initdb"))
    if not found:
        raise AssertionError(NOT_FOUND)
    return found[-1].resolve().parent


def _unprivileged(folder: Path) -> dict[str, Any]:
    """How to start a process as somebody else: PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return {}
    names = {user.pw_name for user in pwd.getpwall()}
    user = "postgres" if "postgres" in names else "nobody"
    shutil.chown(folder, user)
    return {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}
