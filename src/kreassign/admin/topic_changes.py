"""The requests of KIP-179: sent as such to a cluster that has them, composed of Kafka's own requests for others.

For the latter the decision is made here, on a view of the cluster that is read first, by the same functions by which a
cluster would decide (`kreassign.model.topic_changes`); only what was found legal is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol, TypeVar

from kreassign.admin.call import rejection
from kreassign.admin.session import Session, To
from kreassign.admin.translate import kip_179 as translate
from kreassign.errors import ClusterError, Unsupported
from kreassign.model import (
    Batch,
    Broker,
    Cluster,
    ConfigEntry,
    ConfigResource,
    LogDir,
    NewPartitions,
    OngoingReassignment,
    Topic,
    TopicPartition,
)
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

_MIN_IN_SYNC = "min.insync.replicas"

Key = TypeVar("Key")
Value = TypeVar("Value")


class CallOptions(NamedTuple):
    """Whether to check only, and how long each request may take (None: the client's default)."""

    validate_only: bool
    timeout_ms: int | None


class KafkaCalls(Protocol):
    """The calls of `AdminClient` from which these requests are composed; it says what each of them does."""

    def describe_cluster(self, *, include_fenced: bool = False, timeout_ms: int | None = None) -> Cluster:
        """The brokers."""
        ...

    def describe_topics(
        self, names: Iterable[str] | None = None, *, timeout_ms: int | None = None
    ) -> Batch[str, Topic]:
        """Partitions of topics."""
        ...

    def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        names: Iterable[str] | None = None,
        timeout_ms: int | None = None,
    ) -> Batch[ConfigResource, Mapping[str, ConfigEntry]]:
        """Configuration of topics."""
        ...

    def describe_log_dirs(
        self,
        brokers: Iterable[int] | None = None,
        *,
        partitions: Iterable[TopicPartition] | None = None,
        timeout_ms: int | None = None,
    ) -> Batch[int, tuple[LogDir, ...]]:
        """Log directories of all brokers."""
        ...

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OngoingReassignment]:
        """What is being reassigned."""
        ...

    def create_partitions(
        self, new_partitions: Mapping[str, NewPartitions], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> Batch[str, None]:
        """Give topics more partitions."""
        ...

    def alter_partition_reassignments(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        warns_of_overrides: bool = True,
        timeout_ms: int | None = None,
    ) -> Batch[TopicPartition, None]:
        """Start reassignments."""
        ...


def alter_partition_counts(
    client: KafkaCalls, session: Session, counts: Mapping[str, int], options: CallOptions
) -> Batch[str, None]:
    """Set the partition counts of topics."""
    if not counts:
        return Batch()
    try:
        call = translate.alter_partition_counts(counts, validate_only=options.validate_only)
        return session.call(call, To.CONTROLLER, options.timeout_ms)
    except Unsupported:
        view = TopicsView({}, _topics(client, counts, options))
    decided = _as_batch(kip_179.ALTER_PARTITION_COUNTS, decide_partition_counts(view, counts.items()))
    valuees = {topic: NewPartitions(count) for topic, count in decided.ok.items()}
    made = client.create_partitions(valuees, validate_only=options.validate_only, timeout_ms=options.timeout_ms)
    return join([made, Batch({}, decided.failed)])


def alter_replication_factors(
    client: KafkaCalls,
    session: Session,
    factors: Mapping[str, int],
    options: CallOptions,
    *,
    may_undercut_min_in_sync: bool,
) -> Batch[str, None]:
    """Set the replication factors of topics. A topic fails with the first refusal of one of its partitions."""
    if not factors:
        return Batch()
    try:
        call = translate.alter_replication_factors(
            factors, validate_only=options.validate_only, may_undercut_min_in_sync=may_undercut_min_in_sync
        )
        return session.call(call, To.CONTROLLER, options.timeout_ms)
    except Unsupported:
        view = whole_view(client, factors, options)
    decisions = decide_replication_factors(view, factors.items(), may_undercut_min_in_sync=may_undercut_min_in_sync)
    decided = _as_batch(kip_179.ALTER_REPLICATION_FACTORS, decisions)
    targets = {key: replicas for targets in decided.ok.values() for key, replicas in targets.items()}
    refused = {} if options.validate_only else _start(client, targets, options).failed
    failed = {key.topic: refused[key] for key in sorted(refused, reverse=True)}  # of each topic its first partition
    return Batch({topic: None for topic in decided.ok if topic not in failed}, {**decided.failed, **failed})


def reassign_partitions(
    client: KafkaCalls, session: Session, targets: Mapping[TopicPartition, tuple[int, ...]], options: CallOptions
) -> Batch[TopicPartition, None]:
    """Start reassignments."""
    if not targets:
        return Batch()
    try:
        call = translate.reassign_partitions(targets, validate_only=options.validate_only)
        return session.call(call, To.CONTROLLER, options.timeout_ms)
    except Unsupported:
        view = _view(client, {key.topic for key in targets}, options, log_dirs={}, min_in_sync={})
    decided = _as_batch(kip_179.REASSIGN_PARTITIONS, decide_reassignments(view, targets.items()))
    if options.validate_only:
        return decided.map(lambda _target: None)
    return join([_start(client, decided.ok, options), Batch({}, decided.failed)])


def _start(
    client: KafkaCalls, targets: Mapping[TopicPartition, tuple[int, ...]], options: CallOptions
) -> Batch[TopicPartition, None]:
    # Nothing overrides: what moves was refused.
    return client.alter_partition_reassignments(dict(targets), warns_of_overrides=False, timeout_ms=options.timeout_ms)


def _as_batch(api: Api, decided: Mapping[Key, Value | Refusal]) -> Batch[Key, Value]:
    ok = {key: value for key, value in decided.items() if not isinstance(value, Refusal)}
    failed: dict[Key, ClusterError] = {
        key: rejection(api, refusal.code, refusal.message, key)
        for key, refusal in decided.items()
        if isinstance(refusal, Refusal)
    }
    return Batch(ok, failed)


def whole_view(client: KafkaCalls, topics: Iterable[str], options: CallOptions) -> TopicsView:
    """The view with sizes of replicas and `min.insync.replicas`. A broker that does not answer counts as empty."""
    resources = {name: ConfigResource.topic(name) for name in topics}
    configs = client.describe_configs(resources.values(), names=(_MIN_IN_SYNC,), timeout_ms=options.timeout_ms).ok
    min_in_sync = {
        name: int(entry.value)
        for name, resource in resources.items()
        if (entry := configs.get(resource, {}).get(_MIN_IN_SYNC)) is not None and entry.value is not None
    }
    log_dirs = client.describe_log_dirs(timeout_ms=options.timeout_ms).ok
    return _view(client, resources, options, log_dirs=log_dirs, min_in_sync=min_in_sync)


def _view(
    client: KafkaCalls,
    topics: Iterable[str],
    options: CallOptions,
    *,
    log_dirs: Mapping[int, tuple[LogDir, ...]],
    min_in_sync: Mapping[str, int],
) -> TopicsView:
    found = _topics(client, topics, options)
    partitions = [entry.topic_partition for topic in found.values() for entry in topic.partitions]
    ongoing = client.list_partition_reassignments(partitions, timeout_ms=options.timeout_ms).keys()
    return topics_view(
        registered(client, options.timeout_ms), log_dirs, found, ongoing=ongoing, min_in_sync=min_in_sync
    )


def registered(client: KafkaCalls, timeout_ms: int | None) -> tuple[Broker, ...]:
    """The brokers, fenced ones too where the cluster lists them (Kafka 4.0)."""
    try:
        return client.describe_cluster(include_fenced=True, timeout_ms=timeout_ms).brokers
    except Unsupported:
        return client.describe_cluster(timeout_ms=timeout_ms).brokers


def _topics(client: KafkaCalls, names: Iterable[str], options: CallOptions) -> Mapping[str, Topic]:
    described = client.describe_topics(names, timeout_ms=options.timeout_ms)
    for error in described.failed.values():
        if not has_code(error, UNKNOWN_TOPIC_OR_PARTITION):
            raise error
    return described.ok
