"""What a cluster is and what a reassignment is: values only, no input or output."""

from kreassign.model.batch import Batch
from kreassign.model.cluster import Broker, Cluster, LogDir, LogDirReplica
from kreassign.model.config import (
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    ConfigSource,
    ResourceType,
)
from kreassign.model.election import ElectionType, PreferredElectionResult
from kreassign.model.new_topic import NewPartitions, NewTopic
from kreassign.model.partition import NO_LEADER, Partition, Topic, TopicPartition, TopicPartitionReplica
from kreassign.model.reassignment import OngoingReassignment, Reassignment
from kreassign.model.replica_status import ReplicaStatus

__all__ = [
    "NO_LEADER",
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
    "OngoingReassignment",
    "Partition",
    "PreferredElectionResult",
    "Reassignment",
    "ReplicaStatus",
    "ResourceType",
    "Topic",
    "TopicPartition",
    "TopicPartitionReplica",
]
