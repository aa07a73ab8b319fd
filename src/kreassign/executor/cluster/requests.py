"""Query the cluster through the port: what a run, its preparation and its verification need to know.

Queries raise ClusterError.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from kreassign.errors import ClusterError
from kreassign.executor.cluster.observations import (
    Answers,
    Expectations,
    Facts,
    ReplicaLocation,
    ReplicaLocations,
    replica_locations,
)
from kreassign.executor.cluster.port import ClusterPort
from kreassign.executor.cluster.readings import (
    Configs,
    Reading,
    highest_of_two,
    listed_moves,
    live_of_two,
    live_with,
    ongoing_moves,
    partitions_of,
    read_log_dirs,
    read_offsets,
    read_settings,
    read_topics,
    settings_of_two,
    topic_ids_of,
    topics_of_two,
    topics_with,
)
from kreassign.executor.cluster.sizes import read_new_sizes, tiered_topics
from kreassign.executor.events import PlannedMove
from kreassign.executor.instructions import ProducerGuard
from kreassign.executor.throttle_ledger import ConfigKey, ConfigOverride, ConfigValue, differing
from kreassign.model import (
    NO_LEADER,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    OffsetSpec,
    OngoingReassignment,
    Partition,
    ReplicaStatus,
    ResourceType,
    Topic,
    TopicPartition,
    TopicPartitionReplica,
)
from kreassign.model.authorization import error_text
from kreassign.model.cluster import named_brokers
from kreassign.model.plan_facts import is_another
from kreassign.model.replication_factor import FactorChanges, factor_changes, locks_out, lost_in_sync, required_in_sync
from kreassign.model.throttle import BROKER_THROTTLES, TOPIC_THROTTLES

Value = TypeVar("Value")

PROGRESS_TIMEOUT_MS = 5_000
"""Short, so that a broker that hangs does not hide the progress of the others for long."""

MIN_ISR = "min.insync.replicas"
OWN_SOURCES = frozenset({ConfigSource.DYNAMIC_TOPIC, ConfigSource.DYNAMIC_BROKER})


def min_isr_of(port: ClusterPort, topics: Iterable[str]) -> Reading[str, int]:
    """min.insync.replicas of these topics, by two brokers. Raises ClusterError."""
    return highest_of_two(port, topics, MIN_ISR)


def read_factors(
    port: ClusterPort, targets: Mapping[TopicPartition, Sequence[int]], present: Mapping[TopicPartition, Sequence[int]]
) -> FactorChanges:
    """Replication factors that these targets change, against min.insync.replicas. Raises ClusterError."""
    changes = FactorChanges(factor_changes(targets, present))
    minima = min_isr_of(port, changes.topics)
    reasons = {topic: error_text(error) for topic, error in minima.unknown.items()}
    return FactorChanges(changes.changes, minima.known, reasons)


def other_topics(port: ClusterPort, topic_ids: Mapping[str, str]) -> Reading[str, bool]:
    """Names, each with True if it now belongs to a topic with another id, by two brokers. Raises ClusterError.

    A broker that lags shows the former id, which would permit what is to be left alone. Lists may change meanwhile.
    """
    known, absent, unknown = topics_with(port, topic_ids, partitions=())
    return Reading(
        {name: is_another(topic_ids[name], topic.topic_id) for name, topic in known.items()}, absent, unknown
    )


def read_moves(
    port: ClusterPort,
    moves: Sequence[PlannedMove],
    unsent: Collection[TopicPartition] = (),
    producers: ProducerGuard | None = None,
    *,
    sizes: bool = False,
) -> Answers:
    """Read the state of these moves, the progress of those that copy, and `sizes` of others. Raises ClusterError."""
    names = [move.topic_partition for move in moves]
    # The controller first: what it no longer lists, brokers show as done now or a moment later, never earlier.
    ongoing = listed_moves(port, names) if names else {}
    topics = _topics_of(port, moves, ongoing, unsent)
    found = partitions_of(topics.known)
    # A partition that the controller reassigns exists.
    gone = frozenset(
        name
        for name in names
        if name not in ongoing and name not in found and (name.topic in topics.absent or name.topic in topics.known)
    )
    copying = {name for name, move in ongoing.items() if move.adding}
    # What a copy has at its end is what was copied: the log may have become smaller since the last poll.
    arrived = {move.topic_partition for move in moves if move.adding and _is_there(move, ongoing, found)}
    locations, silent = read_locations(port, moves)
    topic_ids = topic_ids_of(topics.known)
    waiting = [
        move
        for move in moves
        if move.topic_partition in unsent
        and move.topic_partition not in ongoing  # what others move is not about to be sent
        and not is_another(move.topic_id, topic_ids.get(move.topic_partition.topic))
    ]
    sized = [move for move in waiting if sizes and move.topic_partition in found]
    new_sizes = read_new_sizes(port, sized, found)
    withheld = {
        **{name: _why_unsized(error) for name, error in new_sizes.unknown.items()},
        **_losing(waiting, found),
        **_unplaced(waiting, found, silent),
        **({} if producers is None else _withheld(port, waiting, found, producers)),
    }
    return Answers(
        partitions={name: found[name] for name in names if name in found},
        gone=gone,
        unread={
            **{name: _why_unread(name, topics.unknown) for name in names if name not in found and name not in gone},
            **{name: f"is not started: {why}" for name, why in withheld.items()},
        },
        withheld=tuple(withheld),
        ongoing=ongoing,
        statuses=_statuses(port, [move for move in moves if move.topic_partition in copying | arrived], found),
        locations=locations,
        silent=silent,
        topic_ids=topic_ids,
        absent=_absent(port, (move for move in moves if move.topic_partition in copying)),
        new_sizes=new_sizes.known,
    )


def _topics_of(
    port: ClusterPort,
    moves: Sequence[PlannedMove],
    ongoing: Mapping[TopicPartition, OngoingReassignment],
    unsent: Collection[TopicPartition],
) -> Reading[str, Topic]:
    """Topics of these moves; those of a move that is about to be sent are as two brokers show them.

    One that lags shows the very list that the move waits with, though others have changed it.
    """
    names = {move.topic_partition for move in moves}
    waiting = {name.topic for name in names & set(unsent)}
    first = read_topics(port, {name.topic for name in names} - waiting, _is_odd(moves, ongoing, unsent))
    second = topics_with(port, waiting, names - ongoing.keys())
    return Reading({**first.known, **second.known}, first.absent | second.absent, {**first.unknown, **second.unknown})


def _why_unsized(error: ClusterError) -> str:
    return f"its size could not be read, and without it no space can be kept free: {error_text(error)}"


def growing_lists(
    present: Mapping[TopicPartition, Partition], targets: Mapping[TopicPartition, Sequence[int]]
) -> dict[TopicPartition, tuple[Partition, int]]:
    """Partitions that get replicas on further brokers, each with the number of its replicas meanwhile."""
    return {
        name: (partition, len({*partition.replicas, *target}))
        for name, target in targets.items()
        if (partition := present.get(name)) is not None and set(target) - set(partition.replicas)
    }


def _losing(waiting: Iterable[PlannedMove], found: Mapping[TopicPartition, Partition]) -> dict[TopicPartition, str]:
    """Why moves are not started for the sake of replicas in sync, which may be others than at the beginning."""
    return {
        name: loss
        for move in waiting
        if (name := move.topic_partition) in found and (loss := lost_in_sync(found[name], move.target)) is not None
    }


def _unplaced(
    waiting: Iterable[PlannedMove], found: Mapping[TopicPartition, Partition], silent: Collection[int]
) -> dict[TopicPartition, str]:
    """Why moves are not started while brokers that are up do not say where copies are: others may have moved them."""
    why = {}
    for move in waiting:
        if (partition := found.get(move.topic_partition)) is None:
            continue
        there = {target.broker for target in move.log_dirs if target.before is not None}
        if mute := there.intersection(partition.replicas, silent).difference(partition.offline):
            why[move.topic_partition] = f"{named_brokers(sorted(mute))} did not report the log directory of its copy"
    return why


def _withheld(
    port: ClusterPort,
    waiting: Iterable[PlannedMove],
    found: Mapping[TopicPartition, Partition],
    guard: ProducerGuard,
) -> dict[TopicPartition, str]:
    """Why moves are not started for the sake of producers with acks=all. Raises ClusterError."""
    growing = growing_lists(found, {move.topic_partition: move.target for move in waiting})
    known, absent, unknown = min_isr_of(port, (name.topic for name in growing))
    del absent  # The observation itself shows that the topic is gone.
    why = {
        name: f"{MIN_ISR} of its topic could not be read, and without it nobody knows whether producers are "
        f"refused: {error_text(unknown[name.topic])}"
        for name in growing
        if name.topic in unknown
    }
    for name, (partition, most) in growing.items():
        least, in_sync = known.get(name.topic, 1), len(partition.isr)
        is_short = in_sync < required_in_sync(least, len(partition.replicas))
        if locks_out(least, len(partition.replicas), most, in_sync) or (
            is_short and guard.short is not None and name not in guard.short
        ):
            why[name] = (
                f"{in_sync} of its replicas are in sync, and with {MIN_ISR} {least} producers with acks=all "
                f"{'are' if is_short else 'would be'} refused"
            )
    return why


def _is_there(
    move: PlannedMove,
    ongoing: Mapping[TopicPartition, OngoingReassignment],
    found: Mapping[TopicPartition, Partition],
) -> bool:
    partition = found.get(move.topic_partition)
    return move.topic_partition not in ongoing and partition is not None and partition.replicas == move.target


def _is_odd(
    moves: Iterable[PlannedMove],
    ongoing: Mapping[TopicPartition, OngoingReassignment],
    unsent: Collection[TopicPartition],
) -> Callable[[Topic], bool]:
    """Odd is another topic, other replicas than a move waits with, and any of a sent move that is not listed.

    Such a move is over, or its request was lost: brokers that lag show either, and two have to agree.
    """
    topic_ids = {move.topic_partition.topic: move.topic_id for move in moves}
    by_topic: dict[str, list[PlannedMove]] = {}
    for move in moves:
        if move.topic_partition not in ongoing:
            by_topic.setdefault(move.topic_partition.topic, []).append(move)

    def is_odd(topic: Topic) -> bool:
        if is_another(topic_ids.get(topic.name), topic.topic_id):
            return True
        shown = {one.topic_partition: one.replicas for one in topic.partitions}
        return any(
            shown.get(move.topic_partition) != move.original
            or (move.topic_partition not in unsent and move.target != move.original)
            for move in by_topic.get(topic.name, ())
        )

    return is_odd


def read_locations(port: ClusterPort, moves: Iterable[PlannedMove]) -> tuple[ReplicaLocations, frozenset[int]]:
    """Locations of copies whose directories these moves name, and brokers that did not answer. Raises ClusterError."""
    named = [move for move in moves if move.log_dirs]
    if not named:
        return {}, frozenset()
    brokers = sorted({target.broker for move in named for target in move.log_dirs})
    answer = read_log_dirs(port, brokers, copies_of=sorted(move.topic_partition for move in named))
    return replica_locations(answer.ok), frozenset(answer.failed)


def read_copies(
    port: ClusterPort, replicas: Iterable[TopicPartitionReplica]
) -> Reading[TopicPartitionReplica, ReplicaLocation]:
    """Locations of these copies; absent are those that their broker does not have. Raises ClusterError."""
    wanted = frozenset(replicas)
    brokers = sorted({replica.broker for replica in wanted})
    partitions = sorted({replica.topic_partition for replica in wanted})
    answer = read_log_dirs(port, brokers, copies_of=partitions)
    found = replica_locations(answer.ok)
    known = {replica: place for replica, place in found.items() if replica in wanted}
    unknown = {replica: answer.failed[replica.broker] for replica in sorted(wanted) if replica.broker in answer.failed}
    return Reading(known, wanted - known.keys() - unknown.keys(), unknown)


def _statuses(
    port: ClusterPort, moves: Iterable[PlannedMove], found: Mapping[TopicPartition, Partition]
) -> Mapping[TopicPartition, tuple[ReplicaStatus, ...]]:
    """Progress of the new copies, and of the leader's for comparison."""
    asked = {
        move.topic_partition: _without_others(found[move.topic_partition], move.adding)
        for move in moves
        if move.topic_partition in found
    }
    return port.replica_status(asked, known=asked, timeout_ms=PROGRESS_TIMEOUT_MS).ok if asked else {}


