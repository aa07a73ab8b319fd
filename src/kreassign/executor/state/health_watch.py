"""Health checks of the cluster during the moves: what the guards say of them, and destinations that are down."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kreassign.executor.events import HealthObserved, VerdictsRecorded
from kreassign.executor.guards import GuardInputs, GuardName, Reaction, Verdict, evaluate
from kreassign.executor.state import disk_admission, throttle_watch
from kreassign.executor.state.move import MoveStatus
from kreassign.executor.state.move_index import left_by_destination
from kreassign.executor.state.phases import Names
from kreassign.executor.state.run import GuardBreach, Run, WindDown
from kreassign.model import TopicPartition

CHECK_EVERY_MS = 30_000
"""A health check asks for all topics, so it is not made with every poll."""

FRESH_MS = 10_000
"""Before moves are started, the last check may be this old."""

REPLANNING = "planning moves again"
"""The kind of what goes wrong with it."""

DOWN_MS = 60_000
"""A destination that is down for so long gets no more copies: a restart takes less."""


def is_due(run: Run, starting: Names, at_ms: int) -> bool:
    """Whether to check the health of the cluster before going on."""
    is_wanted = run.identity.reactions or run.throttle.awaited or run.throttle.due
    if not (is_wanted or run.control.replans):
        return False
    patience_ms = FRESH_MS if starting else CHECK_EVERY_MS
    return run.health.checked_ms is None or at_ms - run.health.checked_ms >= patience_ms


def judge(run: Run, starting: Names, event: HealthObserved) -> tuple[Names, tuple[Verdict, ...]]:
    """Which of the moves about to start have space on disks, and what the guards say."""
    watch, health = run.health, event.health
    watch.checked_ms = event.at_ms
    for breach in watch.breaches:
        breach.last_ms = event.at_ms if breach.until_ms is None else breach.last_ms
    starting, wanted = disk_admission.take_stock(run, starting, health)
    watch.first = watch.first or health
    destinations = run.moves.index.destinations
    read = dict.fromkeys((*run.throttle.in_force, *(present.key for present in health.foreign_configs)))
    throttle_watch.take_in(run, event.at_ms, read, health.foreign_configs, health.unread_configs)
    _note_absences(run, event.at_ms, (destinations | watch.replaced).difference(health.live))
    now = GuardInputs(
        health=replace(health, foreign_configs=throttle_watch.foreign(run)),
        first=watch.first,
        moves=tuple(record for record in run.moves.in_flight if record.lagging),
        destinations=tuple(sorted(destinations)),
        at_ms=event.at_ms,
        incoming_bytes=_incoming(run, wanted),
        disk_reserve=run.control.pace.disk_reserve,
        our_configs={key: override.value for key, override in run.throttle.overrides.items()},
        named_log_dirs=run.moves.index.named_log_dirs,
    )
    return starting, evaluate(now, run.identity.reactions)


def _incoming(run: Run, wanted: Iterable[TopicPartition]) -> dict[int, int]:
    """Bytes still to come in, by destination, for what is in flight or wanted next."""
    return left_by_destination((*run.moves.in_flight, *(run.moves.records[name] for name in wanted)))


def are_news(run: Run, verdicts: tuple[Verdict, ...]) -> bool:
    """Whether guards say something else than before; other figures of the same guard are no news."""
    return [verdict.guard for verdict in verdicts] != [verdict.guard for verdict in run.health.verdicts]


def take_in(run: Run, event: VerdictsRecorded) -> None:
    """Remember what the guards said, and cancel the run if one of them demands it."""
    said = {verdict.guard for verdict in event.verdicts}
    open_before = [breach for breach in run.health.breaches if breach.until_ms is None]
    for breach in open_before:
        if breach.verdict.guard not in said:
            breach.until_ms = event.at_ms
    known = {breach.verdict.guard for breach in open_before}
    if GuardName.FOREIGN_THROTTLE in said - known:
        run.throttle.told |= {present.key: present for present in throttle_watch.foreign(run)}
    run.health.breaches += [
        GuardBreach(verdict, event.at_ms, event.at_ms) for verdict in event.verdicts if verdict.guard not in known
    ]
    run.health.verdicts = event.verdicts
    demanded = {verdict.reaction for verdict in event.verdicts}
    if demanded & {Reaction.CANCEL, Reaction.ROLLBACK}:
        run.control.wind_down = WindDown.CANCEL
    run.control.wants_rollback = run.control.wants_rollback or Reaction.ROLLBACK in demanded


def holds(run: Run) -> bool:
    """Whether nothing new may be started now."""
    return run.control.is_held or any(verdict.reaction is Reaction.HOLD for verdict in run.health.verdicts)


def away(brokers: Iterable[int]) -> str:
    """Words for destinations that are given up."""
    return f"its destinations {list(brokers)} had been down for {DOWN_MS // 1000} s"


def _note_absences(run: Run, at_ms: int, absent: set[int]) -> None:
    """Give up the moves to brokers that are down for long, unless they are planned again; the others go on."""
    watch = run.health
    watch.absent_since_ms = {broker: watch.absent_since_ms.get(broker, at_ms) for broker in absent}
    down = {broker for broker, since in watch.absent_since_ms.items() if at_ms - since >= DOWN_MS}
    watch.lost = tuple(sorted(down))
    if not down:
        run.tell(REPLANNING, at_ms)
    is_replanned = run.control.replans and run.control.wind_down is None
    for record in run.moves.active if down and not is_replanned else ():
        lost = sorted(down & set(record.lagging))
        if lost and record.status is not MoveStatus.SENT:
            hint = "" if run.control.replans else ", or use `--replan` next time, which chooses other brokers"
            record.give_up(at_ms, f"{away(lost)}; plan it again{hint}")
            run.moves.index.sort(record)
