"""Exit codes that scripts can use, and how an error becomes one."""

from __future__ import annotations

import traceback

from rich.console import Console
from rich.text import Text

from slackwater.errors import SlackwaterError, StateError, UserError

OK = 0
USER_ERROR = 1
USAGE = 2  # given by the option parser itself
STATE_ERROR = 3
DIFFERENT = 4
INTERNAL_ERROR = 5
INTERRUPTED = 130

TABLE = (
    (OK, "done"),
    (USER_ERROR, "the request is wrong, or asks for what is not there"),
    (USAGE, "the command line itself is wrong"),
    (STATE_ERROR, "what is kept is broken, missing, or held by somebody else"),
    (DIFFERENT, "verify found differences"),
    (INTERNAL_ERROR, "a bug in Slackwater"),
    (INTERRUPTED, "interrupted"),
)
EPILOG = "Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in TABLE) + "."


def code_of(error: BaseException) -> int:
    """The exit code that tells a script what kind of error it was."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, UserError):
        return USER_ERROR
    if isinstance(error, StateError):
        return STATE_ERROR
    return INTERNAL_ERROR


def report(error: BaseException, debug: bool = False) -> int:
    """Tell the user on stderr what went wrong; the exit code."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if debug:
        console.print(Text("".join(traceback.format_exception(error))), end="")
    if isinstance(error, KeyboardInterrupt):
        console.print("Interrupted.")
    else:
        console.print(Text("Error: ", "bold red") + Text(_message(error)))
    return code_of(error)


def _message(error: BaseException) -> str:
    if isinstance(error, SlackwaterError):
        return str(error)
    return (
        f"[INTERNAL_ERROR] {type(error).__name__}: {error}\n"
        "This is a bug in Slackwater. Please report it with the output of --debug."
    )
