"""Inspections of the cluster during the moves, what guards make of them, and destinations that are gone."""

from __future__ import annotations

from collections.abc import Iterable

from kreassign.executor.events import HealthObserved, VerdictsRecorded
from kreassign.executor.guards import GuardInputs, Reaction, Verdict, evaluate
from kreassign.executor.instructions import CheckHealth
from kreassign.executor.state import disk_admission
from kreassign.executor.state.execution import Ending, Execution
from kreassign.executor.state.move import MoveStatus
from kreassign.model import TopicPartition

INSPECT_EVERY_MS = 30_000
"""An inspection asks for all topics, so it is not made with every look."""

FRESH_MS = 10_000
"""Before moves are started, an inspection may be so old."""

GONE_MS = 60_000
"""A destination that is away for so long gets no more copies: a restart takes less."""


def is_due(run: Execution, at_ms: int) -> bool:
    """Whether to inspect the cluster before going on."""
    if not (run.reactions or run.awaited):
        return False
    patience_ms = FRESH_MS if run.starting else INSPECT_EVERY_MS
    return run.inspected_ms is None or at_ms - run.inspected_ms >= patience_ms


def inspection(run: Execution) -> CheckHealth:
    """What to ask for."""
    return CheckHealth(
        tuple(record.step for record in run.active), tuple(run.pending_restores.values()), run.first_health
    )


def judge(run: Execution, event: HealthObserved) -> tuple[Verdict, ...]:
    """What the guards say; what they said before is not repeated, whatever its figures are by now."""
    health = event.health
    run.inspected_ms = event.at_ms
    wanted = disk_admission.take_stock(run, health)
    run.first_health = run.first_health or health
    destinations = run.index.destinations
    for present in health.foreign_configs:
        # What somebody else has set since is theirs: neither overwritten nor restored.
        for known in (run.pending_restores, run.ledger, run.before):
            known.pop(present.key, None)
    _note_absences(run, event.at_ms, set(destinations) - set(health.live))
    now = GuardInputs(
        health=health,
        first=run.first_health,
        moves=tuple(record for record in run.in_flight if record.lagging),
        destinations=tuple(sorted(destinations)),
        at_ms=event.at_ms,
        incoming_bytes=_incoming(run, wanted),
        disk_reserve=run.pace.disk_reserve,
    )
    return evaluate(now, run.reactions)


def _incoming(run: Execution, wanted: Iterable[TopicPartition]) -> dict[int, int]:
    """Bytes still to come in, by destination, for what is in flight or wanted next."""
    incoming: dict[int, int] = {}
    for record in (*run.in_flight, *(run.records[name] for name in wanted)):
        lefts = {copy.broker: copy.left_bytes for copy in record.copies}
        for broker in record.lagging:
            left = lefts.get(broker)
            incoming[broker] = incoming.get(broker, 0) + (record.move.size_bytes if left is None else left)
    return incoming


def are_news(run: Execution, verdicts: tuple[Verdict, ...]) -> bool:
    """Whether guards say something else than before."""
    return [verdict.guard for verdict in verdicts] != [verdict.guard for verdict in run.verdicts]


def take_in(run: Execution, event: VerdictsRecorded) -> None:
    """Remember what the guards said, and bring the run to its end if one of them wants that."""
    known = {verdict.guard for verdict in run.verdicts}
    for verdict in event.verdicts:
        if verdict.guard not in known:
            run.note(str(verdict))
    run.verdicts = event.verdicts
    wanted = {verdict.reaction for verdict in event.verdicts}
    if wanted & {Reaction.CANCEL, Reaction.ROLLBACK}:
        run.ending = Ending.RECALL
    run.wants_rollback = run.wants_rollback or Reaction.ROLLBACK in wanted


def holds(run: Execution) -> bool:
    """Whether nothing new may be started now."""
    return run.is_held or any(verdict.reaction is Reaction.HOLD for verdict in run.verdicts)


def _note_absences(run: Execution, at_ms: int, absent: set[int]) -> None:
    """Give up the moves to brokers that are gone for long; the others go on."""
    run.absent_since_ms = {broker: run.absent_since_ms.get(broker, at_ms) for broker in absent}
    gone = {broker for broker, since in run.absent_since_ms.items() if at_ms - since >= GONE_MS}
    for record in run.active if gone else ():
        lost = sorted(gone & set(record.lagging))
        if lost and record.status is not MoveStatus.SENT:
            record.give_up(at_ms, f"its destinations {lost} are not there for {GONE_MS // 1000} s; plan it anew")
            run.index.sort(record)
