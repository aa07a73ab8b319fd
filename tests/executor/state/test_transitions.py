"""The table of transitions, walked with every kind of event: every row is reached, and leads only where it says."""

from __future__ import annotations

from collections import deque
from copy import deepcopy
from dataclasses import replace

import pytest

from kreassign.executor.events import (
    BrokersForgotten,
    CallFailed,
    CancelIntended,
    CancelRequested,
    ClockStepped,
    ConfigsRead,
    Event,
    HealthObserved,
    HoldRequested,
    LeadersElected,
    LeaseForgone,
    LeaseLost,
    LeaseRefused,
    LeaseTaken,
    MovesCancelled,
    MovesObserved,
    MovesReplanned,
    MovesSubmitted,
    NewTarget,
    PaceRequested,
    PlacementState,
    Refusal,
    ReleaseRequested,
    RunResumed,
    RunStarted,
    StopRequested,
    SubmissionIntended,
    ThrottleChecked,
    ThrottleIntended,
    ThrottleRequested,
    ThrottleRestored,
    ThrottleSet,
    TimePassed,
    TrafficMeasured,
    Unwritten,
    VerdictsRecorded,
    Verified,
)
from kreassign.executor.guards import GuardName, Health, Reaction
from kreassign.executor.guards.settings import settings
from kreassign.executor.instructions import (
    CancelMoves,
    CheckHealth,
    CheckThrottle,
    ClusterChange,
    ElectLeaders,
    Instruction,
    MeasureTraffic,
    ObserveMoves,
    ReadConfigs,
    RecordVerdicts,
    ReplanMoves,
    RestoreThrottle,
    SetThrottle,
    SubmitMoves,
    TakeLease,
    Wait,
)
from kreassign.executor.scheduling import Pace, PaceChange
from kreassign.executor.state import AT_REST, TRANSITIONS, Phase
from kreassign.executor.state.machine import handle
from kreassign.executor.state.phases import AwaitingLease, Cancelled, Done, New, RunState
from kreassign.executor.state.run import Run
from kreassign.executor.state.transition import Key
from kreassign.executor.throttle.adaptive import AdaptiveThrottle
from kreassign.executor.throttle.ledger import ConfigKey, ConfigValue
from kreassign.executor.throttle.rates import ThrottleRates
from kreassign.model import ConfigResource, TopicPartition
from tests.executor.run_events import LIVE, MOVES, PREPARED, RATE, look, started

pytestmark = pytest.mark.thorough

FAR_MS = 400_000
"""Longer than every patience."""

PLACES_AT_MOST = 450
"""So many places are enough for every row, from all beginnings together."""


