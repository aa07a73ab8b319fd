"""Durations of copies: every expected time is reckoned by hand."""

from __future__ import annotations

import pytest

from kreassign.errors import InputError
from kreassign.model import ConfigResource, throttle
from kreassign.twin.replication.hardware import BrokerHardware, ReplicationSettings
from kreassign.twin.replication.partition_logs import Traffic
from kreassign.twin.replication.replication import Replication
from kreassign.twin.replication.state import ReplicaCaughtUp
from tests.twin.boxes import AT_ONCE, MB, TOPIC, Box, Given, broker, tp

# Bytes per time


def test_a_lone_copy_takes_its_size_over_the_slowest_part_of_its_way() -> None:
    box = Box(Given((0,), size=100), hardware={0: broker(read=50), 1: broker(write=80)})
    box.add(0, 1)
    assert box.caught_up() == {(0, 1): 2000}


@pytest.mark.parametrize(
    ("slow", "seconds"),
    [(broker(net=25), 4), (broker(read=20), 5), (broker(write=10), 1)],
    ids=["network", "reading disk", "writing disk, which a leader does not use"],
)
def test_each_part_of_the_leader_can_be_the_slowest(slow: BrokerHardware, seconds: int) -> None:
    box = Box(Given((0,), size=100), hardware={0: slow})
    box.add(0, 1)
    assert box.caught_up() == {(0, 1): seconds * 1000}


def test_a_copy_is_half_there_after_half_the_time() -> None:
    box = Box(Given((0,), size=100))
    box.add(0, 1)
    box.run(0.5)
    assert (box.size(0, 0), box.size(0, 1)) == (100, 50)


SHARED = {
    # 50 MB/s each until the small one has its 50 MB; the other then has 50 MB left at 100 MB/s.
    "two copies of one leader share it": (
        [Given((0,), size=50), Given((0,), size=100)], {}, {(0, 1): 1000, (1, 2): 1500},
    ),
    "copies that meet nowhere do not": (
        [Given((0,), size=100), Given((1,), size=100)], {}, {(0, 2): 1000, (1, 3): 1000},
    ),
    # 100 MB/s out of the leader: 20 for the narrow one, 80 for the other.
    "a narrow follower leaves its part to the others": (
        [Given((0,), size=100), Given((0,), size=80)], {1: broker(net=20)}, {(0, 1): 5000, (1, 2): 1000},
    ),
    "directories of one broker are disks of their own": (
        [Given((0,), size=100, log_dir=0), Given((0,), size=100, log_dir=1)], {0: broker(read=50)},
        {(0, 1): 2000, (1, 2): 2000},
    ),
    # Broker 0 sends 30 MB/s to its follower in sync, so that 70 remain: 70 - 30 close the gap of 40 MB.
    "replication in sync goes before copies": ([Given((0, 1), size=40, rate=30)], {}, {(0, 2): 1000}),
    # Broker 1 writes 40 MB/s as a leader, all of it into the directory that the copy goes to as well.
    "other writes of a follower leave less of its disk": (
        [Given((0,), size=60), Given((1,), rate=40)], {1: broker(log_dirs=1)}, {(0, 1): 1000},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "hardware", "caught_up_ms"), SHARED.values(), ids=SHARED)
def test_copies_and_writes_share_what_they_have_in_common(
    given: list[Given], hardware: dict[int, BrokerHardware], caught_up_ms: dict[tuple[int, int], int]
) -> None:
    box = Box(*given, hardware=hardware)
    for partition, follower in caught_up_ms:
        box.add(partition, follower)
    assert box.caught_up() == caught_up_ms


def test_a_new_move_slows_those_that_run() -> None:
    box = Box(Given((0,), size=100), Given((0,), size=100))
    box.add(0, 1)
    box.run(0.5)
    box.add(1, 2)
    # The first has 50 MB left, at 50 MB/s from now on; the second then 50 MB at 100 MB/s.
    assert box.caught_up() == {(0, 1): 1000, (1, 2): 1500}


# Writes


