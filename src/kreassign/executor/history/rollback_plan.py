"""The way back: what undoes a run, from what it really did and where its partitions are now. Pure.

A move that completed is undone by moving back. One that was cancelled left its partition on the original brokers, but
perhaps in another order (KIP-455 restores the set, not the list), which a reassignment without copying puts right. One
that was made in steps is undone from the last step that it reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kreassign.executor.cluster.log_dirs import ReplicaLocations
from kreassign.executor.history.run_history import MoveHistory
from kreassign.model import Partition, Reassignment, TopicPartition, TopicPartitionReplica
from kreassign.model.plan import ANY_LOG_DIR, PartitionAssignment, Plan


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """What to do, from which replica lists, how much has to be copied again, and what is left alone and why."""

    plan: Plan
    expected: Mapping[TopicPartition, tuple[int, ...]]
    copy_count: int
    copied_bytes: int
    skipped: tuple[str, ...]


def rollback_plan(
    moves: Iterable[MoveHistory],
    partitions: Mapping[TopicPartition, Partition],
    replica_locations: ReplicaLocations = MappingProxyType({}),
) -> RollbackPlan:
    """What undoes these moves, given where their partitions are now, and their copies among the log directories.

    A partition that somebody else has changed since is left alone: what a rollback would mean for it is unknown.
    """
    expected: dict[TopicPartition, tuple[int, ...]] = {}
    assignments, skipped, copies, copied_bytes = [], [], 0, 0
    for move in moves:
        name = TopicPartition(move.topic, move.partition)
        problem = _reason_to_leave(move, partitions.get(name))
        if problem:
            skipped.append(f"{name}: {problem}")
            continue
        log_dirs = _dirs_back(move, replica_locations)
        if move.submitted_ms is not None and (log_dirs or partitions[name].replicas != move.original):
            expected[name] = partitions[name].replicas
            paths = tuple(log_dirs.get(broker, ANY_LOG_DIR) for broker in move.original)
            assignments.append(PartitionAssignment(name, move.original, paths))
            count = len(Reassignment(expected[name], move.original).adding) + len(log_dirs)
            copies, copied_bytes = copies + count, copied_bytes + count * move.size_bytes
    return RollbackPlan(Plan(tuple(assignments)), expected, copies, copied_bytes, tuple(skipped))


def _dirs_back(move: MoveHistory, replica_locations: ReplicaLocations) -> dict[int, str]:
    """Where copies were, by broker, that the run moved into another directory or was about to."""
    back = {}
    for target in move.log_dirs:
        place = replica_locations.get(TopicPartitionReplica(target.broker, move.topic, move.partition))
        if target.before is not None and place is not None and place.current == target.path != target.before:
            back[target.broker] = target.before
    return back


def _reason_to_leave(move: MoveHistory, partition: Partition | None) -> str | None:
    if move.submitted_ms is None:
        return None
    if partition is None:
        return "it no longer exists"
    left_by_cancelling = (set(move.original), set(move.reached))
    if partition.replicas == move.target or set(partition.replicas) in left_by_cancelling:
        return None
    return f"its replicas are {list(partition.replicas)}, which neither the run nor its cancelling left; look at it"
