"""Query and change the cluster through the port: typed queries, configs, and log directories.

Queries raise ClusterError. Changes raise nothing: they return the outcome of each change; `is_final`, `is_for_now` and
`may_be_done` classify the error of a change that was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from kreassign.errors import ClusterError, OutcomeUnknown, Rejected, Unreachable
from kreassign.executor.cluster.observations import (
    Answers,
    Expectations,
    Facts,
    ReplicaLocations,
    is_another,
    replica_locations,
)
from kreassign.executor.cluster.port import ClusterPort, ConfigPort
from kreassign.executor.events import PlannedMove, Refusal, Unwritten
from kreassign.executor.throttle_ledger import ConfigKey, ConfigOverride, ConfigValue, differing
from kreassign.model import (
    NO_LEADER,
    Batch,
    ConfigChange,
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
from kreassign.model.error_codes import (
    BROKER_ID_NOT_REGISTERED,
    REPLICA_NOT_AVAILABLE,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
    has_code,
)
from kreassign.model.replication_factor import FactorChanges, factor_changes
from kreassign.model.throttle import BROKER_THROTTLES, TOPIC_THROTTLES

Key = TypeVar("Key")
Value = TypeVar("Value")

# Queries of a run, its preparation and its verification.

PROGRESS_TIMEOUT_MS = 5_000
"""Short, so that a broker that hangs does not hide the progress of the others for long."""

MIN_ISR = "min.insync.replicas"
REMOTE_STORAGE = "remote.storage.enable"
OWN_SOURCES = frozenset({ConfigSource.DYNAMIC_TOPIC, ConfigSource.DYNAMIC_BROKER})


def partitions_of(topics: Batch[str, Topic]) -> dict[TopicPartition, Partition]:
    """All partitions of the described topics."""
    return {partition.topic_partition: partition for topic in topics.ok.values() for partition in topic.partitions}


def topic_ids_of(topics: Batch[str, Topic]) -> dict[str, str]:
    """Ids of the described topics by name; without topics that have none (before Kafka 2.8)."""
    return {name: topic.topic_id for name, topic in topics.ok.items() if topic.topic_id is not None}


def ask_twice(ask: Callable[[Sequence[Key]], Batch[Key, Value]], keys: Iterable[Key]) -> Batch[Key, Value]:
    """Query these keys, and once more those without an answer. Raises ClusterError.

    An answer may be lost or come from a broker that is behind, so one is not enough. Keys that fail twice are unknown.
    """
    wanted = list(keys)
    if not wanted:
        return Batch({}, {})
    answer = ask(wanted)
    if not answer.failed:
        return answer
    again = ask(list(answer.failed))
    return Batch({**answer.ok, **again.ok}, again.failed)


def min_isr_of(port: ClusterPort, topics: Iterable[str]) -> Batch[str, int]:
    """min.insync.replicas of these topics, without deleted ones; failed ones are unknown. Raises ClusterError."""
    resources = map(ConfigResource.topic, sorted(set(topics)))
    found = ask_twice(lambda asked: port.describe_configs(asked, names=(MIN_ISR,)), resources)
    values = {resource.name: entries.get(MIN_ISR) for resource, entries in found.ok.items()}
    return Batch(
        {topic: int(entry.value) if entry is not None and entry.value else 1 for topic, entry in values.items()},
        {resource.name: error for resource, error in found.failed.items() if not is_unknown_topic(error)},
    )


def read_factors(
    port: ClusterPort, targets: Mapping[TopicPartition, Sequence[int]], present: Mapping[TopicPartition, Sequence[int]]
) -> FactorChanges:
    """Replication factors that these targets change, against min.insync.replicas. Raises ClusterError."""
    changes = FactorChanges(factor_changes(targets, present))
    minima = min_isr_of(port, changes.topics)
    reasons = {topic: error_text(error) for topic, error in minima.failed.items()}
    return FactorChanges(changes.changes, minima.ok, reasons)


def tiered_topics(port: ClusterPort, topics: Iterable[str]) -> frozenset[str]:
    """Topics whose older segments are in remote storage, where known. Raises ClusterError."""
    names = sorted(set(topics))
    if not names:
        return frozenset()
    found = port.describe_configs(map(ConfigResource.topic, names), names=(REMOTE_STORAGE,)).ok
    values = {resource.name: entries.get(REMOTE_STORAGE) for resource, entries in found.items()}
    return frozenset(name for name, entry in values.items() if entry is not None and entry.value == "true")


def other_topics(port: ClusterPort, topic_ids: Mapping[str, str]) -> frozenset[str]:
    """Names that belong to topics with another id now. Raises ClusterError."""
    found = topic_ids_of(port.describe_topics(sorted(topic_ids))) if topic_ids else {}
    return frozenset(name for name, topic_id in topic_ids.items() if is_another(topic_id, found.get(name)))


def is_unknown_topic(error: ClusterError) -> bool:
    """True if the error is UNKNOWN_TOPIC_OR_PARTITION."""
    return has_code(error, UNKNOWN_TOPIC_OR_PARTITION)


def read_moves(port: ClusterPort, moves: Sequence[PlannedMove]) -> Answers:
    """Read the state of these moves, and the progress of those that copy. Raises ClusterError."""
    names = [move.topic_partition for move in moves]
    # The controller first: what it no longer lists, brokers show as done now or a moment later, never earlier.
    ongoing = port.list_partition_reassignments(names) if names else {}
    topics = port.describe_topics(sorted({name.topic for name in names}))
    found = partitions_of(topics)
    # A broker that lags may not know a topic; partitions that the controller reassigns exist.
    gone = frozenset(name for name in names if name not in ongoing and _is_gone(name, topics, found))
    copying = {name for name, move in ongoing.items() if move.adding}
    # What a copy has at its end is what was copied: the log may have become smaller since the last poll.
    arrived = {move.topic_partition for move in moves if move.adding and _is_there(move, ongoing, found)}
    locations, silent = read_locations(port, moves)
    return Answers(
        partitions={name: found[name] for name in names if name in found},
        gone=gone,
        unread={name: _why_unread(name, topics) for name in names if name not in found and name not in gone},
        ongoing=ongoing,
        statuses=_statuses(port, [move for move in moves if move.topic_partition in copying | arrived], found),
        locations=locations,
        silent=silent,
        topic_ids=topic_ids_of(topics),
        absent=_absent(port, (move for move in moves if move.topic_partition in copying)),
    )


def _is_there(
    move: PlannedMove,
    ongoing: Mapping[TopicPartition, OngoingReassignment],
    found: Mapping[TopicPartition, Partition],
) -> bool:
    partition = found.get(move.topic_partition)
    return move.topic_partition not in ongoing and partition is not None and partition.replicas == move.target


def read_locations(port: ClusterPort, moves: Iterable[PlannedMove]) -> tuple[ReplicaLocations, frozenset[int]]:
    """Locations of copies whose directories these moves name, and brokers that did not answer. Raises ClusterError."""
    named = [move for move in moves if move.log_dirs]
    if not named:
        return {}, frozenset()
    brokers = sorted({target.broker for move in named for target in move.log_dirs})
    answer = port.describe_log_dirs(brokers, partitions=sorted(move.topic_partition for move in named))
    return replica_locations(answer.ok), frozenset(answer.failed)


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


def read_configs(
    port: ClusterPort, keys: Iterable[ConfigKey]
) -> tuple[tuple[ConfigValue, ...], tuple[tuple[ConfigResource, str], ...]]:
    """Own values of these settings, and the reason for each topic or broker that did not answer. Raises ClusterError.

    A deleted topic has no settings, so its values are None.
    """
    values, problems, _ = read_configs_and_gone(port, keys)
    return values, problems


def read_configs_and_gone(
    port: ClusterPort, keys: Iterable[ConfigKey]
) -> tuple[tuple[ConfigValue, ...], tuple[tuple[ConfigResource, str], ...], tuple[ConfigResource, ...]]:
    """As `read_configs`, and the topics that were deleted."""
    names: dict[ConfigResource, list[str]] = {}
    for key in keys:
        names.setdefault(key.resource, []).append(key.name)
    if not names:
        return (), (), ()
    answer = port.describe_configs(names, names=sorted({name for wanted in names.values() for name in wanted}))
    gone = {resource for resource, error in answer.failed.items() if is_unknown_topic(error)}
    entries: Mapping[ConfigResource, Mapping[str, ConfigEntry]] = {**answer.ok, **{topic: {} for topic in gone}}
    values = [
        ConfigValue(ConfigKey(resource, name), _own_value(found.get(name)))
        for resource, found in entries.items()
        for name in names[resource]
    ]
    silent = {resource: error for resource, error in answer.failed.items() if resource not in gone}
    problems = tuple((resource, f"could not be read: {error_text(error)}") for resource, error in silent.items())
    return tuple(sorted(values, key=lambda value: value.key)), problems, tuple(sorted(gone))


def read_throttles(
    port: ClusterPort, topics: Iterable[str], brokers: Iterable[int]
) -> Batch[ConfigResource, tuple[ConfigValue, ...]]:
    """Own values of all throttles of these topics and brokers; failed ones are unknown. Raises ClusterError."""
    resources = (*map(ConfigResource.topic, topics), *map(ConfigResource.broker, brokers))
    names = (*TOPIC_THROTTLES, *BROKER_THROTTLES)
    found = ask_twice(lambda asked: port.describe_configs(asked, names=names), resources)
    return Batch(
        {
            resource: tuple(
                ConfigValue(ConfigKey(resource, name), _own_value(entry)) for name, entry in entries.items()
            )
            for resource, entries in found.ok.items()
        },
        found.failed,
    )


def check_throttle(
    port: ClusterPort, overrides: Iterable[ConfigOverride], topic_ids: Mapping[str, str]
) -> tuple[tuple[ConfigValue, ...], tuple[ConfigResource, ...], tuple[ConfigResource, ...]]:
    """Settings that differ from these overrides, resources that could not be read, and topics that are gone.

    A topic is gone if it was deleted or has another id than this one: its settings were deleted with it. Answers
    about brokers that are down are ignored: a broker without controllers answers with what it last knew, and one that
    is down is not throttled anyway. Raises ClusterError.
    """
    known = tuple(overrides)
    values, problems, deleted = read_configs_and_gone(port, (override.key for override in known))
    gone = {*deleted, *map(ConfigResource.topic, other_topics(port, topic_ids))}
    differ = differing(known, (present for present in values if present.key.resource not in gone))
    silent = tuple(resource for resource, _ in problems)
    odd = (*silent, *(present.key.resource for present in differ))
    down = set(map(ConfigResource.broker, brokers_down(port, odd)))
    return (
        tuple(present for present in differ if present.key.resource not in down),
        tuple(resource for resource in silent if resource not in down),
        tuple(sorted(gone)),
    )


def brokers_down(port: ClusterPort, resources: Iterable[ConfigResource]) -> tuple[int, ...]:
    """Brokers among these resources that the cluster does not list as live. Raises ClusterError."""
    brokers = {int(resource.name) for resource in resources if resource.type is ResourceType.BROKER}
    return tuple(sorted(brokers.difference(port.describe_cluster().broker_ids))) if brokers else ()


def read_facts(port: ClusterPort, expected: Expectations) -> Facts:
    """Read everything needed to verify these expectations. Raises ClusterError when no broker answers at all."""
    ongoing = port.list_partition_reassignments(expected.replicas) if expected.replicas else {}
    topics = port.describe_topics(sorted({name.topic for name in expected.replicas}))
    found = partitions_of(topics)
    keys = (*(one.key for one in expected.configs), *(one.key for one in expected.overrides))
    configs, config_problems = read_configs(port, keys)
    unread = [(str(resource), sentence) for resource, sentence in config_problems]
    unread += [
        (str(name), f"could not be described: {error_text(topics.failed[name.topic])}")
        for name in expected.replicas
        if name.topic in topics.failed and not _is_gone(name, topics, found)
    ]
    log_dirs, log_dir_problems = read_log_dirs(port, expected.log_dirs)
    sizes, size_problems = read_sizes(port, _sized(port, expected, found) if expected.checks_sizes else ())
    return Facts(
        partitions=found,
        ongoing=ongoing,
        log_dirs=log_dirs,
        configs={present.key: present.value for present in configs},
        sizes=sizes,
        unread=(*unread, *log_dir_problems, *size_problems),
        topic_ids=topic_ids_of(topics),
    )


def _sized(port: ClusterPort, expected: Expectations, found: Mapping[TopicPartition, Partition]) -> Sequence[Partition]:
    """Partitions whose copies should have equal sizes; copies of tiered topics begin at different offsets."""
    there = [found[name] for name in expected.replicas if name in found]
    tiered = tiered_topics(port, (one.topic_partition.topic for one in there))
    return [one for one in there if one.topic_partition.topic not in tiered]


def read_sizes(
    port: ClusterPort, partitions: Sequence[Partition]
) -> tuple[dict[TopicPartitionReplica, int], tuple[tuple[str, str], ...]]:
    """Bytes on disk of every copy of these partitions, and the brokers that did not answer."""
    brokers = sorted({broker for partition in partitions for broker in partition.replicas})
    if not brokers:
        return {}, ()
    answer = port.describe_log_dirs(brokers, partitions=sorted(one.topic_partition for one in partitions))
    sizes = {
        TopicPartitionReplica(broker, *copy.topic_partition): copy.size_bytes
        for broker, log_dirs in answer.ok.items()
        for log_dir in log_dirs
        for copy in log_dir.replicas
        if not copy.is_future
    }
    problems = [
        (f"broker {broker}", f"did not report its sizes: {error_text(error)}")
        for broker, error in answer.failed.items()
    ]
    return sizes, tuple(problems)


def read_log_dirs(
    port: ClusterPort, wanted: Mapping[TopicPartitionReplica, str]
) -> tuple[dict[TopicPartitionReplica, str], tuple[tuple[str, str], ...]]:
    """Current directory of each of these replicas (not the one it is moving to), and brokers that did not answer."""
    if not wanted:
        return {}, ()
    brokers = sorted({replica.broker for replica in wanted})
    answer = port.describe_log_dirs(brokers, partitions=sorted({replica.topic_partition for replica in wanted}))
    found = replica_locations(answer.ok)
    problems = [
        (f"broker {broker}", f"did not report its directories: {error_text(error)}")
        for broker, error in answer.failed.items()
    ]
    paths = {replica: found[replica].current for replica in wanted if replica in found}
    return {replica: path for replica, path in paths.items() if path is not None}, tuple(problems)


def _is_gone(name: TopicPartition, topics: Batch[str, Topic], found: Mapping[TopicPartition, Partition]) -> bool:
    error = topics.failed.get(name.topic)
    if error is None:
        return name.topic in topics.ok and name not in found
    return is_unknown_topic(error)


def _absent(port: ClusterPort, copying: Iterable[PlannedMove]) -> tuple[int, ...]:
    destinations = {broker for move in copying for broker in move.adding}
    return tuple(sorted(destinations.difference(port.describe_cluster().broker_ids))) if destinations else ()


def _why_unread(name: TopicPartition, topics: Batch[str, Topic]) -> str:
    error = topics.failed.get(name.topic)
    if error is None:
        return f"{name}: no broker answered about it"
    return f"topic {name.topic} could not be described: {error_text(error)}"


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
        port.list_offsets(found, spec, known=found).ok for spec in (OffsetSpec.EARLIEST, OffsetSpec.EARLIEST_LOCAL)
    )
    return {name: found[name] for name in found if starts.get(name, -1) < local.get(name, -1)}


def _is_empty(status: ReplicaStatus) -> bool:
    return status.lag_records > 0 and 0 <= status.log_end_offset <= status.log_start_offset


# Classify the error of a change: not made, not made for now, or unknown. Pure.


def may_be_done(error: ClusterError) -> bool:
    """True if the change may have been made, now or later.

    This holds for a lost answer, and for UNKNOWN_SERVER_ERROR (-1): a controller that fails over in between answers it
    to changes that it has written.
    """
    return not isinstance(error, Rejected) or has_code(error, UNKNOWN_SERVER_ERROR)


def is_for_now(error: ClusterError) -> bool:
    """True if the change was not made and Kafka's own client would retry."""
    return isinstance(error, Rejected) and error.retriable and not may_be_done(error)


