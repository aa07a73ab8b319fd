"""What people ask of a run, as events."""

from copy import deepcopy
from dataclasses import replace

import pytest

from kreassign.executor.events import (
    BrokersForgotten,
    CancelIntended,
    CancelRequested,
    ClockStepped,
    ConfigsRead,
    Event,
    HoldRequested,
    LeadersElected,
    MovesCancelled,
    Operator,
    PaceRequested,
    PlacementState,
    PlannedMove,
    Refusal,
    ReleaseRequested,
    RunResumed,
    StopRequested,
    ThrottleIntended,
    ThrottleRequested,
    ThrottleSet,
    TimePassed,
    Verified,
)
from kreassign.executor.guards.settings import reactions, settings
from kreassign.executor.instructions import (
    CancelMoves,
    CheckThrottle,
    ElectLeaders,
    ObserveMoves,
    ReadConfigs,
    SetThrottle,
    SubmitMoves,
    Wait,
)
from kreassign.executor.scheduling import Pace, PaceChange
from kreassign.executor.state import AT_REST, STATES, TRANSITIONS, Phase, WindDown
from kreassign.executor.state.move import MoveStatus
from kreassign.executor.state.phases import Resuming, Throttling
from kreassign.executor.state.run import Doubt
from kreassign.executor.throttle.adaptive import AdaptiveThrottle
from kreassign.executor.throttle.ledger import ConfigValue
from kreassign.executor.throttle.rates import BrokerRate, ThrottleRates
from kreassign.model import TopicPartition
from tests.executor.run_events import (
    A0,
    A1,
    ARRIVED,
    LISTED,
    LISTS,
    LIVE,
    MOVES,
    OVERRIDES,
    PREPARED,
    RATES,
    SUBMITTED,
    look,
    replayed,
    started,
)
from tests.executor.state.run_changes import Changes, handled, run_after

UNTOUCHED = look(5_000, PlacementState.UNTOUCHED)
CANCELLING: tuple[Event, ...] = (
    *SUBMITTED,
    CancelRequested(5_000, 1, is_now=True),
    look(5_000, PlacementState.MOVING),
    CancelIntended(5_000, (A0, A1)),
)


def test_a_held_run_starts_nothing_and_goes_on_looking() -> None:
    assert replayed(*PREPARED, HoldRequested(2_000, 1), UNTOUCHED)[1] == (Wait(),)
    assert replayed(*PREPARED, HoldRequested(2_000, 1), UNTOUCHED, TimePassed(6_000))[1] == (ObserveMoves(MOVES),)


def test_a_released_run_starts_what_was_held() -> None:
    events = (*PREPARED, HoldRequested(2_000, 1), UNTOUCHED, ReleaseRequested(6_000, 2), TimePassed(6_000), UNTOUCHED)
    assert replayed(*events)[1] == (SetThrottle(LISTS),)


def test_a_request_to_hold_leaves_what_was_ordered_before_in_force() -> None:
    assert replayed(*LISTED, HoldRequested(3_500, 1))[1] == ()


def test_a_cancelled_run_drops_what_was_not_begun_and_restores_the_throttle() -> None:
    execution, instructions = replayed(*PREPARED, CancelRequested(2_000, 1, is_now=False), UNTOUCHED)
    assert {record.status for record in execution.records.values()} == {MoveStatus.CANCELLED}
    assert execution.phase is Phase.RESTORING
    assert isinstance(instructions[0], ReadConfigs)


def test_a_cancelled_run_watches_what_is_in_flight_to_its_end() -> None:
    finishing = (*SUBMITTED, CancelRequested(5_000, 1, is_now=False), look(5_000, PlacementState.MOVING))
    assert replayed(*finishing)[1] == (Wait(),)
    execution, _ = replayed(*finishing, TimePassed(6_000), look(7_000, PlacementState.ARRIVED))
    assert {record.status for record in execution.records.values()} == {MoveStatus.COMPLETE}


