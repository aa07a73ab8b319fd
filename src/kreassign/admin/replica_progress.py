"""How far each copy of a partition is, from what the brokers say of their own copies (KIP-179). Pure.

What cannot be told is refused by the codes of the document, however the cluster was asked: 17 for an unknown topic, 37
for an unknown partition, 25 for a broker that is not registered, 3 for one that has no replica of the partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from kreassign.admin.call import rejection
from kreassign.errors import ClusterError, Rejected, Unreachable
from kreassign.model import Batch, LogDir, Partition, ReplicaStatus, Topic, TopicPartition
from kreassign.model.error_codes import (
    INVALID_PARTITIONS,
    INVALID_TOPIC_EXCEPTION,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    has_code,
)
from kreassign.model.replica_status import NO_COPY, Copy, OffsetRange
from kreassign.model.topic_changes import texts
from kreassign.wire.kip_179 import REPLICA_STATUS

Named = Mapping[TopicPartition, Iterable[int]]
"""The brokers that a caller names of a partition; a partition that is not in it is asked about at all its replicas."""


@dataclass(frozen=True, slots=True)
class BrokerReport:
    """What one broker said of the copies it was asked about; a copy that it does not host is absent."""

    taken_ms: int
    offsets: Mapping[TopicPartition, OffsetRange] = field(default_factory=dict)
    sizes_bytes: Mapping[TopicPartition, int] = field(default_factory=dict)


def located(asked: Iterable[TopicPartition], topics: Batch[str, Topic]) -> Batch[TopicPartition, Partition]:
    """These partitions as metadata describes them; one that is not there is refused by KIP-179's code."""
    known = {entry.topic_partition: entry for topic in topics.ok.values() for entry in topic.partitions}
    wanted = list(asked)
    return Batch(
        {key: known[key] for key in wanted if key in known},
        {key: _not_there(key, topics.failed.get(key.topic)) for key in wanted if key not in known},
    )


def _not_there(key: TopicPartition, error: ClusterError | None) -> ClusterError:
    if error is None:
        return rejection(REPLICA_STATUS, INVALID_PARTITIONS, texts.unknown_partition(*key), key)
    if has_code(error, UNKNOWN_TOPIC_OR_PARTITION):
        return rejection(REPLICA_STATUS, INVALID_TOPIC_EXCEPTION, texts.unknown_topic(key.topic), key)
    return error


def refused_broker(key: TopicPartition, broker: int, code: int) -> Rejected:
    """Why nothing can be told of the copy on a broker that the caller named."""
    reason = "is not registered" if code == UNKNOWN_MEMBER_ID else "has no replica of it"
    return rejection(REPLICA_STATUS, code, f"{key}: broker {broker} {reason}", key)


def strangers(found: Mapping[TopicPartition, Partition], named: Named) -> bool:
    """Whether brokers are named that have no replica: only then it matters which brokers are registered."""
    return any(set(named.get(key, ())) - set(partition.replicas) for key, partition in found.items())


def of_named(
    found: Mapping[TopicPartition, Partition], named: Named, registered: Iterable[int]
) -> Batch[TopicPartition, Partition]:
    """The partitions with the named replicas and the leader, with which they are compared.

    A partition with a named broker that has no replica is refused for the first such broker.
    """
    ids = frozenset(registered)
    ok: dict[TopicPartition, Partition] = {}
    failed: dict[TopicPartition, ClusterError] = {}
    for key, partition in found.items():
        wanted = tuple(dict.fromkeys(named[key])) if key in named else partition.replicas
        stranger = next((broker for broker in wanted if broker not in partition.replicas), None)
        if stranger is not None:
            code = UNKNOWN_TOPIC_OR_PARTITION if stranger in ids else UNKNOWN_MEMBER_ID
            failed[key] = refused_broker(key, stranger, code)
        else:
            concerned = {partition.leader, *wanted}
            kept = tuple(broker for broker in partition.replicas if broker in concerned)
            ok[key] = replace(partition, replicas=kept)
    return Batch(ok, failed)


def only_named(
    told: Batch[TopicPartition, tuple[ReplicaStatus, ...]], named: Named
) -> Batch[TopicPartition, tuple[ReplicaStatus, ...]]:
    """Without what was read of leaders for the sake of the comparison alone."""
    wanted = {key: frozenset(brokers) for key, brokers in named.items()}
    ok = {
        key: tuple(status for status in found if key not in wanted or status.broker in wanted[key])
        for key, found in told.ok.items()
    }
    return Batch(ok, told.failed)


def sizes_bytes(log_dirs: tuple[LogDir, ...]) -> dict[TopicPartition, int]:
    """Size of each current copy; copies that a move between directories is building are left out."""
    return {
        replica.topic_partition: replica.size_bytes
        for log_dir in log_dirs
        for replica in log_dir.replicas
        if not replica.is_future
    }


def statuses(
    partitions: Mapping[TopicPartition, Partition],
    reports: Mapping[int, BrokerReport],
    silent: Mapping[int, ClusterError],
) -> Batch[TopicPartition, tuple[ReplicaStatus, ...]]:
    """The status of each replica of each partition whose leader answered.

    A broker that is not the leader and did not answer is left out of its partitions' statuses: what it holds is not
    known. A partition whose leader did not answer fails with that broker's error.
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
                _status(partition, broker, reports[broker], leader)
                for broker in partition.replicas
                if broker in reports
            )
    return Batch(ok, failed)


def _status(partition: Partition, broker: int, report: BrokerReport, leader: BrokerReport) -> ReplicaStatus:
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