def test_a_copy_closes_in_at_the_difference_to_the_write_rate() -> None:
    # The leader reads 10 MB/s for it; 90 MB at 10 - 1 MB/s.
    box = Box(Given((0,), size=90, rate=1), hardware={0: broker(read=10)})
    box.add(0, 1)
    assert box.caught_up() == {(0, 1): 10_000}
    assert box.size(0, 1) == box.size(0, 0)


def test_writes_faster_than_the_copy_never_end() -> None:
    box = Box(Given((0,), size=90, rate=11), hardware={0: broker(read=10)})
    box.add(0, 1)
    assert box.caught_up(800) == {}
    assert (box.size(0, 0), box.size(0, 1)) == (90 + 8800, 8000)


def test_followers_in_sync_that_their_network_cannot_feed_fall_behind() -> None:
    # Broker 1 follows 40 MB/s of three partitions through 100 MB/s: a third each, so 6.67 MB/s are missing.
    box = Box(*[Given((0, 1), rate=40)] * 3, hardware={0: broker(net=1000, write=1000)})
    box.run(3)
    assert box.size(0, 0) == 120
    assert box.size(0, 1) == pytest.approx(100)


def test_of_followers_that_do_not_all_fit_those_that_need_little_get_it() -> None:
    # 100 MB/s for 90 and 20 MB/s: the small one needs less than half.
    box = Box(Given((0, 1), rate=90), Given((0, 1), rate=20), hardware={0: broker(net=1000, write=1000)})
    box.run(2)
    assert (box.size(0, 1), box.size(1, 1)) == (160, 40)


def test_a_write_rate_can_change() -> None:
    box = Box(Given((0, 1), size=10, rate=1))
    box.run(5)
    box.replication.set_write_rate(tp(0), 2 * MB)
    box.run(5)
    assert (box.size(0, 0), box.size(0, 1)) == (25, 25)
    with pytest.raises(InputError, match="t-7"):
        box.replication.set_write_rate(tp(7), 1)


# Throttles


def throttled(*partitions: Given) -> Box:
    """Partitions on broker 0 of a cluster limited to 10 MB/s."""
    box = Box(*partitions)
    box.throttle(10)
    return box


def test_a_throttled_copy_goes_at_the_rate() -> None:
    box = throttled(Given((0,), size=100))
    box.add(0, 1)
    assert box.caught_up() == {(0, 1): 10_000}


def test_real_brokers_reach_a_part_of_the_rate() -> None:
    box = Box(Given((0,), size=40), settings=ReplicationSettings(fetch_start_ms=0, join_ms=0))
    box.throttle(1)
    box.add(0, 1)
    # Measured on Kafka 4.3.1: 43.7 s.
    assert box.caught_up() == {(0, 1): pytest.approx(43_700, rel=0.03)}


def test_the_rate_is_a_budget_of_the_broker_for_all_its_partitions() -> None:
    box = throttled(*[Given((0,), size=10)] * 3)
    for partition in range(3):
        box.add(partition, partition + 1)
    assert box.caught_up() == {(0, 1): 3000, (1, 2): 3000, (2, 3): 3000}


def test_a_follower_has_a_budget_of_its_own() -> None:
    box = Box(Given((0,), size=10), Given((1,), size=10))
    box.throttle(10)
    box.add(0, 2)
    box.add(1, 2)
    assert box.caught_up() == {(0, 2): 2000, (1, 2): 2000}


@pytest.mark.parametrize(
    ("leaders", "followers", "seconds"),
    [
        ("0:0", "0:3", 10),
        ("0:0", None, 10),
        ("0:0", "0:9", 10),
        (None, "0:1", 10),
        (None, None, 1),
        ("", "", 1),
        ("1:0", "1:1", 1),
        ("0:1", "0:0", 1),
    ],
)
def test_only_listed_replicas_are_slowed(leaders: str | None, followers: str | None, seconds: int) -> None:
    box = Box(Given((0,), size=100))
    box.throttle(10, leaders=leaders, followers=followers)
    box.add(0, 1)
    assert box.caught_up() == {(0, 1): seconds * 1000}


