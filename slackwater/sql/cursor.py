"""Reading statements token by token, where sqlglot has no syntax for them."""

from __future__ import annotations

from sqlglot import Token

from slackwater.errors import SqlError
from slackwater.sql.parse import Script


class Cursor:
    """Reads tokens one by one."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.tokens = script.tokens
        self.base = script.tokens[0].start
        self.at = 0

    def peek(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def accept(self, *words: str) -> bool:
        """Take these words if they come next."""
        found = [t.text.upper() for t in self.tokens[self.at : self.at + len(words)]]
        if found != list(words):
            return False
        self.at += len(words)
        return True

    def sees(self, *words: str) -> bool:
        """Does the next token begin with one of some words?"""
        token = self.peek()
        return token is not None and token.text.upper().split()[0] in words

    def expect(self, *words: str) -> None:
        """Take these words, or complain."""
        if not self.accept(*words):
            raise self.error(f"'{' '.join(words)}' is expected")

    def name(self) -> str:
        """A table or view name."""
        token = self.peek()
        if token is None or not _is_name(token):
            raise self.error("a name is expected")
        self.at += 1
        if self.accept("."):
            raise self.error("a warehouse has no schemas inside; quote a name that has a dot")
        return token.text

    def value(self) -> str:
        """A string, number or word."""
        token = self.peek()
        if token is None:
            raise self.error("a value is expected")
        self.at += 1
        return token.text

    def options(self) -> dict[str, str]:
        """(key = value, …)."""
        self.expect("(")
        found: dict[str, str] = {}
        while not self.accept(")"):
            key = self.value()
            self.accept("=")
            found[key.lower()] = self.value()
            if not self.accept(","):
                self.expect(")")
                break
        return found

    def rest(self) -> tuple[str, int]:
        """The text from here on, and where it begins."""
        token = self.peek()
        if token is None:
            raise self.error("a query is expected")
        start = token.start - self.base
        return self.script.text[start:], start

    def end(self) -> None:
        """Nothing may follow."""
        if self.peek() is not None:
            raise self.error("nothing more is expected")

    def error(self, what: str) -> SqlError:
        token = self.peek()
        start = (token.start if token else self.tokens[-1].end) - self.base
        end = (token.end + 1 if token else self.tokens[-1].end + 1) - self.base
        near = f" near '{token.text}'" if token else " at the end"
        return SqlError(
            f"Syntax error{near}: {what}.",
            code="SYNTAX_ERROR",
            hint="Check the statement's form in the README.",
            start=start,
            end=end,
        )


def _is_name(token: Token) -> bool:
    if token.token_type.name == "IDENTIFIER":
        return True
    return bool(token.text) and (token.text[0].isalnum() or token.text[0] == "_")
