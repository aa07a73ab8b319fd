"""From answers of the cluster to sightings: where each move is, and how far its copies are. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kreassign.executor.cluster.log_dirs import (
    Places,
    ReplicaPlace,
    Settledness,
    is_any_under_way,
    settledness,
    unsettled,
)
from kreassign.executor.events import CopySeen, PlannedMove, Sighting, Whereabouts
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
    """What the cluster said in one look.

    `partitions` lacks those that are `gone`, and those about which no broker answered this time. `ongoing` is the
    controller's word, `partitions` a broker's, which may be a moment older. `statuses` are of those that copy. `places`
    are of copies whose directory the plan names; `silent` are brokers that did not tell theirs.
    """

    partitions: Mapping[TopicPartition, Partition]
    gone: frozenset[TopicPartition] = frozenset()
    ongoing: Mapping[TopicPartition, OngoingReassignment] = field(default_factory=dict)
    statuses: Mapping[TopicPartition, tuple[ReplicaStatus, ...]] = field(default_factory=dict)
    places: Places = field(default_factory=dict)
    silent: frozenset[int] = frozenset()


def sightings(moves: Iterable[PlannedMove], answers: Answers) -> tuple[Sighting, ...]:
    """One sighting per move of which the cluster told something."""
    seen = (_sighting(move, answers) for move in moves)
    return tuple(sighting for sighting in seen if sighting is not None)


def news(known: Mapping[TopicPartition, Sighting | None], seen: Iterable[Sighting]) -> tuple[Sighting, ...]:
    """Only the sightings that differ from what is known."""
    return tuple(sighting for sighting in seen if known.get(sighting.topic_partition) != sighting)


def _sighting(move: PlannedMove, answers: Answers) -> Sighting | None:
    name = move.topic_partition
    if name in answers.gone:
        return Sighting(name, Whereabouts.GONE, (), (), NO_LEADER)
    partition = answers.partitions.get(name)
    if partition is None:
        return None
    where = _with_directories(move, _whereabouts(move, partition.replicas, answers.ongoing.get(name)), answers)
    copies = (*_copies(move, answers.statuses.get(name, ())), *_directory_copies(move, answers))
    away = unsettled(name, move.log_dirs, answers.places, answers.silent)
    # One copy in memory of lists that are the same, of which a long plan has hundreds of thousands.
    replicas = _one_of(partition.replicas, move.target, move.original)
    isr = _one_of(partition.isr, replicas, move.original)
    return Sighting(name, where, replicas, isr, partition.leader, copies, away)


def _one_of(found: tuple[int, ...], *known: tuple[int, ...]) -> tuple[int, ...]:
    return next((one for one in known if one == found), found)


def _with_directories(move: PlannedMove, where: Whereabouts, answers: Answers) -> Whereabouts:
    """A move is over when its copies are in their directories too; it is under way while any is on its way there."""
    name = move.topic_partition
    if where is Whereabouts.ARRIVED:
        return _ARRIVED[settledness(name, move.log_dirs, answers.places, answers.silent)]
    if where in {Whereabouts.UNTOUCHED, Whereabouts.RETURNED}:
        return Whereabouts.MOVING if is_any_under_way(name, move.log_dirs, answers.places) else where
    return where


_ARRIVED = {
    Settledness.SETTLED: Whereabouts.ARRIVED,
    Settledness.MOVING: Whereabouts.MOVING,
    Settledness.PENDING: Whereabouts.UNTOUCHED,
}


def _directory_copies(move: PlannedMove, answers: Answers) -> Iterator[CopySeen]:
    """How far the copies are that brokers make in other directories of their own."""
    for broker in move.rearranging:
        place = answers.places.get(TopicPartitionReplica(broker, *move.topic_partition), ReplicaPlace())
        if place.future is not None:
            yield CopySeen(broker, place.future_bytes, max(0, place.current_bytes - place.future_bytes))


def _whereabouts(move: PlannedMove, shown: tuple[int, ...], ongoing: OngoingReassignment | None) -> Whereabouts:
    if ongoing is not None:
        return Whereabouts.MOVING if ongoing.target == move.target else Whereabouts.ELSEWHERE
    if shown == move.target:
        return Whereabouts.ARRIVED
    if shown == move.original:
        return Whereabouts.UNTOUCHED
    if shown == move.reassignment.replicas:
        return Whereabouts.SETTLING
    return Whereabouts.RETURNED if set(shown) == set(move.original) else Whereabouts.ELSEWHERE


def _copies(move: PlannedMove, statuses: Iterable[ReplicaStatus]) -> tuple[CopySeen, ...]:
    by_broker = {status.broker: status for status in statuses}
    leader = next((status for status in by_broker.values() if status.is_leader), None)
    whole = leader.size_bytes if leader else None
    return tuple(_copy(by_broker[broker], whole) for broker in move.adding if broker in by_broker)


def _copy(status: ReplicaStatus, whole_bytes: int | None) -> CopySeen:
    """What is left is the lag; what is done, the rest of the leader's copy, which grows evenly where files do not."""
    if status.lag_bytes is None or whole_bytes is None:
        return CopySeen(status.broker, status.size_bytes or 0, status.lag_bytes)
    return CopySeen(status.broker, max(0, whole_bytes - status.lag_bytes), status.lag_bytes)
