"""A small cluster to try decisions on, written in the notation of tables.

A partition is `replicas / isr / adding / removing / leader`, lists as numbers with blanks, `-` for an empty list or no
leader. Whatever follows from the replicas may be left out: `0 1 2` is idle and in sync, and 0 leads it.

Every decision goes through `SmallCluster.commit`, which sees to it that deciding changes nothing, that a controller
which takes over after any record has the same state, and that the invariants of partitions hold.
"""

from __future__ import annotations

import copy
from random import Random

from kreassign.model import NO_LEADER, ConfigResource, TopicPartition
from kreassign.model.cluster import ResourceType
from kreassign.twin.controller.decision import LATEST_RULES, NO_SERVER_SETTINGS, ControllerContext, Decision
from kreassign.twin.controller.leader_and_isr import ElectLeaders, elect_leaders, propose_isr
from kreassign.twin.controller.reassignments import (
    AlterReassignments,
    Target,
    TopicTargets,
    alter_reassignments,
    list_reassignments,
)
from kreassign.twin.metadata import (
    UNASSIGNED,
    BrokerFenced,
    BrokerRegistered,
    BrokerShuttingDown,
    BrokerUnfenced,
    ClusterMetadata,
    ConfigChanged,
    LogDirInfo,
    PartitionCreated,
    TopicCreated,
)


def ids(text):
    """The numbers of a list."""
    return () if text.strip() == "-" else tuple(map(int, text.split()))


def shown(brokers):
    """A list in the notation above."""
    return " ".join(map(str, brokers)) or "-"


def partition_record(topic_partition, text, **fields):
    """The record of a partition in this state."""
    parts = [part.strip() for part in text.split("/")]
    replicas = ids(parts[0])
    isr = ids(parts[1]) if len(parts) > 1 else replicas
    adding, removing = (ids(parts[number]) if len(parts) > number else () for number in (2, 3))
    leader = int(parts[4].replace("-", str(NO_LEADER))) if len(parts) > 4 else (isr or (NO_LEADER,))[0]
    directories = fields.pop("directories", (UNASSIGNED,) * len(replicas))
    return PartitionCreated(
        topic_partition, replicas, isr, leader, 0, 0, directories, adding=adding, removing=removing, **fields
    )


def topic_id(name):
    """The id that a topic has in every cluster."""
    return f"id of {name}"


