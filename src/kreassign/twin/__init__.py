"""A simulated cluster: a controller, brokers that take time to move data, and Kafka's protocol in front."""

from kreassign.twin.blueprint import Blueprint, BrokerPlan, PartitionPlan, TopicPlan, small_cluster
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.replication.hardware import BrokerHardware, LogDirHardware
from kreassign.twin.replication.partition_logs import Traffic
from kreassign.twin.transport import TwinTransport
from kreassign.twin.version import kafka_version

__all__ = [
    "Blueprint",
    "BrokerHardware",
    "BrokerPlan",
    "LogDirHardware",
    "PartitionPlan",
    "TopicPlan",
    "Traffic",
    "Twin",
    "TwinSettings",
    "TwinTransport",
    "kafka_version",
    "small_cluster",
]
