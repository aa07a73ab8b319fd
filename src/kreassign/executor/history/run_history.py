"""Read from journals what runs did, find interrupted runs, and plan rollbacks.

`RunHistory` has a run as plain values, for status, reports and audits. Journals are read from the latest usable
snapshot, else from their first event.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from kreassign.errors import InputError, JournalDamaged, JournalLocked, JournalUnreadable
from kreassign.executor.cluster.observations import OTHER_TOPIC, ReplicaLocations
from kreassign.executor.events import Event, RunStarted, Verified
from kreassign.executor.guards import NAMED
from kreassign.executor.journal import (
    Journal,
    JournalReader,
    Position,
    StoredSnapshot,
    active_run,
    check_journal,
    cluster_journals,
    damaged,
    journal_path,
    last_event,
    stored_snapshots,
)
from kreassign.executor.progress import ProgressMeter, move_history
from kreassign.executor.state import Machine, RunView
from kreassign.executor.throttle_ledger import ConfigKey, ConfigValue
from kreassign.model import Partition, Reassignment, TopicPartition, TopicPartitionReplica
from kreassign.model.cluster import named_brokers
from kreassign.model.plan import ANY_LOG_DIR, PartitionAssignment, Plan
from kreassign.model.plan_facts import is_another
from kreassign.model.run import AT_REST, IN_FLIGHT, SOMEONE_ELSE, MoveHistory, RunHistory
from kreassign.model.text import by_reason, counted, partitions_by_name

# Read runs from a snapshot in their journals and the events since.
#
# Where no snapshot is usable (they are of another build) all events are read.

EVERY_MS = 30_000
"""Snapshot interval, in the events' time: leaves few polls to read, each of which costs milliseconds."""

EVERY_BYTE_MS = 0.05
"""Extra interval per byte of the last snapshot: long plans have long snapshots, so these are kept less often."""


class Start(NamedTuple):
    """Starting point of a reader: the position of an event, with a machine and a meter that have processed it."""

    machine: Machine
    meter: ProgressMeter
    position: Position


def latest_start(path: Path) -> Start:
    """Return the latest usable snapshot, else the beginning. Raises JournalUnreadable, InputError.

    The whole journal is checked first: whoever reads a run begins here, so that all say the same of a damaged one.
    """
    check_journal(path)
    usable = (start for one in stored_snapshots(path) if (start := _usable(one)) is not None)
    return next(usable, None) or _beginning()


def read_view(path: Path) -> RunView:
    """State of the run in a journal. Raises JournalDamaged, or InputError when there is none."""
    return _followed(path, with_meter=False).machine.view


def read_progress(path: Path) -> tuple[RunView, ProgressMeter]:
    """Return `read_view` with a meter that has followed the run."""
    start = _followed(path, with_meter=True)
    return start.machine.view, start.meter


def _followed(path: Path, *, with_meter: bool) -> Start:
    start = latest_start(path)
    events = JournalReader(path, start.position).new_events()
    if start.position == Position() and not (events and isinstance(events[0], RunStarted)):
        raise damaged(path, "has no beginning: its first events are lost")
    for event in events:
        start.machine.replay(event)
        if with_meter:
            start.meter.follow(event)
    return start


def _beginning() -> Start:
    machine = Machine()
    return Start(machine, ProgressMeter(machine.view), Position())


def _usable(stored: StoredSnapshot) -> Start | None:
    try:
        machine, meter = Machine.from_snapshot(stored.text)
        return Start(machine, ProgressMeter.restored(machine.view, meter), stored.position)
    except ValueError:
        return None


