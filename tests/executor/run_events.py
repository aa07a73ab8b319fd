"""Runs for tests of the executor, as events: two partitions, five brokers, one second between events."""

from __future__ import annotations

from collections.abc import Iterable

from kreassign.executor import throttle_ledger
from kreassign.executor.events import (
    ConfigsRead,
    CopyProgress,
    Event,
    LeadersElected,
    MovesObserved,
    MovesSubmitted,
    PartitionObservation,
    PlacementState,
    PlannedMove,
    RunStarted,
    SubmissionIntended,
    ThrottleIntended,
    ThrottleRestored,
    ThrottleSet,
    TimePassed,
    Verified,
)
from kreassign.executor.history.run_history import history
from kreassign.executor.instructions import Instruction
from kreassign.executor.progress import ProgressMeter
from kreassign.executor.state import Machine, RunView
from kreassign.executor.state.move import COPYING
from kreassign.model import TopicPartition
from kreassign.model.run import MoveStatus, RunHistory
from kreassign.model.throttle import ThrottleRates

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
MOVES = (PlannedMove(A0, (0, 1), (2, 1), 1_000), PlannedMove(A1, (1, 0), (1, 3), 500))
RATE = 1_000_000
LIVE = (0, 1, 2, 3, 4)
FLOWS = throttle_ledger.flows({move.topic_partition: move.reassignment for move in MOVES})
KEYS = throttle_ledger.keys_to_change(FLOWS, LIVE)
BEFORE = tuple(throttle_ledger.ConfigValue(key, "7000" if key.resource.name == "1" else None) for key in KEYS)
KNOWN = {present.key: present.value for present in BEFORE}
RATES = tuple(
    throttle_ledger.ConfigOverride(key, KNOWN[key], value)
    for key, value in throttle_ledger.wanted_rates(KNOWN, ThrottleRates(RATE)).items()
)
LISTS = tuple(
    throttle_ledger.ConfigOverride(key, KNOWN[key], value)
    for key, value in throttle_ledger.wanted_lists(FLOWS, KNOWN).items()
)
OVERRIDES = (*RATES, *LISTS)


def started(*moves: PlannedMove, throttle: int | None = RATE) -> RunStarted:
    return RunStarted(0, "run-1", "cluster-1", moves or MOVES, ThrottleRates(throttle), LIVE)


def seen(move: PlannedMove, where: PlacementState, *, done: int = 0, leader: int | None = None) -> PartitionObservation:
    copies = tuple(CopyProgress(broker, done, move.size_bytes - done) for broker in move.adding)
    match where:
        case PlacementState.UNTOUCHED:
            return PartitionObservation(move.topic_partition, where, move.original, move.original, move.original[0])
        case PlacementState.ARRIVED:
            first = move.target[0] if leader is None else leader
            return PartitionObservation(move.topic_partition, where, move.target, move.target, first)
        case PlacementState.DELETED:
            return PartitionObservation(move.topic_partition, where, (), (), -1)
        case _:
            full = move.reassignment.replicas
            return PartitionObservation(move.topic_partition, where, full, move.original, move.original[0], copies)


def look(
    at_ms: int, where: PlacementState, *moves: PlannedMove, done: int = 0, leader: int | None = None
) -> MovesObserved:
    return MovesObserved(at_ms, tuple(seen(move, where, done=done, leader=leader) for move in moves or MOVES))


def with_our_values(
    pending_restores: Iterable[throttle_ledger.ConfigOverride] = OVERRIDES,
) -> tuple[throttle_ledger.ConfigValue, ...]:
    return tuple(throttle_ledger.ConfigValue(override.key, override.value) for override in pending_restores)


def with_before(
    pending_restores: Iterable[throttle_ledger.ConfigOverride] = OVERRIDES,
) -> tuple[throttle_ledger.ConfigValue, ...]:
    return tuple(throttle_ledger.ConfigValue(override.key, override.before) for override in pending_restores)


PREPARED: tuple[Event, ...] = (
    started(),
    ConfigsRead(1_000, BEFORE),
    ThrottleIntended(1_000, RATES),
    ThrottleSet(2_000),
)
LISTED: tuple[Event, ...] = (
    *PREPARED,
    look(3_000, PlacementState.UNTOUCHED),
    ThrottleIntended(3_000, LISTS),
    ThrottleSet(3_000),
)
SUBMITTED: tuple[Event, ...] = (
    *LISTED,
    SubmissionIntended(3_000, (A0, A1)),
    MovesSubmitted(4_000, (A0, A1)),
)
ARRIVED: tuple[Event, ...] = (
    *SUBMITTED,
    look(5_000, PlacementState.MOVING, done=100),
    TimePassed(6_000),
    look(7_000, PlacementState.ARRIVED, leader=1),
)
ELECTED: tuple[Event, ...] = (*ARRIVED, LeadersElected(8_000, (A0,)))
RESTORED: tuple[Event, ...] = (
    *ELECTED,
    ConfigsRead(9_000, with_our_values()),
    ThrottleRestored(10_000),
    ConfigsRead(11_000, with_before()),
)
WHOLE: tuple[Event, ...] = (*RESTORED, Verified(12_000, ()))
"""A run in which everything goes well."""


def replayed(*events: Event) -> tuple[RunView, tuple[Instruction, ...]]:
    """The run after these events, and its last instructions; a wait is over when something else happens."""
    machine, instructions = machine_after(*events)
    return machine.view, instructions


def machine_after(*events: Event) -> tuple[Machine, tuple[Instruction, ...]]:
    """Like `run_after`, with the machine."""
    machine = Machine()
    instructions: tuple[Instruction, ...] = ()
    for event in events:
        instructions = replay(machine, event)
    return machine, instructions


def replay(machine: Machine, event: Event) -> tuple[Instruction, ...]:
    """Replay an event; what a look shows under way, the run has sent. Moves of others have tests of their own."""
    if isinstance(event, MovesObserved):
        under_way = {one.topic_partition for one in event.observations if one.placement in COPYING}
        for name, record in machine.view.records.items():
            if name in under_way and record.status is MoveStatus.PLANNED:
                record.sent(event.at_ms, machine.view.run_id)
    return machine.replay(event)


def fold_with_progress(events: Iterable[Event]) -> tuple[RunView, ProgressMeter]:
    """The run that these events lead to, with a meter that has followed it."""
    machine = Machine()
    meter = ProgressMeter(machine.view)
    for event in events:
        machine.replay(event)
        meter.follow(event)
    return machine.view, meter


def measured(events: Iterable[Event]) -> RunHistory:
    """The run that these events lead to while a process executes it, as a plain value with its progress."""
    return history(*fold_with_progress(events), is_active=True)