def _without_others(partition: Partition, adding: tuple[int, ...]) -> Partition:
    concerned = {partition.leader, *adding}
    return replace(partition, replicas=tuple(broker for broker in partition.replicas if broker in concerned))


@dataclass(frozen=True, slots=True)
class ReadValues:
    """Own values of settings, the error for each topic or broker that `failed`, and topics that were deleted.

    A deleted topic has no settings, so its values are None.
    """

    values: tuple[ConfigValue, ...] = ()
    failed: Mapping[ConfigResource, ClusterError] = field(default_factory=dict)
    gone: tuple[ConfigResource, ...] = ()

    @property
    def unread(self) -> Mapping[ConfigResource, str]:
        """The reason for each topic or broker that failed, as the end of a sentence."""
        return {resource: f"could not be read: {error_text(error)}" for resource, error in self.failed.items()}


def read_configs(
    port: ClusterPort,
    keys: Iterable[ConfigKey],
    read: Callable[
        [ClusterPort, Iterable[ConfigResource], Sequence[str]], Reading[ConfigResource, Configs]
    ] = read_settings,
) -> ReadValues:
    """Read own values of these settings. Raises ClusterError."""
    names: dict[ConfigResource, list[str]] = {}
    for key in keys:
        names.setdefault(key.resource, []).append(key.name)
    if not names:
        return ReadValues()
    known, absent, unknown = read(port, names, sorted({name for wanted in names.values() for name in wanted}))
    entries: Mapping[ConfigResource, Mapping[str, ConfigEntry]] = {**known, **{topic: {} for topic in absent}}
    values = [
        ConfigValue(ConfigKey(resource, name), _own_value(found.get(name)))
        for resource, found in entries.items()
        for name in names[resource]
    ]
    return ReadValues(tuple(sorted(values, key=lambda value: value.key)), unknown, tuple(sorted(absent)))


