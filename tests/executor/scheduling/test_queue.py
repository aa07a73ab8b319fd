"""In which order moves start, and which route queues are skipped because one of their ends is full."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kreassign.executor.scheduling.limits import InFlight, PacedMove, named_log_dirs
from kreassign.executor.scheduling.queue import PriorityMerge, Queue, add_left, choose_from, ranking
from kreassign.model import TopicPartition
from kreassign.model.pace import Cap, Caps, Order
from tests.executor.scheduling.choosing import choose, rank
from tests.executor.scheduling.test_choice import MOVES


def _move(number: int, size_bytes: int, source: int, *destinations: int, is_urgent: bool = False) -> PacedMove:
    return PacedMove(TopicPartition("t", number), size_bytes, source, destinations, is_urgent=is_urgent)


# Broker 9 has 50 to receive, of two moves; broker 1 has 45 to send, in one.
FIVE = (_move(0, 10, 2, 9), _move(1, 40, 3, 9), _move(2, 45, 1, 4), _move(10, 1, 5, 6), _move(3, 30, 7, 8))


def _numbers(order: Order, *more: PacedMove, in_flight: tuple[PacedMove, ...] = ()) -> list[int]:
    waiting = (*more, *reversed(FIVE))
    return [move.topic_partition.partition for move in sorted(waiting, key=rank(waiting, in_flight, order))]


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


@pytest.mark.parametrize("order", [Order.MAKESPAN, Order.RELIEF])
def test_a_move_that_copies_nothing_goes_last(order: Order) -> None:
    assert _numbers(order, _move(5, 1_000, 1))[-1] == 5


def _queue(*moves: PacedMove) -> Queue:
    queue = Queue()
    for move in moves:
        queue.add(move)
    return queue


def _eligible(queue: Queue, caps: Caps, *in_flight: PacedMove) -> list[int]:
    routes = queue.open_routes(Order.MAKESPAN, InFlight.of(caps, in_flight))
    return sorted(move.topic_partition.partition for route in routes for move in route)


def test_what_goes_to_a_full_destination_is_passed_over() -> None:
    queue = _queue(_move(0, 10, 1, 9), _move(1, 10, 1, 8), _move(2, 10, 2, 8, 9))
    assert _eligible(queue, Caps(destination=Cap(moves=1)), _move(7, 5, 3, 9)) == [1]


def test_what_leaves_a_full_source_is_passed_over() -> None:
    queue = _queue(_move(0, 10, 1, 9), _move(1, 10, 2, 8))
    assert _eligible(queue, Caps(source=Cap(size_bytes=4)), _move(7, 5, 1, 7)) == [1]


def test_destinations_are_those_of_what_waits() -> None:
    queue = _queue(_move(0, 10, 1, 9), _move(1, 10, 2, 8), _move(2, 10, 3, 8))
    queue.add(PacedMove(TopicPartition("t", 3), 10, 4, (), ((5, "/d"),)))
    assert queue.destinations == {5, 8, 9}
    queue.remove(TopicPartition("t", 0))
    assert queue.destinations == {5, 8}


def test_in_a_full_cluster_only_what_copies_nothing_can_start() -> None:
    queue = _queue(_move(0, 10, 1, 9), _move(1, 10, 2))
    assert _eligible(queue, Caps(cluster=Cap(moves=1)), _move(7, 5, 3, 7)) == [1]


def test_a_move_whose_leader_changed_waits_for_its_new_source() -> None:
    queue = _queue(_move(0, 10, 1, 9), _move(0, 10, 2, 9))
    assert len(queue) == 1
    assert queue.left == {("source", 1): 0, ("source", 2): 10, ("destination", 9): 10}
    assert _eligible(queue, Caps(source=Cap(moves=1)), _move(7, 5, 1, 7)) == [0]


def test_what_was_removed_waits_no_more_and_leaves_nothing_behind() -> None:
    queue = _queue(_move(0, 10, 1, 9))
    queue.remove(TopicPartition("t", 0))
    queue.remove(TopicPartition("t", 0))
    assert TopicPartition("t", 0) not in queue
    assert not queue.left.total()
    assert _eligible(queue, Caps()) == []


@example([_move(0, 0, 0), _move(1, 1, 0, 4), _move(2, 1, 1)], Order.RELIEF, 0, Cap(moves=1))
@given(MOVES, st.sampled_from(Order), st.integers(0, 6), st.sampled_from([Cap(moves=1), Cap(moves=2), Cap(None, 50)]))
def test_what_starts_is_what_would_start_if_all_were_looked_at(
    moves: list[PacedMove], order: Order, in_flight: int, cap: Cap
) -> None:
    in_flight, waiting = moves[:in_flight], {move.topic_partition: move for move in moves[in_flight:]}
    for caps in (Caps(), Caps(source=cap), Caps(destination=cap), Caps(cluster=cap), Caps(cap, cap, cap, cap)):
        queue = _queue(*waiting.values())
        counts = InFlight.of(caps, in_flight)
        merged = PriorityMerge(queue.open_routes(order, counts), ranking(order, add_left(queue.left.copy(), in_flight)))
        few = choose_from(merged, counts, ())
        assert few.starting == choose(waiting.values(), in_flight, caps=caps, order=order).starting


def test_directories_are_named_only_if_no_copy_goes_elsewhere() -> None:
    queue = Queue()
    within = PacedMove(TopicPartition("d", 0), 1, 0, (), ((0, "/a"), (1, "/a")))
    between = PacedMove(TopicPartition("d", 1), 1, 0, (1, 2), ((1, "/b"), (2, "/b")))
    anywhere = PacedMove(TopicPartition("d", 2), 1, 0, (2,))
    for move in (within, between):
        queue.add(move)
    assert named_log_dirs(queue.endpoints) == {0: {"/a"}, 1: {"/a", "/b"}, 2: {"/b"}}
    queue.add(anywhere)
    assert named_log_dirs(queue.endpoints) == {0: {"/a"}, 1: {"/a", "/b"}}
    queue.remove(between.topic_partition)
    assert named_log_dirs(queue.endpoints) == {0: {"/a"}, 1: {"/a"}}
