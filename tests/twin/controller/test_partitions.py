"""Topics that grow, also while their partitions move."""

import pytest

from kreassign.twin.controller.decision import ZOOKEEPER_RULES, rules_of
from kreassign.twin.controller.topics import CreatePartitions, MorePartitions, create_partitions
from tests.twin.controller.small_cluster import SmallCluster, random

DONE = (0, None)
TOO_FEW = (
    "The target replication factor of 3 cannot be reached because only 2 broker(s) are registered "
    "or some brokers have all their log directories cordoned."
)
INACTIVE = "are fenced or in controlled shutdown."


def inconsistent(given, factor):
    return (
        f"The manual partition assignment includes a partition with {given} replica(s), but this is not consistent "
        f"with previous partitions, which have {factor} replica(s)."
    )


def grow(cluster, *wanted, **options):
    """Ask for partitions; code and message by name, in the order of the answer."""
    answers = cluster.commit(create_partitions, CreatePartitions(wanted, **options), random())
    return [(name, (outcome.code, outcome.message)) for name, outcome in answers]


def foo(*states, **options):
    return SmallCluster(**options).topic("foo", *states)


def test_new_partitions_have_as_many_replicas_as_the_first():
    cluster = foo("0 1 2", "0")
    assert grow(cluster, MorePartitions("foo", 5)) == [("foo", DONE)]
    assert [len(cluster.partition(index=index).replicas) for index in range(5)] == [3, 1, 3, 3, 3]
    assert cluster.partition(index=4).isr == cluster.partition(index=4).replicas


def test_of_ten_partitions_the_first_is_the_one_whose_replicas_are_counted():
    cluster = foo("0 1 2", *["0"] * 9)
    grow(cluster, MorePartitions("foo", 11))
    assert len(cluster.partition(index=10).replicas) == 3


def test_during_a_move_they_have_as_many_as_the_whole_list():
    cluster = foo("4 5 0 1 / 0 1 / 4 5 / 0 1 / 0")
    grow(cluster, MorePartitions("foo", 2))
    assert len(cluster.partition(index=1).replicas) == 4
    assert grow(cluster, MorePartitions("foo", 3, ((0, 1),))) == [("foo", (39, inconsistent(2, 4)))]
    assert cluster.ongoing() == {"foo-0": "replicas: 4,5,0,1. adding: 4,5. removing: 0,1."}


def test_in_zookeeper_mode_a_topic_does_not_grow_while_it_moves():
    cluster = foo("4 5 0 1 / 0 1 / 4 5 / 0 1 / 0", rules=ZOOKEEPER_RULES)
    refusal = (60, "A partition reassignment is in progress for the topic 'foo'.")
    assert grow(cluster, MorePartitions("foo", 2)) == [("foo", refusal)]


def test_new_partitions_can_be_placed_by_hand():
    cluster = foo("0 1", dead=(3,))
    grow(cluster, MorePartitions("foo", 3, ((3, 2), (2, 1))))
    assert cluster.state(index=1) == "3 2 / 2 / - / - / 2"
    assert cluster.state(index=2) == "2 1 / 2 1 / - / - / 2"


@pytest.mark.parametrize(("wanted", "code", "message"), [
    (MorePartitions("nope", 2), 3, None),
    (MorePartitions("foo", 3), 37, "Topic already has 3 partition(s)."),
    (MorePartitions("foo", 1), 37, "The topic foo currently has 3 partition(s); 1 would not be an increase."),
    (MorePartitions("foo", 0), 37, "The topic foo currently has 3 partition(s); 0 would not be an increase."),
    (
        MorePartitions("foo", 1, ((0, 1),)),
        37,
        "The topic foo currently has 3 partition(s); 1 would not be an increase.",
    ),
    (
        MorePartitions("foo", 5, ((0, 1),)),
        39,
        "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
    ),
    (
        MorePartitions("foo", 4, ((0, 1), (1, 0))),
        39,
        "Attempted to add 1 additional partition(s), but only 2 assignment(s) were specified.",
    ),
    (MorePartitions("foo", 5, ((0, 1), (0,))), 39, inconsistent(1, 2)),
    (MorePartitions("foo", 4, ((),)), 39, "The manual partition assignment includes an empty replica list."),
    (MorePartitions("foo", 4, ((0, 0),)), 39, "The manual partition assignment includes the broker 0 more than once."),
    (
        MorePartitions("foo", 4, ((0, 9),)),
        39,
        "The manual partition assignment includes broker 9, but no such broker is registered.",
    ),
    (
        MorePartitions("foo", 5, ((0, 1), (4, 5))),
        39,
        f"All brokers specified in the manual partition assignment for partition 4 {INACTIVE}",
    ),
])  # fmt: skip
def test_what_cannot_grow_is_refused_in_kafkas_words_and_the_rest_grows(wanted, code, message):
    cluster = foo("0 1", "0 1", "0 1", dead=(4, 5)).topic("bar", "0 1")
    assert grow(cluster, wanted, MorePartitions("bar", 2)) == [(wanted.topic, (code, message)), ("bar", DONE)]
    assert len(cluster.metadata.topics["foo"].partitions) == 3


@pytest.mark.parametrize(("options", "message"), [
    ({"dead": range(6)}, "All brokers are currently fenced, or have all their log directories cordoned."),
    ({"dead": range(6), "rules": rules_of("4.2")}, "All brokers are currently fenced."),
    ({"brokers": (0, 1)}, TOO_FEW),
])  # fmt: skip
def test_automatic_placement_needs_brokers(options, message):
    assert grow(foo("0 1 2", **options), MorePartitions("foo", 2)) == [("foo", (38, message))]


def test_a_name_that_comes_twice_is_answered_once_and_does_not_grow():
    cluster = foo("0 1").topic("bar", "0 1")
    answers = grow(cluster, MorePartitions("foo", 2), MorePartitions("bar", 2), MorePartitions("foo", 3))
    assert answers == [("foo", (42, "Duplicate topic name.")), ("bar", DONE)]
    assert len(cluster.metadata.topics["foo"].partitions) == 1


def test_validating_adds_nothing():
    cluster = foo("0 1")
    assert grow(cluster, MorePartitions("foo", 2), validate_only=True) == [("foo", DONE)]
    assert len(cluster.metadata.topics["foo"].partitions) == 1


def test_a_request_without_time_adds_nothing():
    assert grow(foo("0 1"), MorePartitions("foo", 2), timeout_ms=0) == [("foo", (7, None))]


def test_what_fits_under_the_record_limit_is_added_even_if_the_topic_fails():
    cluster = foo("0").topic("bar", "0")
    wanted = (MorePartitions("foo", 9_991), MorePartitions("bar", 21), MorePartitions("nope", 1))
    decision = create_partitions(cluster.context, CreatePartitions(wanted), random())
    assert len(decision.records) == 10_000
    assert [(outcome.code, outcome.message) for _, outcome in decision.answer] == [DONE, (-1, None), (3, None)]
