"""Statements without their inputs: written once, filled in whenever they run.

Writing a statement takes longer than most small ones do. What is read stands in it as a place; the
files that a place stands for are other ones at each refresh.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from slackwater.engine.programs import Program
from slackwater.errors import InternalError

_MARK = f"\0{secrets.token_hex(8)}\0"
"""Of this process alone, so that no text of a user can hold it."""

Pieces = tuple[str, ...]
"""Text and, at odd places, the source whose input stands there."""


def place_of(source: str) -> str:
    """What stands in a statement for the input of a source."""
    return f"{_MARK}{source}{_MARK}"


@dataclass(frozen=True)
class Template:
    """A program with places for its inputs."""

    program: Program

    def filled(self, inputs: Mapping[str, str]) -> Program:
        """The program over these inputs.

        >>> read = Template(Program((), f"SELECT * FROM {place_of('t')} AS s", 1))
        >>> read.filled({"t": "read_parquet(['a'])"}).sql
        "SELECT * FROM read_parquet(['a']) AS s"
        """
        parts = zip(self.program.parts, self._parts, strict=True)
        return replace(
            self.program,
            parts=tuple(replace(part, sql=_filled(pieces, inputs)) for part, pieces in parts),
            sql=_filled(self._sql, inputs),
        )

    @cached_property
    def _sql(self) -> Pieces:
        return tuple(self.program.sql.split(_MARK))

    @cached_property
    def _parts(self) -> tuple[Pieces, ...]:
        return tuple(tuple(part.sql.split(_MARK)) for part in self.program.parts)


def _filled(pieces: Pieces, inputs: Mapping[str, str]) -> str:
    texts = list(pieces)
    for place in range(1, len(texts), 2):
        if texts[place] not in inputs:
            raise InternalError(f"source '{texts[place]}' has no input")
        texts[place] = inputs[texts[place]]
    return "".join(texts)
