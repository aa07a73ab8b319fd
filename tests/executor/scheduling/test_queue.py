"""Moves that wait: only those that no full end holds up are handed on, and nothing else changes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kreassign.executor.scheduling import (
    Candidate,
    Cap,
    Caps,
    InFlight,
    Order,
    PriorityMerge,
    Queue,
    add_left,
    choose,
    choose_in_turn,
    ranking,
)
from kreassign.model import TopicPartition
from tests.executor.scheduling.test_choice import MOVES


def _move(number: int, size_bytes: int, source: int, *destinations: int) -> Candidate:
    return Candidate(TopicPartition("t", number), size_bytes, source, destinations)


def _queue(*moves: Candidate) -> Queue:
    queue = Queue()
    for move in moves:
        queue.add(move)
    return queue


def _eligible(queue: Queue, caps: Caps, *in_flight: Candidate) -> list[int]:
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
    queue.add(Candidate(TopicPartition("t", 3), 10, 4, (), ((5, "/d"),)))
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


@given(MOVES, st.sampled_from(Order), st.integers(0, 6), st.sampled_from([Cap(moves=1), Cap(moves=2), Cap(None, 50)]))
def test_what_starts_is_what_would_start_if_all_were_looked_at(
    moves: list[Candidate], order: Order, in_flight: int, cap: Cap
) -> None:
    in_flight, waiting = moves[:in_flight], {move.topic_partition: move for move in moves[in_flight:]}
    for caps in (Caps(), Caps(source=cap), Caps(destination=cap), Caps(cluster=cap), Caps(cap, cap, cap, cap)):
        queue = _queue(*waiting.values())
        counts = InFlight.of(caps, in_flight)
        turns = PriorityMerge(queue.open_routes(order, counts), ranking(order, add_left(queue.left.copy(), in_flight)))
        few = choose_in_turn(turns, counts, ())
        assert few.starting == choose(waiting.values(), in_flight, caps=caps, order=order).starting
