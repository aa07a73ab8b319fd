"""Inspections of the cluster during a run: when, what the guards say, and destinations that are down."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kreassign.executor.events import (
    CallFailed,
    CancelIntended,
    CancelRequested,
    HealthObserved,
    HoldRequested,
    MovesCancelled,
    MovesObserved,
    MovesReplanned,
    MovesSubmitted,
    NewTarget,
    PlacementState,
    Refusal,
    ReleaseRequested,
    RunResumed,
    SubmissionIntended,
    ThrottleRequested,
    Unwritten,
    VerdictsRecorded,
)
from kreassign.executor.guards import (
    GuardName,
    Health,
    LogDirSpace,
    Reaction,
    Troubled,
    Unread,
    Verdict,
    guard_settings,
)
from kreassign.executor.state import WindDown
from kreassign.executor.state.admission import CHECK_EVERY_MS, FRESH_MS
from kreassign.executor.throttle_ledger import ConfigValue
from kreassign.model import ConfigResource
from kreassign.model.pace import Pace
from kreassign.model.run import LogDirTarget
from tests.executor.run_events import A0, A1, LIVE, MOVES, PREPARED, look, seen
from tests.executor.state.played import FOLLOWER_3, LEADER_0, MOVING, UNTOUCHED, Played, begun, guarded

WELL = Health(LIVE)
WITHOUT_2 = Health((0, 1, 3, 4))
ABSENT = Health((0, 1, 4))
BARRED = Health(LIVE, cordoned=(2, 3))
CORDONED = {GuardName.CORDONED: Reaction.HOLD}
LEADERLESS = Health(LIVE, offline=Troubled.of([A0], Troubled()))
OFFLINE = {GuardName.OFFLINE: Reaction.HOLD}
ODD = ConfigValue(LEADER_0, "5")


def watched(where: Any = UNTOUCHED, health: Health = WELL, **more: Any) -> Played:
    """A run with a guard and no throttle, whose moves were found so at 1 s, after its first inspection."""
    begin = begun(**{"throttle": None, "guards": CORDONED, **more})
    return Played(begin, look(1_000, where), HealthObserved(1_000, health))


def recorded(run: Played) -> Played:
    """Journal the verdicts of the guards, if there are new ones."""
    return run.go("") if run.decided.startswith("record") else run


@pytest.mark.parametrize(("run", "since_ms", "decided"), [
    (watched(UNTOUCHED, LEADERLESS, guards=OFFLINE).settle(), FRESH_MS, "check health"),
    (watched(UNTOUCHED, LEADERLESS, guards=OFFLINE).settle(), FRESH_MS - 1, "wait"),
    (watched(MOVING), CHECK_EVERY_MS, "check health"),
    (watched(MOVING), CHECK_EVERY_MS - 1, "wait"),
], ids=["before a start", "fresh", "in flight", "recent"])  # fmt: skip
def test_health_is_checked_every_half_minute_and_before_a_start(run: Played, since_ms: int, decided: str) -> None:
    assert run.copy().on(MovesObserved(1_000 + since_ms, ())).decided == decided


@pytest.mark.parametrize(("begin", "decided"), [
    ({}, "submit a-0 a-1"),
    ({"guards": {GuardName.DISK: Reaction.WARN}}, "check health"),
    ({"replans": True}, "check health"),
    ({"guards": {GuardName.DISK: Reaction.OFF}}, "submit a-0 a-1"),
])  # fmt: skip
def test_health_is_checked_where_a_guard_or_a_replan_depends_on_it(begin: dict[str, Any], decided: str) -> None:
    assert Played(begun(throttle=None, **begin), look(1_000, UNTOUCHED)).decided == decided


def test_health_is_checked_while_a_broker_or_the_throttle_is_waited_for() -> None:
    down = Played(*PREPARED[:3], replace(PREPARED[3], unwritten=(Unwritten(2, "it is down"),)))
    assert down.on(look(3_000, UNTOUCHED)).decided == "check health"
    unread = Played(*PREPARED, look(3_000, MOVING), RunResumed(5_000, LIVE))
    assert unread.decided == "read both lists"
    unread.on(CallFailed(5_000, "no answer"), CallFailed(65_000, "no answer"), look(66_000, MOVING))
    assert unread.decided == "check health"
    assert unread.on(HealthObserved(66_000, WELL)).decided == "read both lists"


def test_a_breach_holds_what_is_not_begun_until_it_is_over() -> None:
    run = watched(UNTOUCHED, BARRED).settle()
    assert run.decided == "wait"
    assert run.problems[0].startswith("cordoned: broker 2 shall get copies, but is in maintenance")
    again = run.copy().on(MovesObserved(40_000, ()), HealthObserved(40_000, BARRED))
    assert again.decided == "wait"
    over = run.on(MovesObserved(40_000, ()), HealthObserved(40_000, WELL))
    assert (over.decided, over.go("").decided) == ("record ", "wait")
    assert over.on(MovesObserved(41_000, ())).decided == "submit a-0 a-1"
    assert over.problems[0].startswith("cordoned (over, from 00:00:01 to 00:00:40 UTC): broker 2 shall get copies")


def test_unread_maintenance_holds_moves_that_a_cordon_did_not() -> None:
    unread = Health(LIVE, unread=(Unread(GuardName.CORDONED, "which brokers are in maintenance", "no answer"),))
    run = watched(UNTOUCHED, Health(LIVE, cordoned=(2,))).settle()
    assert run.view.why_held == "these guards hold it: cordoned"  # The other move is in flight.
    run.on(MovesObserved(40_000, ()), HealthObserved(40_000, unread))
    assert run.decided == "record cordoned"


def test_the_text_of_a_guard_says_how_much_it_holds_now() -> None:
    unread = Health(LIVE, unread=(Unread(GuardName.CORDONED, "which brokers are in maintenance", "no answer"),))
    closed = Health(LIVE, cordoned=(2,))
    run = watched(UNTOUCHED, closed).settle()
    for at_ms, health, seen_first, held in (
        (40_000, unread, "which brokers are in maintenance", "nothing new is started meanwhile"),
        (80_000, closed, "broker 2 shall get copies", "the others go on"),
    ):
        run.on(look(at_ms, MOVING), HealthObserved(at_ms, health)).settle()
        (told,) = (one for one in run.problems if one.startswith("cordoned:"))
        assert (seen_first in told, held in told) == (True, True), told


HOLD, WARN = (Verdict(GuardName.DISK, one, "full", "make room") for one in (Reaction.HOLD, Reaction.WARN))
BROKER = Verdict(GuardName.BROKER, Reaction.WARN, "gone", "start it")


@pytest.mark.parametrize(("reaction", "wind_down", "wants_rollback", "decided"), [
    (Reaction.WARN, None, False, "submit a-0 a-1"),
    (Reaction.HOLD, None, False, "wait"),
    (Reaction.CANCEL, WindDown.CANCEL, False, "observe a-0 a-1"),
    (Reaction.ROLLBACK, WindDown.CANCEL, True, "observe a-0 a-1"),
])  # fmt: skip
def test_a_guard_warns_holds_cancels_or_rolls_back(
    reaction: Reaction, wind_down: WindDown | None, wants_rollback: bool, decided: str
) -> None:
    run = watched(UNTOUCHED, LEADERLESS, guards=OFFLINE)
    run.on(VerdictsRecorded(1_000, (BROKER, replace(HOLD, reaction=reaction))))
    assert run.decided == decided
    assert (run.view.control.wind_down, run.view.control.wants_rollback) == (wind_down, wants_rollback)
    if wind_down is not None:
        # What was asked for once stays so.
        run.on(look(2_000, UNTOUCHED))
        assert (run.view.control.wind_down, run.view.control.wants_rollback) == (wind_down, wants_rollback)


def test_other_figures_of_the_same_guards_are_no_news() -> None:
    fill = {GuardName.BROKER: Reaction.WARN, GuardName.CORDONED: Reaction.WARN}
    run = watched(MOVING, Health(LIVE, cordoned=(2,)), guards=fill).settle()
    for at_ms, health, decided in (
        (40_000, Health(LIVE, cordoned=(3,)), "wait"),
        (80_000, Health((0, 1, 2, 3), cordoned=(2,)), "record broker cordoned"),
        (120_000, Health((0, 1, 2, 3)), "record broker"),
        (160_000, WELL, "record "),
    ):
        run.on(look(at_ms, MOVING), HealthObserved(at_ms, health))
        assert run.decided == decided
        run.settle()


def test_breaches_are_told_from_when_they_began_to_when_they_were_over() -> None:
    run = watched(MOVING, BARRED).on(VerdictsRecorded(5_000, (HOLD, BROKER)))
    run.on(look(40_000, MOVING), HealthObserved(40_000, BARRED), VerdictsRecorded(41_000, (BROKER,)))
    run.on(look(80_000, MOVING), HealthObserved(80_000, BARRED), VerdictsRecorded(81_000, (WARN, BROKER)))
    assert run.problems == (
        "disk (over, from 00:00:05 to 00:00:41 UTC): full", "broker: gone. start it", "disk: full. make room",
    )  # fmt: skip
    assert [one.partition(":")[0] for one in run.view.as_left.problems[1:]] == [
        "broker (as last checked, 00", "disk (as last checked, 00",
    ]  # fmt: skip
    assert run.view.as_left.problems[1] == "broker (as last checked, 00:01:20 UTC): gone"


SAID = (
    (GuardName.BROKER, "broker 4, which was there"),
    (GuardName.DISK, "/a of broker 2 has 249 B of 1 kB left"),
    (GuardName.DISK, "broker 2 has 0 B left above the reserve in its log directories, and 900 B are to come in"),
    (GuardName.DISK, "broker 3 has 399 B left above the reserve in its log directories, and 400 B are to come in"),
    (GuardName.CORDONED, "broker 2 shall get copies"),
    (GuardName.STALL, "a-0 has made no progress for 11 minutes: broker 2 has 100 B, 900 B left; in sync are [0, 1]"),
    (GuardName.STALL, "a-1 has made no progress for 11 minutes: broker 3 has 100 B, 400 B left; in sync are [1, 0]"),
)


def test_guards_judge_all_that_is_known_of_the_run() -> None:
    begin = begun(guards={one.guard: one.reaction for one in guard_settings()}, pace=Pace(disk_reserve=0.25))
    run = Played(begin).go("wait").on(look(5_000, MOVING, done=100))
    space = (LogDirSpace(2, "/a", 1_000, 249), LogDirSpace(3, "/a", 1_000, 649), LogDirSpace(4, "/a", 1_000, 0))
    found = Health((0, 1, 2, 3), log_dir_space=space, cordoned=(2, 4))
    run.on(MovesObserved(680_000, ()), HealthObserved(680_000, found)).go("wait")
    run.on(MovesObserved(720_000, ()), HealthObserved(720_000, found)).go("")
    for verdict, (guard, said) in zip(run.view.verdicts, SAID, strict=True):
        assert (verdict.guard, said in verdict.seen) == (guard, True)


def test_only_the_named_directories_are_judged() -> None:
    named = replace(MOVES[0], log_dirs=(LogDirTarget(2, "/b"),))
    space = (LogDirSpace(2, "/a", 1_000, 0), LogDirSpace(2, "/b", 9_000, 9_000))
    run = Played(begun(named, throttle=None, guards={GuardName.DISK: Reaction.HOLD}), look(1_000, UNTOUCHED, named))
    assert run.on(HealthObserved(1_000, replace(WELL, log_dir_space=space))).decided == "submit a-0"


def test_a_move_whose_copies_caught_up_does_not_stall() -> None:
    run = watched(MOVING, guards={GuardName.STALL: Reaction.WARN})
    run.on(MovesObserved(5_000, (replace(seen(MOVES[0], MOVING), isr=(0, 1, 2)),)))
    run.on(MovesObserved(700_000, ()), HealthObserved(700_000, WELL))
    assert run.decided == "record stall"
    assert [one.seen.split()[0] for one in run.go("").view.verdicts] == ["a-1"]


def test_a_move_that_was_refused_for_now_and_is_held_does_not_stall() -> None:
    run = watched(guards={GuardName.STALL: Reaction.HOLD})
    for_now = MovesSubmitted(1_000, (), deferred=(Refusal(A0, "not the controller"), Refusal(A1, "not the controller")))
    run.on(SubmissionIntended(1_000, (A0, A1)), for_now, HoldRequested(2_000, 1))
    for at_ms in range(60_000, 1_260_000, 60_000):
        recorded(run.on(look(at_ms, UNTOUCHED), HealthObserved(at_ms, WELL)))
    assert run.view.verdicts == ()
    run.on(ReleaseRequested(1_260_000, 2), look(1_260_000, UNTOUCHED), HealthObserved(1_260_000, WELL))
    assert run.decided == "submit a-0 a-1"


FOREIGN = replace(WELL, foreign_configs=(ODD,))


@pytest.mark.parametrize(("health", "hindrance"), [
    (WELL, None),
    (FOREIGN, f"somebody else changed its throttle: {ODD}"),
    (replace(WELL, unread_configs=(LEADER_0.resource,)),
     f"its throttle is checked before anything is started: {ODD}"),
], ids=["as it was set", "odd again", "unread"])  # fmt: skip
def test_a_doubt_lasts_until_the_setting_is_read_as_it_was_set(health: Health, hindrance: str | None) -> None:
    run = Played(guarded()).go("check health").on(HealthObserved(0, FOREIGN), CallFailed(0, "no answer"))
    run.on(look(11_000, UNTOUCHED), HealthObserved(11_000, health))
    assert run.view.hindrance(11_000) == hindrance


@pytest.mark.parametrize(("unread", "decided", "then"), [
    ((), "read follower 2, follower 3, both lists", "set follower 2, follower 3"),
    ((FOLLOWER_3.resource,), "read follower 2, both lists", "set follower 2"),
])  # fmt: skip
def test_brokers_that_are_back_are_throttled_once_they_can_be_read(
    unread: tuple[ConfigResource, ...], decided: str, then: str
) -> None:
    run = Played(begun(live_brokers=(0, 1))).go("check health")
    assert run.on(HealthObserved(0, replace(WELL, unread_configs=unread))).decided == decided
    assert run.go("set").decided == then
    # Where a guard has something to say, that is written down first.
    run = Played(begun(live_brokers=(0, 1), guards=CORDONED)).go("check health")
    assert run.on(HealthObserved(0, replace(BARRED, unread_configs=unread))).go("").decided == decided


def asked_in_vain() -> Played:
    """A guarded run with moves in flight for which a throttle was asked for, and could not be set yet."""
    run = Played(guarded()).go("wait").on(ThrottleRequested(5_000, 1, 5), CallFailed(5_000, "no answer"))
    return run.on(look(6_000, MOVING))


def test_a_cancelled_run_sets_its_throttle_to_its_end() -> None:
    run = asked_in_vain().go("check health")
    assert run.copy().on(HealthObserved(run.now, WELL)).decided == "check all rates, both lists"
    run.on(CancelRequested(run.now, 2, is_now=False), HealthObserved(run.now, WELL))
    assert run.decided == "check all rates, both lists"


AWAY = "its destination broker {} had been down for 60 s; plan it again"
HINT = ", or use `--replan` next time, which chooses other brokers"


def looked(run: Played, at_ms: int, health: Health, where: PlacementState = MOVING) -> Played:
    """The run after a poll and an inspection half a minute or more later."""
    return run.on(look(at_ms, where), HealthObserved(at_ms, health))


@pytest.mark.parametrize(("polls", "decided"), [
    ([(61_000, ABSENT)], "cancel a-0 a-1"),
    ([(60_999, ABSENT)], "wait"),
    ([(61_000, Health((0, 1, 2, 4)))], "cancel a-1"),
    ([(40_000, WELL), (80_000, ABSENT)], "wait"),
    ([(40_000, WELL), (80_000, ABSENT), (140_000, ABSENT)], "cancel a-0 a-1"),
    ([(61_000, Health((0, 1, 2, 3)))], "wait"),
])  # fmt: skip
def test_moves_to_brokers_that_stay_down_for_a_minute_are_cancelled(
    polls: list[tuple[int, Health]], decided: str
) -> None:
    run = watched(MOVING, ABSENT)
    for at_ms, health in polls:
        looked(run, at_ms, health)
    assert run.decided == decided


def test_a_move_in_flight_to_a_lost_broker_fails_once_it_is_cancelled() -> None:
    run = looked(watched(MOVING, WITHOUT_2), 61_000, WITHOUT_2).on(CancelIntended(61_000, (A0,)))
    assert run.moves == "cancelling moving"
    run.on(MovesCancelled(61_000, (A0,)), look(62_000, UNTOUCHED, MOVES[0]))
    assert (run.moves, run.view.records[A0].problem) == ("failed moving", AWAY.format(2) + HINT)


@pytest.mark.parametrize("health", [WITHOUT_2, replace(WITHOUT_2, cordoned=(3,))], ids=["no news", "news"])
def test_a_cancellation_that_is_due_follows_the_check(health: Health) -> None:
    run = looked(watched(MOVING, WITHOUT_2), 61_000, WITHOUT_2).on(CancelIntended(61_000, (A0,)))
    run = recorded(looked(run.on(MovesCancelled(61_000, ())), 100_000, health))
    assert run.decided == "cancel a-0"


def test_a_move_that_waits_for_a_lost_broker_fails_at_once() -> None:
    run = Played(begun(throttle=None, guards=CORDONED), HoldRequested(0, 1), look(1_000, UNTOUCHED))
    run.on(HealthObserved(1_000, WITHOUT_2), ReleaseRequested(2_000, 2))
    looked(run, 61_000, WITHOUT_2, UNTOUCHED)
    assert (run.decided, run.moves) == ("submit a-1", "failed planned")
    assert (run.view.records[A0].problem, run.view.records[A0].ended_ms) == (AWAY.format(2) + HINT, 61_000)


def test_a_move_that_was_just_sent_is_not_given_up() -> None:
    run = watched(UNTOUCHED).on(SubmissionIntended(1_000, (A0, A1)), MovesSubmitted(1_000, (), unknown=(A0, A1)))
    unread = (Refusal(A0, "no"), Refusal(A1, "no"))
    run.on(MovesObserved(31_000, (), unread), HealthObserved(31_000, ABSENT))
    looked(run, 91_000, ABSENT, PlacementState.SETTLING)
    assert (run.decided, run.moves) == ("wait", "sent sent")


@pytest.mark.parametrize("health", [replace(WELL, cordoned=(2, 3)), replace(WELL, refused=(2, 3))])
def test_a_move_without_an_answer_is_sent_again_to_a_closed_broker(health: Health) -> None:
    """It may be in progress, and Kafka's answer decides about it."""
    sent = SubmissionIntended(1_000, (A0, A1)), MovesSubmitted(1_000, (), unknown=(A0, A1))
    run = watched(UNTOUCHED).on(*sent).on(MovesObserved(40_000, ()), HealthObserved(40_000, health))
    recorded(run).on(*(replace(event, at_ms=40_000) for event in sent))
    assert run.on(look(45_000, UNTOUCHED)).decided == "submit a-0 a-1"