def read_throttles(
    port: ClusterPort, topics: Iterable[str], brokers: Iterable[int]
) -> Reading[ConfigResource, tuple[ConfigValue, ...]]:
    """Own values of all throttles of these topics and brokers. Raises ClusterError."""
    resources = (*map(ConfigResource.topic, topics), *map(ConfigResource.broker, brokers))
    known, absent, unknown = settings_of_two(port, resources, (*TOPIC_THROTTLES, *BROKER_THROTTLES))
    values = {
        resource: tuple(ConfigValue(ConfigKey(resource, name), _own_value(entry)) for name, entry in entries.items())
        for resource, entries in known.items()
    }
    return Reading(values, absent, unknown)


@dataclass(frozen=True, slots=True)
class ThrottleReading:
    """Settings that differ from ours, resources that could not be read, and topics that are gone."""

    differ: tuple[ConfigValue, ...] = ()
    unread: tuple[ConfigResource, ...] = ()
    gone: tuple[ConfigResource, ...] = ()


def check_throttle(
    port: ClusterPort, overrides: Iterable[ConfigOverride], topic_ids: Mapping[str, str]
) -> ThrottleReading:
    """Compare these overrides with what is set. Raises ClusterError.

    A topic is gone if it was deleted or has another id than this one: its settings were deleted with it. Answers
    about brokers that are down are ignored: a broker without controllers answers with what it last knew, and one that
    is down is not throttled anyway.
    """
    ours = tuple(overrides)
    read = read_configs(port, (override.key for override in ours), settings_of_two)
    known, absent, unknown = other_topics(port, topic_ids)
    gone = {*read.gone, *map(ConfigResource.topic, (*absent, *(name for name, is_other in known.items() if is_other)))}
    # Whether a topic is another one is asked about settings in doubt: while that is unknown, so are they.
    unsure = set(map(ConfigResource.topic, unknown))
    differ = differing(ours, (present for present in read.values if present.key.resource not in gone | unsure))
    silent = tuple(dict.fromkeys((*read.unread, *sorted(unsure))))
    odd = (*silent, *(present.key.resource for present in differ))
    down = set(map(ConfigResource.broker, brokers_down(port, odd)))
    return ThrottleReading(
        tuple(present for present in differ if present.key.resource not in down),
        tuple(resource for resource in silent if resource not in down),
        tuple(sorted(gone)),
    )


