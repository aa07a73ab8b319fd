"""A run as a machine: `handle(event)` takes a fact and gives back orders. Pure; the time comes with the events.

    new ─▶ preparing ─▶ throttling ─▶ moving ─▶ electing ─▶ restoring ─▶ verifying ─▶ done | failed
                                       └──▶ paused ◀── (stop, cluster out of reach) ── resume leads back

What lives here: the phases of a run, the table `TRANSITIONS` from (phase, event) to what follows, and the
functions of its rows. What does not: clocks, sockets, files; how a single move goes on (`moves.py`); which configs a
throttle needs (`throttling.py`).

The state of a run is the fold of its events, so a journal read back gives the same `Execution`, and `RunResumed` is
one more row of the table. A throttle is owed from the moment `ThrottleIntended` is written until the value before it
was **read back**; every end of a run passes through `restoring`, except a pause while copies are in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from kreassign.errors import InvariantBroken
from kreassign.executor import throttling
from kreassign.executor.events import (
    CallFailed,
    ClusterSeen,
    ConfigsRead,
    Event,
    LeadersElected,
    MovesSubmitted,
    Refusal,
    RunResumed,
    RunStarted,
    StopRequested,
    SubmissionIntended,
    ThrottleIntended,
    ThrottleRestored,
    ThrottleSet,
    TimePassed,
    Verified,
)
from kreassign.executor.instructions import (
    ElectLeaders,
    Instruction,
    Look,
    ReadConfigs,
    RestoreThrottle,
    SetThrottle,
    SubmitMoves,
    Verify,
    Wait,
)
from kreassign.executor.moves import ACTIVE, IN_FLIGHT, MoveRecord, MoveStatus, wants_submission
from kreassign.executor.throttling import ConfigKey, ConfigValue, Debt
from kreassign.model import TopicPartition

OUT_OF_REACH_MS = 300_000
"""A run that cannot look at its cluster for so long pauses: its moves go on without it."""

CONFIG_PATIENCE_MS = 60_000
"""How long reading or restoring settings is tried again."""

VERIFY_PATIENCE_MS = 20_000
"""How long brokers may take to show what the controller already knows."""


class Phase(StrEnum):
    """What a run is doing."""

    NEW = "new"
    PREPARING = "preparing"
    THROTTLING = "throttling"
    MOVING = "moving"
    ELECTING = "electing"
    RESTORING = "restoring"
    VERIFYING = "verifying"
    DONE = "done"
    FAILED = "failed"
    PAUSED = "paused"


ENDED = frozenset({Phase.DONE, Phase.FAILED})
AT_REST = ENDED | {Phase.PAUSED}


class Execution:
    """One run. `handle` is the only door: nothing outside this module changes an attribute."""

    def __init__(self) -> None:
        self.phase = Phase.NEW
        self.run_id = ""
        self.cluster_id = ""
        self.throttle_bytes_per_s: int | None = None
        self.live_brokers: tuple[int, ...] = ()
        self.started_ms = 0
        self.ended_ms: int | None = None
        self.records: dict[TopicPartition, MoveRecord] = {}
        self.ledger: dict[ConfigKey, Debt] = {}  # every setting that this run changed and no one else touched
        self.owed: dict[ConfigKey, Debt] = {}  # those that are not known to have their old value again
        self.problems: list[str] = []
        self.findings: tuple[str, ...] = ()
        self.is_stopping = False
        self.is_abandoned = False
        self.has_just_restored = False
        self.waiting_since_ms: int | None = None

    def handle(self, event: Event) -> tuple[Instruction, ...]:
        """Take in what happened; what to do now, in this order. No orders: the run is at rest."""
        row = TRANSITIONS.get((self.phase, type(event)))
        if row is None:
            raise InvariantBroken(f"run {self.run_id}: {type(event).__name__} cannot happen while {self.phase}")
        instructions = row.follow(self, event)
        if self.phase not in row.leads_to:
            raise InvariantBroken(f"run {self.run_id}: {type(event).__name__} may not lead to {self.phase}")
        return instructions

    @property
    def can_stop(self) -> bool:
        """Whether a request to stop is heard now; else the run is about to end anyway."""
        return (self.phase, StopRequested) in TRANSITIONS

    @property
    def active(self) -> tuple[MoveRecord, ...]:
        """Moves that are neither complete nor failed."""
        return tuple(record for record in self.records.values() if record.status in ACTIVE)

    @property
    def in_flight(self) -> tuple[MoveRecord, ...]:
        """Moves that were sent and are not finished: they go on whether we watch or not."""
        return tuple(record for record in self.records.values() if record.status in IN_FLIGHT)

    @property
    def residue(self) -> tuple[str, ...]:
        """A sentence per setting that is still ours."""
        return tuple(str(debt) for debt in self.owed.values())

    def note(self, problem: str) -> None:
        """Remember a problem once."""
        if problem not in self.problems:
            self.problems.append(problem)


Orders = tuple[Instruction, ...]


# --- into a run ----------------------------------------------------------------------------------------------------


def _begin(run: Execution, event: RunStarted) -> Orders:
    run.run_id, run.cluster_id, run.started_ms = event.run_id, event.cluster_id, event.at_ms
    run.throttle_bytes_per_s, run.live_brokers = event.throttle_bytes_per_s, event.live_brokers
    run.records = {move.topic_partition: MoveRecord(move) for move in event.moves}
    return _throttle_then_move(run)


def _take_up(run: Execution, event: RunResumed) -> Orders:
    """Go on wherever the run was left. Nothing is sent before a look, but for the throttle that was owed anyway."""
    run.live_brokers = event.live_brokers
    run.ended_ms = run.waiting_since_ms = None
    run.is_stopping = run.is_abandoned = run.has_just_restored = False
    return _throttle_then_move(run) if run.active else _elect(run)


def _throttle_then_move(run: Execution) -> Orders:
    if run.throttle_bytes_per_s is None:
        return _move(run)
    if run.owed:
        run.phase = Phase.THROTTLING
        return (SetThrottle(tuple(run.owed.values())),)
    keys = throttling.keys_to_change(_flows(run), run.live_brokers)
    if not keys:
        return _move(run)
    run.phase = Phase.PREPARING
    return (ReadConfigs(keys),)


def _set_throttle(run: Execution, event: ConfigsRead) -> Orders:
    assert run.throttle_bytes_per_s is not None
    if event.problems:
        return _try_again(run, event.at_ms, event.problems)
    debts = throttling.debts(_flows(run), run.throttle_bytes_per_s, event.values)
    if not debts:
        return _move(run)
    run.phase = Phase.THROTTLING
    return (SetThrottle(debts),)


def _flows(run: Execution) -> throttling.Flows:
    return throttling.flows({record.move.topic_partition: record.move.reassignment for record in run.active})


def _could_not_prepare(run: Execution, event: CallFailed) -> Orders:
    return _try_again(run, event.at_ms, (event.message,))


def _try_again(run: Execution, at_ms: int, problems: tuple[str, ...]) -> Orders:
    if _is_patient(run, at_ms, CONFIG_PATIENCE_MS):
        return (Wait(),)
    return _go_on_or_abandon(run, at_ms, problems)


def _read_again(run: Execution, _: TimePassed) -> Orders:
    return _throttle_then_move(run)


def _owe(run: Execution, event: ThrottleIntended) -> Orders:
    for debt in event.debts:
        run.owed[debt.key] = run.ledger[debt.key] = debt
    return ()


def _after_throttle(run: Execution, event: ThrottleSet) -> Orders:
    return _go_on_or_abandon(run, event.at_ms, event.problems) if event.problems else _move(run)


def _go_on_or_abandon(run: Execution, at_ms: int, problems: tuple[str, ...]) -> Orders:
    """Without its throttle nothing is started; but what is in flight already must be watched to its end."""
    for problem in problems:
        run.note(problem)
    if run.in_flight:
        return _move(run)
    run.is_abandoned = True
    run.note("the throttle could not be set, so nothing was started")
    return _restore(run) if run.owed else _end(run, at_ms)


# --- moving --------------------------------------------------------------------------------------------------------


def _move(run: Execution) -> Orders:
    run.phase = Phase.MOVING
    run.waiting_since_ms = None
    return (_look(run),)


def _look(run: Execution) -> Look:
    return Look(tuple(record.move for record in run.active))


def _judge(run: Execution, event: ClusterSeen) -> Orders:
    run.waiting_since_ms = None
    for sighting in event.sightings:
        run.records[sighting.topic_partition].see(sighting)
    to_send = [record.move for record in run.active if wants_submission(record, event.at_ms)]
    if to_send:
        return (SubmitMoves({move.topic_partition: move.target for move in to_send}),)
    return (Wait(),) if run.active else _elect(run)


def _note_sending(run: Execution, event: SubmissionIntended) -> Orders:
    for partition in event.partitions:
        run.records[partition].sent(event.at_ms)
    return ()


def _after_sending(run: Execution, event: MovesSubmitted) -> Orders:
    for partition in event.accepted:
        run.records[partition].accepted()
    for refusal in event.refused:
        run.records[refusal.topic_partition].fail(event.at_ms, f"the cluster refused it: {refusal.message}")
    return (_look(run),) if run.active else _elect(run)


def _look_again(run: Execution, _: TimePassed) -> Orders:
    return (_look(run),)


def _blind(run: Execution, event: CallFailed) -> Orders:
    if _is_patient(run, event.at_ms, OUT_OF_REACH_MS):
        return (Wait(),)
    run.note(f"the cluster was out of reach for {OUT_OF_REACH_MS // 60_000} minutes: {event.message}")
    return _pause(run)


def _stop(run: Execution, _: StopRequested) -> Orders:
    """Copies in flight keep their throttle: without it they would run at full speed while nobody looks."""
    if run.in_flight or not run.owed:
        return _pause(run)
    run.is_stopping = True
    return _restore(run)


def _pause(run: Execution) -> Orders:
    run.phase = Phase.PAUSED
    return ()


# --- towards the end -----------------------------------------------------------------------------------------------


def _elect(run: Execution) -> Orders:
    waiting = tuple(
        partition
        for partition, record in run.records.items()
        if record.status is MoveStatus.COMPLETE and record.sighting and record.sighting.leader != record.move.target[0]
    )
    if not waiting:
        return _restore(run)
    run.phase = Phase.ELECTING
    return (ElectLeaders(waiting),)


def _after_election(run: Execution, event: LeadersElected) -> Orders:
    for refusal in event.refused:
        run.note(f"{_named(refusal)} has not its preferred leader: {refusal.message}")
    return _restore(run)


def _no_election(run: Execution, event: CallFailed) -> Orders:
    run.note(f"preferred leaders could not be elected: {event.message}")
    return _restore(run)


def _restore(run: Execution) -> Orders:
    run.phase = Phase.RESTORING
    run.waiting_since_ms = None
    run.has_just_restored = False
    return (ReadConfigs(tuple(run.owed)),)


def _pay_back(run: Execution, event: ConfigsRead) -> Orders:
    """Close the debts whose old value is there; write the others, then come back to read once more."""
    found = throttling.restoration(run.owed.values(), event.values)
    for key in (*found.settled, *(present.key for present in found.foreign)):
        del run.owed[key]
    for present in found.foreign:
        del run.ledger[present.key]
        run.note(f"someone else changed a throttle during the run, and it stays so: {present}")
    if not run.owed:
        return _after_restoring(run, event.at_ms)
    if found.changes and not run.has_just_restored:
        run.has_just_restored = True
        return (RestoreThrottle(found.changes),)
    return _restore_later(run, event.at_ms, event.problems)


def _read_back(run: Execution, event: ThrottleRestored) -> Orders:
    for problem in event.problems:
        run.note(problem)
    return (ReadConfigs(tuple(run.owed)),)


def _could_not_read(run: Execution, event: CallFailed) -> Orders:
    return _restore_later(run, event.at_ms, (event.message,))


def _restore_later(run: Execution, at_ms: int, problems: tuple[str, ...]) -> Orders:
    run.has_just_restored = False
    if _is_patient(run, at_ms, CONFIG_PATIENCE_MS):
        return (Wait(),)
    for problem in problems:
        run.note(problem)
    return _after_restoring(run, at_ms)


def _restore_again(run: Execution, _: TimePassed) -> Orders:
    return (ReadConfigs(tuple(run.owed)),)


def _after_restoring(run: Execution, at_ms: int) -> Orders:
    if run.is_stopping:
        return _pause(run)
    if run.is_abandoned:
        return _end(run, at_ms)
    run.phase = Phase.VERIFYING
    run.waiting_since_ms = None
    return (_verify(run),)


def _verify(run: Execution) -> Verify:
    return Verify(
        moves=tuple(record.move for record in run.records.values() if record.status is MoveStatus.COMPLETE),
        configs=tuple(ConfigValue(debt.key, debt.before) for debt in run.ledger.values()),
    )


def _conclude(run: Execution, event: Verified) -> Orders:
    run.findings = event.findings
    if event.findings and _is_patient(run, event.at_ms, VERIFY_PATIENCE_MS):
        return (Wait(),)
    return _end(run, event.at_ms)


def _could_not_verify(run: Execution, event: CallFailed) -> Orders:
    if _is_patient(run, event.at_ms, CONFIG_PATIENCE_MS):
        return (Wait(),)
    run.findings = (f"the result could not be verified: {event.message}",)
    return _end(run, event.at_ms)


def _verify_again(run: Execution, _: TimePassed) -> Orders:
    return (_verify(run),)


def _end(run: Execution, at_ms: int) -> Orders:
    failed = any(record.status is MoveStatus.FAILED for record in run.records.values())
    run.phase = Phase.FAILED if failed or run.findings or run.owed or run.is_abandoned else Phase.DONE
    run.ended_ms = at_ms
    return ()


def _is_patient(run: Execution, at_ms: int, limit_ms: int) -> bool:
    """Whether to try once more; the patience begins with the first failure."""
    run.waiting_since_ms = at_ms if run.waiting_since_ms is None else run.waiting_since_ms
    return at_ms - run.waiting_since_ms < limit_ms


def _named(refusal: Refusal) -> str:
    return str(refusal.topic_partition)


# --- the table -----------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """What to do when an event happens in a phase, and the phases to which that may lead."""

    follow: Callable[[Execution, Any], Orders]
    leads_to: frozenset[Phase]


def _row(follow: Callable[[Execution, Any], Orders], *leads_to: Phase) -> Row:
    return Row(follow, frozenset(leads_to))


_TAKE_UP = _row(_take_up, Phase.PREPARING, Phase.THROTTLING, Phase.MOVING, Phase.ELECTING, Phase.RESTORING)

TRANSITIONS: Mapping[tuple[Phase, type[Event]], Row] = MappingProxyType({
    (Phase.NEW, RunStarted): _row(_begin, Phase.PREPARING, Phase.MOVING),
    (Phase.PREPARING, ConfigsRead): _row(
        _set_throttle, Phase.PREPARING, Phase.THROTTLING, Phase.MOVING, Phase.FAILED
    ),
    (Phase.PREPARING, CallFailed): _row(_could_not_prepare, Phase.PREPARING, Phase.MOVING, Phase.FAILED),
    (Phase.PREPARING, TimePassed): _row(_read_again, Phase.PREPARING),
    (Phase.PREPARING, StopRequested): _row(_stop, Phase.PAUSED),
    (Phase.THROTTLING, ThrottleIntended): _row(_owe, Phase.THROTTLING),
    (Phase.THROTTLING, ThrottleSet): _row(_after_throttle, Phase.MOVING, Phase.RESTORING),
    (Phase.THROTTLING, StopRequested): _row(_stop, Phase.PAUSED, Phase.RESTORING),
    (Phase.MOVING, SubmissionIntended): _row(_note_sending, Phase.MOVING),
    (Phase.MOVING, MovesSubmitted): _row(_after_sending, Phase.MOVING, Phase.ELECTING, Phase.RESTORING),
    (Phase.MOVING, ClusterSeen): _row(_judge, Phase.MOVING, Phase.ELECTING, Phase.RESTORING),
    (Phase.MOVING, CallFailed): _row(_blind, Phase.MOVING, Phase.PAUSED),
    (Phase.MOVING, TimePassed): _row(_look_again, Phase.MOVING),
    (Phase.MOVING, StopRequested): _row(_stop, Phase.PAUSED, Phase.RESTORING),
    (Phase.ELECTING, LeadersElected): _row(_after_election, Phase.RESTORING),
    (Phase.ELECTING, CallFailed): _row(_no_election, Phase.RESTORING),
    (Phase.RESTORING, ConfigsRead): _row(
        _pay_back, Phase.RESTORING, Phase.VERIFYING, Phase.PAUSED, Phase.FAILED
    ),
    (Phase.RESTORING, ThrottleRestored): _row(_read_back, Phase.RESTORING),
    (Phase.RESTORING, CallFailed): _row(
        _could_not_read, Phase.RESTORING, Phase.VERIFYING, Phase.PAUSED, Phase.FAILED
    ),
    (Phase.RESTORING, TimePassed): _row(_restore_again, Phase.RESTORING),
    (Phase.VERIFYING, Verified): _row(_conclude, Phase.VERIFYING, Phase.DONE, Phase.FAILED),
    (Phase.VERIFYING, CallFailed): _row(_could_not_verify, Phase.VERIFYING, Phase.FAILED),
    (Phase.VERIFYING, TimePassed): _row(_verify_again, Phase.VERIFYING),
    **{(phase, RunResumed): _TAKE_UP for phase in Phase if phase is not Phase.NEW},
})  # fmt: skip
