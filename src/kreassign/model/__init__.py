"""What a cluster is and what a reassignment is: values only, no input or output."""

from kreassign.model.authorization import AllowedOperations, operation_names
from kreassign.model.batch import Batch
from kreassign.model.cluster import Broker, Cluster, LogDir
from kreassign.model.config import (
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    ConfigSource,
    ResourceType,
)
from kreassign.model.election import ElectionType, PreferredElectionResult
from kreassign.model.log_dir_replicas import LogDirReplica
from kreassign.model.new_topic import NewPartitions, NewTopic
from kreassign.model.offset_spec import OffsetSpec
from kreassign.model.partition import NO_LEADER, Partition, Topic, TopicPartition, TopicPartitionReplica
from kreassign.model.reassignment import OngoingReassignment, Reassignment
from kreassign.model.replica_status import ReplicaStatus

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
