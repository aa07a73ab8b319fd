"""Turn answers of the cluster into observations of moves and copies, and compare the cluster with the plan. Pure.

`observe` returns one observation per move: the state of its partition, and the progress of its copies. `verify`
compares the cluster with the expected replicas, log directories and settings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kreassign.executor.events import CopyProgress, PartitionObservation, PlacementState, PlannedMove
from kreassign.executor.throttle_ledger import ConfigKey, ConfigOverride, ConfigValue
from kreassign.model import (
    NO_LEADER,
    LogDir,
    OngoingReassignment,
    Partition,
    ReplicaStatus,
    TopicPartition,
    TopicPartitionReplica,
)
from kreassign.model.plan_facts import is_another
from kreassign.model.run import LogDirTarget
from kreassign.model.text import format_amount

# Log directories in a run: the target directory of each copy, and where the copy is.
#
# A replica's directory is sent to its broker before the replica exists: the broker remembers it and puts the copy there
# (KIP-113). An existing replica is copied into the directory by its own broker; only the list of log directories shows
# this, with two entries for the copy until it is done.


@dataclass(frozen=True, slots=True)
class ReplicaLocation:
    """Directory of a copy, and the directory it is being copied to, with the bytes in each."""

    current: str | None = None
    future: str | None = None
    current_bytes: int = 0
    future_bytes: int = 0


ReplicaLocations = Mapping[TopicPartitionReplica, ReplicaLocation]


class PlacementProgress(StrEnum):
    """Progress of a partition's copies towards their target directories."""

    SETTLED = "settled"  # all are in their target directory
    MOVING = "moving"  # the rest is being copied there, or unknown
    PENDING = "pending"  # at least one is neither there nor being copied there


def replica_locations(answers: Mapping[int, Iterable[LogDir]]) -> dict[TopicPartitionReplica, ReplicaLocation]:
    """Locations of all copies in live directories of the brokers that answered."""
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
    """Brokers whose copy is not in its target directory, or that did not answer."""
    return tuple(
        target.broker
        for target in targets
        if target.broker in silent or _log_dir_progress(name, target, found) != (target.path, None)
    )


def placement_progress(
    name: TopicPartition, targets: Iterable[LogDirTarget], found: ReplicaLocations, silent: frozenset[int]
) -> PlacementProgress:
    """Progress of the partition's copies towards their target directories."""
    targets = tuple(targets)
    away = unsettled(name, targets, found, silent)
    if not away:
        return PlacementProgress.SETTLED
    paths = {target.broker: target.path for target in targets}
    going = {
        target.broker for target in targets if _log_dir_progress(name, target, found)[1] == paths[target.broker]
    } | silent
    return PlacementProgress.MOVING if set(away) <= going else PlacementProgress.PENDING


def rearranging(
    name: TopicPartition, targets: Iterable[LogDirTarget], found: ReplicaLocations, silent: Collection[int]
) -> tuple[int, ...]:
    """Brokers that copy into their target directory now, and those of the `silent` ones that may.

    A copy whose own directory failed is listed for good, and goes on no more.
    """
    places = ((target, *_log_dir_progress(name, target, found)) for target in targets)
    return tuple(
        target.broker
        for target, current, future in places
        if (current is not None and future == target.path) or (target.is_move and target.broker in silent)
    )


def elsewhere(name: TopicPartition, targets: Iterable[LogDirTarget], found: ReplicaLocations) -> tuple[int, ...]:
    """Brokers whose copy is, or goes, neither where it was before the run nor where the plan puts it."""
    places = ((target, *_log_dir_progress(name, target, found)) for target in targets if target.before is not None)
    return tuple(
        target.broker
        for target, current, future in places
        if current not in {None, target.before, target.path} or future not in {None, target.path}
    )


def _log_dir_progress(
    name: TopicPartition, target: LogDirTarget, found: ReplicaLocations
) -> tuple[str | None, str | None]:
    place = found.get(TopicPartitionReplica(target.broker, *name), ReplicaLocation())
    return place.current, place.future


