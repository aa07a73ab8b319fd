"""What a run may do: which permission a refusal asks for, and whether all are there before anything is changed.

Permissions per API: Kafka's documentation, "Authorization and ACLs", table "Protocols". Nothing here changes the
cluster: configuration is only validated (KIP-339), and a request to alter reassignments that names no partition changes
none, but its permission is checked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from kreassign.errors import ClusterError
from kreassign.executor.cluster.port import ClusterPort
from kreassign.model import ConfigChange, ConfigResource, ResourceType
from kreassign.model.error_codes import CLUSTER_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, has_code
from kreassign.model.throttle import FOLLOWER_THROTTLED_RATE, FOLLOWER_THROTTLED_REPLICAS

CHECK_TIMEOUT_MS = 20_000
NAMED = 5
"""So many topics are named; the rest is counted."""


def missing(operation: str, topics: Collection[str] = ()) -> str:
    """A sentence on a permission that is not there: of these topics, or of the cluster if there are none."""
    names = sorted(topics)
    if not names:
        return f"permission is missing: {operation} on the cluster; {_command(operation, '--cluster')}"
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    shown = ", ".join(names[:NAMED])
    kind = "topic" if len(names) == 1 else "topics"
    return f"permission is missing: {operation} on {kind} {shown}{more}; {_command(operation, f'--topic {names[0]}')}"


def advice(error: ClusterError, operation: str, topic: str | None = None) -> str:
    """What to add to the text of a refusal for lack of permission; nothing for any other error."""
    is_denied = has_code(error, TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED)
    return f"; {missing(operation, () if topic is None else (topic,))}" if is_denied else ""


def lacking(port: ClusterPort, topics: Iterable[str], brokers: Iterable[int]) -> tuple[str, ...]:
    """A sentence per permission that a run lacks, which throttles copies of these topics on these live brokers.

    Other errors tell nothing of permissions, and are met again when something is done.
    """
    return (*_to_reassign(port), *_to_throttle(port, topics, brokers))


def _to_reassign(port: ClusterPort) -> Iterator[str]:
    try:
        port.check_reassignment_permission(timeout_ms=CHECK_TIMEOUT_MS)
    except ClusterError as error:
        if has_code(error, CLUSTER_AUTHORIZATION_FAILED):
            yield missing("Alter")


def _to_throttle(port: ClusterPort, topics: Iterable[str], brokers: Iterable[int]) -> Iterator[str]:
    changes = {
        **{ConfigResource.topic(topic): (ConfigChange.set(FOLLOWER_THROTTLED_REPLICAS, ""),) for topic in topics},
        **{ConfigResource.broker(broker): (ConfigChange.set(FOLLOWER_THROTTLED_RATE, "1"),) for broker in brokers},
    }
    if not changes:
        return
    try:
        failed = port.incremental_alter_configs(changes, validate_only=True, timeout_ms=CHECK_TIMEOUT_MS).failed
    except ClusterError:
        return
    denied = [
        resource
        for resource, error in failed.items()
        if has_code(error, TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED)
    ]
    if names := [resource.name for resource in denied if resource.type is ResourceType.TOPIC]:
        yield missing("AlterConfigs", names)
    if any(resource.type is ResourceType.BROKER for resource in denied):
        yield missing("AlterConfigs")


def _command(operation: str, resource: str) -> str:
    return f"allow it with `kafka-acls --add --allow-principal User:NAME --operation {operation} {resource}`"
