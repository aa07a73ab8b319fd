"""Row of the table of states that a trial aims at: events that bring a run into the state, and allow the event there.

Left to chance, a run meets a third of the table: most states last for a moment, and many rows want two things at once.
One seed in `EVERY` takes the next row of those that do not happen by themselves. Pure.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kreassign.executor import events
from kreassign.executor.events import Event
from kreassign.executor.guards import GuardName, Reaction
from kreassign.executor.state import STATES, TRANSITIONS, phases
from kreassign.executor.state.phases import RunState
from kreassign.model.plan import PartitionAssignment
from kreassign.model.throttle import AdaptiveThrottle, ThrottleRates
from kreassign.twin import Twin
from kreassign.twin.faults import read_fault
from tests.simulation.scene import partitions_of
from tests.simulation.trial import Deed, Incident, Request, Settings

MB = 1_000_000
EVERY = 2
"""One seed in so many aims at a row."""

_LEASED = {events.LeaseTaken, events.LeaseForgone}
_ASKED: Mapping[type[Event], Request | Deed | str] = {
    events.HoldRequested: Request.HOLD,
    events.ReleaseRequested: Request.RELEASE,
    events.CancelRequested: Request.CANCEL,
    events.ThrottleRequested: Request.SLOWER,
    events.PaceRequested: Request.PACE,
    events.ClockStepped: "step-clock:3600s@0s",
    events.StopRequested: Deed.STOP,
    events.BrokersForgotten: Deed.FORGET,
}
"""Events that come of one incident, whatever the state."""
_BY_OTHERS: frozenset[type[Event]] = frozenset(
    {*_ASKED, *_LEASED, events.RunResumed, events.LeaseLost, events.LeaseRefused, events.CallFailed, events.TimePassed}
)
"""Events that need something to happen; the others are the answers that a run gets in a state anyway."""

_WAYS: Mapping[tuple[type[RunState], type[Event] | None], tuple[type[RunState], Request | Deed | str, int]] = {
    (phases.Resuming, None): (phases.Waiting, Deed.DIE, 1),
    (phases.Throttling, events.LeaseTaken): (phases.Waiting, Deed.DIE, 1),
    (phases.Throttling, events.LeaseForgone): (phases.Waiting, Deed.DIE, 1),
    (phases.Throttling, events.BrokersForgotten): (phases.Waiting, Request.SLOWER, 1),
    (phases.Preparing, events.BrokersForgotten): (phases.Waiting, Deed.FORGET, 1),
    (phases.RecordingVerdicts, None): (phases.Waiting, "crash:{broker}@0s+100s", 1),
    (phases.Replanning, None): (phases.Waiting, "crash:{destination}@0s+200s", 2),
    (phases.Cancelling, None): (phases.Waiting, Request.CANCEL_NOW, 1),
    (phases.AwaitingLease, None): (phases.Waiting, Deed.LOSE_LEASE, 1),
    (phases.Paused, None): (phases.Waiting, Deed.STOP, 1),
    (phases.MeasuringTraffic, None): (phases.Waiting, Request.ADAPTIVE, 1),
    (phases.Failed, None): (phases.Restoring, "crash:{destination}@0s+200s", 1),
    (phases.Verifying, events.BrokersForgotten): (phases.Restoring, "crash:{destination}@0s+200s", 1),
}
"""What brings a run into a state (for one event or any): in which state it has to happen, and at which entry."""


@dataclass(frozen=True, slots=True)
class Aim:
    """A row of the table of states."""

    state: type[RunState]
    event: type[Event]

    def __str__(self) -> str:
        return f"{self.state.__name__} on {self.event.__name__}"


AIMS: tuple[Aim, ...] = tuple(
    Aim(state, event)
    for state, event in sorted(TRANSITIONS, key=lambda key: (STATES.index(key[0]), key[1].__name__))
    if event in _BY_OTHERS
)
"""Every row that does not happen by itself, in a fixed order."""


def aim_of(seed: int) -> Aim | None:
    """The row of a seed: all of them in turn."""
    return None if seed % EVERY else AIMS[seed // EVERY % len(AIMS)]


def settings(aim: Aim, drawn: Settings) -> Settings:
    """The drawn settings, but for those without which the row is not met."""
    state, event = aim.state, aim.event
    is_adaptive = state is phases.MeasuringTraffic
    is_throttled = not is_adaptive and not (state is phases.Observing and event in _LEASED)
    adaptive = AdaptiveThrottle(50 * MB) if is_adaptive else None
    reaction = Reaction.OFF if state is phases.Throttling else Reaction.HOLD
    forced: dict[str, Any] = {
        "rates": ThrottleRates(2 * MB if is_throttled else None, adaptive=adaptive),
        "guards": {GuardName.FOREIGN_THROTTLE: reaction},
        "pace": replace(drawn.pace, elections_per_step=1),
    }
    if state is phases.Replanning:
        forced["replans"] = True
    if state in {phases.Failed, phases.Verifying} and event in {events.BrokersForgotten, events.RunResumed}:
        forced["reaches_controllers"] = False
    if event in {events.LeaseLost, events.LeaseTaken, events.LeaseRefused} or state is phases.AwaitingLease:
        forced |= {"has_lease": True, "has_offsets_topic": True}
    elif event is events.LeaseForgone:
        forced |= {"has_lease": True, "has_offsets_topic": False}
    if is_adaptive and event in {events.RunResumed, events.BrokersForgotten}:
        forced["keeps_each_step"] = True
    if event is events.CallFailed:
        forced["has_lease"] = False
    return replace(drawn, **forced)


def shaped(aim: Aim, twin: Twin, moves: tuple[PartitionAssignment, ...]) -> tuple[PartitionAssignment, ...]:
    """Moves with leaders to be elected where that is the aim, and without where it is in its way."""
    if aim.state is phases.Electing:
        return tuple(_with_leader(move, twin, is_first=False) for move in moves)
    if aim.state is phases.Restoring and aim.event in _LEASED:
        return tuple(_with_leader(move, twin, is_first=True) for move in moves)
    return moves


def _with_leader(move: PartitionAssignment, twin: Twin, *, is_first: bool) -> PartitionAssignment:
    """Replicas with the present leader at the beginning or the end, if it is one of them, in any directory."""
    leader = twin.metadata.topics[move.topic_partition.topic].partitions[move.topic_partition.partition].leader
    replicas = sorted(move.replicas, key=lambda broker: (broker != leader) is is_first)
    return PartitionAssignment(move.topic_partition, tuple(replicas))


def incidents(aim: Aim, chance: random.Random, twin: Twin, moves: tuple[PartitionAssignment, ...]) -> list[Incident]:
    """Incidents that bring a run into the state and allow the event there, and later more throttle, to be done soon."""
    broker, destination = chance.choice(twin.processes.ids), chance.choice(_destinations(twin, moves))
    way = _WAYS.get((aim.state, aim.event)) or _WAYS.get((aim.state, None))
    ways = [_in(*way, broker=broker, destination=destination)] if way else []
    return [*ways, *_struck(aim, twin), Incident(5 * 60_000, Request.FASTER)]


def _destinations(twin: Twin, moves: tuple[PartitionAssignment, ...]) -> list[int]:
    """The brokers that get a copy, or all if none does."""
    present = {state.topic_partition: state.replicas for state in partitions_of(twin)}
    copied = [broker for move in moves for broker in move.replicas if broker not in present[move.topic_partition]]
    return copied or list(twin.processes.ids)


def _in(state: type[RunState], what: Request | Deed | str, entry: int = 1, **brokers: int) -> Incident:
    happening = what if isinstance(what, Request | Deed) else read_fault(what.format(**brokers))
    return Incident(0, happening, state.__name__, entry)


def _struck(aim: Aim, twin: Twin) -> Iterator[Incident]:
    """Incident right after the run has entered the state."""
    state, event = aim.state, aim.event
    if event in _ASKED:
        yield _in(state, _ASKED[event])
    begins_again = event in _LEASED and state in {phases.Electing, phases.Restoring}
    if begins_again or (event is events.RunResumed and state is not phases.Paused):
        yield _in(state, Deed.DIE)
    elif event is events.LeaseLost:
        # A wait is heard of only where nothing is to be changed; and read back it ends in observing.
        waits = state in {phases.Observing, phases.Waiting}
        yield _in(phases.Waiting, Deed.LOSE_LEASE, 4) if waits else _in(state, Deed.LOSE_LEASE)
    unread = {phases.Resuming, phases.Preparing, phases.Restoring, phases.Verifying}
    if state in unread and event in {events.LeaseLost, events.TimePassed}:
        # What cannot be read is waited for.
        yield _in(state, "drop:DescribeConfigs@0s+130s")
    if event is events.CallFailed:
        yield from (_in(state, f"crash:{broker}@0s+70s") for broker in twin.processes.ids)
