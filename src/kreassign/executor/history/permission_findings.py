"""Which permissions each command needs, and which of them are missing, with the commands that grant them. Pure.

What a client may do the cluster tells by itself (KIP-430): the operations allowed on the cluster and on each topic.
Which operation each request needs: Kafka's documentation, "Authorization and ACLs", table "Protocols".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from kreassign.executor.history.issue import Issue, Words, named
from kreassign.model import AllowedOperations


@dataclass(frozen=True, slots=True)
class Need:
    """What a command needs on the cluster and on every topic that it concerns."""

    command: str
    cluster: tuple[str, ...]
    topics: tuple[str, ...]


_LOOK = ("Describe", "DescribeConfigs")
NEEDS = (
    Need("doctor, snapshot, collect, plan, verify", _LOOK, _LOOK),
    Need("run, resume, cancel, rollback without a throttle", (*_LOOK, "Alter"), _LOOK),
    Need("run, resume, cancel, rollback with a throttle", (*_LOOK, "Alter", "AlterConfigs"), (*_LOOK, "AlterConfigs")),
    Need("maintenance, decommission", (*_LOOK, "Alter", "AlterConfigs"), (*_LOOK, "AlterConfigs")),
    Need("audit records", ("Describe",), ("Describe", "Read")),
)


def permission_issues(allowed: AllowedOperations, principal: str = "User:NAME") -> Iterator[Issue]:
    """One issue per command, or group of commands, that lacks something, with the commands that grant just that."""
    told: set[Words] = set()
    for need in NEEDS:
        missing = _missing(need, allowed)
        grants = tuple(_grant(operation, topics, principal) for operation, topics in missing)
        new = tuple(grant for grant in grants if grant not in told)
        told.update(new)
        if missing:
            seen = "; ".join(_said(operation, topics) for operation, topics in missing)
            yield Issue(
                "permission", need.command, f"permission is missing: {seen}", "Let an administrator grant it", new
            )


def _missing(need: Need, allowed: AllowedOperations) -> list[tuple[str, tuple[str, ...]]]:
    """The operations, on no topic for the cluster."""
    found: list[tuple[str, tuple[str, ...]]] = []
    if allowed.cluster is not None:
        found += [(operation, ()) for operation in need.cluster if operation not in allowed.cluster]
    for operation in need.topics:
        if topics := tuple(sorted(name for name, may in allowed.topics.items() if operation not in may)):
            found.append((operation, topics))
    return found


def _said(operation: str, topics: Collection[str]) -> str:
    return f"{operation} on {f'topics {named(tuple(topics))}' if topics else 'the cluster'}"


def _grant(operation: str, topics: Collection[str], principal: str) -> Words:
    where: Iterable[str] = ("--topic", *topics) if len(topics) == 1 else ("--topic", "*") if topics else ("--cluster",)
    return ("kafka-acls", "--add", "--allow-principal", principal, "--operation", operation, *where)
