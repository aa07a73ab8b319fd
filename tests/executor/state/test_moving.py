"""Moves are observed, started, cancelled and waited for: what each event orders, and all that it changes."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import pytest

from kreassign.executor.events import (
    CallFailed,
    CancelIntended,
    Event,
    LogDirTarget,
    MovesCancelled,
    MovesObserved,
    MovesSubmitted,
    PlacementState,
    PlannedMove,
    Refusal,
    SubmissionIntended,
    ThrottleChecked,
    ThrottleIntended,
    ThrottleSet,
    TimePassed,
    TrafficMeasured,
    Unwritten,
)
from kreassign.executor.guards import GuardName, Health, Reaction, Verdict
from kreassign.executor.instructions import (
    CancelMoves,
    CheckHealth,
    CheckThrottle,
    ElectLeaders,
    Instruction,
    MeasureTraffic,
    ObserveMoves,
    ReadConfigs,
    SetThrottle,
    SubmitMoves,
    Wait,
)
from kreassign.executor.scheduling import AtWindowEnd, Cap, Caps, DiskBudget, Order, Pace, Schedule, Window
from kreassign.executor.state import MoveStatus, WindDown, moving
from kreassign.executor.state.attempts import LEAST_ATTEMPTS, delay_ms
from kreassign.executor.state.copy_speed import CopySpeed
from kreassign.executor.state.health_watch import FRESH_MS
from kreassign.executor.state.machine import handle
from kreassign.executor.state.move import NextAction, Replan
from kreassign.executor.state.moving import CHECKED_AT_ONCE, OUT_OF_REACH_MS, SETTING, UNSET_PATIENCE_MS
from kreassign.executor.state.phases import (
    Afterwards,
    Cancelling,
    CheckingHealth,
    CheckingThrottle,
    Electing,
    MeasuringTraffic,
    MovingStep,
    Observing,
    Paused,
    Restore,
    Restoring,
    RunState,
    SettingLists,
    Submitting,
    Throttling,
    Waiting,
)
from kreassign.executor.state.run import Doubt, PassingProblem, Run
from kreassign.executor.throttle.adaptive import AdaptiveThrottle, BrokerTraffic
from kreassign.executor.throttle.ledger import ConfigValue
from kreassign.executor.throttle.rates import NO_THROTTLE, ThrottleRates
from kreassign.model import NO_LEADER, ConfigResource, TopicPartition, TopicPartitionReplica
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
    seen,
    started,
)
from tests.executor.state.run_changes import Changes, changed, handled, run_after

BOTH = (A0, A1)
KEYS_SET = {one.key: one for one in OVERRIDES}
TOPIC = ConfigResource.topic("a")
OBSERVE = ObserveMoves(MOVES)


def guarded(run: Run, reaction: Reaction = Reaction.HOLD) -> Run:
    """The same with a guard of its throttle, which looks before each batch."""
    run.identity.reactions, run.identity.rereads_throttle = {GuardName.FOREIGN_THROTTLE: reaction}, True
    run.identity.rereads_first = True
    run.health.checked_ms = 5_000
    return run


# --- beginning and leaving -----------------------------------------------------------------------------------------


def test_moving_begins_with_a_poll_and_where_no_move_is_left_with_the_end() -> None:
    assert moving.enter(run_after(*SUBMITTED)) == (Observing(BOTH), (OBSERVE,))
    assert moving.enter(run_after(*ARRIVED)) == (Electing(()), (ElectLeaders((A0,)),))


def test_whoever_leaves_restores_the_throttle_only_where_nothing_is_in_flight() -> None:
    restore = (Restoring(Restore(Afterwards.PAUSE)), (ReadConfigs(tuple(one.key for one in RATES)),))
    assert moving.pause(run_after(*PREPARED), None, None) == restore
    assert moving.pause(run_after(*SUBMITTED), None, None) == (Paused(), ())
    assert moving.pause(run_after(started(throttle=None)), None, None) == (Paused(), ())


@pytest.mark.parametrize("state", [Throttling(), SettingLists(BOTH)])
def test_what_is_about_to_be_set_is_to_be_restored_from_then_on(state: RunState) -> None:
    run = run_after(*PREPARED)
    other = replace(RATES[1], value="5", unconfirmed=("6",))
    as_before = replace(RATES[2], value=RATES[2].before)
    intended = ThrottleIntended(3_000, (*LISTS, other, as_before))
    pending = {one.key: one for one in (RATES[0], other, as_before, RATES[3], *LISTS)}
    run.state = state
    assert handled(run, intended) == (
        (),
        {
            "throttle.pending": pending,
            "throttle.overrides": pending,
            "throttle.listed": {one.key: set((one.value or "").split(",")) for one in LISTS},
            "throttle.rated": {one.key: {str(one.value)} for one in RATES} | {other.key: {str(RATES[1].value), "5"}},
        },
    )


def test_where_nothing_of_the_run_was_there_its_next_value_may_not_be_there_either() -> None:
    run = run_after(*PREPARED)
    first, second = RATES[:2]
    run.throttle.pending[first.key] = replace(first, value=first.before)
    handled(run, ThrottleIntended(3_000, (first, second)), Throttling())
    assert run.throttle.in_force == {one.key for one in RATES[1:]}


def test_a_setting_that_is_set_again_is_in_doubt_no_more_and_the_guards_are_asked_soon() -> None:
    run = run_after(*PREPARED)
    odd = ConfigValue(RATES[0].key, "5")
    for has_doubt in (False, True):
        run.health.checked_ms = 2_000
        run.throttle.told = {odd.key: odd}
        run.throttle.doubts = {odd.key: Doubt(odd, 1_000)} if has_doubt else {}
        handled(run, ThrottleIntended(3_000, RATES[:1]), Throttling())
        assert (run.throttle.doubts, run.health.checked_ms) == ({}, None if has_doubt else 2_000)
        assert run.throttle.told == ({} if has_doubt else {odd.key: odd})


def test_a_rate_that_was_removed_is_no_value_that_the_run_gave() -> None:
    run = run_after(*PREPARED)
    removed = replace(RATES[1], value=None)
    handled(run, ThrottleIntended(3_000, (removed,)), Throttling())
    assert run.throttle.rated[removed.key] == {str(RATES[1].value)}


# --- what was set --------------------------------------------------------------------------------------------------


def test_what_was_set_is_in_force_and_has_no_earlier_value() -> None:
    run = run_after(*LISTED[:-1])
    doubted, awaited = LISTS[0].key, 3
    earlier = {key: replace(one, unconfirmed=("5",)) for key, one in KEYS_SET.items()}
    run.throttle.pending, run.throttle.overrides, run.throttle.in_force = dict(earlier), {}, set()
    run.throttle.doubts = {doubted: Doubt(ConfigValue(doubted, "5"), 1_000)}
    run.throttle.unset = frozenset({TOPIC})
    event = ThrottleSet(4_000, (), (Unwritten(awaited, "it is down"),))
    made = {key for key in KEYS_SET if key != doubted and key.broker != awaited}
    pending = {key: KEYS_SET[key] if key in made else earlier[key] for key in KEYS_SET}
    assert changed(run, lambda: moving.confirm(run, event)) == (
        None,
        {
            "throttle.pending": pending,
            "throttle.overrides": pending,
            "throttle.in_force": made,
            "throttle.awaited": {3},
            "throttle.unset": frozenset(),
            "problems.unset": {
                3: "the throttle of broker 3 could not be written: it is down; it is set when the broker is back"
            },
        },
    )


def test_where_anything_could_not_be_set_nothing_is_known_to_be() -> None:
    run = run_after(*LISTED[:-1])
    event = ThrottleSet(4_000, ("no",), failed=(TOPIC,))
    assert changed(run, lambda: moving.confirm(run, event)) == (None, {"throttle.unset": {TOPIC}})


REFUSED = ThrottleSet(4_000, ("no",), failed=(TOPIC,))


def after_refusal(run: Run, at_ms: int) -> tuple[tuple[Instruction, ...], Changes]:
    return handled(run, replace(REFUSED, at_ms=at_ms), SettingLists(BOTH))


def test_lists_that_cannot_be_set_are_tried_for_a_minute() -> None:
    run = run_after(*LISTED[:-1])
    told = {SETTING: {"no": PassingProblem("no", 4_000)}}
    assert after_refusal(run, 4_000) == (
        (Wait(),),
        {
            "state": Waiting(),
            "throttle.unset": {TOPIC},
            "throttle.unset_since_ms": 4_000,
            "problems.passing": told,
        },
    )
    assert after_refusal(run, 3_999 + UNSET_PATIENCE_MS)[0] == (Wait(),)
    assert after_refusal(run, 4_000 + UNSET_PATIENCE_MS) == (
        (ReadConfigs(tuple(KEYS_SET)),),
        {
            "state": Restoring(Restore(Afterwards.FAIL)),
            "problems.passing": {},
            "problems.noted": ["no", "the throttle could not be set, so nothing more was started"],
        },
    )


def test_patience_begins_again_once_lists_were_set() -> None:
    run = run_after(*LISTED[:-1])
    after_refusal(run, 4_000)
    assert handled(run, ThrottleSet(5_000), SettingLists(BOTH)) == (
        (SubmitMoves({A0: (2, 1), A1: (1, 3)}),),
        {
            "state": Submitting(()),
            "throttle.unset": frozenset(),
            "throttle.unset_since_ms": None,
            "throttle.in_force": {*KEYS_SET},
            "problems.passing": {SETTING: {"no": PassingProblem("no", 4_000, 5_000)}},
        },
    )


def test_what_is_in_flight_is_watched_though_its_lists_cannot_be_set() -> None:
    run = run_after(*SUBMITTED)
    run.throttle.unset_since_ms = 0
    assert after_refusal(run, 10 * UNSET_PATIENCE_MS)[0] == (Wait(),)
    # The same where only what is gone was not set.
    waiting = run_after(*LISTED[:-1])
    waiting.throttle.unset_since_ms = 0
    gone = ThrottleSet(10 * UNSET_PATIENCE_MS, ("topic a is gone",))
    assert handled(waiting, gone, SettingLists(BOTH))[0] == (Wait(),)


# --- observing and choosing ----------------------------------------------------------------------------------------


def many(count: int) -> tuple[PlannedMove, ...]:
    """Moves between one pair of brokers, of 1,000 bytes each."""
    return tuple(PlannedMove(TopicPartition("a", number), (0, 1), (2, 1), 1_000) for number in range(count))


def named(*moves: PlannedMove) -> tuple[TopicPartition, ...]:
    return tuple(move.topic_partition for move in moves)


def unthrottled(*moves: PlannedMove, pace: Pace | None = None) -> Run:
    """A run without throttle, before its first look."""
    return run_after(replace(started(*moves, throttle=None), pace=pace or Pace(is_eager=True)))


def waiting(*moves: PlannedMove, pace: Pace | None = None) -> Run:
    """A run whose moves were seen untouched and wait."""
    run = unthrottled(*moves, pace=pace)
    for record in run.moves.records.values():
        record.see(seen(record.move, PlacementState.UNTOUCHED), 1_000)
        run.moves.index.sort(record, NextAction.SUBMIT)
    return run


def test_observed_is_what_may_have_gone_on_and_else_the_first_of_what_waits() -> None:
    moves = many(CHECKED_AT_ONCE + 1)
    run, first = waiting(*moves), moves[:CHECKED_AT_ONCE]
    assert moving.observe(run) == (Observing(named(*first)), (ObserveMoves(first),))
    assert moving.observe(run, 7)[0] == Observing(named(*first), (), 7)
    run.moves.index.sort(run.moves.records[moves[-1].topic_partition])
    assert moving.observe(run) == (Observing(named(moves[-1])), (ObserveMoves(moves[-1:]),))


def test_a_poll_of_a_move_in_steps_is_about_its_step() -> None:
    begun = replace(started(MOVES[0], throttle=None), pace=Pace(is_stepwise=True))
    two = replace(MOVES[0], target=(2, 3))
    run = run_after(replace(begun, moves=(two,)))
    step = run.moves.records[A0].step
    assert step != two
    assert moving.observe(run) == (Observing((A0,)), (ObserveMoves((step,)),))


def test_of_a_poll_the_time_and_who_is_absent_are_kept() -> None:
    run = run_after(*SUBMITTED, look(4_500, PlacementState.MOVING))
    run.moves.absent = (4,)
    run.state = Observing(BOTH)
    polled = handled(deepcopy(run), MovesObserved(5_000, ()))
    assert polled == ((Wait(),), {"state": Waiting(), "moves.observed_ms": 5_000})
    for absent in ((), (2,)):
        found = handled(deepcopy(run), MovesObserved(5_000, (), absent=absent))[1]
        assert found["moves.absent"] == absent


def test_what_polls_show_makes_the_speed_of_copies_but_not_where_it_is_looked_before_a_start() -> None:
    run = run_after(*SUBMITTED, look(5_000, PlacementState.MOVING, done=100))
    done = look(6_000, PlacementState.MOVING, done=300)
    most = handled(deepcopy(run), done, Observing(BOTH))[1]["moves.speed.most_done_bytes"]
    assert most == 200.0
    assert "moves.speed.most_done_bytes" not in handled(deepcopy(run), done, Observing(BOTH, BOTH))[1]
    unmeasured = handled(run, replace(done, has_progress=False), Observing(BOTH))[1]
    assert unmeasured["moves.speed._polls"] == 1


def test_what_could_not_be_read_is_told_until_it_can_be() -> None:
    run = run_after(*SUBMITTED)
    unread = MovesObserved(5_000, (), (Refusal(A0, "no"),))
    told = {"unread a-0": {"no": PassingProblem("no", 5_000)}}
    assert handled(run, unread, Observing(BOTH))[1]["problems.passing"] == told
    over = {"unread a-0": {"no": PassingProblem("no", 5_000, 6_000)}}
    assert handled(run, MovesObserved(6_000, ()), Observing(BOTH))[1]["problems.passing"] == over


def test_from_what_could_not_be_read_nothing_follows_though_it_is_shown_too() -> None:
    run = run_after(*SUBMITTED)
    arrived = replace(look(5_000, PlacementState.ARRIVED), unread=(Refusal(A0, "no"),))
    handled(run, arrived, Observing(BOTH))
    assert [one.status for one in run.moves.records.values()] == [MoveStatus.MOVING, MoveStatus.COMPLETE]


def test_what_is_shown_unasked_counts_too() -> None:
    run = run_after(*SUBMITTED)
    handled(run, look(5_000, PlacementState.ARRIVED, MOVES[1]), Observing((A0,)))
    assert run.moves.records[A1].status is MoveStatus.COMPLETE


def test_moves_that_begin_to_wait_for_a_leader_or_end_are_told() -> None:
    run = unthrottled(*MOVES)
    silent = MovesObserved(1_000, (replace(seen(MOVES[0], PlacementState.UNTOUCHED), leader=NO_LEADER),))
    handled(run, silent, Observing((A0,)))
    sentence = "a-0 had no leader when it was to start; nothing is sent before it has one"
    assert run.problems.passing == {"leader a-0": {sentence: PassingProblem(sentence, 1_000)}}
    handled(run, look(2_000, PlacementState.MOVING, MOVES[0]), Observing((A0,)))
    assert run.problems.passing["leader a-0"][sentence].until_ms == 2_000
    run.tell("cancelling a-0", 2_500, "no effect")
    run.tell("cancellation a-0", 2_500, "refused")
    handled(run, MovesObserved(3_000, ()), Observing((A0,)))
    open_ones = [kind for kind, known in run.problems.passing.items() for one in known.values() if one.until_ms is None]
    assert open_ones == ["cancelling a-0", "cancellation a-0"]
    handled(run, look(4_000, PlacementState.ARRIVED, MOVES[0]), Observing((A0,)))
    until = {kind: one.until_ms for kind, known in run.problems.passing.items() for one in known.values()}
    assert until == {"leader a-0": 2_000, "cancelling a-0": 4_000, "cancellation a-0": 4_000}


def test_a_move_that_is_under_way_without_a_leader_is_not_waiting_for_one() -> None:
    run = run_after(*SUBMITTED)
    run.moves.records[A0].leaderless_since_ms = 1_000
    handled(run, MovesObserved(5_000, ()), Observing(BOTH))
    assert run.problems.passing == {}


def test_what_waited_is_looked_at_once_more_before_it_starts() -> None:
    moves = many(3)
    names = named(*moves)
    run = waiting(*moves)
    orders, changes = handled(run, MovesObserved(2_000, ()), Observing(()))
    assert (orders, changes["state"]) == ((ObserveMoves(moves),), Observing(names, names))
    # Of the chosen ones start those that are as they were.
    left = MovesObserved(3_000, (seen(moves[1], PlacementState.DIVERGED),))
    orders, changes = handled(run, left)
    assert orders == (SubmitMoves({names[0]: (2, 1), names[2]: (2, 1)}),)
    assert changes[f"{names[1]}.status"] == MoveStatus.FAILED


def test_no_more_are_looked_at_before_they_start_than_can_be_sent_while_that_is_fresh() -> None:
    moves = many(CHECKED_AT_ONCE + 1)
    run, first = waiting(*moves), moves[:CHECKED_AT_ONCE]
    run.state = Observing(())
    assert handle(run, MovesObserved(2_000, ())) == (ObserveMoves(first),)
    assert run.state == Observing(named(*first), named(*first))


def test_while_a_guard_holds_what_waited_is_not_looked_at() -> None:
    run = waiting(*many(2))
    run.control.is_held = True
    assert handled(run, MovesObserved(2_000, ()), Observing(()))[0] == (Wait(),)


def test_a_health_check_knows_what_is_active_set_seen_first_and_lost() -> None:
    run = run_after(*SUBMITTED, look(4_500, PlacementState.ARRIVED, MOVES[0]))
    handled(run, look(4_500, PlacementState.MOVING, MOVES[1]), Observing((A1,)))
    run.state, run.moves.speed = Observing((A1,)), CopySpeed()
    first = Health(LIVE)
    run.health.first, run.health.lost = first, (3,)
    for replans, lost in ((True, (3,)), (False, ())):
        run.control.replans = replans
        run.identity.reactions = {GuardName.DISK: Reaction.WARN}
        assert handled(deepcopy(run), MovesObserved(5_000, ())) == (
            (CheckHealth(MOVES[1:], OVERRIDES, first, lost),),
            {"state": CheckingHealth((), ()), "moves.observed_ms": 5_000},
        )


@pytest.mark.parametrize("checked_ms", [5_001 - FRESH_MS, 5_000 - FRESH_MS])
def test_before_a_start_a_check_has_to_be_fresh(checked_ms: int) -> None:
    run = run_after(*PREPARED)
    run.identity.reactions, run.health.checked_ms = {GuardName.STALL: Reaction.WARN}, checked_ms
    orders, changes = handled(run, look(5_000, PlacementState.UNTOUCHED))
    is_fresh = checked_ms > 5_000 - FRESH_MS
    assert orders == ((SetThrottle(LISTS),) if is_fresh else (CheckHealth(MOVES, RATES),))
    assert changes["state"] == (SettingLists(BOTH) if is_fresh else CheckingHealth(BOTH, ()))


def chosen(run: Run, *ready: PlannedMove, at_ms: int = 2_000) -> tuple[TopicPartition, ...]:
    """What starts after a look at which these were untouched."""
    (order,) = handled(run, look(at_ms, PlacementState.UNTOUCHED, *ready), Observing(named(*ready)))[0]
    return tuple(order.targets) if isinstance(order, SubmitMoves) else ()


BETWEEN = (
    PlannedMove(TopicPartition("a", 0), (0, 1), (2, 1), 1_000),
    PlannedMove(TopicPartition("a", 1), (1, 0), (1, 3), 3_000),
    PlannedMove(TopicPartition("a", 2), (0, 1), (4, 1), 2_000),
)


@pytest.mark.parametrize(("order", "first"), [
    (Order.NAME, (0, 1, 2)),
    (Order.LARGE_FIRST, (1, 2, 0)),
    (Order.SMALL_FIRST, (0, 2, 1)),
    (Order.MAKESPAN, (1, 2, 0)),
])  # fmt: skip
def test_moves_start_in_the_order_that_was_chosen(order: Order, first: tuple[int, ...]) -> None:
    run = unthrottled(*BETWEEN, pace=Pace(order=order, is_eager=True))
    assert chosen(run, *BETWEEN) == tuple(BETWEEN[number].topic_partition for number in first)


def test_limits_count_what_is_in_flight_already() -> None:
    run = unthrottled(*BETWEEN, pace=Pace(Order.NAME, Caps(source=Cap(moves=1)), is_eager=True))
    assert chosen(run, *BETWEEN) == named(*BETWEEN[:2])
    run = unthrottled(*BETWEEN, pace=Pace(Order.NAME, Caps(source=Cap(moves=1)), is_eager=True))
    handled(run, look(1_000, PlacementState.MOVING, BETWEEN[0]), Observing(named(BETWEEN[0])))
    assert chosen(run, *BETWEEN[1:]) == named(BETWEEN[1])


def test_the_order_follows_what_is_left_to_do_in_flight_too() -> None:
    """Broker 0 sends 5,000 bytes already, so that what it sends goes before the larger move of broker 1."""
    large = replace(BETWEEN[0], size_bytes=5_000)
    run = unthrottled(large, *BETWEEN[1:], pace=Pace(Order.RELIEF, is_eager=True))
    handled(run, look(1_000, PlacementState.MOVING, large), Observing(named(large)))
    assert chosen(run, *BETWEEN[1:]) == named(BETWEEN[2], BETWEEN[1])


BIG = tuple(PlannedMove(TopicPartition("a", number), (0, 1), (2, 1), 100_000_000) for number in range(4))


def test_a_run_that_is_not_eager_starts_what_keeps_brokers_busy() -> None:
    assert chosen(unthrottled(*BIG, pace=Pace(Order.NAME)), *BIG) == named(*BIG[:2])
    assert chosen(unthrottled(*BIG, pace=Pace(Order.NAME, is_eager=True)), *BIG) == named(*BIG)
    run = unthrottled(*BIG, pace=Pace(Order.NAME))
    handled(run, look(1_000, PlacementState.MOVING, BIG[0]), Observing(named(BIG[0])))
    assert chosen(run, *BIG[1:]) == named(BIG[1])


def test_what_has_to_be_sent_again_is_chosen_beside_what_waits_and_counts_once() -> None:
    run = unthrottled(*BETWEEN, pace=Pace(Order.NAME, Caps(source=Cap(moves=1)), is_eager=True))
    handled(run, look(1_000, PlacementState.UNTOUCHED, BETWEEN[0]), Observing(named(BETWEEN[0])))
    handled(run, SubmissionIntended(1_000, named(BETWEEN[0])), Submitting(()))
    handled(run, MovesSubmitted(1_500, (), unknown=named(BETWEEN[0])))
    assert chosen(run, *BETWEEN, at_ms=3_000) == named(*BETWEEN[:2])


def test_free_space_is_not_used_up_by_a_choice() -> None:
    run = unthrottled(*BETWEEN, pace=Pace(Order.NAME, is_eager=True))
    run.health.disk_budget = DiskBudget({("destination", 2): 999.0, ("destination", 3): 3_000.0})
    before = deepcopy(run.health.disk_budget)
    assert chosen(run, *BETWEEN) == named(*BETWEEN[1:])
    assert run.health.disk_budget == before


def test_that_disks_have_space_for_nothing_is_told_at_the_time_of_the_look() -> None:
    run = unthrottled(BETWEEN[0])
    run.health.disk_budget = DiskBudget({("destination", 2): 999.0})
    assert chosen(run, BETWEEN[0]) == ()
    assert [one.from_ms for known in run.problems.passing.values() for one in known.values()] == [2_000]


def test_what_does_not_fit_into_its_window_waits() -> None:
    """A minute is left, in which 11/12 of 20 bytes per second copy 1,100 bytes."""
    hours = Schedule((Window(0, 1), Window(60, 180)))
    run = waiting(*BETWEEN, pace=Pace(Order.NAME, hours=hours, is_eager=True))
    run.control.rates = ThrottleRates(20)
    assert moving._choose(run, [], 0) == named(BETWEEN[0])
    assert moving._choose(run, [], 60_000) == ()


# --- starting ------------------------------------------------------------------------------------------------------


def test_cancelled_is_what_was_asked_for_and_what_is_given_up_and_under_way() -> None:
    run = run_after(*SUBMITTED)
    assert moving.proceed(run, (), (A1,)) == (Cancelling(), (CancelMoves((A1,)),))
    run.moves.records[A0].given_up = "no space"
    assert moving.proceed(run, (), (A1,)) == (Cancelling(), (CancelMoves((A1, A0)),))
    assert moving.proceed(run, (), (A0,)) == (Cancelling(), (CancelMoves((A0,)),))
    assert moving.proceed(run, (), ()) == (Cancelling(), (CancelMoves((A0,)),))
    for status in (MoveStatus.SENT, MoveStatus.CANCELLING):
        run.moves.records[A0].status = status
        assert moving.proceed(run, (), ()) == (Waiting(), (Wait(),))


def test_a_held_run_sends_only_what_was_sent_before() -> None:
    run = run_after(*LISTED)
    run.moves.records[A1].status = MoveStatus.SENT
    assert moving.proceed(run, BOTH, ())[0] == Submitting(())
    run.health.verdicts = (Verdict(GuardName.DISK, Reaction.HOLD, "full", "make room"),)
    assert moving.proceed(run, BOTH, ())[0] == SettingLists((A1,))
    run.health.verdicts = ()
    run.moves.records[A0].status = MoveStatus.FAILED
    assert moving.proceed(run, BOTH, ())[0] == SettingLists((A1,))


CHECK = CheckThrottle(OVERRIDES)


def test_a_guarded_throttle_is_looked_at_before_moves_start_or_lists_change() -> None:
    run = guarded(run_after(*LISTED))
    assert moving.proceed(run, BOTH, ()) == (CheckingThrottle(BOTH, frozenset({TOPIC})), (CHECK,))
    # Both lists lose what does not copy.
    changing = moving.proceed(run, (), ())
    assert changing == (CheckingThrottle((), frozenset({TOPIC})), (CHECK,))
    run.identity.rereads_first = False
    assert moving.proceed(run, (), ())[0] == SettingLists(())


def test_a_run_in_doubt_starts_nothing_and_changes_its_lists() -> None:
    run = guarded(run_after(*LISTED))
    odd = ConfigValue(RATES[0].key, "5")
    run.throttle.doubts, run.throttle.checked_ms = {odd.key: Doubt(odd, 1_000)}, run.moves.observed_ms
    assert moving.proceed(run, BOTH, ())[0] == SettingLists(())
    run.identity.reactions = {GuardName.FOREIGN_THROTTLE: Reaction.WARN}
    assert moving.proceed(run, BOTH, ())[0] == Submitting(())


def checked(run: Run, event: ThrottleChecked) -> tuple[tuple[Instruction, ...], Changes]:
    return handled(run, event, CheckingThrottle(BOTH, frozenset({TOPIC})))


def test_a_batch_whose_throttle_is_ours_is_sent() -> None:
    run = guarded(run_after(*LISTED))
    run.throttle.unread = (TOPIC,)
    assert checked(run, ThrottleChecked(5_000)) == (
        (SubmitMoves({A0: (2, 1), A1: (1, 3)}),),
        {"state": Submitting(()), "throttle.checked_ms": 5_000, "throttle.unread": ()},
    )


def test_a_batch_whose_throttle_is_not_known_is_not_sent() -> None:
    run = guarded(run_after(*LISTED))
    orders, changes = checked(run, ThrottleChecked(5_000, unread=(TOPIC,)))
    assert isinstance(orders[0], SetThrottle)
    assert [one.value for one in orders[0].overrides] == [None, None]
    assert changes == {"state": SettingLists(()), "throttle.checked_ms": 5_000, "throttle.unread": (TOPIC,)}


def test_an_odd_throttle_is_in_doubt_and_the_guards_are_asked_once_it_is_certain() -> None:
    run = guarded(run_after(*LISTED))
    odd = ConfigValue(RATES[0].key, "5")
    first = checked(run, ThrottleChecked(5_000, (odd,)))[1]
    assert (first["state"], first["throttle.doubts"]) == (SettingLists(()), {odd.key: Doubt(odd, 5_000)})
    assert "health.checked_ms" not in first
    certain = checked(run, ThrottleChecked(15_000, (odd,)))[1]
    assert certain["throttle.doubts"] == {odd.key: Doubt(odd, 5_000, is_foreign=True)}
    assert certain["health.checked_ms"] is None
    run.health.checked_ms = 16_000
    assert "health.checked_ms" not in checked(run, ThrottleChecked(17_000, (odd,)))[1]
    over = checked(run, ThrottleChecked(18_000))[1]
    assert (over["throttle.doubts"], over["health.checked_ms"]) == ({}, None)


def test_settings_of_topics_that_are_gone_are_closed() -> None:
    run = guarded(run_after(*LISTED))
    checked(run, ThrottleChecked(5_000, gone=(TOPIC,)))
    assert [*run.throttle.pending] == [one.key for one in RATES]


# --- lists ---------------------------------------------------------------------------------------------------------


def listing(run: Run, *starting: TopicPartition) -> dict[str, str | None]:
    """The settings that are about to be changed, with their new values."""
    return {str(one.key): one.value for one in moving._listing(run, starting)}


FOLLOWERS, LEADERS = (str(one.key) for one in LISTS)


def test_listed_is_what_copies_now_or_is_about_to() -> None:
    run = run_after(*PREPARED, look(3_000, PlacementState.UNTOUCHED))
    assert listing(run) == {}
    assert listing(run, A1) == {FOLLOWERS: "1:3", LEADERS: "1:0,1:1"}
    assert listing(run, A1, A0) == {FOLLOWERS: "0:2,1:3", LEADERS: "0:0,0:1,1:0,1:1"}
    run.control.rates = NO_THROTTLE
    assert listing(run, A1, A0) == {}


def test_where_nothing_was_read_or_no_move_is_left_nothing_is_listed() -> None:
    run = run_after(*SUBMITTED)
    run.throttle.pending = {}
    assert listing(run) != {}
    run.throttle.before = {}
    assert listing(run) == {}
    assert listing(run_after(*ARRIVED)) == {}


def test_replicas_that_only_change_their_directory_are_not_listed() -> None:
    both = replace(MOVES[0], target=(2, 1), log_dirs=(LogDirTarget(1, "/b", "/a"),))
    run = run_after(started(both, MOVES[1]), *PREPARED[1:], look(3_000, PlacementState.UNTOUCHED, both, MOVES[1]))
    assert listing(run, A0) == {FOLLOWERS: "0:2", LEADERS: "0:0,0:1"}
    within = replace(both, target=(0, 1))
    run = run_after(started(within, MOVES[1]), *PREPARED[1:])
    assert listing(run, A0) == {}


def test_settings_that_were_not_taken_are_set_again_with_the_rates_of_their_broker() -> None:
    run = run_after(*SUBMITTED)
    assert listing(run) == {}
    run.throttle.unset = frozenset({TOPIC})
    assert listing(run) == {FOLLOWERS: "0:2,1:3", LEADERS: "0:0,0:1,1:0,1:1"}
    run.throttle.unset = frozenset({ConfigResource.broker(0)})
    assert listing(run) == {str(RATES[0].key): "1000000"}


def test_rates_that_follow_the_traffic_are_changed_with_the_lists() -> None:
    run = run_after(*SUBMITTED)
    run.control.rates = ThrottleRates(adaptive=AdaptiveThrottle(50_000))
    floors = {str(one.key): "5000" for one in RATES}
    assert listing(run) == floors
    run = run_after(*PREPARED, look(3_000, PlacementState.UNTOUCHED))
    run.control.rates = ThrottleRates(adaptive=AdaptiveThrottle(50_000))
    run.traffic.writes = {A0: 8_000.0}
    written = {str(RATES[0].key): "20000", str(RATES[2].key): "10000"}
    assert listing(run, A0) == floors | written | {FOLLOWERS: "0:2", LEADERS: "0:0,0:1"}


def test_what_is_in_doubt_is_left_alone() -> None:
    run = guarded(run_after(*SUBMITTED))
    run.throttle.unset = frozenset({TOPIC})
    run.throttle.doubts = {LISTS[0].key: Doubt(ConfigValue(LISTS[0].key, "5"), 1_000)}
    assert listing(run) == {LEADERS: "0:0,0:1,1:0,1:1"}
    run.identity.reactions = {GuardName.FOREIGN_THROTTLE: Reaction.WARN}
    assert listing(run) == {FOLLOWERS: "0:2,1:3", LEADERS: "0:0,0:1,1:0,1:1"}


def test_entries_that_others_left_behind_stay_listed() -> None:
    run = run_after(*SUBMITTED)
    run.throttle.adopted = {LISTS[0].key: "7:7", RATES[0].key: "7"}
    assert listing(run) == {FOLLOWERS: "0:2,1:3,7:7"}


# --- sending -------------------------------------------------------------------------------------------------------


def test_sent_are_targets_directories_and_which_moves_change_how_many_replicas_there_are() -> None:
    first = replace(MOVES[0], log_dirs=(LogDirTarget(2, "/b"), LogDirTarget(1, "/c", "/a")))
    second = replace(MOVES[1], target=(1, 0, 3))
    run = unthrottled(first, second)
    assert moving._send(run, BOTH) == (
        Submitting(()),
        (
            SubmitMoves(
                {A0: (2, 1), A1: (1, 0, 3)},
                {TopicPartitionReplica(2, *A0): "/b", TopicPartitionReplica(1, *A0): "/c"},
                frozenset({A1}),
            ),
        ),
    )


def test_where_nothing_starts_it_waits_or_comes_to_its_end() -> None:
    assert moving._send(run_after(*SUBMITTED), ()) == (Waiting(), (Wait(),))
    assert moving._send(run_after(*ARRIVED), ()) == (Electing(()), (ElectLeaders((A0,)),))


def test_what_is_about_to_be_sent_is_in_flight_and_takes_its_space() -> None:
    run = run_after(*LISTED)
    run.health.disk_budget = DiskBudget({("destination", 2): 5_000.0, ("destination", 3): 5_000.0})
    orders, changes = handled(run, SubmissionIntended(5_000, (A0,)))
    assert orders == ()
    assert changes == {
        "a-0.status": MoveStatus.SENT,
        "a-0.submissions.count": 1,
        "a-0.submissions.first_ms": 5_000,
        "a-0.submissions.last_ms": 5_000,
        "a-0.submissions.due_ms": 5_000 + delay_ms(1, "run-1"),
        "a-0.submissions.unanswered": 1,
        "a-0.submitted_ms": 5_000,
        "a-0.progressed_ms": 5_000,
        "moves.index.queue": ["a-1"],
        "moves.index.in_flight": ["a-0"],
        "health.disk_budget.free": {("destination", 2): 4_000.0, ("destination", 3): 5_000.0},
    }


SENT = (*LISTED, SubmissionIntended(3_000, BOTH))


def test_an_answer_tells_which_moves_are_under_way_and_which_have_failed() -> None:
    orders, changes = handled(run_after(*SENT), MovesSubmitted(4_000, (A0,), (Refusal(A1, "no"),)))
    assert orders == (ObserveMoves(MOVES[:1]),)
    assert changes == {
        "state": Observing((A0,)),
        "a-0.status": MoveStatus.MOVING,
        "a-0.submissions.unanswered": 0,
        "a-1.status": MoveStatus.FAILED,
        "a-1.completed_ms": 4_000,
        "a-1.problem": "the cluster refused it: no",
        "a-1.submissions.unanswered": 0,
        "a-1.submissions.answer": "the cluster refused it: no",
        "moves.index.in_flight": ["a-0"],
    }


def test_what_was_refused_for_now_is_sent_again_later() -> None:
    orders, changes = handled(
        run_after(*SENT), MovesSubmitted(4_000, (), unknown=(A0,), deferred=(Refusal(A1, "busy"),))
    )
    assert orders == (OBSERVE,)
    assert changes == {
        "state": Observing(BOTH),
        "a-1.submissions.unanswered": 0,
        "a-1.submissions.answer": "busy",
    }


@pytest.mark.parametrize(("event", "spoiled", "sends_on"), [
    (MovesSubmitted(3_000, (A0,)), "", True),
    (MovesSubmitted(2_999 + FRESH_MS, (A0,)), "", True),
    (MovesSubmitted(3_000 + FRESH_MS, (A0,)), "", False),
    (MovesSubmitted(3_000, (), unknown=(A0,)), "", False),
    (MovesSubmitted(3_000, (), deferred=(Refusal(A0, "busy"),)), "", False),
    (MovesSubmitted(3_000, (), (Refusal(A0, "no"),)), "", True),
    (MovesSubmitted(3_000, (A0,)), "cancelled", False),
    (MovesSubmitted(3_000, (A0,)), "held", False),
])  # fmt: skip
def test_the_next_request_follows_while_what_was_seen_is_fresh_and_nothing_went_wrong(
    event: MovesSubmitted, spoiled: str, sends_on: bool
) -> None:
    run = run_after(*LISTED, SubmissionIntended(3_000, (A0,)))
    run.moves.observed_ms = 3_000
    run.control.is_held = spoiled == "held"
    run.control.wind_down = WindDown.FINISH if spoiled == "cancelled" else None
    state = handled(run, event, Submitting((A1,)))[1]["state"]
    assert isinstance(state, Submitting | SettingLists) == sends_on
    if not sends_on:
        assert isinstance(state, Observing)


# --- winding down and cancelling -----------------------------------------------------------------------------------

AGAIN_MS = 3_000 + delay_ms(1, "run-1")


@pytest.mark.parametrize(("wind_down", "status", "unanswered", "where", "orders"), [
    (WindDown.FINISH, MoveStatus.MOVING, 0, PlacementState.MOVING, (Wait(),)),
    (WindDown.CANCEL, MoveStatus.MOVING, 0, PlacementState.MOVING, (CancelMoves(BOTH),)),
    (WindDown.FINISH, MoveStatus.CANCELLING, 0, PlacementState.MOVING, (CancelMoves(BOTH),)),
    (WindDown.FINISH, MoveStatus.SENT, 1, PlacementState.UNTOUCHED, (CancelMoves(BOTH),)),
    (WindDown.CANCEL, MoveStatus.SENT, 1, PlacementState.UNTOUCHED, (CancelMoves(BOTH),)),
    (WindDown.FINISH, MoveStatus.SENT, 0, PlacementState.UNTOUCHED, (ReadConfigs(tuple(KEYS_SET)),)),
    (WindDown.CANCEL, MoveStatus.SENT, 1, PlacementState.DIVERGED, (Wait(),)),
])  # fmt: skip
def test_a_cancelled_run_lets_moves_finish_or_cancels_them(
    wind_down: WindDown, status: MoveStatus, unanswered: int, where: PlacementState, orders: tuple[Instruction, ...]
) -> None:
    run = run_after(*SENT)
    run.control.wind_down = wind_down
    for record in run.moves.records.values():
        record.status, record.submissions.unanswered = status, unanswered
    assert handled(run, look(AGAIN_MS, where), Observing(BOTH))[0] == orders
    dropped = status is MoveStatus.SENT and not unanswered
    assert {one.status for one in run.moves.records.values()} <= ({MoveStatus.CANCELLED} if dropped else {*MoveStatus})


def test_what_was_not_begun_is_dropped_at_the_time_of_the_look() -> None:
    run = run_after(*LISTED)
    run.control.wind_down = WindDown.FINISH
    changes = handled(run, look(5_000, PlacementState.UNTOUCHED), Observing(BOTH))[1]
    assert {path: changes[path] for path in changes if path.startswith("a-0") and "observ" not in path} == {
        "a-0.status": MoveStatus.CANCELLED,
        "a-0.completed_ms": 5_000,
    }
    assert changes["moves.index.queue"] == []


@pytest.mark.parametrize("to_the_end", [False, True])
def test_what_finishes_is_guarded_where_the_run_shall_be_to_its_end(to_the_end: bool) -> None:
    run = run_after(*SUBMITTED)
    run.control.wind_down, run.identity.guards_to_the_end = WindDown.FINISH, to_the_end
    run.identity.reactions = {GuardName.STALL: Reaction.WARN}
    orders, changes = handled(run, look(5_000, PlacementState.MOVING))
    assert orders == ((CheckHealth(MOVES, OVERRIDES),) if to_the_end else (Wait(),))
    assert changes["state"] == (CheckingHealth((), ()) if to_the_end else Waiting())


def test_lists_of_what_finishes_follow_it() -> None:
    run = run_after(*SUBMITTED)
    run.control.wind_down = WindDown.FINISH
    (order,) = handled(run, look(5_000, PlacementState.ARRIVED, MOVES[0]))[0]
    assert isinstance(order, SetThrottle)
    assert [one.value for one in order.overrides] == ["1:3", "1:0,1:1"]


def test_after_a_window_moves_are_cancelled_to_start_again() -> None:
    run = run_after(*SUBMITTED)
    run.control.pace = Pace(hours=Schedule((Window(60, 120),), at_end=AtWindowEnd.CANCEL))
    assert handled(run, look(5_000, PlacementState.MOVING))[0] == (CancelMoves(BOTH),)
    assert [one.is_postponed for one in run.moves.records.values()] == [True, True]


def test_a_cancellation_is_counted_and_told_once_it_had_no_effect_three_times() -> None:
    run = run_after(*SUBMITTED)
    run.state = Cancelling()
    assert handled(run, CancelIntended(5_000, (A0,))) == (
        (),
        {
            "a-0.status": MoveStatus.CANCELLING,
            "a-0.cancellations.count": 1,
            "a-0.cancellations.first_ms": 5_000,
            "a-0.cancellations.last_ms": 5_000,
            "a-0.cancellations.due_ms": 5_000 + delay_ms(1, "run-1"),
            "a-0.cancellations.unanswered": 1,
        },
    )
    run.moves.records[A0].cancellations.count = LEAST_ATTEMPTS - 1
    assert "problems.passing" not in handled(run, CancelIntended(6_000, (A0,)), Cancelling())[1]
    sentence = "a-0: cancelling it had no effect 3 times; it is in flight until that has one"
    told = handled(run, CancelIntended(7_000, (A0,)), Cancelling())[1]["problems.passing"]
    assert told == {"cancelling a-0": {sentence: PassingProblem(sentence, 7_000)}}


def test_after_a_cancellation_it_is_looked_whatever_the_answer() -> None:
    run = run_after(*SUBMITTED)
    sentence = "a-0 could not be cancelled: not now"
    refused = handled(run, MovesCancelled(5_000, (), (Refusal(A0, "not now"),)), Cancelling())
    told = {"cancellation a-0": {sentence: PassingProblem(sentence, 5_000)}}
    assert refused == ((OBSERVE,), {"problems.passing": told, "state": Observing(BOTH)})
    run.tell("cancellation a-1", 5_000, "no")
    over = handled(run, MovesCancelled(6_000, (A0,), idle=(A1,)), Cancelling())
    assert over[1]["problems.passing"] == {
        "cancellation a-0": {sentence: PassingProblem(sentence, 5_000, 6_000)},
        "cancellation a-1": {"no": PassingProblem("no", 5_000, 6_000)},
    }
    assert over[1]["a-1.is_idle"] is True
    assert "a-0.is_idle" not in over[1]


# --- time, and a cluster that does not answer ----------------------------------------------------------------------

BEGUN: tuple[MovingStep, ...] = (
    CheckingThrottle((), frozenset()),
    Submitting(()),
    Cancelling(),
    CheckingHealth((), ()),
)


@pytest.mark.parametrize("state", BEGUN, ids=lambda one: type(one).__name__)
def test_after_a_question_without_answer_it_waits_and_looks(state: MovingStep) -> None:
    run = run_after(*SUBMITTED)
    assert handled(run, CallFailed(5_000, "no answer"), state) == ((Wait(),), {"state": Waiting(5_000)})
    assert handled(run, TimePassed(6_000)) == ((OBSERVE,), {"state": Observing(BOTH, (), 5_000)})


def test_a_cluster_out_of_reach_is_waited_for_five_minutes() -> None:
    run = run_after(*SUBMITTED)
    state = Observing(BOTH, (), 5_000)
    early = CallFailed(4_999 + OUT_OF_REACH_MS, "no answer")
    assert handled(run, early, state) == ((Wait(),), {"state": Waiting(5_000)})
    assert handled(run, replace(early, at_ms=5_000 + OUT_OF_REACH_MS), state) == (
        (),
        {"state": Paused(), "problems.noted": ["the cluster was out of reach for 5 minutes: no answer"]},
    )


def test_traffic_is_measured_between_two_polls_and_what_was_out_of_reach_stays_so() -> None:
    run = run_after(*SUBMITTED)
    run.control.rates = ThrottleRates(adaptive=AdaptiveThrottle(50_000))
    measuring = handled(run, TimePassed(6_000), Waiting(5_000))
    assert measuring == ((MeasureTraffic(BOTH),), {"state": MeasuringTraffic(5_000)})
    traffic = BrokerTraffic(0, 1.0, 2.0)
    assert handled(run, TrafficMeasured(6_000, (traffic,))) == (
        (OBSERVE,),
        {
            "state": Observing(BOTH, (), 5_000),
            "traffic.measured_ms": 6_000,
            "traffic.brokers": {0: (6_000, traffic)},
        },
    )
    assert handled(run, TimePassed(7_000), Waiting(5_000))[0] == (OBSERVE,)


def test_a_run_that_sleeps_keeps_what_it_waits_for() -> None:
    run = run_after(*LISTED)
    run.control.pace = Pace(hours=Schedule((Window(60, 120),)))
    run.state = Waiting(5_000)
    assert handled(run, TimePassed(6_000)) == ((Wait(),), {})


@pytest.mark.parametrize(("event", "state"), [
    (TrafficMeasured(6_000, ()), MeasuringTraffic(5_000)),
    (MovesObserved(6_000, ()), Observing(BOTH, (), 5_000)),
    (CallFailed(6_000, "no answer"), Observing(BOTH, (), 5_000)),
])  # fmt: skip
def test_what_a_journal_has_next_to_a_wait_tells_where_the_run_was(event: Event, state: MovingStep) -> None:
    assert moving.after_wait(run_after(*SUBMITTED), Waiting(5_000), event) == state


def test_a_move_that_leads_elsewhere_is_cancelled_first() -> None:
    run = run_after(*SUBMITTED)
    run.moves.records[A0].replan(Replan(5_000, (2,), (2, 1), (4, 1)))
    assert handled(run, look(6_000, PlacementState.MOVING))[0] == (CancelMoves((A0,)),)
