"""Where things are in ZooKeeper, below the chroot of the cluster."""

from __future__ import annotations

from kreassign.model.cluster import ConfigResource, ResourceType, TopicPartition

REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PREFERRED_REPLICA_ELECTION = "/admin/preferred_replica_election"
DELETE_TOPICS = "/admin/delete_topics"
BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
CLUSTER_ID = "/cluster/id"
CONFIG = "/config"
CONFIG_CHANGES = "/config/changes"
CONFIG_CHANGE_PREFIX = f"{CONFIG_CHANGES}/config_change_"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
ISR_CHANGES = "/isr_change_notification"
LOG_DIR_EVENTS = "/log_dir_event_notification"
LISTS = frozenset({TOPICS, DELETE_TOPICS, CONFIG_CHANGES})
"""Znodes that say all by which znodes are below them."""
ALL_BROKERS = "<default>"
"""What the default of all brokers is called where a broker has its id."""

_ENTITIES = {ResourceType.TOPIC: "topics", ResourceType.BROKER: "brokers"}


def topic_path(topic: str) -> str:
    """Which replicas the partitions of a topic have."""
    return f"{TOPICS}/{topic}"


def partition_state_path(partition: TopicPartition) -> str:
    """Leader and in-sync replicas of a partition."""
    return f"{TOPICS}/{partition.topic}/partitions/{partition.partition}/state"


def broker_path(broker_id: int) -> str:
    """A live broker; ephemeral."""
    return f"{BROKER_IDS}/{broker_id}"


def config_entity(resource: ConfigResource) -> str:
    """The owner of a configuration as change notifications name it: `topics/orders`, `brokers/1`."""
    return f"{_ENTITIES[resource.type]}/{resource.name or ALL_BROKERS}"


def config_path(resource: ConfigResource) -> str:
    """The configuration of a topic or broker."""
    return f"{CONFIG}/{config_entity(resource)}"