def is_final(error: ClusterError) -> bool:
    """True if the change was not made and will not be."""
    return is_refusal(error) and not (may_be_done(error) or is_for_now(error))


def is_refusal(error: ClusterError) -> bool:
    """True if Kafka answered with an error code."""
    return isinstance(error, Rejected)


# Change settings through the port: those of a topic on any broker, those of a broker on that broker.
#
# Broker settings never wait for a broker that is down. The active controller of a KRaft cluster takes its settings
# (Kafka 4.3.1; the broker reads them when it starts), so they go there if controllers were given.

CHANGE_TIMEOUT_MS = 20_000
"""Slightly longer than a cluster takes to notice that a broker died (broker.session.timeout.ms, 9 s)."""

Changes = Mapping[ConfigResource, Sequence[ConfigChange]]


@dataclass(frozen=True, slots=True)
class Changed:
    """Outcome of config changes, where it is not plain success.

    `problems` has a sentence per topic or broker where they failed, or may have failed; `failed` names those that still
    exist; `unwritten` the brokers that are down and whose settings no controller took; `by_controller` those that are
    down and whose controller took them, `unregistered` those of `unwritten` that the cluster does not know any more.
    Problems `may_pass` if none is a final refusal: sending the same again changes nothing twice and may succeed.
    """

    problems: tuple[str, ...] = ()
    unwritten: tuple[Unwritten, ...] = ()
    by_controller: tuple[int, ...] = ()
    failed: tuple[ConfigResource, ...] = ()
    unregistered: tuple[int, ...] = ()
    may_pass: bool = True

    def and_then(self, later: Changed) -> Changed:
        """Combine the outcome with that of later changes."""
        return Changed(
            (*self.problems, *later.problems),
            (*self.unwritten, *later.unwritten),
            tuple(sorted({*self.by_controller, *later.by_controller})),
            tuple(dict.fromkeys((*self.failed, *later.failed))),
            tuple(sorted({*self.unregistered, *later.unregistered})),
            self.may_pass and later.may_pass,
        )


