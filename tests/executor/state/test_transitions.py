"""The table of transitions, walked with every kind of event: every row is reached, and leads only where it says."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from kreassign.executor import events, instructions
from kreassign.executor.events import Event, PlacementState, RunStarted
from kreassign.executor.guards import GuardName, Health, Reaction
from kreassign.executor.instructions import ClusterChange, Instruction
from kreassign.executor.state import TRANSITIONS
from kreassign.executor.state.machine import handle
from kreassign.executor.state.phases import AwaitingLease, Cancelled, Done, New, RunState, Verifying
from kreassign.executor.state.run import Key, Run
from kreassign.executor.throttle_ledger import ConfigKey, ConfigValue
from kreassign.model import ConfigResource
from kreassign.model.pace import Pace, PaceChange
from kreassign.model.run import AT_REST, Phase
from kreassign.model.throttle import AdaptiveThrottle, ThrottleRates
from tests.executor.run_events import LIVE, MOVES, PREPARED, RATE, look, started
from tests.executor.state.played import ARRIVED, MOVING, UNTOUCHED, begun, guarded

pytestmark = pytest.mark.thorough

FAR_MS = 400_000
"""Longer than every patience."""

PLACES_AT_MOST = 450
"""So many places are enough for every row, from all beginnings together."""

INTENTIONS = (events.ThrottleIntended, events.SubmissionIntended, events.CancelIntended)
WITHOUT_2 = Health(tuple(broker for broker in LIVE if broker != 2))
SENT = tuple(move.topic_partition for move in MOVES)


class Explorer:
    """Walks from state to state with every kind of event and answer, breadth first."""

    def __init__(self) -> None:
        self.reached: set[Key] = set()
        self.instructed: dict[type[RunState], set[type]] = {}
        self._known: set[object] = set()

    def walk(self, *begun: Event) -> None:
        """Follow everything that may happen after a run began so."""
        run, followed = Run(), ()
        self._known.clear()
        for event in begun:
            followed = self._step(run, event, followed)
        todo = deque([(run, followed, begun[-1])])
        while todo:
            run, orders, last = todo.popleft()
            for event in _next_events(orders, last):
                if (type(run.state), type(event)) not in TRANSITIONS:
                    continue
                after = deepcopy(run)
                followed = self._step(after, event, orders)
                place = _place(after, followed, event)
                if place not in self._known and len(self._known) < PLACES_AT_MOST:
                    self._known.add(place)
                    todo.append((after, followed, event))

    def _step(self, run: Run, event: Event, orders: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
        self.reached.add((type(run.state), type(event)))
        followed = handle(run, event) or orders
        self.instructed.setdefault(type(run.state), set()).update(map(type, followed))
        return followed


def _place(run: Run, orders: tuple[Instruction, ...], last: Event) -> object:
    """State of a run, as far as it decides what may follow."""
    return (
        (type(run.state), run.state.restore.afterwards if run.state.phase is Phase.RESTORING else None),
        tuple(map(type, orders)),
        isinstance(last, INTENTIONS),
        tuple(sorted(record.status for record in run.moves.records.values())),
        bool(run.throttle.pending),
        run.control.wind_down is None,
        (run.control.rates.adaptive is not None, bool(run.identity.reactions), bool(run.throttle.awaited)),
    )


def _next_events(orders: tuple[Instruction, ...], last: Event) -> list[Event]:
    """Events that may follow: a request at any time, else the answer to the first instruction."""
    at_ms = last.at_ms + 1_000
    resumed = events.RunResumed(at_ms, LIVE)
    order = orders[0] if orders else None
    if isinstance(last, INTENTIONS):
        # Between its announcement and its answer a change is not interrupted, except by the end of the process.
        return [resumed, *ANSWERS[type(order)](order, at_ms)]
    if type(order) in ANNOUNCED:
        return [resumed, *_requests(at_ms), ANNOUNCED[type(order)](order, at_ms)]
    return [resumed, *_requests(at_ms), *(ANSWERS[type(order)](order, at_ms) if order else ())]


def _requests(at_ms: int) -> list[Event]:
    return [
        events.HoldRequested(at_ms, 1),
        events.ReleaseRequested(at_ms, 2),
        events.CancelRequested(at_ms, 3, is_now=True),
        events.CancelRequested(at_ms, 4, is_now=False),
        events.PaceRequested(at_ms, 5, PaceChange(elections_per_step=1)),
        events.ThrottleRequested(at_ms, 6, 2 * RATE),
        events.ThrottleRequested(at_ms, 7, None),
        events.StopRequested(at_ms),
        events.ClockStepped(at_ms, 3_600_000),
        events.BrokersForgotten(at_ms, (0,)),
        events.LeaseTaken(at_ms, 2),
        events.LeaseForgone(at_ms, "no group"),
        events.LeaseLost(at_ms, "another run has it"),
    ]


def _or_none(answers: Callable[[Any, int], list[Event]]) -> Callable[[Any, int], list[Event]]:
    """One of these, or none for short or for long."""
    return lambda order, at_ms: [
        *answers(order, at_ms),
        *(events.CallFailed(late_ms, "no answer") for late_ms in (at_ms, at_ms + FAR_MS)),
    ]


def _sooner_or_later(event: Event) -> list[Event]:
    return [event, replace(event, at_ms=event.at_ms + FAR_MS)]


def _looks(_: object, at_ms: int) -> list[Event]:
    places = (UNTOUCHED, MOVING, ARRIVED, PlacementState.DELETED)
    others = [look(at_ms, ARRIVED, leader=4), look(at_ms, ARRIVED, MOVES[0]), events.MovesObserved(at_ms, ())]
    return [*others, *(look(at_ms, place) for place in places)]


def _valued(keys: tuple[ConfigKey, ...], value: str | None) -> tuple[ConfigValue, ...]:
    return tuple(ConfigValue(key, value) for key in keys)


ANNOUNCED: dict[type | None, Callable[[Any, int], Event]] = {
    instructions.SetThrottle: lambda order, at_ms: events.ThrottleIntended(at_ms, order.overrides),
    instructions.SubmitMoves: lambda order, at_ms: events.SubmissionIntended(at_ms, tuple(order.targets)),
    instructions.CancelMoves: lambda order, at_ms: events.CancelIntended(at_ms, order.partitions),
}

ANSWERS: dict[type, Callable[[Any, int], list[Event]]] = {
    instructions.SetThrottle: lambda _, at_ms: [
        events.ThrottleSet(at_ms),
        events.ThrottleSet(at_ms, (), (events.Unwritten(2, "it is down"),)),
        *_sooner_or_later(events.ThrottleSet(at_ms, ("no",), failed=(ConfigResource.broker(0),))),
    ],
    instructions.SubmitMoves: _or_none(lambda order, at_ms: [
        events.MovesSubmitted(at_ms, tuple(order.targets)),
        events.MovesSubmitted(at_ms, (), tuple(events.Refusal(name, "no") for name in order.targets)),
        events.MovesSubmitted(at_ms, (), unknown=tuple(order.targets)),
    ]),
    instructions.CancelMoves: _or_none(lambda order, at_ms: [events.MovesCancelled(at_ms, order.partitions)]),
    instructions.TakeLease: lambda _, at_ms: [
        events.LeaseTaken(at_ms, 3), events.LeaseRefused(at_ms, "not yet"), events.LeaseForgone(at_ms, "no group"),
    ],
    instructions.RestoreThrottle: lambda _, at_ms: [
        events.ThrottleRestored(at_ms), events.ThrottleRestored(at_ms, by_controller=LIVE),
    ],
    instructions.Wait: lambda _, at_ms: [events.TimePassed(at_ms)],
    instructions.MeasureTraffic: lambda _, at_ms: [events.TrafficMeasured(at_ms, ())],
    instructions.RecordVerdicts: lambda order, at_ms: [events.VerdictsRecorded(at_ms, order.verdicts)],
    instructions.ReadConfigs: _or_none(lambda order, at_ms: [
        *(events.ConfigsRead(at_ms, _valued(order.keys, value)) for value in (None, str(RATE), "7")),
        events.ConfigsRead(at_ms, (), (), down=(2,)),
        *_sooner_or_later(events.ConfigsRead(at_ms, (), ("broker 0 could not be read",))),
    ]),
    instructions.ObserveMoves: _or_none(_looks),
    instructions.CheckHealth: _or_none(lambda _, at_ms: [
        events.HealthObserved(at_ms, Health(LIVE)), events.HealthObserved(at_ms, Health(LIVE, cordoned=(2,))),
    ]),
    instructions.CheckThrottle: _or_none(lambda order, at_ms: [
        events.ThrottleChecked(at_ms),
        events.ThrottleChecked(at_ms, _valued(tuple(override.key for override in order.overrides), "7")),
    ]),
    instructions.ReplanMoves: _or_none(lambda order, at_ms: [
        events.MovesReplanned(at_ms, order.lost, tuple(
            events.NewTarget(move.topic_partition, move.target, (4, 1)) for move in order.moves)),
        events.MovesReplanned(at_ms, order.lost, (), tuple(
            events.Refusal(move.topic_partition, "no broker is left") for move in order.moves)),
    ]),
    instructions.ElectLeaders: _or_none(lambda order, at_ms: [events.LeadersElected(at_ms, order.partitions)]),
    instructions.Verify: _or_none(lambda _, at_ms: [
        events.Verified(at_ms, ()), *_sooner_or_later(events.Verified(at_ms, ("a-0: not there",), SENT[:1])),
    ]),
}  # fmt: skip

BEGINNINGS: tuple[tuple[RunStarted, *tuple[Event, ...]], ...] = (
    (started(),),
    (begun(throttle=None),),
    (begun(rates=ThrottleRates(adaptive=AdaptiveThrottle(10 * RATE))),),
    (begun(throttle=None, guards={GuardName.CORDONED: Reaction.CANCEL}),),
    (begun(throttle=None, pace=Pace(elections_per_step=1)),),
    (guarded(), *PREPARED[1:], events.RunResumed(3_000, LIVE)),
    # A destination is lost, and its moves are about to be planned again.
    (
        begun(throttle=None, replans=True),
        look(2_000, UNTOUCHED),
        events.HealthObserved(3_000, WITHOUT_2),
        events.SubmissionIntended(4_000, SENT),
        events.MovesSubmitted(5_000, SENT),
        look(FAR_MS, MOVING),
        events.HealthObserved(FAR_MS, WITHOUT_2),
    ),
)


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    explorer = Explorer()
    for begin in BEGINNINGS:
        explorer.walk(*begin)
    return explorer


def test_every_row_is_reached(explorer: Explorer) -> None:
    missed = [
        f"{state.__name__}, {event.__name__}" for state, event in TRANSITIONS if (state, event) not in explorer.reached
    ]
    assert missed == []


def _states_with(*kinds: type[Event]) -> set[type]:
    return {state for state, kind in TRANSITIONS if kind in kinds}


FIRST_STATES = set[type]().union(
    *(row.leads_to for (_, event), row in TRANSITIONS.items() if event in {RunStarted, events.RunResumed})
)
"""Where a process begins, which asks for the lease first of all."""


def test_the_lease_is_asked_for_first_and_again_once_it_was_lost() -> None:
    assert _states_with(events.LeaseTaken) == FIRST_STATES | {AwaitingLease}


def test_a_lease_is_forgone_where_a_process_begins_or_awaits_it() -> None:
    assert _states_with(events.LeaseForgone) == FIRST_STATES | {AwaitingLease}


def test_a_lost_lease_is_found_where_a_run_begins_waits_or_changes(explorer: Explorer) -> None:
    going_on = {state: kinds for state, kinds in explorer.instructed.items() if state.phase not in AT_REST}
    acts = {state for state, kinds in going_on.items() if kinds & {instructions.Wait, *ClusterChange.__args__}}
    # A run that verifies its result changes nothing more.
    assert _states_with(events.LeaseLost) == (acts | FIRST_STATES) - {AwaitingLease, Verifying}


@pytest.mark.parametrize("event", [events.RunResumed, events.BrokersForgotten])
def test_a_finished_run_cannot_be_resumed(event: type[Event]) -> None:
    every = {state for state, _ in TRANSITIONS} | {state for row in TRANSITIONS.values() for state in row.leads_to}
    assert _states_with(event) == every - {New, Done, Cancelled}
