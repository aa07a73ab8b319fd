"""Paths in ZooKeeper, below the chroot of the cluster."""

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
"""Znodes whose only content is their children."""
ALL_BROKERS = "<default>"
"""Name of the default for all brokers, in place of a broker id."""

_ENTITIES = {ResourceType.TOPIC: "topics", ResourceType.BROKER: "brokers"}


def topic_path(topic: str) -> str:
    """Path of the replica lists of a topic."""
    return f"{TOPICS}/{topic}"


def partition_state_path(partition: TopicPartition) -> str:
    """Path of leader and in-sync replicas of a partition."""
    return f"{TOPICS}/{partition.topic}/partitions/{partition.partition}/state"


def broker_path(broker_id: int) -> str:
    """Path of a live broker; ephemeral."""
    return f"{BROKER_IDS}/{broker_id}"


def config_entity(resource: ConfigResource) -> str:
    """The owner of a configuration in change notifications: `topics/orders`, `brokers/1`."""
    return f"{_ENTITIES[resource.type]}/{resource.name or ALL_BROKERS}"


def config_path(resource: ConfigResource) -> str:
    """Path of the configuration of a topic or broker."""
    return f"{CONFIG}/{config_entity(resource)}"
