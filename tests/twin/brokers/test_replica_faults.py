"""Copies when brokers, links and disks give way, and who is in the ISR then."""

from __future__ import annotations

import pytest

from kreassign.errors import InputError
from kreassign.twin.metadata import BrokerFenced, BrokerShuttingDown, BrokerUnfenced
from kreassign.twin.replication.state import LogDirFull, ReplicaCaughtUp, ReplicaFellBehind
from tests.twin.boxes import MB, SECOND, Box, Given, broker, tp

# Brokers


def test_a_dead_target_stalls_its_copy_which_goes_on_where_it_was() -> None:
    box = Box(Given((0,), size=100))
    box.add(0, 1)
    box.run(0.5)
    box.replication.crash(1)
    assert box.run(3600) == []
    assert box.size(0, 1) == 50
    box.replication.restore(1)
    assert box.caught_up() == {(0, 1): 500}


def test_a_dead_target_leaves_its_share_to_others() -> None:
    box = Box(Given((0,), size=100), Given((0,), size=100))
    box.add(0, 1)
    box.add(1, 2)
    box.replication.crash(1)
    assert box.caught_up(10) == {(1, 2): 1000}


def test_nobody_writes_to_a_partition_whose_leader_is_dead() -> None:
    box = Box(Given((0, 1), size=10, rate=1))
    box.replication.crash(0)
    assert box.run(3600) == []
    assert (box.size(0, 0), box.size(0, 1)) == (10, 10)
    box.change(0, leader=1, isr=(1,))
    box.run(5)
    assert (box.size(0, 0), box.size(0, 1)) == (10, 15)


def test_a_copy_goes_on_from_the_next_leader() -> None:
    box = Box(Given((0, 3), size=100))
    box.add(0, 1)
    box.run(0.5)
    box.replication.crash(0)
    box.run(100)
    box.change(0, leader=3, isr=(3,))
    assert box.caught_up() == {(0, 1): 500}


def test_a_dead_leader_comes_back_as_a_follower_that_is_behind() -> None:
    # 10 MB were written meanwhile: 100 - 1 MB/s close the gap.
    box = Box(Given((0, 1), size=10, rate=1))
    box.replication.crash(0)
    box.change(0, leader=1, isr=(1,))
    box.run(9.9)
    box.replication.restore(0)
    assert box.caught_up(0.1) == {(0, 0): 100}
    assert box.size(0, 0) == box.size(0, 1) == 20


def test_a_broker_that_is_down_already_can_be_stopped_again() -> None:
    box = Box(Given((0, 1)))
    box.replication.crash(1)
    box.replication.crash(1)
    box.replication.restore(1)
    box.replication.restore(1)
    assert box.run(10) == []
    with pytest.raises(InputError, match="broker 9 has no hardware"):
        box.replication.crash(9)


def test_a_broker_that_was_away_for_long_skips_what_its_leader_has_deleted() -> None:
    # It has 20 MB and the leader keeps 60, none of which it knows: 60 MB at 10 - 1 MB/s.
    box = Box(Given((0, 1), size=20, rate=1, retention=60), hardware={0: broker(read=10)})
    box.replication.crash(1)
    box.change(0, isr=(0,))
    box.run(180)
    box.replication.restore(1)
    assert box.caught_up(60) == {(0, 1): 6667}
    assert box.size(0, 1) == 60


# The ISR


def test_a_member_that_is_behind_for_too_long_is_reported_until_it_is_out() -> None:
    box = Box(Given((0, 1), size=1, rate=1))
    box.run(5)
    box.replication.set_link(1, 0, is_cut=True)
    fell_behind = ReplicaFellBehind(tp(0), 1)
    assert box.run(50) == [(35 * SECOND, fell_behind), (50 * SECOND, fell_behind)]
    box.change(0, isr=(0,))
    assert box.run(1000) == []


def test_a_member_that_is_behind_for_less_stays() -> None:
    box = Box(Given((0, 1), size=1, rate=1))
    box.replication.set_link(0, 1, is_cut=True)
    box.run(29)
    box.replication.set_link(0, 1, is_cut=False)
    assert box.run(1000) == []
    assert box.size(0, 1) == box.size(0, 0)


def test_nobody_falls_behind_where_nothing_is_written() -> None:
    box = Box(Given((0, 1), size=1))
    box.replication.crash(1)
    assert box.run(3600) == []
    box.replication.set_write_rate(tp(0), 1000)
    # Unreachable for an hour: the first record that it lacks puts it out.
    assert [event for _, event in box.run(2)] == [ReplicaFellBehind(tp(0), 1)]


