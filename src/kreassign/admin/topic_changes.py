"""The requests of KIP-179: sent as such to a cluster that has them, put together from those that Kafka has for others.

For the latter the decision is made here, on a view of the cluster that is read first, by the same functions by which a
cluster would decide (`kreassign.model.topic_changes`); only what was found legal is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kreassign.admin.call import rejection
from kreassign.admin.session import Session, To
from kreassign.admin.translate import kip_179 as translate
from kreassign.errors import ClusterError, Unsupported
from kreassign.model import Batch, Broker, ConfigResource, LogDir, NewPartitions, Topic, TopicPartition
from kreassign.model.batch import join
from kreassign.model.error_codes import UNKNOWN_TOPIC_OR_PARTITION, has_code
from kreassign.model.topic_changes import (
    Refusal,
    TopicsView,
    decide_partition_counts,
    decide_reassignments,
    decide_replication_factors,
    topics_view,
)
from kreassign.wire import kip_179
from kreassign.wire.api import Api

if TYPE_CHECKING:
    from kreassign.admin.client import AdminClient

_MIN_IN_SYNC = "min.insync.replicas"

Key = TypeVar("Key")
Wish = TypeVar("Wish")


class How(NamedTuple):
    """Whether to check only, and how long each request may take (None: the client's default)."""

    validate_only: bool
    timeout_ms: int | None


def alter_partition_counts(
    client: AdminClient, session: Session, counts: Mapping[str, int], how: How
) -> Batch[str, None]:
    """Give topics so many partitions."""
    if not counts:
        return Batch()
    try:
        call = translate.alter_partition_counts(counts, validate_only=how.validate_only)
        return session.call(call, To.CONTROLLER, how.timeout_ms)
    except Unsupported:
        view = TopicsView({}, _topics(client, counts, how))
    decided = _sorted_out(kip_179.ALTER_PARTITION_COUNTS, decide_partition_counts(view, counts.items()))
    wishes = {topic: NewPartitions(count) for topic, count in decided.ok.items()}
    made = client.create_partitions(wishes, validate_only=how.validate_only, timeout_ms=how.timeout_ms)
    return join([made, Batch({}, decided.failed)])


def alter_replication_factors(
    client: AdminClient,
    session: Session,
    factors: Mapping[str, int],
    how: How,
    *,
    may_undercut_min_in_sync: bool,
) -> Batch[str, None]:
    """Give topics so many replicas. A topic of which the cluster refuses a partition fails with that refusal."""
    if not factors:
        return Batch()
    try:
        call = translate.alter_replication_factors(
            factors, validate_only=how.validate_only, may_undercut_min_in_sync=may_undercut_min_in_sync
        )
        return session.call(call, To.CONTROLLER, how.timeout_ms)
    except Unsupported:
        view = whole_view(client, factors, how)
    decisions = decide_replication_factors(view, factors.items(), may_undercut_min_in_sync=may_undercut_min_in_sync)
    decided = _sorted_out(kip_179.ALTER_REPLICATION_FACTORS, decisions)
    targets = {key: replicas for targets in decided.ok.values() for key, replicas in targets.items()}
    refused = {} if how.validate_only else _start(client, targets, how).failed
    failed = {key.topic: refused[key] for key in sorted(refused, reverse=True)}  # of each topic its first partition
    return Batch({topic: None for topic in decided.ok if topic not in failed}, {**decided.failed, **failed})


def reassign_partitions(
    client: AdminClient, session: Session, targets: Mapping[TopicPartition, tuple[int, ...]], how: How
) -> Batch[TopicPartition, None]:
    """Start to move partitions."""
    if not targets:
        return Batch()
    try:
        call = translate.reassign_partitions(targets, validate_only=how.validate_only)
        return session.call(call, To.CONTROLLER, how.timeout_ms)
    except Unsupported:
        view = _view(client, {key.topic for key in targets}, how, log_dirs={}, min_in_sync={})
    decided = _sorted_out(kip_179.REASSIGN_PARTITIONS, decide_reassignments(view, targets.items()))
    if how.validate_only:
        return decided.map(lambda _target: None)
    return join([_start(client, decided.ok, how), Batch({}, decided.failed)])


def _start(
    client: AdminClient, targets: Mapping[TopicPartition, tuple[int, ...]], how: How
) -> Batch[TopicPartition, None]:
    return client.alter_partition_reassignments(dict(targets), timeout_ms=how.timeout_ms)


def _sorted_out(api: Api, decided: Mapping[Key, Wish | Refusal]) -> Batch[Key, Wish]:
    ok = {key: wish for key, wish in decided.items() if not isinstance(wish, Refusal)}
    failed: dict[Key, ClusterError] = {
        key: rejection(api, refusal.code, refusal.message, key)
        for key, refusal in decided.items()
        if isinstance(refusal, Refusal)
    }
    return Batch(ok, failed)


def whole_view(client: AdminClient, topics: Iterable[str], how: How) -> TopicsView:
    """With what brokers hold, and what topics must have in sync. A broker that does not tell counts as empty."""
    resources = {name: ConfigResource.topic(name) for name in topics}
    configs = client.describe_configs(resources.values(), names=(_MIN_IN_SYNC,), timeout_ms=how.timeout_ms).ok
    min_in_sync = {
        name: int(entry.value)
        for name, resource in resources.items()
        if (entry := configs.get(resource, {}).get(_MIN_IN_SYNC)) is not None and entry.value is not None
    }
    log_dirs = client.describe_log_dirs(timeout_ms=how.timeout_ms).ok
    return _view(client, resources, how, log_dirs=log_dirs, min_in_sync=min_in_sync)


def _view(
    client: AdminClient,
    topics: Iterable[str],
    how: How,
    *,
    log_dirs: Mapping[int, tuple[LogDir, ...]],
    min_in_sync: Mapping[str, int],
) -> TopicsView:
    found = _topics(client, topics, how)
    partitions = [entry.topic_partition for topic in found.values() for entry in topic.partitions]
    ongoing = client.list_partition_reassignments(partitions, timeout_ms=how.timeout_ms).keys()
    return topics_view(_registered(client, how), log_dirs, found, ongoing=ongoing, min_in_sync=min_in_sync)


def _registered(client: AdminClient, how: How) -> tuple[Broker, ...]:
    """The brokers, those that are down too where the cluster tells of them (Kafka 4.0)."""
    try:
        return client.describe_cluster(include_fenced=True, timeout_ms=how.timeout_ms).brokers
    except Unsupported:
        return client.describe_cluster(timeout_ms=how.timeout_ms).brokers


def _topics(client: AdminClient, names: Iterable[str], how: How) -> Mapping[str, Topic]:
    described = client.describe_topics(names, timeout_ms=how.timeout_ms)
    for error in described.failed.values():
        if not has_code(error, UNKNOWN_TOPIC_OR_PARTITION):
            raise error
    return described.ok
