"""External Parquet folders: which files are there, and whether they are what they were.

New files are inserts. Rows of vanished files can no longer be read, so what was computed from
them is recomputed (`SOURCE_ROWS_GONE`). A file rewritten in place is refused: nobody can tell
which of its rows are new.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from slackwater.errors import StateError, UserError
from slackwater.types import Field, Schema, from_arrow, quote

FOOTER_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class File:
    """A file as it was seen: if any of this changes, it is another file."""

    path: str
    bytes: int
    modified_ns: int
    footer: str

    def to_json(self) -> list[Any]:
        """As plain data for the catalog."""
        return [self.path, self.bytes, self.modified_ns, self.footer]


@dataclass(frozen=True, slots=True)
class Changes:
    """What happened to a folder since it was last read."""

    added: tuple[File, ...]
    gone: tuple[File, ...]


def files(folder: str) -> tuple[File, ...]:
    """The Parquet files of a folder, at any depth; hidden and temporary ones left out."""
    root = Path(folder)
    if root.is_file():
        return (look(root),)
    if not root.is_dir():
        raise UserError(
            f"Folder '{folder}' does not exist.",
            code="SOURCE_MISSING",
            hint="Create it, or change the table's path.",
        )
    return tuple(look(p) for p in _listed(root))


def _listed(root: Path) -> list[Path]:
    try:
        return sorted(
            p
            for p in root.rglob("*.parquet")
            if p.is_file() and not any(part[0] in "_." for part in p.relative_to(root).parts)
        )
    except FileNotFoundError as error:
        raise _vanished(f"Folder '{error.filename}'") from error


def look(path: Path) -> File:
    """A file as it is now."""
    try:
        stat = path.stat()
        with path.open("rb") as handle:
            handle.seek(max(0, stat.st_size - FOOTER_BYTES))
            footer = hashlib.blake2b(handle.read(), digest_size=12).hexdigest()
    except FileNotFoundError as error:
        raise _vanished(f"File '{path}'") from error
    return File(str(path), stat.st_size, stat.st_mtime_ns, footer)


def row_count(folder: str) -> int:
    """The rows of a folder's files, by their footers, each of which is read once; a file that is
    still being written has none yet."""
    root = Path(folder)
    return sum(_rows_at(p) for p in ([root] if root.is_file() else _listed(root)))


def rows_of(found: Iterable[File]) -> int:
    """The rows of files that were looked at, by their footers, each of which is read once."""
    return sum(map(_rows_of, found))


def _rows_of(file: File) -> int:
    try:
        return _rows(file.path, file.bytes, file.modified_ns)
    except FileNotFoundError as error:
        raise _vanished(f"File '{file.path}'") from error


def _rows_at(path: Path) -> int:
    try:
        stat = path.stat()
        return _rows(str(path), stat.st_size, stat.st_mtime_ns)
    except (OSError, pa.ArrowInvalid):
        return 0


@lru_cache(maxsize=100_000)
def _rows(path: str, size: int, modified_ns: int) -> int:
    return int(pq.read_metadata(path).num_rows)


def _vanished(what: str) -> StateError:
    return StateError(
        f"{what} vanished while it was being read.",
        code="SOURCE_CHANGED",
        hint="Run the statement again.",
    )


def compare(before: Iterable[Any], now: Iterable[File], table: str, view: str) -> Changes:
    """What is new and what is gone; a file rewritten in place is refused."""
    old = {f.path: f for f in (File(*f) if not isinstance(f, File) else f for f in before)}
    new = {f.path: f for f in now}
    for path, file in new.items():
        if path in old and old[path] != file:
            raise StateError(
                f"File '{path}' of table '{table}' was rewritten in place.",
                code="SOURCE_FILE_REWRITTEN",
                hint="Write changed data under a new file name. To accept the file as it is now, "
                f"refresh in full: REFRESH MATERIALIZED VIEW {quote(view)} FULL.",
            )
    return Changes(
        tuple(f for p, f in new.items() if p not in old),
        tuple(f for p, f in old.items() if p not in new),
    )


def require_unchanged(seen: Iterable[File], table: str) -> None:
    """After a read: every file is still the one that was looked at before."""
    for file in seen:
        if look(Path(file.path)) != file:
            raise StateError(
                f"File '{file.path}' of table '{table}' changed while it was being read.",
                code="SOURCE_CHANGED",
                hint="Run the statement again when nobody writes to the file.",
            )


def infer_schema(folder: str, found: tuple[File, ...]) -> Schema:
    """The columns of the first file."""
    if not found:
        raise UserError(
            f"Folder '{folder}' has no Parquet files, so its columns are not known.",
            code="SOURCE_EMPTY",
            hint="Name the columns in CREATE TABLE.",
        )
    return _schema_of(found[0].path)


def _schema_of(path: str) -> Schema:
    try:
        arrow = pq.read_schema(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise UserError(
            f"File '{path}' is not a Parquet file: {error}", code="SOURCE_UNREADABLE"
        ) from error
    return tuple(Field(f.name, from_arrow(f.type), True) for f in arrow)


def check_schema(schema: Schema, found: tuple[File, ...], table: str) -> None:
    """Every file has the table's columns in types that the table's can hold."""
    wanted: Mapping[str, Field] = {f.name.lower(): f for f in schema}
    for file in found:
        present = {f.name.lower(): f for f in _schema_of(file.path)}
        missing = [f.name for name, f in wanted.items() if name not in present]
        if missing:
            raise UserError(
                f"File '{file.path}' of table '{table}' has no column '{missing[0]}'.",
                code="SOURCE_SCHEMA",
                hint=f"It has: {', '.join(present)}.",
            )
        for name, f in wanted.items():
            if present[name].type != f.type:
                raise UserError(
                    f"File '{file.path}' of table '{table}': column '{f.name}' is "
                    f"{present[name].type.sql}, not {f.type.sql}.",
                    code="SOURCE_SCHEMA",
                    hint="Declare the column with the type that the files have.",
                )