# State of each move and progress of its copies.


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers of the cluster to one round of queries.

    `partitions` lacks deleted ones (`gone`) and those about which no broker answered this time (`unread`, with the
    reason, as it goes on after the name). Moves of `withheld` ones, among the unread, are not started although their
    partitions were read. `ongoing` is the controller's view, `partitions` that of a broker queried
    later. `statuses` covers partitions that copy, `locations` replicas whose log directory the plan names; `silent`
    brokers did not report theirs. `topic_ids` is by name, where known; `absent` are brokers that get copies and are
    down. `new_sizes` are bytes of one copy of moves that wait, where they have changed.
    """

    partitions: Mapping[TopicPartition, Partition]
    gone: frozenset[TopicPartition] = frozenset()
    unread: Mapping[TopicPartition, str] = field(default_factory=dict)
    withheld: tuple[TopicPartition, ...] = ()
    ongoing: Mapping[TopicPartition, OngoingReassignment] = field(default_factory=dict)
    statuses: Mapping[TopicPartition, tuple[ReplicaStatus, ...]] = field(default_factory=dict)
    locations: ReplicaLocations = field(default_factory=dict)
    silent: frozenset[int] = frozenset()
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    absent: tuple[int, ...] = ()
    new_sizes: Mapping[TopicPartition, int] = field(default_factory=dict)


def observe(moves: Iterable[PlannedMove], answers: Answers) -> tuple[PartitionObservation, ...]:
    """One observation per move that the cluster answered about."""
    seen = (_observe(move, answers) for move in moves)
    return tuple(observation for observation in seen if observation is not None)


TOPIC_DELETED = "its topic was deleted"
OTHER_TOPIC = "its topic was deleted, and another one created under its name"
"""Reason for a partition whose topic `is_another`."""


def news(
    known: Mapping[TopicPartition, PartitionObservation | None], seen: Iterable[PartitionObservation]
) -> tuple[PartitionObservation, ...]:
    """Only the observations that differ from the known ones."""
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
    made = _copies(move, answers.statuses.get(name, ()))
    if name not in answers.ongoing:
        # At its end a copy tells only how much smaller the log became: with skipped remote data it may show all of it.
        made = tuple(copy for copy in made if copy.done_bytes + (copy.left_bytes or 0) < move.size_bytes)
    copies = (*made, *_directory_copies(move, answers))
    away = unsettled(name, move.log_dirs, answers.locations, answers.silent)
    # Share equal lists in memory: a long plan has hundreds of thousands.
    replicas = _one_of(partition.replicas, move.target, move.original)
    isr = _one_of(partition.isr, replicas, move.original)
    offline = tuple(sorted(set(partition.offline).intersection(move.receiving)))
    size = answers.new_sizes.get(name)
    # A broker that is not in the list any more deletes its copy once it is back.
    there = set(partition.replicas).difference(partition.offline)
    copying = rearranging(name, move.log_dirs, answers.locations, answers.silent & there)
    within = tuple(broker for broker in copying if broker in partition.replicas)
    others = elsewhere(name, move.log_dirs, answers.locations)
    return PartitionObservation(
        name, where, replicas, isr, partition.leader, copies, away, offline, size, within, others
    )


def _one_of(found: tuple[int, ...], *known: tuple[int, ...]) -> tuple[int, ...]:
    return next((one for one in known if one == found), found)


def _with_directories(move: PlannedMove, where: PlacementState, answers: Answers) -> PlacementState:
    """Count log directories once the list is there. Until then it alone tells whether the move was taken."""
    if where is not PlacementState.ARRIVED:
        return where
    return _ARRIVED[placement_progress(move.topic_partition, move.log_dirs, answers.locations, answers.silent)]


_ARRIVED = {
    PlacementProgress.SETTLED: PlacementState.ARRIVED,
    PlacementProgress.MOVING: PlacementState.MOVING,
    PlacementProgress.PENDING: PlacementState.UNTOUCHED,
}


def _directory_copies(move: PlannedMove, answers: Answers) -> Iterator[CopyProgress]:
    """Progress of copies between log directories of the same broker."""
    for target in move.log_dirs:
        place = answers.locations.get(TopicPartitionReplica(target.broker, *move.topic_partition), ReplicaLocation())
        if target.is_move and place.future is not None:
            left_bytes = max(0, place.current_bytes - place.future_bytes)
            yield CopyProgress(target.broker, place.future_bytes, left_bytes)
        elif target.is_move and place.current == target.path and place.current_bytes < move.size_bytes:
            yield CopyProgress(target.broker, place.current_bytes, 0)  # by how much the log became smaller


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
    """True if a partition with the target list cannot be moving, although the controller's list may be stale.

    While replicas are removed, brokers show more than the target, and a move that adds none is done at once. So only a
    pure addition looks the same during the move and after it, except that its new replicas are in sync afterwards.
    """
    is_pure_addition = move.adding and move.reassignment.replicas == move.target
    return not is_pure_addition or set(move.target) <= set(partition.isr)


def _copies(move: PlannedMove, statuses: Iterable[ReplicaStatus]) -> tuple[CopyProgress, ...]:
    by_broker = {status.broker: status for status in statuses}
    leader = next((status for status in by_broker.values() if status.is_leader), None)
    found = [by_broker[broker] for broker in move.adding if broker in by_broker]
    return tuple(
        CopyProgress(status.broker, done_bytes, status.lag_bytes)
        for status in found
        if (done_bytes := status.done_bytes(leader)) is not None
    )


# Compare the cluster with the plan.

SMALL = 0.5
"""Share of the leader's size below which a copy is too small: brokers delete and compact segments independently."""

