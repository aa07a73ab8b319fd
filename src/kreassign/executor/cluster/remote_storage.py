"""Moves of tiered topics (KIP-405) that wait for remote storage, as far as the protocol shows it.

A new replica first reads leader epochs and producer states of older records from remote storage, then fetches what its
leader has itself. Where remote storage cannot be read, its broker tries again about every second, for ever. Nothing
tells of it but the broker's log and metrics; what can be seen is a copy without any record.
"""

from __future__ import annotations

from collections.abc import Mapping

from kreassign.executor.cluster.port import ClusterPort
from kreassign.model import NO_LEADER, OffsetSpec, OngoingReassignment, Partition, ReplicaStatus, TopicPartition


def without_records(
    port: ClusterPort,
    partitions: Mapping[TopicPartition, Partition],
    moves: Mapping[TopicPartition, OngoingReassignment],
) -> dict[TopicPartition, tuple[int, ...]]:
    """The brokers whose new copy of a tiered partition has no record yet. Raises ClusterError."""
    moving = {name: partitions[name] for name, move in moves.items() if move.adding and name in partitions}
    tiered = _tiered(port, {name: one for name, one in moving.items() if one.leader != NO_LEADER})
    told = port.replica_status(tiered, known=tiered, timeout_ms=None).ok if tiered else {}
    empty = {
        name: tuple(one.broker for one in statuses if one.broker in moves[name].adding and _is_empty(one))
        for name, statuses in told.items()
    }
    return {name: brokers for name, brokers in empty.items() if brokers}


def _tiered(port: ClusterPort, found: Mapping[TopicPartition, Partition]) -> dict[TopicPartition, Partition]:
    """Those of which the leader does not have the first records itself."""
    if not found:
        return {}
    starts, local = (
        port.list_offsets(found, spec, known=found).ok for spec in (OffsetSpec.EARLIEST, OffsetSpec.EARLIEST_LOCAL)
    )
    return {name: found[name] for name in found if starts.get(name, -1) < local.get(name, -1)}


def _is_empty(status: ReplicaStatus) -> bool:
    return status.lag_records > 0 and 0 <= status.log_end_offset <= status.log_start_offset
