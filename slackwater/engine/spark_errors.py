"""Spark's errors as ours."""

from __future__ import annotations

import re
from typing import Any

from slackwater.errors import StateError, UserError

OUT_OF_MEMORY = "SPARK_OUT_OF_MEMORY"
_MEMORY = ("OutOfMemoryError", "UNABLE_TO_ACQUIRE_MEMORY")
_CLASS = re.compile(r"^\[([A-Z_0-9.]+)\]\s*(.*)", re.S)


def translate(error: Exception) -> Exception:
    """An error of Spark as ours: its class as code, its first lines as message."""
    thrown = getattr(error, "java_exception", None)
    origin = thrown or getattr(error, "_origin", None)
    message = str(error) if thrown is None else str(thrown.getMessage() or error)
    if _is_memory(origin):
        return StateError(
            "Spark ran out of memory.",
            code=OUT_OF_MEMORY,
            hint="Give it more, for example by spark_config={'spark.driver.memory': '8g'}.",
        )
    if found := re.search(r"\[([A-Z][A-Z_0-9.]+)\] ", message):
        text = message[found.end() :].split("SQLSTATE")[0].strip().split("\n")[0]
        if found[1] == "USER_RAISED_EXCEPTION" and (own := _CLASS.match(text)):
            return UserError(own[2], code=own[1])
        return UserError(text, code=found[1])
    if type(error).__module__.split(".")[0] in ("pyspark", "py4j"):
        return StateError(
            f"Spark failed: {message.splitlines()[0] if message else type(error).__name__}",
            code="SPARK_FAILED",
            hint="The full message is in the cause of this error.",
        )
    return error


def _is_memory(thrown: Any) -> bool:
    """Did a task get no memory? What is thrown may tell no more than that something was."""
    while thrown is not None:
        if any(word in str(thrown.toString()) for word in _MEMORY):
            return True
        thrown = thrown.getCause()
    return False
