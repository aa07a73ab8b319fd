"""Which permissions each command needs, and which of them are missing, with the commands that grant them. Pure.

What a client may do the cluster tells by itself (KIP-430): the operations allowed on the cluster, on each topic and on
each group that is asked about. Which operation each request needs: Kafka's documentation, "Authorization and ACLs",
table "Protocols".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kreassign.executor.brokers.in_maintenance import GROUP_ID as MAINTENANCE_GROUP
from kreassign.executor.history.issue import Issue, Words, named
from kreassign.executor.lease.lease import GROUP_ID as LEASE_GROUP
from kreassign.executor.lease.lease import OFFSETS_TOPIC
from kreassign.model import AllowedOperations
from kreassign.model.authorization import UNKNOWN_PRINCIPAL, grant


@dataclass(frozen=True, slots=True)
class Need:
    """What a command needs on the cluster and on every topic that it concerns, and on one group and topic by name."""

    command: str
    cluster: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    group: tuple[str, str] | None = None
    topic: tuple[str, str] | None = None


_Missing = tuple[str, str, tuple[str, ...]]
"""An operation, on what (as kafka-acls names it), and of which names."""

_LOOK = ("Describe", "DescribeConfigs")
_RECORD = (OFFSETS_TOPIC, "Read")
NEEDS = (
    Need("doctor, snapshot, collect, plan, verify", _LOOK, _LOOK),
    Need("run, resume, cancel, rollback without a throttle", (*_LOOK, "Alter"), _LOOK),
    Need("run, resume, cancel, rollback with a throttle", (*_LOOK, "Alter", "AlterConfigs"), (*_LOOK, "AlterConfigs")),
    Need("maintenance, decommission", (*_LOOK, "Alter", "AlterConfigs"), (*_LOOK, "AlterConfigs")),
    Need("audit records", topics=("Describe", "DescribeConfigs", "Read")),
    Need("the lease of the cluster, which runs can do without", group=(LEASE_GROUP, "Read"), topic=_RECORD),
    Need("maintenance that other machines see", group=(MAINTENANCE_GROUP, "Read"), topic=_RECORD),
    Need(
        "runs that keep away from brokers in maintenance, before Kafka 4.3; they do without",
        group=(MAINTENANCE_GROUP, "Describe"),
        topic=(OFFSETS_TOPIC, "Describe"),
    ),
)


def permission_issues(allowed: AllowedOperations, principal: str | None = None) -> Iterator[Issue]:
    """One issue per command, or group of commands, that lacks something, with the commands that grant just that."""
    who = "" if principal is not None else ", with the name that the brokers know this client by in place of NAME"
    told: set[Words] = set()
    for need in NEEDS:
        missing = [*_missing(need, allowed), *_missing_by_name(need, allowed)]
        grants = tuple(grant(*one, principal or UNKNOWN_PRINCIPAL) for one in missing)
        new = tuple(grant for grant in dict.fromkeys(grants) if grant not in told)
        told.update(new)
        if missing:
            seen = "; ".join(map(_said, missing))
            yield Issue(
                "permission", need.command, f"permission is missing: {seen}", f"Let an administrator grant it{who}", new
            )


def _missing(need: Need, allowed: AllowedOperations) -> Iterator[_Missing]:
    if allowed.cluster is not None:
        yield from ((operation, "cluster", ()) for operation in need.cluster if operation not in allowed.cluster)
    # That its own topic of offsets is hidden hinders nobody who does not mean to move it.
    seen = {name: may for name, may in allowed.topics.items() if may or name != OFFSETS_TOPIC}
    for operation in need.topics:
        if topics := tuple(sorted(name for name, may in seen.items() if operation not in may)):
            yield operation, "topic", topics


def _missing_by_name(need: Need, allowed: AllowedOperations) -> Iterator[_Missing]:
    """Of what has a name; what the cluster does not tell is not missing."""
    for kind, wanted, told in (("group", need.group, allowed.groups), ("topic", need.topic, allowed.topics)):
        if wanted is not None and wanted[0] in told and wanted[1] not in told[wanted[0]]:
            yield wanted[1], kind, (wanted[0],)


def _said(missing: _Missing) -> str:
    operation, kind, names = missing
    if kind == "topic":
        return f"{operation} on topics {named(names)}"
    return f"{operation} on the cluster" if kind == "cluster" else f"{operation} on {kind} {named(names)}"
