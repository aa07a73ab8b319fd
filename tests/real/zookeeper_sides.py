"""Kafka 3.9.1 and the twin side by side: both get the same orders, and their znodes are compared after each."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kazoo.exceptions import NoNodeError

from kreassign.admin import AdminClient, client_settings
from kreassign.model import ConfigChange, ConfigResource, NewTopic, TopicPartition
from kreassign.model.znodes import paths
from kreassign.model.znodes.contents import (
    format_election,
    format_reassignments,
    parse_broker,
    parse_config,
    parse_controller_epoch,
    parse_partition_state,
    parse_reassignments,
    parse_topic,
)
from kreassign.twin.blueprint import small_cluster
from kreassign.twin.scenario import Scenario
from kreassign.twin.serving import Serving, serving_scenario
from testbed import KafkaCluster
from testbed.waiting import wait_until
from testbed.zookeeper import ZooKeeper, zookeeper_client

BROKERS = 6
SPEED = 5.0
REST_S = 0.6
"""How long both must be the same, and stay as they are, to count as at rest."""

DONE = "done"

Picture = dict[str, object]
Targets = Mapping[TopicPartition, tuple[int, ...] | None]


@dataclass
class Side:
    """One of the two clusters: its ZooKeeper, its brokers' addresses, and how to stop and start a broker."""

    name: str
    znodes: ZooKeeper
    bootstrap: str
    stop: Callable[[int], None]
    start: Callable[[int], None]
    first_epoch: int = 0

    def ask(self, question: Callable[[AdminClient], Any]) -> Any:
        """Ask the brokers something, over a connection of its own."""
        with AdminClient.connect(client_settings(bootstrap_servers=self.bootstrap)) as client:
            return question(client)

    def content(self, path: str) -> bytes | None:
        """Content of a znode; None if there is none."""
        try:
            return self.znodes.get(path)
        except NoNodeError:
            return None

    def children(self, path: str) -> list[str]:
        """Children of a znode."""
        try:
            return self.znodes.children(path)
        except NoNodeError:
            return []

    def controller_epoch(self) -> int:
        """Epoch of the controller, counted from the beginning of the scenario."""
        found = self.content(paths.CONTROLLER_EPOCH)
        assert found is not None
        return parse_controller_epoch(found) - self.first_epoch


