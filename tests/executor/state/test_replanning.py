"""Other destinations for moves whose destination is lost, as far as the machine decides that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.executor.events import (
    CallFailed,
    Event,
    MovesReplanned,
    NewTarget,
    Operator,
    PlacementState,
    PlannedMove,
    Refusal,
)
from kreassign.executor.instructions import ReadConfigs, ReplanMoves, Wait
from kreassign.executor.scheduling import Pace
from kreassign.executor.state import MoveStatus, WindDown
from kreassign.executor.state.health_watch import REPLANNING
from kreassign.executor.state.machine import Machine, handle
from kreassign.executor.state.move import Replan
from kreassign.executor.state.phases import Observing, Preparing, Replanning, Waiting
from kreassign.executor.state.replanning import begin, needed
from kreassign.executor.state.run import PassingProblem, Run
from kreassign.executor.throttle.ledger import ConfigKey, ConfigOverride
from kreassign.executor.throttle.rates import NO_THROTTLE, ThrottleRates
from kreassign.model import NO_LEADER, ConfigResource, TopicPartition
from kreassign.model.throttle import FOLLOWER_THROTTLED_RATE
from tests.executor.run_events import A0, A1, KEYS, LISTED, LIVE, MOVES, RATE, SUBMITTED, look, machine_after, started
from tests.executor.state.run_changes import handled

MOVING = (*SUBMITTED, look(5_000, PlacementState.MOVING, done=100))
ELSEWHERE = MovesReplanned(6_000, (2,), (NewTarget(A0, (2, 1), (4, 1)),))


def losing(machine: Machine, *lost: int) -> Run:
    """The run with these brokers lost and leave to choose others."""
    run = machine._run
    run.control.replans, run.health.lost = True, lost
    return run


def replanning(*events: Event) -> Run:
    """A run that has asked for another destination than broker 2."""
    run = losing(machine_after(*events)[0], 2)
    run.state = begin(run, needed(run), frozenset({9})).state
    return run


def test_moves_that_lag_on_a_lost_broker_need_another_destination() -> None:
    run = losing(machine_after(*MOVING)[0], 2)
    assert [record.name for record in needed(run)] == [A0]
    run.control.replans = False
    assert needed(run) == ()


def test_what_was_sent_and_not_seen_since_may_or_may_not_be_under_way() -> None:
    assert needed(losing(machine_after(*SUBMITTED[:-1])[0], 2, 3)) == ()
    assert [record.name for record in needed(losing(machine_after(*LISTED)[0], 2, 3))] == [A0, A1]


def test_the_question_tells_what_is_lost_under_way_planned_and_written() -> None:
    run = losing(machine_after(*MOVING)[0], 2)
    run.traffic.writes = {A0: 12.0}
    run.identity.operator = Operator("ann", "host")
    state, (question,) = begin(run, needed(run), frozenset({9}))
    assert state == Replanning(frozenset({9}))
    assert isinstance(question, ReplanMoves)
    assert (question.moves, question.lost, question.in_flight, question.plan) == (MOVES[:1], (2,), {A0}, MOVES)
    assert (question.rates.bytes_per_s, question.known, question.writes) == (RATE, {*KEYS}, {A0: 12.0})
    assert (question.operator, question.disk_reserve) == (run.identity.operator, run.control.pace.disk_reserve)


def test_a_move_that_did_not_start_leads_elsewhere_at_once() -> None:
    run = replanning(*LISTED)
    handle(run, ELSEWHERE)
    record = run.moves.records[A0]
    assert (record.move.target, record.move.original, record.awaited_replan) == ((4, 1), (0, 1), None)
    assert [(one.before, one.target) for one in record.replans] == [((2, 1), (4, 1))]
    assert (run.health.replaced, set(run.throttle.live_brokers)) == ({2}, {*LIVE, 9})
    assert run.throttle.awaited == {4}


def test_a_move_that_is_under_way_leads_elsewhere_once_it_is_cancelled() -> None:
    run = replanning(*MOVING)
    handle(run, ELSEWHERE)
    record = run.moves.records[A0]
    assert (record.move.target, record.wanted.target) == ((2, 1), (4, 1))


def test_a_move_for_which_nobody_found_a_destination_is_given_up_and_says_why() -> None:
    run = replanning(*MOVING)
    handle(run, MovesReplanned(6_000, (2,), (), (Refusal(A0, "no broker has space"),)))
    record = run.moves.records[A0]
    assert record.is_given_up
    assert record.given_up is not None
    assert record.given_up.endswith("and no other could be found: no broker has space")


def test_a_question_that_failed_is_told_and_asked_again_later() -> None:
    run = replanning(*MOVING)
    assert handle(run, CallFailed(6_000, "no answer")) == (Wait(),)
    assert isinstance(run.state, Waiting)
    (told,) = (problem for known in run.problems.passing.values() for problem in known.values())
    assert told.text == "moves whose destination is lost could not be planned again yet: no answer"


def test_that_moves_could_not_be_planned_again_is_over_once_they_were() -> None:
    run = replanning(*MOVING)
    handle(run, CallFailed(6_000, "no answer"))
    run.state = Replanning(frozenset())
    handle(run, replace(ELSEWHERE, at_ms=7_000))
    (told,) = (problem for known in run.problems.passing.values() for problem in known.values())
    assert (told.from_ms, told.until_ms) == (6_000, 7_000)


# --- every row, with all that it changes ---------------------------------------------------------------------------


@pytest.mark.parametrize(("spoil", "names"), [
    ("nothing", [A0]),
    ("nobody asked", []),
    ("nothing lost", []),
    ("cancelled", []),
    ("just sent", []),
    ("being cancelled", []),
    ("no leader", []),
    ("given up", []),
    ("planned without leader", [A0]),
    ("in sync", []),
])  # fmt: skip
def test_planned_again_is_what_lags_on_a_lost_broker_and_can_be_cancelled(
    spoil: str, names: list[TopicPartition]
) -> None:
    run = losing(machine_after(*MOVING)[0], 2)
    record = run.moves.records[A0]
    seen_now = record.observation
    assert seen_now is not None
    match spoil:
        case "nobody asked":
            run.control.replans = False
        case "nothing lost":
            run.health.lost = ()
        case "cancelled":
            run.control.wind_down = WindDown.FINISH
        case "just sent":
            record.status = MoveStatus.SENT
        case "being cancelled":
            record.status = MoveStatus.CANCELLING
        case "no leader":
            record.observation = replace(seen_now, leader=NO_LEADER)
        case "given up":
            record.given_up = "no space"
        case "planned without leader":
            record.status, record.observation = MoveStatus.PLANNED, None
        case "in sync":
            record.observation = replace(seen_now, isr=(0, 1, 2))
    assert [one.name for one in needed(run)] == names


def test_the_question_is_about_all_that_is_made_or_shall_be() -> None:
    moves = tuple(PlannedMove(TopicPartition("a", number), (0, 1), (2, 1), 9, float(number)) for number in range(5))
    run = losing(machine_after(started(*moves))[0], 2)
    records = [*run.moves.records.values()]
    statuses = (MoveStatus.COMPLETE, MoveStatus.FAILED, MoveStatus.CANCELLED, MoveStatus.MOVING, MoveStatus.PLANNED)
    for record, status in zip(records, statuses, strict=True):
        record.status = status
    records[3].awaited_replan = Replan(1, (2,), (2, 1), (4, 1))
    key = [ConfigKey(ConfigResource.broker(broker), FOLLOWER_THROTTLED_RATE) for broker in range(4)]
    throttle = run.throttle
    throttle.before, throttle.originals, throttle.adopted = {key[0]: None}, {key[1]: None}, {key[2]: None}
    throttle.pending = {key[3]: ConfigOverride(key[3], None, "5")}
    run.control.pace, run.identity.operator = Pace(disk_reserve=0.25), ANN
    run.traffic.writes = {records[4].name: 7.0}
    assert begin(run, tuple(records[3:]), frozenset({9})) == (
        Replanning(frozenset({9})),
        (
            ReplanMoves(
                moves[3:],
                (2,),
                frozenset({records[3].name}),
                (moves[0], replace(moves[3], target=(4, 1)), moves[4]),
                ThrottleRates(RATE),
                frozenset(key),
                0.25,
                {records[3].name: 3.0, records[4].name: 7.0},
                ANN,
            ),
        ),
    )


ANN = Operator("ann", "host")
NEW_RATE = ConfigKey(ConfigResource.broker(4), FOLLOWER_THROTTLED_RATE)


def asked(*events: Event) -> Run:
    """A run that waits for an answer about broker 2, while broker 9 is back."""
    run = losing(machine_after(*events)[0], 2)
    run.state = Replanning(frozenset({9}))
    return run


def test_a_new_destination_is_throttled_before_it_gets_anything() -> None:
    run = asked(*MOVING)
    run.health.replaced, run.throttle.live_brokers = frozenset({7}), (3, 1, 0)
    run.tell(REPLANNING, 5_500, "no answer")
    replanned = Replan(6_000, (2,), (2, 1), (4, 1))
    assert handled(run, ELSEWHERE) == (
        (ReadConfigs((NEW_RATE,)),),
        {
            "state": Preparing(),
            "a-0.awaited_replan": replanned,
            "moves.index.in_flight": ["a-1", "a-0"],
            "health.replaced": {2, 7},
            "throttle.live_brokers": (0, 1, 3, 4, 9),
            "throttle.awaited": {4},
            "problems.passing": {REPLANNING: {"no answer": PassingProblem("no answer", 5_500, 6_000)}},
        },
    )


def test_a_destination_whose_settings_are_known_or_that_is_not_throttled_is_not_waited_for() -> None:
    run = asked(*MOVING)
    run.throttle.before[NEW_RATE] = None
    assert "throttle.awaited" not in handled(run, ELSEWHERE)[1]
    run = asked(*MOVING)
    run.control.rates = NO_THROTTLE
    assert "throttle.awaited" not in handled(run, ELSEWHERE)[1]


def test_a_broker_that_the_move_had_before_is_no_new_destination() -> None:
    run = asked(*MOVING)
    run.throttle.live_brokers = (0,)
    targets = (NewTarget(A0, (2, 1), (1, 4)), NewTarget(A1, (1, 3), (1, 3)))
    changes = handled(run, MovesReplanned(6_000, (2,), targets))[1]
    assert changes["throttle.live_brokers"] == (0, 4, 9)


def test_what_was_cancelled_meanwhile_begins_nowhere_else() -> None:
    run = asked(*MOVING)
    run.control.wind_down = WindDown.FINISH
    changes = handled(run, ELSEWHERE)[1]
    assert changes == {"state": Observing((A0, A1)), "throttle.live_brokers": (*LIVE, 9)}


def test_a_move_for_which_there_is_no_destination_is_given_up_with_what_it_lost() -> None:
    run = asked(*LISTED)
    run.moves.records[A0].move = replace(MOVES[0], target=(3, 2))
    why = "its destinations [2, 3] had been down for 60 s, and no other could be found: no broker has space"
    refused = MovesReplanned(6_000, (3, 2, 1), (), (Refusal(A0, "no broker has space"),))
    changes = handled(run, refused)[1]
    assert {path: value for path, value in changes.items() if path.startswith(("a-0", "moves", "health"))} == {
        "a-0.given_up": why,
        "a-0.status": MoveStatus.FAILED,
        "a-0.completed_ms": 6_000,
        "a-0.problem": why,
        "moves.index.queue": ["a-1"],
        "health.replaced": {1, 2, 3},
    }


def test_a_move_that_waits_leads_elsewhere_and_is_looked_at_again() -> None:
    run = asked(*LISTED)
    changes = handled(run, ELSEWHERE)[1]
    assert (changes["moves.index.queue"], changes["moves.index.unsettled"]) == (["a-1"], ["a-0"])


def test_a_question_without_an_answer_is_told_with_its_time() -> None:
    run = asked(*MOVING)
    sentence = "moves whose destination is lost could not be planned again yet: no answer"
    assert handled(run, CallFailed(6_000, "no answer")) == (
        (Wait(),),
        {"state": Waiting(), "problems.passing": {REPLANNING: {sentence: PassingProblem(sentence, 6_000)}}},
    )
