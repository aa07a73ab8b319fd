"""Moves are observed, chosen, listed, sent and waited for: which order follows what happens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kreassign.executor.events import (
    CallFailed,
    CancelRequested,
    ConfigsRead,
    Event,
    HealthObserved,
    HoldRequested,
    MovesObserved,
    MovesSubmitted,
    PlacementState,
    PlannedMove,
    Refusal,
    ReleaseRequested,
    RunResumed,
    SubmissionIntended,
    ThrottleChecked,
    ThrottleIntended,
    ThrottleRequested,
    ThrottleSet,
    TimePassed,
    TrafficMeasured,
    Unwritten,
    VerdictsRecorded,
)
from kreassign.executor.guards import GuardName, Health, Reaction
from kreassign.executor.instructions import CheckHealth, ObserveMoves, ProducerGuard, SubmitMoves
from kreassign.executor.state.admission import FRESH_MS
from kreassign.executor.state.attempts import PATIENCE_MS, delay_ms
from kreassign.executor.state.move_rules import DOUBT_MS
from kreassign.executor.state.moving import CHECKED_AT_ONCE, OUT_OF_REACH_MS, UNSET_PATIENCE_MS
from kreassign.executor.throttle_ledger import ConfigValue
from kreassign.model import NO_LEADER, ConfigResource, TopicPartition, TopicPartitionReplica
from kreassign.model.authorization import missing_permission
from kreassign.model.pace import Cap, Caps, Order, Pace
from kreassign.model.run import LogDirTarget, Phase
from kreassign.model.throttle import AdaptiveThrottle, ThrottleRates
from tests.executor.run_events import (
    A0,
    A1,
    BEFORE,
    LISTED,
    LISTS,
    LIVE,
    MOVES,
    PREPARED,
    RATE,
    RATES,
    SUBMITTED,
    look,
    seen,
    started,
)
from tests.executor.state.played import FOLLOWERS, LEADER_0, LEADERS, MOVING, UNTOUCHED, Played, begun, guarded

AT_PLACE, GONE, DIVERGED = PlacementState.ARRIVED, PlacementState.DELETED, PlacementState.DIVERGED
BOTH = (A0, A1)
ALL = "all rates, both lists"
UNLISTED = "set followers of a=1:3|0:2,1:3, leaders of a=1:0,1:1|0:0,0:1,1:0,1:1"
"""The first of two moves has arrived."""
SENT: tuple[Event, ...] = (*LISTED, SubmissionIntended(3_000, BOTH))
AGAIN_MS = 3_000 + delay_ms(1, "run-1")
"""When moves that were sent after 3 s are sent again."""


def many(count: int, size: int = 1_000) -> tuple[PlannedMove, ...]:
    """Moves between one pair of brokers."""
    return tuple(PlannedMove(TopicPartition("a", number), (0, 1), (2, 1), size) for number in range(count))


def unthrottled(*moves: PlannedMove, **pace: Any) -> Played:
    """A run without throttle, before its first look."""
    return Played(begun(*moves, throttle=None, pace=Pace(**{"is_eager": True, **pace})))


LOST = MovesSubmitted(4_000, (), unknown=BOTH)
HALF = MovesObserved(5_000, (seen(MOVES[0], MOVING), seen(MOVES[1], UNTOUCHED)))
STRANGE = look(5_000, DIVERGED)
UNREAD = MovesObserved(5_000 + 2 * DOUBT_MS, (), (Refusal(A0, "no"), Refusal(A1, "no")))


@pytest.mark.parametrize(("begin", "events", "decided", "moves"), [
    (SUBMITTED, [look(5_000, MOVING)], "wait", "moving moving"),
    (SUBMITTED, [look(5_000, MOVING), TimePassed(6_000)], "observe a-0 a-1", "moving moving"),
    # A poll tells only what changed, and the rest counts as before; what is shown unasked counts too.
    (SUBMITTED, [look(5_000, MOVING), look(7_000, AT_PLACE, MOVES[0])], UNLISTED, "complete moving"),
    (PREPARED, [look(3_000, DIVERGED)], "wait", "planned planned"),
    (PREPARED, [look(3_000, DIVERGED), MovesObserved(3_000 + DOUBT_MS, ())], "read all rates", "failed failed"),
    (PREPARED, [MovesObserved(3_000, (seen(MOVES[0], DIVERGED), seen(MOVES[1], UNTOUCHED)))],
     "set followers of a=1:3, leaders of a=1:0,1:1", "planned planned"),
    (SUBMITTED, [look(5_000, GONE)], "wait", "moving moving"),
    (SUBMITTED, [look(5_000, GONE), look(6_000, MOVING), look(5_000 + DOUBT_MS, GONE)], "wait", "moving moving"),
    (SUBMITTED, [look(5_000, GONE), MovesObserved(5_000 + DOUBT_MS, ())], f"read {ALL}", "failed failed"),
    # Brokers lag behind their controller, so what is strange is believed once it stays so.
    (SUBMITTED, [STRANGE], "wait", "moving moving"),
    (SUBMITTED, [STRANGE, MovesObserved(5_000 + DOUBT_MS, ())], f"read {ALL}", "failed failed"),
    (SUBMITTED, [STRANGE, look(7_000, MOVING), look(5_000 + DOUBT_MS, DIVERGED)], "wait", "moving moving"),
    (SUBMITTED, [STRANGE, UNREAD], "wait", "moving moving"),
    (SUBMITTED, [replace(look(5_000, GONE), unread=(Refusal(A1, "no"),)), replace(UNREAD, unread=UNREAD.unread[1:])],
     "wait", "failed moving"),
    (SUBMITTED, [look(5_000, PlacementState.SETTLING), MovesObserved(6_000, ()), look(7_000, AT_PLACE)], f"read {ALL}",
     "complete complete"),
    # After a lost answer it is looked first, and only what did not arrive is sent again, after a pause.
    (SENT, [LOST], "observe a-0 a-1", "sent sent"),
    (SENT, [LOST, look(AGAIN_MS - 1, UNTOUCHED)], "wait", "sent sent"),
    (SENT, [LOST, look(AGAIN_MS, UNTOUCHED)], "submit a-0 a-1", "sent sent"),
    (SENT, [LOST, HALF], "submit a-1", "moving sent"),
    (SENT, [MovesSubmitted(4_000, (A0,), deferred=(Refusal(A1, "busy"),))], "observe a-0 a-1", "moving sent"),
    (SENT, [MovesSubmitted(4_000, (A0,), (Refusal(A1, "no"),))], "observe a-0", "moving failed"),
    (SENT, [MovesSubmitted(4_000, (), (Refusal(A0, "no"), Refusal(A1, "no")))], f"read {ALL}", "failed failed"),
])  # fmt: skip
def test_polls_decide_what_is_sent_and_what_has_failed(
    begin: tuple[Event, ...], events: list[Event], decided: str, moves: str
) -> None:
    run = Played(*begin, *events)
    assert (run.decided, run.moves) == (decided, moves)


def test_a_move_without_effect_is_not_sent_for_ever() -> None:
    run = Played(*LISTED)
    for at_ms in (4_000, 34_000, 64_000, 94_000):
        assert run.decided == "submit a-0 a-1"
        run.on(SubmissionIntended(at_ms, BOTH), replace(LOST, at_ms=at_ms), look(at_ms + 30_000, UNTOUCHED))
    assert run.moves == "failed failed"
    assert "4 times in 120 s" in str(run.view.records[A0].problem)


def test_a_refusal_is_told_when_its_move_fails() -> None:
    refused = Played(*SENT, MovesSubmitted(4_000, (), (Refusal(A0, "no"), Refusal(A1, "no")))).go("verify").go("")
    assert (refused.view.records[A0].problem, refused.step) == ("the cluster refused it: no", "Failed")
    run = Played(*SENT, MovesSubmitted(4_000, (), deferred=(Refusal(A0, "busy"), Refusal(A1, "busy"))))
    for at_ms in (34_000, 64_000):
        run.on(look(at_ms, UNTOUCHED), SubmissionIntended(at_ms, BOTH), replace(LOST, at_ms=at_ms))
    run.on(look(34_000 + PATIENCE_MS, UNTOUCHED))
    assert str(run.view.records[A0].problem).endswith("the cluster showed no effect; it answered: busy")


@pytest.mark.parametrize("nothing_sent", [
    [replace(UNREAD, at_ms=30_000, unread=UNREAD.unread[1:])],
    [RunResumed(20_000, LIVE), ThrottleSet(200_000)],
])  # fmt: skip
def test_no_refused_move_fails_for_time_in_which_nothing_was_sent(nothing_sent: list[Event]) -> None:
    def half(at_ms: int) -> Event:
        return replace(HALF, at_ms=at_ms)

    run = Played(*SENT, MovesSubmitted(4_000, (A0,), deferred=(Refusal(A1, "busy"),)))
    for at_ms in (5_000, 8_000, 16_000):
        run.on(half(at_ms), SubmissionIntended(at_ms, (A1,)))
        run.on(MovesSubmitted(at_ms, (), deferred=(Refusal(A1, "busy"),)))
    run.on(*nothing_sent)
    assert run.on(half(400_000)).moves == "moving sent"


def leaderless(at_ms: int) -> MovesObserved:
    return MovesObserved(at_ms, tuple(replace(seen(move, UNTOUCHED), leader=NO_LEADER) for move in MOVES))


SILENT = "2 partitions (a-0, a-1) each had no leader when it was to start; nothing is sent before it has one"


def test_a_partition_without_a_leader_is_not_sent_before_it_has_one() -> None:
    run = Played(started(throttle=None), leaderless(3_000))
    assert (run.decided, run.problems) == ("wait", (SILENT,))
    led = run.copy().on(look(30_000, UNTOUCHED))
    assert led.decided == "submit a-0 a-1"
    assert led.problems == (f"over, from 00:00:03 to 00:00:30 UTC: {SILENT}",)
    assert run.on(leaderless(3_600_000)).moves == "planned planned"


def test_a_partition_may_lack_a_leader_as_long_as_a_broker_may_be_down() -> None:
    run = Played(begun(throttle=None, lost_after_ms=300_000))
    for at_ms in (3_000, 302_999):
        run.on(leaderless(at_ms), HealthObserved(at_ms, Health(LIVE)))
    assert run.moves == "planned planned"
    assert run.on(leaderless(303_000)).moves == "failed failed"
    assert run.view.records[A0].problem == (
        "its partition had no leader for 300 s, so nothing was sent; bring back one of [0, 1], then replan"
    )


def test_no_leader_is_missed_while_a_partition_cannot_be_read() -> None:
    run = Played(begun(throttle=None, lost_after_ms=60_000)).on(leaderless(3_000), HealthObserved(3_000, Health(LIVE)))
    not_read = MovesObserved(63_000, (), unread=(Refusal(A0, "no answer"), Refusal(A1, "no answer")))
    inspected = HealthObserved(63_000, Health(LIVE))
    assert run.copy().on(not_read, inspected, leaderless(64_000)).moves == "planned planned"
    assert run.on(replace(not_read, withheld=(A0,))).moves == "failed planned"


def test_a_poll_asks_for_the_step_of_a_move_and_tells_absent_brokers() -> None:
    two = replace(MOVES[0], target=(2, 3))
    run = Played(begun(two, throttle=None, pace=Pace(is_stepwise=True)))
    assert run.ordered == (ObserveMoves((run.view.records[A0].step,), frozenset({A0})),)
    assert run.view.records[A0].step != two
    for absent, shown in (((2,), (2,)), (None, (2,)), ((), ())):
        assert run.on(MovesObserved(1_000, (seen(two, MOVING),), absent=absent)).view.absent == shown


BETWEEN = (
    PlannedMove(TopicPartition("a", 0), (0, 1), (2, 1), 1_000),
    PlannedMove(TopicPartition("a", 1), (1, 0), (1, 3), 3_000),
    PlannedMove(TopicPartition("a", 2), (0, 1), (4, 1), 2_000),
)
ONE_PER_SOURCE = {"order": Order.NAME, "caps": Caps(source=Cap(moves=1))}


def test_polls_ask_for_moves_in_flight_before_waiting_ones() -> None:
    moves = many(CHECKED_AT_ONCE + 2)
    run = unthrottled(*moves).on(HoldRequested(0, 1), look(1_000, UNTOUCHED, *moves[:-1]), TimePassed(2_000))
    assert run.ordered == (ObserveMoves(moves[-1:], frozenset({moves[-1].topic_partition})),)
    # No more are looked at before they start than can be sent while that is fresh.
    run.on(ReleaseRequested(2_000, 2), look(2_000, AT_PLACE, moves[-1]))
    assert len(run.ordered[0].moves) == CHECKED_AT_ONCE
    run.on(HoldRequested(2_500, 3), MovesObserved(3_000, ()), TimePassed(4_000))
    assert len(run.ordered[0].moves) == CHECKED_AT_ONCE


ARRIVED = look(3_000, AT_PLACE, BETWEEN[0])


@pytest.mark.parametrize(("events", "decided"), [
    ([ARRIVED], "observe a-2"),
    ([ARRIVED, MovesObserved(4_000, ())], "submit a-2"),
    ([ARRIVED, look(4_000, DIVERGED, BETWEEN[2])], "wait"),
    ([HoldRequested(2_000, 1), ARRIVED], "wait"),
])  # fmt: skip
def test_a_move_that_waited_is_looked_at_once_more_before_it_starts(events: list[Event], decided: str) -> None:
    run = unthrottled(*BETWEEN, **ONE_PER_SOURCE).go("wait")
    assert (run.moves, run.on(*events).decided) == ("moving moving planned", decided)


BIG = many(4, 100_000_000)
LARGE = (replace(BETWEEN[0], size_bytes=5_000), *BETWEEN[1:])


@pytest.mark.parametrize(("moves", "pace", "moving", "decided"), [
    (BETWEEN, {"order": Order.NAME}, 0, "submit a-0 a-1 a-2"),
    (BETWEEN, {"order": Order.LARGE_FIRST}, 0, "submit a-1 a-2 a-0"),
    (BETWEEN, {"order": Order.SMALL_FIRST}, 0, "submit a-0 a-2 a-1"),
    (BETWEEN, {"order": Order.MAKESPAN}, 0, "submit a-1 a-2 a-0"),
    # Broker 0 sends 5,000 bytes already, so that what it sends goes before the larger move of broker 1.
    (LARGE, {"order": Order.RELIEF}, 1, "submit a-2 a-1"),
    # Limits count what is in flight already, and a run that is not eager starts what keeps brokers busy.
    (BETWEEN, ONE_PER_SOURCE, 0, "submit a-0 a-1"),
    (BETWEEN, ONE_PER_SOURCE, 1, "submit a-1"),
    (BIG, {"order": Order.NAME}, 0, "submit a-0 a-1 a-2 a-3"),
    (BIG, {"order": Order.NAME, "is_eager": False}, 0, "submit a-0 a-1"),
    (BIG, {"order": Order.NAME, "is_eager": False}, 1, "submit a-1"),
])  # fmt: skip
def test_moves_start_in_the_order_and_within_the_limits_that_were_chosen(
    moves: tuple[PlannedMove, ...], pace: dict[str, Any], moving: int, decided: str
) -> None:
    run = unthrottled(*moves, **pace)
    places = [seen(move, MOVING if number < moving else UNTOUCHED) for number, move in enumerate(moves)]
    assert run.on(MovesObserved(1_000, tuple(places))).decided == decided


TWO_COPIES = PlannedMove(A0, (0, 1), (2, 3), 1_000)
WITHIN = replace(MOVES[0], target=(2, 1), log_dirs=(LogDirTarget(1, "/b", "/a"),))
ONLY_WITHIN = replace(WITHIN, target=(0, 1))


@pytest.mark.parametrize(("moves", "observation", "values"), [
    (MOVES, look(3_000, UNTOUCHED), ("0:2,1:3", "0:0,0:1,1:0,1:1")),
    (MOVES, look(3_000, UNTOUCHED, MOVES[1]), ("1:3", "1:0,1:1")),
    ((TWO_COPIES,), MovesObserved(3_000, (replace(seen(TWO_COPIES, MOVING), isr=(0, 1, 3)),)), ("0:2", "0:0,0:1")),
    ((WITHIN, MOVES[1]), look(3_000, UNTOUCHED, WITHIN), ("0:2", "0:0,0:1")),
    ((ONLY_WITHIN, MOVES[1]), look(3_000, UNTOUCHED, ONLY_WITHIN), None),
])  # fmt: skip
def test_replicas_are_listed_that_copy_now_or_are_about_to(
    moves: tuple[PlannedMove, ...], observation: Event, values: tuple[str, str] | None
) -> None:
    run = Played(begun(*moves)).go("observe").on(observation)
    if values is None:
        assert run.decided.startswith("submit")
    else:
        assert (run.settings[FOLLOWERS], run.settings[LEADERS]) == values


def test_adopted_entries_stay_listed() -> None:
    adopted = (ConfigValue(FOLLOWERS, "7:7"), ConfigValue(LEADER_0, "7"))
    originals, found = tuple(replace(one, value=None) for one in adopted), {one.key: one.value for one in adopted}
    read = tuple(replace(one, value=found.get(one.key, one.value)) for one in BEFORE)
    run = Played(begun(adopted=adopted, originals=originals), ConfigsRead(1_000, read)).go("observe").go("set")
    assert run.decided == "set leaders of a, followers of a=0:2,1:3,7:7|7:7"


TOPIC = ConfigResource.topic("a")
REFUSED = ThrottleSet(4_000, ("no",), failed=(TOPIC,))
LATE = replace(REFUSED, at_ms=4_000 + UNSET_PATIENCE_MS)
SPENT = "the throttle could not be set, so nothing more was started"


@pytest.mark.parametrize(("events", "decided", "problems"), [
    ([REFUSED], "wait", ("no",)),
    ([REFUSED, look(5_000, UNTOUCHED)], "set both lists", ("no",)),
    ([REFUSED, look(5_000, UNTOUCHED), ThrottleIntended(5_000, LISTS), ThrottleSet(6_000)], "submit a-0 a-1",
     ("over, from 00:00:04 to 00:00:06 UTC: no",)),
    ([REFUSED, look(5_000, UNTOUCHED), replace(LATE, at_ms=LATE.at_ms - 1)], "wait", ("no",)),
    ([REFUSED, look(5_000, UNTOUCHED), LATE], f"read {ALL}", ("no", SPENT)),
    # Patience begins again once they were set.
    ([REFUSED, look(5_000, UNTOUCHED), ThrottleSet(6_000), CallFailed(7_000, "no answer"), leaderless(8_000), LATE],
     "wait", ("no", SILENT)),
    # A topic that is gone is no reason to give up: its moves are over at the next look.
    ([REFUSED, look(5_000, UNTOUCHED), replace(LATE, problems=("gone",), failed=())], "wait",
     ("over, from 00:00:04 to 00:01:04 UTC: no", "gone")),
    ([replace(REFUSED, failed=(LEADER_0.resource,)), look(5_000, UNTOUCHED)], "set leader 0", ("no",)),
    # What is in flight is watched all the same.
    ([ThrottleSet(4_000), SubmissionIntended(4_000, BOTH), MovesSubmitted(4_000, BOTH), look(5_000, AT_PLACE, MOVES[0]),
      replace(REFUSED, at_ms=5_000), look(6_000, MOVING, MOVES[1]), replace(LATE, at_ms=10 * LATE.at_ms)],
     "wait", ("no",)),
    ([ThrottleSet(4_000, ("gone",)), look(5_000, GONE), ThrottleSet(5_000, ("gone",)),
      MovesObserved(5_000 + DOUBT_MS, ())],
     "read all rates, both lists", ("gone",)),
])  # fmt: skip
def test_lists_that_cannot_be_set_are_set_again_for_a_minute(
    events: list[Event], decided: str, problems: tuple[str, ...]
) -> None:
    run = Played(*LISTED[:-1], *events)
    assert (run.decided, run.problems) == (decided, problems)
    if SPENT in problems:
        assert (run.go("restore").go("").go("").step, run.problems) == ("Failed", problems)


def test_a_run_with_a_refused_move_does_not_wait_for_its_throttle_for_ever() -> None:
    """The cluster refused the move for now, so nothing of it is in progress: there is nothing to watch."""
    for_now = MovesSubmitted(4_000, (A0,), deferred=(Refusal(A1, "busy"),))
    run = Played(*LISTED, SubmissionIntended(4_000, BOTH), for_now, look(5_000, AT_PLACE, MOVES[0]))
    run.on(replace(REFUSED, at_ms=5_000), look(6_000, UNTOUCHED, MOVES[1]), replace(LATE, at_ms=LATE.at_ms + 1_000))
    assert (run.decided, run.moves, run.problems) == (f"read {ALL}", "complete planned", ("no", SPENT))


def test_a_setting_made_without_a_problem_is_confirmed() -> None:
    faster = Played(*SUBMITTED, ThrottleRequested(5_000, 1, 5))
    for answer, decided in (
        (ThrottleSet(6_000), "set all rates=6|5"),
        (ThrottleSet(6_000, ("no",), failed=(TOPIC,), may_pass=True), f"set all rates=6|{RATE}|5"),
        (ThrottleSet(6_000, (), (Unwritten(3, "it is down"),)),
         f"set follower 3=6|{RATE}|5, leader 0=6|5, leader 1=6|5, follower 2=6|5"),
    ):  # fmt: skip
        run = faster.copy().intend().on(answer)
        assert run.on(ThrottleRequested(7_000, 2, 6)).decided == decided


def test_settings_of_a_broker_that_is_down_are_told_until_it_is_back() -> None:
    run = Played(*PREPARED[:3], ThrottleSet(2_000, (), (Unwritten(3, "it is down"),)))
    told = "the throttle of broker 3 could not be written: it is down; it is set when the broker is back"
    assert (run.decided, run.problems) == ("observe a-0 a-1", (told,))
    assert run.go("set").decided == "set follower 3"
    assert run.go("observe").problems == ()


ODD = ConfigValue(LEADER_0, "5")


@pytest.mark.parametrize(("answer", "decided", "hindrance"), [
    (ThrottleChecked(0), "set both lists", None),
    (ThrottleChecked(0, unread=(TOPIC,)), "wait", "nothing is started while the throttle of topic a cannot be read"),
    (ThrottleChecked(0, (ODD,)), "wait", "its throttle is checked before anything is started"),
    (CallFailed(0, "no answer"), "wait", None),
])  # fmt: skip
def test_moves_do_not_start_while_the_throttle_is_in_doubt(answer: Event, decided: str, hindrance: str | None) -> None:
    run = Played(guarded()).go("check all")
    assert run.on(answer).decided == decided
    assert str(run.view.hindrance(0)).startswith(str(hindrance))


def test_lists_are_read_before_they_are_changed() -> None:
    assert Played(guarded()).go("wait").on(look(5_000, AT_PLACE, MOVES[0])).decided == f"check {ALL}"


def test_a_run_in_doubt_unlists_what_arrived_and_starts_nothing() -> None:
    run = Played(guarded()).go("submit").on(SubmissionIntended(0, (A0,)), MovesSubmitted(0, (A0,))).go("check")
    assert run.decided == f"check {ALL}"
    run.on(ThrottleChecked(run.now, (ODD,)))
    assert run.decided == "set followers of a=0:2|0:2,1:3, leaders of a=0:0,0:1|0:0,0:1,1:0,1:1"


ARRIVES = (look(1_000, AT_PLACE, MOVES[0]), ThrottleChecked(1_000, (ODD,)))
"""Lists are about to change, and a rate is odd."""


@pytest.mark.parametrize(("events", "decided"), [
    ([look(2_000, MOVING, MOVES[1])], "check all rates"),
    ([look(11_000, MOVING, MOVES[1]), ThrottleChecked(11_000, (ODD,)), look(12_000, MOVING, MOVES[1])], "check health"),
    ([look(11_000, MOVING, MOVES[1]), ThrottleChecked(11_000), look(12_000, MOVING, MOVES[1])], "wait"),
    ([look(11_000, MOVING, MOVES[1]), ThrottleChecked(11_000, (ODD,)), look(12_000, MOVING, MOVES[1]),
      HealthObserved(12_000, Health(LIVE, foreign_configs=(ODD,))), VerdictsRecorded(12_000, ()),
      look(20_000, MOVING, MOVES[1]), ThrottleChecked(20_000), look(21_000, MOVING, MOVES[1])], "check health"),
    ([ThrottleRequested(2_000, 1, 5), ThrottleChecked(11_000, (ODD,)), ThrottleIntended(11_000, RATES),
      ThrottleSet(11_000), look(12_000, MOVING, MOVES[1])], "check health"),
    ([ThrottleRequested(2_000, 1, 5), ThrottleChecked(2_500), ThrottleIntended(11_000, RATES),
      ThrottleSet(11_000), look(12_000, MOVING, MOVES[1])], "wait"),
], ids=["in doubt", "certain", "over", "certain and over", "set again", "set undoubted"])  # fmt: skip
def test_guards_are_asked_as_soon_as_a_throttle_is_changed_or_set_again(events: list[Event], decided: str) -> None:
    assert Played(guarded()).go("wait").on(*ARRIVES).go("wait").on(*events).decided == decided


def test_targets_directories_and_changes_of_the_factor_are_sent() -> None:
    first = replace(MOVES[0], log_dirs=(LogDirTarget(2, "/b"), LogDirTarget(1, "/c", "/a")))
    second = replace(MOVES[1], target=(1, 0, 3))
    run = unthrottled(first, second).on(look(1_000, UNTOUCHED, first, second))
    log_dirs = {TopicPartitionReplica(2, *A0): "/b", TopicPartitionReplica(1, *A0): "/c"}
    assert run.ordered == (SubmitMoves({A0: (2, 1), A1: (1, 0, 3)}, log_dirs, frozenset({A1})),)


def test_no_more_moves_are_sent_at_once_than_a_controller_takes() -> None:
    run, sizes = unthrottled(*many(2_500)).go("submit"), []
    for _ in range(3):
        sizes.append(len(run.ordered[0].targets))
        run.go("")
    assert (sizes, run.decided.split()[0]) == ([1_000, 1_000, 500], "observe")


def test_a_refused_move_leaves_the_lists_before_the_next_request() -> None:
    run = Played(begun(*many(1_001))).go("submit")
    first, *others = names = tuple(run.ordered[0].targets)
    run.on(SubmissionIntended(0, names), MovesSubmitted(0, tuple(others), (Refusal(first, "no"),)))
    assert f"{first.partition}:2" not in str(run.settings[FOLLOWERS]).split(",")
    (last,) = {move.topic_partition for move in many(1_001)} - set(names)
    assert run.go("submit").decided == f"submit {last}"


TAKEN = MovesSubmitted(0, tuple(move.topic_partition for move in many(1_000)))
FIRST, REST = TAKEN.accepted[:1], TAKEN.accepted[1:]


@pytest.mark.parametrize(("events", "decided"), [
    ([TAKEN], "submit"),
    ([replace(TAKEN, at_ms=FRESH_MS - 1)], "submit"),
    ([replace(TAKEN, at_ms=FRESH_MS)], "observe"),
    ([MovesSubmitted(0, REST, unknown=FIRST)], "observe"),
    ([MovesSubmitted(0, REST, deferred=(Refusal(FIRST[0], "busy"),))], "observe"),
    ([MovesSubmitted(0, REST, (Refusal(FIRST[0], "no"),))], "submit"),
    ([HoldRequested(0, 1), TAKEN], "observe"),
    ([CancelRequested(0, 1, is_now=False), TAKEN], "observe"),
])  # fmt: skip
def test_the_next_request_follows_a_fresh_look_and_a_good_answer(events: list[Event], decided: str) -> None:
    run = unthrottled(*many(1_001)).go("submit")
    run.on(SubmissionIntended(0, TAKEN.accepted), *events)
    assert run.decided.split()[0] == decided


def test_a_move_that_is_sent_again_counts_once_and_is_not_held() -> None:
    run = unthrottled(*BETWEEN, **ONE_PER_SOURCE).go("submit")
    run.on(SubmissionIntended(0, (A0,)), MovesSubmitted(0, (), unknown=(A0,)))
    assert run.copy().on(look(5_000, UNTOUCHED, *BETWEEN)).decided == "submit a-0 a-1"
    assert run.on(HoldRequested(0, 1), look(5_000, UNTOUCHED, *BETWEEN)).decided == "submit a-0"


def test_a_move_without_an_answer_keeps_its_slot() -> None:
    first, second = replace(MOVES[0], size_bytes=1_000), replace(MOVES[1], size_bytes=600)
    run = unthrottled(first, second, caps=Caps(cluster=Cap(1))).go("submit")
    run.on(SubmissionIntended(0, (A0,)), MovesSubmitted(0, (), unknown=(A0,)))
    assert run.copy().on(look(5_000, UNTOUCHED, first, second)).decided == "submit a-0"
    assert run.on(look(500, UNTOUCHED, first, second)).decided == "wait"


FINISH, NOW = CancelRequested(4_000, 1, is_now=False), CancelRequested(4_000, 1, is_now=True)
DEFERRED = MovesSubmitted(4_000, (), deferred=(Refusal(A0, "busy"), Refusal(A1, "busy")))


@pytest.mark.parametrize(("request_", "answer", "observation", "decided", "moves"), [
    # What may still be carried out is cancelled: the answer to that tells whether it was.
    (FINISH, LOST, look(AGAIN_MS, UNTOUCHED), "cancel a-0 a-1", "sent sent"),
    (NOW, LOST, look(AGAIN_MS, UNTOUCHED), "cancel a-0 a-1", "sent sent"),
    (FINISH, DEFERRED, look(AGAIN_MS, UNTOUCHED), f"read {ALL}", "cancelled cancelled"),
    (NOW, LOST, look(AGAIN_MS, DIVERGED), "wait", "sent sent"),
    (FINISH, DEFERRED, look(AGAIN_MS - 1, UNTOUCHED), "wait", "sent sent"),
    (FINISH, LOST, look(AGAIN_MS, MOVING), "wait", "moving moving"),
    (FINISH, MovesSubmitted(4_000, BOTH), look(5_000, AT_PLACE, MOVES[0]),
     UNLISTED, "complete moving"),
])  # fmt: skip
def test_a_cancelled_run_cancels_what_may_be_under_way(
    request_: Event, answer: Event, observation: Event, decided: str, moves: str
) -> None:
    run = Played(*SENT, request_, answer, observation)
    assert (run.decided, run.moves) == (decided, moves)


def test_a_cancelled_run_is_guarded_to_its_end() -> None:
    run = Played(begun(guards={GuardName.STALL: Reaction.WARN})).go("wait").on(FINISH, look(60_000, MOVING))
    assert run.decided == "check health"


def test_a_health_check_knows_the_moves_and_settings_that_are_left() -> None:
    run = Played(begun(guards={GuardName.DISK: Reaction.WARN})).go("wait")
    run.on(look(1_000, AT_PLACE, MOVES[0])).go("wait").on(look(60_000, MOVING, MOVES[1]))
    (check,) = run.ordered
    assert check == CheckHealth(MOVES[1:], tuple(run.view.pending_restores.values()), Health(LIVE))


FAILED = CallFailed(5_000, "no answer")


@pytest.mark.parametrize("run", [
    Played(*SUBMITTED),
    Played(guarded()).go("check all"),
    Played(guarded()).go("check health"),
    Played(*LISTED),
    Played(*SUBMITTED, NOW, look(4_500, MOVING)),
], ids=["observe", "check throttle", "check health", "submit", "cancel"])  # fmt: skip
def test_after_a_question_without_answer_it_waits_and_looks(run: Played) -> None:
    run = run.copy().on(FAILED)
    assert (run.decided, run.view.unreachable_since_ms) == ("wait", 5_000)
    assert run.on(TimePassed(6_000)).decided == "observe a-0 a-1"


def test_a_cluster_out_of_reach_for_five_minutes_pauses_the_run_throttled() -> None:
    run = Played(*SUBMITTED, FAILED, TimePassed(6_000), replace(FAILED, at_ms=4_999 + OUT_OF_REACH_MS))
    assert (run.decided, run.view.unreachable_since_ms) == ("wait", 5_000)
    run.on(TimePassed(6_000), replace(FAILED, at_ms=5_000 + OUT_OF_REACH_MS))
    assert (run.view.phase, run.decided, run.pending) == (Phase.PAUSED, "", ALL)
    assert run.view.unreachable_since_ms is None
    assert run.problems == ("the cluster was out of reach for 5 minutes: no answer",)


def test_a_silence_begins_with_the_first_question_and_ends_with_an_answer() -> None:
    late = CallFailed(15_000, "no answer", asked_ms=5_000)
    run = Played(*SUBMITTED, late)
    assert run.view.silence == "the cluster has not answered since 00:00:05 UTC"
    assert run.view.outlook == (run.view.silence,)
    unset = Played(*SUBMITTED, late, ThrottleRequested(16_000, 1, 5))
    assert unset.view.unreachable_since_ms == 5_000
    assert unset.on(ThrottleSet(20_000, ("no answer",))).problems == ("no answer",)
    assert unset.view.unreachable_since_ms == 5_000
    assert run.on(TimePassed(16_000), look(16_500, MOVING)).view.silence is None


def test_a_missing_permission_is_told_until_the_next_answer() -> None:
    refused = missing_permission("DESCRIBE", ("a",))
    run = Played(*SUBMITTED, replace(FAILED, message=refused))
    assert run.problems == (refused,)
    assert run.on(look(6_000, MOVING)).problems == (f"over, from 00:00:05 to 00:00:06 UTC: {refused}",)


def test_traffic_is_measured_between_two_polls() -> None:
    rates = ThrottleRates(adaptive=AdaptiveThrottle(50_000))
    run = Played(begun(rates=rates)).go("wait").on(TimePassed(6_000))
    assert run.decided == "measure a-0 a-1"
    run.on(TrafficMeasured(6_000, ()))
    assert run.decided == "observe a-0 a-1"
    out_of_reach = run.on(look(7_000, MOVING)).go("observe").on(replace(FAILED, at_ms=20_000), TimePassed(21_000))
    assert (out_of_reach.decided, out_of_reach.view.unreachable_since_ms) == ("measure a-0 a-1", 20_000)
    assert out_of_reach.on(TrafficMeasured(21_000, ())).view.unreachable_since_ms == 20_000


@pytest.mark.parametrize(("reaction", "outage", "judged_by"), [
    (Reaction.HOLD, False, ProducerGuard(frozenset())),
    (Reaction.WARN, False, None),
    (Reaction.HOLD, True, None),
])  # fmt: skip
def test_each_look_judges_moves_by_producers_where_that_guard_reacts(
    reaction: Reaction, outage: bool, judged_by: ProducerGuard | None
) -> None:
    guards = {GuardName.MIN_ISR: reaction}
    run = Played(begun(throttle=None, guards=guards, lost_after_ms=None, allows_producer_outage=outage)).go("observe")
    (question,) = run.ordered
    assert isinstance(question, ObserveMoves)
    assert question.producers == judged_by
