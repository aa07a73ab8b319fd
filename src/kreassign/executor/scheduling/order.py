"""In which order waiting moves get their turn. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType

from kreassign.executor.scheduling.values import Candidate, Endpoint
from kreassign.model.plan import partition_order


class Order(StrEnum):
    """Which of the moves that wait goes first. Urgent ones precede all others in every order."""

    MAKESPAN = "makespan"  # the longest on the broker with the most left to do
    RELIEF = "relief"  # whatever leaves the broker with the most to send
    SMALL_FIRST = "small-first"
    LARGE_FIRST = "large-first"
    NAME = "name"  # KIP-1335: topic, then partition


Ranked = tuple[bool, int, int, tuple[bytes, int]]
"""The smaller, the sooner; no two moves have the same."""

Rank = Callable[[Candidate], Ranked]


def in_order(waiting: Iterable[Candidate], in_flight: Iterable[Candidate], order: Order) -> tuple[Candidate, ...]:
    """The waiting moves, the first to start first."""
    waiting = tuple(waiting)
    return tuple(sorted(waiting, key=ranking(order, left_to_do(waiting, in_flight))))


def ranking(order: Order, left: Mapping[Endpoint, int]) -> Rank:
    """By what moves are ordered, given what each end has left to do; those alike follow topic and partition.

    `makespan` is the rule of the longest processing time: the broker that has most left to send or to receive ends
    last, so nothing of it may be put off, and its longest copy least of all. Moves between the same ends have the same
    order whatever is left to do.
    """
    keys = _KEYS[order]

    def rank(move: Candidate) -> Ranked:
        return (not move.is_urgent, *keys(move, left), partition_order(move.topic_partition))

    return rank


def left_to_do(waiting: Iterable[Candidate], in_flight: Iterable[Candidate]) -> Counter[Endpoint]:
    """Bytes that each end still has to send and to receive."""
    return add_left(Counter(), (*waiting, *in_flight))


def add_left(left: Counter[Endpoint], moves: Iterable[Candidate]) -> Counter[Endpoint]:
    """The same with what these moves have to copy."""
    for move in moves:
        for kind, which, _, size_bytes in move.ends:
            left[kind, which] += size_bytes
    return left


def _makespan(move: Candidate, left: Mapping[Endpoint, int]) -> tuple[int, int]:
    return -max((left.get(end, 0) for end in _brokers(move)), default=0), -move.size_bytes


def _relief(move: Candidate, left: Mapping[Endpoint, int]) -> tuple[int, int]:
    return -left.get(("source", move.source), 0), -move.size_bytes


_KEYS: Mapping[Order, Callable[[Candidate, Mapping[Endpoint, int]], tuple[int, int]]] = MappingProxyType(
    {
        Order.MAKESPAN: _makespan,
        Order.RELIEF: _relief,
        Order.SMALL_FIRST: lambda move, _: (move.total_bytes, 0),
        Order.LARGE_FIRST: lambda move, _: (-move.total_bytes, 0),
        Order.NAME: lambda *_: (0, 0),
    }
)


def _brokers(move: Candidate) -> tuple[Endpoint, ...]:
    """The sending end and the receiving ends of its copies."""
    if not move.destinations:
        return ()
    return (("source", move.source), *(("destination", broker) for broker in move.destinations))