def test_cancelling_at_once_takes_back_what_is_in_flight_and_looks_whether_that_worked() -> None:
    assert replayed(*CANCELLING[:-1])[1] == (CancelMoves((A0, A1)),)
    assert replayed(*CANCELLING, MovesCancelled(6_000, (A0, A1)))[1] == (ObserveMoves(MOVES),)
    execution, _ = replayed(*CANCELLING, MovesCancelled(6_000, (A0, A1)), look(7_000, PlacementState.REORDERED))
    assert {record.status for record in execution.records.values()} == {MoveStatus.CANCELLED}


def test_cancelling_at_once_may_follow_cancelling_but_not_the_other_way_round() -> None:
    later = (CancelRequested(5_000, 1, is_now=False), CancelRequested(5_000, 2, is_now=True))
    assert replayed(*SUBMITTED, *later, look(5_000, PlacementState.MOVING))[1] == (CancelMoves((A0, A1)),)
    unconfirmed = (CancelRequested(5_000, 1, is_now=True), CancelRequested(5_000, 2, is_now=False))
    assert replayed(*SUBMITTED, *unconfirmed, look(5_000, PlacementState.MOVING))[1] == (CancelMoves((A0, A1)),)


def test_a_move_that_arrives_while_it_is_being_cancelled_counts_as_made() -> None:
    execution, _ = replayed(*CANCELLING, MovesCancelled(6_000, ()), look(7_000, PlacementState.ARRIVED))
    assert {record.status for record in execution.records.values()} == {MoveStatus.COMPLETE}


def test_a_cancellation_that_got_lost_is_repeated_after_a_pause_until_the_move_is_over() -> None:
    def lost(at_ms: int) -> tuple[Event, ...]:
        return (MovesCancelled(at_ms, ()), look(at_ms, PlacementState.MOVING))

    assert replayed(*CANCELLING, *lost(5_100))[1] == (Wait(),)
    assert replayed(*CANCELLING, *lost(7_000))[1] == (CancelMoves((A0, A1)),)
    times_ms = range(100_000, 1_000_000, 100_000)
    again = (event for at_ms in times_ms for event in (CancelIntended(at_ms, (A0, A1)), *lost(at_ms + 60_000)))
    execution, instructions = replayed(*CANCELLING, *lost(7_000), *again)
    assert instructions == (CancelMoves((A0, A1)),)
    assert {record.status for record in execution.records.values()} == {MoveStatus.CANCELLING}
    assert "a-0: cancelling it had no effect 3 times; it is in flight until that has one" in execution.problems


def test_a_refused_cancellation_is_told() -> None:
    execution, instructions = replayed(*CANCELLING, MovesCancelled(6_000, (A1,), (Refusal(A0, "not authorized"),)))
    assert instructions == (ObserveMoves(MOVES),)
    assert execution.problems == ("a-0 could not be cancelled: not authorized",)


def test_a_crash_while_cancelling_goes_on_cancelling() -> None:
    crashed = (*CANCELLING, RunResumed(9_000, LIVE), ThrottleIntended(9_000, ()), ThrottleSet(9_000))
    assert replayed(*crashed)[1] == (ObserveMoves(MOVES),)
    assert replayed(*crashed, look(10_000, PlacementState.MOVING))[1] == (CancelMoves((A0, A1)),)


def test_a_run_of_which_moves_were_cancelled_ends_as_cancelled() -> None:
    events = (started(throttle=None), CancelRequested(0, 1, is_now=False), UNTOUCHED, ConfigsRead(6_000, ()))
    assert replayed(*events, Verified(7_000, ()))[0].phase is Phase.CANCELLED


def test_a_new_rate_is_set_at_once_with_the_values_before_the_run_in_the_ledger() -> None:
    execution, instructions = replayed(*SUBMITTED, ThrottleRequested(5_000, 1, 7))
    (setting,) = instructions
    assert isinstance(setting, SetThrottle)
    assert {override.value for override in setting.overrides} == {"7"}
    assert {override.before for override in setting.overrides} == {None, "7000"}
    assert execution.phase is Phase.THROTTLING
    after = (ThrottleIntended(5_000, setting.overrides), ThrottleSet(6_000))
    assert replayed(*SUBMITTED, ThrottleRequested(5_000, 1, 7), *after)[1] == (ObserveMoves(MOVES),)


