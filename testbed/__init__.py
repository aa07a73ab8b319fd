"""Real Kafka clusters on this machine, for tests, the demo and benchmarks. Not part of the product."""

from testbed.cluster import KafkaCluster
from testbed.errors import JarsMissing, JavaMissing, NodeFailed, RecordsLost, Refused
from testbed.node import Node
from testbed.permissions import Permission
from testbed.processes import Finished
from testbed.spec import ClusterSpec, Listener, Security

__all__ = [
    "ClusterSpec",
    "Finished",
    "JarsMissing",
    "JavaMissing",
    "KafkaCluster",
    "Listener",
    "Node",
    "NodeFailed",
    "Permission",
    "RecordsLost",
    "Refused",
    "Security",
]
