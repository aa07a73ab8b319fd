"""In which order waiting moves get their turn. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum

from kreassign.executor.pacing.values import Candidate, Spot
from kreassign.model.plan import partition_order


class Order(StrEnum):
    """Which of the moves that wait goes first. Urgent ones precede all others in every order."""

    MAKESPAN = "makespan"  # the longest on the broker with the most left to do
    RELIEF = "relief"  # whatever leaves the broker with the most to send
    SMALL_FIRST = "small-first"
    LARGE_FIRST = "large-first"
    NAME = "name"  # KIP-1335: topic, then partition


def in_order(
    waiting: Iterable[Candidate],
    in_flight: Iterable[Candidate],
    order: Order,
    waiting_bytes: Mapping[Spot, int] | None = None,
) -> tuple[Candidate, ...]:
    """The waiting moves, the first to start first; moves alike in everything else follow topic and partition.

    `makespan` is the rule of the longest processing time: the broker that has most left to send or to receive ends
    last, so nothing of it may be put off, and its longest copy least of all. `waiting_bytes` is what everything that
    waits, also what is not named here, has still to copy per end; None counts those that are.
    """
    waiting = sorted(waiting, key=lambda move: partition_order(move.topic_partition))
    if order is Order.MAKESPAN:
        left = _left(waiting, in_flight, waiting_bytes)
        waiting.sort(key=lambda move: (-max((left[end] for end in _brokers(move)), default=0), -move.size_bytes))
    elif order is Order.RELIEF:
        left = _left(waiting, in_flight, waiting_bytes)
        waiting.sort(key=lambda move: (-left["source", move.source], -move.size_bytes))
    elif order is Order.SMALL_FIRST:
        waiting.sort(key=lambda move: move.total_bytes)
    elif order is Order.LARGE_FIRST:
        waiting.sort(key=lambda move: -move.total_bytes)
    return tuple(sorted(waiting, key=lambda move: not move.is_urgent))


def _brokers(move: Candidate) -> tuple[Spot, ...]:
    """The sending end and the receiving ends of its copies."""
    if not move.destinations:
        return ()
    return (("source", move.source), *(("destination", broker) for broker in move.destinations))


def _left(
    waiting: Iterable[Candidate], in_flight: Iterable[Candidate], waiting_bytes: Mapping[Spot, int] | None
) -> Counter[Spot]:
    """Bytes that each broker still has to send and to receive."""
    left: Counter[Spot] = Counter(waiting_bytes or {})
    for move in (*(waiting if waiting_bytes is None else ()), *in_flight):
        for kind, which, _, size_bytes in move.ends:
            left[kind, which] += size_bytes
    return left
