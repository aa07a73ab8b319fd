"""The brokers of a twin as processes: they start, stop, crash and freeze, and their log directories fail.

Includes when the controller notices, and what brokers report to it about their copies: ISR changes, and the log
directory of each replica.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import assert_never

from kreassign.errors import InputError
from kreassign.model import TopicPartition
from kreassign.model.cluster import listed_ids
from kreassign.twin.controller.brokers import NO_EPOCH, begin_shutdown, fail_log_dir, fence, register, unfence
from kreassign.twin.controller.leader_and_isr import propose_isr
from kreassign.twin.core import TwinCore
from kreassign.twin.metadata import (
    UNASSIGNED,
    BrokerRegistered,
    PartitionChanged,
    PartitionCreated,
    PartitionState,
    Record,
)
from kreassign.twin.replication import state

# What brokers report to the controller about their copies.

ASSIGNMENT_DELAY_MS = 90
"""Brokers batch their reports of directories for about a tenth of a second; a restarted broker has reported
before its followers' first fetch lets it join an ISR (4.3.1, seen by what stays in the ELR)."""


def report_replica_event(core: TwinCore, fail_log_dir: Callable[[int, str], None], event: state.ReplicaEvent) -> None:
    """Let the broker of an event react to it; `fail_log_dir` takes a directory of a broker offline."""
    match event:
        case state.ReplicaCaughtUp(topic_partition, broker_id):
            _propose_isr(core, topic_partition, joining=broker_id)
        case state.ReplicaFellBehind(topic_partition, broker_id):
            _propose_isr(core, topic_partition, leaving=broker_id)
        case state.FutureCopyCaughtUp(topic_partition, broker_id, path):
            _assign_directories(core, broker_id, {topic_partition: path})
        case state.LogDirFull(broker_id, path):
            fail_log_dir(broker_id, path)
        case state.CopyDeleted():
            pass
        case _:
            assert_never(event)


class DirectoryReports:
    """Reports of brokers about the directory of each replica (KIP-858), sent a little after they learn of it.

    Brokers learn of new partitions, and of those that they have a replica of already and whose record names
    directories. So a replica that a move adds is reported only after the next such record, often the one that ends the
    move (4.3.1: `TopicDelta.localChanges` passes over partitions that the broker had no replica of before).
    """

    def __init__(self, core: TwinCore) -> None:
        self._core = core
        self._pending: set[tuple[TopicPartition, int]] = set()

    def note(self, record: Record, before: PartitionState | None) -> None:
        """Take note of an applied record; `before` is the former state of its partition."""
        match record:
            case PartitionCreated(key):
                known = set(record.replicas)
            case PartitionChanged(key) if record.directories is not None and before is not None:
                known = set(before.replicas)
            case _:
                return
        partition = self._core.metadata.present(key)
        for broker_id in known.intersection(partition.replicas):
            if partition.directory_of(broker_id) == UNASSIGNED and (key, broker_id) not in self._pending:
                self._pending.add((key, broker_id))
                due_ms = self._core.now_ms + ASSIGNMENT_DELAY_MS
                self._core.schedule(due_ms, partial(self._report_if_active, key, broker_id))

    def report_all(self, broker_id: int) -> None:
        """Let a broker that has just started report every replica whose directory the controller does not know."""
        self._report(broker_id, [one.topic_partition for one in self._core.metadata.partitions_on(broker_id)])

    def _report_if_active(self, key: TopicPartition, broker_id: int) -> None:
        self._pending.discard((key, broker_id))
        if self._core.processes.is_responsive(broker_id) and self._core.metadata.is_active(broker_id):
            self._report(broker_id, [key])

    def _report(self, broker_id: int, keys: Iterable[TopicPartition]) -> None:
        """Report directories that the controller does not know, in one request as brokers do."""
        paths = {key: path for key in keys if (path := self._unreported_path(key, broker_id)) is not None}
        if paths:
            _assign_directories(self._core, broker_id, paths)

    def _unreported_path(self, key: TopicPartition, broker_id: int) -> str | None:
        partition = self._core.metadata.partition(key)
        if partition is None or broker_id not in partition.replicas or partition.directory_of(broker_id) != UNASSIGNED:
            return None
        return self._core.replication.readings.log_dir(key, broker_id)


def _assign_directories(core: TwinCore, broker: int, paths: Mapping[TopicPartition, str]) -> None:
    """Report the directories of a broker's replicas to the controller."""
    known = core.metadata.brokers.get(broker)
    if known is not None:
        directories = {log_dir.path: log_dir.directory_id for log_dir in known.log_dirs}
        core.controller.assign_directories(broker, {key: directories[path] for key, path in paths.items()})


