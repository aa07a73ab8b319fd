"""The same scenarios on Kafka 3.9.1 and on the twin, each with its own ZooKeeper: znodes compared after every step."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from kazoo.client import KazooClient

from kreassign.model import ConfigChange, ConfigResource, TopicPartition
from kreassign.model.znodes import parse_controller, parse_controller_epoch, paths
from kreassign.twin.zookeeper.control_requests import ControlRequest
from testbed import ClusterSpec, KafkaCluster
from testbed.waiting import wait_until
from tests.real.zookeeper_worlds import BROKERS, World, Worlds, kafka_world, twin_world

VICTIM = 5
"""The broker that is stopped; never the controller."""


@pytest.fixture(scope="module")
def clusters() -> Iterator[tuple[World, World]]:
    spec = ClusterSpec(version="3.9.1", brokers=BROKERS, mode="zookeeper", log_dirs=1)
    with KafkaCluster.start(spec) as cluster:
        znodes = KazooClient(hosts=cluster.zookeeper_connect)
        znodes.start(timeout=15)
        requests: list[ControlRequest] = []
        with twin_world(f"{cluster.zookeeper_connect}/twin", requests) as twin:
            yield kafka_world(cluster, znodes), twin
        znodes.stop()
        znodes.close()


def is_led(world: World) -> bool:
    """Whether there is a controller that will not be stopped; who will be is deposed."""
    content = world.content(paths.CONTROLLER)
    if content is not None and parse_controller(content).broker_id == VICTIM:
        world.znodes.delete(paths.CONTROLLER)
    return content is not None and parse_controller(content).broker_id != VICTIM


@pytest.fixture
def worlds(clusters: tuple[World, World]) -> Iterator[Worlds]:
    """Both clusters with all brokers at work, counted from here."""
    for world in clusters:
        wait_until(lambda world=world: is_led(world), timeout_s=60, what="another controller")
        world.first_epoch = parse_controller_epoch(world.content(paths.CONTROLLER_EPOCH) or b"")
    found = Worlds(*clusters)
    yield found
    found.clear()


Scenario = Callable[[Worlds, str], None]


def both_ways(worlds: Worlds, name: str) -> None:
    """KIP-455's example [1, 2, 3] → [4, 3, 2] by the znode, and back by the API."""
    foo = TopicPartition(name, 0)
    worlds.create_topic(name, (1, 2, 3))
    worlds.rest("created")
    worlds.submit({foo: (4, 3, 2)})
    worlds.rest("moved by the znode")
    worlds.alter({foo: (1, 2, 3)})
    worlds.rest("moved back by the API")


def orders_and_elections(worlds: Worlds, name: str) -> None:
    """The same replicas in another order, and then an election of the first."""
    foo = TopicPartition(name, 0)
    worlds.create_topic(name, (1, 2, 3), (2, 3, 4))
    worlds.rest("created")
    worlds.submit({foo: (3, 2, 1)})
    worlds.rest("put in another order by the znode")
    worlds.elect(foo)
    worlds.rest("elected by the znode")
    worlds.alter({foo: (2, 3, 1)})
    worlds.rest("put in another order by the API")
    worlds.elect(foo, TopicPartition(name, 1), TopicPartition("nope", 0))
    worlds.rest("elected by the znode, of which one is unknown")


def counts(worlds: Worlds, name: str) -> None:
    """More replicas, and fewer."""
    foo = TopicPartition(name, 0)
    worlds.create_topic(name, (1, 2))
    worlds.rest("created")
    worlds.alter({foo: (1, 2, 3, 4)})
    worlds.rest("more replicas")
    worlds.submit({foo: (3,)})
    worlds.rest("one replica")


def unknown_and_identical_entries(worlds: Worlds, name: str) -> None:
    """Entries of the znode that there is nothing to do for."""
    foo = TopicPartition(name, 0)
    worlds.create_topic(name, (1, 2))
    worlds.rest("created")
    worlds.submit({foo: (1, 2), TopicPartition("nope", 0): (1,)})
    worlds.rest("nothing to do")
    worlds.alter({foo: None, TopicPartition("nope", 0): (1,), TopicPartition(name, 9): (1,)})
    worlds.rest("all refused")


def throttles(worlds: Worlds, name: str) -> None:
    """Throttles of topics and brokers."""
    worlds.create_topic(name, (1, 2))
    worlds.configure(ConfigResource.topic(name), ConfigChange.set("follower.replication.throttled.replicas", "0:2"))
    worlds.configure(ConfigResource.broker(1), ConfigChange.set("leader.replication.throttled.rate", "1000"))
    worlds.rest("throttled")
    worlds.configure(ConfigResource.topic(name), ConfigChange.delete("follower.replication.throttled.replicas"))
    worlds.configure(ConfigResource.broker(1), ConfigChange.delete("leader.replication.throttled.rate"))
    worlds.rest("throttled no more")


def deleted(worlds: Worlds, name: str) -> None:
    """A topic is deleted."""
    worlds.create_topic(name, (1, 2), (3, 4))
    worlds.rest("created")
    worlds.delete_topic(name)
    worlds.rest("deleted")


def cancellation_of_kip_455(worlds: Worlds, name: str) -> None:
    """On the way from [1, 2, 3] to [3, 4, 5], with 5 dead, and cancelled."""
    foo = TopicPartition(name, 0)
    worlds.create_topic(name, (1, 2, 3))
    worlds.rest("created")
    worlds.stop(VICTIM)
    worlds.rest("a broker is dead")
    worlds.submit({foo: (3, 4, 5)})
    worlds.rest("waits for a dead broker")
    worlds.alter({foo: None})
    worlds.rest("cancelled")


def dead_target_that_comes_back(worlds: Worlds, name: str) -> None:
    """A move waits for a dead broker, and goes on when it is back."""
    foo = TopicPartition(name, 0)
    worlds.create_topic(name, (1, 2, 3))
    worlds.rest("created")
    worlds.stop(VICTIM)
    worlds.rest("a broker is dead")
    worlds.submit({foo: (5, 2)})
    worlds.rest("waits for a dead broker")
    worlds.start(VICTIM)
    worlds.rest("it is back")


def overrides(worlds: Worlds, name: str) -> None:
    """The API overrides the znode, and the znode the API: the edge case of KIP-455 with a failover."""
    foo, bar = TopicPartition(name, 0), TopicPartition(name, 1)
    worlds.create_topic(name, (1, 2, 3), (1, 2, 5))
    worlds.rest("created")
    worlds.stop(VICTIM)
    worlds.rest("a broker is dead")
    worlds.submit({foo: (4, 5), bar: (3, 5)})
    worlds.rest("both wait for a dead broker")
    worlds.alter({bar: (4, 5)})
    worlds.rest("the API overrides one entry")
    worlds.depose_the_controller()
    worlds.rest("another controller")
    worlds.alter({foo: (3, 1)})
    worlds.rest("the API overrides the other entry")
    worlds.submit({bar: (2, 5)})
    worlds.rest("the znode overrides the API")
    worlds.start(VICTIM)
    worlds.rest("it is back")


@pytest.mark.parametrize("scenario", [
    both_ways, orders_and_elections, counts, unknown_and_identical_entries, throttles, deleted,
    cancellation_of_kip_455, dead_target_that_comes_back, overrides,
])  # fmt: skip
def test_kafka_and_the_twin_write_the_same_znodes(worlds: Worlds, topic_name: str, scenario: Scenario) -> None:
    scenario(worlds, topic_name)
