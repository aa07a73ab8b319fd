"""Diagnose what is wrong with reassignments on a cluster, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from kreassign.admin import AdminClient
from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import ClusterError, InputError, JournalUnreadable
from kreassign.executor.cluster import requests
from kreassign.executor.cluster.permissions import explained, unseen_topics
from kreassign.executor.cluster.readings import ongoing_moves, partitions_of, read_log_dirs, settings_of_two, with_moves
from kreassign.executor.cluster.receivers import nameable_brokers
from kreassign.executor.cluster.requests import without_records
from kreassign.executor.history.diagnosis import NO_MAINTENANCE, ClusterReadings, diagnose, notes
from kreassign.executor.history.findings import LEASE, NEEDS, NO_RUN, Issue, Moving, NotRead, fillings
from kreassign.executor.history.run_history import (
    UnreadableJournal,
    explained_settings,
    history,
    is_unfinished,
    is_verified,
    journals_of_runs,
    read_view,
)
from kreassign.executor.journal import active_run
from kreassign.executor.lease import OFFSETS_TOPIC, LeaseHolder, present_holder
from kreassign.executor.maintenance.record import MaintenanceRecord
from kreassign.executor.state import RunView
from kreassign.executor.throttle_ledger import ConfigValue, throttle_keys
from kreassign.model import NO_LEADER, AllowedOperations, Batch, LogDir, OngoingReassignment, Partition, TopicPartition
from kreassign.model.disks import unsized
from kreassign.model.distributions import UNKNOWN, Recognised, recognise
from kreassign.model.error_codes import TOPIC_AUTHORIZATION_FAILED, has_code
from kreassign.model.run import IN_FLIGHT
from kreassign.model.text import check_wait, signed_number
from kreassign.model.throttle import FOLLOWER_THROTTLED_RATE, LOG_DIR_RATE
from kreassign.operations.broker_changes import MaintenanceStore
from kreassign.operations.run import RunContext
from kreassign.operations.snapshot import SECOND_LOOK, brokers_and_topics

MAINTENANCE = "maintenance of brokers"
UNSIZED = "not told for each of its log directories, as others tell theirs"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All issues with what to do, the run that holds the lease of the cluster, further notes, and its distribution."""

    issues: tuple[Issue, ...]
    lease: LeaseHolder | None
    notes: tuple[str, ...] = ()
    distribution: Recognised = UNKNOWN


def diagnose_cluster(
    client: AdminClient,
    state_dir: Path,
    *,
    measure_for_s: float = 0.0,
    clock: Clock = SYSTEM_CLOCK,
    beside: Iterable[Path] = (),
) -> Diagnosis:
    """Diagnose the cluster, whose runs are also in the state directories `beside`; changes nothing.

    Raises ClusterError.
    Filling disks and stuck copies need two readings, `measure_for_s` seconds apart; with 0 neither is
    reported.
    """
    with explained(client):
        state_dirs = (state_dir, *beside)
        readings = _confirmed(client, examine(client, state_dirs, measure_for_s, clock))
        cluster_id = client.describe_cluster().cluster_id
    # In doubt, nothing is said of who set what is left.
    unneeded = readings.unneeded_throttles if readings.doubt is None else ()
    found = explained_settings(state_dirs, cluster_id, unneeded)
    readings = replace(
        readings,
        explained=found.settings,
        unreadable_journals=(*readings.unreadable_journals, *found.damaged),
    )
    return Diagnosis(diagnose(readings), readings.lease, notes(readings), readings.distribution)


def _confirmed(client: AdminClient, readings: ClusterReadings) -> ClusterReadings:
    """The readings without throttles that are gone by now: their run has ended since they were read."""
    unneeded = readings.unneeded_throttles
    found = requests.read_configs(client, [one.key for one in unneeded], settings_of_two)
    now = {one.key: one.value for one in found.values}
    gone = {one for one in unneeded if now.get(one.key, one.value) != one.value}
    return replace(readings, throttles=tuple(one for one in readings.throttles if one not in gone))


