"""Change the cluster through the port, and classify the error of a change: settings, and log directories.

Changes raise nothing: they return the outcome of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from kreassign.errors import ClusterError, OutcomeUnknown, Rejected, Unreachable
from kreassign.executor.cluster.port import ClusterPort, ConfigPort
from kreassign.executor.cluster.readings import is_unknown_topic, live_of_two, settings_of_two
from kreassign.executor.cluster.requests import read_copies
from kreassign.executor.events import PlannedMove, Refusal, Unwritten
from kreassign.executor.throttle_ledger import EVERY_REPLICA, items
from kreassign.model import (
    Batch,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ResourceType,
    TopicPartition,
    TopicPartitionReplica,
    error_codes,
)
from kreassign.model.authorization import error_text, is_for_cordon
from kreassign.model.throttle import TOPIC_THROTTLES

# Classify the error of a change: not made, not made for now, or unknown. Pure.


def may_be_done(error: ClusterError) -> bool:
    """True if the change may have been made, now or later.

    This holds for a lost answer, and for UNKNOWN_SERVER_ERROR (-1): a controller that fails over in between answers it
    to changes that it has written.
    """
    return not isinstance(error, Rejected) or error_codes.has_code(error, error_codes.UNKNOWN_SERVER_ERROR)


def is_for_now(error: ClusterError) -> bool:
    """True if the change was not made and Kafka's own client would retry, or a cordon is in its way.

    The controller hears of the end of a cordon only with the next heartbeat of the broker.
    """
    return isinstance(error, Rejected) and (error.retriable or is_for_cordon(error)) and not may_be_done(error)


def is_final(error: ClusterError) -> bool:
    """True if Kafka answered with an error code, and the change was not made and will not be."""
    return isinstance(error, Rejected) and not (may_be_done(error) or is_for_now(error))


def is_denied(error: ClusterError) -> bool:
    """True if this client lacks a permission: it is told so by every broker, however often it asks."""
    return error_codes.has_code(error, error_codes.TOPIC_AUTHORIZATION_FAILED, error_codes.CLUSTER_AUTHORIZATION_FAILED)


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
    Problems `may_pass` if none is a final refusal: sending the same again changes nothing twice and may succeed. What
    had no answer `may_be_made` later.
    """

    problems: tuple[str, ...] = ()
    unwritten: tuple[Unwritten, ...] = ()
    by_controller: tuple[int, ...] = ()
    failed: tuple[ConfigResource, ...] = ()
    unregistered: tuple[int, ...] = ()
    may_pass: bool = True
    may_be_made: bool = False

    def and_then(self, later: Changed) -> Changed:
        """Combine the outcome with that of later changes."""
        return Changed(
            (*self.problems, *later.problems),
            (*self.unwritten, *later.unwritten),
            tuple(sorted({*self.by_controller, *later.by_controller})),
            tuple(dict.fromkeys((*self.failed, *later.failed))),
            tuple(sorted({*self.unregistered, *later.unregistered})),
            self.may_pass and later.may_pass,
            self.may_be_made or later.may_be_made,
        )


def change_configs(port: ClusterPort, controllers: ConfigPort | None, changes: Changes) -> Changed:
    """Make all these changes that are possible now. Raises nothing."""
    if not changes:
        return Changed()
    brokers = {resource: int(resource.name) for resource in changes if resource.type is ResourceType.BROKER}
    outcome: Batch[ConfigResource, None] = Batch({}, {})
    try:
        live = live_of_two(port) if brokers else frozenset()
        reachable = {one: changes[one] for one in changes if one not in brokers or brokers[one] in live}
        outcome = port.incremental_alter_configs(reachable, timeout_ms=CHANGE_TIMEOUT_MS)
        outcome = _beside_wildcards(port, reachable, outcome)
        # A broker that died just now is listed as live until its session ends.
        live = live_of_two(port) if _silent(outcome, brokers) else live
    except ClusterError as error:
        problem = f"throttle settings could not be changed: {error_text(error)}"
        may_be_made = any(map(_is_unanswered, (error, *outcome.failed.values())))
        return Changed((problem,), failed=tuple(changes), may_pass=not is_final(error), may_be_made=may_be_made)
    down = {one: broker for one, broker in brokers.items() if broker not in live}
    carried = _carry_to(controllers, {one: changes[one] for one in down})
    return Changed(
        tuple(f"{one}: {error_text(error)}" for one, error in outcome.failed.items() if one not in down),
        tuple(Unwritten(down[one], error_text(error)) for one, error in sorted(carried.failed.items())),
        tuple(sorted(down[one] for one in carried.ok)),
        tuple(one for one, error in outcome.failed.items() if one not in down and not is_unknown_topic(error)),
        _unregistered(port, {down[one]: error for one, error in carried.failed.items()}),
        not any(
            is_final(error) and not _may_be_for_wildcard(one, error)
            for one, error in outcome.failed.items()
            if one not in down
        ),
        any(map(_is_unanswered, (*outcome.failed.values(), *carried.failed.values()))),
    )


