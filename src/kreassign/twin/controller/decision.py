"""Basis and result of a decision.

Decide, then apply: a command reads a `ControllerContext` (metadata, rules of the release, settings of the servers)
and returns a `Decision`: records to write to the metadata log, all of them or none, and the answer. It changes
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Generic, TypeVar

from kreassign.model import NO_LEADER, ConfigResource
from kreassign.model.cluster import ResourceType
from kreassign.model.error_codes import NONE, POLICY_VIOLATION, REQUEST_TIMED_OUT, UNKNOWN_SERVER_ERROR, error_code
from kreassign.twin.metadata import UNASSIGNED, BrokerState, ClusterMetadata, PartitionState, Record

# Differences between the controllers of Kafka releases.


class CompletionRule(Enum):
    """Condition for a move to be complete, given the ISR without the removing replicas, which must not be empty.

    `V1` (until 3.7): all adding replicas are in it. `V2` (3.8 to 4.2): the whole target is in it. `V3` (from 4.3): all
    adding replicas are in it, and if fewer are added than removed, the whole target. `BY_PHASES`: never completed by
    the rule; a controller in ZooKeeper mode goes through phases of its own.
    """

    V1 = 1
    V2 = 2
    V3 = 3
    BY_PHASES = 4


@dataclass(frozen=True, slots=True)
class ReleaseRules:
    """The rules of one release, for a freshly formatted cluster.

    `has_eligible_leaders`: the cluster keeps eligible leader replicas (KIP-966), so that an ISR may become empty.
    `has_cordoning`: log directories can be cordoned (KIP-1066), which some messages mention.
    `cordons_bind`: no list given by hand may name a broker all of whose directories are cordoned (KAFKA-20832).
    `raises_epoch_for_absent`: the leader epoch also rises when a follower that is gone leaves the ISR.
    `takes_broker_settings`: brokers may have settings of their own; without it topics ignore lists of throttled
    replicas, as Redpanda does.
    `takes_reassignments`: clients may move partitions; a service may keep that to itself.
    `places_on_absent`: new replicas may go to brokers that are down, if there are too few others.
    """

    completion: CompletionRule = CompletionRule.V3
    has_eligible_leaders: bool = True
    has_cordoning: bool = True
    cordons_bind: bool = True
    raises_epoch_for_absent: bool = False
    places_on_absent: bool = True
    takes_broker_settings: bool = True
    takes_reassignments: bool = True


LATEST_RULES = ReleaseRules()

ZOOKEEPER_RULES = ReleaseRules(
    CompletionRule.BY_PHASES,
    has_eligible_leaders=False,
    has_cordoning=False,
    cordons_bind=False,
    raises_epoch_for_absent=True,
    places_on_absent=False,
)
"""The rules of Kafka 3.9 with its metadata in ZooKeeper."""

_RULES_OF_RELEASES = {
    "3.7": ReleaseRules(CompletionRule.V1, has_eligible_leaders=False, has_cordoning=False, cordons_bind=False),
    "3.9": ReleaseRules(CompletionRule.V2, has_eligible_leaders=False, has_cordoning=False, cordons_bind=False),
    "4.2": ReleaseRules(CompletionRule.V2, has_eligible_leaders=True, has_cordoning=False, cordons_bind=False),
    "4.3": ReleaseRules(cordons_bind=False),
    "4.4": LATEST_RULES,
}


def rules_of(release: str) -> ReleaseRules:
    """The rules of a release line such as `4.3`, which the twin knows."""
    return _RULES_OF_RELEASES[release]


# Basis of a decision: the metadata, the rules of the release, and the brokers' own settings.

MIN_IN_SYNC_REPLICAS = "min.insync.replicas"
TIERED_SERVER = "remote.log.storage.system.enable"
UNCLEAN_LEADER_ELECTION = "unclean.leader.election.enable"
DEFAULT_BROKER = ConfigResource(ResourceType.BROKER, "")
"""Owner of the dynamic settings of every broker without its own."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Settings in every server's own file. `static` are the fallbacks of topic settings, by the server's key."""

    partition_count: int = 1
    replication_factor: int = 1
    static: Mapping[str, str] = field(default_factory=dict)

    def with_static(self, key: str, value: str) -> ServerSettings:
        """A copy with one more setting in the file."""
        return replace(self, static={**self.static, key: value})


