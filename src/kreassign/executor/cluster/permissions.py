"""Check the permissions of a run and what its client may see, before anything is changed.

Permissions per API: Kafka's documentation, "Authorization and ACLs", table "Protocols". Nothing here changes the
cluster: configuration is only validated (KIP-339), and a request to alter reassignments that names no partition changes
none, but its permission is checked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

from kreassign.errors import ClusterError, Rejected, Unsupported
from kreassign.executor.cluster.port import ClusterPort
from kreassign.executor.cluster.readings import ask_twice, read_topics
from kreassign.executor.state import RunView
from kreassign.model import ConfigChange, ConfigResource, LogDir, ResourceType, error_codes
from kreassign.model.authorization import error_text, is_of_permission, missing_permission
from kreassign.model.distributions import AskedChange, recognise
from kreassign.model.run import ACTIVE
from kreassign.model.throttle import FOLLOWER_THROTTLED_RATE, FOLLOWER_THROTTLED_REPLICAS

CHECK_TIMEOUT_MS = 20_000


def lacking(port: ClusterPort, topics: Iterable[str], brokers: Iterable[int]) -> tuple[str, ...]:
    """Return a sentence per permission missing for a run that throttles copies of these topics on these live brokers.

    Also per change that this cluster takes from nobody, as some distributions of Kafka: with what to do there. Other
    errors recur when the run makes the change.
    """
    return (*_to_reassign(port), *_to_throttle(port, topics, brokers))


def lacking_to_go_on(port: ClusterPort, run: RunView, brokers: Collection[int]) -> tuple[str, ...]:
    """Missing permissions for the remaining work of an interrupted run: its unfinished moves and its throttle.

    One live broker is queried for all, because broker settings belong to the cluster: a broker that hangs would delay
    the run and tell nothing new. What the cluster refuses for other reasons does not keep a begun run from its end.
    """
    topics = {record.name.topic for record in run.records.values() if record.status in ACTIVE}
    to_restore = {override.key.resource for override in run.pending_restores.values()}
    hidden = tuple(_to_see(port, topics))
    if not (to_restore or (topics and run.control.rates.is_limited)):
        return (*hidden, *filter(is_of_permission, _to_reassign(port) if topics else ()))
    named = topics if run.control.rates.is_limited else set[str]()
    named |= {resource.name for resource in to_restore if resource.type is ResourceType.TOPIC}
    refused = (*(_to_reassign(port) if topics else ()), *_to_throttle(port, sorted(named), sorted(brokers)[:1]))
    return (*hidden, *filter(is_of_permission, refused))


def lacking_for_brokers(
    port: ClusterPort, brokers: Collection[int], *, reassigns: bool, elects: bool = False, topics: Iterable[str] = ()
) -> tuple[str, ...]:
    """Missing permissions to take brokers out of service or back: cordon these live ones, and `reassigns` or elects.

    `topics` are those whose copies will be throttled. Also what this cluster takes from nobody, as `lacking` has it.
    Raises ClusterError if a cluster that `elects` does not tell whether it offers that.
    """
    return (
        *(_to_reassign(port) if reassigns else ()),
        *(_to_elect(port) if elects else ()),
        *_to_throttle(port, topics, sorted(brokers)[:1]),
    )


def lacking_to_read(port: ClusterPort, topics: Collection[str]) -> tuple[str, ...]:
    """Sentences on the missing permission to read the records of these topics, where the cluster reports it.

    READ implies DESCRIBE, so only READ is reported for hidden topics. Raises ClusterError.
    """
    hidden, allowed = _hidden(port, topics), port.allowed_operations().topics
    unreadable = [topic for topic in topics if topic in hidden or "Read" not in allowed.get(topic, {"Read"})]
    return (missing_permission("Read", unreadable, port.principal),) if unreadable else ()


def unseen_topics(port: ClusterPort, listed: Collection[str], log_dirs: Iterable[LogDir]) -> tuple[str, ...]:
    """Topics with replicas in these log directories that this client may not see, in order. Raises ClusterError."""
    return unlisted_topics(port, listed, log_dirs)[0]


def unlisted_topics(
    port: ClusterPort, listed: Collection[str], log_dirs: Iterable[LogDir]
) -> tuple[tuple[str, ...], Mapping[str, ClusterError]]:
    """Topics with replicas in these log directories that a listing leaves out: hidden ones, and unread ones.

    A listing of all topics leaves the hidden ones out silently (`listed` are those it names), so a broker would look
    empty that is not. Topics created or deleted between two readings are recognised by querying them by name. Raises
    ClusterError.
    """
    names = sorted({topic for one in log_dirs for topic in one.topics}.difference(listed))
    unknown = read_topics(port, names).unknown
    unseen = tuple(
        topic
        for topic, error in sorted(unknown.items())
        if error_codes.has_code(error, error_codes.TOPIC_AUTHORIZATION_FAILED)
    )
    return unseen, {topic: error for topic, error in unknown.items() if topic not in unseen}


def _hidden(port: ClusterPort, topics: Collection[str]) -> tuple[str, ...]:
    unknown = read_topics(port, topics).unknown if topics else {}
    return tuple(
        topic
        for topic, error in sorted(unknown.items())
        if error_codes.has_code(error, error_codes.TOPIC_AUTHORIZATION_FAILED)
    )


def _to_see(port: ClusterPort, topics: Collection[str]) -> Iterator[str]:
    try:
        hidden = _hidden(port, topics)
    except ClusterError:
        return
    if hidden:
        yield missing_permission("Describe", hidden, port.principal)


def _to_reassign(port: ClusterPort) -> Iterator[str]:
    try:
        port.check_reassignment_permission(timeout_ms=CHECK_TIMEOUT_MS)
    except ClusterError as error:
        if error_codes.has_code(error, error_codes.CLUSTER_AUTHORIZATION_FAILED):
            yield _instead(port, AskedChange.MOVES, missing_permission("Alter", (), port.principal))
        elif _is_final(error):
            yield _refused(port, AskedChange.MOVES, error)


def _to_elect(port: ClusterPort) -> Iterator[str]:
    offered = ask_twice(port.offered_versions, port.describe_cluster().broker_ids[:1])
    for error in offered.failed.values():
        raise error
    if not any(name == _ELECT_LEADERS for apis in offered.ok.values() for name, _, _ in apis):
        yield _instead(
            port, AskedChange.ELECTIONS, f"the cluster refuses {AskedChange.ELECTIONS.value}: it has no ElectLeaders"
        )


_ELECT_LEADERS = "api 43"
"""ElectLeaders, by its name in `offered_versions`."""


def _to_throttle(port: ClusterPort, topics: Iterable[str], brokers: Iterable[int]) -> Iterator[str]:
    changes = {
        **{ConfigResource.topic(topic): (ConfigChange.set(FOLLOWER_THROTTLED_REPLICAS, ""),) for topic in topics},
        **{ConfigResource.broker(broker): (ConfigChange.set(FOLLOWER_THROTTLED_RATE, "1"),) for broker in brokers},
    }
    if not changes:
        return
    try:
        failed = port.incremental_alter_configs(changes, validate_only=True, timeout_ms=CHECK_TIMEOUT_MS).failed
    except ClusterError as error:
        if _is_final(error):
            yield _refused(port, AskedChange.THROTTLE, error)
        return
    denied = [
        resource
        for resource, error in failed.items()
        if error_codes.has_code(error, error_codes.TOPIC_AUTHORIZATION_FAILED, error_codes.CLUSTER_AUTHORIZATION_FAILED)
    ]
    if names := [resource.name for resource in denied if resource.type is ResourceType.TOPIC]:
        yield missing_permission("AlterConfigs", names, port.principal)
    if any(resource.type is ResourceType.BROKER for resource in denied):
        yield missing_permission("AlterConfigs", (), port.principal)
    if final := [
        failed[resource] for resource in sorted(failed) if resource not in denied and _is_final(failed[resource])
    ]:
        yield _refused(port, AskedChange.THROTTLE, final[0])


_FINAL = (
    error_codes.INVALID_CONFIG,
    error_codes.INVALID_REPLICA_ASSIGNMENT,
    error_codes.POLICY_VIOLATION,
    error_codes.UNSUPPORTED_VERSION,
)


def _is_final(error: ClusterError) -> bool:
    """True if the cluster takes such a change from nobody, whoever asks and whenever."""
    return isinstance(error, Unsupported) or error_codes.has_code(error, *_FINAL)


@contextmanager
def explained(port: ClusterPort) -> Iterator[None]:
    """Raise a refusal that the cluster's distribution explains as a ClusterError that says so."""
    try:
        yield
    except Rejected as error:
        if not error_codes.has_code(error, error_codes.CLUSTER_AUTHORIZATION_FAILED):
            raise
        text = error_text(error)
        if (whole := _instead(port, AskedChange.MOVES, text)) == text:
            raise
        raise ClusterError(whole) from error


def _refused(port: ClusterPort, change: AskedChange, error: ClusterError) -> str:
    return _instead(port, change, f"the cluster refuses {change.value}: {error}")


def _instead(port: ClusterPort, change: AskedChange, sentence: str) -> str:
    """The sentence, with what to do instead on clusters of this distribution, if it is recognised."""
    try:
        cluster, topics = port.describe_cluster(), port.describe_topics(None)
    except ClusterError:
        return sentence
    recognised = recognise(cluster, topics=(*topics.ok, *topics.failed))
    instead = recognised.instead(change)
    return f"{sentence}. This is {recognised.name}: {instead}" if instead else sentence
