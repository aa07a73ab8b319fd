"""Rate that a broker can carry, less its present load."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kreassign.executor.throttle_rates import BrokerTraffic, adaptive_rate, traffic_of
from kreassign.model import NO_LEADER, Partition, TopicPartition
from kreassign.model.throttle import AdaptiveThrottle, BrokerCapacity

AUTO = AdaptiveThrottle(1_000, (BrokerCapacity(3, 400),))
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_a_rate_below_the_writes_is_raised_however_little() -> None:
    assert adaptive_rate(AUTO, 0, 900.0, 560.0, 699) == 700


@given(
    traffic=st.none() | st.floats(0, 1e6),
    needed=st.floats(0, 1e6),
    present=st.none() | st.integers(1, 10**6),
    broker=st.sampled_from([0, 3]),
)
@settings(max_examples=100, deadline=None)
def test_a_rate_is_always_above_the_floor_and_above_what_is_written(
    traffic: float | None, needed: float, present: int | None, broker: int
) -> None:
    rate = adaptive_rate(AUTO, broker, traffic, needed, present)
    assert rate >= AUTO.floor_of(broker)
    assert rate > needed


def test_a_leader_sends_to_each_follower_in_sync_and_all_in_sync_receive() -> None:
    partition = Partition(T0, (0, 1, 2, 3), (0, 1, 2), 0)
    assert traffic_of([partition], {T0: 10.0}, range(5)) == (
        BrokerTraffic(0, 20.0, 10.0),
        BrokerTraffic(1, 0.0, 10.0),
        BrokerTraffic(2, 0.0, 10.0),
        BrokerTraffic(3, 0.0, 0.0),
        BrokerTraffic(4, 0.0, 0.0),
    )


def test_brokers_of_a_partition_that_was_not_measured_are_left_out() -> None:
    partitions = [Partition(T0, (0, 1), (0, 1), 0), Partition(T1, (1, 2), (1, 2), 1)]
    assert traffic_of(partitions, {T0: 10.0}, range(3)) == (BrokerTraffic(0, 10.0, 10.0),)


def test_a_partition_without_a_leader_carries_nothing() -> None:
    assert traffic_of([Partition(T0, (0,), (0,), NO_LEADER)], {}, [0]) == (BrokerTraffic(0, 0.0, 0.0),)


def test_the_floor_is_a_tenth_of_capacity_and_at_least_one_byte() -> None:
    assert AdaptiveThrottle(9).floor_of(0) == 1
    assert (AUTO.floor_of(0), AUTO.floor_of(3)) == (100, 40)


def test_a_rate_off_by_a_tenth_or_just_enough_stays() -> None:
    assert adaptive_rate(AUTO, 0, 200.0, 0.0, 1_000) == 800
    assert adaptive_rate(AUTO, 0, 100.0, 0.0, 1_000) == 1_000
    assert adaptive_rate(AUTO, 0, None, 80.0, 100) == 100


def test_partition_traffic_adds_up_for_unasked_brokers_too() -> None:
    partitions = [
        Partition(T0, (0, 1), (0, 1), 0),
        Partition(T1, (0, 1), (0, 1), 0),
        Partition(TopicPartition("t", 2), (9, 0), (9, 0), 9),
    ]
    writes = {T0: 10.0, T1: 5.0, TopicPartition("t", 2): 1.0}
    assert traffic_of(partitions, writes, [0, 1]) == (BrokerTraffic(0, 15.0, 16.0), BrokerTraffic(1, 0.0, 15.0))


def test_unmeasured_traffic_adds_up_and_leaderless_has_none() -> None:
    partitions = [
        Partition(T0, (0,), (0,), 0),
        Partition(T1, (1,), (1,), 1),
        Partition(TopicPartition("t", 2), (2,), (2,), NO_LEADER),
        Partition(TopicPartition("t", 3), (3,), (3,), 3),
    ]
    writes = {TopicPartition("t", 3): 4.0}
    assert traffic_of(partitions, writes, range(4)) == (BrokerTraffic(2, 0.0, 0.0), BrokerTraffic(3, 0.0, 4.0))


def test_traffic_comes_by_broker_in_whatever_order_it_was_asked_for() -> None:
    found = traffic_of([Partition(T0, (5, 11), (5, 11), 11)], {T0: 2.5}, [11, 5, 7])
    assert found == (BrokerTraffic(5, 0.0, 2.5), BrokerTraffic(7, 0.0, 0.0), BrokerTraffic(11, 2.5, 2.5))
