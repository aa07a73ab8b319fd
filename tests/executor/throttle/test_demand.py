"""Share of a throttle that producers' writes take while partitions are copied."""

from __future__ import annotations

from kreassign.executor.throttle_rates import CopiedPartition, Demand, demand, least_rate

COPIED = CopiedPartition(10.0, leader=1, followers_in_sync=2, destinations=(4, 5))


def test_a_leader_sends_writes_to_each_follower_and_copy() -> None:
    assert (COPIED.streams, COPIED.sent_bytes_per_s) == (4, 40.0)


def test_a_partition_that_is_not_copied_takes_nothing_of_a_throttle() -> None:
    assert CopiedPartition(10.0, 1, 2, ()).sent_bytes_per_s == 0.0


def test_what_partitions_take_adds_up_at_leaders_and_at_destinations() -> None:
    other = CopiedPartition(1.0, leader=1, followers_in_sync=0, destinations=(5,))
    assert demand([COPIED, other]) == Demand({1: 41.0}, {4: 10.0, 5: 11.0})


def test_at_most_so_many_at_once_are_those_that_take_most() -> None:
    others = [CopiedPartition(rate, leader=1, followers_in_sync=0, destinations=(5,)) for rate in (1.0, 20.0, 3.0)]
    assert demand(others, most_from_one=2, most_to_one=1) == Demand({1: 23.0}, {5: 20.0})


def test_the_broker_that_needs_most_decides_whichever_its_direction() -> None:
    assert Demand({1: 40.0}, {4: 10.0}).most_bytes_per_s == 40.0
    assert Demand({1: 4.0}, {4: 10.0}).most_bytes_per_s == 10.0
    assert Demand({}, {}).most_bytes_per_s == 0.0


def test_the_least_rate_leaves_a_quarter_more_than_the_demand_rounded_up() -> None:
    assert (least_rate(0.0), least_rate(4.0), least_rate(5.0)) == (0, 5, 7)
