"""The beginning of a run and of a resumed one: which settings are read and set before anything moves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kreassign.executor.client_guard import ClientAnswer, ClientGuard, Feeling
from kreassign.executor.events import (
    CallFailed,
    ConfigsRead,
    Event,
    HealthObserved,
    HoldRequested,
    PlacementState,
    RunResumed,
    RunStarted,
    ThrottleChecked,
    ThrottleRequested,
    ThrottleRestored,
    ThrottleSet,
    TimePassed,
    Verified,
)
from kreassign.executor.guards import GuardName, Health, Reaction
from kreassign.executor.state.preparing import CONFIG_PATIENCE_MS
from kreassign.executor.state.setting import PROPAGATION_MS
from kreassign.executor.state.steps import move_steps
from kreassign.executor.throttle_ledger import ConfigKey, ConfigValue
from kreassign.model import ConfigResource
from kreassign.model.pace import Pace
from kreassign.model.run import LogDirTarget, Operator
from kreassign.model.throttle import LEADER_THROTTLED_RATE, ThrottleRates
from tests.executor.run_events import (
    BEFORE,
    ELECTED,
    LISTED,
    LIVE,
    MOVES,
    PREPARED,
    RATE,
    RATES,
    SUBMITTED,
    look,
    started,
    with_before,
    with_our_values,
)
from tests.executor.state.played import LEADER_0, LEADER_1, MOVING, UNTOUCHED, Played, begun, guarded

ANN, BOB = Operator("ann", "host"), Operator("bob", "host")
ALL = "all rates, both lists"
SPENT = "the throttle could not be set, so nothing more was started"
LEADER_4 = ConfigKey(ConfigResource.broker(4), LEADER_THROTTLED_RATE)


def test_a_run_begins_with_all_that_it_was_given() -> None:
    two, pace = replace(MOVES[0], target=(2, 3)), Pace(is_stepwise=True)
    begin = replace(started(two, MOVES[1]), at_ms=7, plan_id="plan-1", operator=ANN, pace=pace)
    view = Played(begin).view
    assert (view.run_id, view.identity.cluster_id, view.identity.plan_id, view.identity.started_ms) == (
        "run-1",
        "cluster-1",
        "plan-1",
        7,
    )
    assert (view.identity.operators, view.control.rates, view.control.pace) == ((ANN,), ThrottleRates(RATE), pace)
    assert [record.steps for record in view.records.values()] == [move_steps(two), move_steps(MOVES[1])]
    assert [record.steps for record in Played(started(two)).view.records.values()] == [()]


WITHIN = replace(MOVES[1], log_dirs=(LogDirTarget(1, "/b", "/a"), LogDirTarget(0, "/b", "/a")))


@pytest.mark.parametrize(("begin", "decided"), [
    (begun(), f"read {ALL}"),
    (begun(throttle=None), "observe a-0 a-1"),
    # Settings of brokers that are down are not read, and those that others left behind are read once.
    (begun(live_brokers=(0, 1, 2)), "read leader 0, leader 1, follower 2, both lists"),
    (begun(MOVES[0], WITHIN, live_brokers=(0, 1, 2)),
     "read leader 0, leader 1, follower 2, replica 0, replica 1, both lists"),
    (begun(MOVES[0], WITHIN, live_brokers=(1, 2)), "read leader 1, follower 2, replica 1, both lists"),
    (begun(adopted=(ConfigValue(LEADER_4, "5"), ConfigValue(LEADER_0, "6"))), f"read leader 4, {ALL}"),
    (begun(throttle=None, adopted=(ConfigValue(LEADER_4, "5"),)), f"read leader 4, {ALL}"),
])  # fmt: skip
def test_settings_that_the_run_will_change_are_read_first(begin: RunStarted, decided: str) -> None:
    assert Played(begin).decided == decided


def found(leader_0: str | None) -> tuple[ConfigValue, ...]:
    """Settings as read when broker 0 has this rate."""
    return tuple(replace(one, value=leader_0) if one.key == LEADER_0 else one for one in BEFORE)


def left(key: ConfigKey, value: str | None, original: str | None) -> dict[str, Any]:
    """A run that adopts this setting, which others left with a value, and gives it the original one at its end."""
    return {"adopted": (ConfigValue(key, value),), "originals": (ConfigValue(key, original),)}


ONLY_4 = ThrottleRates(RATE).changed(None, (4,))


@pytest.mark.parametrize(("begin", "values", "decided"), [
    ({}, BEFORE, "set all rates"),
    # One that others had set so before is set, too: only what the run has set is watched.
    ({}, found(str(RATE)), f"set leader 0={RATE}, leader 1, follower 2, follower 3"),
    # What others left behind stays as it is where the run has no other rate for it, and is restored at the end.
    ({"adopted": (ConfigValue(LEADER_0, "6"),)}, found("6"), f"set leader 0={RATE}, leader 1, follower 2, follower 3"),
    (left(LEADER_4, "6", "70") | {"rates": ONLY_4}, (*BEFORE, ConfigValue(LEADER_4, "6")),
     "set leader 4=6, all rates"),
    (left(LEADER_4, None, "70") | {"rates": ONLY_4}, (*BEFORE, ConfigValue(LEADER_4, None)),
     "set leader 4=None, all rates"),
    (left(LEADER_4, "6", "70") | {"rates": ONLY_4}, BEFORE, "set all rates"),
    (left(LEADER_0, "6", str(RATE)), found("6"), "set leader 0=6, leader 1, follower 2, follower 3"),
    # Any other value is of somebody who has set it since.
    (left(LEADER_4, "6", None) | {"rates": ONLY_4}, (*BEFORE, ConfigValue(LEADER_4, "9")), "set all rates"),
])  # fmt: skip
def test_a_run_sets_each_rate_that_its_throttle_needs(
    begin: dict[str, Any], values: tuple[ConfigValue, ...], decided: str
) -> None:
    assert Played(begun(**begin), ConfigsRead(1_000, values)).decided == decided


def test_the_original_values_replace_those_that_others_had_set() -> None:
    originals = (ConfigValue(LEADER_0, "70"), ConfigValue(LEADER_1, None))
    run = Played(begun(originals=originals)).go("observe")
    assert [run.view.pending_restores[key].before for key in (LEADER_0, LEADER_1)] == ["70", None]


def test_brokers_that_are_down_after_all_get_their_rate_once_they_are_back() -> None:
    run = Played(begun(), ConfigsRead(0, tuple(one for one in BEFORE if one.key.broker != 3), down=(3,)))
    assert run.decided == "set leader 0, leader 1, follower 2"
    assert run.go("check health").go("read").decided == "read follower 3, both lists"
    assert run.go("set").decided == "set follower 3"


SILENT = CallFailed(1_000, "no answer")
UNREAD = ConfigsRead(1_000, BEFORE, ("no answer",))
LATE_MS = 1_000 + CONFIG_PATIENCE_MS


@pytest.mark.parametrize("event", [SILENT, UNREAD], ids=["silent", "unread"])
def test_settings_are_asked_for_again_for_a_minute(event: CallFailed | ConfigsRead) -> None:
    run = Played(started(), event)
    assert (run.decided, run.copy().on(TimePassed(2_000)).decided) == ("wait", f"read {ALL}")
    assert run.copy().on(replace(event, at_ms=LATE_MS - 1)).decided == "wait"
    run.on(replace(event, at_ms=LATE_MS))
    assert (run.step, run.decided, run.view.ended_ms) == ("Failed", "", LATE_MS)
    assert run.problems == ("no answer", SPENT)


def test_a_partly_set_throttle_is_restored_when_reading_fails() -> None:
    run = Played(*PREPARED[:3], RunResumed(1_000, LIVE), SILENT, replace(SILENT, at_ms=LATE_MS))
    assert (run.decided, run.problems) == ("read all rates", ("no answer", SPENT))


def test_copies_in_flight_are_watched_though_settings_cannot_be_read() -> None:
    run = Played(*PREPARED, look(500, MOVING), RunResumed(1_000, LIVE), SILENT, replace(SILENT, at_ms=LATE_MS))
    assert (run.decided, run.problems) == ("observe a-0 a-1", ("no answer",))
    assert run.go("check health").go("observe").problems == ("over, from 00:00:01 to 00:01:01 UTC: no answer",)


TOPIC = ConfigResource.topic("a")
ASKED = ThrottleRequested(10_000, 1, 5)
NO = ThrottleSet(3_000, ("no",), failed=(TOPIC,))


@pytest.mark.parametrize(("begin", "event", "decided", "problems"), [
    (PREPARED[:3], ThrottleSet(3_000), "observe a-0 a-1", ()),
    (PREPARED[:3], replace(NO, may_pass=True), "observe a-0 a-1", ()),
    (PREPARED[:3], NO, "read all rates", ("no", SPENT)),
    (PREPARED[:3], replace(NO, failed=(), may_pass=True), "read all rates", ("no", SPENT)),
    ((*LISTED[:-1], replace(NO, problems=("before",)), ASKED), NO, f"read {ALL}", ("no", SPENT)),
    ((*SUBMITTED, RunResumed(4_500, LIVE)), NO, "observe a-0 a-1", ("no",)),
])  # fmt: skip
def test_a_throttle_that_cannot_be_set_ends_a_run_with_nothing_in_flight(
    begin: tuple[Event, ...], event: ThrottleSet, decided: str, problems: tuple[str, ...]
) -> None:
    run = Played(*begin, event)
    assert (run.decided, run.problems) == (decided, problems)


def test_a_throttle_that_was_set_in_part_is_restored_and_the_run_fails() -> None:
    run = Played(*PREPARED[:3], NO, ConfigsRead(3_000, (*with_our_values(RATES[:1]), *with_before(RATES[1:]))))
    assert run.decided == "restore leader 0"
    assert (run.go("").go("").step, run.pending) == ("Failed", "")


def test_each_operator_of_a_run_is_listed_once() -> None:
    run = Played(replace(started(), operator=ANN))
    for operator in (BOB, ANN, None):
        run.on(RunResumed(1_000, LIVE, operator))
    assert run.view.identity.operators == (ANN, BOB)


@pytest.mark.parametrize("begin", [begun(throttle=None, replans=True), begun(throttle=None)])
def test_a_run_that_was_to_plan_moves_again_does_so_from_then_on(begin: RunStarted) -> None:
    run = Played(begin, RunResumed(500, LIVE, replans=not begin.replans), RunResumed(600, LIVE))
    assert run.on(look(1_000, UNTOUCHED)).decided == "check health"


@pytest.mark.parametrize(("resumed_with_ms", "decided"), [(20_000, "cancel a-0"), (None, "wait")])
def test_a_resumed_run_goes_on_without_brokers_after_the_time_it_is_given(
    resumed_with_ms: int | None, decided: str
) -> None:
    run = Played(begun(throttle=None, guards={GuardName.DISK: Reaction.WARN}, lost_after_ms=60_000))
    run.on(RunResumed(500, LIVE, lost_after_ms=resumed_with_ms)).go("wait")
    for at_ms in (31_000, 61_500):
        run.on(look(at_ms, MOVING), HealthObserved(at_ms, Health((0, 1, 3, 4))))
    assert run.decided == decided


def test_a_resumed_run_with_a_guard_of_clients_waits_while_they_suffer() -> None:
    run = Played(begun(throttle=None), RunResumed(500, LIVE, clients=ClientGuard(command=("slow",)))).go("check health")
    slow = ClientAnswer("slow", Feeling.BAD, "it is slow")
    run.on(HealthObserved(1_000, Health(LIVE, clients=(slow,))))
    assert run.decided == "record clients"
    assert (run.settle().decided, run.moves) == ("wait", "planned planned")


def test_brokers_that_live_when_a_run_is_resumed_are_throttled() -> None:
    run = Played(begun(live_brokers=(0, 1, 2)), RunResumed(500, LIVE))
    assert run.decided == f"read {ALL}"


def test_resume_restarts_every_timeout_of_a_run() -> None:
    without_2 = Health((0, 1, 3, 4))
    run = Played(begun(guards={GuardName.STALL: Reaction.WARN})).go("check health").on(HealthObserved(0, without_2))
    run.go("wait").on(HoldRequested(1_000, 1), RunResumed(70_000, LIVE))
    assert (run.view.control.is_held, run.decided) == (
        False,
        "set followers of a=1:3, leaders of a=1:0,1:1, all rates",
    )
    run.go("observe").on(look(71_000, MOVING))
    assert (run.decided, run.on(HealthObserved(71_000, without_2)).decided) == ("check health", "set both lists")
    unset = Played(*LISTED[:-1], NO, RunResumed(70_000, LIVE)).go("observe")
    unset.on(look(70_000, PlacementState.DIVERGED, MOVES[0]), replace(NO, at_ms=70_000))
    assert unset.decided == "wait"


def test_what_an_earlier_end_left_or_found_is_looked_at_again() -> None:
    silent = ConfigsRead(9_000, (), ("broker 0 could not be read",))
    written = (ConfigsRead(9_000, with_our_values()), ThrottleRestored(9_000, ("said no",)))
    run = Played(*ELECTED, *written, silent, replace(silent, at_ms=90_000), Verified(90_000, ("a-0 is elsewhere",)))
    run.on(Verified(120_000, ("a-0 is elsewhere",)))
    left = "when the run was left, since 00:00:09 UTC: said no"
    assert (run.step, run.problems, run.view.findings) == ("Failed", (*silent.problems, left), ("a-0 is elsewhere",))
    run.on(RunResumed(130_000, LIVE))
    assert (run.decided, run.view.findings) == ("elect a-0", ())
    assert run.problems == ("over, from 00:00:09 to 00:02:10 UTC: said no",)


RESUMED = RunResumed(10_000, LIVE)
REMOVED = ConfigValue(LEADER_0, None)
ODD = ThrottleChecked(10_000, (REMOVED,))
CERTAIN = replace(ODD, at_ms=10_000 + PROPAGATION_MS)
TOLD = f"someone else had changed a throttle when {{}}: {REMOVED.then}, and the run had set it to '{RATE}'"
UNANSWERED = ThrottleChecked(10_000, unread=(TOPIC, LEADER_1.resource))
IN_FLIGHT, WAITING = Played(guarded()).go("wait"), Played(guarded()).go("submit")


@pytest.mark.parametrize(("events", "decided", "problems"), [
    ([RESUMED], f"check {ALL}", ()),
    ([RESUMED, ThrottleChecked(10_000)], f"set {ALL}", ()),
    ([RESUMED, ODD], "wait", ()),
    ([RESUMED, ODD, TimePassed(11_000), ThrottleChecked(11_000)], f"set {ALL}", ()),
    ([RESUMED, ODD, CERTAIN], "set leader 1, follower 2, follower 3, both lists",
     (TOLD.format("the run was resumed"),)),
    ([RESUMED, ODD, ThrottleRequested(10_500, 1, RATE), CERTAIN], f"set {ALL}",
     (TOLD.format("a throttle was asked for"),)),
    ([RESUMED, UNANSWERED, TimePassed(11_000)], f"check {ALL}", ()),
    ([RESUMED, UNANSWERED, replace(UNANSWERED, at_ms=9_999 + CONFIG_PATIENCE_MS)], "wait", ()),
    ([RESUMED, UNANSWERED, replace(UNANSWERED, at_ms=10_000 + CONFIG_PATIENCE_MS)], "observe a-0 a-1",
     ("topic a could not be read", "broker 1 could not be read")),
    ([RESUMED, replace(SILENT, at_ms=10_000)], "wait", ()),
    ([RESUMED, replace(SILENT, at_ms=10_000), replace(SILENT, at_ms=10_000 + CONFIG_PATIENCE_MS)], "observe a-0 a-1",
     ("no answer",)),
    ([RESUMED, ThrottleChecked(10_000, gone=(TOPIC,))], "read both lists", ()),
    ([replace(RESUMED, live_brokers=(0, 1)), ThrottleChecked(10_000)], "set leader 0, leader 1, both lists", ()),
    # Whoever asks for a throttle meanwhile does not keep the moves waiting for an answer.
    ([ASKED], f"check {ALL}", ()),
    ([ASKED, ThrottleChecked(10_000)], f"set all rates=5|{RATE}", ()),
    ([replace(ASKED, rate_bytes_per_s=RATE), ThrottleChecked(10_000)], "set all rates", ()),
    ([ASKED, replace(SILENT, at_ms=10_000)], "observe a-0 a-1", ("no answer",)),
    ([ASKED, ODD, CERTAIN], f"set all rates=5|{RATE}", (TOLD.format("a throttle was asked for"),)),
])  # fmt: skip
def test_a_throttle_that_was_left_is_read_before_it_is_set(
    events: list[Event], decided: str, problems: tuple[str, ...]
) -> None:
    run = IN_FLIGHT.copy().on(*events)
    assert (run.decided, run.problems) == (decided, problems)
    assert run.view.was_throttle_kept == (not any("someone else" in problem for problem in problems))


def test_a_throttle_that_cannot_be_read_is_told_until_it_can_be() -> None:
    run = IN_FLIGHT.copy().on(ASKED, replace(SILENT, at_ms=10_000)).go("check health").go("check")
    run.on(ThrottleChecked(20_000))
    assert run.problems == ("over, from 00:00:10 to 00:00:20 UTC: no answer",)


@pytest.mark.parametrize(("run", "decided"), [
    (Played(replace(guarded(), guards=())).go("wait"), f"set {ALL}"),
    (Played(guarded(throttle=None)).go("wait"), "observe a-0 a-1"),
], ids=["no guard", "no throttle"])  # fmt: skip
def test_an_unguarded_run_resumes_without_reading_its_throttle(run: Played, decided: str) -> None:
    assert run.copy().on(RESUMED).decided == decided


FIRST = Played(guarded()).go("set").intend()
FASTER = WAITING.copy().on(ThrottleRequested(0, 1, 5)).go("set").intend()
OFF_AND_ON = WAITING.copy().on(ThrottleRequested(0, 1, None)).go("observe").on(ThrottleRequested(0, 2, 5))


@pytest.mark.parametrize(("run", "differ", "decided"), [
    # It may be there or not.
    (FIRST, (REMOVED,), "read both lists"),
    (FIRST, (), "read both lists"),
    (FIRST, (ConfigValue(LEADER_0, "7"),), "wait"),
    # One that was in force may not be as before the run, unless nothing of ours was there.
    (FASTER, (REMOVED,), "wait"),
    (OFF_AND_ON.go("set").intend(), (REMOVED,),
     "set leader 0=5, leader 1=5|7000, follower 2=5, follower 3=5, both lists"),
], ids=["old", "ours", "other", "was in force", "was taken off"])  # fmt: skip
def test_a_setting_that_was_only_intended_may_be_there_or_not(
    run: Played, differ: tuple[ConfigValue, ...], decided: str
) -> None:
    assert run.copy().on(RESUMED, ThrottleChecked(10_000, differ)).decided == decided


@pytest.mark.parametrize(("event", "decided"), [
    (ThrottleRequested(5_000, 1, 5), f"set all rates=5|{RATE}"),
    (ThrottleRequested(5_000, 1, 5, (2,)), f"set follower 2=5|{RATE}"),
    (ThrottleRequested(5_000, 1, RATE), "observe a-0 a-1"),
    (ThrottleRequested(5_000, 1, None),
     f"set leader 0=None|{RATE}, leader 1=7000|{RATE}, follower 2=None|{RATE}, follower 3=None|{RATE}"),
])  # fmt: skip
def test_a_requested_throttle_is_set_where_it_differs(event: Event, decided: str) -> None:
    assert Played(*SUBMITTED, event).decided == decided


def test_a_rate_that_was_taken_away_is_written_back_like_any_other() -> None:
    run = Played(*SUBMITTED, ThrottleRequested(5_000, 1, None)).go("observe").go("restore", PlacementState.ARRIVED)
    assert run.decided == f"restore {ALL}"


def test_a_setting_in_doubt_is_set_only_on_request() -> None:
    odd = Health((0, 1, 2, 3), foreign_configs=(ConfigValue(LEADER_0, "7"),))
    run = Played(guarded(live_brokers=(0, 1, 2, 4))).go("check health").on(HealthObserved(0, odd))
    # Broker 3 is back, and that others have changed broker 0 is still to be seen.
    assert run.go("set").decided == "set follower 3"
    run.go("observe").on(ThrottleRequested(1_000, 1, 5)).go("set")
    assert run.decided == f"set all rates=5|{RATE}"
