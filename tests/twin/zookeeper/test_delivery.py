"""Brokers that know nothing but what requests have told them know all that is so."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from kreassign.model import ElectionType, TopicPartition
from kreassign.twin.controller.leader_and_isr import ElectLeaders
from kreassign.twin.metadata import PartitionState
from kreassign.twin.zookeeper.control_requests import BEING_DELETED, ControlRequest
from kreassign.twin.zookeeper.controller import Delivery
from kreassign.wire.api import Message
from tests.twin.zookeeper.sending import body, states
from tests.twin.zookeeper.zookeeper_cluster import ZooKeeperCluster


@dataclass(slots=True)
class Known:
    """Knowledge of a broker that believes the last request about each partition."""

    epoch: int
    sender: tuple[int, int] = (-1, 0)
    live: tuple[int, ...] = ()
    replicas: dict[TopicPartition, Message] = field(default_factory=dict)
    partitions: dict[TopicPartition, Message] = field(default_factory=dict)

    def learn(self, kind: str, message: Message) -> None:
        """Take in a request, which no broker of Kafka's would refuse as stale (KIP-380, KIP-570)."""
        assert message.controller_epoch >= self.sender[1]
        assert message.broker_epoch == self.epoch
        self.sender = message.controller_id, message.controller_epoch
        states = {
            TopicPartition(topic.topic_name, one.partition_index): one
            for topic in message.topic_states
            for one in topic.partition_states
        }
        for key in states.keys() & self.replicas.keys() if kind != "UpdateMetadata" else ():
            assert (
                states[key].leader_epoch == BEING_DELETED or states[key].leader_epoch >= self.replicas[key].leader_epoch
            )
        if kind == "LeaderAndIsr":
            self.replicas |= states
        elif kind == "StopReplica":
            self.replicas = {key: one for key, one in self.replicas.items() if key not in states}
        else:
            self.live = tuple(sorted(broker.id for broker in message.live_brokers))
            known = self.partitions | states
            self.partitions = {key: one for key, one in known.items() if one.leader != BEING_DELETED}


class Informed(ZooKeeperCluster):
    """A cluster whose brokers get the requests; `requests` are those since they were last looked at."""

    def __init__(self, replicas: list[int]) -> None:
        super().__init__(replicas, others={"bar": [[3, 4], [4, 5]]})
        self.requests: list[ControlRequest] = []
        self.known: dict[int, Known] = {}
        self.controller.on_messages = Delivery(self.twin, self.controller, lambda _, request: self.take(request))

    def take(self, request: ControlRequest) -> None:
        """Let a broker learn; after another registration it begins anew."""
        self.requests.append(request)
        message, known = request.decode(), self.known.get(request.broker_id)
        if known is None or known.epoch < message.broker_epoch:
            known = self.known[request.broker_id] = Known(message.broker_epoch)
        known.learn(request.api.name, message)

    def flow(self) -> list[tuple[str, int]]:
        """Requests by receiver since the last look."""
        found = [(request.api.name, request.broker_id) for request in self.requests]
        self.requests.clear()
        return found

    def check(self) -> None:
        """Every broker alive has just the replicas that it shall have, and knows of every partition what is so."""
        metadata = self.twin.metadata
        alive = tuple(one for one in sorted(metadata.brokers) if not metadata.brokers[one].fenced)
        partitions = [one for topic in metadata.topics.values() for one in topic.partitions.values()]
        sender = (self.log.controller_id, self.log.controller_epoch)
        for broker in alive:
            known = self.known[broker]
            assert (known.live, known.sender) == (alive, sender)
            shown = {
                key: (one.leader, one.leader_epoch, tuple(one.isr), tuple(one.replicas))
                for key, one in known.partitions.items()
            }
            assert shown == {
                one.topic_partition: (one.leader, one.leader_epoch, one.isr, self.replicas_of(one))
                for one in partitions
            }
            own = {key: (one.leader, one.leader_epoch) for key, one in known.replicas.items()}
            assert own == {
                one.topic_partition: (one.leader, one.leader_epoch)
                for one in partitions
                if broker in self.replicas_of(one)
            }

    def replicas_of(self, partition: PartitionState) -> tuple[int, ...]:
        """The replicas of a partition in ZooKeeper."""
        return self.log.cache.lists(partition.topic_partition).replicas


def test_the_example_of_kip_455_is_told_as_kafka_3_9_tells_it() -> None:
    cluster = Informed([1, 2, 3])
    cluster.begin()
    cluster.check()
    cluster.flow()
    cluster.alter([4, 3, 2])
    everybody = [("UpdateMetadata", broker) for broker in range(7)]
    target = [("LeaderAndIsr", broker) for broker in (2, 3, 4)]
    assert [body(one)["topicStates"][0]["partitionStates"][0].get("isNew") for one in cluster.requests[:4]] == [
        False, False, False, True
    ]  # fmt: skip
    assert cluster.flow() == [("LeaderAndIsr", 1), *target, *everybody, ("LeaderAndIsr", 4), *everybody]
    cluster.check()
    cluster.settle()
    stops = [(one.broker_id, states(one)) for one in cluster.requests if one.api.name == "StopReplica"]
    assert cluster.flow() == [
        *everybody,  # in sync
        *target, *everybody,  # another leader
        *target, *everybody, ("StopReplica", 1),  # out of the ISR
        ("StopReplica", 1), *everybody,  # deleted; done
    ]  # fmt: skip
    assert stops == [
        (1, [{"partitionIndex": 0, "leaderEpoch": 2, "deletePartition": False}]),
        (1, [{"partitionIndex": 0, "leaderEpoch": 3, "deletePartition": True}]),
    ]
    cluster.check()


@pytest.mark.parametrize("others", [[[4, 5, 6]], [[4, 5, 6], [0, 1, 2]], [[4, 5], None], [[3, 2, 1]], [[2]]])
def test_brokers_know_all_that_is_so_after_every_order(others: list[list[int] | None]) -> None:
    cluster = Informed([1, 2, 3])
    cluster.begin()
    for target in others:
        assert cluster.alter(target) == (0, None)
        cluster.check()
    cluster.settle()
    cluster.check()


def test_brokers_know_all_after_elections_failures_and_failovers() -> None:
    cluster = Informed([1, 2, 3])
    cluster.begin()
    cluster.alter([3, 2, 1])
    cluster.settle()
    cluster.controller.elect_leaders(ElectLeaders(ElectionType.PREFERRED, (("foo", (0,)),)))
    assert cluster.state[0] == 3
    cluster.check()
    cluster.twin.crash(3)
    cluster.settle()
    cluster.check()
    assert cluster.known[2].partitions[TopicPartition("bar", 0)].offline_replicas == [3]
    cluster.twin.start(3)
    cluster.settle()
    cluster.check()
    cluster.controller.fail_over()
    cluster.settle()
    cluster.check()
