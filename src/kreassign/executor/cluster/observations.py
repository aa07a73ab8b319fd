"""From answers of the cluster to observations: where each move is, and how far its copies are. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kreassign.executor.cluster.log_dirs import (
    PlacementProgress,
    ReplicaLocation,
    ReplicaLocations,
    is_any_under_way,
    placement_progress,
    unsettled,
)
from kreassign.executor.events import CopyProgress, PartitionObservation, PlacementState, PlannedMove
from kreassign.model import (
    NO_LEADER,
    OngoingReassignment,
    Partition,
    ReplicaStatus,
    TopicPartition,
    TopicPartitionReplica,
)


@dataclass(frozen=True, slots=True)
class Answers:
    """What the cluster answered to one round of requests.

    `partitions` lacks deleted ones (`gone`) and those about which no broker answered this time (`unread`, with the
    reason). `ongoing` is the controller's view, `partitions` a broker's, which was asked for later. `statuses` covers
    partitions that copy, `locations` replicas whose log directory the plan names; `silent` brokers did not report
    theirs. `topic_ids` is by name, as far as the cluster told; `absent` are brokers that get copies and are not live.
    """

    partitions: Mapping[TopicPartition, Partition]
    gone: frozenset[TopicPartition] = frozenset()
    unread: Mapping[TopicPartition, str] = field(default_factory=dict)
    ongoing: Mapping[TopicPartition, OngoingReassignment] = field(default_factory=dict)
    statuses: Mapping[TopicPartition, tuple[ReplicaStatus, ...]] = field(default_factory=dict)
    locations: ReplicaLocations = field(default_factory=dict)
    silent: frozenset[int] = frozenset()
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    absent: tuple[int, ...] = ()


def observe(moves: Iterable[PlannedMove], answers: Answers) -> tuple[PartitionObservation, ...]:
    """One observation per move that the cluster answered about."""
    seen = (_observe(move, answers) for move in moves)
    return tuple(observation for observation in seen if observation is not None)


OTHER_TOPIC = "its topic was deleted, and another one created under its name"
"""What is said of a partition whose topic `is_another`."""


def is_another(topic_id: str | None, found: str | None) -> bool:
    """Whether these are the ids of two topics; where one is not known nobody can tell."""
    return topic_id is not None and found is not None and topic_id != found


def news(
    known: Mapping[TopicPartition, PartitionObservation | None], seen: Iterable[PartitionObservation]
) -> tuple[PartitionObservation, ...]:
    """Only the observations that differ from what is known."""
    return tuple(observation for observation in seen if known.get(observation.topic_partition) != observation)


def _observe(move: PlannedMove, answers: Answers) -> PartitionObservation | None:
    name = move.topic_partition
    if is_another(move.topic_id, answers.topic_ids.get(name.topic)):
        return PartitionObservation(name, PlacementState.RECREATED, (), (), NO_LEADER)
    if name in answers.gone:
        return PartitionObservation(name, PlacementState.DELETED, (), (), NO_LEADER)
    partition = answers.partitions.get(name)
    if partition is None:
        return None
    where = _with_directories(move, _placement(move, partition, answers.ongoing.get(name)), answers)
    copies = (*_copies(move, answers.statuses.get(name, ())), *_directory_copies(move, answers))
    away = unsettled(name, move.log_dirs, answers.locations, answers.silent)
    # One copy in memory of lists that are the same, of which a long plan has hundreds of thousands.
    replicas = _one_of(partition.replicas, move.target, move.original)
    isr = _one_of(partition.isr, replicas, move.original)
    offline = tuple(sorted(set(partition.offline).intersection(move.receiving)))
    return PartitionObservation(name, where, replicas, isr, partition.leader, copies, away, offline)


def _one_of(found: tuple[int, ...], *known: tuple[int, ...]) -> tuple[int, ...]:
    return next((one for one in known if one == found), found)


def _with_directories(move: PlannedMove, where: PlacementState, answers: Answers) -> PlacementState:
    """A move is over when its copies are in their directories too; it is under way while any is on its way there."""
    name = move.topic_partition
    if where is PlacementState.ARRIVED:
        return _ARRIVED[placement_progress(name, move.log_dirs, answers.locations, answers.silent)]
    if where in {PlacementState.UNTOUCHED, PlacementState.REORDERED}:
        return PlacementState.MOVING if is_any_under_way(name, move.log_dirs, answers.locations) else where
    return where


_ARRIVED = {
    PlacementProgress.SETTLED: PlacementState.ARRIVED,
    PlacementProgress.MOVING: PlacementState.MOVING,
    PlacementProgress.PENDING: PlacementState.UNTOUCHED,
}


def _directory_copies(move: PlannedMove, answers: Answers) -> Iterator[CopyProgress]:
    """How far the copies are that brokers make in other directories of their own."""
    for broker in move.rearranging:
        place = answers.locations.get(TopicPartitionReplica(broker, *move.topic_partition), ReplicaLocation())
        if place.future is not None:
            yield CopyProgress(broker, place.future_bytes, max(0, place.current_bytes - place.future_bytes))


def _placement(move: PlannedMove, partition: Partition, ongoing: OngoingReassignment | None) -> PlacementState:
    shown = partition.replicas
    if ongoing is not None:
        return PlacementState.MOVING if ongoing.target == move.target else PlacementState.DIVERGED
    if shown == move.target:
        return PlacementState.ARRIVED if _is_certain(move, partition) else PlacementState.UNCONFIRMED
    if shown == move.original:
        return PlacementState.UNTOUCHED
    if shown == move.reassignment.replicas:
        return PlacementState.SETTLING
    return PlacementState.REORDERED if set(shown) == set(move.original) else PlacementState.DIVERGED


def _is_certain(move: PlannedMove, partition: Partition) -> bool:
    """Whether a partition that shows the target list cannot be under way, though the list of a controller may be stale.

    While replicas are removed brokers show more than the target, and what adds none is done at once. So only a pure
    addition looks the same during the move and after it, except that its new replicas are in sync then.
    """
    is_pure_addition = move.adding and move.reassignment.replicas == move.target
    return not is_pure_addition or set(move.target) <= set(partition.isr)


def _copies(move: PlannedMove, statuses: Iterable[ReplicaStatus]) -> tuple[CopyProgress, ...]:
    by_broker = {status.broker: status for status in statuses}
    leader = next((status for status in by_broker.values() if status.is_leader), None)
    found = (by_broker[broker] for broker in move.adding if broker in by_broker)
    return tuple(CopyProgress(status.broker, status.done_bytes(leader), status.lag_bytes) for status in found)
