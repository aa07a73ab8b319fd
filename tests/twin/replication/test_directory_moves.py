"""Moves between the log directories of a broker, by hand."""

from __future__ import annotations

import pytest

from kreassign.errors import InputError
from kreassign.model import ConfigResource, LogDirReplica
from kreassign.model.throttle import LOG_DIR_RATE
from kreassign.twin.replication.state import CopyDeleted, FutureCopyCaughtUp
from tests.twin.boxes import MB, SECOND, Box, Given, Told, broker, tp


def move(box: Box, *partitions: int, number: int = 0, path: str = "/d1") -> None:
    for partition in partitions:
        assert box.replication.alter_log_dir(tp(partition), number, path)


def ended(told: list[Told]) -> dict[int, int]:
    """End of the move of each partition."""
    return {e.topic_partition.partition: time for time, e in told if isinstance(e, FutureCopyCaughtUp)}


def contents(box: Box, number: int = 0) -> list[tuple[LogDirReplica, ...]]:
    return [log_dir.replicas for log_dir in box.replication.readings.log_dirs(number)]


def test_a_move_reads_one_disk_and_writes_the_other() -> None:
    box = Box(Given((0,), size=100), hardware={0: broker(read=50, net=1)})
    move(box, 0)
    assert ended(box.run(100)) == {0: 2 * SECOND}
    assert box.replication.readings.log_dir(tp(0), 0) == "/d1"


def test_a_move_has_a_limit_of_its_own() -> None:
    box = Box(Given((0,), size=100))
    box.throttle(1)
    box.configure(ConfigResource.broker(0), LOG_DIR_RATE, str(20 * MB))
    move(box, 0)
    assert ended(box.run(100)) == {0: 5 * SECOND}


def test_the_future_copy_is_shown_with_its_lag_in_records() -> None:
    box = Box(Given((0,), size=100))
    move(box, 0)
    box.run(0.25)
    current = LogDirReplica(tp(0), 100 * MB, 0, is_future=False)
    future = LogDirReplica(tp(0), 25 * MB, 75_000, is_future=True)
    assert contents(box) == [(current,), (future,)]
    assert box.replication.readings.future_log_dir(tp(0), 0) == "/d1"
    assert [log_dir.usable_bytes for log_dir in box.replication.readings.log_dirs(0)] == [9900 * MB, 9975 * MB - 1]


def test_the_old_copy_is_deleted_after_a_while() -> None:
    box = Box(Given((0,), size=100))
    move(box, 0)
    assert box.run(100) == [
        (1 * SECOND, FutureCopyCaughtUp(tp(0), 0, "/d1")),
        (61 * SECOND, CopyDeleted(tp(0), 0, "/d0")),
    ]


def test_writes_go_on_during_a_move() -> None:
    box = Box(Given((0,), size=90, rate=10))
    move(box, 0)
    assert ended(box.run(10)) == {0: 1 * SECOND}
    assert box.size(0, 0) == 190


def test_a_thread_moves_one_partition_after_the_other_in_order_of_name() -> None:
    # Two directories, two threads: even partitions of topic t are the first one's, odd ones the second's.
    box = Box(*[Given((0,), size=100)] * 5)
    move(box, 4, 2, 0, 1)
    # Both threads share the disk: 4 is at work already, 0 comes before 2; 1 shares with 4.
    assert ended(box.run(100)) == {4: 2 * SECOND, 1: 2 * SECOND, 0: 3 * SECOND, 2: 4 * SECOND}


def test_a_move_that_waited_starts_where_its_log_does_by_then() -> None:
    # After a second the first 10 MB are past their retention; 90 MB are left to close at 100 - 10 MB/s.
    box = Box(Given((0,), size=100), Given((1,)), Given((0,), size=90, rate=10, retention=90))
    move(box, 0, 2)
    assert ended(box.run(10)) == {0: 1 * SECOND, 2: 2 * SECOND}


def test_the_directory_it_is_in_gives_up_a_move() -> None:
    box = Box(*[Given((0,), size=100)] * 3)
    move(box, 0, 2)
    box.run(0.5)
    move(box, 0, path="/d0")
    assert ended(box.run(100)) == {2: 1500}
    assert box.replication.readings.log_dir(tp(0), 0) == "/d0"
    assert box.replication.readings.future_log_dir(tp(0), 0) is None


def test_the_same_target_again_changes_nothing_and_another_begins_again() -> None:
    box = Box(Given((0,), size=100), hardware={0: broker(log_dirs=3)})
    move(box, 0)
    box.run(0.5)
    move(box, 0)
    box.run(0.25)
    move(box, 0, path="/d2")
    assert ended(box.run(10)) == {0: 1750}
    assert box.replication.readings.log_dir(tp(0), 0) == "/d2"


def test_a_follower_that_is_behind_can_be_moved() -> None:
    # At 10 MB/s it is there after 10 s; what it has by then is in the other directory all along.
    box = Box(Given((0,), size=100), hardware={0: broker(net=10)})
    box.add(0, 1)
    box.run(5)
    move(box, 0, number=1)
    box.run(1)
    assert box.replication.readings.log_dir(tp(0), 1) == "/d1"
    assert box.caught_up() == {(0, 1): 4 * SECOND}


def test_a_copy_that_is_cut_off_is_moved_as_it_is() -> None:
    # It stopped with 20 MB from 0 on; what its leader has begins far beyond by now.
    box = Box(Given((0, 1), size=20, rate=1, retention=60))
    box.replication.set_link(0, 1, is_cut=True)
    box.run(180)
    move(box, 0, number=1)
    assert ended(box.run(1)) == {0: 180_200}
    assert (box.size(0, 0), box.size(0, 1)) == (60, 20)
    assert box.replication.readings.log_end_offset(tp(0), 1) == 20_000


def test_a_choice_for_a_copy_that_is_not_there_yet_is_remembered() -> None:
    box = Box(Given((0,), size=100))
    assert not box.replication.alter_log_dir(tp(0), 1, "/d1")
    assert not box.replication.alter_log_dir(tp(9), 1, "/d1")
    box.add(0, 1)
    assert box.replication.readings.log_dir(tp(0), 1) == "/d1"
    with pytest.raises(InputError, match="no log directory /nope; it has"):
        box.replication.alter_log_dir(tp(0), 1, "/nope")


def test_a_copy_that_is_removed_takes_its_move_along() -> None:
    box = Box(Given((0, 1), size=100), Given((0,), size=100), Given((0,), size=100))
    move(box, 0, 2)
    box.run(0.5)
    box.change(0, replicas=(1,), isr=(1,), leader=1)
    told = box.run(100)
    assert ended(told) == {2: 1500}
    deleted = [(time, event.path) for time, event in told if isinstance(event, CopyDeleted)]
    assert deleted == [(60_500, "/d0"), (60_500, "/d1"), (61_500, "/d0")]
    assert [[replica.topic_partition.partition for replica in found] for found in contents(box)] == [[1], [2]]


def test_a_failed_directory_ends_the_moves_into_it() -> None:
    box = Box(Given((0,), size=100))
    move(box, 0)
    box.run(0.5)
    box.replication.fail_dir(0, "/d1")
    assert ended(box.run(100)) == {}
    assert box.replication.readings.future_log_dir(tp(0), 0) is None


def test_a_dead_broker_goes_on_with_its_moves_when_it_is_back() -> None:
    box = Box(Given((0,), size=100))
    move(box, 0)
    box.run(0.5)
    box.replication.crash(0)
    box.run(10)
    box.replication.restore(0)
    assert ended(box.run(10)) == {0: 11 * SECOND}
