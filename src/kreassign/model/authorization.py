"""What a client may do, as a cluster tells it (KIP-430)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

# By the number that Kafka gives each operation, with the names that kafka-acls takes.
_NAMES = {
    3: "Read", 4: "Write", 5: "Create", 6: "Delete", 7: "Alter", 8: "Describe", 9: "ClusterAction",
    10: "DescribeConfigs", 11: "AlterConfigs", 12: "IdempotentWrite",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class AllowedOperations:
    """Names of the operations that a client is allowed, on the cluster and by topic.

    `cluster` is None where the cluster does not tell; topics that the client may not see, or that do not tell, are
    left out. `groups` are those that were asked about, but for those that do not tell.
    """

    cluster: frozenset[str] | None = None
    topics: Mapping[str, frozenset[str]] = field(default_factory=dict)
    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)


def operation_names(numbers: Iterable[int]) -> frozenset[str]:
    """The names of these operations; those that nobody knows are left out."""
    return frozenset(_NAMES[number] for number in numbers if number in _NAMES)
