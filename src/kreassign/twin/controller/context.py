"""What a decision is based on: the metadata, the rules of the release, and the brokers' own settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kreassign.model import NO_LEADER, ConfigResource
from kreassign.model.config import ResourceType
from kreassign.twin.controller.rules import LATEST, Rules
from kreassign.twin.metadata.records import UNASSIGNED
from kreassign.twin.metadata.state import BrokerState, ClusterMetadata, PartitionState

MIN_IN_SYNC_REPLICAS = "min.insync.replicas"
TIERED_SERVER = "remote.log.storage.system.enable"
UNCLEAN_LEADER_ELECTION = "unclean.leader.election.enable"
DEFAULT_BROKER = ConfigResource(ResourceType.BROKER, "")
"""Owner of the dynamic settings that hold for every broker without its own."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Settings of every server's own file. `static` are those that topics fall back to, by the server's key."""

    partition_count: int = 1
    replication_factor: int = 1
    static: Mapping[str, str] = field(default_factory=dict)

    def with_static(self, key: str, value: str) -> ServerSettings:
        """The same with one more setting in the file."""
        return replace(self, static={**self.static, key: value})


NOTHING_SET = ServerSettings()


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """The metadata as it is now, to be read only.

    While a broker is being unfenced the metadata still has it as fenced, and the other way round: `returning` is such
    a broker that counts as active, `leaving` one that must not lead. `controllers` are nodes that can be configured
    although they are no brokers.
    """

    metadata: ClusterMetadata
    rules: Rules = LATEST
    server: ServerSettings = NOTHING_SET
    returning: int = NO_LEADER
    leaving: int = NO_LEADER
    controllers: frozenset[int] = frozenset()

    def may_lead(self, partition: PartitionState, broker_id: int) -> bool:
        """Whether a broker is fit to lead a partition that it has a replica of, apart from being in sync."""
        if broker_id == self.leaving or broker_id not in partition.replicas:
            return False
        if broker_id != self.returning and not self.metadata.is_active(broker_id):
            return False
        return is_online(self.metadata.brokers[broker_id], partition.directory_of(broker_id))

    def topic_setting(self, topic: str, key: str, default: str) -> str:
        """The value of a key that topics and brokers share, wherever it is set."""
        for resource in (ConfigResource.topic(topic), DEFAULT_BROKER):
            value = self.metadata.config(resource, key)
            if value is not None:
                return value
        return self.server.static.get(key, default)

    @property
    def may_be_tiered(self) -> bool:
        """Whether topics may have their older segments in remote storage (KIP-405)."""
        return self.server.static.get(TIERED_SERVER) == "true"

    def min_isr(self, topic: str) -> int:
        """How many replicas must be in sync, but never more than the first partition of the topic has replicas."""
        first = self.metadata.topics[topic].partitions[0]
        return min(int(self.topic_setting(topic, MIN_IN_SYNC_REPLICAS, "1")), len(first.replicas))

    def allows_unclean_election(self, topic: str) -> bool:
        """Whether a replica out of sync may be made leader without anybody asking for it."""
        return self.topic_setting(topic, UNCLEAN_LEADER_ELECTION, "false").strip().lower() == "true"


def is_online(broker: BrokerState, directory_id: str) -> bool:
    """Whether a replica in this directory can be used; one whose directory is not known yet is taken to be fine."""
    return directory_id == UNASSIGNED or directory_id in online_directories(broker)


def online_directories(broker: BrokerState) -> tuple[str, ...]:
    """Ids of the directories that work, in the order of the broker's configuration."""
    every = (log_dir.directory_id for log_dir in broker.log_dirs)
    return tuple(directory_id for directory_id in every if directory_id not in broker.failed_dirs)


def default_directory(metadata: ClusterMetadata, broker_id: int) -> str:
    """Where a new replica goes as far as the controller knows: only if the broker has one directory."""
    broker = metadata.brokers.get(broker_id)
    online = online_directories(broker) if broker else ()
    return online[0] if len(online) == 1 else UNASSIGNED