def examine(
    client: AdminClient, state_dirs: Sequence[Path], measure_for_s: float = 0.0, clock: Clock = SYSTEM_CLOCK
) -> ClusterReadings:
    """Read everything that a diagnosis needs; the first directory is that of this process. Raises ClusterError."""
    check_wait("measure_for_s", measure_for_s)
    (whole, seen, alone), seen_moves = with_moves(client, lambda: brokers_and_topics(client))
    topics = seen.whole
    live = tuple(sorted(broker.id for broker in whole.brokers if not broker.is_fenced))
    begun_s = clock.monotonic_s()
    first = _Look.at(client, live, seen_moves)
    settings = requests.read_configs(client, throttle_keys(topics.ok, live), settings_of_two)
    holder, lease_problems = lease_of(client)
    maintenance, maintenance_problems = _maintenance(client, state_dirs, whole.cluster_id)
    every = read_log_dirs(client, live)
    unseen = unseen_topics(client, topics.ok, (one for dirs in every.ok.values() for one in dirs))
    min_isr, allowed, permission_problems = _settings_and_permissions(client, topics.ok, unseen)
    clock.sleep(max(0.0, begun_s + measure_for_s - clock.monotonic_s()))
    second = _Look.at(client, live, seen_moves) if measure_for_s else first
    seconds, log_dirs = clock.monotonic_s() - begun_s if measure_for_s else 0.0, second.log_dirs
    silent = {**every.failed, **first.log_dirs.failed, **log_dirs.failed}
    unfinished = unfinished_runs(state_dirs, whole.cluster_id)
    runs = unfinished.readable
    throttles = tuple(present for present in settings.values if present.value is not None)
    partitions = partitions_of(topics.ok)
    # Last, so that a move that is over by now does not look stuck, nor its throttle left behind that began meanwhile.
    still = ongoing_moves(client)
    moving = [
        _moving(name, move, runs, partitions, throttles, first, second)
        for name, move in still.items()
        if name in seen_moves
    ]
    empty = without_records(client, partitions, {one.name: one.move for one in moving if one.is_stuck})
    paths = {one.path for dirs in log_dirs.ok.values() for one in dirs}
    return ClusterReadings(
        live=live,
        partitions=tuple(partitions.values()),
        ongoing={**seen_moves, **still},
        throttles=throttles,
        log_dirs=log_dirs.ok,
        nameable=nameable_brokers(client, log_dirs.ok, log_dirs.ok),
        brokers=whole.brokers,
        min_isr=min_isr,
        disks=fillings(log_dirs.ok, first.log_dirs.ok if measure_for_s else {}, seconds),
        moving=tuple(replace(one, without_records=empty.get(one.name, ())) for one in moving),
        measured_s=seconds,
        run_ids=tuple(run.run_id for run in runs),
        of_runs=frozenset(name for run in runs for name in run.records),
        copying=copying_brokers(throttles, every.ok),
        owned={key: run.run_id for run in runs for key in run.pending_restores},
        allowed=allowed,
        principal=client.principal,
        held_bytes={broker: sum(one.size_bytes for one in dirs) for broker, dirs in every.ok.items()},
        distribution=recognise(whole, paths, {*topics.ok, *topics.failed}),
        interrupted_runs=unfinished.interrupted,
        unreadable_journals=unfinished.unreadable,
        lease=holder,
        maintenance=maintenance,
        unread=(
            *(() if alone is None else (NotRead(SECOND_LOOK, alone),)),
            *lease_problems,
            *maintenance_problems,
            *permission_problems,
            *(NotRead("topic", error, name) for name, error in topics.failed.items()),
            *(NotRead(f"settings of {one.type.name.lower()}", why, one.name) for one, why in settings.failed.items()),
            *(NotRead("log directories of broker", error, broker) for broker, error in silent.items()),
            *(NotRead("free space of broker", UNSIZED, broker) for broker in unsized(log_dirs.ok)),
        ),
    )


@dataclass(frozen=True, slots=True)
class _Look:
    """Log directories, and bytes copied of each reassignment all of whose new brokers told theirs, at one time."""

    log_dirs: Batch[int, tuple[LogDir, ...]]
    copied: Mapping[TopicPartition, int]

    @classmethod
    def at(
        cls, client: AdminClient, live: Iterable[int], ongoing: Mapping[TopicPartition, OngoingReassignment]
    ) -> _Look:
        found = read_log_dirs(client, live, copies_of=sorted(ongoing))
        copied = {name: 0 for name, move in ongoing.items() if found.ok.keys() >= set(move.adding)}
        for broker, dirs in found.ok.items():
            for copy in (copy for one in dirs for copy in one.replicas):
                if copy.topic_partition in copied and broker in ongoing[copy.topic_partition].adding:
                    copied[copy.topic_partition] += copy.size_bytes
        return cls(found, copied)


def _moving(
    name: TopicPartition,
    move: OngoingReassignment,
    runs: Sequence[RunView],
    partitions: Mapping[TopicPartition, Partition],
    throttles: Sequence[ConfigValue],
    first: _Look,
    second: _Look,
) -> Moving:
    is_measured = first is not second and bool(move.adding)
    adding = set(map(str, move.adding))
    texts = (
        one.value or ""
        for one in throttles
        if one.key.name == FOLLOWER_THROTTLED_RATE and one.key.resource.name in adding
    )
    rates = [rate for text in texts if (rate := signed_number(text)) is not None]
    known = partitions.get(name)
    return Moving(
        name,
        move,
        next((run.run_id for run in runs if _is_of(run, name, move)), NO_RUN),
        second.copied.get(name) if is_measured else None,
        first.copied.get(name) if is_measured else None,
        has_leader=known is None or known.leader != NO_LEADER,
        rate_bytes_per_s=min(rates, default=None),
    )