def change_configs(port: ClusterPort, controllers: ConfigPort | None, changes: Changes) -> Changed:
    """Make all these changes that are possible now. Raises nothing."""
    if not changes:
        return Changed()
    brokers = {resource: int(resource.name) for resource in changes if resource.type is ResourceType.BROKER}
    try:
        live = port.describe_cluster().broker_ids if brokers else ()
        reachable = {one: changes[one] for one in changes if one not in brokers or brokers[one] in live}
        outcome = port.incremental_alter_configs(reachable, timeout_ms=CHANGE_TIMEOUT_MS)
        # A broker that died just now is listed as live until its session ends.
        live = port.describe_cluster().broker_ids if _silent(outcome, brokers) else live
    except ClusterError as error:
        problem = f"throttle settings could not be changed: {error_text(error)}"
        return Changed((problem,), failed=tuple(changes), may_pass=not is_final(error))
    down = {one: broker for one, broker in brokers.items() if broker not in live}
    carried = _carry_to(controllers, {one: changes[one] for one in down})
    return Changed(
        tuple(f"{one}: {error_text(error)}" for one, error in outcome.failed.items() if one not in down),
        tuple(Unwritten(down[one], error_text(error)) for one, error in sorted(carried.failed.items())),
        tuple(sorted(down[one] for one in carried.ok)),
        tuple(one for one, error in outcome.failed.items() if one not in down and not is_unknown_topic(error)),
        _unregistered(port, {down[one]: error for one, error in carried.failed.items()}),
        not any(is_final(error) for one, error in outcome.failed.items() if one not in down),
    )


