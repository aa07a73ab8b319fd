"""Where partitions are now, as a plan that would bring them back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kreassign.kafka_tools.reassign import directory_moves
from kreassign.kafka_tools.reassign.conversation import Conversation
from kreassign.kafka_tools.reassign.replica_dirs import replica_on, replicas_of
from kreassign.model import Broker, TopicPartition, TopicPartitionReplica
from kreassign.model.plan import ANY_LOG_DIR, PartitionAssignment, Plan

Assigned = Mapping[TopicPartition, tuple[int, ...]]


def current_plan(conversation: Conversation, assigned: Assigned, live: Iterable[Broker]) -> Plan:
    """The given replica lists with the directories of the replicas; only live brokers are asked for them."""
    ids = {broker.id for broker in live}
    found = directory_moves.find(conversation, (one for one in replicas_of(assigned) if one.broker in ids))
    return plan_with_dirs(assigned, {replica: dirs.current for replica, dirs in found.items()})


def plan_with_dirs(assigned: Assigned, log_dirs: Mapping[TopicPartitionReplica, str | None]) -> Plan:
    """The given replica lists with the directories that are known, `any` for the others."""
    return Plan(
        tuple(
            PartitionAssignment(
                partition,
                brokers,
                tuple(log_dirs.get(replica_on(broker, partition)) or ANY_LOG_DIR for broker in brokers),
            )
            for partition, brokers in assigned.items()
        )
    )
