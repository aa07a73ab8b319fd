"""Messages to brokers about changes that are no moves: elections, ISRs, new and deleted partitions, restarted brokers.

The controller sends the messages of one tuple at once. Replicas get LeaderAndIsr; a leader that changed the ISR knows
that already, so that only the metadata caches of all brokers are updated (UpdateMetadata).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from kreassign.model import TopicPartition
from kreassign.twin.metadata.records import BrokerUnfenced, PartitionChanged, PartitionCreated, Record, TopicDeleted
from kreassign.twin.metadata.state import ClusterMetadata, PartitionState

BEING_DELETED = -2
"""In place of a leader: the topic is being deleted."""


@dataclass(frozen=True, slots=True)
class PartitionMessage:
    """A partition as the brokers in `recipients` have to take it over, and which brokers have to stop their replicas.

    `topic_id` is a UUID in its usual text form. `partition_epoch` is the version of the state znode. `new_replicas`
    are those of the recipients that have no replica yet. `stopped` names brokers and whether they delete what they
    have. Without `recipients` there is no LeaderAndIsr, but all brokers still get UpdateMetadata.
    """

    topic: str
    topic_id: str
    partition: int
    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    is_new: bool = False
    recipients: tuple[int, ...] = ()
    stopped: tuple[tuple[int, bool], ...] = ()


def message_of(
    metadata: ClusterMetadata, partition: PartitionState, controller_epoch: int, told: tuple[int, ...] = ()
) -> PartitionMessage:
    """A partition as it is, for these brokers."""
    topic, number = partition.topic_partition
    return PartitionMessage(
        topic,
        metadata.topics[topic].topic_id,
        number,
        controller_epoch,
        partition.leader,
        partition.leader_epoch,
        partition.isr,
        partition.partition_epoch,
        partition.replicas,
        partition.adding,
        partition.removing,
        recipients=told,
    )


def messages_before(
    metadata: ClusterMetadata, records: Iterable[Record], controller_epoch: int
) -> Iterator[PartitionMessage]:
    """The messages before records are applied: which topics are being deleted."""
    for record in records:
        if isinstance(record, TopicDeleted):
            for partition in metadata.topics[record.name].partitions.values():
                yield replace(message_of(metadata, partition, controller_epoch), leader=BEING_DELETED)


def stopped(step: PartitionMessage, *, delete: bool) -> PartitionMessage:
    """The message that stops every replica of a partition."""
    return replace(step, stopped=tuple((broker, delete) for broker in step.replicas))


def messages_after(
    metadata: ClusterMetadata, records: Iterable[Record], controller_epoch: int
) -> Iterator[PartitionMessage]:
    """The messages after records were applied."""
    for record in records:
        match record:
            case PartitionCreated(key):
                yield replace(_to_replicas(metadata, key, controller_epoch), is_new=True)
            case PartitionChanged(key, leader=None):
                yield message_of(metadata, _present(metadata, key), controller_epoch)
            case PartitionChanged(key):
                yield _to_replicas(metadata, key, controller_epoch)
            case BrokerUnfenced(broker):
                for partition in metadata.partitions_on(broker):
                    if broker not in partition.adding:  # its move begins again, with messages of its own
                        yield message_of(metadata, partition, controller_epoch, (broker,))
            case _:
                pass


def full_state_messages(metadata: ClusterMetadata, controller_epoch: int) -> Iterator[PartitionMessage]:
    """The messages of a controller that was just elected: everything."""
    for _, topic in sorted(metadata.topics.items()):
        for _, partition in sorted(topic.partitions.items()):
            yield _to_replicas(metadata, partition.topic_partition, controller_epoch)


def _to_replicas(metadata: ClusterMetadata, key: TopicPartition, controller_epoch: int) -> PartitionMessage:
    partition = _present(metadata, key)
    active = tuple(broker for broker in partition.replicas if metadata.is_active(broker))
    return message_of(metadata, partition, controller_epoch, active)


def _present(metadata: ClusterMetadata, key: TopicPartition) -> PartitionState:
    partition = metadata.partition(key)
    assert partition is not None
    return partition