def _silent(outcome: Batch[ConfigResource, None], brokers: Iterable[ConfigResource]) -> bool:
    """True if a broker gave no answer."""
    unanswered = (Unreachable, OutcomeUnknown)
    return any(isinstance(outcome.failed.get(resource), unanswered) for resource in brokers)


def _carry_to(controllers: ConfigPort | None, changes: Changes) -> Batch[ConfigResource, None]:
    if controllers is None:
        nobody = Unreachable("it is down, and no controller is known (--bootstrap-controller)")
        return Batch({}, dict.fromkeys(changes, nobody))
    if not changes:
        return Batch()
    try:
        return controllers.incremental_alter_configs(changes, timeout_ms=CHANGE_TIMEOUT_MS)
    except ClusterError as error:
        return Batch({}, dict.fromkeys(changes, error))


def _unregistered(port: ClusterPort, failed: Mapping[int, ClusterError]) -> tuple[int, ...]:
    """Brokers that are down and unknown to the controller, or not listed as registered."""
    found = {broker for broker, error in failed.items() if has_code(error, BROKER_ID_NOT_REGISTERED)}
    if unsure := failed.keys() - found:
        with suppress(ClusterError):  # Unsupported before Kafka 4.0.
            found |= unsure - {one.id for one in port.describe_cluster(include_fenced=True).brokers}
    return tuple(sorted(found))


