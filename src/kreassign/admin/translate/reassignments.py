"""KIP-455 and KIP-860: AlterPartitionReassignments and ListPartitionReassignments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kreassign.admin.call import Call, raise_if_failed
from kreassign.admin.translate.grouping import by_topic
from kreassign.admin.translate.outcomes import outcomes
from kreassign.errors import Unsupported
from kreassign.model import Batch, OngoingReassignment, TopicPartition
from kreassign.wire import api
from kreassign.wire.api import Message

_FACTOR_GUARD_VERSION = 1
# The text that Kafka's client gives (KIP-860, "Compatibility Validation").
_NO_FACTOR_GUARD = (
    "The broker does not support the AllowReplicationFactorChange option for the AlterPartitionReassignments API. "
    "Consider re-sending the request without the option or updating the server version"
)

Targets = Mapping[TopicPartition, tuple[int, ...] | None]


def alter_partition_reassignments(
    targets: Targets, *, allow_replication_factor_change: bool
) -> Call[Batch[TopicPartition, None]]:
    """Start, override or (None) cancel reassignments, an outcome per partition.

    Without `allow_replication_factor_change` a broker that does not know KIP-860 is refused before anything is
    sent; with it, such a broker gets version 0 silently.
    """

    def build(version: int, timeout_ms: int) -> Message:
        if not allow_replication_factor_change and version < _FACTOR_GUARD_VERSION:
            raise Unsupported(_NO_FACTOR_GUARD)
        return api.ALTER_PARTITION_REASSIGNMENTS.request(
            timeout_ms=timeout_ms,
            allow_replication_factor_change=allow_replication_factor_change,
            topics=list(_topics(targets)),
        )

    def read(response: Message) -> Batch[TopicPartition, None]:
        raise_if_failed(api.ALTER_PARTITION_REASSIGNMENTS, response.error_code, response.error_message)
        answered = (
            (TopicPartition(topic.name, partition.partition_index), partition.error_code, partition.error_message)
            for topic in response.responses
            for partition in topic.partitions
        )
        return outcomes(api.ALTER_PARTITION_REASSIGNMENTS, answered, targets)

    return Call(
        api.ALTER_PARTITION_REASSIGNMENTS,
        build,
        read,
        is_write=True,
        routing_codes=lambda response: (response.error_code,),
    )


def _topics(targets: Targets) -> Iterator[Message]:
    entry = api.ALTER_PARTITION_REASSIGNMENTS.request.ReassignableTopic
    for topic, partitions in by_topic(targets).items():
        yield entry(name=topic, partitions=[_partition(entry, targets, topic, number) for number in partitions])


def _partition(entry: Message, targets: Targets, topic: str, number: int) -> Message:
    replicas = targets[TopicPartition(topic, number)]
    return entry.ReassignablePartition(partition_index=number, replicas=None if replicas is None else list(replicas))


def list_partition_reassignments(
    partitions: Iterable[TopicPartition] | None,
) -> Call[dict[TopicPartition, OngoingReassignment]]:
    """What is being reassigned, of these partitions or (None) of all; idle and unknown ones are left out."""
    wanted = None if partitions is None else by_topic(partitions)

    def build(_version: int, timeout_ms: int) -> Message:
        entry = api.LIST_PARTITION_REASSIGNMENTS.request.ListPartitionReassignmentsTopics
        return api.LIST_PARTITION_REASSIGNMENTS.request(
            timeout_ms=timeout_ms,
            topics=None
            if wanted is None
            else [entry(name=topic, partition_indexes=numbers) for topic, numbers in wanted.items()],
        )

    def read(response: Message) -> dict[TopicPartition, OngoingReassignment]:
        raise_if_failed(api.LIST_PARTITION_REASSIGNMENTS, response.error_code, response.error_message)
        return {
            TopicPartition(topic.name, partition.partition_index): OngoingReassignment(
                tuple(partition.replicas), tuple(partition.adding_replicas), tuple(partition.removing_replicas)
            )
            for topic in response.topics
            for partition in topic.partitions
        }

    return Call(api.LIST_PARTITION_REASSIGNMENTS, build, read, routing_codes=lambda response: (response.error_code,))