class Explorer:
    """Walks from state to state with every kind of event and answer, breadth first."""

    def __init__(self) -> None:
        self.reached: dict[Key, set[type]] = {}
        self.instructed: dict[type[RunState], set[type]] = {}
        self._known: set[object] = set()

    def walk(self, *begun: Event) -> None:
        """Follow everything that may happen after a run began so."""
        run = Run()
        self._known.clear()
        followed: tuple[Instruction, ...] = ()
        for event in begun:
            followed = self._step(run, event, followed)
        todo = deque([(run, followed, begun[-1])])
        while todo:
            run, instructions, last = todo.popleft()
            for event in _next_events(instructions, last):
                if (type(run.state), type(event)) not in TRANSITIONS:
                    continue
                after = deepcopy(run)
                followed = self._step(after, event, instructions)
                place = _place(after, followed, event)
                if place not in self._known and len(self._known) < PLACES_AT_MOST:
                    self._known.add(place)
                    todo.append((after, followed, event))

    def _step(self, run: Run, event: Event, instructions: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
        key: Key = (type(run.state), type(event))
        followed = handle(run, event)
        self.reached.setdefault(key, set()).add(type(run.state))
        self.instructed.setdefault(type(run.state), set()).update(map(type, followed or instructions))
        return followed or instructions


def _place(run: Run, instructions: tuple[Instruction, ...], last: Event) -> object:
    """Where a run is, as far as that matters for what may follow."""
    return (
        (type(run.state), run.state.restore.afterwards if run.state.phase is Phase.RESTORING else None),
        tuple(map(type, instructions)),
        isinstance(last, ThrottleIntended | SubmissionIntended | CancelIntended),
        tuple(sorted(record.status for record in run.moves.records.values())),
        bool(run.throttle.pending),
        run.control.wind_down is None,
        (run.control.rates.adaptive is not None, bool(run.identity.reactions), bool(run.throttle.awaited)),
    )


def _next_events(instructions: tuple[Instruction, ...], last: Event) -> list[Event]:
    """What may come: a request at any time, else what the first instruction ends in."""
    at_ms = last.at_ms + 1_000
    is_announced = isinstance(last, ThrottleIntended | SubmissionIntended | CancelIntended)
    answers = _answers(instructions[0], at_ms, is_announced=is_announced) if instructions else []
    # Between its announcement and its answer a change is not interrupted, except by the end of the process.
    return [RunResumed(at_ms, LIVE), *answers] if is_announced else [*_requests(at_ms), *answers]


def _shape(what: object) -> object:
    if isinstance(what, Run):
        return (
            tuple(record.status for record in what.moves.records.values()),
            bool(what.throttle.pending),
            bool(what.throttle.awaited),
            what.control.is_held,
        )
    return repr(what)[:200] if isinstance(what, MovesObserved | Verified | MovesSubmitted) else type(what).__name__


def _requests(at_ms: int) -> list[Event]:
    return [
        HoldRequested(at_ms, 1),
        ReleaseRequested(at_ms, 2),
        CancelRequested(at_ms, 3, is_now=True),
        CancelRequested(at_ms, 4, is_now=False),
        PaceRequested(at_ms, 5, PaceChange(elections_per_step=1)),
        ThrottleRequested(at_ms, 6, 2 * RATE),
        ThrottleRequested(at_ms, 7, None),
        StopRequested(at_ms),
        ClockStepped(at_ms, 3_600_000),
        RunResumed(at_ms, LIVE),
        BrokersForgotten(at_ms, (0,)),
        LeaseTaken(at_ms, 2),
        LeaseForgone(at_ms, "no group"),
        LeaseLost(at_ms, "another run has it"),
    ]


def _looks(at_ms: int) -> list[Event]:
    places = (PlacementState.UNTOUCHED, PlacementState.MOVING, PlacementState.ARRIVED, PlacementState.DELETED)
    led = [look(at_ms, PlacementState.ARRIVED, leader=4)]
    one = [look(at_ms, PlacementState.ARRIVED, MOVES[0])]
    return [MovesObserved(at_ms, ()), *led, *one, *(look(at_ms, place) for place in places)]


def _answers(first: Instruction, at_ms: int, *, is_announced: bool) -> list[Event]:
    """What the instruction may end in; a change is announced before that."""
    failed: list[Event] = [CallFailed(at_ms, "no answer"), CallFailed(at_ms + FAR_MS, "no answer")]
    match first:
        case SetThrottle(overrides):
            return _settings(at_ms) if is_announced else [ThrottleIntended(at_ms, overrides)]
        case SubmitMoves(targets):
            names = tuple(targets)
            return [*_submitted(names, at_ms), *failed] if is_announced else [SubmissionIntended(at_ms, names)]
        case CancelMoves(names):
            cancelled = [MovesCancelled(at_ms, names), *failed]
            return cancelled if is_announced else [CancelIntended(at_ms, names)]
        case TakeLease():
            return [LeaseTaken(at_ms, 3), LeaseRefused(at_ms, "another run has it"), LeaseForgone(at_ms, "no group")]
        case Wait() | RestoreThrottle() | MeasureTraffic() | RecordVerdicts():
            return _certain_answers(first, at_ms)
    return [*_readings(first, at_ms), *failed]


def _certain_answers(first: Instruction, at_ms: int) -> list[Event]:
    match first:
        case RestoreThrottle():
            return [ThrottleRestored(at_ms), ThrottleRestored(at_ms, by_controller=LIVE)]
        case MeasureTraffic():
            return [TrafficMeasured(at_ms, ())]
        case RecordVerdicts(verdicts):
            return [VerdictsRecorded(at_ms, verdicts)]
    return [TimePassed(at_ms)]


def _readings(first: Instruction, at_ms: int) -> list[Event]:
    found: list[Event] = []
    match first:
        case ReadConfigs(keys):
            found = _configs(keys, at_ms)
        case ObserveMoves():
            found = _looks(at_ms)
        case CheckHealth():
            found = [HealthObserved(at_ms, Health(LIVE)), HealthObserved(at_ms, Health(LIVE, cordoned=(2,)))]
        case CheckThrottle(overrides):
            odd = tuple(ConfigValue(override.key, "7") for override in overrides)
            found = [ThrottleChecked(at_ms), ThrottleChecked(at_ms, odd)]
        case ReplanMoves():
            found = _replans(first, at_ms)
        case ElectLeaders(names):
            found = [LeadersElected(at_ms, names)]
    if found:
        return found
    wrong = Verified(at_ms, ("a-0: not there",))
    return [Verified(at_ms, ()), wrong, replace(wrong, at_ms=at_ms + FAR_MS)]


def _replans(question: ReplanMoves, at_ms: int) -> list[Event]:
    refused = tuple(Refusal(move.topic_partition, "no broker is left") for move in question.moves)
    targets = tuple(NewTarget(move.topic_partition, move.target, (4, 1)) for move in question.moves)
    return [MovesReplanned(at_ms, question.lost, targets), MovesReplanned(at_ms, question.lost, (), refused)]


def _configs(keys: tuple[ConfigKey, ...], at_ms: int) -> list[Event]:
    unread = ConfigsRead(at_ms, (), ("broker 0 could not be read",))
    none = tuple(ConfigValue(key, None) for key in keys)
    of_the_run = tuple(ConfigValue(key, str(RATE)) for key in keys)
    foreign = tuple(ConfigValue(key, "7") for key in keys)
    found = [ConfigsRead(at_ms, values) for values in (none, of_the_run, foreign)]
    return [*found, unread, replace(unread, at_ms=at_ms + FAR_MS), ConfigsRead(at_ms, (), (), down=(2,))]


def _settings(at_ms: int) -> list[Event]:
    failed = ThrottleSet(at_ms, ("no",), failed=(ConfigResource.broker(0),))
    down = ThrottleSet(at_ms, (), (Unwritten(2, "it is down"),))
    return [ThrottleSet(at_ms), failed, replace(failed, at_ms=at_ms + FAR_MS), down]


def _submitted(names: tuple[TopicPartition, ...], at_ms: int) -> list[Event]:
    refused = tuple(Refusal(name, "no") for name in names)
    return [
        MovesSubmitted(at_ms, names),
        MovesSubmitted(at_ms, (), refused),
        MovesSubmitted(at_ms, (), unknown=names),
    ]


_ONLY_THE_THROTTLE = {**dict.fromkeys(GuardName, Reaction.OFF), GuardName.FOREIGN_THROTTLE: Reaction.HOLD}


def beginnings() -> list[RunStarted]:
    """With a throttle, without one, with one that adapts, with guards, and with elections one by one."""
    adaptive = replace(started(), rates=ThrottleRates(adaptive=AdaptiveThrottle(10 * RATE)))
    return [
        started(),
        started(throttle=None),
        adaptive,
        replace(started(throttle=None), guards=settings({GuardName.CORDONED: Reaction.CANCEL})),
        replace(started(throttle=None), pace=Pace(elections_per_step=1)),
    ]


WITHOUT_2 = tuple(broker for broker in LIVE if broker != 2)
SENT = tuple(move.topic_partition for move in MOVES)
LOST: tuple[Event, ...] = (
    look(2_000, PlacementState.UNTOUCHED),
    HealthObserved(3_000, Health(WITHOUT_2)),
    SubmissionIntended(4_000, SENT),
    MovesSubmitted(5_000, SENT),
    look(FAR_MS, PlacementState.MOVING),
    HealthObserved(FAR_MS, Health(WITHOUT_2)),
)
"""A destination is lost, and its moves are about to be planned again."""


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    explorer = Explorer()
    for begun in beginnings():
        explorer.walk(begun)
    guarded = replace(started(), guards=settings(_ONLY_THE_THROTTLE), rereads_throttle=True)
    explorer.walk(guarded, *PREPARED[1:])
    explorer.walk(guarded, *PREPARED[1:], RunResumed(3_000, LIVE, rereads_first=True))
    explorer.walk(replace(started(throttle=None), replans=True), *LOST)
    return explorer


@pytest.fixture(scope="module")
def explored(explorer: Explorer) -> dict[Key, set[type]]:
    return explorer.reached


def test_every_row_is_reached(explored: dict[Key, set[type]]) -> None:
    assert [_named(key) for key in TRANSITIONS if key not in explored] == []


def _states_with(event: type[Event]) -> set[type]:
    return {state for state, kind in TRANSITIONS if kind is event}


def _first_states_of_a_process() -> set[type]:
    return set().union(*(row.leads_to for (_, event), row in TRANSITIONS.items() if event in {RunStarted, RunResumed}))


@pytest.mark.parametrize("event", [LeaseTaken, LeaseForgone])
def test_a_process_asks_for_the_lease_before_anything_else_and_again_once_it_was_lost(event: type[Event]) -> None:
    assert _states_with(event) == _first_states_of_a_process() | {AwaitingLease}


def test_that_the_lease_was_lost_is_found_out_where_a_process_begins_waits_or_changes_something(
    explorer: Explorer,
) -> None:
    going_on = {state: kinds for state, kinds in explorer.instructed.items() if state.phase not in AT_REST}
    acts = {state for state, kinds in going_on.items() if kinds & {Wait, *ClusterChange.__args__}}
    assert _states_with(LeaseLost) == (acts | _first_states_of_a_process()) - {AwaitingLease}


@pytest.mark.parametrize("event", [RunResumed, BrokersForgotten])
def test_a_run_that_has_nothing_left_to_do_is_not_gone_on_with(event: type[Event]) -> None:
    every = {state for state, _ in TRANSITIONS} | {state for row in TRANSITIONS.values() for state in row.leads_to}
    assert _states_with(event) == every - {New, Done, Cancelled}


def _named(key: Key) -> str:
    return f"{key[0].__name__}, {key[1].__name__}"
