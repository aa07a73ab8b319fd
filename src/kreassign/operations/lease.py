"""The lease of a cluster around a run: taken before its journal is begun, let go when the run is at rest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kreassign.admin import AdminClient
from kreassign.clock import Clock, SystemClock
from kreassign.errors import ClusterError, InputError, Rejected
from kreassign.executor.events import Operator
from kreassign.executor.journal import active_run, journal_path
from kreassign.executor.lease import (
    NO_LEASE,
    ClusterLease,
    Forgone,
    Held,
    Lease,
    LeaseHolder,
    LeasePolicy,
    LeaseStatus,
    Taken,
    present_holder,
)
from kreassign.executor.lease.lease import GROUP_ID, OFFSETS_TOPIC, SESSION_MS
from kreassign.executor.lease.originals import read_record, throttle_settings, write_record
from kreassign.executor.lease.record import left_settings, present_values
from kreassign.executor.throttle.ledger import ConfigValue
from kreassign.executor.throttle.originals import NoRecord, OriginalSettings
from kreassign.model import ConfigResource
from kreassign.model.authorization import refused_permission
from kreassign.model.error_codes import GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, has_code
from kreassign.operations.warnings import Warn

SYSTEM_CLOCK = SystemClock()
NO_RECORD = NoRecord()


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """For which run of which cluster the lease is wanted, who executes it, and who hears warnings.

    `scope` are the topics and brokers whose throttles a new run may change, and `originals` what it will leave there
    where that is not what it found. One that `is_resumed` has changed some already: its scope is what it may change
    besides from now on, if there is anything.
    """

    run_id: str
    cluster_id: str
    state_dir: Path
    policy: LeasePolicy
    operator: Operator
    warn: Warn
    scope: frozenset[ConfigResource] | None = None
    originals: tuple[ConfigValue, ...] = ()
    is_resumed: bool = False


@contextmanager
def leased(client: AdminClient, wanted: LeaseRequest, clock: Clock = SYSTEM_CLOCK) -> Iterator[Lease]:
    """Hold the lease of the cluster within a `with` statement.

    Raises InputError if another run holds it, or none can be had and it is required; ClusterError if it is required
    and the cluster does not answer.
    """
    if wanted.policy is LeasePolicy.OFF:
        yield NO_LEASE
        return
    holder = LeaseHolder(wanted.run_id, wanted.operator.user, wanted.operator.host, clock.now_ms())
    lease = ClusterLease(client, clock, holder, wanted.policy)
    try:
        _take(client, lease, wanted)
        _keep_record(client, lease, wanted, clock)
        yield lease
        _clear_record(client, lease)
    finally:
        lease.release()


def refuse_if_leased(client: AdminClient, wanted: LeaseRequest) -> None:
    """Raise InputError if another run holds the lease now; whoever cannot be asked is asked again when it is taken."""
    if wanted.policy is LeasePolicy.OFF:
        return
    try:
        holder = present_holder(client)
    except ClusterError:
        return
    if holder is not None and holder.run_id != wanted.run_id and not _is_dead(holder, wanted):
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
            _expel(client, holder)
            status = lease.take()
    except ClusterError as error:
        if wanted.policy is LeasePolicy.REQUIRE:
            raise
        status = lease.status = Forgone(f"its coordinator does not answer: {error}")
    return status


def _is_dead(holder: LeaseHolder, wanted: LeaseRequest) -> bool:
    """Whether a holder is a run of this host and state directory that no process executes any more."""
    journal = journal_path(wanted.state_dir, wanted.cluster_id, holder.run_id)
    is_ours = holder.host == wanted.operator.host and journal.exists()
    return is_ours and active_run(wanted.state_dir, wanted.cluster_id) is None


def _expel(client: AdminClient, holder: LeaseHolder) -> None:
    try:
        client.leave_group(GROUP_ID, holder.run_id)
    except Rejected:
        return  # its session was over just now


def _refusal(reason: str) -> InputError:
    return InputError(
        f"{reason}; one run at a time may change a cluster, whatever the machine. Wait for its end, or end it there "
        f"(`kreassign cancel`). A process that is gone loses the lease {SESSION_MS // 1000} s later; `--lease off` "
        "does not ask"
    )


# --- what was set before anyone's run ------------------------------------------------------------------------------


def _keep_record(client: AdminClient, lease: ClusterLease, wanted: LeaseRequest, clock: Clock) -> None:
    """Write down what is set. Where an earlier run did not restore everything, its record holds for what it knows."""
    if lease.membership is None or wanted.scope is None:
        return
    try:
        found, _ = throttle_settings(client)
        present = {one.key: one for one in found} | {one.key: one for one in wanted.originals}
        record = read_record(client)
        if wanted.is_resumed and record is None:
            return  # What is set now is the run's own, and no record of what was before.
        if record is None or not (wanted.is_resumed or left_settings(record, found)):
            record = present_values(wanted.run_id, clock.now_ms(), present.values(), wanted.scope)
        write_record(client, lease.membership, record.extended(present.values(), wanted.scope))
    except (ClusterError, InputError) as error:
        if wanted.policy is LeasePolicy.REQUIRE:
            raise
        wanted.warn(f"what throttles were set before this run is not recorded in the cluster: {_with_remedy(error)}")


def originals_of(client: AdminClient, policy: LeasePolicy) -> OriginalSettings:
    """What the cluster's own record tells of throttles that earlier runs, of any machine, left."""
    if policy is LeasePolicy.OFF or OFFSETS_TOPIC not in client.describe_topics([OFFSETS_TOPIC]).ok:
        return NO_RECORD
    try:
        return read_record(client) or NO_RECORD
    except ClusterError:
        return NO_RECORD


def _clear_record(client: AdminClient, lease: ClusterLease) -> None:
    """Remove the record once everything is as it says. What cannot be told now is told to the next run."""
    if lease.membership is None or not isinstance(lease.confirm(), Held):
        return
    try:
        record = read_record(client)
        present, unread = throttle_settings(client)
        if record is not None and not unread and not left_settings(record, present):
            write_record(client, lease.membership, None)
    except (ClusterError, InputError):
        return


def _with_remedy(error: ClusterError | InputError) -> str:
    if named := refused_permission(error):
        return named
    if has_code(error, TOPIC_AUTHORIZATION_FAILED):
        return f"permission is missing: READ on the topic __consumer_offsets ({error})"
    if has_code(error, GROUP_AUTHORIZATION_FAILED):
        return f"permission is missing: READ on the group {GROUP_ID} ({error})"
    return str(error)
