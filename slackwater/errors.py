"""What can go wrong, and for whom.

* `UserError`: the request cannot be served as asked; the message names the thing, the place
  and the way out. State is unchanged.
* `StateError`: what is kept on disk or in the catalog is not as it must be, or somebody else
  holds it; the message says what to do.
* `InternalError`: our bug; please report it.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class SlackwaterError(Exception):
    """Base of every error raised on purpose, with a stable `code`."""

    def __init__(self, message: str, *, code: str, hint: str = "") -> None:
        self.message = message
        self.code = code
        self.hint = hint
        super().__init__(message)

    def __str__(self) -> str:
        hint = f"\n{self.hint}" if self.hint else ""
        return f"[{self.code}] {self.message}{hint}"


class UserError(SlackwaterError):
    """The request is wrong, or asks for what is not there."""


class SqlError(UserError):
    """A mistake in SQL text: line, the text underlined, and the way out."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        hint: str = "",
        sql: str = "",
        start: int | None = None,
        end: int | None = None,
    ) -> None:
        self.sql = sql
        self.start = start
        self.end = end
        super().__init__(message, code=code, hint=hint)

    @property
    def line(self) -> int | None:
        """The line of the mistake, counted from one."""
        return None if self.start is None else self.sql.count("\n", 0, self.start) + 1

    def located(self, sql: str, start: int | None = None, end: int | None = None) -> SqlError:
        """The same error, knowing its SQL text."""
        if not self.sql:
            self.sql = sql
            self.start = self.start if self.start is not None else start
            self.end = self.end if self.end is not None else end
        return self

    def __str__(self) -> str:
        place = f" (line {self.line})" if self.line is not None else ""
        parts = [f"[{self.code}] {self.message}{place}"]
        if self.start is not None:
            parts.append(underline(self.sql, self.start, self.end))
        if self.hint:
            parts.append(self.hint)
        return "\n".join(parts)


class StateError(SlackwaterError):
    """What is kept is broken, missing, or held by somebody else."""


class InternalError(SlackwaterError):
    """Our bug."""

    def __init__(self, message: str) -> None:
        super().__init__(
            message,
            code="INTERNAL_ERROR",
            hint="This is a bug in Slackwater. Please report it with the statement that caused it.",
        )


class NeedsSpark(Exception):
    """The local engine met a value that only Spark computes exactly; run the step there."""


def underline(sql: str, start: int, end: int | None = None) -> str:
    """The line of `sql` that holds `start`, with the span marked below it.

    >>> print(underline("SELECT amont FROM t", 7, 12))
      SELECT amont FROM t
             ^^^^^
    """
    first = sql.rfind("\n", 0, start) + 1
    last = sql.find("\n", start)
    line = sql[first:] if last < 0 else sql[first:last]
    width = max(1, min(end or start + 1, first + len(line)) - start)
    return f"  {line}\n  {' ' * (start - first)}{'^' * width}"


def nearest(name: str, existing: Iterable[str], most: int = 5) -> str:
    """A hint that lists existing names, nearest first.

    >>> nearest("amont", ["id", "amount"])
    'Existing: amount, id.'
    """
    names = list(dict.fromkeys(existing))
    if not names:
        return ""
    lowered = {n.lower(): n for n in names}
    close = [lowered[n] for n in get_close_matches(name.lower(), lowered, n=most, cutoff=0.4)]
    shown = (close + [n for n in names if n not in close])[: max(most, len(close))]
    more = ", …" if len(names) > len(shown) else ""
    return f"Existing: {', '.join(shown)}{more}."
