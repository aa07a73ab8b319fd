"""Which row of the table of states a trial aims at: what brings a run into the state, and lets the event happen there.

Left to chance, a run meets a third of the table: most states last for a moment, and many rows want two things at once.
One seed in `EVERY` takes the next row of those that do not happen by themselves. Pure.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kreassign.executor.events import (
    BrokersForgotten,
    CallFailed,
    CancelRequested,
    ClockStepped,
    Event,
    HoldRequested,
    LeaseForgone,
    LeaseLost,
    LeaseRefused,
    LeaseTaken,
    PaceRequested,
    ReleaseRequested,
    RunResumed,
    StopRequested,
    ThrottleRequested,
    TimePassed,
)
from kreassign.executor.state import STATES, TRANSITIONS
from kreassign.executor.state.phases import (
    AwaitingLease,
    Cancelling,
    Electing,
    Failed,
    MeasuringTraffic,
    Observing,
    Paused,
    Preparing,
    RecordingVerdicts,
    Replanning,
    Restoring,
    Resuming,
    RunState,
    Throttling,
    Verifying,
    Waiting,
)
from kreassign.model.plan import PartitionAssignment
from kreassign.twin import Twin
from kreassign.twin.faults import read_fault
from tests.simulation.incidents import Deed, Incident, Request

EVERY = 2
"""One seed in so many aims at a row."""

_BY_OTHERS: tuple[type[Event], ...] = (
    HoldRequested, ReleaseRequested, CancelRequested, ThrottleRequested, PaceRequested, StopRequested, ClockStepped,
    RunResumed, BrokersForgotten, LeaseLost, LeaseTaken, LeaseForgone, LeaseRefused, CallFailed, TimePassed,
)  # fmt: skip
"""Events that need something to happen; the others are the answers that a run gets in a state anyway."""


@dataclass(frozen=True, slots=True)
class Aim:
    """A row of the table of states."""

    state: type[RunState]
    event: type[Event]

    def __str__(self) -> str:
        return f"{self.state.__name__} on {self.event.__name__}"


@dataclass(frozen=True, slots=True)
class Conditions:
    """Settings of a run that are not left to chance; None is."""

    is_throttled: bool | None = None
    is_adaptive: bool | None = None
    has_lease: bool | None = None
    has_offsets_topic: bool | None = None
    reaches_controllers: bool | None = None
    replans: bool | None = None
    is_guarded: bool | None = None
    keeps_each_step: bool | None = None
    elects_singly: bool | None = None


BY_CHANCE = Conditions()

AIMS: tuple[Aim, ...] = tuple(
    Aim(state, event)
    for state, event in sorted(TRANSITIONS, key=lambda key: (STATES.index(key[0]), key[1].__name__))
    if event in _BY_OTHERS
)
"""Every row that does not happen by itself, in a fixed order."""


def aim_of(seed: int) -> Aim | None:
    """The row of a seed: all of them in turn."""
    return None if seed % EVERY else AIMS[seed // EVERY % len(AIMS)]


def conditions_of(seed: int) -> Conditions:
    """What must be so for the row of a seed to be met."""
    aim = aim_of(seed)
    return BY_CHANCE if aim is None else conditions(aim)


def conditions(aim: Aim) -> Conditions:
    """What must be so for this row to be met."""
    state, event = aim.state, aim.event
    is_throttled = not (state is Observing and event in {LeaseTaken, LeaseForgone})
    found = Conditions(
        is_throttled, is_adaptive=state is MeasuringTraffic, is_guarded=state is not Throttling, elects_singly=True
    )
    if state is Replanning:
        found = replace(found, replans=True)
    if state in {Failed, Verifying} and event in {BrokersForgotten, RunResumed}:
        found = replace(found, reaches_controllers=False)
    if event in {LeaseLost, LeaseTaken, LeaseRefused} or state is AwaitingLease:
        found = replace(found, has_lease=True, has_offsets_topic=True)
    if event is LeaseForgone and state is not AwaitingLease:
        found = replace(found, has_lease=True, has_offsets_topic=False)
    if state is MeasuringTraffic and event in {RunResumed, BrokersForgotten}:
        found = replace(found, keeps_each_step=True)
    if event is CallFailed:
        found = replace(found, has_lease=False)
    return found


def shaped(aim: Aim, twin: Twin, moves: tuple[PartitionAssignment, ...]) -> tuple[PartitionAssignment, ...]:
    """The same moves, by which leaders are to be elected where that is the aim, and none where it is in its way."""
    if aim.state is Electing:
        return tuple(_with_leader(move, twin, is_first=False) for move in moves)
    if aim.state is Restoring and aim.event in {LeaseTaken, LeaseForgone}:
        return tuple(_with_leader(move, twin, is_first=True) for move in moves)
    return moves


def _with_leader(move: PartitionAssignment, twin: Twin, *, is_first: bool) -> PartitionAssignment:
    """The same replicas with the present leader at the beginning or the end, if it is one of them, in any directory."""
    state = twin.metadata.partition(move.topic_partition)
    assert state is not None
    others = tuple(broker for broker in move.replicas if broker != state.leader)
    leader = tuple(broker for broker in move.replicas if broker == state.leader)
    return PartitionAssignment(move.topic_partition, (*leader, *others) if is_first else (*others, *leader))


def incidents(aim: Aim, chance: random.Random, twin: Twin, moves: tuple[PartitionAssignment, ...]) -> list[Incident]:
    """What brings a run into the state, what lets the event happen there, and later more throttle, to be done soon."""
    hurry = Incident(5 * 60_000, Request.FASTER)
    return [*_provoked(aim, chance, twin, moves), *_struck(aim, twin), hurry]


def _in(state: type[RunState], what: Request | Deed | str, entry: int = 1) -> Incident:
    happening = read_fault(what) if isinstance(what, str) and not isinstance(what, Request | Deed) else what
    return Incident(0, happening, state.__name__, entry)


def _provoked(
    aim: Aim, chance: random.Random, twin: Twin, moves: tuple[PartitionAssignment, ...]
) -> Iterator[Incident]:
    state, event = aim.state, aim.event
    broker, destination = chance.choice(twin.processes.ids), _destination(chance, twin, moves)
    if state is Resuming or (state is Throttling and event in {LeaseTaken, LeaseForgone}):
        yield _in(Waiting, Deed.DIE)
    elif state is Preparing and event is BrokersForgotten:
        yield _in(Waiting, Deed.FORGET)
    elif state is Throttling and event is BrokersForgotten:
        yield _in(Waiting, Request.SLOWER)
    elif state is RecordingVerdicts:
        yield _in(Waiting, f"crash:{broker}@0s+100s")
    elif state is Replanning:
        yield _in(Waiting, f"crash:{destination}@0s+200s", entry=2)
    elif state is Cancelling:
        yield _in(Waiting, Request.CANCEL_NOW)
    elif state is AwaitingLease:
        yield _in(Waiting, Deed.LOSE_LEASE)
    elif state is Paused:
        yield _in(Waiting, Deed.STOP)
    elif state is Failed or (state is Verifying and event is BrokersForgotten):
        yield _in(Restoring, f"crash:{destination}@0s+200s")
    elif state is MeasuringTraffic:
        yield _in(Waiting, Request.ADAPTIVE)


def _destination(chance: random.Random, twin: Twin, moves: tuple[PartitionAssignment, ...]) -> int:
    """A broker that gets a copy, if any does."""
    found = []
    for move in moves:
        state = twin.metadata.partition(move.topic_partition)
        assert state is not None
        found += [broker for broker in move.replicas if broker not in state.replicas]
    return chance.choice(found or list(twin.processes.ids))


_ASKED: dict[type[Event], tuple[Request | Deed | str, ...]] = {
    HoldRequested: (Request.HOLD,),
    ReleaseRequested: (Request.RELEASE,),
    CancelRequested: (Request.CANCEL,),
    ThrottleRequested: (Request.SLOWER,),
    PaceRequested: (Request.PACE,),
    ClockStepped: ("step-clock:3600s@0s",),
    StopRequested: (Deed.STOP,),
    BrokersForgotten: (Deed.FORGET,),
}


def _struck(aim: Aim, twin: Twin) -> Iterator[Incident]:
    """What lets the event happen right after the run has entered the state."""
    state, event = aim.state, aim.event
    yield from (_in(state, what) for what in _ASKED.get(event, ()))
    begins_again = event in {LeaseTaken, LeaseForgone} and state in {Electing, Restoring}
    if begins_again or (event is RunResumed and state is not Paused):
        yield _in(state, Deed.DIE)
    elif event is LeaseLost:
        # A wait is heard of only where nothing is to be changed; and read back it ends in observing.
        waits = state in {Observing, Waiting}
        yield _in(Waiting, Deed.LOSE_LEASE, entry=4) if waits else _in(state, Deed.LOSE_LEASE)
    if state in {Resuming, Preparing, Restoring, Verifying} and event in {LeaseLost, TimePassed}:
        # What cannot be read is waited for.
        yield _in(state, "drop:DescribeConfigs@0s+130s")
    if state is AwaitingLease and event is LeaseForgone:
        yield _in(state, "drop:DescribeGroups@0s+150s")
    if event is CallFailed:
        yield from (_in(state, f"crash:{broker}@0s+70s") for broker in twin.processes.ids)
