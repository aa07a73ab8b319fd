"""Who may do what: access rules as simple as tests of denied calls need them.

Rules only allow; what no rule allows is denied, as with Kafka's standard authorizer and no super user.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

ANONYMOUS = "User:ANONYMOUS"


class Operation(IntEnum):
    """What a rule allows, with Kafka's number for it."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


# What comes with another permission in Kafka.
_IMPLIED_BY: dict[Operation, frozenset[Operation]] = {
    Operation.DESCRIBE: frozenset({Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}

TOPIC_OPERATIONS = frozenset(Operation) - {Operation.CLUSTER_ACTION, Operation.IDEMPOTENT_WRITE}
CLUSTER_OPERATIONS = frozenset(Operation) - {Operation.READ, Operation.WRITE, Operation.DELETE}
GROUP_OPERATIONS = frozenset({Operation.READ, Operation.DESCRIBE, Operation.DELETE})

ALL_TOPICS = "*"
ALL_GROUPS = "*"


@dataclass(frozen=True, slots=True)
class Allow:
    """One principal (`User:name`) may do one thing: to a topic or a group, to all, or (neither) to the cluster."""

    principal: str
    operation: Operation
    topic: str | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True)
class Permissions:
    """The rules of a cluster, and the principals that may do everything."""

    rules: frozenset[Allow]
    super_users: frozenset[str] = frozenset()

    def allows(self, principal: str, operation: Operation, topic: str | None = None) -> bool:
        """Whether someone may do this to a topic, or (topic None) to the cluster."""
        topics = (None,) if topic is None else (topic, ALL_TOPICS)
        return principal in self.super_users or any(
            Allow(principal, enough, one) in self.rules for enough in _sufficient(operation) for one in topics
        )

    def allows_group(self, principal: str, operation: Operation, group: str) -> bool:
        """Whether someone may do this to a group."""
        return principal in self.super_users or any(
            Allow(principal, enough, group=one) in self.rules
            for enough in _sufficient(operation)
            for one in (group, ALL_GROUPS)
        )


def _sufficient(operation: Operation) -> frozenset[Operation]:
    """The operations whose permission is enough for this one."""
    return _IMPLIED_BY.get(operation, frozenset()) | {operation}
