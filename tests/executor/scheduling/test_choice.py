"""Moves that start now, and reasons why others wait."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from kreassign.executor.scheduling.limits import DiskBudget, PacedMove
from kreassign.executor.scheduling.queue import WaitingMove
from kreassign.model import TopicPartition, TopicPartitionReplica
from kreassign.model.pace import Cap, Caps, Order
from tests.executor.scheduling.choosing import choose

DISK = (9, "/d")
PLACE = ("log_dir", DISK)


def _move(number: int, size_bytes: int, source: int, *destinations: int) -> PacedMove:
    dirs = tuple((broker, "/d") for broker in destinations)
    return PacedMove(TopicPartition("t", number), size_bytes, source, destinations, dirs)


def _partition(number: int) -> TopicPartition:
    return TopicPartition("t", number)


def test_without_limits_everything_starts() -> None:
    chosen = choose([_move(0, 10, 1, 9), _move(1, 20, 1, 9)], [])
    assert chosen.starting == (_partition(1), _partition(0))
    assert chosen.waiting == ()


def test_a_cap_at_a_destination_holds_up_only_what_goes_there() -> None:
    waiting = [_move(0, 10, 1, 9), _move(1, 10, 2, 9), _move(2, 10, 3, 8)]
    chosen = choose(waiting, [], caps=Caps(destination=Cap(moves=1)), order=Order.NAME)
    assert chosen.starting == (_partition(0), _partition(2))
    assert chosen.waiting == (WaitingMove(_partition(1), "broker 9 as a destination has its 1 move in flight"),)


def test_what_is_in_flight_counts_against_a_cap() -> None:
    chosen = choose([_move(0, 10, 1, 9)], [_move(5, 10, 1, 7)], caps=Caps(source=Cap(size_bytes=15)))
    assert chosen.waiting == (WaitingMove(_partition(0), "broker 1 as a source has its 15 B in flight"),)


def test_two_copies_from_one_source_count_twice_there() -> None:
    caps = Caps(source=Cap(moves=2))
    chosen = choose([_move(0, 10, 1, 8, 9), _move(1, 10, 1, 7)], [], caps=caps, order=Order.NAME)
    assert chosen.starting == (_partition(0),)


def test_a_log_directory_has_a_cap_of_its_own() -> None:
    chosen = choose([_move(0, 1, 1, 9), _move(1, 1, 2, 9)], [], caps=Caps(log_dir=Cap(moves=1)), order=Order.NAME)
    assert chosen.waiting[0].reason == "log directory /d of broker 9 has its 1 move in flight"


def test_a_move_larger_than_a_cap_starts_alone() -> None:
    caps = Caps(cluster=Cap(size_bytes=100))
    chosen = choose([_move(0, 500, 1, 9), _move(1, 10, 2, 8)], [], caps=caps, order=Order.LARGE_FIRST)
    assert chosen.starting == (_partition(0),)
    assert chosen.waiting == (WaitingMove(_partition(1), "the cluster has its 100 B in flight"),)


def test_a_change_of_order_copies_nothing_and_waits_for_nothing() -> None:
    chosen = choose([_move(0, 500, 1)], [_move(1, 1, 2, 3)], caps=Caps(cluster=Cap(moves=1)))
    assert chosen.starting == (_partition(0),)


def test_a_copy_waits_for_room_on_its_disk() -> None:
    budget = DiskBudget.after({PLACE: 80}, [_move(5, 20, 1, 9)])
    chosen = choose(
        [_move(0, 40, 1, 9), _move(1, 40, 2, 9)], [_move(5, 20, 1, 9)], supplies=(budget,), order=Order.NAME
    )
    assert chosen.starting == (_partition(0),)
    assert chosen.waiting == (
        WaitingMove(_partition(1), "log directory /d of broker 9 has 20 B left for copies, and this one needs 40 B"),
    )


def test_a_directory_that_a_move_just_sent_leaves_may_be_filled_next() -> None:
    """Kafka takes the one with the fewest replicas: the move may have ended when the next one arrives."""
    full, roomy = (9, "/full"), (9, "/roomy")
    coming = PacedMove(_partition(0), 40, 1, (9,))
    budget = DiskBudget.after(
        {("log_dir", full): 10, ("log_dir", roomy): 90},
        [],
        replica_counts={full: 2, roomy: 1},
        places={TopicPartitionReplica(9, *_partition(5)): "/full"},
    )
    assert budget.refuses(coming) is None
    budget.note_leaving(_partition(5), [9])
    assert "log directory /full of broker 9" in str(budget.refuses(coming))


def test_a_copy_that_never_catches_up_finds_no_room() -> None:
    written = PacedMove(_partition(0), 60, 1, (9,), (DISK,), write_bytes_per_s=10.0)
    assert DiskBudget.after({PLACE: 10**15}, [], rate_bytes_per_s=10).refuses(written) is not None


def _anywhere(number: int, size_bytes: int) -> PacedMove:
    return PacedMove(_partition(number), size_bytes, 1, (9,))


def test_a_copy_that_never_catches_up_goes_where_kafka_chooses_neither() -> None:
    never = replace(_anywhere(0, 60), write_bytes_per_s=10.0)
    free, counts = {("log_dir", (9, "/a")): 600, ("log_dir", (9, "/b")): 400}, {(9, "/a"): 3, (9, "/b"): 3}
    empty = DiskBudget.after(free, [], 10, replica_counts=counts)
    assert "this one never catches up with what is written" in (empty.refuses(never) or "")
    beside_one = DiskBudget.after(free, [never], 10, replica_counts=counts)
    assert "has 0 B left for copies, and this one needs 5 B" in (beside_one.refuses(_anywhere(1, 5)) or "")


def test_a_copy_that_has_arrived_in_a_directory_counts_there_once() -> None:
    free, counts = {("log_dir", (9, "/a")): 600, ("log_dir", (9, "/b")): 400}, {(9, "/a"): 3, (9, "/b"): 4}
    places = {TopicPartitionReplica(9, "t", 0): "/a"}
    budget = DiskBudget.after(free, [_anywhere(0, 100)], replica_counts=counts, places=places)
    assert budget.refuses(_anywhere(1, 450)) is None


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=4),
    st.lists(st.integers(0, 60), min_size=1, max_size=6),
    st.randoms(use_true_random=False),
)
def test_admitted_copies_fill_no_directory_however_kafka_breaks_ties(
    replicas: list[int], sizes: list[int], chance: Random
) -> None:
    paths = [(9, f"/{number}") for number in range(len(replicas))]
    free = {("log_dir", path): 100 for path in paths}
    counts = dict(zip(paths, replicas, strict=True))
    moves = [_anywhere(number, size) for number, size in enumerate(sizes)]
    chosen = choose(moves, [], supplies=(DiskBudget.after(free, [], replica_counts=counts),))
    left = dict.fromkeys(paths, 100)
    # Replicas are made in an order of their broker's.
    for name in chance.sample(chosen.starting, len(chosen.starting)):
        place = chance.choice([path for path in paths if counts[path] == min(counts.values())])
        counts[place] += 1
        left[place] -= sizes[name.partition]
    assert min(left.values()) >= 0


MOVES = st.lists(
    st.tuples(st.integers(0, 100), st.integers(0, 3), st.sets(st.integers(4, 7), max_size=2)), max_size=12
).map(lambda rows: [_move(number, size, source, *sorted(into)) for number, (size, source, into) in enumerate(rows)])


@given(MOVES, st.sampled_from(Order), st.integers(1, 3), st.integers(0, 200))
def test_every_move_starts_or_waits_and_no_limit_is_broken(
    moves: list[PacedMove], order: Order, most: int, usable_bytes: int
) -> None:
    replica_locations = {("log_dir", (broker, "/d")): usable_bytes for broker in range(4, 8)}
    chosen = choose(
        moves,
        [],
        caps=Caps(destination=Cap(moves=most)),
        order=order,
        supplies=(DiskBudget.after(replica_locations, []),),
    )
    named = [*chosen.starting, *(one.topic_partition for one in chosen.waiting)]
    assert sorted(named) == [move.topic_partition for move in moves]
    started = [move for move in moves if move.topic_partition in chosen.starting]
    for broker in range(4, 8):
        into = [move.size_bytes for move in started if broker in move.destinations]
        assert len(into) <= most
        assert sum(into) <= usable_bytes
