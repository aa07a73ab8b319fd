"""Which of the waiting moves start now. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kreassign.executor.pacing.caps import InFlight
from kreassign.executor.pacing.disks import Room
from kreassign.executor.pacing.order import Order, in_order
from kreassign.executor.pacing.time_left import TimeLeft
from kreassign.executor.pacing.values import Candidate, Caps, Choice, Spot, Waiting


def choose(
    waiting: Iterable[Candidate],
    in_flight: Iterable[Candidate],
    *,
    caps: Caps | None = None,
    order: Order = Order.MAKESPAN,
    room: Room | None = None,
    waiting_bytes: Mapping[Spot, int] | None = None,
    time: TimeLeft | None = None,
) -> Choice:
    """Go through the waiting moves in order and start each that the limits, the disks and the time allow.

    A move that has to wait holds up no other: a later one between other brokers starts in its place. `room` and
    `time` are used up by what is chosen. `waiting_bytes` is what all that waits has to copy per end, where `waiting`
    is not all of it.
    """
    flying = tuple(in_flight)
    counts, disks = InFlight.of(caps or Caps(), flying), room or Room({}, None)
    starting, held = [], []
    for move in in_order(waiting, flying, order, waiting_bytes):
        reason = counts.refuses(move) or disks.refuses(move) or (time.refuses(move) if time is not None else None)
        if reason is not None:
            held.append(Waiting(move.topic_partition, reason))
            continue
        counts.add(move)
        disks.promise(move)
        if time is not None:
            time.promise(move)
        starting.append(move.topic_partition)
    return Choice(tuple(starting), tuple(held))