SMALL_BYTES = 1 << 20
"""Copies that lack at most this are never too small."""


class FindingKind(StrEnum):
    """Kind of difference."""

    MISSING = "missing"
    RECREATED = "recreated"
    MOVING = "moving"
    REPLICAS = "replicas"
    ISR = "isr"
    LEADER = "leader"
    LOG_DIR = "log_dir"
    THROTTLE = "throttle"
    SIZE = "size"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """One difference: its subject, its kind, and a sentence with what was seen."""

    subject: str
    kind: FindingKind
    sentence: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.sentence}"


@dataclass(frozen=True, slots=True)
class Expectations:
    """Expected state: replicas per partition in order, directories per replica, and values of settings.

    Nothing may be left of the `overrides` of a run; list entries that others added are theirs. With `checks_sizes`, no
    copy may be much smaller than the leader's. `topic_ids` is by name, where known: a new topic of the same name
    shows nothing about the old topic's partitions.
    """

    replicas: Mapping[TopicPartition, tuple[int, ...]]
    log_dirs: Mapping[TopicPartitionReplica, str] = field(default_factory=dict)
    configs: tuple[ConfigValue, ...] = ()
    overrides: tuple[ConfigOverride, ...] = ()
    checks_sizes: bool = False
    topic_ids: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Facts:
    """Actual state: answers of the cluster. `unread` has a sentence for each thing that could not be read.

    `sizes` are bytes on disk, where read. `unread_log_dirs` are copies whose broker did not answer.
    """

    partitions: Mapping[TopicPartition, Partition]
    ongoing: Mapping[TopicPartition, OngoingReassignment] = field(default_factory=dict)
    log_dirs: Mapping[TopicPartitionReplica, str] = field(default_factory=dict)
    configs: Mapping[ConfigKey, str | None] = field(default_factory=dict)
    sizes: Mapping[TopicPartitionReplica, int] = field(default_factory=dict)
    unread: tuple[tuple[str, str], ...] = ()
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    unread_log_dirs: frozenset[TopicPartitionReplica] = frozenset()


def verify(expected: Expectations, facts: Facts) -> tuple[Difference, ...]:
    """All differences, sorted; empty if the cluster is as expected."""
    found = [Difference(subject, FindingKind.UNKNOWN, sentence) for subject, sentence in facts.unread]
    others = {topic for topic, one in expected.topic_ids.items() if is_another(one, facts.topic_ids.get(topic))}
    for partition, target in expected.replicas.items():
        if partition.topic in others:
            found.append(Difference(str(partition), FindingKind.RECREATED, OTHER_TOPIC))
            continue
        found += _of_partition(partition, target, facts)
        found += _of_sizes(partition, facts)
    log_dirs = {
        replica: path
        for replica, path in expected.log_dirs.items()
        if replica.topic not in others and replica not in facts.unread_log_dirs
    }
    found += _of_log_dirs(log_dirs, facts.log_dirs)
    found += _of_configs(expected.configs, facts.configs)
    found += _of_overrides(expected.overrides, facts.configs)
    return tuple(sorted(found))


