"""The values that describe a cluster and a reassignment, without input or output."""

from kreassign.model.authorization import AllowedOperations, operation_names
from kreassign.model.cluster import (
    NO_LEADER,
    Broker,
    Cluster,
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    ConfigSource,
    LogDir,
    LogDirReplica,
    Partition,
    ResourceType,
    Topic,
    TopicPartition,
    TopicPartitionReplica,
)
from kreassign.model.reassignment import OngoingReassignment, Reassignment
from kreassign.model.requests import (
    Batch,
    ElectionType,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    PreferredElectionResult,
    ReplicaStatus,
)

__all__ = [
    "NO_LEADER",
    "AllowedOperations",
    "Batch",
    "Broker",
    "Cluster",
    "ConfigChange",
    "ConfigEntry",
    "ConfigOperation",
    "ConfigResource",
    "ConfigSource",
    "ElectionType",
    "LogDir",
    "LogDirReplica",
    "NewPartitions",
    "NewTopic",
    "OffsetSpec",
    "OngoingReassignment",
    "Partition",
    "PreferredElectionResult",
    "Reassignment",
    "ReplicaStatus",
    "ResourceType",
    "Topic",
    "TopicPartition",
    "TopicPartitionReplica",
    "operation_names",
]
