"""Which brokers new partitions may go to."""

import pytest

from kreassign.model import ConfigResource
from kreassign.twin.controller.decision import rules_of
from kreassign.twin.controller.topics import cordoned_paths, usable_brokers
from kreassign.twin.metadata import ConfigChanged
from tests.twin.controller.small_cluster import SmallCluster


def cordon(cluster, broker, value):
    cluster.write(ConfigChanged(ConfigResource.broker(broker), "cordoned.log.dirs", value))
    return cluster


def test_brokers_that_shut_down_are_not_usable_but_fenced_ones_are():
    usable = usable_brokers(SmallCluster(brokers=range(4), dead=(1,), stopping=(2,)).context)
    assert [(broker.id, broker.is_fenced) for broker in usable] == [(0, False), (1, True), (3, False)]


@pytest.mark.parametrize(("value", "is_usable"), [
    ("/data0", True), ("/data0,/data1", False), (" /data1 , /data0 ", False), ("*", False), ("", True),
])  # fmt: skip
def test_a_broker_is_usable_while_one_directory_is_not_cordoned(value, is_usable):
    cluster = cordon(SmallCluster(brokers=(0,)), 0, value)
    assert bool(usable_brokers(cluster.context)) is is_usable


def test_older_releases_know_no_cordons():
    cluster = cordon(SmallCluster(brokers=(0,), rules=rules_of("4.2")), 0, "*")
    assert usable_brokers(cluster.context)


def test_cordoned_brokers_can_be_named_by_hand():
    cluster = cordon(SmallCluster().topic("foo", "0 1"), 5, "*")
    cluster.alter("0 5")
    assert cluster.state() == "0 5 1 / 0 1 / 5 / 1 / 0"


def test_paths_are_read_with_or_without_blanks():
    assert cordoned_paths(" /a, /b ,") == {"/a", "/b"}
    assert cordoned_paths(None) == frozenset()
