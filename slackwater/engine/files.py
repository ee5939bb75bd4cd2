"""Files that survive a power cut, and errors of the disk that say what to do."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from slackwater.errors import StateError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_ATTEMPTS = 3
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)


@contextmanager
def disk_errors(root: Path) -> Iterator[None]:
    """A full or forbidden disk as a state error."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise StateError(
                f"The disk that holds {root} is full.",
                code="DISK_FULL",
                hint="Free some space and try again; nothing of this change is visible.",
            ) from error
        if error.errno in _DENIED:
            raise StateError(
                f"{error.filename or root} may not be written: {error.strerror}.",
                code="NOT_WRITABLE",
                hint="Check the owner and the permissions of the warehouse folder.",
            ) from error
        raise


def sync(path: Path) -> None:
    """Make a file's content, or a directory's names, survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_upwards(directory: Path, root: Path, named: Collection[Path] = ()) -> list[Path]:
    """Sync the directory and those above it up to `root`, each naming the next, or up to one of
    those whose own names are safe already; the directories that were synced."""
    synced = []
    while directory.is_relative_to(root):
        sync(directory)
        synced.append(directory)
        if directory in named:
            break
        directory = directory.parent
    return synced


def replace_text(path: Path, text: str) -> None:
    """Give the file a new content at once: readers see the old or the new, never a mix."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with fresh.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync(path.parent)


def remove_file(path: Path, root: Path) -> int:
    """Delete a file and the directories below `root` that it leaves empty; the bytes freed."""
    try:
        freed = path.stat().st_size
        path.unlink()
    except FileNotFoundError:
        freed = 0
    for parent in path.parents:
        if parent == root or not parent.is_relative_to(root) or not _remove_empty(parent):
            break
    return freed


def remove_tree(directory: Path) -> int:
    """Delete a directory with all it holds; the bytes freed.

    Others may delete it, too. While somebody goes on writing into it, some of it may stay.
    """
    if not directory.exists():
        return 0
    below = os.walk(directory)
    freed = sum(_size(Path(place, name)) for place, _, names in below for name in names)
    for _ in range(_ATTEMPTS):
        if directory.exists():
            shutil.rmtree(directory, onerror=_unless_gone)
    return freed


def remove_empty_below(directory: Path) -> None:
    """Delete the empty directories in a directory, and itself if nothing is left."""
    for place, _, names in os.walk(directory, topdown=False):
        if not names:
            _remove_empty(Path(place))  # unless directories below it stayed


def _remove_empty(directory: Path) -> bool:
    try:
        directory.rmdir()
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:
        return 0


def _unless_gone(_function: object, _path: str, info: tuple[type, BaseException, object]) -> None:
    """A file that somebody else just deleted is deleted; one just written needs a second go."""
    error = info[1]
    if not isinstance(error, OSError) or error.errno not in (errno.ENOENT, errno.ENOTEMPTY):
        raise error