# Change log directories: requests to brokers, and cancelling moves between directories.


@dataclass(frozen=True, slots=True)
class LogDirAnswer:
    """Partitions for which a broker refused a directory, or gave no answer."""

    refused: tuple[Refusal, ...] = ()
    unknown: tuple[TopicPartition, ...] = ()

    @property
    def failed(self) -> frozenset[TopicPartition]:
        """All partitions that were refused or got no answer."""
        return frozenset((*self.unknown, *(refusal.topic_partition for refusal in self.refused)))


def request_log_dirs(port: ClusterPort, targets: Mapping[TopicPartitionReplica, str]) -> LogDirAnswer:
    """Ask brokers to place copies in these directories, including copies that do not exist yet."""
    if not targets:
        return LogDirAnswer()
    failed = {
        replica: error
        for replica, error in port.alter_replica_log_dirs(targets).failed.items()
        if not _is_remembered(error)
    }
    refused = {
        replica.topic_partition: f"{targets[replica]} on broker {replica.broker}: {error_text(error)}"
        for replica, error in failed.items()
        if isinstance(error, Rejected)
    }
    unknown = {replica.topic_partition for replica in failed} - refused.keys()
    return LogDirAnswer(tuple(Refusal(name, text) for name, text in sorted(refused.items())), tuple(sorted(unknown)))


def cancel_log_dir_moves(port: ClusterPort, moves: Iterable[PlannedMove]) -> None:
    """Cancel moves between directories in progress: requesting the present directory does that (KIP-113).

    The next poll shows failures of single brokers. Raises ClusterError when no broker answers.
    """
    moves = tuple(moves)
    named = {replica for move in moves for replica in move.log_dir_paths}
    found, _ = read_locations(port, moves)
    present = {
        replica: place.current
        for replica, place in found.items()
        if replica in named and place.future is not None and place.current is not None
    }
    if present:
        port.alter_replica_log_dirs(present)


def _is_remembered(error: ClusterError) -> bool:
    """True if the broker has no such copy yet; it keeps the directory for when it gets one."""
    return has_code(error, REPLICA_NOT_AVAILABLE)
