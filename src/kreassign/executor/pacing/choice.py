"""Which of the waiting moves start now. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from kreassign.executor.pacing.caps import InFlight
from kreassign.executor.pacing.order import Order, in_order
from kreassign.executor.pacing.values import Candidate, Caps, Choice, Spot, Waiting


class Supply(Protocol):
    """What moves use up: the room on disks, the time until a window closes."""

    def refuses(self, move: Candidate) -> str | None:
        """What is lacking for the move, as a sentence, or None."""
        ...

    def promise(self, move: Candidate) -> None:
        """Take off what the move needs."""
        ...


def choose(
    waiting: Iterable[Candidate],
    in_flight: Iterable[Candidate],
    *,
    caps: Caps | None = None,
    order: Order = Order.MAKESPAN,
    supplies: Iterable[Supply] = (),
    waiting_bytes: Mapping[Spot, int] | None = None,
) -> Choice:
    """Go through the waiting moves in order and start each that the limits and the supplies allow.

    A move that has to wait holds up no other: a later one between other brokers starts in its place. The supplies are
    used up by what is chosen. `waiting_bytes` is what all that waits has to copy per end, where `waiting` is not all
    of it.
    """
    flying = tuple(in_flight)
    counts, supplies = InFlight.of(caps or Caps(), flying), tuple(supplies)
    starting, held = [], []
    for move in in_order(waiting, flying, order, waiting_bytes):
        reason = counts.refuses(move) or next(filter(None, (supply.refuses(move) for supply in supplies)), None)
        if reason is not None:
            held.append(Waiting(move.topic_partition, reason))
            continue
        counts.add(move)
        for supply in supplies:
            supply.promise(move)
        starting.append(move.topic_partition)
    return Choice(tuple(starting), tuple(held))
