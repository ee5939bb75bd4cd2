"""Reason codes: stable names for why a view, or a part of it, is computed as it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Why:
    """A reason at a place."""

    code: str
    means: str
    at: str  # the operator of the plan, or the source, that it is about
    rewrite: str  # what to write or to do instead

    @property
    def line(self) -> str:
        """The reason in one line."""
        return f"[{self.code}] {self.means}{': ' if self.at else ''}{self.at}"

    def lines(self) -> list[str]:
        """For people."""
        return [f"Reason: {self.line}", f"        {self.rewrite}"]


@dataclass(frozen=True, slots=True)
class _Reason:
    means: str
    rewrite: str


_WAIT = "Nothing needs to be done: later refreshes can follow changes."
_SPARK_ONLY = "Nothing needs to be done: Spark runs it as it is written."

_REFRESHES = {
    "FIRST_REFRESH": _Reason("the view had no content yet", _WAIT),
    "FULL_REQUESTED": _Reason("a full refresh was asked for", "Refresh without FULL."),
    "FULL_BY_OPTION": _Reason("the view has refresh = 'full'", "Set refresh = 'auto'."),
    "SOURCE_ROWS_GONE": _Reason(
        "files of an external table vanished, and their rows with them",
        "Add files and leave the old ones, or keep the rows in a managed table.",
    ),
    "SOURCE_REPLACED": _Reason(
        "a source was replaced or emptied, so its changes are not known",
        "Change rows with DELETE, UPDATE or MERGE instead of replacing all.",
    ),
    "STATE_MISSING": _Reason("what an incremental refresh starts from is not there", _WAIT),
    "CHANGE_TOO_LARGE": _Reason(
        "computing the view anew costs less than following the changes",
        "Refresh more often, or set refresh = 'incremental'.",
    ),
    "CHANGES_ARE_FOLLOWED": _Reason(
        "the view, or one that reads it, is to follow changes where it can",
        "Set refresh = 'auto' to let cost decide.",
    ),
    "NOTHING_CHANGED": _Reason(
        "nothing that the view reads has changed since it was refreshed",
        "Nothing needs to be done: the view is fresh.",
    ),
    "STATES_ARE_BUILT": _Reason(
        "computing the view anew builds the states that following changes needs",
        "Set refresh = 'full' for a view that is never to follow changes.",
    ),
    "NO_OUTER_JOIN": _Reason(
        "the view needs no outer join",
        "Nothing needs to be done: the view is maintained without.",
    ),
    "PADDED_SIDE_UNCHANGED": _Reason(
        "an outer join pads rows without partners, and no partners have changed",
        "Nothing needs to be done: rows of the other side come and go with their own padding.",
    ),
    "NO_LEFT_JOIN_BY_EQUALITY": _Reason(
        "direct and indirect changes are told apart in left joins with an equality alone",
        "Write a LEFT JOIN instead of a FULL JOIN where that serves, and an equality between both "
        "sides in its condition.",
    ),
    "NO_PARTS_TO_KEEP": _Reason(
        "what changes are joined with is stored already, or nothing is joined",
        "Nothing needs to be done: the view is maintained without.",
    ),
    "FEW_ROWS": _Reason(
        "so little is read that one way is as good as another",
        "Nothing needs to be done: with more rows all ways are compared.",
    ),
    "METHOD_SWITCHED_OFF": _Reason(
        "the warehouse was opened without this method",
        "Name it among the methods of slackwater.connect, or leave these out to have all.",
    ),
    "BUDGET_DECIDES": _Reason(
        "which states are kept follows from the view's state_budget",
        "Leave out the state_budget to have all ways compared.",
    ),
    "DEARER_IN_ANY_CASE": _Reason(
        "computing anew costs more even without states",
        "Nothing needs to be done: following changes costs less.",
    ),
    "STEP_RAISED": _Reason(
        "an incremental step raised an error, so the view was recomputed",
        "Correct or filter the rows that the expression cannot compute with, or use try_cast.",
    ),
    "BUFFER_REFILLED": _Reason(
        "too many of the first rows in order had left",
        "Nothing needs to be done; a larger LIMIT keeps more rows in reserve.",
    ),
    "STATE_NOT_KEPT": _Reason(
        "what would spare it is not kept within the view's state_budget",
        "Give the view a larger state_budget.",
    ),
}

_QUERIES = {
    "NOT_DETERMINISTIC": _Reason(
        "the query may give another answer for the same data",
        "Write the moment or the random number into a table and read it there.",
    ),
    "NO_PARTITION_BY": _Reason(
        "a window over all rows changes with any of them",
        "Add PARTITION BY, or rank in the query that reads the view.",
    ),
    "NO_EQUALITY_IN_JOIN": _Reason(
        "without an equality, any row may match a changed one",
        "Add an equality between both sides to the condition.",
    ),
    "NO_GROUP_BY": _Reason(
        "an aggregate of all rows that cannot be corrected, only computed anew",
        "Add GROUP BY, or sum exact types (DECIMAL) instead of DOUBLE.",
    ),
    "OFFSET_WITHOUT_LIMIT": _Reason("rows in order without an end", "Add LIMIT."),
    "UNSUPPORTED_EXPRESSION": _Reason(
        "an expression whose changes are not known, so what it is in is computed anew",
        "Compute it in a column of its own, over a join or a subquery in FROM.",
    ),
    "UNSUPPORTED_OPERATOR": _Reason(
        "an operator whose changes are not known, so what it is in is computed anew",
        "Write it with SELECT, JOIN, GROUP BY, window functions and set operations.",
    ),
    "RECURSIVE_QUERY": _Reason(
        "a query that reads its own result is computed anew",
        "Write out the levels that there are as joins.",
    ),
    "TABLE_FUNCTION": _Reason(
        "what a table function reads and gives is not known, so it is computed anew",
        "Write its rows into a table and read them there.",
    ),
    "GENERATOR_IN_EXPRESSION": _Reason(
        "a generator inside an expression is computed anew",
        "Move it to LATERAL VIEW, or to a SELECT item of its own.",
    ),
}

_ENGINES = {
    "NOT_PLACED_THERE": _Reason(
        "the warehouse was opened with another placement", "Open it with placement = 'auto'."
    ),
    "NOT_PORTABLE": _Reason("only Spark computes this exactly", _SPARK_ONLY),
    "NO_JAVA": _Reason(
        "no Java was found to start Spark with", "Install Java 17 and set JAVA_HOME."
    ),
}

_PACES = {
    "NO_SCHEDULE": _Reason(
        "it has no schedule: its results are due when somebody asks",
        "Say when results are due: schedule = 'daily 06:00'.",
    ),
    "DUE_BY_ROWS": _Reason(
        "rows, not the clock, say when it is due, and nobody knows yet how fast they come",
        "Wait until some have come, or give a schedule by the clock.",
    ),
    "REFRESH_FULL": _Reason(
        "refresh = 'full': it is computed anew each time", "Set refresh = 'auto'."
    ),
    "READS_VIEWS": _Reason(
        "it reads views that are due at other moments, or that cannot be planned for with it",
        "Give them its schedule, or write their queries in its own.",
    ),
    "NOT_UNDERSTOOD": _Reason(
        "its options or its SQL cannot be understood", "Create it anew as it should be."
    ),
    "NOT_PLANNED": _Reason("it is not planned for", "Run slackwater plan for it."),
}

REASONS: Mapping[str, _Reason] = {**_REFRESHES, **_QUERIES, **_ENGINES, **_PACES}
"""All codes: of refreshes, of queries, of engines, and of views that have no pace."""


def why(code: str, at: str = "") -> Why:
    """What a code says of a place."""
    reason = REASONS[code]
    return Why(code, reason.means, at, reason.rewrite)


def whys(codes: Iterable[str], places: Mapping[str, str]) -> list[Why]:
    """What codes say, each once, of the places where they hold."""
    return [why(code, places.get(code, "")) for code in dict.fromkeys(codes) if code in REASONS]