@dataclass(slots=True)
class SnapshotKeeper:
    """Keeps snapshots of a run at intervals and when it is at rest; its `meter` follows the run."""

    journal: Journal
    snapshot: Callable[[dict[str, object]], str]
    meter: ProgressMeter | None = None
    every_ms: int = EVERY_MS
    every_byte_ms: float = EVERY_BYTE_MS
    _kept_ms: int | None = None
    _size_bytes: int = 0

    def follow(self, event: Event, run: RunView) -> ProgressMeter:
        """Follow an event that the run has processed; return the meter."""
        self.meter = self.meter or ProgressMeter(run)
        self.meter.follow(event)
        if self._kept_ms is None:
            self._kept_ms = event.at_ms
        waited_ms = abs(event.at_ms - self._kept_ms)
        if run.phase in AT_REST or waited_ms >= max(self.every_ms, self.every_byte_ms * self._size_bytes):
            text = self.snapshot(self.meter.state())
            self.journal.keep_snapshot(text)
            self._kept_ms, self._size_bytes = event.at_ms, len(text)
        return self.meter


# A run as plain values, built from its journal.


def fold(events: Iterable[Event]) -> RunView:
    """Replay these events in order and return the run."""
    machine = Machine()
    for event in events:
        machine.replay(event)
    return machine.view


def history(run: RunView, meter: ProgressMeter | None = None, *, is_active: bool = False) -> RunHistory:
    """Convert a run to plain values, with its progress if a meter has followed it."""
    identity, control = run.identity, run.control
    return RunHistory(
        run_id=identity.run_id,
        cluster_id=identity.cluster_id,
        started_ms=identity.started_ms,
        ended_ms=run.ended_ms,
        state=run.phase,
        rates=control.rates,
        moves=tuple(map(move_history, run.records.values())) if meter is None else meter.moves(),
        throttle_residue=() if is_active and run.ended_ms is None else run.residue,
        problems=(*run.problems, *run.findings),
        problem_partitions=run.problem_partitions,
        is_held=control.is_held,
        was_throttle_kept=run.was_throttle_kept,
        wants_rollback=control.wants_rollback,
        verdicts=tuple(map(str, run.verdicts)),
        pace=control.pace,
        outlook=run.outlook,
        plan_id=identity.plan_id,
        operators=identity.operators,
        lease=control.lease,
        silence=run.silence,
        is_active=is_active,
        why_held=run.why_held,
        guards=tuple(verdict.guard.value for verdict in run.verdicts),
        open_settings=len(run.pending_restores),
        progress=None if meter is None else meter.progress(),
        clients=run.client_cost,
        can_be_resumed=not is_active and not run.is_over,
        journal_to=identity.journal_to,
        undoes=identity.undoes,
    )


def read_history(path: Path) -> RunHistory:
    """History of the run in a journal. Raises JournalDamaged, or InputError when there is none."""
    return history(read_view(path))


def refuse_over(run: RunView, deed: str) -> None:
    """Raise InputError if nothing is left to do, for every command that continues or steers a run."""
    if run.is_over:
        ways = f"`kreassign status {run.run_id}` shows how it ended, `kreassign rollback {run.run_id}` takes it back"
        raise InputError(f"run {run.run_id} is {run.phase}: there is nothing to {deed}. {ways}")


# Interrupted runs: no process executes them, though they left moves or settings in the cluster.
#
# They block others: a run that finds the throttle of an interrupted one would take it for the original value,
# and if both are ended in the wrong order, it stays for ever. A journal that cannot be read may belong to such a run,
# so it blocks as well.


@dataclass(frozen=True, slots=True)
class UnreadableJournal:
    """A journal that cannot be read: why, and what to do.

    `is_locked` if another process or a full disk is why; `is_active` if a process executes its run.
    """

    path: Path
    problem: str
    remedy: str
    is_locked: bool = False
    is_active: bool = False

    @classmethod
    def of(cls, path: Path, error: JournalUnreadable) -> UnreadableJournal:
        """The journal that this error is about."""
        remedy = error.remedy or damaged(path, error.problem).remedy
        return cls(path, error.problem, remedy, isinstance(error, JournalLocked))

    @property
    def of_active(self) -> UnreadableJournal:
        """Say that a process executes the run: a damaged journal can be set aside only once that process has ended."""
        if self.is_locked:
            return replace(self, is_active=True)
        end = "A process executes the run: end that process (Ctrl-C), then look again"
        return replace(self, remedy=end, is_active=True)

    @property
    def run_id(self) -> str:
        """Id of its run, from the file name."""
        return self.path.stem

    @property
    def error(self) -> JournalUnreadable:
        """Error of a command that needs to know what the run did."""
        kind = JournalLocked if self.is_locked else JournalDamaged
        return kind(f"a run on this cluster has a journal that cannot be read: {self}", self.remedy)

    def __str__(self) -> str:
        return self.problem if str(self.path) in self.problem else f"{self.path}: {self.problem}"


