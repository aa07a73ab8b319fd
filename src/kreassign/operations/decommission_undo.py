"""Undo a decommission: call it off, or roll back a drain because a guard demanded that."""

from __future__ import annotations

from dataclasses import dataclass

from kreassign.admin import AdminClient
from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import ClusterError, InputError
from kreassign.executor.brokers import BrokerReading, is_our_cordon, listed_brokers, read_brokers, some_partitions
from kreassign.executor.cluster.port import confirmed_writes
from kreassign.executor.history.run_history import UnreadableJournal, left_behind
from kreassign.executor.journal import active_run
from kreassign.model.reassignment import DOCTOR_TELLS
from kreassign.model.run import RunHistory
from kreassign.operations.broker_changes import (
    check_uncordon,
    forget_cordons,
    forget_decommissions,
    kept_by_maintenance,
    left_to_others,
    may_be_maintained,
    noted_cordons,
    readable_notes,
    sole_change,
    uncordon,
)
from kreassign.operations.connect import Tell
from kreassign.operations.drains import drains_of, refuse_shared_drains
from kreassign.operations.rollback import Rollback, RollbackRequest, end_run_to_undo, roll_back
from kreassign.operations.run import RunContext

# Roll back a drain because a guard demanded that.


def undo_drain(
    client: AdminClient,
    found: RunHistory,
    brokers: tuple[int, ...],
    context: RunContext,
    tell: Tell,
    clock: Clock = SYSTEM_CLOCK,
) -> Rollback:
    """Roll back the run of a drain, for which its brokers are opened first."""
    uncordon_drained(client, brokers, context, tell, clock)
    return roll_back(client, RollbackRequest(found.run_id), context, clock)


def uncordon_drained(
    client: AdminClient, brokers: tuple[int, ...], context: RunContext, tell: Tell, clock: Clock = SYSTEM_CLOCK
) -> None:
    """Uncordon live brokers before their drain is rolled back: Kafka 4.4 lets no list name a cordoned one.

    Those that others had cordoned before, or that are in maintenance or may be, stay closed. A broker with a noted
    cordon is opened also where it shows none: it may lag, or the process that opened it died before it noted that.
    """
    cluster_id = client.describe_cluster().cluster_id
    others = "no unfinished decommission of this state directory cordoned it"
    try:
        noted = noted_cordons(context.state_dir, cluster_id)
    except InputError as error:
        noted, others = frozenset(), f"it is not known who cordoned it ({error})"
    with sole_change(client, context, "decommission", clock) as confirm:
        try:
            maintained = kept_by_maintenance(client, context, brokers)
        except (ClusterError, InputError) as error:
            maintained = may_be_maintained(brokers, error)
        for one in read_brokers(client, brokers).brokers:
            shown = None if one.cordon is None else one.cordon.value
            if one.cordon is None or not (is_our_cordon(shown) or (not shown and one.broker in noted)):
                continue
            why = maintained.get(one.broker, "" if one.broker in noted else others)
            if why:
                tell(f"broker {one.broker} stays cordoned, since {why}")
                continue
            tell(done := uncordon(confirmed_writes(client, confirm), one, context, is_ours=True))
            forget_cordons(context.state_dir, cluster_id, (one.broker,), (done,))


# Call it off.


@dataclass(frozen=True, slots=True)
class CancelledDecommission:
    """Steps taken, in words, and the runs of this state directory that drained the brokers, latest first.

    Their moves stay in place until they are rolled back.
    """

    steps: tuple[str, ...]
    run_ids: tuple[str, ...]


def cancel_decommission(
    client: AdminClient, brokers: tuple[int, ...], context: RunContext, clock: Clock = SYSTEM_CLOCK
) -> CancelledDecommission:
    """Cancel the run that drains these brokers, if there is one, and uncordon those that are not in maintenance.

    Raises InputError, ClusterError, and JournalUnreadable while a journal may be that of such a run. Nothing is changed
    while notes of cordons, or what an unfinished run was for, cannot be read.
    """
    cluster_id = client.describe_cluster().cluster_id
    readable_notes(context.state_dir, cluster_id)
    steps, unfinished = list[str](), list[str]()
    for run in left_behind(context.state_dir, cluster_id):
        if isinstance(run, UnreadableJournal):
            raise run.error
        unfinished.append(run.run_id)
    if (active := active_run(context.state_dir, cluster_id)) is not None:
        unfinished.insert(0, active)
    # All that can keep a broker cordoned is known before its run is cancelled.
    kept = kept_by_maintenance(client, context, brokers)
    for one in read_brokers(client, brokers).brokers:
        if one.broker not in kept:
            check_uncordon(one, context)
    drains = [*drains_of(context.state_dir, cluster_id, brokers)]
    refuse_shared_drains(context.state_dir, cluster_id, brokers, unfinished)
    for run_id in (one for one in unfinished if one in drains):
        end_run_to_undo(client, RollbackRequest(run_id), context)
        steps.append(f"cancel run {run_id}")
    with sole_change(client, context, "decommission", clock) as confirm:
        kept, noted = kept_by_maintenance(client, context, brokers), noted_cordons(context.state_dir, cluster_id)
        found = read_brokers(client, brokers).brokers
        for one in found:
            if one.broker in kept:  # also where it shows no cordon: it may lag
                steps.append(_left_as_it_is(one, kept[one.broker]))
            else:
                is_ours = one.broker in noted
                steps.append(uncordon(confirmed_writes(client, confirm), one, context, is_ours=is_ours))
            forget_cordons(context.state_dir, cluster_id, (one.broker,), steps)
        forget_decommissions(context.state_dir, cluster_id, brokers, steps)
    if going_on := sorted({name for one in found for name in one.leaving}):
        others = ", ".join(one for one in unfinished if one not in drains)
        by = f"maybe by run {others}, which is no drain of it" if others else "by no run of this state directory"
        steps.append(
            f"still on the way off {listed_brokers(brokers)}, {by}: {some_partitions(going_on)}; {DOCTOR_TELLS} to "
            "cancel it"
        )
    return CancelledDecommission(tuple(steps), tuple(reversed(drains)))


def _left_as_it_is(one: BrokerReading, why: str) -> str:
    if not one.may_be_cordoned:
        return f"broker {one.broker} is not cordoned"
    shown = None if one.cordon is None else one.cordon.value
    if shown and not is_our_cordon(shown):
        return left_to_others(one.broker, shown)
    return f"broker {one.broker} stays {'cordoned' if shown else 'as it is'}, since {why}"
