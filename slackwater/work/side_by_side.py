"""Things done several at a time, each after those it needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from typing import TypeVar

T = TypeVar("T", bound=Hashable)
R = TypeVar("R")


def side_by_side(
    items: Sequence[T], needs: Callable[[T], Collection[T]], do: Callable[[T], R], pool: Executor
) -> list[R]:
    """`do` of every item, after `do` of those it needs; the results in the items' order.

    After a failure nothing new is begun. What is under way ends first; of several failures, that
    of the earliest item is raised. An item that nothing can be done beside is done right here: no
    other thread has to be woken for it.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(2) as pool:
    ...     side_by_side(["b", "a"], lambda i: {"b": ["a"]}.get(i, []), str.upper, pool)
    ['B', 'A']
    """
    done: dict[T, Future[R]] = {}
    waiting, running = list(items), dict[Future[R], T]()
    while waiting or running:
        if not any(future.exception() for future in done.values()):
            ready = [i for i in waiting if all(n in done for n in needs(i))]
            waiting = [i for i in waiting if i not in ready]
            if len(ready) == 1 and not running:
                done[ready[0]] = _done_here(do, ready[0])
                continue
            running |= {pool.submit(do, item): item for item in ready}
        if not running:
            break
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            done[running.pop(future)] = future
    return [done[item].result() for item in sorted(done, key=items.index)]


def _done_here(do: Callable[[T], R], item: T) -> Future[R]:
    future: Future[R] = Future()
    try:
        future.set_result(do(item))
    except Exception as error:  # noqa: BLE001 - raised with the results
        future.set_exception(error)
    return future
