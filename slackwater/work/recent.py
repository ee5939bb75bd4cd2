"""Answers that took long to find, for as long as the same is asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """The answers to the newest so many questions. Several threads may ask.

    >>> squares = Recent[int](2)
    >>> [squares.of(n, lambda: n * n) for n in (3, 4, 3, 5)]
    [9, 16, 9, 25]
    >>> squares.of(3, lambda: 0), squares.of(4, lambda: 0)
    (9, 0)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._known: dict[Hashable, T] = {}  # the newest last

    def of(self, question: Hashable, find: Callable[[], T]) -> T:
        """The answer, from memory if it is there."""
        with self._lock:
            known = question in self._known
            answer = self._known.pop(question) if known else None
        found: T = answer if known else find()  # type: ignore[assignment]
        with self._lock:
            self._known[question] = found
            while len(self._known) > self._most:
                del self._known[next(iter(self._known))]
        return found