class SmallCluster:
    """Brokers 0 to 5 with two directories each, unless told otherwise; `dead` ones are registered but fenced."""

    def __init__(
        self, *, brokers=range(6), dead=(), stopping=(), rules=LATEST_RULES, server=NO_SERVER_SETTINGS, log_dirs=2
    ):
        self.rules = rules
        self.server = server
        self.metadata = ClusterMetadata()
        self.log = []
        for broker in brokers:
            self.write(registration(broker, log_dirs))
            if broker not in dead:
                self.write(BrokerUnfenced(broker))
            if broker in stopping:
                self.write(BrokerShuttingDown(broker))

    # --- what is --------------------------------------------------------------------------------------------

    @property
    def context(self):
        """Context of decisions."""
        return ControllerContext(self.metadata, self.rules, self.server)

    def partition(self, name="foo", index=0):
        """The state of a partition as the controller keeps it."""
        return self.metadata.partition(TopicPartition(name, index))

    def state(self, name="foo", index=0):
        """State in the notation of tables."""
        partition = self.partition(name, index)
        lists = (partition.replicas, partition.isr, partition.adding, partition.removing)
        leader = "-" if partition.leader == NO_LEADER else str(partition.leader)
        return " / ".join([*map(shown, lists), leader])

    def idle(self, name="foo", index=0):
        """Replicas and ISR of a partition that must not be moving."""
        partition = self.partition(name, index)
        assert not partition.is_reassigning, self.state(name, index)
        return f"{shown(partition.replicas)} / {shown(partition.isr)}"

    def ongoing(self):
        """Ongoing reassignments, as text per partition."""
        return {
            f"{topic.topic}-{index}": str(move)
            for topic in list_reassignments(self.metadata)
            for index, move in topic.partitions
        }

    # --- how it came to be ----------------------------------------------------------------------------------

    def write(self, *records):
        """Let records happen that nobody decides about here."""
        for record in records:
            self.metadata.apply(record)
            self.log.append(record)

    def topic(self, name, *partitions, **fields):
        """Make a topic with partitions in these states."""
        self.write(TopicCreated(name, topic_id(name)))
        for index, text in enumerate(partitions):
            self.write(partition_record(TopicPartition(name, index), text, **fields))
        return self

    def configure(self, name, key, value):
        """Set a key of a topic, or of all brokers ("")."""
        self.write(ConfigChanged(resource_of(name), key, value))
        return self

    def kill(self, *brokers):
        """Let brokers be fenced without anything following from it."""
        self.write(*map(BrokerFenced, brokers))
        return self

    def revive(self, *brokers):
        """Let brokers be unfenced without anything following from it."""
        self.write(*map(BrokerUnfenced, brokers))
        return self

    # --- decisions ------------------------------------------------------------------------------------------

    def commit(self, decide, *arguments):
        """Decide, check that deciding changed nothing, apply, check that a successor knows the same; the answer."""
        before = copy.deepcopy(self.metadata)
        decision = decide(self.context, *arguments)
        assert isinstance(decision, Decision)
        assert self.metadata == before, "deciding changed something"
        for record in decision.records:
            old = self.metadata
            epochs = {partition.topic_partition: epochs_of(partition) for partition in every_partition(old)}
            self.write(record)
            check_invariants(self.metadata, epochs)
        assert replayed(self.log) == self.metadata
        return decision.answer

    def alter(self, target, name="foo", index=0, **options):
        """Start a move (a list as text) or cancel one (None); the outcome."""
        replicas = None if target is None else ids(target)
        command = AlterReassignments((TopicTargets(name, (Target(index, replicas),)),), **options)
        answer = self.commit(alter_reassignments, command)
        ((_, outcome),) = answer.topics[0].outcomes
        return outcome

    def elect(self, election_type, *partitions):
        """Ask for elections of (topic, partition); code and message of each."""
        topics = tuple((name, (index,)) for name, index in partitions)
        answer = self.commit(elect_leaders, ElectLeaders(int(election_type), topics))
        return [(outcome.code, outcome.message) for topic in answer.topics for _, outcome in topic.outcomes]

    def report_isr(self, isr, name="foo", index=0):
        """Let the leader propose an ISR; the error code."""
        return self.commit(propose_isr, self.partition(name, index), ids(isr))


def resource_of(owner):
    """A topic (by name), a broker (by number) or all brokers ("") as the owner of settings."""
    if isinstance(owner, str) and owner:
        return ConfigResource.topic(owner)
    return ConfigResource(ResourceType.BROKER, str(owner))


def directories(broker, count):
    """The directories of a broker."""
    return tuple(LogDirInfo(f"/data{number}", f"dir {broker}.{number}") for number in range(count))


def registration(broker, log_dirs=2):
    """The record with which a broker comes."""
    return BrokerRegistered(broker, f"host{broker}", 9092, None, directories(broker, log_dirs), broker)


def random():
    """Random source with a fixed seed."""
    return Random(7)


def every_partition(metadata):
    """All partitions."""
    return [partition for topic in metadata.topics.values() for partition in topic.partitions.values()]


def epochs_of(partition):
    """Both epochs, which never go back."""
    return partition.partition_epoch, partition.leader_epoch


def replayed(log):
    """Controller that has replayed the log from its beginning."""
    metadata = ClusterMetadata()
    for record in log:
        metadata.apply(record)
    return metadata


def check_invariants(metadata, epochs_before):
    """Assert the invariants of every partition after every record."""
    for partition in every_partition(metadata):
        replicas = set(partition.replicas)
        assert len(replicas) == len(partition.replicas), partition
        assert set(partition.isr) <= replicas, partition
        assert partition.leader == NO_LEADER or partition.leader in partition.isr, partition
        assert {*partition.adding, *partition.removing} <= replicas, partition
        assert not set(partition.isr) & set(partition.elr), partition
        assert len(partition.directories) == len(partition.replicas), partition
        partition_epoch, leader_epoch = epochs_before.get(partition.topic_partition, (0, 0))
        assert partition.partition_epoch >= partition_epoch, partition
        assert partition.leader_epoch >= leader_epoch, partition
    listed = {
        TopicPartition(topic.topic, index) for topic in list_reassignments(metadata) for index, _ in topic.partitions
    }
    moving = {partition.topic_partition for partition in every_partition(metadata) if partition.is_reassigning}
    assert listed == moving == metadata.reassigning
