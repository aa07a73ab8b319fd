"""The way back: what undoes a run, from what it really did and where its partitions are now. Pure.

A move that completed is undone by moving back. One that was cancelled left its partition on the original brokers, but
perhaps in another order (KIP-455 restores the set, not the list), which a reassignment without copying puts right. One
that was made in steps is undone from the last step that it reached.

What cannot be undone is left alone and named, and the rest is undone: a partition that somebody else has changed since,
one of another topic that was created under the same name, one whose original broker is not up, and one that no run
could move now, say for want of a leader to copy from.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from kreassign.executor.cluster.log_dirs import ReplicaLocations
from kreassign.executor.cluster.observations import OTHER_TOPIC, is_another
from kreassign.executor.history.run_history import MoveHistory
from kreassign.model import Partition, Reassignment, TopicPartition, TopicPartitionReplica
from kreassign.model.plan import ANY_LOG_DIR, PartitionAssignment, Plan


@dataclass(frozen=True, slots=True)
class Present:
    """What the cluster is like now: live brokers (None: all that are named), and ids of topics as far as it tells.

    `hindrances` are sentences of the checks before a run against moving single partitions back.
    """

    live_brokers: Collection[int] | None = None
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    hindrances: Mapping[TopicPartition, str] = field(default_factory=dict)


AS_EXPECTED = Present()


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
    present: Present = AS_EXPECTED,
) -> RollbackPlan:
    """What undoes these moves, given where their partitions are now, and their copies among the log directories.

    A partition that somebody else has changed since is left alone: what a rollback would mean for it is unknown.
    """
    expected: dict[TopicPartition, tuple[int, ...]] = {}
    assignments, skipped, copies, copied_bytes = [], [], 0, 0
    for move in moves:
        name = TopicPartition(move.topic, move.partition)
        if move.submitted_ms is None:
            continue
        problem = _reason_to_leave(move, partitions.get(name), present)
        if problem:
            skipped.append(f"{name}: {problem}")
            continue
        log_dirs = _dirs_back(move, replica_locations)
        if log_dirs or partitions[name].replicas != move.original:
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


def _reason_to_leave(move: MoveHistory, partition: Partition | None, present: Present) -> str | None:
    if partition is None:
        return "it no longer exists"
    if is_another(move.topic_id, present.topic_ids.get(move.topic)):
        return f"{OTHER_TOPIC}; that one is left as it is"
    left_by_cancelling = (set(move.original), set(move.reached))
    if partition.replicas == move.target or set(partition.replicas) in left_by_cancelling:
        down = [] if present.live_brokers is None else sorted(set(move.original).difference(present.live_brokers))
        if down and partition.replicas != move.original:
            return f"its original brokers {down} are not up; start them and roll back again, or plan without them"
        return present.hindrances.get(TopicPartition(move.topic, move.partition))
    return f"its replicas are {list(partition.replicas)}, which neither the run nor its cancelling left; look at it"
