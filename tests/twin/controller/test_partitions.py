"""Topics that grow, also while their partitions move."""

from kreassign.twin.controller.decision import ZOOKEEPER_RULES
from kreassign.twin.controller.topics import CreatePartitions, MorePartitions, create_partitions
from tests.twin.controller.small_cluster import SmallCluster, random

DONE = (0, None)
TOO_FEW = (
    "The target replication factor of 3 cannot be reached because only 2 broker(s) are registered "
    "or some brokers have all their log directories cordoned."
)
INACTIVE = (
    "All brokers specified in the manual partition assignment for partition 4 are fenced or in controlled shutdown."
)


def grow(cluster, *wanted, **options):
    """Ask for partitions; code and message by name, in the order of the answer."""
    answers = cluster.commit(create_partitions, CreatePartitions(wanted, **options), random())
    return [(name, (outcome.code, outcome.message)) for name, outcome in answers]


def foo(*states, **options):
    return SmallCluster(**options).topic("foo", *states)


def test_in_zookeeper_mode_a_topic_does_not_grow_while_it_moves():
    cluster = foo("4 5 0 1 / 0 1 / 4 5 / 0 1 / 0", rules=ZOOKEEPER_RULES)
    refusal = (60, "A partition reassignment is in progress for the topic 'foo'.")
    assert grow(cluster, MorePartitions("foo", 2)) == [("foo", refusal)]


def test_new_partitions_can_be_placed_by_hand():
    cluster = foo("0 1", dead=(3,))
    grow(cluster, MorePartitions("foo", 3, ((3, 2), (2, 1))))
    assert cluster.state(index=1) == "3 2 / 2 / - / - / 2"
    assert cluster.state(index=2) == "2 1 / 2 1 / - / - / 2"


def test_a_list_of_dead_brokers_is_refused_and_the_rest_grows():
    cluster = foo("0 1", "0 1", "0 1", dead=(4, 5)).topic("bar", "0 1")
    answers = grow(cluster, MorePartitions("foo", 5, ((0, 1), (4, 5))), MorePartitions("bar", 2))
    assert answers == [("foo", (39, INACTIVE)), ("bar", DONE)]
    assert len(cluster.metadata.topics["foo"].partitions) == 3


def test_automatic_placement_needs_brokers():
    assert grow(foo("0 1 2", brokers=(0, 1)), MorePartitions("foo", 2)) == [("foo", (38, TOO_FEW))]


def test_what_fits_under_the_record_limit_is_added_even_if_the_topic_fails():
    cluster = foo("0").topic("bar", "0")
    wanted = (MorePartitions("foo", 9_991), MorePartitions("bar", 21), MorePartitions("nope", 1))
    decision = create_partitions(cluster.context, CreatePartitions(wanted), random())
    assert len(decision.records) == 10_000
    assert [(outcome.code, outcome.message) for _, outcome in decision.answer] == [DONE, (-1, None), (3, None)]
