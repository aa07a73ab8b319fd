"""Client access: users and passwords (SASL/PLAIN), listeners with their addresses, and permissions."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import product
from typing import NamedTuple

from kreassign.twin.version import Endpoint

# The broker's side of SASL/PLAIN (RFC 4616), without the messages around it.

SASL_MECHANISM = "PLAIN"


class LoginVerdict(NamedTuple):
    """The authenticated user, or Kafka's message for a client that failed; exactly one of the two."""

    user: str | None
    refusal: str | None


@dataclass(frozen=True, slots=True)
class Users:
    """User names with their passwords, which `repr` hides."""

    passwords: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Users({sorted(self.passwords)})"

    def judge(self, token: bytes) -> LoginVerdict:
        """Check a PLAIN token: identity, name and password, separated by zeros."""
        parts = token.decode("utf-8", "replace").split("\0", 3)
        if len(parts) != 3:
            return LoginVerdict(None, f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        identity, name, password = parts
        refusal = self._refusal(identity, name, password)
        return LoginVerdict(None if refusal else name, refusal)

    def _refusal(self, identity: str, name: str, password: str) -> str | None:
        if not name:
            return "Authentication failed: username not specified"
        if not password:
            return "Authentication failed: password not specified"
        known = self.passwords.get(name)
        if known is None or not hmac.compare_digest(known.encode(), password.encode()):
            return "Authentication failed: Invalid username or password"
        if identity not in {"", name}:
            return "Authentication failed: Client requested an authorization id that is different from username"
        return None


# Addresses of the nodes of a twin, by listener.


class HostPort(NamedTuple):
    """A host and a port, as clients get them."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Listener:
    """A listener of every node: its clients get the addresses of the same listener only.

    With `users` a client must authenticate by SASL/PLAIN first. `security_protocol` only
    appears in the messages of denied requests.
    """

    name: str
    addresses: Mapping[int, HostPort] = field(default_factory=dict)
    users: Users | None = None
    security_protocol: str = "PLAINTEXT"


@dataclass(frozen=True, slots=True)
class Node:
    """A node as its clients see it through one listener."""

    id: int
    endpoint: Endpoint
    listener: Listener


# Access rules, as simple as tests of denied calls need them. Rules only allow; everything else is denied, as with
# Kafka's standard authorizer and no super user.

ANONYMOUS = "User:ANONYMOUS"


class Operation(IntEnum):
    """An operation of a rule, with Kafka's number for it."""

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


# Permissions that imply another, as in Kafka.
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
    """An operation that a principal (`User:name`) may run: on a topic, a group, all, or (neither) the cluster."""

    principal: str
    operation: Operation
    topic: str | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True)
class Permissions:
    """The rules of a cluster, and the super users, who may do everything."""

    rules: frozenset[Allow]
    super_users: frozenset[str] = frozenset()

    def allows(self, principal: str, operation: Operation, topic: str | None = None, group: str | None = None) -> bool:
        """True if a principal may run an operation on a topic, a group, or (neither) the cluster."""
        topics = (None,) if topic is None else (topic, ALL_TOPICS)
        groups = (None,) if group is None else (group, ALL_GROUPS)
        return principal in self.super_users or any(
            Allow(principal, enough, *owner) in self.rules
            for enough in {operation, *_IMPLIED_BY.get(operation, ())}
            for owner in product(topics, groups)
        )