def test_a_new_leader_gives_its_followers_the_full_time_again() -> None:
    box = Box(Given((0, 1, 2), rate=1))
    box.replication.crash(2)
    box.run(20)
    box.change(0, leader=1)
    assert [time for time, _ in box.run(40)] == [50 * SECOND]


def test_a_slow_follower_leaves_the_isr_until_writes_end() -> None:
    # Of 20 MB/s it takes 10. Out after 30 s, 400 MB behind after 40 s; then 10 MB/s for 40 s.
    box = Box(Given((0, 1), rate=20), hardware={1: broker(net=10)})
    assert box.live(40) == [(30 * SECOND, ReplicaFellBehind(tp(0), 1))]
    assert (box.state(0).isr, box.size(0, 0), box.size(0, 1)) == ((0,), 800, 400)
    box.replication.set_write_rate(tp(0), 0)
    assert box.caught_up() == {(0, 1): 40 * SECOND}


def test_a_copy_joins_at_the_high_watermark_though_the_leader_is_further() -> None:
    # Broker 1 is a member and stands still at 100 MB; at 10 MB/s broker 2 is as far after 10 s.
    box = Box(Given((0, 1), size=100, rate=1), hardware={2: broker(net=10)})
    box.replication.set_link(0, 1, is_cut=True)
    box.add(0, 2)
    assert box.run(9.9, ReplicaCaughtUp) == []
    assert box.replication.readings.high_watermark(tp(0)) == 100_000
    assert box.run(0.2, ReplicaCaughtUp) == [(10 * SECOND, ReplicaCaughtUp(tp(0), 2))]
    box.change(0, isr=(0, 1, 2))
    box.change(0, isr=(0, 2))
    # It still has 9.1 MB to go: 1.01 s at 10 - 1 MB/s.
    box.run(1)
    assert box.size(0, 2) != box.size(0, 0)
    box.run(0.1)
    assert box.size(0, 2) == box.size(0, 0)
    assert box.replication.readings.high_watermark(tp(0)) == 111_200


@pytest.mark.parametrize("record", [BrokerFenced(1), BrokerShuttingDown(1)])
def test_who_is_fenced_or_shutting_down_joins_only_when_it_is_neither(record: BrokerFenced) -> None:
    box = Box(Given((0,), size=100))
    box.add(0, 1)
    box.say(record)
    assert box.run(100, ReplicaCaughtUp) == []
    assert box.size(0, 1) == 100
    if isinstance(record, BrokerFenced):
        box.say(BrokerUnfenced(1))
        assert box.caught_up() == {(0, 1): 0}


def test_an_unclean_leader_makes_everybody_forget_what_it_lacks() -> None:
    box = Box(Given((0,), size=100), hardware={1: broker(net=20)})
    box.add(0, 1, 2)
    box.run(0.5)
    assert (box.size(0, 1), box.size(0, 2)) == (10, 40)
    box.replication.crash(0)
    box.change(0, leader=1, isr=(1,))
    assert (box.size(0, 1), box.size(0, 2), box.size(0, 0)) == (10, 10, 10)
    assert box.replication.readings.log_end_offset(tp(0), 0) == 10_000
    assert box.caught_up() == {(0, 2): 0}


def test_an_unclean_leader_brings_back_what_others_have_let_go() -> None:
    # When broker 1 stopped it had everything from 0 to 20 MB; its leader keeps only the last 60 MB.
    box = Box(Given((0, 1), size=20, rate=1, retention=60))
    box.replication.crash(1)
    box.change(0, isr=(0,))
    box.run(180)
    readings = box.replication.readings
    assert (readings.log_start_offset(tp(0), 0), readings.log_end_offset(tp(0), 0)) == (140_000, 200_000)
    box.replication.crash(0)
    box.replication.restore(1)
    box.change(0, leader=1, isr=(1,))
    assert (readings.log_start_offset(tp(0), 1), readings.log_end_offset(tp(0), 1)) == (0, 20_000)
    box.run(100)
    assert (readings.log_start_offset(tp(0), 1), readings.log_end_offset(tp(0), 1)) == (60_000, 120_000)


def test_the_time_behind_counts_from_the_last_moment_in_sync() -> None:
    # Two partitions through 100 MB/s: 90 and 20 are too much, but the small one keeps up until it grows at 65 s.
    big = {number: broker(net=(1000, 100)[number], write=1000, capacity=10**6) for number in range(2)}
    box = Box(Given((0, 1), rate=90), Given((0, 1), rate=20), hardware=big)
    assert {event.topic_partition for _, event in box.run(65, ReplicaFellBehind)} == {tp(0)}
    box.replication.set_write_rate(tp(1), 90 * MB)
    told = [(time, event) for time, event in box.run(31, ReplicaFellBehind) if event.topic_partition == tp(1)]
    assert told == [(95 * SECOND, ReplicaFellBehind(tp(1), 1))]


