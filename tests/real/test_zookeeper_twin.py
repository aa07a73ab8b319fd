"""The same scenarios on Kafka 3.9.1 and on the twin, each with its own ZooKeeper: znodes compared after every step."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from kreassign.model import ConfigChange, ConfigResource, TopicPartition
from kreassign.model.znodes import paths
from kreassign.model.znodes.contents import parse_controller_epoch
from testbed import ClusterSpec, KafkaCluster
from testbed.waiting import wait_until
from testbed.zookeeper import zookeeper_client
from tests.real.zookeeper_sides import BROKERS, BothSides, Side, kafka_side, twin_side

VICTIM = 5
"""The broker that is stopped; never the controller."""


@pytest.fixture(scope="module")
def clusters() -> Iterator[tuple[Side, Side]]:
    spec = ClusterSpec(version="3.9.1", brokers=BROKERS, mode="zookeeper", log_dirs=1)
    with KafkaCluster.start(spec) as cluster:
        address = cluster.zookeeper_connect
        with zookeeper_client(address) as znodes, twin_side(f"{address}/twin") as twin:
            yield kafka_side(cluster, znodes), twin


def is_led(side: Side) -> bool:
    """True if there is a controller that will not be deposed."""
    content = side.content(paths.CONTROLLER)
    if content is not None and json.loads(content)["brokerid"] == VICTIM:
        side.znodes.delete(paths.CONTROLLER)
    return content is not None and json.loads(content)["brokerid"] != VICTIM


@pytest.fixture
def sides(clusters: tuple[Side, Side]) -> Iterator[BothSides]:
    """Both clusters with all brokers at work, counted from here."""
    for side in clusters:
        wait_until(lambda side=side: is_led(side), what="another controller")
        side.first_epoch = parse_controller_epoch(side.content(paths.CONTROLLER_EPOCH) or b"")
    found = BothSides(*clusters)
    yield found
    found.clear()


Scenario = Callable[[BothSides, str], None]


def both_ways(sides: BothSides, name: str) -> None:
    """KIP-455's example [1, 2, 3] → [4, 3, 2] by the znode, and back by the API."""
    foo = TopicPartition(name, 0)
    sides.create_topic(name, (1, 2, 3))
    sides.rest("created")
    sides.submit({foo: (4, 3, 2)})
    sides.rest("moved by the znode")
    sides.alter({foo: (1, 2, 3)})
    sides.rest("moved back by the API")


def orders_and_elections(sides: BothSides, name: str) -> None:
    """Reorder the replicas, and then elect the first."""
    foo = TopicPartition(name, 0)
    sides.create_topic(name, (1, 2, 3), (2, 3, 4))
    sides.rest("created")
    sides.submit({foo: (3, 2, 1)})
    sides.rest("put in another order by the znode")
    sides.elect(foo)
    sides.rest("elected by the znode")
    sides.alter({foo: (2, 3, 1)})
    sides.rest("put in another order by the API")
    sides.elect(foo, TopicPartition(name, 1), TopicPartition("nope", 0))
    sides.rest("elected by the znode, of which one is unknown")


def counts(sides: BothSides, name: str) -> None:
    """More replicas, and fewer."""
    foo = TopicPartition(name, 0)
    sides.create_topic(name, (1, 2))
    sides.rest("created")
    sides.alter({foo: (1, 2, 3, 4)})
    sides.rest("more replicas")
    sides.submit({foo: (3,)})
    sides.rest("one replica")


def unknown_and_identical_entries(sides: BothSides, name: str) -> None:
    """Entries of the znode that there is nothing to do for."""
    foo = TopicPartition(name, 0)
    sides.create_topic(name, (1, 2))
    sides.rest("created")
    sides.submit({foo: (1, 2), TopicPartition("nope", 0): (1,)})
    sides.rest("nothing to do")
    sides.alter({foo: None, TopicPartition("nope", 0): (1,), TopicPartition(name, 9): (1,)})
    sides.rest("all refused")


def throttles(sides: BothSides, name: str) -> None:
    """Throttles of topics and brokers."""
    sides.create_topic(name, (1, 2))
    sides.configure(ConfigResource.topic(name), ConfigChange.set("follower.replication.throttled.replicas", "0:2"))
    sides.configure(ConfigResource.broker(1), ConfigChange.set("leader.replication.throttled.rate", "1000"))
    sides.rest("throttled")
    sides.configure(ConfigResource.topic(name), ConfigChange.delete("follower.replication.throttled.replicas"))
    sides.configure(ConfigResource.broker(1), ConfigChange.delete("leader.replication.throttled.rate"))
    sides.rest("throttled no more")


def deleted(sides: BothSides, name: str) -> None:
    """A topic is deleted."""
    sides.create_topic(name, (1, 2), (3, 4))
    sides.rest("created")
    sides.delete_topic(name)
    sides.rest("deleted")


def cancellation_of_kip_455(sides: BothSides, name: str) -> None:
    """On the way from [1, 2, 3] to [3, 4, 5], with 5 dead, and cancelled."""
    foo = TopicPartition(name, 0)
    sides.create_topic(name, (1, 2, 3))
    sides.rest("created")
    sides.stop(VICTIM)
    sides.rest("a broker is dead")
    sides.submit({foo: (3, 4, 5)})
    sides.rest("waits for a dead broker")
    sides.alter({foo: None})
    sides.rest("cancelled")


def dead_target_that_comes_back(sides: BothSides, name: str) -> None:
    """A move waits for a dead broker, and goes on when it is back."""
    foo = TopicPartition(name, 0)
    sides.create_topic(name, (1, 2, 3))
    sides.rest("created")
    sides.stop(VICTIM)
    sides.rest("a broker is dead")
    sides.submit({foo: (5, 2)})
    sides.rest("waits for a dead broker")
    sides.start(VICTIM)
    sides.rest("it is back")


def overrides(sides: BothSides, name: str) -> None:
    """The API overrides the znode, and the znode the API: the edge case of KIP-455 with a failover."""
    foo, bar = TopicPartition(name, 0), TopicPartition(name, 1)
    sides.create_topic(name, (1, 2, 3), (1, 2, 5))
    sides.rest("created")
    sides.stop(VICTIM)
    sides.rest("a broker is dead")
    sides.submit({foo: (4, 5), bar: (3, 5)})
    sides.rest("both wait for a dead broker")
    sides.alter({bar: (4, 5)})
    sides.rest("the API overrides one entry")
    sides.depose_the_controller()
    sides.rest("another controller")
    sides.alter({foo: (3, 1)})
    sides.rest("the API overrides the other entry")
    sides.submit({bar: (2, 5)})
    sides.rest("the znode overrides the API")
    sides.start(VICTIM)
    sides.rest("it is back")


@pytest.mark.parametrize("scenario", [
    both_ways, orders_and_elections, counts, unknown_and_identical_entries, throttles, deleted,
    cancellation_of_kip_455, dead_target_that_comes_back, overrides,
])  # fmt: skip
def test_kafka_and_the_twin_write_the_same_znodes(sides: BothSides, topic_name: str, scenario: Scenario) -> None:
    scenario(sides, topic_name)
