"""Which of some moves start now, by `choose_from`: for tests, and for the model of `bench/pacing.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kreassign.executor.scheduling.limits import InFlight, PacedMove
from kreassign.executor.scheduling.queue import NextMoves, PriorityMerge, Rank, Supply, add_left, choose_from, ranking
from kreassign.model.pace import Caps, Order


def choose(
    waiting: Iterable[PacedMove],
    in_flight: Iterable[PacedMove],
    *,
    caps: Caps | None = None,
    order: Order = Order.MAKESPAN,
    supplies: Iterable[Supply] = (),
) -> NextMoves:
    """The moves that start now, and why others wait."""
    waiting, in_flight = tuple(waiting), tuple(in_flight)
    merged = PriorityMerge([(move,) for move in waiting], rank(waiting, in_flight, order))
    return choose_from(merged, InFlight.of(caps or Caps(), in_flight), supplies)


def rank(waiting: Iterable[PacedMove], in_flight: Iterable[PacedMove], order: Order) -> Rank:
    """Sort key of waiting moves, given all that is left to copy."""
    return ranking(order, add_left(Counter(), (*waiting, *in_flight)))