def brokers_down(port: ClusterPort, resources: Iterable[ConfigResource]) -> tuple[int, ...]:
    """Brokers among these resources that are not live, as two brokers show it. Raises ClusterError."""
    brokers = {int(resource.name) for resource in resources if resource.type is ResourceType.BROKER}
    return tuple(sorted(brokers - live_of_two(port))) if brokers else ()


def read_facts(port: ClusterPort, expected: Expectations) -> Facts:
    """Read everything needed to verify these expectations. Raises ClusterError when no broker answers at all.

    Nothing that concerns topics is believed that two brokers do not show.
    """
    ongoing = ongoing_moves(port, expected.replicas) if expected.replicas else {}
    names = {name.topic for name in expected.replicas}
    topics = topics_of_two(port, names)
    found = partitions_of(topics.known)
    keys = (*(one.key for one in expected.configs), *(one.key for one in expected.overrides))
    configs = read_configs(port, keys, settings_of_two)
    log_dirs = read_paths(port, expected.log_dirs)
    sized, untold = _sized(port, expected, found) if expected.checks_sizes else ((), {})
    sizes = read_sizes(port, sized)
    unread = {str(resource): sentence for resource, sentence in configs.unread.items()}
    unread |= {
        str(name): f"could not be described: {error_text(topics.unknown[name.topic])}"
        for name in expected.replicas
        if name.topic in topics.unknown
    }
    unread |= {
        f"topic {name}": f"its sizes were not compared, for whether it is tiered is unknown: {error_text(error)}"
        for name, error in untold.items()
    }
    unread |= _unread_brokers(sizes.unknown, "sizes") | _unread_brokers(log_dirs.unknown, "directories")
    # A copy in a failed directory: its broker answers, and leaves it out.
    unread |= {
        f"{copy.topic_partition} on broker {copy.broker}": "its size is not known: no directory of the broker has it"
        for copy in sizes.absent.difference(expected.log_dirs)
        if copy.broker in found[copy.topic_partition].isr
    }
    return Facts(
        partitions=found,
        ongoing=ongoing,
        log_dirs=log_dirs.known,
        configs={present.key: present.value for present in configs.values},
        sizes=sizes.known,
        unread=tuple(unread.items()),
        topic_ids=topic_ids_of(topics.known),
        unread_log_dirs=frozenset(log_dirs.unknown),
    )


