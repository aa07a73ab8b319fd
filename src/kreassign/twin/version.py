"""Properties of the Kafka release that a twin simulates.

The ranges are those that brokers and controllers of these releases offer, also of APIs that the twin refuses
(`refused.py`). Source: Kafka's published message definitions of each release, and the answers of real 3.9.1, 4.3.1 and
4.4.0 nodes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from kreassign.errors import InputError
from kreassign.model.text import packaged_text, shortened
from kreassign.twin.controller.decision import ZOOKEEPER_RULES, ReleaseRules, rules_of
from kreassign.twin.refused import UNLISTED
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


_TABLE = json.loads(packaged_text(__name__, "api_versions.json"))
"""First and last version of each API, by key, in each of the releases; null where it did not exist."""
NOT_OFFERED = {int(key): (str(row["name"]), str(row["why"])) for key, row in _TABLE["not_offered"].items()}
"""The APIs of brokers of Kafka 4.4 that are not in ApiVersions, by key: name, and why."""

# Controllers have no data of partitions, and clients discover brokers from brokers.
CONTROLLER_KEYS = frozenset(
    (
        *(int(key) for key, row in _TABLE["apis"].items() if row["is_at_controllers"]),
        *(known.key for known in api.KIP_179_CHANGES),
    )
)


def _offered(release: str) -> dict[int, Versions]:
    column = _TABLE["releases"].index(release)
    ranges = {int(key): row["versions"][column] for key, row in _TABLE["apis"].items()}
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
    api.CONSUMER_GROUP_HEARTBEAT, api.CONSUMER_GROUP_DESCRIBE,
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
