"""Client calls made of several requests: those of KIP-179, and new targets for running reassignments.

The requests of KIP-179 go to a cluster that has them as they are; for others they are composed of Kafka's own requests.
Then the decision is made here, on a view of the cluster that is read first, by the same functions by which
a cluster would decide (`kreassign.model.topic_changes`); only legal changes are sent.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import NamedTuple, Protocol, TypeVar

from kreassign.admin.call import rejection
from kreassign.admin.session import Session, To
from kreassign.admin.translate import partitions as translate
from kreassign.clock import Clock
from kreassign.errors import ClusterError, OutcomeUnknown, Rejected, Unreachable, Unsupported
from kreassign.model import (
    Batch,
    Broker,
    Cluster,
    ConfigEntry,
    ConfigResource,
    LogDir,
    NewPartitions,
    OngoingReassignment,
    Partition,
    ReplicaStatus,
    Topic,
    TopicPartition,
    error_codes,
)
from kreassign.model.reassignment import Override
from kreassign.model.requests import NO_COPY, Copy, OffsetRange, answers_of_two, join
from kreassign.model.text import some_of
from kreassign.model.topic_changes import (
    Refusal,
    TopicsView,
    decide_partition_counts,
    decide_reassignments,
    decide_replication_factors,
    topics_view,
    unknown_partition_message,
    unknown_topic_message,
)
from kreassign.wire import api
from kreassign.wire.api import REPLICA_STATUS, Api

# Partition counts, replication factors and reassignments (KIP-179).

_MIN_IN_SYNC = "min.insync.replicas"

Key = TypeVar("Key")
Value = TypeVar("Value")

log = logging.getLogger(__name__)


class CallOptions(NamedTuple):
    """Check only, and the timeout of each request (None: the client's default)."""

    validate_only: bool
    timeout_ms: int | None


class KafkaCalls(Protocol):
    """The calls of `AdminClient` that calls of several requests are composed of; see there for each of them."""

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OngoingReassignment]:
        """Ongoing reassignments."""

    def describe_cluster(self, *, include_fenced: bool = False, timeout_ms: int | None = None) -> Cluster:
        """The brokers."""

    def describe_topics(
        self, names: Iterable[str] | None = None, *, broker: int | None = None, timeout_ms: int | None = None
    ) -> Batch[str, Topic]:
        """Partitions of topics."""

    def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        names: Iterable[str] | None = None,
        broker: int | None = None,
        timeout_ms: int | None = None,
    ) -> Batch[ConfigResource, Mapping[str, ConfigEntry]]:
        """Configuration of topics."""

    def describe_log_dirs(
        self,
        brokers: Iterable[int] | None = None,
        *,
        partitions: Iterable[TopicPartition] | None = None,
        timeout_ms: int | None = None,
    ) -> Batch[int, tuple[LogDir, ...]]:
        """Log directories of all brokers."""

    def create_partitions(
        self, new_partitions: Mapping[str, NewPartitions], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> Batch[str, None]:
        """Increase the number of partitions."""

    def alter_partition_reassignments(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        warns_of_overrides: bool = True,
        timeout_ms: int | None = None,
    ) -> Batch[TopicPartition, None]:
        """Start, override or cancel reassignments."""


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
    decided = _as_batch(api.ALTER_PARTITION_COUNTS, decide_partition_counts(view, counts.items()))
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
    """Set the replication factors of topics. A topic fails with the first refusal of its partitions."""
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
    decided = _as_batch(api.ALTER_REPLICATION_FACTORS, decisions)
    targets = {key: replicas for targets in decided.ok.values() for key, replicas in targets.items()}
    refused = {} if options.validate_only else _start(client, targets, options).failed
    failed = {key.topic: refused[key] for key in sorted(refused, reverse=True)}  # the first partition of each topic
    return Batch({topic: None for topic in decided.ok if topic not in failed}, {**decided.failed, **failed})


def reassign_partitions(
    client: KafkaCalls, session: Session, targets: Mapping[TopicPartition, tuple[int, ...]], options: CallOptions
) -> Batch[TopicPartition, None]:
    """Start reassignments; moving partitions are refused."""
    if not targets:
        return Batch()
    try:
        call = translate.reassign_partitions(targets, validate_only=options.validate_only)
        return session.call(call, To.CONTROLLER, options.timeout_ms)
    except Unsupported:
        view = _view(client, _topics(client, {key.topic for key in targets}, options), options, {}, {})
    decided = _as_batch(api.REASSIGN_PARTITIONS, decide_reassignments(view, targets.items()))
    if options.validate_only:
        return decided.map(lambda _target: None)
    return join([_start(client, decided.ok, options), Batch({}, decided.failed)])


def _start(
    client: KafkaCalls, targets: Mapping[TopicPartition, tuple[int, ...]], options: CallOptions
) -> Batch[TopicPartition, None]:
    # No target overrides a move: moving partitions were refused.
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
    """Read the view with replica sizes, and ISR and `min.insync.replicas` as two brokers show them."""
    resources = {name: ConfigResource.topic(name) for name in topics}
    brokers = client.describe_cluster(timeout_ms=options.timeout_ms).broker_ids
    found = _agreed(answers_of_two(brokers, lambda broker: _topics(client, resources, options, broker)))

    def minima(broker: int) -> dict[str, int]:
        configs = client.describe_configs(
            resources.values(), names=(_MIN_IN_SYNC,), broker=broker, timeout_ms=options.timeout_ms
        )
        for error in configs.failed.values():
            if not isinstance(error, Rejected):  # this broker says nothing; what it refuses stays unknown
                raise error
        entries = {name: configs.ok.get(resource, {}).get(_MIN_IN_SYNC) for name, resource in resources.items()}
        return {name: int(one.value) for name, one in entries.items() if one is not None and one.value is not None}

    looks = answers_of_two(brokers, minima)
    known = set[str].intersection(*map(set, looks))
    log_dirs = client.describe_log_dirs(timeout_ms=options.timeout_ms)
    if log_dirs.failed:
        again = client.describe_log_dirs(sorted(log_dirs.failed), timeout_ms=options.timeout_ms)
        log_dirs = Batch({**log_dirs.ok, **again.ok}, again.failed)
    for broker, error in log_dirs.failed.items():
        log.warning("broker %d gets no new replica: its log directories could not be read: %s", broker, error)
    return _view(client, found, options, log_dirs.ok, {name: max(look[name] for look in looks) for name in known})


def _agreed(looks: Sequence[Mapping[str, Topic]]) -> dict[str, Topic]:
    """Topics of which all looks show the same replicas; of these, in sync are those that are so in all looks."""
    names = sorted(set[str]().union(*looks))
    lists = {name: {_lists(look.get(name)) for look in looks} for name in names}
    if odd := [name for name in names if len(lists[name]) > 1]:
        raise ClusterError(f"brokers do not agree about topic {odd[0]}: one of them lags. Try again")
    return {name: reduce(Topic.joined_with, (look[name] for look in looks)) for name in names}


def _lists(topic: Topic | None) -> tuple[object, ...] | None:
    return None if topic is None else (topic.topic_id, *(one.replicas for one in topic.partitions))


def _view(
    client: KafkaCalls,
    found: Mapping[str, Topic],
    options: CallOptions,
    log_dirs: Mapping[int, tuple[LogDir, ...]],
    min_in_sync: Mapping[str, int],
) -> TopicsView:
    partitions = [entry.topic_partition for topic in found.values() for entry in topic.partitions]
    ongoing = client.list_partition_reassignments(partitions, timeout_ms=options.timeout_ms).keys()
    return topics_view(
        registered_brokers(client, options.timeout_ms), log_dirs, found, ongoing=ongoing, min_in_sync=min_in_sync
    )


def registered_brokers(client: KafkaCalls, timeout_ms: int | None) -> tuple[Broker, ...]:
    """The brokers, including fenced ones if the cluster lists them (Kafka 4.0)."""
    try:
        return client.describe_cluster(include_fenced=True, timeout_ms=timeout_ms).brokers
    except Unsupported:
        return client.describe_cluster(timeout_ms=timeout_ms).brokers


def _topics(
    client: KafkaCalls, names: Iterable[str], options: CallOptions, broker: int | None = None
) -> Mapping[str, Topic]:
    described = client.describe_topics(names, broker=broker, timeout_ms=options.timeout_ms)
    for error in described.failed.values():
        if not error_codes.has_code(error, error_codes.UNKNOWN_TOPIC_OR_PARTITION):
            raise error
    return described.ok


# The status of each copy of a partition, from the brokers' reports on their own copies (KIP-179). Pure.
#
# Errors have the codes of KIP-179, however the cluster was asked: 17 for an unknown topic, 37 for an unknown
# partition, 25 for a broker that is not registered, 3 for a broker that has no replica of the partition.

Named = Mapping[TopicPartition, Iterable[int]]
"""Brokers by partition that a caller names; for a partition not in it all replicas are reported."""


@dataclass(frozen=True, slots=True)
class BrokerReport:
    """One broker's report on the requested copies; copies that it does not host are absent."""

    taken_ms: int
    offsets: Mapping[TopicPartition, OffsetRange] = field(default_factory=dict)
    sizes_bytes: Mapping[TopicPartition, int] = field(default_factory=dict)


def located_partitions(asked: Iterable[TopicPartition], topics: Batch[str, Topic]) -> Batch[TopicPartition, Partition]:
    """These partitions from metadata; missing ones fail with KIP-179's code."""
    known = {entry.topic_partition: entry for topic in topics.ok.values() for entry in topic.partitions}
    wanted = list(asked)
    return Batch(
        {key: known[key] for key in wanted if key in known},
        {key: _not_there(key, topics.failed.get(key.topic)) for key in wanted if key not in known},
    )


def _not_there(key: TopicPartition, error: ClusterError | None) -> ClusterError:
    if error is None:
        return rejection(REPLICA_STATUS, error_codes.INVALID_PARTITIONS, unknown_partition_message(*key), key)
    if error_codes.has_code(error, error_codes.UNKNOWN_TOPIC_OR_PARTITION):
        return rejection(REPLICA_STATUS, error_codes.INVALID_TOPIC_EXCEPTION, unknown_topic_message(key.topic), key)
    return error


def refused_broker(key: TopicPartition, broker: int, code: int) -> Rejected:
    """The error for a named broker without a status of its copy."""
    reason = "is not registered" if code == error_codes.UNKNOWN_MEMBER_ID else "has no replica of it"
    return rejection(REPLICA_STATUS, code, f"{key}: broker {broker} {reason}", key)


def names_other_brokers(found: Mapping[TopicPartition, Partition], named: Named) -> bool:
    """True if named brokers have no replica: only then it matters which brokers are registered."""
    return any(set(named.get(key, ())) - set(partition.replicas) for key, partition in found.items())


def with_named_replicas(
    found: Mapping[TopicPartition, Partition], named: Named, registered: Iterable[int]
) -> Batch[TopicPartition, Partition]:
    """The partitions with the named replicas, plus the leader for comparison.

    A partition with a named broker that has no replica is refused for the first such broker.
    """
    ids = frozenset(registered)
    ok: dict[TopicPartition, Partition] = {}
    failed: dict[TopicPartition, ClusterError] = {}
    for key, partition in found.items():
        wanted = tuple(dict.fromkeys(named[key])) if key in named else partition.replicas
        stranger = next((broker for broker in wanted if broker not in partition.replicas), None)
        if stranger is not None:
            code = error_codes.UNKNOWN_TOPIC_OR_PARTITION if stranger in ids else error_codes.UNKNOWN_MEMBER_ID
            failed[key] = refused_broker(key, stranger, code)
        else:
            concerned = {partition.leader, *wanted}
            kept = tuple(broker for broker in partition.replicas if broker in concerned)
            ok[key] = replace(partition, replicas=kept)
    return Batch(ok, failed)


def only_named_statuses(
    told: Batch[TopicPartition, tuple[ReplicaStatus, ...]], named: Named
) -> Batch[TopicPartition, tuple[ReplicaStatus, ...]]:
    """Drop leader rows fetched only to compute lag."""
    wanted = {key: frozenset(brokers) for key, brokers in named.items()}
    ok = {
        key: tuple(status for status in found if key not in wanted or status.broker in wanted[key])
        for key, found in told.ok.items()
    }
    return Batch(ok, told.failed)


def replica_sizes_bytes(log_dirs: tuple[LogDir, ...]) -> dict[TopicPartition, int]:
    """Size of each current copy, without copies that a move between directories is building."""
    return {
        replica.topic_partition: replica.size_bytes
        for log_dir in log_dirs
        for replica in log_dir.replicas
        if not replica.is_future
    }


def replica_statuses(
    partitions: Mapping[TopicPartition, Partition],
    reports: Mapping[int, BrokerReport],
    silent: Mapping[int, ClusterError],
) -> Batch[TopicPartition, tuple[ReplicaStatus, ...]]:
    """The status of each replica of each partition whose leader answered.

    A broker other than the leader that did not answer is left out of its partitions' statuses: its copy is
    unknown. A partition whose leader did not answer fails with that broker's error.
    """
    ok: dict[TopicPartition, tuple[ReplicaStatus, ...]] = {}
    failed: dict[TopicPartition, ClusterError] = {}
    for topic_partition, partition in partitions.items():
        leader = reports.get(partition.leader)
        if leader is None or topic_partition not in leader.offsets:
            failed[topic_partition] = silent.get(partition.leader) or Unreachable(
                f"the leader of {topic_partition} is not known; ask again once one is elected"
            )
        else:
            ok[topic_partition] = tuple(
                _replica_status(partition, broker, reports[broker], leader)
                for broker in partition.replicas
                if broker in reports
            )
    return Batch(ok, failed)


def _replica_status(partition: Partition, broker: int, report: BrokerReport, leader: BrokerReport) -> ReplicaStatus:
    topic_partition = partition.topic_partition
    own = _copy(report, topic_partition)
    lag_records, lag_bytes = own.lag_behind(_copy(leader, topic_partition))
    return ReplicaStatus(
        topic_partition=topic_partition,
        broker=broker,
        is_leader=broker == partition.leader,
        status_time_ms=report.taken_ms,
        log_start_offset=own.offsets.start,
        log_end_offset=own.offsets.end,
        lag_records=lag_records,
        lag_bytes=lag_bytes,
        size_bytes=own.size_bytes,
    )


def _copy(report: BrokerReport, topic_partition: TopicPartition) -> Copy:
    offsets = report.offsets.get(topic_partition, NO_COPY)
    return Copy(offsets, report.sizes_bytes.get(topic_partition, 0 if offsets is NO_COPY else None))


# Targets for partitions that are being reassigned: find the risky ones, and replace moves without risk.
#
# Cancelling, waiting until the controller no longer lists the partition, and then submitting has none of the surprises
# of `kreassign.model.reassignment`. The time in between is not guarded: another client's target for the same partition
# is overridden as always.

_SHOWN_OVERRIDES = 3


class OverrideWarning(UserWarning):
    """Targets were submitted for moving partitions, and Kafka will not do exactly what they say."""


def risky_overrides(
    targets: Mapping[TopicPartition, tuple[int, ...] | None], ongoing: Mapping[TopicPartition, OngoingReassignment]
) -> dict[TopicPartition, Override]:
    """Targets that override a move and are risky, with the override."""
    overrides = {
        key: Override(ongoing[key], target)
        for key, target in sorted(targets.items())
        if target is not None and key in ongoing
    }
    return {key: override for key, override in overrides.items() if override.is_risky}


def warn_of_overrides(found: Mapping[TopicPartition, Override]) -> None:
    """Issue a Python warning about these overrides, if any: a few by name, the others counted."""
    if found:
        shown = some_of((f"{key}: {override}" for key, override in found.items()), _SHOWN_OVERRIDES, by=";")
        way_out = "replace_reassignments cancels, waits and submits in one call"
        warnings.warn(f"partitions that are being reassigned get new targets: {shown}. {way_out}",
                      OverrideWarning, stacklevel=3)  # fmt: skip


def cancel_and_wait(
    client: KafkaCalls, clock: Clock, partitions: Collection[TopicPartition], deadline_s: float, poll_s: float
) -> dict[TopicPartition, ClusterError]:
    """Cancel the moves of these partitions and wait until none is listed; return errors of those that did not end."""

    def left_ms() -> int:
        return max(1, round(1000 * (deadline_s - clock.monotonic_s())))

    ongoing = client.list_partition_reassignments(partitions, timeout_ms=left_ms())
    if not ongoing:
        return {}
    outcome = client.alter_partition_reassignments(dict.fromkeys(ongoing), timeout_ms=left_ms())
    # A move that ended by itself in between needs no cancel.
    failed = {
        key: error
        for key, error in outcome.failed.items()
        if not error_codes.has_code(error, error_codes.NO_REASSIGNMENT_IN_PROGRESS)
    }
    waiting = ongoing.keys() - failed.keys()
    while waiting := waiting & client.list_partition_reassignments(waiting, timeout_ms=left_ms()).keys():
        if clock.monotonic_s() + poll_s >= deadline_s:
            late = {key: OutcomeUnknown("it was cancelled, and is still listed; nothing was submitted for it", item=key)
                    for key in waiting}  # fmt: skip
            return {**failed, **late}
        clock.sleep(poll_s)
    return failed