def test_a_rate_that_comes_too_late_changes_nothing() -> None:
    events = (*SUBMITTED, look(5_000, PlacementState.ARRIVED), ThrottleRequested(6_000, 1, 7))
    assert replayed(*events)[1] == ()


@pytest.mark.parametrize("kind", [HoldRequested, ReleaseRequested, CancelRequested, ThrottleRequested, PaceRequested])
def test_requests_are_heard_in_every_phase_of_a_run_that_goes_on(kind: type[Event]) -> None:
    goes_on = {state for state in STATES if state.phase not in AT_REST | {Phase.NEW}}
    assert {state for state, event in TRANSITIONS if event is kind} == goes_on


def test_leaving_does_not_change_what_was_asked_before() -> None:
    execution, _ = replayed(*SUBMITTED, CancelRequested(5_000, 1, is_now=True), StopRequested(5_000))
    resumed, instructions = replayed(
        *SUBMITTED, CancelRequested(5_000, 1, is_now=True), StopRequested(5_000), RunResumed(6_000, LIVE)
    )
    assert execution.phase is Phase.PAUSED
    assert resumed.wind_down is execution.wind_down
    assert not any(isinstance(order, SubmitMoves) for order in instructions)


def test_a_step_of_elections_that_is_changed_while_it_is_asked_for_skips_nobody() -> None:
    moves = tuple(PlannedMove(TopicPartition("a", number), (0, 1), (1, 0), 0) for number in range(5))
    begun = replace(started(*moves, throttle=None), pace=Pace(elections_per_step=2))
    to_elect = (begun, look(1_000, PlacementState.ARRIVED, *moves, leader=0))
    first, second = moves[0].topic_partition, moves[1].topic_partition
    assert replayed(*to_elect)[1] == (ElectLeaders((first, second)),)
    changed = (PaceRequested(1_500, 1, PaceChange(elections_per_step=100)), LeadersElected(2_000, (first, second)))
    _, instructions = replayed(*to_elect, *changed, TimePassed(3_000))
    assert instructions == (ElectLeaders(tuple(move.topic_partition for move in moves[2:])),)


DURING_MOVES = run_after(*SUBMITTED)


@pytest.mark.parametrize(("event", "changes"), [
    (HoldRequested(5_000, 7), {"control.is_held": True}),
    (CancelRequested(5_000, 7, is_now=True), {"control.wind_down": WindDown.CANCEL}),
    (CancelRequested(5_000, 7, is_now=False), {"control.wind_down": WindDown.FINISH}),
    (PaceRequested(5_000, 7, PaceChange(elections_per_step=3)), {"control.pace": Pace(elections_per_step=3)}),
    (ReleaseRequested(5_000, 7), {}),
], ids=lambda one: type(one).__name__)  # fmt: skip
def test_a_request_changes_what_it_asks_for_and_its_number_and_orders_nothing(event: Event, changes: Changes) -> None:
    assert handled(deepcopy(DURING_MOVES), event) == ((), {"control.last_request": 7, **changes})


def test_requests_take_back_what_was_asked_before_but_a_cancellation() -> None:
    run = run_after(*SUBMITTED, HoldRequested(5_000, 1), CancelRequested(5_000, 2, is_now=False))
    assert handled(run, ReleaseRequested(5_000, 3)) == ((), {"control.last_request": 3, "control.is_held": False})
    now = {"control.last_request": 4, "control.wind_down": WindDown.CANCEL}
    assert handled(run, CancelRequested(5_000, 4, is_now=True)) == ((), now)
    assert handled(run, CancelRequested(5_000, 5, is_now=False)) == ((), {"control.last_request": 5})


