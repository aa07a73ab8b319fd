"""Making the first replica of every completed move its leader, a step at a time: an election moves load at once."""

from __future__ import annotations

from kreassign.executor.events import CallFailed, LeadersElected, TimePassed
from kreassign.executor.instructions import ElectLeaders, Wait
from kreassign.executor.state import restoring
from kreassign.executor.state.execution import Execution, Instructions, Phase
from kreassign.executor.state.move import MoveRecord, MoveStatus
from kreassign.executor.state.rows import Rows, row


def enter(run: Execution) -> Instructions:
    """Begin with the partitions that are led by another than their first replica."""
    run.to_elect = tuple(partition for partition, record in run.records.items() if _waits_for_leader(record))
    return _step(run)


def _step(run: Execution) -> Instructions:
    if not run.to_elect:
        return restoring.enter(run)
    run.phase = Phase.ELECTING
    at_once = run.pace.elections_per_step
    now, run.to_elect = run.to_elect[:at_once], run.to_elect[at_once:]
    return (ElectLeaders(now),)


def _waits_for_leader(record: MoveRecord) -> bool:
    observation = record.observation
    return (
        record.status is MoveStatus.COMPLETE and observation is not None and observation.leader != record.move.target[0]
    )


def _after_election(run: Execution, event: LeadersElected) -> Instructions:
    for refusal in event.refused:
        run.note(f"{refusal.topic_partition} has not its preferred leader: {refusal.message}")
    return (Wait(),) if run.to_elect else restoring.enter(run)


def _next_step(run: Execution, _: TimePassed) -> Instructions:
    return _step(run)


def _no_election(run: Execution, event: CallFailed) -> Instructions:
    run.note(f"preferred leaders could not be elected: {event.message}")
    return restoring.enter(run)


ROWS: Rows = {
    (Phase.ELECTING, LeadersElected): row(_after_election, Phase.ELECTING, Phase.RESTORING),
    (Phase.ELECTING, TimePassed): row(_next_step, Phase.ELECTING),
    (Phase.ELECTING, CallFailed): row(_no_election, Phase.RESTORING),
}
