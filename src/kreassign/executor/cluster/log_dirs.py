"""Log directories in a run: where copies shall be on their brokers, and where they are seen. Pure.

A directory for a replica that is still to be made is named to its broker beforehand: the broker remembers it and puts
the copy there (KIP-113). A replica that is there already is copied into the directory by its own broker; nothing shows
that but the list of log directories, in which the copy stands twice until it is done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from kreassign.executor.events import LogDirTarget
from kreassign.model import LogDir, TopicPartition, TopicPartitionReplica


@dataclass(frozen=True, slots=True)
class ReplicaLocation:
    """Where a copy is, and where it is being copied to, with the bytes in each of the two."""

    current: str | None = None
    future: str | None = None
    current_bytes: int = 0
    future_bytes: int = 0


ReplicaLocations = Mapping[TopicPartitionReplica, ReplicaLocation]


class PlacementProgress(StrEnum):
    """How the copies of a partition stand to their directories."""

    SETTLED = "settled"  # all are where they shall be
    MOVING = "moving"  # the rest is on its way there, or unknown
    PENDING = "pending"  # at least one is neither there nor on its way


def replica_locations(answers: Mapping[int, Iterable[LogDir]]) -> dict[TopicPartitionReplica, ReplicaLocation]:
    """Every copy in a live directory of the brokers that answered."""
    found: dict[TopicPartitionReplica, ReplicaLocation] = {}
    for broker, log_dirs in answers.items():
        for log_dir in log_dirs:
            for copy in log_dir.replicas:
                replica = TopicPartitionReplica(broker, *copy.topic_partition)
                known = found.get(replica, ReplicaLocation())
                found[replica] = (
                    ReplicaLocation(known.current, log_dir.path, known.current_bytes, copy.size_bytes)
                    if copy.is_future
                    else ReplicaLocation(log_dir.path, known.future, copy.size_bytes, known.future_bytes)
                )
    return found


def leader_sizes(
    answers: Mapping[int, Iterable[LogDir]], leaders: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Bytes of the leader's copy of each partition, without those whose leader did not answer."""
    return {
        copy.topic_partition: copy.size_bytes
        for broker, log_dirs in answers.items()
        for log_dir in log_dirs
        for copy in log_dir.replicas
        if not copy.is_future and leaders.get(copy.topic_partition) == broker
    }


def unsettled(
    name: TopicPartition, targets: Iterable[LogDirTarget], found: ReplicaLocations, silent: frozenset[int]
) -> tuple[int, ...]:
    """Brokers whose copy is not where it shall be, or that did not answer."""
    return tuple(
        target.broker
        for target in targets
        if target.broker in silent or _place(name, target, found) != (target.path, None)
    )


def placement_progress(
    name: TopicPartition, targets: Iterable[LogDirTarget], found: ReplicaLocations, silent: frozenset[int]
) -> PlacementProgress:
    """How the copies of a partition stand to their targets."""
    targets = tuple(targets)
    away = unsettled(name, targets, found, silent)
    if not away:
        return PlacementProgress.SETTLED
    paths = {target.broker: target.path for target in targets}
    going = {target.broker for target in targets if _place(name, target, found)[1] == paths[target.broker]} | silent
    return PlacementProgress.MOVING if set(away) <= going else PlacementProgress.PENDING


def is_any_under_way(name: TopicPartition, targets: Iterable[LogDirTarget], found: ReplicaLocations) -> bool:
    """Whether a copy is just being copied into the directory where it shall be."""
    return any(_place(name, target, found)[1] == target.path for target in targets)


def _place(name: TopicPartition, target: LogDirTarget, found: ReplicaLocations) -> tuple[str | None, str | None]:
    place = found.get(TopicPartitionReplica(target.broker, *name), ReplicaLocation())
    return place.current, place.future