def _is_of(run: RunView, name: TopicPartition, move: OngoingReassignment) -> bool:
    """True if the journal of the run shows that it sent this reassignment, and not that it was refused or cancelled."""
    record = run.records.get(name)
    if record is None or record.status not in IN_FLIGHT or record.is_list_cancelled or record.was_refused:
        return False
    return record.step.target == move.target


def copying_brokers(throttles: Iterable[ConfigValue], log_dirs: Mapping[int, Iterable[LogDir]]) -> frozenset[int]:
    """Brokers that copy between their directories, among those that throttle it: only there it matters."""
    throttled = {one.key.broker for one in throttles if one.key.name == LOG_DIR_RATE}
    return frozenset(
        broker
        for broker, dirs in log_dirs.items()
        if broker in throttled and any(copy.is_future for one in dirs for copy in one.replicas)
    )


class UnfinishedRuns(NamedTuple):
    """Runs in state directories that have not ended, and the ids of those that no process executes.

    Each of the `unreadable` journals may be that of one more.
    """

    readable: tuple[RunView, ...]
    interrupted: tuple[str, ...]
    unreadable: tuple[UnreadableJournal, ...]


def unfinished_runs(
    state_dirs: Iterable[Path], cluster_id: str, read: Callable[[Path], RunView] = read_view
) -> UnfinishedRuns:
    """Runs that processes execute, and interrupted ones; `read` reads each journal once."""
    folders = tuple(state_dirs)
    views: list[RunView] = []
    unread: list[UnreadableJournal] = []
    for path in journals_of_runs(folders, cluster_id):
        if is_verified(path):
            continue
        try:
            run = read(path)
        except JournalUnreadable as error:
            unread.append(UnreadableJournal.of(path, error))
        else:
            views.extend([run] if is_unfinished(history(run)) else ())
    # Asked after the journals: a run that pauses meanwhile is interrupted, not missing.
    active = {active_run(folder, cluster_id) for folder in folders}
    return UnfinishedRuns(
        tuple(views),
        tuple(one.run_id for one in views if one.run_id not in active),
        tuple(one.of_active if one.run_id in active else one for one in unread),
    )


def _settings_and_permissions(
    client: AdminClient, topics: Iterable[str], unseen: Iterable[str]
) -> tuple[Mapping[str, int], AllowedOperations | None, tuple[NotRead, ...]]:
    """min.insync.replicas by topic, operations allowed to this client, and which of them could not be read."""
    problems: list[NotRead] = []
    min_isr: Mapping[str, int] = {}
    allowed = None
    try:
        found = requests.min_isr_of(client, topics)
        min_isr = found.known
        problems += [NotRead("min.insync.replicas of topic", error, name) for name, error in found.unknown.items()]
    except ClusterError as error:
        problems.append(NotRead("min.insync.replicas", error))
    try:
        allowed = _allowed(client, unseen)
    except ClusterError as error:
        problems.append(NotRead("permissions", error))
    return min_isr, allowed, tuple(problems)


def _allowed(client: AdminClient, unseen: Iterable[str]) -> AllowedOperations:
    """Allowed operations, none for unseen topics; those on our own groups only where the query creates none."""
    allowed = client.allowed_operations()
    offsets = client.describe_topics([OFFSETS_TOPIC])
    topics = {**allowed.topics, **dict.fromkeys(unseen, frozenset[str]())}
    if OFFSETS_TOPIC not in offsets.ok:
        refused = offsets.failed.get(OFFSETS_TOPIC)
        if refused is not None and has_code(refused, TOPIC_AUTHORIZATION_FAILED):
            topics[OFFSETS_TOPIC] = frozenset()
        return replace(allowed, topics=topics)
    groups = {need.group[0] for need in NEEDS if need.group is not None}
    told = {group: client.allowed_on_group(group) for group in sorted(groups)}
    return replace(allowed, topics=topics, groups={name: found for name, found in told.items() if found is not None})


def _maintenance(
    client: AdminClient, state_dirs: Iterable[Path], cluster_id: str
) -> tuple[MaintenanceRecord, tuple[NotRead, ...]]:
    """Brokers in maintenance by the records of the cluster and of each state directory, and what could not be read.

    A cluster that keeps no record leaves it to the directory from which the maintenance began.
    """
    record, unread = NO_MAINTENANCE, dict[str, NotRead]()
    for folder in state_dirs:
        try:
            found = MaintenanceStore(client, RunContext(folder), cluster_id, "doctor").read()
        except (ClusterError, InputError) as error:
            unread[str(error)] = NotRead(MAINTENANCE, error)
        else:
            record = record.beside(found.record)
            unread |= {found.doubt: NotRead(MAINTENANCE, found.doubt)} if found.doubt else {}
    return record, tuple(unread.values())


def lease_of(client: AdminClient) -> tuple[LeaseHolder | None, tuple[NotRead, ...]]:
    """The holder of the lease, and why it could not be read."""
    try:
        return present_holder(client), ()
    except ClusterError as error:
        return None, (NotRead(LEASE, error),)
