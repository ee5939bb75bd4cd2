"""Which files of rows, and what they are written in. Light: imported by every call."""

from __future__ import annotations

import glob
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from slackwater.errors import UserError


class FileFormat(StrEnum):
    """What a file of rows is written in."""

    csv = "csv"
    json = "json"
    parquet = "parquet"


_SUFFIXES = {
    ".csv": FileFormat.csv,
    ".tsv": FileFormat.csv,
    ".json": FileFormat.json,
    ".jsonl": FileFormat.json,
    ".ndjson": FileFormat.json,
    ".parquet": FileFormat.parquet,
    ".pq": FileFormat.parquet,
}


@dataclass(frozen=True)
class Reading:
    """How files are read. `null` is the text that stands for NULL in CSV, beside nothing."""

    format: FileFormat | None = None
    delimiter: str | None = None
    header: bool = True
    null: str = ""

    def format_of(self, path: Path) -> FileFormat:
        """The format given, or told by the file's name (`.gz` and the like left aside)."""
        suffixes = [s for s in path.suffixes if s.lower() in _SUFFIXES]
        if self.format is None and not suffixes:
            raise UserError(
                f"The format of '{path}' is not known from its name.",
                code="BAD_FILE",
                hint="Say --format csv, json or parquet.",
            )
        return self.format or _SUFFIXES[suffixes[-1].lower()]

    def delimiter_of(self, path: Path) -> str:
        """The one given; a tab for `.tsv`; a comma."""
        return self.delimiter or ("\t" if ".tsv" in path.suffixes else ",")


def expand(patterns: list[str]) -> list[Path]:
    """The files that paths, globs and folders name, in order, each once."""
    found: dict[Path, None] = {}
    for pattern in patterns:
        path = Path(pattern)
        if path.is_dir():
            names = sorted(p for p in path.iterdir() if p.suffix.lower() in _SUFFIXES)
        elif path.exists():
            names = [path]
        else:
            names = sorted(Path(p) for p in glob.glob(pattern, recursive=True))
        if not names:
            raise UserError(
                f"No file is at '{pattern}'.",
                code="BAD_FILE",
                hint="Give files, globs in quotes, or a folder.",
            )
        found.update(dict.fromkeys(names))
    return list(found)