def _unread_brokers(unknown: Mapping[TopicPartitionReplica, ClusterError], what: str) -> dict[str, str]:
    """A sentence per broker that did not report its copies."""
    return {f"broker {one.broker}": f"did not report its {what}: {error_text(error)}" for one, error in unknown.items()}


def _sized(
    port: ClusterPort, expected: Expectations, found: Mapping[TopicPartition, Partition]
) -> tuple[Sequence[Partition], Mapping[str, ClusterError]]:
    """Partitions whose copies should have equal sizes, and topics of which that is unknown.

    Copies of tiered topics begin at different offsets.
    """
    there = [found[name] for name in expected.replicas if name in found]
    # Sizes are compared where a topic is known not to be tiered: an unknown one would be told as too small.
    known, absent, unknown = tiered_topics(port, (one.topic_partition.topic for one in there))
    left_out = {*absent, *unknown, *(topic for topic, is_tiered in known.items() if is_tiered)}
    return [one for one in there if one.topic_partition.topic not in left_out], unknown


def read_sizes(port: ClusterPort, partitions: Sequence[Partition]) -> Reading[TopicPartitionReplica, int]:
    """Bytes on disk of every copy of these partitions. Raises ClusterError."""
    wanted = (TopicPartitionReplica(broker, *one.topic_partition) for one in partitions for broker in one.replicas)
    return _read_placed(port, wanted, lambda place: None if place.current is None else place.current_bytes)


