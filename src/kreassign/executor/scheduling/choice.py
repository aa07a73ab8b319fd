"""Which of the waiting moves start now. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from kreassign.executor.scheduling.candidate import Candidate
from kreassign.executor.scheduling.limits import Caps, InFlight
from kreassign.executor.scheduling.queue import Order, PriorityMerge, left_to_do, ranking
from kreassign.model import TopicPartition


@dataclass(frozen=True, slots=True)
class Waiting:
    """A move that does not start now, and why: a sentence for the operator."""

    topic_partition: TopicPartition
    reason: str


@dataclass(frozen=True, slots=True)
class Choice:
    """What starts now, in this order, and what waits for what."""

    starting: tuple[TopicPartition, ...]
    waiting: tuple[Waiting, ...] = ()


class Supply(Protocol):
    """What moves use up: free space on disks, the time until a window closes."""

    @property
    def depends_on_size(self) -> bool:
        """Whether it may refuse a move and take another one between the same ends."""
        ...

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
) -> Choice:
    """Go through the waiting moves in order and start each that the limits and the supplies allow.

    A move that has to wait holds up no other: a later one between other brokers starts in its place. The supplies are
    used up by what is chosen.
    """
    waiting, in_flight = tuple(waiting), tuple(in_flight)
    merged = PriorityMerge([(move,) for move in waiting], ranking(order, left_to_do(waiting, in_flight)))
    return choose_from(merged, InFlight.of(caps or Caps(), in_flight), supplies)


def choose_from(merged: PriorityMerge, counts: InFlight, supplies: Iterable[Supply]) -> Choice:
    """Choose among merged route queues, given what is in flight. A move that a closed end holds up is not reported."""
    supplies = tuple(supplies)
    starting, held = [], []
    for move in merged:
        reason, is_final = counts.refuses(move), False
        for supply in supplies if reason is None else ():
            if (reason := supply.refuses(move)) is not None:
                is_final = not supply.depends_on_size
                break
        if reason is None:
            counts.add(move)
            for supply in supplies:
                supply.promise(move)
            starting.append(move.topic_partition)
            continue
        held.append(Waiting(move.topic_partition, reason))
        if is_final or counts.is_closed_to(move):
            merged.close()
    return Choice(tuple(starting), tuple(held))
