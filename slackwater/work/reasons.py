"""Reason codes: stable names for why a view, or a part of it, was computed anew."""

from __future__ import annotations

REASONS = {
    "FIRST_REFRESH": "the view had no content yet",
    "FULL_REQUESTED": "a full refresh was asked for",
    "FULL_BY_OPTION": "the view has refresh = 'full'",
    "SOURCE_ROWS_GONE": "files of an external table vanished, and their rows with them",
    "SOURCE_REPLACED": "a source was replaced or emptied, so its changes are not known",
    "STATE_MISSING": "what an incremental refresh starts from is not there",
    "CHANGE_TOO_LARGE": "computing the view anew costs less than following the changes",
    "CHANGES_ARE_FOLLOWED": "the view, or one that reads it, is to follow changes where it can",
    "NOT_PLACED_THERE": "the warehouse was opened with another placement",
    "NOT_PORTABLE": "only Spark computes this exactly",
    "NO_JAVA": "no Java was found to start Spark with",
    "STEP_RAISED": "an incremental step raised an error, so the view was recomputed",
    "NOT_DETERMINISTIC": "the query may give another answer for the same data",
    "NO_PARTITION_BY": "a window over all rows changes with any of them",
    "NO_EQUALITY_IN_JOIN": "without an equality, any row may match a changed one",
    "NO_GROUP_BY": "an aggregate of all rows that cannot be corrected, only computed anew",
    "OFFSET_WITHOUT_LIMIT": "rows in order without an end",
    "STATE_NOT_KEPT": "what would spare it is not kept within the view's state_budget",
    "BUFFER_REFILLED": "too many of the first rows in order had left",
}
"""Reason codes with what they mean. Those of expressions that only Spark knows are Spark's."""

REWRITES = {
    "NOT_DETERMINISTIC": "Write the moment or the random number into a table and read it there.",
    "NO_PARTITION_BY": "Add PARTITION BY, or rank in the query that reads the view.",
    "NO_EQUALITY_IN_JOIN": "Add an equality between both sides to the condition.",
    "NO_GROUP_BY": "Add GROUP BY, or sum exact types (DECIMAL) instead of DOUBLE.",
    "OFFSET_WITHOUT_LIMIT": "Add LIMIT.",
    "STATE_NOT_KEPT": "Give the view a larger state_budget.",
    "FULL_BY_OPTION": "Set refresh = 'auto'.",
}
"""What to write instead, where there is a way."""