def _propose_isr(core: TwinCore, key: TopicPartition, joining: int | None = None, leaving: int | None = None) -> None:
    """Let the leader of a partition request an ISR change (AlterPartition)."""
    partition = core.metadata.partition(key)
    if partition is None or partition.leader not in core.metadata.brokers:
        return
    brokers = [broker for broker in partition.isr if broker not in (joining, leaving)]
    if joining is not None:
        brokers.append(joining)
    # A leader keeps the ISR as a set, and proposes it in the order of broker ids.
    core.commit(propose_isr(core.context, partition, tuple(sorted(brokers))))


# Start, stop, crash and freeze brokers, and end their sessions when the controller would notice.


class BrokerLifecycle(TwinCore):
    """A core whose brokers start, stop, crash and freeze. What a broker cannot report while down, it reports later."""

    def load_brokers(self, registrations: Mapping[int, BrokerRegistered]) -> None:
        """Start from the metadata: fenced or unregistered brokers are down, failed directories are offline.

        `registrations` are the last ones of all brokers, including those that are no longer registered. Called once,
        before any other method.
        """
        self._reports = DirectoryReports(self)
        self.on_record = self._reports.note
        self.on_event = partial(report_replica_event, self, self.fail_log_dir)
        # A broker's own properties stay the same, even after it was unregistered.
        self._registrations = registrations
        self._clean_epochs: dict[int, int] = {}
        self._session_ends_ms: dict[int, int] = {}
        self._failed_dirs: dict[int, set[str]] = {broker_id: set() for broker_id in self.processes.ids}
        self._repaired_dirs: dict[int, set[str]] = {broker_id: set() for broker_id in self.processes.ids}
        for broker_id in registrations.keys() - self.metadata.brokers.keys():
            self._kill(broker_id)
        for broker in list(self.metadata.brokers.values()):
            offline = [log_dir.path for log_dir in broker.log_dirs if log_dir.directory_id in broker.failed_dirs]
            self._failed_dirs[broker.broker_id].update(offline)
            for path in offline:
                self.replication.fail_dir(broker.broker_id, path)
            if broker.fenced:
                self._shut_down(broker.broker_id)

    # --- stopping ---------------------------------------------------------------------------------------------

    def crash(self, broker_id: int) -> None:
        """Kill a broker. The controller notices when its session expires."""
        self._kill(broker_id)
        self._let_session_expire(broker_id)

    def stop(self, broker_id: int) -> None:
        """Shut a broker down cleanly: it hands over its leaderships, then stops, and the controller is informed."""
        self._check_known(broker_id)
        if self.processes.is_frozen(broker_id):
            raise InputError(f"broker {broker_id} is frozen and cannot shut down; unfreeze it first, or crash it")
        if broker_id not in self.metadata.brokers:
            self._kill(broker_id)  # An unregistered broker leads nothing, so the controller is not involved.
            return
        self.commit(begin_shutdown(self.context, broker_id))
        self._shut_down(broker_id)
        self.commit(fence(self.context, broker_id))

    def _shut_down(self, broker_id: int) -> None:
        """Stop a process cleanly, so that its data is trusted after its restart."""
        self._clean_epochs[broker_id] = self.metadata.brokers[broker_id].broker_epoch
        self._kill(broker_id)

    def _kill(self, broker_id: int) -> None:
        self._check_known(broker_id)
        if not self.processes.is_running(broker_id):
            raise InputError(f"broker {broker_id} is down already")
        if self.processes.is_frozen(broker_id):
            self.views.release(broker_id)
        self.processes.kill(broker_id)
        self.replication.crash(broker_id)

    def freeze(self, broker_id: int) -> None:
        """Suspend a process: connections stay open without answers; it neither fetches nor reads metadata records."""
        self._check_known(broker_id)
        processes = self.processes
        if not processes.is_responsive(broker_id):
            raise InputError(f"broker {broker_id} is {'frozen' if processes.is_frozen(broker_id) else 'down'} already")
        processes.freeze(broker_id)
        self.views.hold_back(broker_id)
        self.replication.crash(broker_id)
        self._let_session_expire(broker_id)

    def _let_session_expire(self, broker_id: int) -> None:
        known = self.metadata.brokers.get(broker_id)
        if broker_id not in self._session_ends_ms and known is not None and not known.fenced:
            ends_ms = self._session_ends_ms[broker_id] = self.now_ms + self.settings.session_timeout_ms
            self.schedule(ends_ms, partial(self._end_session, broker_id, ends_ms))

    def _end_session(self, broker_id: int, ends_ms: int) -> None:
        if self._session_ends_ms.get(broker_id) != ends_ms:
            return  # The broker was frozen, and sent a heartbeat in time.
        del self._session_ends_ms[broker_id]
        if broker_id in self.metadata.brokers:
            self.commit(fence(self.context, broker_id))

    # --- starting ---------------------------------------------------------------------------------------------

    def start(self, broker_id: int) -> None:
        """Start a broker that is down; it registers and is unfenced after `start_up_ms`."""
        self._check_known(broker_id)
        if self.processes.is_running(broker_id):
            raise InputError(f"broker {broker_id} is running; stop it first")
        self.processes.start(broker_id)
        self._register_at(self.now_ms + self.settings.start_up_ms, broker_id)

    def _register_at(self, due_ms: int, broker_id: int) -> None:
        self.schedule(due_ms, partial(self._register, broker_id, self.processes.start_count(broker_id)))

    def _register(self, broker_id: int, start_count: int) -> None:
        if not self._is_same_process(broker_id, start_count):
            return
        if broker_id in self._session_ends_ms:
            # The controller refuses the id of a broker whose session has not expired.
            self._register_at(self._session_ends_ms[broker_id], broker_id)
            return
        self._use_repaired_dirs(broker_id)
        self.views.release(broker_id)
        self.commit(register(self.context, self._registrations[broker_id], self._clean_epochs.pop(broker_id, NO_EPOCH)))
        self.replication.restore(broker_id)
        self._rejoin(broker_id)

    def unfreeze(self, broker_id: int) -> None:
        """Let a frozen process continue. Its metadata stays old until it has caught up, after `catch_up_ms`."""
        processes = self.processes
        if not processes.is_frozen(broker_id):
            raise InputError(f"broker {broker_id} is not frozen")
        processes.unfreeze(broker_id)
        self._session_ends_ms.pop(broker_id, None)
        self.replication.restore(broker_id)
        caught_up_ms = self.now_ms + self.settings.catch_up_ms
        self.schedule(caught_up_ms, partial(self._catch_up, broker_id, processes.start_count(broker_id)))

    def _catch_up(self, broker_id: int, start_count: int) -> None:
        if self._is_same_process(broker_id, start_count) and not self.processes.is_frozen(broker_id):
            self.views.release(broker_id)
            self._rejoin(broker_id)

    def _is_same_process(self, broker_id: int, start_count: int) -> bool:
        processes = self.processes
        return processes.is_running(broker_id) and processes.start_count(broker_id) == start_count

    def _rejoin(self, broker_id: int) -> None:
        """Report directories, including those that failed meanwhile; unfence the broker if any directory is left."""
        for path in sorted(self._failed_dirs[broker_id]):
            self._report_failed_dir(broker_id, path)
        known = self.metadata.brokers.get(broker_id)
        if not self.processes.is_responsive(broker_id) or known is None:
            return
        self._reports.report_all(broker_id)
        if known.fenced:
            self.commit(unfence(self.context, broker_id))

    # --- log directories --------------------------------------------------------------------------------------

    def fail_log_dir(self, broker_id: int, path: str) -> None:
        """Take a log directory offline; its broker reports that at once, and crashes if it has no other."""
        self._check_known(broker_id)
        self.replication.fail_dir(broker_id, path)
        self._failed_dirs[broker_id].add(path)
        self._repaired_dirs[broker_id].discard(path)
        if self.processes.is_responsive(broker_id):
            self._report_failed_dir(broker_id, path)

    def repair_log_dir(self, broker_id: int, path: str) -> None:
        """Repair an offline directory with all its data. Its broker uses it after its next start."""
        self._check_known(broker_id)
        if path in self._failed_dirs[broker_id]:
            self._failed_dirs[broker_id].discard(path)
            self._repaired_dirs[broker_id].add(path)

    def _report_failed_dir(self, broker_id: int, path: str) -> None:
        if broker_id not in self.metadata.brokers:
            return
        log_dirs = self.metadata.brokers[broker_id].log_dirs
        (directory,) = (log_dir.directory_id for log_dir in log_dirs if log_dir.path == path)
        if directory not in self.metadata.brokers[broker_id].failed_dirs:
            self.commit(fail_log_dir(self.context, broker_id, directory))
        has_none_left = len(self.metadata.brokers[broker_id].failed_dirs) == len(log_dirs)
        if has_none_left and self.processes.is_running(broker_id):
            self.crash(broker_id)

    def _use_repaired_dirs(self, broker_id: int) -> None:
        for path in sorted(self._repaired_dirs[broker_id]):
            self.replication.restore_dir(broker_id, path)
        self._repaired_dirs[broker_id].clear()

    def _check_known(self, broker_id: int) -> None:
        brokers = self.processes.ids
        if broker_id not in brokers:
            raise InputError(f"there is no broker {broker_id}; there are {listed_ids(brokers)}")
