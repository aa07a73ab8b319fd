"""Requests to a run under way: hold, release, cancel, another throttle or pace, brokers given up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.executor.events import (
    BrokersForgotten,
    CallFailed,
    CancelIntended,
    CancelRequested,
    ClockStepped,
    Event,
    HoldRequested,
    LeadersElected,
    MovesCancelled,
    MovesSubmitted,
    PaceRequested,
    PlacementState,
    PlannedMove,
    Refusal,
    ReleaseRequested,
    RunResumed,
    StopRequested,
    SubmissionIntended,
    ThrottleChecked,
    ThrottleIntended,
    ThrottleRequested,
    ThrottleSet,
    TimePassed,
)
from kreassign.executor.state import STATES, TRANSITIONS, WindDown
from kreassign.executor.throttle_ledger import ConfigValue
from kreassign.model import TopicPartition
from kreassign.model.pace import Pace, PaceChange
from kreassign.model.run import AT_REST, Operator, Phase
from kreassign.model.throttle import AdaptiveThrottle, BrokerRate, ThrottleRates
from tests.executor.run_events import A0, A1, ARRIVED, LIVE, MOVES, PREPARED, RATE, SUBMITTED, look, started
from tests.executor.state.played import LEADER_0, MOVING, UNTOUCHED, Played, begun, guarded

AT_PLACE, REORDERED, SETTLING = PlacementState.ARRIVED, PlacementState.REORDERED, PlacementState.SETTLING
NOW, FINISH = CancelRequested(5_000, 7, is_now=True), CancelRequested(5_000, 7, is_now=False)
TRIED = CancelIntended(5_000, (A0, A1))
TAKEN = MovesCancelled(6_000, (A0, A1))


@pytest.mark.parametrize(("event", "shown"), [
    (HoldRequested(5_000, 7), {"is_held": True}),
    (ReleaseRequested(5_000, 7), {"is_held": False}),
    (NOW, {"wind_down": WindDown.CANCEL}),
    (FINISH, {"wind_down": WindDown.FINISH}),
    (PaceRequested(5_000, 7, PaceChange(elections_per_step=3)), {"pace": Pace(elections_per_step=3)}),
    (ClockStepped(5_000, -60_000), {"wall_ahead_ms": -60_000, "last_request": 2}),
], ids=lambda one: type(one).__name__)  # fmt: skip
def test_a_request_shows_at_once_and_orders_nothing(event: Event, shown: dict[str, object]) -> None:
    before = Played(*SUBMITTED, HoldRequested(4_500, 1), ReleaseRequested(4_600, 2))
    after = before.copy().on(event)
    assert (after.decided, after.step) == ("", before.step)
    expected = {"last_request": 7, **shown}
    control, wall_ahead_ms = after.view.control, after.view.wall_ahead_ms
    found = {name: getattr(control, name, wall_ahead_ms) for name in expected}
    assert found == expected


@pytest.mark.parametrize("kind", [
    HoldRequested, ReleaseRequested, CancelRequested, ThrottleRequested, PaceRequested, ClockStepped,
])  # fmt: skip
def test_requests_are_heard_in_every_state_of_a_run_that_goes_on(kind: type[Event]) -> None:
    goes_on = {state for state in STATES if state.phase not in AT_REST | {Phase.NEW}}
    assert {state for state, event in TRANSITIONS if event is kind} == goes_on


@pytest.mark.parametrize(("events", "decided"), [
    ([look(5_000, UNTOUCHED)], "wait"),
    ([look(5_000, UNTOUCHED), TimePassed(6_000)], "observe a-0 a-1"),
    ([look(5_000, UNTOUCHED), ReleaseRequested(6_000, 2), TimePassed(6_000), look(6_000, UNTOUCHED)], "set both lists"),
])  # fmt: skip
def test_a_held_run_starts_nothing_until_it_is_released(events: list[Event], decided: str) -> None:
    assert Played(*PREPARED, HoldRequested(2_000, 1), *events).decided == decided


@pytest.mark.parametrize(("begin", "events", "decided", "moves"), [
    (PREPARED, [FINISH, look(5_000, UNTOUCHED)], "read all rates", "cancelled cancelled"),
    (SUBMITTED, [FINISH, look(5_000, MOVING)], "wait", "moving moving"),
    (SUBMITTED, [FINISH, look(5_000, AT_PLACE)], "read all rates, both lists", "complete complete"),
    (SUBMITTED, [NOW, look(5_000, MOVING)], "cancel a-0 a-1", "moving moving"),
    (SUBMITTED, [FINISH, NOW, look(5_000, MOVING)], "cancel a-0 a-1", "moving moving"),
    (SUBMITTED, [NOW, FINISH, look(5_000, MOVING)], "cancel a-0 a-1", "moving moving"),
    (SUBMITTED, [NOW, HoldRequested(5_000, 8), ReleaseRequested(5_000, 9), look(5_000, MOVING)],
     "cancel a-0 a-1", "moving moving"),
    (SUBMITTED, [NOW, look(5_000, MOVING), TRIED, TAKEN], "observe a-0 a-1", "cancelling cancelling"),
    (SUBMITTED, [NOW, look(5_000, MOVING), TRIED, TAKEN, look(7_000, SETTLING)], "wait", "cancelling cancelling"),
    (SUBMITTED, [NOW, look(5_000, MOVING), TRIED, TAKEN, look(7_000, REORDERED)],
     "read all rates, both lists", "cancelled cancelled"),
    (SUBMITTED, [NOW, look(5_000, MOVING), TRIED, MovesCancelled(6_000, (), idle=(A0, A1)), look(7_000, AT_PLACE)],
     "read all rates, both lists", "complete complete"),
    (SUBMITTED, [NOW, look(5_000, MOVING), TRIED, MovesCancelled(5_100, ()), look(5_100, MOVING)],
     "wait", "cancelling cancelling"),
    (SUBMITTED, [NOW, look(5_000, MOVING), TRIED, MovesCancelled(7_000, ()), look(7_000, MOVING)],
     "cancel a-0 a-1", "cancelling cancelling"),
    (SUBMITTED, [NOW, look(5_000, MOVING), TRIED, RunResumed(9_000, LIVE), ThrottleIntended(9_000, ()),
                 ThrottleSet(9_000), look(10_000, MOVING)], "cancel a-0 a-1", "cancelling cancelling"),
], ids=["nothing begun", "finishes", "finished", "at once", "finish, then at once", "at once, then finish", "no undo",
        "looks", "brokers lag", "cancelled", "arrived meanwhile", "pauses", "tries again", "crashed"])  # fmt: skip
def test_a_cancelled_run_lets_moves_finish_or_cancels_them(
    begin: tuple[Event, ...], events: list[Event], decided: str, moves: str
) -> None:
    run = Played(*begin, *events)
    assert (run.decided, run.moves) == (decided, moves)


DEFERRED = MovesSubmitted(0, (), deferred=(Refusal(A0, "not the controller"),))
LOST = MovesSubmitted(0, (), unknown=(A0,))


@pytest.mark.parametrize(("answer", "decided"), [(DEFERRED, "wait"), (LOST, "submit a-0")], ids=["refused", "lost"])
def test_a_held_run_sends_only_what_may_begin_already(answer: MovesSubmitted, decided: str) -> None:
    run = Played(begun(MOVES[0], throttle=None)).go("submit").on(SubmissionIntended(0, (A0,)), answer)
    assert run.on(HoldRequested(0, 1), look(5_000, UNTOUCHED, MOVES[0])).decided == decided


def test_a_move_that_was_refused_for_now_waits_through_a_long_hold() -> None:
    run = Played(begun(MOVES[0], throttle=None)).go("submit")
    for at_ms in (0, 10_000, 20_000):
        sent, now = SubmissionIntended(at_ms, (A0,)), look(at_ms + 10_000, UNTOUCHED, MOVES[0])
        assert run.on(sent, replace(DEFERRED, at_ms=at_ms), now).decided == "submit a-0"
    run.on(SubmissionIntended(30_000, (A0,)), replace(DEFERRED, at_ms=30_000))
    run.on(HoldRequested(40_000, 1), *(look(at_ms, UNTOUCHED, MOVES[0]) for at_ms in range(60_000, 3_600_000, 60_000)))
    assert (run.decided, run.moves) == ("wait", "sent")
    assert run.on(ReleaseRequested(3_600_000, 2), look(3_600_000, UNTOUCHED, MOVES[0])).decided == "submit a-0"


def test_a_lost_submission_that_begins_after_the_cancel_is_cancelled() -> None:
    lost, sent = MovesSubmitted(4_000, (), unknown=(A0, A1)), SubmissionIntended(8_000, (A0, A1))
    run = Played(*SUBMITTED[:-1], lost, look(8_000, UNTOUCHED)).on(sent, MovesSubmitted(8_500, (A0, A1)))
    run.on(replace(NOW, at_ms=9_000), look(9_000, MOVING), replace(TRIED, at_ms=9_000), replace(TAKEN, at_ms=9_100))
    assert run.on(look(20_000, MOVING)).decided == "cancel a-0 a-1"


def test_what_begins_hours_after_a_lost_submission_is_of_others() -> None:
    lost, sent = MovesSubmitted(4_000, (), unknown=(A0, A1)), SubmissionIntended(8_000, (A0, A1))
    run = Played(*SUBMITTED[:-1], lost, look(8_000, UNTOUCHED)).on(sent, MovesSubmitted(8_500, (A0, A1)))
    late = 3_600_000
    run.on(replace(NOW, at_ms=late), look(late, MOVING), replace(TRIED, at_ms=late), replace(TAKEN, at_ms=late))
    assert "cancel" not in run.on(look(late + 20_000, MOVING)).decided


def test_leaving_does_not_change_what_was_asked_before() -> None:
    run = Played(*SUBMITTED, NOW, StopRequested(5_000))
    assert (run.view.phase, run.view.control.wind_down) == (Phase.PAUSED, WindDown.CANCEL)
    assert run.on(RunResumed(6_000, LIVE)).go("observe").on(look(7_000, MOVING)).decided == "cancel a-0 a-1"


NO_EFFECT = "a-0 is in flight still: cancelling it had no effect 3 times"
REFUSED = "a-0 could not be cancelled: not now"


def test_a_cancellation_without_effect_is_told_after_three_attempts() -> None:
    run = Played(*SUBMITTED, NOW)
    for number in range(4):
        assert run.problems == ()
        at_ms = 5_000 + 100_000 * number
        # The last one is accepted; those before got no answer.
        run.on(look(at_ms, MOVING), CancelIntended(at_ms, (A0,)), MovesCancelled(at_ms, (A0,) if number == 3 else ()))
    assert run.problems == (NO_EFFECT,)
    run.on(look(306_000, REORDERED))
    assert run.problems == (f"over, from 00:05:05 to 00:05:06 UTC: {NO_EFFECT}",)


@pytest.mark.parametrize(("events", "until"), [
    ([look(6_500, MOVING), CancelIntended(6_500, (A0,)), MovesCancelled(7_000, (A0,))], "00:00:07"),
    ([look(6_500, MOVING), CancelIntended(6_500, (A0,)), MovesCancelled(7_000, (), idle=(A0,))], "00:00:07"),
    ([look(7_000, REORDERED), CancelIntended(7_000, (A0,)), CallFailed(8_000, "no answer"), look(22_000, REORDERED)],
     "00:00:22"),
], ids=["accepted", "idle", "cancelled"])  # fmt: skip
def test_a_refused_cancellation_is_told_until_one_is_accepted(events: list[Event], until: str) -> None:
    run = Played(*SUBMITTED, NOW, look(5_000, MOVING), TRIED)
    run.on(MovesCancelled(6_000, (A1,), (Refusal(A0, "not now"),)))
    assert (run.decided, run.problems) == ("observe a-0 a-1", (REFUSED,))
    assert run.on(*events).problems == (f"over, from 00:00:06 to {until} UTC: {REFUSED}",)


ADAPTIVE = AdaptiveThrottle(9_000)


def test_a_new_rate_is_set_at_once_with_the_value_before_the_run() -> None:
    run = Played(*SUBMITTED, ThrottleRequested(5_000, 7, 5))
    assert (run.decided, run.view.phase, run.view.control.last_request) == (
        f"set all rates=5|{RATE}",
        Phase.THROTTLING,
        7,
    )
    assert run.go("observe").decided == "observe a-0 a-1"
    assert {override.before for override in run.view.pending_restores.values()} == {None, "7000"}


@pytest.mark.parametrize(("event", "rates"), [
    (ThrottleRequested(8_000, 7, 5), ThrottleRates(5)),
    (ThrottleRequested(8_000, 7, 6, (2,)), ThrottleRates(RATE, (BrokerRate(2, 6),))),
    (ThrottleRequested(8_000, 7, None, (), ADAPTIVE), ThrottleRates(None, (), ADAPTIVE)),
], ids=["rate", "of a broker", "adaptive"])  # fmt: skip
def test_a_throttle_requested_after_the_moves_sets_nothing(event: Event, rates: ThrottleRates) -> None:
    run = Played(*ARRIVED, event)
    assert (run.decided, run.view.control.rates, run.view.control.last_request) == ("", rates, 7)
    assert run.step == "Electing"


def test_a_change_of_election_steps_during_one_skips_no_partition() -> None:
    moves = tuple(PlannedMove(TopicPartition("a", number), (0, 1), (1, 0), 0) for number in range(5))
    begin = replace(started(*moves, throttle=None), pace=Pace(elections_per_step=2))
    run = Played(begin, look(1_000, AT_PLACE, *moves, leader=0))
    assert run.decided == "elect a-0 a-1"
    changed = PaceRequested(1_500, 1, PaceChange(elections_per_step=100))
    run.on(changed, LeadersElected(2_000, tuple(move.topic_partition for move in moves[:2])))
    assert run.on(TimePassed(3_000)).decided == "elect a-2 a-3 a-4"


ANN = Operator("ann", "host")
LOST_2 = "follower.replication.throttled.rate of broker 2 was still '1000000'; before the run it was not set"


@pytest.mark.parametrize(("operator", "by"), [(ANN, " by ann@host"), (None, "")])
def test_nothing_is_restored_on_brokers_that_are_given_up(operator: Operator | None, by: str) -> None:
    run = Played(*SUBMITTED, BrokersForgotten(5_000, (2,), operator))
    assert (run.decided, run.pending) == ("", "leader 0, leader 1, follower 3, both lists")
    told = f"{LOST_2}; that broker was given up as lost{by}, so nothing was restored there"
    assert run.problems == (told,)
    assert run.go("restore", AT_PLACE).decided == "restore leader 0, leader 1, follower 3, both lists"
    assert run.go("verify").decided == "verify a-0 a-1 with leader 0, leader 1, follower 3, both lists"


def test_brokers_that_are_given_up_are_not_waited_for() -> None:
    run = Played(begun(live_brokers=(0, 1, 3, 4))).go("observe")
    assert run.copy().on(look(5_000, UNTOUCHED)).decided == "check health"
    assert run.on(BrokersForgotten(5_000, (4, 2)), look(5_000, UNTOUCHED)).decided == "set both lists"


def test_giving_up_a_broker_ends_the_doubt_about_it() -> None:
    odd = ThrottleChecked(0, (ConfigValue(LEADER_0, "5"),))
    run = Played(guarded()).go("check all").on(odd)
    assert run.decided == "wait"
    run.on(BrokersForgotten(500, (0,))).go("check leader")
    assert run.decided == "check leader 1, follower 2, follower 3"
    assert run.go("submit").decided == "submit a-0 a-1"
