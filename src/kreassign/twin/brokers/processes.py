"""The brokers as processes: up, frozen or down, and what the controller gets to know of it and when."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kreassign.errors import InputError
from kreassign.twin.brokers.reports import tell_directories
from kreassign.twin.controller.brokers import (
    NO_EPOCH,
    Registration,
    begin_shutdown,
    fail_log_dir,
    fence,
    register,
    unfence,
)

if TYPE_CHECKING:
    from kreassign.twin.cluster import Twin


class Processes:
    """One process per broker. What a broker cannot tell the controller while it is down it tells when it is back."""

    def __init__(self, twin: Twin, broker_ids: tuple[int, ...]) -> None:
        self._twin = twin
        self._start_counts = dict.fromkeys(broker_ids, 1)
        self._running = set(broker_ids)
        self._frozen: set[int] = set()
        self._clean_epochs: dict[int, int] = {}
        self._session_ends_ms: dict[int, int] = {}
        self._broken_dirs: dict[int, set[str]] = {broker_id: set() for broker_id in broker_ids}
        self._repaired_dirs: dict[int, set[str]] = {broker_id: set() for broker_id in broker_ids}

    @property
    def ids(self) -> tuple[int, ...]:
        """All brokers that there are processes of."""
        return tuple(sorted(self._start_counts))

    def is_running(self, broker_id: int) -> bool:
        """Whether there is a process, frozen or not."""
        return broker_id in self._running

    def is_frozen(self, broker_id: int) -> bool:
        """Whether the process is there and does nothing."""
        return broker_id in self._frozen

    def start_count(self, broker_id: int) -> int:
        """How often the process has been started; 1 for whatever is not a broker."""
        return self._start_counts.get(broker_id, 1)

    def is_responsive(self, broker_id: int) -> bool:
        """Whether there is a process that does something."""
        return broker_id in self._running and broker_id not in self._frozen

    def take_over(self) -> None:
        """Begin as the metadata has it: without the brokers that are fenced, without directories that are offline."""
        for broker in list(self._twin.metadata.brokers.values()):
            offline = [log_dir.path for log_dir in broker.log_dirs if log_dir.directory_id in broker.failed_dirs]
            self._broken_dirs[broker.broker_id].update(offline)
            for path in offline:
                self._twin.replication.fail_dir(broker.broker_id, path)
            if broker.fenced:
                self._leave_off(broker.broker_id)

    # --- going ------------------------------------------------------------------------------------------------

    def crash(self, broker_id: int) -> None:
        """Kill a broker. The controller notices when its session is over."""
        self.kill(broker_id)
        self._let_session_lapse(broker_id)

    def stop(self, broker_id: int) -> None:
        """Shut a broker down in order: it hands over what it leads, then goes, and the controller knows."""
        self._known(broker_id)
        if broker_id in self._frozen:
            raise InputError(f"broker {broker_id} is frozen and cannot shut down; thaw it first, or crash it")
        twin = self._twin
        twin.commit(begin_shutdown(twin.context, broker_id))
        self._leave_off(broker_id)
        twin.commit(fence(twin.context, broker_id))

    def _leave_off(self, broker_id: int) -> None:
        """End a process that has shut down in order, so that what it has is trusted when it is back."""
        self._clean_epochs[broker_id] = self._twin.metadata.brokers[broker_id].broker_epoch
        self.kill(broker_id)

    def kill(self, broker_id: int) -> None:
        """End a process without telling anybody."""
        self._known(broker_id)
        if broker_id not in self._running:
            raise InputError(f"broker {broker_id} is down already")
        self._running.discard(broker_id)
        self._wake(broker_id)
        self._twin.replication.crash(broker_id)

    def freeze(self, broker_id: int) -> None:
        """Suspend a process: its connections stay and get no answer, it neither fetches nor learns anything."""
        self._known(broker_id)
        if not self.is_responsive(broker_id):
            raise InputError(f"broker {broker_id} is {'frozen' if broker_id in self._frozen else 'down'} already")
        self._frozen.add(broker_id)
        self._twin.views.hold_back(broker_id)
        self._twin.replication.crash(broker_id)
        self._let_session_lapse(broker_id)

    def _let_session_lapse(self, broker_id: int) -> None:
        twin = self._twin
        if broker_id not in self._session_ends_ms and not twin.metadata.brokers[broker_id].fenced:
            ends_ms = self._session_ends_ms[broker_id] = twin.now_ms + twin.settings.session_timeout_ms
            twin.at(ends_ms, partial(self._end_session, broker_id, ends_ms))

    def _end_session(self, broker_id: int, ends_ms: int) -> None:
        if self._session_ends_ms.get(broker_id) != ends_ms:
            return  # The broker was frozen, and sent a heartbeat in time.
        del self._session_ends_ms[broker_id]
        if broker_id in self._twin.metadata.brokers:
            self._twin.commit(fence(self._twin.context, broker_id))

    # --- coming back ------------------------------------------------------------------------------------------

    def start(self, broker_id: int) -> None:
        """Start a broker that is down; it is back in service after `start_up_ms`."""
        self._known(broker_id)
        if broker_id in self._running:
            raise InputError(f"broker {broker_id} is running; stop it first")
        self._start_counts[broker_id] += 1
        self._running.add(broker_id)
        self._register_at(self._twin.now_ms + self._twin.settings.start_up_ms, broker_id)

    def _register_at(self, due_ms: int, broker_id: int) -> None:
        self._twin.at(due_ms, partial(self._register, broker_id, self._start_counts[broker_id]))

    def _register(self, broker_id: int, life: int) -> None:
        twin = self._twin
        known = twin.metadata.brokers.get(broker_id)
        if known is None or broker_id not in self._running or self._start_counts[broker_id] != life:
            return
        if broker_id in self._session_ends_ms:
            # The controller takes nobody in under the id of a broker that it believes to be alive.
            self._register_at(self._session_ends_ms[broker_id], broker_id)
            return
        registration = Registration(
            broker_id,
            known.host,
            known.port,
            known.rack,
            known.log_dirs,
            previous_epoch=self._clean_epochs.pop(broker_id, NO_EPOCH),
        )
        self._use_repaired_dirs(broker_id)
        twin.views.release(broker_id)
        twin.commit(register(twin.context, registration))
        twin.replication.restore(broker_id)
        self._serve_again(broker_id)

    def unfreeze(self, broker_id: int) -> None:
        """Let a frozen process go on. It knows what it knew, until it has caught up after `catch_up_ms`."""
        if broker_id not in self._frozen:
            raise InputError(f"broker {broker_id} is not frozen")
        self._frozen.discard(broker_id)
        self._session_ends_ms.pop(broker_id, None)
        self._twin.replication.restore(broker_id)
        caught_up_ms = self._twin.now_ms + self._twin.settings.catch_up_ms
        self._twin.at(caught_up_ms, partial(self._catch_up, broker_id, self._start_counts[broker_id]))

    def _catch_up(self, broker_id: int, life: int) -> None:
        if self._start_counts[broker_id] == life and self.is_responsive(broker_id):
            self._twin.views.release(broker_id)
            self._serve_again(broker_id)

    def _serve_again(self, broker_id: int) -> None:
        """Tell of directories that broke meanwhile, and be unfenced if any is left."""
        twin = self._twin
        for path in sorted(self._broken_dirs[broker_id]):
            self._report_failure(broker_id, path)
        if (
            self.is_responsive(broker_id)
            and broker_id in twin.metadata.brokers
            and twin.metadata.brokers[broker_id].fenced
        ):
            twin.commit(unfence(twin.context, broker_id))
            tell_directories(twin, broker_id)

    def _wake(self, broker_id: int) -> None:
        if broker_id in self._frozen:
            self._frozen.discard(broker_id)
            self._twin.views.release(broker_id)

    # --- log directories --------------------------------------------------------------------------------------

    def fail_log_dir(self, broker_id: int, path: str) -> None:
        """Take a log directory offline; its broker tells the controller at once. One without any other is gone."""
        self._known(broker_id)
        self._twin.replication.fail_dir(broker_id, path)
        self._broken_dirs[broker_id].add(path)
        self._repaired_dirs[broker_id].discard(path)
        if self.is_responsive(broker_id):
            self._report_failure(broker_id, path)

    def repair_log_dir(self, broker_id: int, path: str) -> None:
        """Mend a directory that is offline, with all that was in it. Its broker uses it after its next start."""
        self._known(broker_id)
        if path in self._broken_dirs[broker_id]:
            self._broken_dirs[broker_id].discard(path)
            self._repaired_dirs[broker_id].add(path)

    def _report_failure(self, broker_id: int, path: str) -> None:
        twin = self._twin
        log_dirs = twin.metadata.brokers[broker_id].log_dirs
        (directory,) = (log_dir.directory_id for log_dir in log_dirs if log_dir.path == path)
        if directory not in twin.metadata.brokers[broker_id].failed_dirs:
            twin.commit(fail_log_dir(twin.context, broker_id, directory))
        if broker_id in self._running and len(twin.metadata.brokers[broker_id].failed_dirs) == len(log_dirs):
            self.crash(broker_id)

    def _use_repaired_dirs(self, broker_id: int) -> None:
        for path in sorted(self._repaired_dirs[broker_id]):
            self._twin.replication.restore_dir(broker_id, path)
        self._repaired_dirs[broker_id].clear()

    def _known(self, broker_id: int) -> None:
        if broker_id not in self._start_counts or broker_id not in self._twin.metadata.brokers:
            raise InputError(f"there is no broker {broker_id}; there are {sorted(self._twin.metadata.brokers)}")