def _of_partition(name: TopicPartition, target: tuple[int, ...], facts: Facts) -> Iterator[Difference]:
    partition, ongoing = facts.partitions.get(name), facts.ongoing.get(name)
    if partition is None:
        if str(name) not in dict(facts.unread):
            yield Difference(str(name), FindingKind.MISSING, "there is no such partition")
        return
    if ongoing is not None:
        yield Difference(str(name), FindingKind.MOVING, f"a reassignment is still under way: {ongoing}")
        return
    if partition.replicas != target:
        sentence = f"replicas are {list(partition.replicas)} and not {list(target)}"
        yield Difference(str(name), FindingKind.REPLICAS, sentence)
        return
    lagging = sorted(set(target) - set(partition.isr))
    if lagging:
        yield Difference(str(name), FindingKind.ISR, f"not in sync: {lagging}; the ISR is {list(partition.isr)}")
    if partition.leader != target[0]:
        leader = "nobody" if partition.leader == NO_LEADER else partition.leader
        yield Difference(str(name), FindingKind.LEADER, f"led by {leader} and not by the preferred leader {target[0]}")


def _of_sizes(name: TopicPartition, facts: Facts) -> Iterator[Difference]:
    """Copies in sync that have less than half of the leader's size: nothing explains that in a partition at rest."""
    partition = facts.partitions.get(name)
    leader = None if partition is None else facts.sizes.get(TopicPartitionReplica(partition.leader, *name))
    if partition is None or leader is None or name in facts.ongoing:
        return
    for broker in partition.isr:
        size = facts.sizes.get(TopicPartitionReplica(broker, *name), leader)
        if size < leader * SMALL and leader - size > SMALL_BYTES:
            sentence = (
                f"the copy on broker {broker} has {format_amount(size, 'B')}, that of the leader "
                f"{format_amount(leader, 'B')}; compare their offsets"
            )
            yield Difference(str(name), FindingKind.SIZE, sentence)


def _of_log_dirs(
    wanted: Mapping[TopicPartitionReplica, str], found: Mapping[TopicPartitionReplica, str]
) -> Iterator[Difference]:
    for replica, log_dir in wanted.items():
        present = found.get(replica)
        if present != log_dir:
            where = "in no directory that its broker reports" if present is None else f"in {present}"
            subject = f"{replica.topic_partition} on broker {replica.broker}"
            yield Difference(subject, FindingKind.LOG_DIR, f"{where} and not in {log_dir}")


def _of_configs(wanted: Iterable[ConfigValue], found: Mapping[ConfigKey, str | None]) -> Iterator[Difference]:
    for config in wanted:
        if config.key in found and found[config.key] != config.value:
            yield _misconfigured(config.key, found[config.key], _value_wanted(config.value))


def _of_overrides(overrides: Iterable[ConfigOverride], found: Mapping[ConfigKey, str | None]) -> Iterator[Difference]:
    for override in overrides:
        if override.key in found and not override.is_restored(found[override.key]):
            is_shared = override.is_list and override.before is not None
            entries = f"should not have {','.join(sorted(override.our_items))}, which the run added"
            shall_be = entries if is_shared and override.our_items else _value_wanted(override.before)
            yield _misconfigured(override.key, found[override.key], shall_be)


def _misconfigured(key: ConfigKey, present: str | None, shall_be: str) -> Difference:
    is_now = "is not set" if present is None else f"is {present!r}"
    return Difference(str(key.resource), FindingKind.THROTTLE, f"{key.name} {is_now} and {shall_be}")


def _value_wanted(value: str | None) -> str:
    return "should not be set" if value is None else f"should be {value!r}"
