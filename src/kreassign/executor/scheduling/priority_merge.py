"""Whose turn it is, one move after the other, from lanes that are in order already. Pure but for itself.

A lane has moves between the same ends. Once one of its ends takes nothing more on, none of them need be looked at; so
a decision costs what may start and the lanes, not all that waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush

from kreassign.executor.scheduling.order import Rank, Ranked
from kreassign.executor.scheduling.values import Candidate

RouteQueue = Sequence[Candidate]
"""Moves in the order in which they start, no matter what else waits; at least one."""


class PriorityMerge:
    """Merges lanes by the rank of their moves. `close` after a move leaves out the rest of its lane."""

    def __init__(self, routes: Iterable[RouteQueue], rank: Rank) -> None:
        self._rank = rank
        self._next: list[tuple[Ranked, int, int, RouteQueue]] = [
            (rank(route[0]), number, 0, route) for number, route in enumerate(routes)
        ]
        heapify(self._next)
        self._is_closed = False

    def __iter__(self) -> Iterator[Candidate]:
        while self._next:
            _, number, index, route = heappop(self._next)
            self._is_closed = False
            yield route[index]
            if not self._is_closed and index + 1 < len(route):
                heappush(self._next, (self._rank(route[index + 1]), number, index + 1, route))

    def close(self) -> None:
        """No other move of the lane whose turn it was last."""
        self._is_closed = True