def test_followers_in_sync_are_not_slowed() -> None:
    box = throttled(Given((0, 1), rate=50))
    assert box.live(60) == []
    assert box.size(0, 1) == box.size(0, 0) == 3000


def test_a_member_of_the_isr_that_is_behind_is_not_slowed_by_its_leader() -> None:
    # It lacks 10 MB: without a throttle of its own the way is free, 100 - 1 MB/s.
    box = Box(Given((0, 1), rate=1))
    box.throttle(2, followers=None)
    box.replication.set_link(0, 1, is_cut=True)
    box.run(10)
    box.replication.set_link(0, 1, is_cut=False)
    box.run(0.102)
    assert box.size(0, 0) == box.size(0, 1)


def test_an_out_of_sync_replica_is_slowed_though_nothing_moves() -> None:
    box = throttled(Given((0, 1), rate=1))
    box.change(0, isr=(0,))
    box.replication.crash(1)
    box.run(90)
    box.replication.restore(1)
    assert box.caught_up() == {(0, 1): 10_000}


def test_traffic_of_followers_in_sync_counts_against_the_budget() -> None:
    # Kafka counts all traffic of a listed partition: of 10 MB/s the follower in sync uses 4, and 6 - 4 close the gap.
    box = throttled(Given((0, 1), size=10, rate=4))
    box.add(0, 2)
    assert box.caught_up() == {(0, 2): 5000}


def test_a_throttle_below_what_followers_in_sync_use_stalls_the_move() -> None:
    box = throttled(Given((0, 1), size=10, rate=12))
    box.add(0, 2)
    assert box.caught_up(800) == {}
    assert box.size(0, 2) == 0


def test_a_rate_of_zero_stalls_and_a_higher_one_frees() -> None:
    box = Box(Given((0,), size=100))
    box.throttle(0)
    box.add(0, 1)
    assert box.caught_up(3600) == {}
    assert box.replication.next_event_ms() is None
    box.throttle(50)
    assert box.caught_up() == {(0, 1): 2000}


def test_taking_the_throttle_away_lets_the_rest_go_at_full_speed() -> None:
    box = throttled(Given((0,), size=100))
    box.add(0, 1)
    box.run(5)
    box.configure(ConfigResource.topic(TOPIC), throttle.LEADER_THROTTLED_REPLICAS, None)
    for name in (throttle.LEADER_THROTTLED_RATE, throttle.FOLLOWER_THROTTLED_RATE):
        box.configure(ConfigResource.broker(1), name, None)
    assert box.caught_up() == {(0, 1): 500}


def test_taking_only_the_lists_away_is_enough() -> None:
    box = throttled(Given((0,), size=100))
    box.add(0, 1)
    box.run(5)
    box.configure(ConfigResource.topic(TOPIC), throttle.LEADER_THROTTLED_REPLICAS, None)
    box.configure(ConfigResource.topic(TOPIC), throttle.FOLLOWER_THROTTLED_REPLICAS, "")
    assert box.caught_up() == {(0, 1): 500}


# Latencies


def test_moves_of_empty_partitions_take_as_long_as_on_real_brokers() -> None:
    box = Box(*[Given((n % 4, (n + 1) % 4)) for n in range(40)], settings=ReplicationSettings())
    waits = []
    for partition in range(40):
        box.run(0.037)
        box.add(partition, (partition + 2) % 4)
        (wait,) = box.caught_up(2).values()
        waits.append(wait)
    # Measured on Kafka 4.3.1, twenty moves: 0.10 to 1.05 s, most about 0.5.
    assert min(waits) >= 100
    assert max(waits) <= 600
    assert len(set(waits)) > 5


def test_a_follower_that_fetches_nothing_else_from_the_leader_asks_at_once() -> None:
    box = Box(Given((0,)), settings=ReplicationSettings(fetch_start_ms=80, join_ms=20))
    box.add(0, 1)
    assert box.caught_up() == {(0, 1): 100}


# Events


