"""Properties of the Kafka release that a twin simulates.

The ranges are those that brokers and controllers of these releases offer, also of APIs that the twin refuses
(`refused.py`). Source: Kafka's published message definitions of each release, and the answers of real 3.9.1, 4.3.1 and
4.4.0 nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from kreassign.errors import InputError
from kreassign.model.text import shortened
from kreassign.twin.controller.decision import ZOOKEEPER_RULES, ReleaseRules, rules_of
from kreassign.twin.refused import REFUSED, UNLISTED
from kreassign.wire import api


class Endpoint(Enum):
    """The kind of a node: broker or controller."""

    BROKER = 1
    CONTROLLER = 2


class Versions(NamedTuple):
    """First and last version of an API, both included."""

    low: int
    high: int

    def __str__(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


class Feature(NamedTuple):
    """A feature of a cluster: the levels that a node supports, and the level of the cluster."""

    name: str
    low: int
    high: int
    finalized: int


@dataclass(frozen=True, slots=True)
class KafkaVersion:
    """A release line of Kafka: the APIs of its nodes, and the rules of its controller.

    `longest_list` is how many elements a list of a request may have; None for as many as there are.
    """

    name: str
    offered: Mapping[int, Versions]
    features: tuple[Feature, ...]
    rules: ReleaseRules
    uses_zookeeper: bool = False
    longest_list: int | None = None

    def __str__(self) -> str:
        return self.name

    def versions(self, api_key: int, endpoint: Endpoint = Endpoint.BROKER) -> Versions | None:
        """The versions of an API that such a node accepts; None if it does not have the API."""
        if endpoint is Endpoint.CONTROLLER and api_key not in CONTROLLER_KEYS:
            return None
        return self.offered.get(api_key)

    def all_versions(self, endpoint: Endpoint) -> dict[int, Versions]:
        """Every API that such a node lists in ApiVersions, by key, in ascending order."""
        ranges = {key: self.versions(key, endpoint) for key in sorted(self.offered) if key not in UNLISTED}
        return {key: versions for key, versions in ranges.items() if versions is not None}

    def with_kip_179(self) -> KafkaVersion:
        """Return this release with the requests of KIP-179 added, which no Kafka has."""
        added = {known.key: Versions(known.min_version, known.max_version) for known in api.KIP_179_APIS}
        return replace(self, offered={**self.offered, **added})


# Controllers have no data of partitions, and clients discover brokers from brokers.
CONTROLLER_KEYS = frozenset(
    known.key
    for known in (
        api.SASL_HANDSHAKE, api.API_VERSIONS, api.CREATE_TOPICS, api.DELETE_TOPICS, api.DESCRIBE_ACLS,
        api.DESCRIBE_CONFIGS, api.ALTER_CONFIGS, api.SASL_AUTHENTICATE, api.CREATE_PARTITIONS, api.ELECT_LEADERS,
        api.DESCRIBE_USER_SCRAM_CREDENTIALS, api.UNREGISTER_BROKER,
        api.INCREMENTAL_ALTER_CONFIGS, api.ALTER_PARTITION_REASSIGNMENTS, api.LIST_PARTITION_REASSIGNMENTS,
        api.DESCRIBE_QUORUM, api.DESCRIBE_CLUSTER, api.ALTER_PARTITION_COUNTS,
        api.ALTER_REPLICATION_FACTORS, api.REASSIGN_PARTITIONS,
    )
)  # fmt: skip
CONTROLLER_KEYS |= {row.api.key for row in REFUSED if row.at_controllers}

_RELEASES = ("3.7", "3.9", "4.2", "4.3", "4.4")

# First and last version in each of the releases above; None where the API did not exist.
_Range = tuple[int, int] | None
_OFFERED: dict[api.Api, tuple[_Range, _Range, _Range, _Range, _Range]] = {
    api.PRODUCE: ((0, 10), (0, 11), (0, 13), (0, 13), (0, 13)),
    api.FETCH: ((0, 16), (0, 17), (4, 18), (4, 18), (4, 18)),
    api.LIST_OFFSETS: ((0, 8), (0, 9), (1, 11), (1, 11), (1, 11)),
    api.METADATA: ((0, 12), (0, 12), (0, 13), (0, 13), (0, 13)),
    api.OFFSET_COMMIT: ((0, 9), (0, 9), (2, 10), (2, 10), (2, 10)),
    api.OFFSET_FETCH: ((0, 9), (0, 9), (1, 10), (1, 10), (1, 10)),
    api.FIND_COORDINATOR: ((0, 4), (0, 6), (0, 6), (0, 6), (0, 6)),
    api.JOIN_GROUP: ((0, 9), (0, 9), (0, 9), (0, 9), (0, 9)),
    api.HEARTBEAT: ((0, 4), (0, 4), (0, 4), (0, 4), (0, 4)),
    api.LEAVE_GROUP: ((0, 5), (0, 5), (0, 5), (0, 5), (0, 5)),
    api.SYNC_GROUP: ((0, 5), (0, 5), (0, 5), (0, 5), (0, 5)),
    api.DESCRIBE_GROUPS: ((0, 5), (0, 5), (0, 6), (0, 6), (0, 6)),
    api.LIST_GROUPS: ((0, 4), (0, 5), (0, 5), (0, 5), (0, 5)),
    api.SASL_HANDSHAKE: ((0, 1), (0, 1), (0, 1), (0, 1), (0, 1)),
    api.API_VERSIONS: ((0, 3), (0, 4), (0, 4), (0, 4), (0, 5)),
    api.CREATE_TOPICS: ((0, 7), (0, 7), (2, 7), (2, 7), (2, 7)),
    api.DELETE_TOPICS: ((0, 6), (0, 6), (1, 6), (1, 6), (1, 6)),
    api.DESCRIBE_ACLS: ((0, 3), (0, 3), (1, 3), (1, 3), (1, 3)),
    api.DESCRIBE_CONFIGS: ((0, 4), (0, 4), (1, 4), (1, 4), (1, 4)),
    api.ALTER_CONFIGS: ((0, 2), (0, 2), (0, 2), (0, 2), (0, 2)),
    api.ALTER_REPLICA_LOG_DIRS: ((0, 2), (0, 2), (1, 2), (1, 2), (1, 2)),
    api.DESCRIBE_LOG_DIRS: ((0, 4), (0, 4), (1, 4), (1, 5), (1, 5)),
    api.SASL_AUTHENTICATE: ((0, 2), (0, 2), (0, 2), (0, 2), (0, 2)),
    api.CREATE_PARTITIONS: ((0, 3), (0, 3), (0, 3), (0, 3), (0, 3)),
    api.DELETE_GROUPS: ((0, 2), (0, 2), (0, 2), (0, 2), (0, 3)),
    api.ELECT_LEADERS: ((0, 2), (0, 2), (0, 2), (0, 2), (0, 2)),
    api.INCREMENTAL_ALTER_CONFIGS: ((0, 1), (0, 1), (0, 1), (0, 1), (0, 1)),
    api.ALTER_PARTITION_REASSIGNMENTS: ((0, 0), (0, 0), (0, 1), (0, 1), (0, 1)),
    api.LIST_PARTITION_REASSIGNMENTS: ((0, 0), (0, 0), (0, 0), (0, 0), (0, 0)),
    api.DESCRIBE_CLIENT_QUOTAS: ((0, 1), (0, 1), (0, 1), (0, 1), (0, 1)),
    api.DESCRIBE_USER_SCRAM_CREDENTIALS: ((0, 0), (0, 0), (0, 0), (0, 0), (0, 0)),
    api.DESCRIBE_QUORUM: ((0, 1), (0, 2), (0, 2), (0, 2), (0, 2)),
    api.DESCRIBE_CLUSTER: ((0, 1), (0, 1), (0, 2), (0, 2), (0, 2)),
    api.UNREGISTER_BROKER: ((0, 0), (0, 0), (0, 0), (0, 0), (0, 0)),
    api.LIST_TRANSACTIONS: ((0, 0), (0, 1), (0, 2), (0, 2), (0, 2)),
    api.LIST_CONFIG_RESOURCES: ((0, 0), (0, 0), (0, 1), (0, 1), (0, 1)),
    api.DESCRIBE_TOPIC_PARTITIONS: (None, (0, 0), (0, 0), (0, 0), (0, 0)),
}


def _offered(release: str) -> dict[int, Versions]:
    column = _RELEASES.index(release)
    ranges = {known.key: row[column] for known, row in _OFFERED.items()}
    ranges |= {row.api.key: row.range_in(release) for row in REFUSED}
    return {key: Versions(*found) for key, found in ranges.items() if found is not None}


# Features of a freshly formatted cluster beside its metadata version. Nodes do not report a level of 0.
_NEWEST = (
    Feature("eligible.leader.replicas.version", 0, 1, 1),
    Feature("group.version", 0, 1, 1),
    Feature("kraft.version", 0, 1, 0),
    Feature("share.version", 0, 1, 1),
    Feature("streams.version", 0, 1, 1),
    Feature("transaction.version", 0, 2, 2),
)


def _metadata(low: int, high: int) -> Feature:
    return Feature("metadata.version", low, high, high)


def _release(name: str, *features: Feature) -> KafkaVersion:
    return KafkaVersion(name, _offered(name), features, rules_of(name))


KAFKA_3_7 = _release("3.7", _metadata(1, 19))
KAFKA_3_9 = _release("3.9", _metadata(1, 21))
KAFKA_4_2 = _release("4.2", *_NEWEST, _metadata(7, 29))
KAFKA_4_3 = _release("4.3", *_NEWEST, _metadata(7, 30))
KAFKA_4_4 = replace(
    _release(
        "4.4",
        *(Feature(one.name, 0, 2, 2) if one.name == "share.version" else one for one in _NEWEST),
        _metadata(7, 33),
    ),
    longest_list=1_000_000,  # MessageUtil.MAX_ARRAY_LENGTH
)
RELEASES = (KAFKA_3_7, KAFKA_3_9, KAFKA_4_2, KAFKA_4_3, KAFKA_4_4)
DEFAULT = KAFKA_4_4
KAFKA_3_9_ZOOKEEPER = replace(
    KAFKA_3_9,
    offered={
        key: versions
        for key, versions in KAFKA_3_9.offered.items()
        if key not in (api.DESCRIBE_QUORUM.key, api.UNREGISTER_BROKER.key, api.DESCRIBE_TOPIC_PARTITIONS.key)
    },
    features=(),
    rules=ZOOKEEPER_RULES,
    uses_zookeeper=True,
)
"""Kafka 3.9 with its metadata in ZooKeeper, the last release that could."""

# Distributions whose brokers answer otherwise than Kafka's: docs/reference/distributions.md has the sources.

_NOT_OF_REDPANDA = (
    api.ALTER_REPLICA_LOG_DIRS, api.ELECT_LEADERS, api.DESCRIBE_QUORUM, api.UNREGISTER_BROKER,
    api.LIST_CONFIG_RESOURCES, api.DESCRIBE_TOPIC_PARTITIONS, api.UPDATE_FEATURES, api.UNREGISTER_CONTROLLER,
    api.CONSUMER_GROUP_HEARTBEAT,
)  # fmt: skip
REDPANDA = replace(
    KAFKA_3_9,
    name="redpanda",
    offered={
        key: versions for key, versions in KAFKA_3_9.offered.items() if key not in {one.key for one in _NOT_OF_REDPANDA}
    },
    features=(),
    rules=replace(KAFKA_3_9.rules, takes_broker_settings=False),
)
"""A Redpanda broker, as far as moves go: without elections, moves between directories, and settings of brokers."""
MSK_EXPRESS = replace(KAFKA_3_9, name="msk-express", rules=replace(KAFKA_3_9.rules, takes_reassignments=False))
"""Amazon MSK on Express brokers with intelligent rebalancing on."""
DISTRIBUTIONS = (REDPANDA, MSK_EXPRESS)


def kafka_version(name: str) -> KafkaVersion:
    """The release of this name; a patch level such as `4.3.1` counts as its line. InputError for any other.

    Scenarios of other distributions name these.
    """
    for distribution in DISTRIBUTIONS:
        if name == distribution.name:
            return distribution
    for release in RELEASES:
        if name == release.name or name.startswith(f"{release.name}."):
            return release
    known = ", ".join(release.name for release in RELEASES)
    raise InputError(f"the twin does not know Kafka {shortened(name)!r}; choose one of {known}")