def left_behind(state_dir: Path, cluster_id: str) -> Iterator[RunHistory | UnreadableJournal]:
    """Interrupted runs with moves to finish or settings to restore on this cluster, and unreadable journals."""
    holder = active_run(state_dir, cluster_id)
    for path in cluster_journals(state_dir, cluster_id):
        if path.stem == holder or is_verified(path):
            continue
        found = read_or_name(path)
        if isinstance(found, UnreadableJournal) or is_unfinished(found):
            yield found


def is_unfinished(run: RunHistory) -> bool:
    """True if a run has moves to finish or settings to restore."""
    return run.ended_ms is None or bool(run.throttle_residue)


def read_or_name(path: Path) -> RunHistory | UnreadableJournal:
    """History of the run in a journal, or the journal as unreadable."""
    try:
        return read_history(path)
    except JournalUnreadable as error:
        return UnreadableJournal.of(path, error)


def refuse_if_interrupted_runs(
    state_dir: Path, cluster_id: str, run_id: str | None = None, live: Collection[int] | None = None
) -> None:
    """Raise InputError if another run was interrupted with moves in progress or settings to restore.

    With `live` brokers, those of other brokers may be left: no run can take them for original values.
    Raises JournalDamaged if that is unknown, because its journal cannot be read.
    """
    for found in left_behind(state_dir, cluster_id):
        if found.run_id == run_id:
            continue
        if isinstance(found, UnreadableJournal):
            raise found.error
        moving = sum(move.status in IN_FLIGHT for move in found.moves)
        left = read_view(journal_path(state_dir, cluster_id, found.run_id)).restorable(live)
        if moving or left:
            raise InputError(
                f"run {found.run_id} was left on this cluster with {counted(moving, 'move')} under way and "
                f"{counted(len(left), 'setting')} of a throttle; go on with it (`kreassign resume "
                f"{found.run_id}`) or end it (`kreassign cancel {found.run_id}`) before another one changes the same. "
                f"Settings of a broker that is lost for good: `kreassign forget {found.run_id} --broker ID`"
            )


@dataclass(frozen=True, slots=True)
class ExplainedSetting:
    """A throttle that a run set and could not restore: its present value, the one before that run, and the run."""

    present: ConfigValue
    before: str | None
    run_id: str

    def __str__(self) -> str:
        return f"{self.present}, which run {self.run_id} set and could not restore"


class Explained(NamedTuple):
    """Throttles that runs set and could not restore, and damaged journals, which may have been of such runs."""

    settings: tuple[ExplainedSetting, ...] = ()
    damaged: tuple[UnreadableJournal, ...] = ()


def explained_settings(
    state_dirs: Iterable[Path],
    cluster_id: str,
    settings: Collection[ConfigValue],
    left_by: Collection[str] = (),
    read: Callable[[Path], RunView] = read_view,
) -> Explained:
    """Find those of these throttles that a journal here shows as written by a run, and none as restored since.

    Those that runs `left_by` still have to restore count, too. The topic was deleted then, or the broker lost. Kafka
    shows both again: brokers that restart have the settings of a former topic of the name, each by itself, and a broker
    that comes back has the rate that it had.
    """
    found: dict[ConfigKey, ExplainedSetting] = {}
    unread: list[UnreadableJournal] = []
    for path in journals_of_runs(state_dirs, cluster_id) if settings else ():
        try:
            run = read(path)
        except JournalDamaged as error:
            unread.append(UnreadableJournal.of(path, error))
            continue
        found = {key: one for key, one in found.items() if key not in run.restored_rates}
        ours = {override.key: override for override in run.given_up}
        if run.run_id in left_by:
            ours |= run.pending_restores
        for present in settings:
            override = ours.get(present.key)
            if override is not None and override.wrote(present.value):
                found[present.key] = ExplainedSetting(present, override.before, run.run_id)
    return Explained(tuple(found.values()), tuple(unread))