class BothSides:
    """Both clusters. Every order goes to both, and both must come to rest with the same znodes."""

    def __init__(self, kafka: Side, twin: Side) -> None:
        self.both = (kafka, twin)
        self._topics: list[str] = []
        self._stopped: set[int] = set()

    # --- orders ------------------------------------------------------------------------------------------------

    def create_topic(self, name: str, *replicas: tuple[int, ...]) -> None:
        """Create a topic with these replicas."""
        self._topics.append(name)
        assert self._ask(lambda client: client.create_topics([NewTopic(name, assignments=replicas)])) == {name: DONE}

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        self._ask(lambda client: client.delete_topics([name]))

    def alter(self, targets: Targets) -> None:
        """Move, override or cancel (None) by the API of KIP-455."""
        self._ask(lambda client: client.alter_partition_reassignments(targets))

    def submit(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        """Move by the reassignment znode."""
        self._create(paths.REASSIGN_PARTITIONS, format_reassignments(targets))

    def elect(self, *partitions: TopicPartition) -> None:
        """Hold preferred elections by their znode."""
        self._create(paths.PREFERRED_REPLICA_ELECTION, format_election(partitions))

    def configure(self, resource: ConfigResource, *changes: ConfigChange) -> None:
        """Change configuration by the API."""
        done = self._ask(lambda client: client.incremental_alter_configs({resource: changes}))
        assert done == {str(resource): DONE}

    def stop(self, broker: int) -> None:
        """Stop a broker in order."""
        self._stopped.add(broker)
        for side in self.both:
            side.stop(broker)

    def start(self, broker: int) -> None:
        """Start it again."""
        self._stopped.discard(broker)
        for side in self.both:
            side.start(broker)

    def clear(self) -> None:
        """Let all brokers work again, and no topic be left."""
        for broker in tuple(self._stopped):
            self.start(broker)
        self.rest("all brokers are back")
        for name in self._topics:
            self._ask(lambda client, name=name: client.delete_topics([name]))
        self.rest("all topics are deleted")

    def depose_the_controller(self) -> None:
        """Delete /controller, so that another one is elected."""
        for side in self.both:
            side.znodes.delete(paths.CONTROLLER)

    def _ask(self, question: Callable[[AdminClient], Any]) -> dict[str, str]:
        """Ask both, which must answer the same."""
        kafka, twin = (_outcomes(side, question) for side in self.both)
        assert twin == kafka
        return kafka

    def _create(self, path: str, content: bytes) -> None:
        for side in self.both:
            side.znodes.create(path, content)

    # --- comparing ---------------------------------------------------------------------------------------------

    def rest(self, what: str) -> None:
        """Wait until both have the same znodes and these stay as they are; AssertionError says what is different."""
        watch = _Watch(self.both, self._topics)
        try:
            wait_until(watch.is_at_rest, what=what)
        except TimeoutError:
            raise AssertionError(f"{what}: {watch.difference()}") from None


@dataclass
class _Watch:
    """Looks at both until they have been the same for a while."""

    sides: tuple[Side, Side]
    topics: list[str]
    last: tuple[Picture, Picture] = ({}, {})
    since_s: float = 0.0

    def is_at_rest(self) -> bool:
        """True if both are equal, and have been for long enough."""
        seen, now = (picture(self.sides[0], self.topics), picture(self.sides[1], self.topics)), time.monotonic()
        if seen != self.last:
            self.last, self.since_s = seen, now
        return seen[0] == seen[1] and now - self.since_s >= REST_S

    def difference(self) -> str:
        """Difference at the last look."""
        kafka, twin = self.last
        names = [name for name in sorted({*kafka, *twin}) if kafka.get(name) != twin.get(name)]
        found = [f"{name}: Kafka {kafka.get(name)}, twin {twin.get(name)}" for name in names]
        return "; ".join(found) or "the znodes do not come to rest"


def _outcomes(side: Side, question: Callable[[AdminClient], Any]) -> dict[str, str]:
    batch = side.ask(question)
    return {str(key): batch.failed[key].message if key in batch.failed else str(DONE) for key in batch}


def picture(side: Side, topics: list[str]) -> Picture:
    """Content of a cluster's znodes about these topics, without the parts that differ between clusters."""
    found: Picture = {
        "brokers": side.children(paths.BROKER_IDS),
        "racks": [_broker(side, int(broker)) for broker in side.children(paths.BROKER_IDS)],
        "election": side.content(paths.PREFERRED_REPLICA_ELECTION),
        "deletions": side.children(paths.DELETE_TOPICS),
        "topics": [name for name in side.children(paths.TOPICS) if name in topics],
        "controller": _controller(side),
    }
    waiting = side.content(paths.REASSIGN_PARTITIONS)
    found["reassignments"] = None if waiting is None else parse_reassignments(waiting)
    for broker in range(BROKERS):
        found[f"config of {broker}"] = _config(side, ConfigResource.broker(broker))
    for name in topics:
        found[f"config of {name}"] = _config(side, ConfigResource.topic(name))
        found |= _topic(side, name)
    return found


def _broker(side: Side, broker: int) -> str | None:
    content = side.content(paths.broker_path(broker))
    return None if content is None else parse_broker(broker, content).rack


def _controller(side: Side) -> tuple[bool, int]:
    content = side.content(paths.CONTROLLER)
    return content is not None and json.loads(content)["brokerid"] >= 0, side.controller_epoch()


def _config(side: Side, resource: ConfigResource) -> object:
    content = side.content(paths.config_path(resource))
    return {} if content is None else dict(parse_config(resource, content))


def _topic(side: Side, name: str) -> Iterator[tuple[str, object]]:
    content = side.content(paths.topic_path(name))
    if content is None:
        return
    topic = parse_topic(name, content)
    yield f"{name}", (topic.topic_id is not None, dict(topic.partitions), dict(topic.adding), dict(topic.removing))
    for number in topic.partitions:
        key = TopicPartition(name, number)
        content = side.content(paths.partition_state_path(key))
        if content is not None:
            state = parse_partition_state(key, content)
            epoch = state.controller_epoch - side.first_epoch
            yield f"{key}", (state.leader, state.leader_epoch, sorted(state.isr), epoch)


def kafka_side(cluster: KafkaCluster, znodes: ZooKeeper) -> Side:
    """Real Kafka."""

    def start(broker: int) -> None:
        cluster.brokers[broker].start()

    def stop(broker: int) -> None:
        cluster.brokers[broker].stop()

    return Side("Kafka", znodes, cluster.bootstrap_servers, stop, start)


@contextmanager
def twin_side(zookeeper: str) -> Iterator[Side]:
    """A twin with its metadata there."""
    scenario = Scenario(small_cluster(BROKERS, racks=("a", "b", "c")))
    options = Serving(speed=SPEED, zookeeper=zookeeper, check=True)
    with serving_scenario(scenario, options) as served, zookeeper_client(zookeeper) as znodes:
        yield Side(
            "twin",
            znodes,
            served.bootstrap_servers,
            lambda broker: served.do(lambda twin: twin.stop(broker)),
            lambda broker: served.do(lambda twin: twin.start(broker)),
        )
