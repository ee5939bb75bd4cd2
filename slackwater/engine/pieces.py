"""Files in pieces, by the values of some columns, as Spark names them.

Spark calls the pieces buckets, and finds the number of each in the name of its file.
"""

from __future__ import annotations

import re
from pathlib import Path

_PART = re.compile(r"(part-(\d{5})-[^.]*?)(-c\d+)?(\..*parquet)")


def number(directory: Path) -> None:
    """Give files that were written one for each piece their numbers."""
    for path in sorted(directory.glob("part-*.parquet")):
        path.rename(path.with_name(numbered(path.name)))


def numbered(name: str) -> str:
    """The name of a file, with the number of its piece where Spark looks for it.

    >>> numbered("part-00003-2b5f-c000.zstd.parquet")
    'part-00003-2b5f_00003.c000.zstd.parquet'
    """
    found = _PART.fullmatch(name)
    if found is None:
        return name
    stem, piece, count, ending = found.groups()
    return f"{stem}_{piece}{(count or '').replace('-', '.')}{ending}"