def journals_of_runs(state_dirs: Iterable[Path], cluster_id: str) -> tuple[Path, ...]:
    """Journals of a cluster in all of these directories, oldest run first: of copies the one with the latest event."""
    found: dict[str, Path] = {}
    for folder in dict.fromkeys(state_dirs):
        for path in cluster_journals(folder, cluster_id):
            known = found.setdefault(path.stem, path)
            if known is not path and last_ms(path) > last_ms(known):
                found[path.stem] = path
    return tuple(path for _, path in sorted(found.items()))


def last_ms(path: Path) -> float:
    """Time of the last event of a run; if that cannot be read, later than any."""
    try:
        last = last_event(path)
    except JournalUnreadable:
        last = None
    return float("inf") if last is None else last.at_ms


def is_verified(path: Path) -> bool:
    """True if the last event of a run is a verification without findings: so in most journals, and quick to check."""
    try:
        event = last_event(path)
    except JournalUnreadable:
        return False
    return isinstance(event, Verified) and not event.findings


# Rollback: undo a run, from what it did and where its partitions are now. Pure.
#
# A move that completed is undone by moving back. One that was cancelled left its partition on the original brokers, but
# perhaps in another order (KIP-455 restores the set, not the list), which a reassignment without copying puts right.
# A move made in steps is undone from the last step that it reached, but not behind a list that others made of it.
# A list is the run's if it equals one that its journal shows as left by it (`MoveHistory.left`), never by its set.
#
# What cannot be undone is left alone and named, and the rest is undone: a list that others have changed
# since, a partition of another topic that was created under the same name, one whose original broker is down, and one
# that no run could move now, for example because it has no leader to copy from. Directories are the run's whoever made
# the list: where the run moved a copy into one, it goes back, also beside a list of others.


@dataclass(frozen=True, slots=True)
class Present:
    """Present state of the cluster: live brokers (None: all that are named), and known ids of topics.

    `hindrances` are sentences of the checks before a run against moving single partitions back. `changed_by` has the
    later runs that made the lists of partitions what they are, each as words to go on after the list.
    """

    live_brokers: Collection[int] | None = None
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    hindrances: Mapping[TopicPartition, str] = field(default_factory=dict)
    changed_by: Mapping[TopicPartition, str] = field(default_factory=dict)


AS_EXPECTED = Present()


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """Plan that undoes a run, replica lists that it expects, bytes to copy again, and partitions left, with reason."""

    plan: Plan
    expected: Mapping[TopicPartition, tuple[int, ...]]
    copy_count: int
    copied_bytes: int
    left: tuple[tuple[TopicPartition, str], ...]

    @property
    def skipped(self) -> tuple[str, ...]:
        """A sentence per partition that is left alone."""
        return tuple(f"{name}: {reason}" for name, reason in self.left)

    @property
    def reasons(self) -> tuple[str, ...]:
        """A sentence per reason, with the first partitions that are left alone for it."""
        return tuple(f"{partitions_by_name(names, NAMED)}: {reason}" for reason, names in by_reason(self.left).items())