NO_SERVER_SETTINGS = ServerSettings()


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """The present metadata, read-only.

    While a broker is being unfenced the metadata still has it as fenced, and the other way round: `returning` is a
    broker that already counts as active, `leaving` a broker that must no longer lead. `controllers` are nodes that can
    be configured although they are not brokers.
    """

    metadata: ClusterMetadata
    rules: ReleaseRules = LATEST_RULES
    server: ServerSettings = NO_SERVER_SETTINGS
    returning: int = NO_LEADER
    leaving: int = NO_LEADER
    controllers: frozenset[int] = frozenset()

    def may_lead(self, partition: PartitionState, broker_id: int) -> bool:
        """True if a broker is fit to lead a partition that it has a replica of, apart from being in sync."""
        if broker_id == self.leaving or broker_id not in partition.replicas:
            return False
        if broker_id != self.returning and not self.metadata.is_active(broker_id):
            return False
        return is_online(self.metadata.brokers[broker_id], partition.directory_of(broker_id))

    def topic_setting(self, topic: str, key: str, default: str) -> str:
        """The value of a key that topics and brokers share, from wherever it is set."""
        for resource in (ConfigResource.topic(topic), DEFAULT_BROKER):
            value = self.metadata.config(resource, key)
            if value is not None:
                return value
        return self.server.static.get(key, default)

    @property
    def may_be_tiered(self) -> bool:
        """True if topics may have their older segments in remote storage (KIP-405)."""
        return self.server.static.get(TIERED_SERVER) == "true"

    def min_isr(self, topic: str) -> int:
        """The required number of replicas in sync, at most the replicas of the topic's first partition."""
        first = self.metadata.topics[topic].partitions[0]
        return min(int(self.topic_setting(topic, MIN_IN_SYNC_REPLICAS, "1")), len(first.replicas))

    def allows_unclean_election(self, topic: str) -> bool:
        """True if a replica out of sync may become leader without a request."""
        return self.topic_setting(topic, UNCLEAN_LEADER_ELECTION, "false").strip().lower() == "true"


def is_online(broker: BrokerState, directory_id: str) -> bool:
    """True if a replica in this directory is usable; an unknown directory counts as usable."""
    return directory_id == UNASSIGNED or directory_id in online_directories(broker)


def online_directories(broker: BrokerState) -> tuple[str, ...]:
    """Ids of the working directories, in the order of the broker's configuration."""
    every = (log_dir.directory_id for log_dir in broker.log_dirs)
    return tuple(directory_id for directory_id in every if directory_id not in broker.failed_dirs)


def default_directory(metadata: ClusterMetadata, broker_id: int) -> str:
    """The directory of a new replica, as far as the controller knows: only if the broker has just one."""
    broker = metadata.brokers.get(broker_id)
    online = online_directories(broker) if broker else ()
    return online[0] if len(online) == 1 else UNASSIGNED


# Result of a command: records, and an outcome for each item.

Answer = TypeVar("Answer")

MAX_RECORDS = 10_000
"""The most records that one request of a client may write."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one item of a request: Kafka's error code, and the message (None is null on the wire)."""

    code: int = NONE
    message: str | None = None

    @property
    def is_failure(self) -> bool:
        """True if the item was refused."""
        return self.code != NONE

    def __str__(self) -> str:
        return f"{error_code(self.code)}: {self.message}" if self.is_failure else "done"


DONE = Outcome()
TIMED_OUT = Outcome(REQUEST_TIMED_OUT)
FAILED = Outcome(UNKNOWN_SERVER_ERROR)
"""An error inside the controller; it never has a message."""
TOO_LARGE = Outcome(POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
"""The answer to a request that would write more than `MAX_RECORDS` and cannot be cut short."""

BROKER_LOGGER, CLIENT_METRICS, _GROUP = 8, 16, 32
OTHER_KINDS = (BROKER_LOGGER, CLIENT_METRICS, _GROUP)
"""Kinds of resources that have configs in Kafka, and none in a twin; by Kafka's number."""
OF_OTHER_KIND = Outcome(POLICY_VIOLATION, "This is a twin: it keeps configs of topics and brokers only.")


def with_default_text(code: int) -> Outcome:
    """A refusal with Kafka's default message for its code."""
    return Outcome(code, error_code(code).text)


def has_expired(timeout_ms: int) -> bool:
    """True if a request is expired before it is processed: its wait in the queue counts, too."""
    return timeout_ms <= 0


@dataclass(frozen=True, slots=True)
class Decision(Generic[Answer]):
    """Records in the order in which they are applied, all of them or none; and the answer."""

    records: tuple[Record, ...]
    answer: Answer
