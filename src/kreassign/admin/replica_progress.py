"""How far each copy of a partition is, from what the brokers say of their own copies (KIP-179). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kreassign.errors import ClusterError, Unreachable
from kreassign.model import Batch, LogDir, Partition, ReplicaStatus, TopicPartition
from kreassign.model.replica_status import NO_COPY, Copy, OffsetRange


@dataclass(frozen=True, slots=True)
class BrokerReport:
    """What one broker said of the copies it was asked about; a copy that it does not host is absent."""

    taken_ms: int
    offsets: Mapping[TopicPartition, OffsetRange] = field(default_factory=dict)
    sizes_bytes: Mapping[TopicPartition, int] = field(default_factory=dict)


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
