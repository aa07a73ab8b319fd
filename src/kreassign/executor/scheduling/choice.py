"""Which of the waiting moves start now. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from kreassign.executor.scheduling.caps import InFlight
from kreassign.executor.scheduling.order import Order, left_to_do, ranking
from kreassign.executor.scheduling.priority_merge import PriorityMerge
from kreassign.executor.scheduling.values import Candidate, Caps, Choice, Waiting


class Supply(Protocol):
    """What moves use up: the room on disks, the time until a window closes."""

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
    turns = PriorityMerge([(move,) for move in waiting], ranking(order, left_to_do(waiting, in_flight)))
    return choose_in_turn(turns, InFlight.of(caps or Caps(), in_flight), supplies)


def choose_in_turn(turns: PriorityMerge, counts: InFlight, supplies: Iterable[Supply]) -> Choice:
    """The same of moves in lanes, given what is in flight. What a closed end holds up is not named as waiting."""
    supplies = tuple(supplies)
    starting, held = [], []
    for move in turns:
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
            turns.close()
    return Choice(tuple(starting), tuple(held))
