"""The lease of autopilots: one process looks after a cluster at a time, whatever the machine and its state directory.

It is a lease as runs have it (`executor/lease.py`), in a group of its own. A process without it stands by. One that
loses it changes nothing more: its looks, its runs and each of their requests confirm it first. Where the coordinator
does not answer, or the client may not use the group, nobody knows who has it: then findings are told, and nothing is
repaired. Where the cluster keeps no groups yet, there is none to hold, and the lease of a run decides who acts.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kreassign.admin import AdminClient
from kreassign.autopilot.observation import Absent, Known, Perhaps, Unknown
from kreassign.clock import Clock
from kreassign.errors import ClusterError, InputError, StandsBy, unforeseen_named
from kreassign.executor.journal import active_run_in
from kreassign.executor.lease import (
    CALL_TIMEOUT_MS,
    OF_AUTOPILOTS,
    ClusterLease,
    Forgone,
    Held,
    LeaseHolder,
    LeaseStatus,
    Taken,
    present_holder,
)
from kreassign.model.authorization import error_text
from kreassign.model.run import Operator
from kreassign.model.text import format_seconds
from kreassign.operations.autopilot_journal import FORMER, was_here
from kreassign.operations.autopilot_keeper import LOST_S
from kreassign.operations.connect import Warn, tell_nobody
from kreassign.operations.leases import lost_duty
from kreassign.operations.run import new_run_id
from kreassign.operations.whole_file import PRIVATE_MODE, write_state


class AutopilotLease:
    """Lease of a cluster for one process, as runs ask for it, too; without `take` it asks for nothing (dry runs)."""

    def __init__(self, client: AdminClient, operator: Operator, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._now_s = clock.monotonic_s
        # Two hosts that start in one millisecond have ids of their own: with one, each would take the other's place.
        name = f"autopilot-{new_run_id(clock.now_ms())}-{secrets.token_hex(4)}"
        holder = LeaseHolder(name, operator.user, operator.host, clock.now_ms())
        self._lease = ClusterLease(client, clock, holder, kind=OF_AUTOPILOTS)
        self._of_run: ClusterLease | None = None
        self._asked_s, self._is_warned = 0.0, False
        # Folder of decisions that does not name this process yet.
        self._folder: Path | None = None

    def take(self, folder: Path, *, takes_over: bool = False) -> None:
        """Take it, also from a process of this state directory that is gone, or (`takes_over`) from any process.

        The `folder` of decisions names the last process that had it here. Raises StandsBy while another holds it.
        """
        self._asked_s = self._now_s()
        status = self._take()
        if isinstance(status, Taken) and (holder := status.holder) and (takes_over or _is_dead(holder, folder)):
            if takes_over and (run := self._run_of(holder)):
                raise StandsBy(f"{run}; this one goes on when that is over, or lost")
            with suppress(ClusterError):  # its session may have expired just now
                self._client.leave_group(OF_AUTOPILOTS.group_id, holder.run_id, timeout_ms=CALL_TIMEOUT_MS)
            status = self._take()
        self.refuse()
        self._folder = folder
        self._name_holder()

    def _name_holder(self) -> None:
        """Name this process as the one that had the lease here last, once it has it. Raises InputError."""
        if isinstance(self._lease.status, Held) and self._folder is not None:
            path, left = self._folder / FORMER, "nothing was begun"
            write_state(path, self._lease.holder.run_id, "the name of this process", left, mode=PRIVATE_MODE)
            self._folder = None

    def _asked(self, ask: Callable[[], LeaseStatus | None]) -> LeaseStatus | None:
        self._asked_s = self._now_s()
        status = ask()
        with suppress(InputError):  # the next answer tries again
            self._name_holder()
        return status

    def _run_of(self, holder: LeaseHolder) -> str:
        """Sentence about a run that another host may execute; empty if none does."""
        try:
            run = present_holder(self._client)
        except ClusterError as error:
            return f"whether {holder} executes a run could not be read: {error_text(error)}"
        return f"{run} holds the lease of the cluster" if run is not None else ""

    def _take(self) -> LeaseStatus | None:
        try:
            return self._lease.take()
        except ClusterError as error:
            self._lease.status = Taken(f"its coordinator does not answer: {error_text(error)}")
            return self._lease.status

    def release(self) -> None:
        """Let another process take it at once."""
        self._lease.release()

    def refuse(self) -> None:
        """Raise StandsBy if another process has it."""
        if isinstance(watcher := self.watcher, Known):
            session = format_seconds(OF_AUTOPILOTS.session_ms / 1000)
            raise StandsBy(f"{watcher.value}; this one goes on when that ends, or was not heard of for {session}")

    def keep(self) -> None:
        """Confirm it before a look, or take it again where it is free. Raises StandsBy."""
        if lost_duty(self.confirm()) and self._lease.membership is None:
            self.retake()
        self.refuse()

    def rest(self, seconds: float) -> None:
        """Let time pass between looks, and keep it. Raises StandsBy at once when another process has it."""
        until_s = self._now_s() + seconds
        while (left_s := until_s - self._now_s()) > 0:
            self._clock.sleep(min(left_s, self._lease.beat_s))
            if isinstance(self.beat(), Taken):
                self.keep()

    def beat_beside(self, client: AdminClient, warn: Warn = tell_nobody) -> None:
        """Send heartbeats by a client of its own, from a thread, while the process plans or looks for minutes.

        They keep the lease of the run that it executes, too, which would expire during a look beside that run. A
        process that has asked for nothing itself for long hangs: it loses both. An error that nobody foresaw is told
        once, and ends no thread.
        """
        if self._now_s() - self._asked_s >= LOST_S:
            return
        for lease in (self._lease, self._of_run):
            if lease is None:
                continue
            try:
                with suppress(ClusterError), unforeseen_named():
                    lease.beat_beside(client)
            except InputError as error:
                if not self._is_warned:
                    self._is_warned = True
                    warn(f"a heartbeat of {lease.kind.name} failed, and others follow: {error}")

    @property
    def beat_s(self) -> float:
        """Interval of heartbeats."""
        return self._lease.beat_s

    @property
    def watcher(self) -> Perhaps[str]:
        """Another process that looks after the cluster; Absent where this one may act."""
        match self._lease.status:
            case Taken(holder=LeaseHolder() as holder) if holder.run_id != self._lease.holder.run_id:
                return Known(f"{holder.user}@{holder.host} looks after the cluster ({holder.run_id})")
            case Taken(reason=reason) | Forgone(reason=reason, is_usual=False):
                return Unknown(reason)
        return Absent()

    @property
    def is_held(self) -> bool:
        """True if this process has it, by the last answer."""
        return isinstance(self._lease.status, Held)

    @contextmanager
    def keeping(self, of_run: ClusterLease) -> Iterator[None]:
        """Keep the lease of a run, too, by the heartbeats from the thread."""
        self._of_run = of_run
        try:
            yield
        finally:
            self._of_run = None

    # --- as a lease that runs confirm beside their own -----------------------------------------------------------

    @property
    def status(self) -> LeaseStatus | None:
        """Status of the last call."""
        return self._lease.status

    def beat(self) -> LeaseStatus | None:
        """Keep it; queries the coordinator only at intervals."""
        return self._asked(self._lease.beat)

    def beat_at_times(self) -> None:
        """Keep it during work that asks thousands of times: once an interval, also while nobody answers."""
        if self._now_s() - self._asked_s >= self.beat_s:
            self.beat()

    def confirm(self) -> LeaseStatus | None:
        """Confirm that this process has it still."""
        return self._asked(self._lease.confirm)

    def retake(self) -> LeaseStatus | None:
        """Take it where it is free. A member whose coordinator is silent waits for that."""
        return self._asked(self._lease.retake if self._lease.membership is None else self._lease.confirm)


def _is_dead(holder: LeaseHolder, folder: Path) -> bool:
    """True if the holder was a process of this state directory, where none is now."""
    return was_here(folder, holder) and active_run_in(folder) is None