def rollback_plan(
    moves: Iterable[MoveHistory],
    partitions: Mapping[TopicPartition, Partition],
    replica_locations: ReplicaLocations = MappingProxyType({}),
    present: Present = AS_EXPECTED,
) -> RollbackPlan:
    """Return the rollback plan of these moves, from the present partitions and locations of their copies.

    A list that others have changed since is left alone: the effect of a rollback on it is unknown.
    """
    expected: dict[TopicPartition, tuple[int, ...]] = {}
    left: list[tuple[TopicPartition, str]] = []
    assignments, copies, copied_bytes = [], 0, 0
    for move in moves:
        name = move.topic_partition
        if move.submitted_ms is None:
            continue
        if problem := _reason_to_leave(move, partitions.get(name), present):
            left.append((name, problem))
            continue
        list_back = move.undone_to
        if not may_go_back(move, partitions[name]):
            list_back = partitions[name].replicas
            left.append((name, f"its replicas are {list(list_back)}, changed since by somebody else; look at it"))
        if hindrance := present.hindrances.get(name):
            left.append((name, hindrance))
            continue
        left += ((name, unread) for unread in _unread_dirs(move, partitions[name], replica_locations))
        log_dirs = _dirs_back(move, replica_locations)
        log_dirs = {broker: path for broker, path in log_dirs.items() if broker in list_back}
        if log_dirs or partitions[name].replicas != list_back:
            expected[name] = partitions[name].replicas
            paths = tuple(log_dirs.get(broker, ANY_LOG_DIR) for broker in list_back)
            assignments.append(PartitionAssignment(name, list_back, paths))
            count = len(Reassignment(expected[name], list_back).adding) + len(log_dirs)
            copies, copied_bytes = copies + count, copied_bytes + count * move.size_bytes
        elif list_back == move.undone_to != move.original:
            who = f"{SOMEONE_ELSE} made that list during the run"
            left.append((name, f"its replicas are {list(move.undone_to)}; {who}, look at it"))
    return RollbackPlan(Plan(tuple(assignments)), expected, copies, copied_bytes, tuple(left))


def _dirs_back(move: MoveHistory, replica_locations: ReplicaLocations) -> dict[int, str]:
    """Former directories, by broker, of copies that the run moved or was about to move."""
    back = {}
    for target in move.log_dirs:
        place = replica_locations.get(TopicPartitionReplica(target.broker, move.topic, move.partition))
        if target.before is not None and place is not None and place.current == target.path != target.before:
            back[target.broker] = target.before
    return back


def _unread_dirs(move: MoveHistory, partition: Partition, replica_locations: ReplicaLocations) -> Iterator[str]:
    """Copies that may have to change their directory, and are in none that their broker reports, or on their way."""
    for target in move.log_dirs:
        replica = TopicPartitionReplica(target.broker, move.topic, move.partition)
        is_kept = target.before is not None and target.broker in partition.replicas
        if not is_kept or target.path == target.before:
            continue
        if replica not in replica_locations:
            yield (
                f"no directory of broker {target.broker} shows its copy, which was in {target.before}: the broker is "
                "down, or the directory failed; roll back again once it is up"
            )
        elif replica_locations[replica].future == target.path:
            yield f"broker {target.broker} copies it into {target.path}; roll back again once it is there"


def _reason_to_leave(move: MoveHistory, partition: Partition | None, present: Present) -> str | None:
    if partition is None:
        return "it no longer exists"
    if is_another(move.topic_id, present.topic_ids.get(move.topic)):
        return f"{OTHER_TOPIC}; that one is left as it is"
    if partition.replicas == move.undone_to:
        return None
    if (later := present.changed_by.get(move.topic_partition)) is not None:
        return f"its replicas are {list(partition.replicas)}, {later}"
    down = [] if present.live_brokers is None else sorted(set(move.undone_to).difference(present.live_brokers))
    if down and may_go_back(move, partition):
        away = named_brokers(down, "are not up; start what is down and roll back again, or plan without it")
        return f"its original {away}"
    return None


def may_go_back(move: MoveHistory, partition: Partition) -> bool:
    """True if the list is as the run left it, or as it is to be again."""
    return partition.replicas in (move.undone_to, *move.left)
