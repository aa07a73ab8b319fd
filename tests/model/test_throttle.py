"""Replicas and brokers of a throttle."""

from __future__ import annotations

import pytest

from kreassign.model import throttle
from kreassign.model.cluster import ConfigChange, ConfigResource, TopicPartition
from kreassign.model.reassignment import OngoingReassignment

Moves = dict[TopicPartition, throttle.ThrottledMove]


def foo(number: int) -> TopicPartition:
    return TopicPartition("foo", number)


BAR_0 = TopicPartition("bar", 0)

ONGOING = {
    foo(0): OngoingReassignment((1, 2, 3, 4), (4,), (3,)),
    foo(1): OngoingReassignment((4, 5, 6, 7, 8), (7, 8), (4, 5)),
    **{foo(number): OngoingReassignment((1, 2, 3, 4), (3, 4), (1, 2)) for number in (2, 3, 4, 5)},
}
PLAN = {
    foo(0): (1, 2, 5),
    foo(2): (3, 4),
    foo(3): (5, 6),
    foo(4): (3,),
    foo(5): (3, 4, 5, 6),
    BAR_0: (1, 2, 3),
}
CURRENT = {partition: move.replicas for partition, move in ONGOING.items()} | {
    BAR_0: (2, 3, 4),
    TopicPartition("baz", 0): (1, 2, 3),
}


@pytest.fixture
def moves() -> Moves:
    return throttle.move_map(ONGOING, PLAN, CURRENT)


def test_a_plan_over_running_moves_flows_from_where_they_began(moves: Moves) -> None:
    assert moves == {
        BAR_0: throttle.ThrottledMove((2, 3, 4), (1,)),
        foo(0): throttle.ThrottledMove((1, 2, 3), (5,)),
        foo(1): throttle.ThrottledMove((4, 5, 6), (7, 8)),
        foo(2): throttle.ThrottledMove((1, 2), (3, 4)),
        foo(3): throttle.ThrottledMove((1, 2), (5, 6)),
        foo(4): throttle.ThrottledMove((1, 2), (3,)),
        foo(5): throttle.ThrottledMove((1, 2), (3, 4, 5, 6)),
    }
    assert list(moves) == sorted(moves)


def test_the_lists_of_a_topic_hold_all_its_moves(moves: Moves) -> None:
    assert throttle.leader_lists(moves) == {
        "foo": "0:1,0:2,0:3,1:4,1:5,1:6,2:1,2:2,3:1,3:2,4:1,4:2,5:1,5:2",
        "bar": "0:2,0:3,0:4",
    }
    assert throttle.follower_lists(moves) == {"foo": "0:5,1:7,1:8,2:3,2:4,3:5,3:6,4:3,5:3,5:4,5:5,5:6", "bar": "0:1"}


def test_every_sender_and_receiver_is_involved(moves: Moves) -> None:
    assert throttle.involved_brokers(moves) == (1, 2, 3, 4, 5, 6, 7, 8)


def test_lists_are_sorted_as_text() -> None:
    moves = {foo(2): throttle.ThrottledMove((1, 10), (3,)), foo(10): throttle.ThrottledMove((1,), (2,))}
    assert throttle.leader_lists(moves) == {"foo": "10:1,2:1,2:10"}


def test_a_planned_partition_that_stays_has_an_empty_receiving_list() -> None:
    moves = throttle.move_map({}, {foo(0): (2, 1)}, {foo(0): (1, 2)})
    assert throttle.topic_changes(moves) == {
        ConfigResource.topic("foo"): (
            ConfigChange.set("leader.replication.throttled.replicas", "0:1,0:2"),
            ConfigChange.set("follower.replication.throttled.replicas", ""),
        )
    }


def test_rates_are_set_for_both_directions() -> None:
    assert throttle.rate_changes((3,), 1000) == {
        ConfigResource.broker(3): (
            ConfigChange.set("leader.replication.throttled.rate", "1000"),
            ConfigChange.set("follower.replication.throttled.rate", "1000"),
        )
    }


def test_reassign_log_dirs_have_a_rate_of_their_own() -> None:
    key = "replica.alter.log.dirs.io.max.bytes.per.second"
    assert throttle.log_dir_rate_changes((0, 2), 5) == {
        ConfigResource.broker(0): (ConfigChange.set(key, "5"),),
        ConfigResource.broker(2): (ConfigChange.set(key, "5"),),
    }


def test_clearing_deletes_every_key_that_setting_sets() -> None:
    set_keys = {change.name for change in throttle.rate_changes((1,), 1)[ConfigResource.broker(1)]}
    set_keys |= {change.name for change in throttle.log_dir_rate_changes((1,), 1)[ConfigResource.broker(1)]}
    cleared = throttle.clear_broker_changes((1,))[ConfigResource.broker(1)]
    assert set(cleared) == set(map(ConfigChange.delete, set_keys))
    topic_keys = {
        change.name
        for change in throttle.topic_changes({foo(0): throttle.ThrottledMove((1,), (2,))})[ConfigResource.topic("foo")]
    }
    assert set(throttle.clear_topic_changes(("foo",))[ConfigResource.topic("foo")]) == set(
        map(ConfigChange.delete, topic_keys)
    )


def test_every_broker_and_every_topic_has_its_changes(moves: Moves) -> None:
    assert set(throttle.rate_changes((3, 1), 5)) == {ConfigResource.broker(1), ConfigResource.broker(3)}
    assert set(throttle.clear_broker_changes((3, 1))) == {ConfigResource.broker(1), ConfigResource.broker(3)}
    assert set(throttle.clear_topic_changes(("a", "b"))) == {ConfigResource.topic("a"), ConfigResource.topic("b")}
    assert throttle.topic_changes(moves)[ConfigResource.topic("bar")] == (
        ConfigChange.set("leader.replication.throttled.replicas", "0:2,0:3,0:4"),
        ConfigChange.set("follower.replication.throttled.replicas", "0:1"),
    )


def test_a_slowed_throttle_has_a_part_of_each_rate_and_stops_nothing() -> None:
    rates = throttle.ThrottleRates(
        1_000, (throttle.BrokerRate(1, 301), throttle.BrokerRate(2, None), throttle.BrokerRate(3, 1))
    )
    assert rates.slowed(50) == throttle.ThrottleRates(
        500, (throttle.BrokerRate(1, 150), throttle.BrokerRate(2, None), throttle.BrokerRate(3, 1))
    )
    assert rates.slowed(100) == rates
    assert throttle.NO_THROTTLE.slowed(50) == throttle.NO_THROTTLE
