"""How far each copy of a partition is, from what the brokers say of their own copies (KIP-179). Pure.

A moving replica fetches from the leader like any follower, so its own log end offset is exact progress:

    lag_records = leader's log end − replica's log end
    lag_bytes   = lag_records × leader's size / (leader's log end − leader's log start)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kreassign.admin.translate.offsets import OffsetRange
from kreassign.errors import ClusterError, Unreachable
from kreassign.model import Batch, LogDir, Partition, ReplicaStatus, TopicPartition

_NOT_HOSTED = OffsetRange(-1, -1)


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
    leader_range = leader.offsets[topic_partition]
    own = report.offsets.get(topic_partition, _NOT_HOSTED)
    # A copy that does not exist yet will start where the leader's log starts.
    lag_records = max(0, leader_range.end - max(own.end, leader_range.start))
    return ReplicaStatus(
        topic_partition=topic_partition,
        broker=broker,
        is_leader=broker == partition.leader,
        status_time_ms=report.taken_ms,
        log_start_offset=own.start,
        log_end_offset=own.end,
        lag_records=lag_records,
        lag_bytes=_lag_bytes(lag_records, leader_range, leader.sizes_bytes.get(topic_partition)),
        size_bytes=report.sizes_bytes.get(topic_partition, 0 if own is _NOT_HOSTED else None),
    )


def _lag_bytes(lag_records: int, leader_range: OffsetRange, leader_size_bytes: int | None) -> int | None:
    if lag_records == 0:
        return 0
    if leader_size_bytes is None:
        return None
    return round(lag_records * leader_size_bytes / (leader_range.end - leader_range.start))
