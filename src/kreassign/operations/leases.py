"""The lease of a cluster around a run: taken before its journal is begun, released when the run is at rest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from kreassign.admin import AdminClient
from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import ClusterBusy, ClusterError, Rejected
from kreassign.executor.journal import active_run, journal_path
from kreassign.executor.lease import (
    GROUP_ID,
    OF_AUTOPILOTS,
    OF_RUNS,
    SESSION_MS,
    ClusterLease,
    Forgone,
    Lease,
    LeaseHolder,
    LeasePolicy,
    LeaseStatus,
    NoLease,
    Taken,
    present_holder,
)
from kreassign.model.authorization import error_text
from kreassign.model.run import Operator
from kreassign.operations.connect import Warn


class Duty(Lease, Protocol):
    """Lease of a process, without which its runs change nothing."""

    def keeping(self, of_run: ClusterLease) -> AbstractContextManager[None]:
        """Keep the lease of a run, too, while the process does something else."""
        ...


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """Run and cluster for which the lease is needed, its operator, and the receiver of warnings.

    A run that has had the lease does not go on without it, nor without its `duty`: then it is lost after the same time.
    """

    run_id: str
    cluster_id: str
    state_dir: Path
    policy: LeasePolicy
    operator: Operator
    warn: Warn
    was_held: bool = False
    duty: Duty | None = None


@dataclass(frozen=True, slots=True)
class OnDuty:
    """Lease of a run that changes nothing either once the process which began it has lost its own: its `duty`."""

    own: Lease
    duty: Lease

    @property
    def status(self) -> LeaseStatus | None:
        """That of the duty where it is lost."""
        return lost_duty(self.duty.status) or self.own.status

    def beat(self) -> LeaseStatus | None:
        """Keep both."""
        duty, own = self.duty.beat(), self.own.beat()
        return lost_duty(duty) or own

    def confirm(self) -> LeaseStatus | None:
        """Confirm both, that of the run last."""
        return lost_duty(self.duty.confirm()) or self.own.confirm()

    def retake(self) -> LeaseStatus | None:
        """Take that of the run again, once the duty is had."""
        return lost_duty(self.duty.retake()) or self.own.retake()


def lost_duty(status: LeaseStatus | None) -> Taken | None:
    """Return why a run changes nothing by the lease of its process: another may have that; None if none has."""
    if isinstance(status, Forgone) and not status.is_usual:
        return Taken(status.reason)
    return status if isinstance(status, Taken) else None


NOT_ASKED = "--lease off does not ask for it"


@contextmanager
def leased(client: AdminClient, wanted: LeaseRequest, clock: Clock = SYSTEM_CLOCK) -> Iterator[Lease]:
    """Hold the lease of the cluster within a `with` statement.

    Raises ClusterBusy if another run holds it, none can be had and it is required, or another process has the duty;
    ClusterError if the cluster does not answer.
    """
    if wanted.policy is LeasePolicy.OFF:
        yield NoLease(Forgone(NOT_ASKED, is_usual=True))
        return
    holder = LeaseHolder(wanted.run_id, wanted.operator.user, wanted.operator.host, clock.now_ms())
    kind = OF_RUNS if wanted.duty is None else replace(OF_RUNS, session_ms=OF_AUTOPILOTS.session_ms)
    lease = ClusterLease(client, clock, holder, wanted.policy, wanted.was_held, kind=kind)
    try:
        _take(client, lease, wanted)
        if wanted.duty is None:
            yield lease
        else:
            with wanted.duty.keeping(lease):
                # A cluster may keep groups only since the lease of this run: another process may have the duty by now.
                if lost := lost_duty(wanted.duty.retake()):
                    raise ClusterBusy(lost.reason)
                yield OnDuty(lease, wanted.duty)
    finally:
        lease.release()


def refuse_if_leased(client: AdminClient, wanted: LeaseRequest) -> None:
    """Raise ClusterBusy if another run holds the lease in two looks; taking the lease asks again in any other case.

    One answer may be of before the last holder left, this command's own step among them.
    """
    if wanted.policy is LeasePolicy.OFF:
        return

    def another() -> LeaseHolder | None:
        found = present_holder(client)
        is_ours = found is None or found.run_id == wanted.run_id or _is_dead(found, wanted)
        return None if is_ours else found

    try:
        holder = another() and another()
    except ClusterError:
        return
    if holder is not None:
        raise _refusal(f"{holder} holds the lease of the cluster")


def _take(client: AdminClient, lease: ClusterLease, wanted: LeaseRequest) -> None:
    status = _taken(client, lease, wanted)
    if isinstance(status, Taken):
        raise _refusal(status.reason)
    if isinstance(status, Forgone) and not status.is_usual:
        wanted.warn(f"this run goes on without the lease of the cluster: {status.reason}")


def _taken(client: AdminClient, lease: ClusterLease, wanted: LeaseRequest) -> LeaseStatus:
    try:
        status = lease.take()
        if isinstance(status, Taken) and (holder := present_holder(client)) and _is_dead(holder, wanted):
            with suppress(Rejected):  # its session may have expired just now
                client.leave_group(GROUP_ID, holder.run_id)
            status = lease.take()
    except ClusterError as error:
        raise ClusterError(
            f"nothing was changed, for another run may hold the lease of the cluster: its coordinator does not answer "
            f"({error_text(error)}). Give the command again once it does; `--lease off` does not ask"
        ) from error
    return status


def _is_dead(holder: LeaseHolder, wanted: LeaseRequest) -> bool:
    """True if the holder is a run of this host and state directory without a process."""
    journal = journal_path(wanted.state_dir, wanted.cluster_id, holder.run_id)
    is_ours = holder.host == wanted.operator.host and journal.exists()
    return is_ours and active_run(wanted.state_dir, wanted.cluster_id) is None


def _refusal(reason: str) -> ClusterBusy:
    return ClusterBusy(
        f"{reason}; one run at a time may change a cluster, whatever the machine. Wait for its end, or end it there "
        f"(`kreassign cancel`). A process that is gone loses the lease {SESSION_MS // 1000} s later; `--lease off` "
        "does not ask"
    )
