"""Brokers that may get new partitions."""

import pytest

from kreassign.model import ConfigResource
from kreassign.twin.controller import topics
from kreassign.twin.controller.decision import rules_of
from kreassign.twin.metadata import BrokerFenced, BrokerUnfenced, ConfigChanged, LogDirFailed, cordoned_paths
from tests.twin.controller.small_cluster import SmallCluster, random, registration


def cordon(cluster, broker, value):
    cluster.write(ConfigChanged(ConfigResource.broker(broker), "cordoned.log.dirs", value))
    return cluster


def test_brokers_are_usable_when_down_but_not_while_they_shut_down():
    usable = topics.usable_brokers(SmallCluster(brokers=range(4), dead=(1, 3), stopping=(2, 3)).context)
    assert [(broker.id, broker.is_fenced) for broker in usable] == [(0, False), (1, True), (3, True)]


@pytest.mark.parametrize(("value", "is_usable"), [
    ("/data0", True), ("/data0,/data1", False), (" /data1 , /data0 ", False), ("*", False), ("", True),
])  # fmt: skip
def test_a_broker_is_usable_while_one_directory_is_not_cordoned(value, is_usable):
    cluster = cordon(SmallCluster(brokers=(0,)), 0, value)
    assert bool(topics.usable_brokers(cluster.context)) is is_usable


def test_older_releases_know_no_cordons():
    cluster = cordon(SmallCluster(brokers=(0,), rules=rules_of("4.2")), 0, "*")
    assert topics.usable_brokers(cluster.context)


def told(outcome):
    return (outcome.code, outcome.message)


def refusal(broker):
    return (39, f"The manual partition assignment includes broker {broker}, but all its log directories are cordoned.")


DONE = (0, None)
UNKNOWN = (39, "The manual partition assignment includes broker 9, but no such broker is registered.")


def twice(broker):
    return (39, f"The manual partition assignment includes the broker {broker} more than once.")


def cordoned(cordons, **options):
    """A cluster where 0 and 1 have foo-0, with the values of `cordoned.log.dirs` that `cordons` lists."""
    cluster = SmallCluster(**options).topic("foo", "0 1")
    for one in filter(None, cordons.split(";")):
        broker, value = one.split(" ")
        cordon(cluster, int(broker), value)
    return cluster


@pytest.mark.parametrize(("target", "cordons", "on_4_3", "on_4_4"), [
    ("0 5", "5 *", DONE, refusal(5)),
    ("5 0", "5 /data0,/data1", DONE, refusal(5)),
    ("0 5", "5 /data0", DONE, DONE),
    ("0 5", "1 *", DONE, DONE),
    ("1 0", "1 *", DONE, refusal(1)),
    ("0 1 2", "1 *", DONE, refusal(1)),
    ("0 1", "1 *", DONE, refusal(1)),
    ("5 1", "1 *;5 *", DONE, refusal(1)),
    ("5 9", "5 *", UNKNOWN, refusal(5)),
    ("9 5 0 0", "5 *", twice(0), twice(0)),
    ("5 5", "5 *", twice(5), refusal(5)),
    (None, "1 *", (85, None), (85, None)),
])  # fmt: skip
def test_lists_may_name_cordoned_brokers_before_4_4(target, cordons, on_4_3, on_4_4):
    answers = [told(cordoned(cordons, rules=rules_of(release)).alter(target)) for release in ("4.3", "4.4")]
    assert answers == [on_4_3, on_4_4]


def test_each_partition_has_an_answer_of_its_own():
    cluster = SmallCluster().topic("foo", "0 1", "1 2")
    cordon(cluster, 1, "*")
    assert [told(cluster.alter("0 2", index=0)), told(cluster.alter("2 1", index=1))] == [DONE, refusal(1)]


def test_a_move_to_a_broker_that_was_cordoned_meanwhile_can_be_cancelled():
    cluster = SmallCluster().topic("foo", "0 1")
    cluster.alter("0 5")
    cordon(cluster, 5, "*")
    assert (told(cluster.alter("0 5")), told(cluster.alter(None))) == (refusal(5), DONE)
    assert cluster.state() == "0 1 / 0 1 / - / - / 0"


@pytest.mark.parametrize(("failed", "cordons", "answer"), [
    ("/data0", "5 /data1", refusal(5)), ("/data1", "5 /data1", DONE), ("/data0", "5 *", refusal(5)),
])  # fmt: skip
def test_directories_that_failed_do_not_count(failed, cordons, answer):
    cluster = cordoned(cordons)
    ids = {log_dir.path: log_dir.directory_id for log_dir in cluster.metadata.brokers[5].log_dirs}
    cluster.write(LogDirFailed(5, ids[failed]))
    assert told(cluster.alter("0 5")) == answer


def test_a_cordon_binds_as_its_broker_reported_it_last():
    cluster = cordoned("5 *")
    cluster.write(BrokerFenced(5))
    cordon(cluster, 5, None)
    assert told(cluster.alter("0 5")) == refusal(5)
    cluster.write(registration(5), BrokerUnfenced(5))
    assert told(cluster.alter("0 5")) == DONE


def test_a_cordoned_broker_is_open_from_registration_until_it_is_ready():
    cluster = cordoned("5 *")
    cluster.write(BrokerFenced(5), registration(5))
    assert told(cluster.alter("0 5")) == DONE
    cluster.write(BrokerUnfenced(5))
    assert told(cluster.alter("0 5")) == refusal(5)


@pytest.mark.parametrize(("release", "answer"), [("4.3", DONE), ("4.4", refusal(5))])
def test_new_partitions_follow_the_same_rule(release, answer):
    cluster = cordoned("5 *", rules=rules_of(release))
    wanted = topics.WantedTopic("bar", assignments=((0, (0, 1)), (1, (5, 0))))
    (created,) = cluster.commit(topics.create_topics, topics.CreateTopics((wanted,)), random())
    assert told(created.outcome) == answer
    more = topics.CreatePartitions((topics.MorePartitions("foo", 2, ((0, 5),)),))
    ((_, grown),) = cluster.commit(topics.create_partitions, more, random())
    assert told(grown) == answer


def test_paths_are_read_with_or_without_blanks():
    assert cordoned_paths(" /a, /b ,") == {"/a", "/b"}
    assert cordoned_paths(None) == frozenset()
