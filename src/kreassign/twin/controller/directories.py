"""Brokers report in which log directory they put their replicas (KIP-858)."""

from __future__ import annotations

from collections.abc import Mapping

from kreassign.model import TopicPartition
from kreassign.model.error_codes import NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION
from kreassign.twin.controller.changes import PartitionUpdate, change_of
from kreassign.twin.controller.context import ControllerContext
from kreassign.twin.controller.decision import DONE, Decision, Outcome
from kreassign.twin.metadata.records import PartitionChanged


def assign_directories(
    context: ControllerContext, broker_id: int, directories: Mapping[TopicPartition, str]
) -> Decision[dict[TopicPartition, Outcome]]:
    """Note the directory ids of a broker's replicas. What is no replica of the broker is refused, by its code alone."""
    records = []
    outcomes = {}
    for topic_partition, directory_id in directories.items():
        result = _assign(context, broker_id, topic_partition, directory_id)
        if isinstance(result, PartitionChanged):
            records.append(result)
        outcomes[topic_partition] = result if isinstance(result, Outcome) else DONE
    return Decision(tuple(records), outcomes)


def _assign(
    context: ControllerContext, broker_id: int, topic_partition: TopicPartition, directory_id: str
) -> PartitionChanged | Outcome:
    partition = context.metadata.partition(topic_partition)
    if partition is None:
        return Outcome(UNKNOWN_TOPIC_OR_PARTITION)
    if broker_id not in partition.replicas:
        return Outcome(NOT_LEADER_OR_FOLLOWER)
    return change_of(context, partition, PartitionUpdate(directory=(broker_id, directory_id))) or DONE
