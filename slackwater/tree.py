"""Frozen, interned nodes: children, map, replace.

Two nodes that are equal are the same object, so that equality is `is`, hashing is free, and
shared parts stay shared through every rewrite.
"""

from __future__ import annotations

import dataclasses
import hashlib
import threading
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from typing import Any, ClassVar, Self, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")


class _Interning(type):
    """Makes a class return the one existing object for equal field values."""

    _objects: ClassVar[WeakValueDictionary[Any, Any]] = WeakValueDictionary()
    _lock: ClassVar[threading.RLock] = threading.RLock()

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__call__(*args, **kwargs)
        key = (cls, *made.identity())
        with _Interning._lock:
            return _Interning._objects.setdefault(key, made)


@dataclasses.dataclass(frozen=True, eq=False)
class Node(metaclass=_Interning):
    """A frozen value with children. Subclasses are dataclasses and may check themselves."""

    def identity(self) -> tuple[Any, ...]:
        """The values that make two nodes the same."""
        return self.values()

    def values(self) -> tuple[Any, ...]:
        """The values of all fields."""
        return tuple(getattr(self, name) for name in field_names(type(self)))

    @cached_property
    def children(self) -> tuple[Node, ...]:
        """The nodes of this node's own kind directly below it, in field order."""
        return tuple(walk_values(self.values(), self.kind()))

    @classmethod
    def kind(cls) -> Family:
        """The family (expressions, relations) whose members count as children."""
        return Node

    def with_children(self, change: Callable[[Any], Any]) -> Self:
        """This node with `change` applied to each child; itself when nothing changed."""
        return self.rebuilt(self.kind(), change) if self.children else self

    def rebuilt(self, kind: Family, change: Callable[[Any], Any]) -> Self:
        """This node with `change` applied to each node of a family in its fields."""
        values = {}
        for name in field_names(type(self)):
            old = getattr(self, name)
            new = rebuild(old, kind, change)
            if new is not old:
                values[name] = new
        return self.replace(**values) if values else self

    def replace(self, **values: Any) -> Self:
        """This node with some fields changed."""
        return dataclasses.replace(self, **values)

    def map(self, answer: Callable[[Any, tuple[Any, ...]], T]) -> T:
        """`answer(node, answers of its children)` for the whole DAG, bottom-up.

        Each distinct node is asked once.
        """
        known: dict[Node, T] = {}
        for node in self.walk():
            known[node] = answer(node, tuple(known[c] for c in node.children))
        return known[self]

    def rewrite(self, change: Callable[[Any], Any]) -> Any:
        """The tree with `change` applied bottom-up; unchanged parts are the same objects."""
        known: dict[Node, Node] = {}
        for node in self.walk():
            known[node] = change(node.with_children(lambda child: known[child]))
        return known[self]

    def digest(self) -> str:
        """A short text that is the same for equal nodes in every process."""
        if "_digest" not in vars(self):
            for node in self.walk():
                _ = node._digest  # from the leaves up, however deep the tree is
        return self._digest

    @cached_property
    def _digest(self) -> str:
        parts = [type(self).__name__, *(_digest_of(value) for value in self.identity())]
        return hashlib.sha256("|".join(parts).encode()).hexdigest()[:32]

    def walk(self) -> Iterator[Any]:
        """Each distinct node below and including this one, children first."""
        seen: set[Node] = set()
        stack: list[tuple[Node, bool]] = [(self, False)]
        while stack:
            node, ready = stack.pop()
            if ready:
                yield node
            elif node not in seen:
                seen.add(node)
                stack.append((node, True))
                stack.extend((child, False) for child in reversed(node.children))


def _digest_of(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({','.join(_digest_of(item) for item in value)})"
    return value._digest if isinstance(value, Node) else repr(value)


Family = type[Node]
"""A kind of node, such as expressions, whose members count as children of each other."""


@cache
def field_names(kind: Family) -> tuple[str, ...]:
    """The names of a class of nodes' fields."""
    return tuple(field.name for field in dataclasses.fields(kind))


def walk_values(value: Any, kind: Family) -> Iterator[Node]:
    """The nodes of a family in a field's value, tuples included."""
    if isinstance(value, kind):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from walk_values(item, kind)


def rebuild(value: Any, kind: Family, change: Callable[[Any], Any]) -> Any:
    """A field's value with `change` applied to its nodes; itself when nothing changed."""
    if isinstance(value, kind):
        return change(value)
    if isinstance(value, tuple) and value:
        items = tuple(rebuild(item, kind, change) for item in value)
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    return value
