"""What Kafka keeps in ZooKeeper that concerns reassignments: paths, and text ↔ values. Nothing here talks to one.

Written texts are byte for byte what Kafka 3.9.1 writes; texts of older releases can be read.
"""

from kreassign.model.znodes.admin import (
    find_poison,
    format_election,
    format_reassignments,
    parse_election,
    parse_reassignments,
)
from kreassign.model.znodes.brokers import BrokerZnode, format_broker, parse_broker
from kreassign.model.znodes.configs import format_change, format_config, parse_change, parse_config
from kreassign.model.znodes.controllers import (
    ControllerZnode,
    format_controller,
    format_controller_epoch,
    parse_controller,
    parse_controller_epoch,
)
from kreassign.model.znodes.partition_states import PartitionStateZnode, format_partition_state, parse_partition_state
from kreassign.model.znodes.topics import TopicZnode, format_topic, parse_topic

__all__ = [
    "BrokerZnode",
    "ControllerZnode",
    "PartitionStateZnode",
    "TopicZnode",
    "find_poison",
    "format_broker",
    "format_change",
    "format_config",
    "format_controller",
    "format_controller_epoch",
    "format_election",
    "format_partition_state",
    "format_reassignments",
    "format_topic",
    "parse_broker",
    "parse_change",
    "parse_config",
    "parse_controller",
    "parse_controller_epoch",
    "parse_election",
    "parse_partition_state",
    "parse_reassignments",
    "parse_topic",
]
