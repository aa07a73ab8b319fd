"""Effects of limits; a broker with enough to do takes no further copy, which would only slow the others."""

from __future__ import annotations

from kreassign.executor.scheduling.limits import DiskBudget, InFlight, PacedMove, Saturation, SaturationThreshold
from kreassign.executor.scheduling.queue import NextMoves, PriorityMerge, Queue, choose_from, ranking
from kreassign.model import TopicPartition
from kreassign.model.pace import Caps, Order
from tests.executor.scheduling.choosing import choose


def _move(number: int, source: int, *destinations: int, left: int = 100, is_urgent: bool = False) -> PacedMove:
    name = TopicPartition("t", number)
    return PacedMove(name, 100, source, destinations, is_urgent=is_urgent, left_bytes=left)


def _started(choice: NextMoves) -> list[int]:
    return [name.partition for name in choice.starting]


def _busy(*in_flight: PacedMove, left_bytes: int = 50) -> Saturation:
    return Saturation.of(SaturationThreshold(2, left_bytes), in_flight)


def test_a_broker_with_two_copies_that_use_it_fully_takes_on_no_more() -> None:
    busy = _busy(_move(0, 1, 8), _move(1, 2, 8))
    assert busy.refuses(_move(2, 3, 8)) == "broker 8 has enough to receive"
    assert busy.refuses(_move(2, 1, 9)) is None


def test_a_source_counts_each_copy_that_it_sends() -> None:
    assert _busy(_move(0, 1, 8, 9)).refuses(_move(2, 1, 7)) == "broker 1 has enough to send"


def test_a_broker_that_would_run_dry_takes_on_more() -> None:
    almost_done = (_move(0, 1, 8, left=20), _move(1, 2, 8, left=20))
    assert _busy(*almost_done).refuses(_move(2, 3, 8)) is None


def test_a_broker_whose_copies_are_slowed_elsewhere_takes_on_more() -> None:
    elsewhere = [_move(number, 1, 10 + number) for number in range(2)]
    busy = _busy(_move(7, 1, 8), _move(8, 2, 8), _move(9, 2, 20), _move(10, 2, 21), *elsewhere)
    assert busy.refuses(_move(5, 3, 8)) is None


def test_a_broker_never_has_twice_the_copies_with_bytes_left() -> None:
    slow = [_move(9 * source + number, source, 8 + number) for source in range(4) for number in range(5)]
    assert _busy(*slow).refuses(_move(99, 7, 8)) == "broker 8 has enough to receive"


def test_what_is_urgent_and_what_copies_nothing_waits_for_no_busy_broker() -> None:
    busy = _busy(_move(0, 1, 8), _move(1, 2, 8))
    assert busy.refuses(_move(2, 3, 8, is_urgent=True)) is None
    assert busy.refuses(_move(2, 3)) is None


def test_what_starts_makes_brokers_busy() -> None:
    waiting = [_move(number, number, 8) for number in range(4)]
    assert len(choose(waiting, [], supplies=[_busy()]).starting) == 2


def test_what_waits_for_a_busy_broker_is_passed_over_unless_it_is_urgent() -> None:
    queue = Queue()
    for move in (_move(2, 3, 8), _move(3, 3, 9), _move(4, 3, 8, is_urgent=True)):
        queue.add(move)
    counts, busy = InFlight(Caps()), _busy(_move(0, 1, 8), _move(1, 2, 8))
    routes = queue.open_routes(Order.NAME, counts, busy)
    assert [[move.topic_partition.partition for move in route] for route in routes] == [[4, 2], [3]]
    assert _started(choose_from(PriorityMerge(routes, ranking(Order.NAME, queue.left)), counts, [busy])) == [4, 3]


def test_nothing_else_between_the_same_ends_is_looked_at_once_one_is_busy() -> None:
    route = [_move(number, 3, 8) for number in range(5)]
    found = choose_from(PriorityMerge([route], ranking(Order.NAME, {})), InFlight(Caps()), [_busy()])
    assert (_started(found), [one.topic_partition.partition for one in found.waiting]) == ([0, 1], [2])


def test_a_smaller_move_between_the_same_ends_may_find_free_space() -> None:
    route = [_move(0, 3, 8), PacedMove(TopicPartition("t", 1), 10, 3, (8,))]
    budget = DiskBudget({("destination", 8): 20})
    found = choose_from(PriorityMerge([route], ranking(Order.NAME, {})), InFlight(Caps()), [budget])
    assert _started(found) == [1]
