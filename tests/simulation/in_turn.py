"""Calls at several nodes, one after the other, where the client makes them at the same time in threads.

In a twin's own time threads take turns anyway, in an order that the machine chooses, and wait for each other longer
than they work. In turn, a seed is the same trial each time, and takes half as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Self, TypeVar

from kreassign.admin import session
from kreassign.errors import ClusterError

Answer = TypeVar("Answer")


class InTurn:
    """Takes the place of a pool of threads: what is submitted is done at once."""

    def __init__(self, count: int) -> None:
        del count

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def submit(self, ask: Callable[..., Answer], *words: object) -> Future[Answer]:
        """Do it, and keep what came of it; anything but an answer or an error of the cluster is raised at once."""
        found: Future[Answer] = Future()
        try:
            found.set_result(ask(*words))
        except ClusterError as error:
            found.set_exception(error)
        return found


@contextmanager
def asked_in_turn() -> Iterator[None]:
    """Let clients of this process ask one node after the other."""
    names = vars(session)
    pool, names["ThreadPoolExecutor"] = names["ThreadPoolExecutor"], InTurn
    try:
        yield
    finally:
        names["ThreadPoolExecutor"] = pool
