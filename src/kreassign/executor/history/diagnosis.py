"""What is wrong with a cluster as far as reassignments are concerned, and what to do about it. Pure.

The worst is a reassignment that can never complete: on Kafka 4.3.1 an override whose new target adds no broker, while
others are being added, leaves a broker that is both added and removed, and the completion rule is never met.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kreassign.executor.history.interrupted_runs import UnreadableJournal
from kreassign.executor.lease import LeaseHolder, OriginalValues
from kreassign.executor.lease.record import left_settings
from kreassign.executor.throttle.ledger import ConfigOverride, ConfigValue
from kreassign.model import NO_LEADER, LogDir, OngoingReassignment, Partition, ResourceType, TopicPartition

NAMED = 10


@dataclass(frozen=True, slots=True)
class ClusterReadings:
    """What was read. `throttles` are settings of throttles that topics or brokers have of their own.

    `lease` is who holds the lease of the cluster, `record` what throttles were before anyone's run.
    """

    live: tuple[int, ...]
    partitions: tuple[Partition, ...]
    ongoing: Mapping[TopicPartition, OngoingReassignment] = field(default_factory=dict)
    throttles: tuple[ConfigValue, ...] = ()
    log_dirs: Mapping[int, tuple[LogDir, ...]] = field(default_factory=dict)
    interrupted_runs: tuple[str, ...] = ()
    unreadable_journals: tuple[UnreadableJournal, ...] = ()
    record: OriginalValues | None = None
    lease: LeaseHolder | None = None
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that is wrong: its kind, of what, what was seen, and what to do."""

    kind: str
    subject: str
    seen: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.seen}. {self.remedy}"


def diagnose(readings: ClusterReadings) -> tuple[Issue, ...]:
    """Everything that is wrong, the worst first; empty when all is well."""
    checks = (
        _endless,
        _without_destination,
        _offline,
        _log_dirs,
        _interrupted_runs,
        _unreadable_journals,
        _record,
        _throttles,
        _under_replicated,
        _leaders,
    )
    unread = (Issue("unread", "cluster", sentence, "Try again") for sentence in readings.unread)
    return (*(issue for check in checks for issue in check(readings)), *unread)


def _endless(readings: ClusterReadings) -> Iterator[Issue]:
    for name, move in sorted(readings.ongoing.items()):
        if move.can_never_complete:
            both = sorted(set(move.adding) & set(move.removing))
            yield Issue(
                "endless",
                str(name),
                f"its reassignment ({move}) was overridden and can never complete: brokers {both} are both added and "
                "removed",
                f"Cancel it (kafka-reassign-partitions --cancel), then start it again with {list(move.target)}",
            )


def _without_destination(readings: ClusterReadings) -> Iterator[Issue]:
    for name, move in sorted(readings.ongoing.items()):
        gone = sorted(set(move.adding) - set(readings.live))
        if gone and not move.can_never_complete:
            yield Issue(
                "destination",
                str(name),
                f"it is being reassigned to brokers {gone}, which are not there",
                "Start them, or cancel the reassignment (kafka-reassign-partitions --cancel) and replan",
            )


def _offline(readings: ClusterReadings) -> Iterator[Issue]:
    names = [one.topic_partition for one in readings.partitions if one.leader == NO_LEADER]
    yield from _many("offline", names, "have no leader", "Bring back the brokers of their replicas")


def _under_replicated(readings: ClusterReadings) -> Iterator[Issue]:
    names = [
        one.topic_partition
        for one in readings.partitions
        if one.under_replicated and one.leader != NO_LEADER and one.topic_partition not in readings.ongoing
    ]
    advice = "See whether a broker is down; a throttle that was left behind slows those that catch up, too"
    yield from _many("under-replicated", names, "have replicas out of sync", advice)


def _leaders(readings: ClusterReadings) -> Iterator[Issue]:
    names = [
        one.topic_partition
        for one in readings.partitions
        if one.leader not in {NO_LEADER, one.preferred_leader}
        and one.preferred_leader in one.isr
        and one.topic_partition not in readings.ongoing
    ]
    advice = "Elect them with kafka-leader-election --election-type preferred"
    yield from _many("leader", names, "are not led by their preferred leader, which is in sync", advice)


def _many(kind: str, names: Iterable[TopicPartition], seen: str, remedy: str) -> Iterator[Issue]:
    found = sorted(names)
    if found:
        more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
        subject = f"{len(found)} partitions" if len(found) > 1 else "1 partition"
        yield Issue(kind, subject, f"{', '.join(map(str, found[:NAMED]))}{more} {seen}", remedy)


def _log_dirs(readings: ClusterReadings) -> Iterator[Issue]:
    for broker, log_dirs in sorted(readings.log_dirs.items()):
        for log_dir in log_dirs:
            if log_dir.error:
                yield Issue("log-dir", f"broker {broker}", f"{log_dir} is offline", "Repair the disk, then restart it")
        if log_dirs and all(log_dir.is_cordoned for log_dir in log_dirs):
            seen = "all its log directories are cordoned, yet Kafka accepts reassignments to it in silence"
            yield Issue("cordoned", f"broker {broker}", seen, "Take one out of cordoned.log.dirs, or plan without it")


def _interrupted_runs(readings: ClusterReadings) -> Iterator[Issue]:
    for run_id in readings.interrupted_runs:
        remedy = (
            f"Go on with kreassign resume {run_id}, or kreassign cancel {run_id}; give up a broker that is lost for "
            f"good with kreassign forget {run_id} --broker ID"
        )
        seen = "no process is running it, and it has moves to finish or settings to restore"
        yield Issue("run", f"run {run_id}", seen, remedy)


def _unreadable_journals(readings: ClusterReadings) -> Iterator[Issue]:
    for journal in readings.unreadable_journals:
        yield Issue("journal", f"run {journal.run_id}", f"its journal cannot be read: {journal}", journal.remedy)


def _record(readings: ClusterReadings) -> Iterator[Issue]:
    """A record is written by a run and removed by it, so one that nobody holds the lease for was left."""
    record = readings.record
    if record is None or readings.lease is not None:
        return
    left = left_settings(record, readings.throttles)
    seen = f"it did not restore what it found, as the cluster's own record tells: {_some(left)}"
    yield Issue(
        "record",
        f"run {record.run_id}",
        seen,
        f"Go on with it where its journal is (kreassign resume {record.run_id}); the next run restores the rest",
    )


def _some(left: Sequence[ConfigOverride]) -> str:
    named = "; ".join(f"{one.key} is {one.value!r} and was {one.before or 'not set'}" for one in left[:NAMED])
    return f"{named} and {len(left) - NAMED} more" if len(left) > NAMED else named or "its settings are gone by now"


def _throttles(readings: ClusterReadings) -> Iterator[Issue]:
    """Settings that no reassignment of their topic, or of any topic, explains."""
    topics = {name.topic for name in readings.ongoing}
    for present in readings.throttles:
        resource = present.key.resource
        is_explained = resource.name in topics if resource.type is ResourceType.TOPIC else bool(topics)
        if not is_explained:
            yield Issue(
                "throttle",
                str(resource),
                f"{present.key.name} is {present.value!r}, and nothing that is being reassigned needs it",
                "If nobody wants it, delete it with kafka-configs: it slows replicas that fall out of sync",
            )