def test_moves_that_are_planned_again_are_given_up_only_in_a_cancelled_run() -> None:
    run = looked(watched(MOVING, WITHOUT_2, replans=True), 61_000, WITHOUT_2)
    assert (run.decided, run.view.records[A0].is_given_up) == ("replan a-0 without 2", False)
    run.on(CallFailed(61_000, "no answer"), CancelRequested(62_000, 1, is_now=False))
    looked(run, 95_000, WITHOUT_2)
    assert (run.decided, run.view.records[A0].given_up) == ("observe a-1 a-0", AWAY.format(2))


def test_a_failed_replan_is_over_when_no_broker_is_lost() -> None:
    failed = "moves whose destination is lost could not be planned again yet: no answer"
    run = looked(watched(MOVING, WITHOUT_2, replans=True), 61_000, WITHOUT_2).on(CallFailed(61_000, "no answer"))
    assert looked(run, 91_000, WITHOUT_2).on(CallFailed(91_000, "no answer")).problems == (failed,)
    assert looked(run, 121_000, WELL).problems == (f"over, from 00:01:01 to 00:02:01 UTC: {failed}",)


@pytest.mark.parametrize(("health", "decided"), [(WITHOUT_2, "check health without 2"), (WELL, "check health")])
def test_replaced_brokers_are_still_watched(health: Health, decided: str) -> None:
    run = Played(begun(throttle=None, replans=True), HoldRequested(0, 1), look(1_000, UNTOUCHED))
    looked(run.on(HealthObserved(1_000, WITHOUT_2)), 61_000, WITHOUT_2, UNTOUCHED)
    assert run.decided == "replan a-0 without 2"
    run.on(MovesReplanned(61_000, (2,), (NewTarget(A0, (2, 1), (4, 1)),)), look(62_000, UNTOUCHED))
    looked(run, 92_000, health, UNTOUCHED)
    assert run.on(look(123_000, UNTOUCHED)).decided == decided
