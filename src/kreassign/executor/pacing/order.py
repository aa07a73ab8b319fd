"""In which order waiting moves get their turn. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum

from kreassign.executor.pacing.values import Candidate
from kreassign.model.plan import partition_order


class Order(StrEnum):
    """Which of the moves that wait goes first. Urgent ones precede all others in every order."""

    MAKESPAN = "makespan"  # the longest on the broker with the most left to do
    RELIEF = "relief"  # whatever leaves the broker with the most to send
    SMALL_FIRST = "small-first"
    LARGE_FIRST = "large-first"
    NAME = "name"  # KIP-1335: topic, then partition


def in_order(waiting: Iterable[Candidate], in_flight: Iterable[Candidate], order: Order) -> tuple[Candidate, ...]:
    """The waiting moves, the first to start first; moves alike in everything else follow topic and partition.

    `makespan` is the rule of the longest processing time: the broker that has most left to send or to receive ends
    last, so nothing of it may be put off, and its longest copy least of all.
    """
    waiting = sorted(waiting, key=lambda move: partition_order(move.topic_partition))
    if order is Order.MAKESPAN:
        left = _left([*waiting, *in_flight], (True, False))
        waiting.sort(key=lambda move: (-max((left[end] for end in _ends(move)), default=0), -move.size_bytes))
    elif order is Order.RELIEF:
        left = _left([*waiting, *in_flight], (True,))
        waiting.sort(key=lambda move: (-left[True, move.source], -move.size_bytes))
    elif order is Order.SMALL_FIRST:
        waiting.sort(key=lambda move: move.total_bytes)
    elif order is Order.LARGE_FIRST:
        waiting.sort(key=lambda move: -move.total_bytes)
    return tuple(sorted(waiting, key=lambda move: not move.is_urgent))


def _ends(move: Candidate) -> tuple[tuple[bool, int], ...]:
    """The sending end (True) and the receiving ends (False) of its copies."""
    if not move.destinations:
        return ()
    return ((True, move.source), *((False, broker) for broker in move.destinations))


def _left(moves: Sequence[Candidate], sides: tuple[bool, ...]) -> Counter[tuple[bool, int]]:
    """Bytes that each broker still has to send and to receive."""
    left: Counter[tuple[bool, int]] = Counter()
    for move in moves:
        for end in _ends(move):
            if end[0] in sides:
                left[end] += move.total_bytes if end[0] else move.size_bytes
    return left
