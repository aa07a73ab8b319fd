"""Other destinations for moves whose destination is lost, as far as the machine decides that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kreassign.executor.events import (
    CallFailed,
    CancelIntended,
    CancelRequested,
    Event,
    HealthObserved,
    HoldRequested,
    MovesCancelled,
    MovesObserved,
    MovesReplanned,
    MovesSubmitted,
    NewTarget,
    PlacementState,
    PlannedMove,
    Refusal,
    SubmissionIntended,
    TimePassed,
    TrafficMeasured,
)
from kreassign.executor.guards import GuardName, Health, Reaction
from kreassign.executor.instructions import ReplanMoves
from kreassign.executor.throttle_ledger import ConfigKey, ConfigValue
from kreassign.executor.throttle_rates import PartitionWrites
from kreassign.model import NO_LEADER, ConfigResource, TopicPartition
from kreassign.model.pace import Pace
from kreassign.model.run import Operator
from kreassign.model.throttle import LEADER_THROTTLED_RATE, AdaptiveThrottle, ThrottleRates
from tests.executor.run_events import A0, A1, LIVE, MOVES, RATE, look, seen
from tests.executor.state.played import MOVING, UNTOUCHED, Played, begun

WELL, WITHOUT_2 = Health(LIVE), Health((0, 1, 3, 4))
LOST_MS = 61_000
"""Broker 2 was down a second after the beginning, and is so a minute later."""


def losing(last: Event | None = None, first: Health = WITHOUT_2, health: Health = WITHOUT_2, **begin: Any) -> Played:
    """A run that plans moves again, whose moves are in flight when broker 2 is lost."""
    run = Played(begun(**{"throttle": None, "replans": True, **begin}))
    run = run.go("observe") if "throttle" in begin else run
    run.on(look(1_000, MOVING), HealthObserved(1_000, first)).settle()
    return run.on(last or look(LOST_MS, MOVING), HealthObserved(LOST_MS, health))


def moved(**changed: Any) -> MovesObserved:
    """A poll that shows the first move so."""
    return MovesObserved(LOST_MS, (replace(seen(MOVES[0], MOVING), **changed), seen(MOVES[1], MOVING)))


ELSEWHERE = MovesReplanned(LOST_MS, (2,), (NewTarget(A0, (2, 1), (4, 1)),))
REFUSED = MovesReplanned(LOST_MS, (2,), (), (Refusal(A0, "no broker has space"),))
WARNED = {"guards": {GuardName.DISK: Reaction.WARN}, "replans": False}


@pytest.mark.parametrize(("run", "decided"), [
    (losing(), "replan a-0 without 2"),
    (losing(**WARNED), "cancel a-0"),
    (losing(health=WELL), "wait"),
    # There is nothing to copy from, or nothing to copy any more.
    (losing(last=moved(leader=NO_LEADER)), "wait"),
    (losing(last=moved(isr=(0, 1, 2))), "wait"),
], ids=["lost", "nobody asked", "back", "no leader", "in sync"])  # fmt: skip
def test_a_move_that_lags_on_a_lost_broker_is_planned_again(run: Played, decided: str) -> None:
    assert run.copy().decided == decided


@pytest.mark.parametrize(("events", "decided"), [
    ([HoldRequested(0, 1), look(1_000, UNTOUCHED), HealthObserved(1_000, WITHOUT_2), look(LOST_MS, UNTOUCHED)],
     "replan a-0 without 2"),
    ([HoldRequested(0, 1), look(1_000, UNTOUCHED), HealthObserved(1_000, WITHOUT_2),
      replace(moved(leader=NO_LEADER), observations=(replace(seen(MOVES[0], UNTOUCHED), leader=NO_LEADER),))],
     "replan a-0 without 2"),
    # One that was just sent may or may not be under way.
    ([look(1_000, UNTOUCHED), HealthObserved(1_000, WITHOUT_2), SubmissionIntended(1_000, (A0, A1)),
      MovesSubmitted(1_000, (), unknown=(A0, A1)), look(LOST_MS, PlacementState.SETTLING)], "wait"),
], ids=["waits", "waits without leader", "just sent"])  # fmt: skip
def test_a_waiting_move_is_planned_again_and_a_sent_one_is_not(events: list[Event], decided: str) -> None:
    run = Played(begun(throttle=None, replans=True), *events, HealthObserved(LOST_MS, WITHOUT_2))
    assert run.decided == decided


def test_a_move_refused_for_now_waits_and_is_planned_again() -> None:
    for_now = MovesSubmitted(1_000, (), deferred=(Refusal(A0, "not the controller"),))
    run = Played(begun(MOVES[0], throttle=None, replans=True), look(1_000, UNTOUCHED, MOVES[0]))
    run.on(HealthObserved(1_000, WELL), SubmissionIntended(1_000, (A0,)), for_now, look(31_000, UNTOUCHED, MOVES[0]))
    run.on(HealthObserved(31_000, WITHOUT_2))
    assert (run.decided, run.view.hindrance(31_000)) == ("wait", "broker 2 is down, and 1 move to it waits for it")
    run.on(look(91_000, UNTOUCHED, MOVES[0]), HealthObserved(91_000, WITHOUT_2), replace(ELSEWHERE, at_ms=91_000))
    assert (target_of(run), run.go("submit").decided) == (((4, 1), (4, 1)), "submit a-0")


def test_a_move_is_planned_again_only_once() -> None:
    run = losing().on(ELSEWHERE, look(62_000, MOVING), CancelIntended(62_000, (A0,)), MovesCancelled(62_000, ()))
    run.on(look(92_000, MOVING), HealthObserved(92_000, WITHOUT_2))
    assert run.decided == "cancel a-0"


ANN = Operator("ann", "host")
LEADER_4 = ConfigKey(ConfigResource.broker(4), LEADER_THROTTLED_RATE)
LEADER_9 = ConfigKey(ConfigResource.broker(9), LEADER_THROTTLED_RATE)


def test_the_replan_request_has_all_that_a_planner_needs() -> None:
    moves = tuple(PlannedMove(TopicPartition("a", number), (0, 1), (2, 1), 9, float(number)) for number in range(4))
    others = {"originals": (ConfigValue(LEADER_9, None),), "adopted": (ConfigValue(LEADER_4, None),)}
    rates = ThrottleRates(adaptive=AdaptiveThrottle(RATE))
    begin = begun(*moves, rates=rates, replans=True, avoid=(4,), operator=ANN, pace=Pace(disk_reserve=0.25), **others)
    run = Played(begin).go("observe").on(HoldRequested(0, 1))
    for at_ms in (1_000, LOST_MS):
        places = (PlacementState.ARRIVED, PlacementState.DELETED, MOVING, UNTOUCHED)
        found = [seen(move, where) for move, where in zip(moves, places, strict=True)]
        run.on(MovesObserved(at_ms, tuple(found if at_ms == 1_000 else found[2:])), HealthObserved(at_ms, WITHOUT_2))
        if at_ms == 1_000:
            writes = (PartitionWrites(moves[2].topic_partition, 7.0),)
            run.go("wait").on(TimePassed(20_000), TrafficMeasured(20_000, (), writes))
    (question,) = run.ordered
    assert isinstance(question, ReplanMoves)
    names = [move.topic_partition for move in moves]
    assert replace(question, known_settings=frozenset()) == ReplanMoves(
        moves[2:], (2,), frozenset({names[2]}), (moves[0], *moves[2:]), rates, frozenset(), 0.25,
        {names[2]: 7.0, names[3]: 3.0}, ANN, (4,),
    )  # fmt: skip
    assert {LEADER_4, LEADER_9} < question.known_settings


def target_of(run: Played) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """To where the first move leads, and is to lead."""
    record = run.view.records[A0]
    return record.move.target, record.wanted.target


@pytest.mark.parametrize(("events", "decided", "then", "targets"), [
    ([ELSEWHERE], "read follower 4", "cancel a-0", ((2, 1), (4, 1))),
    # Whoever cancelled the run meanwhile wants nothing to begin elsewhere.
    ([CancelRequested(LOST_MS, 1, is_now=False), ELSEWHERE], "observe a-0 a-1", "wait", ((2, 1), (2, 1))),
    # A broker that is throttled already, or that the move had before, is no new destination.
    ([replace(ELSEWHERE, targets=(NewTarget(A0, (2, 1), (3, 1)),))], "observe a-1 a-0", "cancel a-0", ((2, 1), (3, 1))),
], ids=["elsewhere", "cancelled", "known"])  # fmt: skip
def test_a_new_destination_is_throttled_before_it_gets_anything(
    events: list[Event], decided: str, then: str, targets: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    run = losing(throttle=RATE).on(*events)
    assert (run.decided, target_of(run)) == (decided, targets)
    assert run.go(then).decided == then


def test_a_move_in_flight_gets_its_new_target_after_its_cancellation() -> None:
    run = losing().on(ELSEWHERE, look(62_000, MOVING))
    assert run.view.outlook == ("1 move to brokers that are down is cancelled, to be made to others",)
    run.on(CancelIntended(62_000, (A0,)), MovesCancelled(62_000, (A0,)), look(63_000, UNTOUCHED, MOVES[0]))
    assert (target_of(run), run.view.outlook) == (((4, 1), (4, 1)), ())
    told = "broker 2 was down, so that moves were planned again at 00:01:01 UTC: a-0 to [4, 1] instead of [2, 1]"
    assert run.problems == (told,)


def test_a_waiting_move_gets_its_new_target_at_once() -> None:
    run = Played(begun(throttle=None, replans=True), HoldRequested(0, 1), look(1_000, UNTOUCHED))
    run.on(HealthObserved(1_000, WITHOUT_2), look(LOST_MS, UNTOUCHED), HealthObserved(LOST_MS, WITHOUT_2), ELSEWHERE)
    assert (run.decided, target_of(run)) == ("observe a-0", ((4, 1), (4, 1)))


def test_a_destination_that_cannot_be_read_is_read_again_later() -> None:
    run = losing(throttle=RATE).on(ELSEWHERE, CallFailed(LOST_MS, "no answer"), CallFailed(2 * LOST_MS, "no answer"))
    run.on(look(2 * LOST_MS, MOVING), HealthObserved(2 * LOST_MS, WITHOUT_2))
    assert run.decided == "read follower 4"


def test_brokers_that_are_back_are_throttled_with_the_new_destination() -> None:
    run = losing(throttle=RATE, live_brokers=(0, 1, 2), first=Health((0, 1, 4)))
    assert run.on(ELSEWHERE).decided == "read follower 3, follower 4"


@pytest.mark.parametrize("lost", [(2,), (3, 2)])
def test_a_move_without_another_destination_is_given_up(lost: tuple[int, ...]) -> None:
    run = losing().on(replace(REFUSED, lost=lost), look(62_000, MOVING))
    why = "its destination broker 2 had been down for 60 s, and no other could be found: no broker has space"
    assert (run.decided, run.view.records[A0].given_up) == ("cancel a-0", why)


FAILED = "moves whose destination is lost could not be planned again yet: no answer"


def test_a_failed_replan_is_told_until_one_succeeds() -> None:
    run = losing().on(CallFailed(LOST_MS, "no answer"))
    assert (run.decided, run.problems) == ("wait", (FAILED,))
    run.on(look(92_000, MOVING), HealthObserved(92_000, WITHOUT_2), replace(ELSEWHERE, at_ms=92_000))
    assert run.problems == (f"over, from 00:01:01 to 00:01:32 UTC: {FAILED}",)