def read_paths(port: ClusterPort, wanted: Iterable[TopicPartitionReplica]) -> Reading[TopicPartitionReplica, str]:
    """Current directory of each of these replicas, not the one it is moving to. Raises ClusterError."""
    return _read_placed(port, wanted, lambda place: place.current)


def _read_placed(
    port: ClusterPort, replicas: Iterable[TopicPartitionReplica], value_of: Callable[[ReplicaLocation], Value | None]
) -> Reading[TopicPartitionReplica, Value]:
    """A value of the location of each of these replicas; absent are those without one."""
    wanted = frozenset(replicas)
    locations = read_copies(port, wanted)
    values = {replica: value_of(place) for replica, place in locations.known.items()}
    known = {replica: value for replica, value in values.items() if value is not None}
    return Reading(known, wanted - known.keys() - locations.unknown.keys(), locations.unknown)


def _absent(port: ClusterPort, copying: Iterable[PlannedMove]) -> tuple[int, ...]:
    """Brokers that are to get these copies, and are down, as two brokers show it."""
    destinations = {broker for move in copying for broker in move.adding}
    return tuple(sorted(destinations - live_with(port, destinations))) if destinations else ()


def _why_unread(name: TopicPartition, unknown: Mapping[str, ClusterError]) -> str:
    error = unknown.get(name.topic)
    if error is None:
        return "is unknown: no broker answered about it"
    return f"is unknown: topic {name.topic} could not be described: {error_text(error)}"


def _own_value(entry: ConfigEntry | None) -> str | None:
    """The broker's own value; None for a default or a cluster-wide value."""
    return entry.value if entry is not None and entry.source in OWN_SOURCES else None


# Moves of tiered topics (KIP-405) that wait for remote storage, where the protocol shows it.
#
# A new replica first reads leader epochs and producer states of older records from remote storage, then fetches the
# leader's local records. If remote storage cannot be read, its broker retries about every second, for ever. Only the
# broker's log and metrics report this; the protocol shows a copy without any record.


def without_records(
    port: ClusterPort,
    partitions: Mapping[TopicPartition, Partition],
    moves: Mapping[TopicPartition, OngoingReassignment],
) -> dict[TopicPartition, tuple[int, ...]]:
    """Brokers whose new copy of a tiered partition has no record yet. Raises ClusterError."""
    moving = {name: partitions[name] for name, move in moves.items() if move.adding and name in partitions}
    tiered = _tiered(port, {name: one for name, one in moving.items() if one.leader != NO_LEADER})
    told = port.replica_status(tiered, known=tiered, timeout_ms=None).ok if tiered else {}
    empty = {
        name: tuple(one.broker for one in statuses if one.broker in moves[name].adding and _is_empty(one))
        for name, statuses in told.items()
    }
    return {name: brokers for name, brokers in empty.items() if brokers}


def _tiered(port: ClusterPort, found: Mapping[TopicPartition, Partition]) -> dict[TopicPartition, Partition]:
    """Partitions whose first records are not in the leader's local log."""
    if not found:
        return {}
    starts, local = (
        read_offsets(port, found, spec, found) for spec in (OffsetSpec.EARLIEST, OffsetSpec.EARLIEST_LOCAL)
    )
    told = (starts.known.keys() & local.known.keys()) - starts.unknown.keys() - local.unknown.keys()
    return {name: found[name] for name in found if name in told and starts.known[name] < local.known[name]}


def _is_empty(status: ReplicaStatus) -> bool:
    return status.lag_records > 0 and 0 <= status.log_end_offset <= status.log_start_offset