def test_replicas_found_outside_the_isr_go_on_from_what_they_hold() -> None:
    box = Box(Given((0, 1), size=100, isr=(0,)))
    # It was in sync before and has everything.
    assert box.caught_up() == {(0, 1): 0}


# Disks


def test_a_slow_disk_slows_its_copies_until_it_is_well() -> None:
    box = Box(Given((0,), size=100))
    box.replication.slow_dir(0, "/d0", 0.1)
    box.add(0, 1)
    box.run(5)
    assert box.size(0, 1) == 50
    box.replication.slow_dir(0, "/d0", 1)
    assert box.caught_up() == {(0, 1): 500}
    with pytest.raises(InputError, match="above 0"):
        box.replication.slow_dir(0, "/d0", 0)
    with pytest.raises(InputError, match="no log directory /d7"):
        box.replication.slow_dir(0, "/d7", 1)


def test_a_slow_disk_slows_what_is_written_to_it() -> None:
    box = Box(Given((0,), size=100))
    box.replication.slow_dir(1, "/d0", 0.5)
    box.add(0, 1)
    assert box.caught_up() == {(0, 1): 2 * SECOND}


def test_what_is_in_a_failed_directory_cannot_be_read_nor_written() -> None:
    box = Box(Given((0, 1), size=100, rate=1), Given((0, 1), size=100, rate=1, log_dir=1))
    box.add(0, 2)
    box.add(1, 3)
    box.replication.fail_dir(0, "/d0")
    assert set(box.caught_up(29)) == {(1, 3)}
    assert box.size(0, 0) is None
    assert (box.size(0, 1), box.size(0, 2), box.size(1, 1)) == (100, 0, 129)
    offline, healthy = box.replication.readings.log_dirs(0)
    assert (offline.error, offline.replicas, offline.total_bytes) == ("the log directory is offline", (), None)
    assert healthy.error is None
    box.replication.restore_dir(0, "/d0")
    assert box.size(0, 0) == 100
    assert set(box.caught_up(29)) == {(0, 2)}


def test_a_full_directory_is_told_and_stops_what_is_written_to_it() -> None:
    # Directory /d0 of broker 1 has room for 60 MB more; the copy into /d1 goes on.
    box = Box(Given((0,), size=80), Given((0,), size=100), Given((1,), size=40), hardware={1: broker(capacity=100)})
    box.add(0, 1)
    box.add(1, 1)
    # /d0 has one log and /d1 none, so that t-0 goes to /d1, and t-1 then to the first of equals.
    assert box.run(0.5, LogDirFull) == []
    assert (box.size(0, 1), box.size(1, 1)) == (25, 25)
    told = box.live(10)
    assert (1200, LogDirFull(1, "/d0")) in told
    assert (1400, ReplicaCaughtUp(tp(0), 1)) in told
    assert box.size(1, 1) == 60
    assert box.replication.readings.log_dirs(1)[0].usable_bytes == 0


def test_writes_go_on_when_something_was_deleted_from_a_full_directory() -> None:
    box = Box(Given((1,), size=70), Given((1, 2), size=20, rate=1), hardware={1: broker(capacity=100)})
    assert [event for _, event in box.run(100)] == [LogDirFull(1, "/d0")]
    assert (box.now, box.size(1, 1), box.size(1, 2)) == (100 * SECOND, 30, 30)
    box.add(0, 3)
    box.caught_up(10)
    box.change(0, replicas=(3,), isr=(3,), leader=3)
    box.run(70)
    # Ten seconds after the deletion.
    assert (box.size(1, 1), box.size(1, 2)) == (40, 40)


def test_a_log_at_its_retention_fills_nothing() -> None:
    box = Box(Given((1,), size=20, rate=1, retention=60), hardware={1: broker(capacity=100)})
    assert box.run(3600) == []
    assert box.size(0, 1) == 60
    readings = box.replication.readings
    assert readings.log_start_offset(tp(0), 1) == 3_560_000
    assert readings.log_end_offset(tp(0), 1) == 3_620_000


@pytest.mark.timeout(20)
def test_time_goes_on_although_leaders_overload_a_slow_directory() -> None:
    # Broker 0 writes 12 MB/s to a directory that takes 10, and follows an idle partition in the same directory.
    box = Box(Given((0, 1), size=10, rate=12), Given((1, 0), size=10))
    box.replication.slow_dir(0, "/d0", 0.1)
    assert box.live(60) is not None
    assert box.state(1).isr == (1, 0)