def _beside_wildcards(
    port: ClusterPort, changes: Changes, outcome: Batch[ConfigResource, None]
) -> Batch[ConfigResource, None]:
    """Repeat what was refused because a list has `*` by now, without the entries for it. Raises ClusterError.

    `*` throttles every replica already. Kafka takes no entries beside it (INVALID_CONFIG), and refuses all that a
    request changes of the topic.
    """
    refused = [resource for resource, error in outcome.failed.items() if _may_be_for_wildcard(resource, error)]
    if not refused:
        return outcome
    known, absent, unknown = settings_of_two(port, refused, TOPIC_THROTTLES)
    del absent, unknown  # Their refusal stands, and so it does where brokers do not show `*` yet.
    rest: dict[ConfigResource, list[ConfigChange]] = {}
    for topic, entries in known.items():
        covered = {name for name, entry in entries.items() if EVERY_REPLICA in items(entry.value)}
        if covered:
            rest[topic] = [
                one for one in changes[topic] if one.operation is not ConfigOperation.APPEND or one.name not in covered
            ]
    left = {topic: some for topic, some in rest.items() if some}
    again = port.incremental_alter_configs(left, timeout_ms=CHANGE_TIMEOUT_MS) if left else Batch({}, {})
    made: dict[ConfigResource, None] = dict.fromkeys(rest.keys() - left.keys())
    failed = {resource: error for resource, error in outcome.failed.items() if resource not in rest}
    return Batch({**outcome.ok, **again.ok, **made}, {**failed, **again.failed})


def _may_be_for_wildcard(resource: ConfigResource, error: ClusterError) -> bool:
    """True if `*` may be in a list of this topic: its changes are made once brokers show that, or it is gone."""
    return resource.type is ResourceType.TOPIC and error_codes.has_code(error, error_codes.INVALID_CONFIG)


def _is_unanswered(error: ClusterError) -> bool:
    """True if the change was sent, and may be made later."""
    return may_be_done(error) and not isinstance(error, Unreachable)


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
    found = {
        broker for broker, error in failed.items() if error_codes.has_code(error, error_codes.BROKER_ID_NOT_REGISTERED)
    }
    if unsure := failed.keys() - found:
        with suppress(ClusterError):  # Unsupported before Kafka 4.0.
            found |= unsure - live_of_two(port, include_fenced=True)
    return tuple(sorted(found))


# Change log directories: requests to brokers, and cancelling moves between directories.


@dataclass(frozen=True, slots=True)
class LogDirAnswer:
    """Partitions for which a broker refused a directory, for good or for now, or gave no answer, each once.

    Of `begun` ones a broker copies into another directory now, or may.
    """

    refused: tuple[Refusal, ...] = ()
    unknown: tuple[TopicPartition, ...] = ()
    deferred: tuple[Refusal, ...] = ()
    begun: frozenset[TopicPartition] = frozenset()

    @property
    def failed(self) -> frozenset[TopicPartition]:
        """All partitions of which not every directory was taken."""
        return frozenset((*self.unknown, *(one.topic_partition for one in (*self.refused, *self.deferred))))


def request_log_dirs(port: ClusterPort, targets: Mapping[TopicPartitionReplica, str]) -> LogDirAnswer:
    """Ask brokers to place copies in these directories, including copies that do not exist yet."""
    if not targets:
        return LogDirAnswer()
    outcome = port.alter_replica_log_dirs(targets)
    # A broker that has no such copy yet keeps the directory for when it gets one.
    failed = {
        one: error
        for one, error in outcome.failed.items()
        if not error_codes.has_code(error, error_codes.REPLICA_NOT_AVAILABLE)
    }

    def told(is_wanted: Callable[[ClusterError], bool]) -> dict[TopicPartition, str]:
        return {
            replica.topic_partition: f"{targets[replica]} on broker {replica.broker}: {error_text(error)}"
            for replica, error in failed.items()
            if is_wanted(error)
        }

    # What one broker refuses for good is refused, whatever the others answer.
    refused, unknown, deferred = told(is_final), told(may_be_done), told(is_for_now)
    uncertain = (replica for replica, error in failed.items() if may_be_done(error))
    return LogDirAnswer(
        tuple(Refusal(name, text) for name, text in sorted(refused.items())),
        tuple(sorted(unknown.keys() - refused.keys())),
        tuple(Refusal(name, text) for name, text in sorted(deferred.items()) if name not in {*refused, *unknown}),
        frozenset(replica.topic_partition for replica in (*outcome.ok, *uncertain)),
    )


def cancel_log_dir_moves(port: ClusterPort, moves: Iterable[PlannedMove]) -> tuple[Refusal, ...]:
    """Cancel moves between directories in progress: requesting the present directory does that (KIP-113).

    Returns what brokers refuse, for good or for now, and which of them do not say what there is to cancel. Raises
    ClusterError when no broker answers.
    """
    steps = {move.topic_partition: move for move in moves}
    wanted = {replica: path for move in steps.values() for replica, path in move.log_dir_paths.items()}
    known, absent, unknown = read_copies(port, wanted)
    del absent  # Nothing is copied there.
    silent = (
        Refusal(
            replica.topic_partition, f"broker {replica.broker} did not report its log directories: {error_text(error)}"
        )
        for replica, error in unknown.items()
        if replica.broker in steps[replica.topic_partition].rearranging
    )
    present = {
        replica: place.current
        for replica, place in known.items()
        if place.future == wanted[replica] and place.current is not None
    }
    answer = request_log_dirs(port, present)
    return (*answer.refused, *answer.deferred, *silent)
