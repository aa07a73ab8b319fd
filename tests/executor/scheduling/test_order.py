"""Which of the waiting moves gets its turn first."""

from __future__ import annotations

import pytest

from kreassign.executor.scheduling import Candidate, Order
from kreassign.executor.scheduling.order import in_order
from kreassign.model import TopicPartition


def _move(number: int, size_bytes: int, source: int, *destinations: int, is_urgent: bool = False) -> Candidate:
    return Candidate(TopicPartition("t", number), size_bytes, source, destinations, is_urgent=is_urgent)


# Broker 9 has 50 to receive, of two moves; broker 1 has 45 to send, in one.
MOVES = (_move(0, 10, 2, 9), _move(1, 40, 3, 9), _move(2, 45, 1, 4), _move(10, 1, 5, 6), _move(3, 30, 7, 8))


def _numbers(order: Order, *more: Candidate, in_flight: tuple[Candidate, ...] = ()) -> list[int]:
    return [move.topic_partition.partition for move in in_order((*more, *reversed(MOVES)), in_flight, order)]


@pytest.mark.parametrize(
    ("order", "numbers"),
    [
        (Order.MAKESPAN, [1, 0, 2, 3, 10]),
        (Order.RELIEF, [2, 1, 3, 0, 10]),
        (Order.SMALL_FIRST, [10, 0, 3, 1, 2]),
        (Order.LARGE_FIRST, [2, 1, 3, 0, 10]),
        (Order.NAME, [0, 1, 2, 3, 10]),
    ],
)
def test_each_order_has_its_own_first(order: Order, numbers: list[int]) -> None:
    assert _numbers(order) == numbers


@pytest.mark.parametrize("order", Order)
def test_what_is_urgent_precedes_all_others(order: Order) -> None:
    assert _numbers(order, _move(7, 3, 20, 21, is_urgent=True))[0] == 7


def test_what_is_in_flight_counts_as_left_to_do() -> None:
    assert _numbers(Order.MAKESPAN, in_flight=(_move(11, 100, 5, 30),))[0] == 10


def test_copies_to_several_brokers_all_leave_one() -> None:
    two = _move(4, 26, 20, 21, 22)
    assert _numbers(Order.MAKESPAN, two)[0] == 4


def test_a_move_that_copies_nothing_goes_last() -> None:
    assert _numbers(Order.MAKESPAN, _move(5, 1_000, 1))[-1] == 5
