"""Rules of the calls that are composed of several: those of KIP-179, and targets for moving partitions. Pure."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TypeVar

from kreassign.admin.call import rejection
from kreassign.errors import ClusterError, Rejected, Unreachable
from kreassign.model import (
    Batch,
    LogDir,
    OngoingReassignment,
    Partition,
    ReplicaStatus,
    Topic,
    TopicPartition,
    error_codes,
)
from kreassign.model.reassignment import Override
from kreassign.model.requests import NO_COPY, Copy, OffsetRange
from kreassign.model.text import some_of
from kreassign.model.topic_changes import Refusal, unknown_partition_message, unknown_topic_message
from kreassign.wire.api import REPLICA_STATUS, Api

# Partition counts, replication factors and reassignments (KIP-179).

Key = TypeVar("Key")
Value = TypeVar("Value")


def as_batch(api: Api, decided: Mapping[Key, Value | Refusal]) -> Batch[Key, Value]:
    """Decisions as the outcome of this call: refusals are errors of their items."""
    ok = {key: value for key, value in decided.items() if not isinstance(value, Refusal)}
    failed: dict[Key, ClusterError] = {
        key: rejection(api, refusal.code, refusal.message, key)
        for key, refusal in decided.items()
        if isinstance(refusal, Refusal)
    }
    return Batch(ok, failed)


def agreed(looks: Sequence[Mapping[str, Topic]]) -> dict[str, Topic]:
    """Topics of which all looks show the same replicas; of these, in sync are those that are so in all looks."""
    names = sorted(set[str]().union(*looks))
    lists = {name: {_lists(look.get(name)) for look in looks} for name in names}
    if odd := [name for name in names if len(lists[name]) > 1]:
        raise ClusterError(f"brokers do not agree about topic {odd[0]}: one of them lags. Try again")
    return {name: reduce(Topic.joined_with, (look[name] for look in looks)) for name in names}


def _lists(topic: Topic | None) -> tuple[object, ...] | None:
    return None if topic is None else (topic.topic_id, *(one.replicas for one in topic.partitions))


# The status of each copy of a partition, from the brokers' reports on their own copies (KIP-179).
#
# Errors have the codes of KIP-179, however the cluster was asked: 17 for an unknown topic, 37 for an unknown
# partition, 25 for a broker that is not registered, 3 for a broker that has no replica of the partition.

Named = Mapping[TopicPartition, Iterable[int]]
"""Brokers by partition that a caller names; for a partition not in it all replicas are reported."""


@dataclass(frozen=True, slots=True)
class BrokerReport:
    """One broker's report on the requested copies; copies that it does not host are absent.

    Copies in `failed` are unknown, such as those in an offline directory.
    """

    taken_ms: int
    offsets: Mapping[TopicPartition, OffsetRange] = field(default_factory=dict)
    sizes_bytes: Mapping[TopicPartition, int] = field(default_factory=dict)
    failed: Mapping[TopicPartition, ClusterError] = field(default_factory=dict)


_NOT_HOSTED = (error_codes.NOT_LEADER_OR_FOLLOWER, error_codes.UNKNOWN_TOPIC_OR_PARTITION)


def broker_report(
    taken_ms: int,
    starts: Batch[TopicPartition, int],
    ends: Batch[TopicPartition, int],
    sizes_bytes: Mapping[TopicPartition, int],
) -> BrokerReport:
    """One broker's report, from the first and last offsets of its copies."""
    offsets = {key: OffsetRange(starts.ok[key], end) for key, end in ends.ok.items() if key in starts.ok}
    errors = {**starts.failed, **ends.failed}
    failed = {key: error for key, error in errors.items() if not error_codes.has_code(error, *_NOT_HOSTED)}
    return BrokerReport(taken_ms, offsets, sizes_bytes, failed)


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

    A broker other than the leader that did not answer, or not about this copy, is left out of its partitions'
    statuses: its copy is unknown. A partition whose leader did not answer fails with that broker's error.
    """
    ok: dict[TopicPartition, tuple[ReplicaStatus, ...]] = {}
    failed: dict[TopicPartition, ClusterError] = {}
    for topic_partition, partition in partitions.items():
        leader = reports.get(partition.leader)
        if leader is None or topic_partition not in leader.offsets:
            refusal = None if leader is None else leader.failed.get(topic_partition)
            failed[topic_partition] = (
                silent.get(partition.leader)
                or refusal
                or Unreachable(f"the leader of {topic_partition} is not known; ask again once one is elected")
            )
        else:
            ok[topic_partition] = tuple(
                _replica_status(partition, broker, reports[broker], leader)
                for broker in partition.replicas
                if broker in reports and topic_partition not in reports[broker].failed
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


# Targets for partitions that are being reassigned: find the risky ones.

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