def test_a_broker_puts_a_copy_where_the_fewest_logs_are() -> None:
    # Directory /d0 has a log already.
    box = Box(Given((0,), size=1), Given((1,)))
    box.add(0, 1)
    assert box.replication.readings.log_dir(tp(0), 1) == "/d1"


def test_a_request_to_join_the_isr_is_repeated_until_it_is_granted() -> None:
    box = Box(Given((0,)))
    box.add(0, 1)
    assert [time for time, _ in box.run(1.6, ReplicaCaughtUp)] == [0, 500, 1000, 1500]
    box.change(0, isr=(0, 1))
    assert box.run(10) == []


def test_a_copy_that_is_made_again_asks_once_to_join_the_isr() -> None:
    box = Box(Given((0,)))
    box.add(0, 1)
    assert [time for time, _ in box.run(0.2, ReplicaCaughtUp)] == [0]
    box.change(0, replicas=(0,))
    box.add(0, 1)
    assert [time for time, _ in box.run(1.1, ReplicaCaughtUp)] == [200, 700, 1200]


def test_a_request_to_join_the_isr_is_repeated_when_the_leader_is_back() -> None:
    box = Box(Given((0,)))
    box.add(0, 1)
    assert len(box.run(0.4, ReplicaCaughtUp)) == 1
    box.replication.crash(0)
    assert box.run(10) == []
    box.replication.restore(0)
    assert box.run(0.4) == [(10_400, ReplicaCaughtUp(tp(0), 1))]


@pytest.mark.parametrize("records", [1, 3, 7, 49, 98, 103, 107, 161, 187, 196, 197])
def test_offsets_count_whole_records_whatever_their_size(records: int) -> None:
    size = 1_000_003
    box = Box(Given((0, 1)))
    replication = Replication({number: broker() for number in range(4)})
    replication.load(box.metadata, {tp(0): Traffic(size, record_bytes=size / records, start_offset=5)})
    assert replication.readings.log_end_offset(tp(0), 1) == 5 + records
    assert replication.readings.log_start_offset(tp(0), 1) == 5


def test_time_stops_where_something_is_told() -> None:
    box = Box(Given((0,), size=100))
    box.add(0, 1)
    box.run(0)
    assert box.replication.next_event_ms() == 1000
    assert box.replication.advance(5000) == (ReplicaCaughtUp(tp(0), 1),)
    assert box.now == 1000
    with pytest.raises(InputError, match="back"):
        box.replication.advance(999)


def test_it_knows_whether_waiting_for_copies_makes_sense() -> None:
    box = Box(Given((0,), size=100), settings=ReplicationSettings())
    assert not box.replication.is_copying
    box.add(0, 1)
    assert box.replication.is_copying
    box.run(0.5)
    assert box.replication.is_copying
    box.replication.crash(1)
    assert not box.replication.is_copying
    box.replication.restore(1)
    assert box.replication.is_copying
    box.live(10)
    assert box.state(0).isr == (0, 1)
    assert not box.replication.is_copying


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InputError, match="fewer than no bytes"):
        ReplicationSettings(batch_bytes=-1)
    with pytest.raises(InputError, match="less than no time"):
        ReplicationSettings(join_ms=-1)
    assert AT_ONCE.lag_time_max_ms == 30_000


def test_a_broker_that_is_down_keeps_a_replica_that_it_is_given_back() -> None:
    box = Box(Given((0, 1), size=100))
    box.change(0, isr=(0,))
    box.replication.crash(1)
    box.change(0, replicas=(0,))
    box.add(0, 1)
    box.replication.restore(1)
    assert box.size(0, 1) == box.size(0, 0)
    assert [time for time, _ in box.run(1, ReplicaCaughtUp)][:1] == [0]


def test_a_broker_that_started_in_between_copies_all_again() -> None:
    box = Box(Given((0, 1), size=100))
    box.change(0, isr=(0,))
    box.replication.crash(1)
    box.change(0, replicas=(0,))
    box.replication.restore(1)
    box.add(0, 1)
    assert box.size(0, 1) == 0
    assert [time for time, _ in box.run(1.5, ReplicaCaughtUp)][:1] == [1000]
