"""Finding a Java runtime before Spark does, so that its lack is said in one line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from slackwater.errors import StateError

NEEDED = 17
HOW = (
    "Install one with your system's package manager (Debian, Ubuntu: apt-get install "
    "openjdk-17-jre-headless; macOS: brew install openjdk@17) or set JAVA_HOME."
)


COLLECTOR = "-XX:+UseParallelGC"
"""Planning makes much garbage that is gone at once. To collect it beside the work, as Java does by
itself, takes a sixth of what a small refresh takes on two cores."""
SAY = ("SPARK_SUBMIT_OPTS", "SPARK_CONF_DIR", "SPARK_HOME", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
"""Where others may have chosen how garbage is collected; told two ways, Java does not start."""


def own_options(master: str) -> str:
    """How we start a Java in which all of Spark runs, where nobody else has a say."""
    if not master.startswith("local") or any(os.environ.get(name) for name in SAY):
        return ""
    return COLLECTOR


def java_version() -> int | None:
    """The major version of the Java that Spark would use; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if program is None:
        return None
    try:
        told = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    found = re.search(r'version "(\d+)(?:\.(\d+))?', told.stderr + told.stdout)
    if found is None:
        return None
    return int(found[2]) if found[1] == "1" and found[2] else int(found[1])


def require_java() -> None:
    """Raise unless there is a Java that Spark can use."""
    version = java_version()
    if version is None:
        raise StateError(
            f"Spark needs Java {NEEDED} or newer, and none was found.",
            code="JAVA_MISSING",
            hint=HOW,
        )
    if version < NEEDED:
        raise StateError(
            f"Spark needs Java {NEEDED} or newer; the one found is version {version}.",
            code="JAVA_TOO_OLD",
            hint=HOW,
        )