def test_a_clock_that_was_set_changes_only_how_far_ahead_it_is() -> None:
    assert handled(deepcopy(DURING_MOVES), ClockStepped(5_000, -60_000)) == ((), {"wall_ahead_ms": -60_000})


def test_another_throttle_is_taken_in_whole_after_the_moves_and_set_while_they_go_on() -> None:
    adaptive = AdaptiveThrottle(9_000)
    run = run_after(*ARRIVED)
    asked = (
        (ThrottleRequested(8_000, 7, 5), ThrottleRates(5)),
        (ThrottleRequested(8_000, 7, 6, (2,)), ThrottleRates(5, (BrokerRate(2, 6),))),
        (ThrottleRequested(8_000, 7, None, (), adaptive), ThrottleRates(None, (), adaptive)),
    )
    for event, rates in asked:
        assert handled(run, event)[0] == ()
        assert run.control.rates == rates
    again = ThrottleRequested(8_000, 8, None, (), adaptive)
    assert handled(run, again) == ((), {"control.last_request": 8})


def test_a_run_that_is_guarded_sees_its_throttle_again_before_another_one_is_set() -> None:
    run = deepcopy(DURING_MOVES)
    run.identity.reactions, run.identity.rereads_first = reactions(settings()), True
    run.throttle.doubts = {LISTS[0].key: Doubt(ConfigValue(LISTS[0].key, "5"), 4_000)}
    assert handled(run, ThrottleRequested(5_000, 7, 5)) == (
        (CheckThrottle(OVERRIDES),),
        {
            "state": Resuming(),
            "control.last_request": 7,
            "control.rates": ThrottleRates(5),
            "throttle.unseen": {one.key for one in OVERRIDES},
            "throttle.due": {LISTS[0].key, *(one.key for one in RATES)},
            "throttle.is_asked_for": True,
        },
    )


def test_a_run_without_guards_sets_another_throttle_at_once() -> None:
    faster = tuple(replace(one, value="5", unconfirmed=(str(one.value),)) for one in RATES)
    assert handled(deepcopy(DURING_MOVES), ThrottleRequested(5_000, 7, 5)) == (
        (SetThrottle(faster),),
        {"state": Throttling(), "control.last_request": 7, "control.rates": ThrottleRates(5)},
    )


def test_settings_of_brokers_that_are_given_up_are_not_waited_for_or_restored_any_more() -> None:
    run = deepcopy(DURING_MOVES)
    run.throttle.awaited = frozenset({2, 4})
    (lost,) = (one for one in RATES if one.key.broker == 2)
    kept = {one.key: one for one in OVERRIDES if one is not lost}
    run.throttle.due, run.throttle.unseen = {one.key for one in OVERRIDES}, {one.key for one in OVERRIDES}
    run.throttle.doubts = {lost.key: Doubt(ConfigValue(lost.key, "5"), 4_000)}
    assert handled(run, BrokersForgotten(5_000, (2,), Operator("ann", "host"))) == (
        (),
        {
            "throttle.pending": kept,
            "throttle.in_force": {*kept},
            "throttle.due": {*kept},
            "throttle.unseen": {*kept},
            "throttle.doubts": {},
            "throttle.carried": {lost.key},
            "throttle.awaited": {4},
            "problems.noted": [
                f"{lost.then}; that broker was given up as lost by ann@host, so nothing was restored there"
            ],
        },
    )


def test_what_stays_on_brokers_that_are_given_up_is_told_with_who_gave_them_up() -> None:
    named = replayed(*SUBMITTED, BrokersForgotten(5_000, (2,), Operator("ann", "host")))[0]
    unnamed = replayed(*SUBMITTED, BrokersForgotten(5_000, (2,)))[0]
    assert {key.broker for key in named.pending_restores} == {None, 0, 1, 3}
    assert ["given up as lost by ann@host, so" in one for one in named.problems] == [True]
    assert ["given up as lost, so" in one for one in unnamed.problems] == [True]
