"""The end of a run: elections in steps, settings that are restored or cannot be, and a result that is verified."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kreassign.executor.events import (
    CallFailed,
    CancelRequested,
    ConfigsRead,
    Event,
    HoldRequested,
    LeadersElected,
    MovesObserved,
    PlacementState,
    PlannedMove,
    Refusal,
    RunResumed,
    StopRequested,
    ThrottleRequested,
    ThrottleRestored,
    TimePassed,
    Unwritten,
    Verified,
)
from kreassign.executor.guards import Reaction
from kreassign.executor.state.finishing import CALL_PATIENCE_MS, VERIFY_PATIENCE_MS
from kreassign.executor.state.setting import PROPAGATION_MS
from kreassign.executor.throttle_ledger import ConfigValue, FoundThrottles
from kreassign.model import TopicPartition
from kreassign.model.pace import Pace
from kreassign.model.run import Phase
from tests.executor.run_events import (
    A0,
    A1,
    ARRIVED,
    ELECTED,
    LISTS,
    LIVE,
    MOVES,
    OVERRIDES,
    PREPARED,
    RATE,
    RATES,
    RESTORED,
    SUBMITTED,
    look,
    seen,
    with_before,
    with_our_values,
)
from tests.executor.state.played import FOLLOWERS, LEADER_0, LEADER_1, UNTOUCHED, Played, begun, guarded

AT_PLACE, GONE = PlacementState.ARRIVED, PlacementState.DELETED
ALL = "all rates, both lists"
WRITTEN_BACK: tuple[Event, ...] = (*ELECTED, ConfigsRead(9_000, with_our_values()))
SILENT = CallFailed(8_000, "no answer")


def test_leaders_other_than_the_preferred_are_changed_in_steps() -> None:
    moves = tuple(PlannedMove(TopicPartition("a", n), (0, 1), (1, 0), 0, topic_id=f"id {n}") for n in range(5))
    run = Played(begun(*moves, throttle=None, pace=Pace(elections_per_step=2)))
    led = [seen(moves[number], AT_PLACE, leader=leader) for number, leader in ((0, 0), (2, 1), (3, 0), (4, 0))]
    run.on(MovesObserved(1_000, (*led, seen(moves[1], GONE))), look(16_000, GONE, moves[1]))
    assert (run.decided, run.moves) == ("elect a-0 a-3 (id 3)", "complete failed complete complete complete")
    assert run.on(LeadersElected(17_000, ())).decided == "wait"
    assert run.on(TimePassed(18_000)).decided == "elect a-4 (id 4)"


REFUSED = LeadersElected(8_000, (), (Refusal(A0, "not in sync"), Refusal(A1, "no")))


@pytest.mark.parametrize(("event", "patience_ms", "problems"), [
    (REFUSED, 20_000, ("a-0 has a preferred leader that could not be elected: not in sync",
                       "a-1 has a preferred leader that could not be elected: no")),
    (SILENT, 60_000, ("preferred leaders could not be elected: no answer",)),
])  # fmt: skip
def test_an_election_is_asked_for_again_before_its_failure_is_told(
    event: LeadersElected | CallFailed, patience_ms: int, problems: tuple[str, ...]
) -> None:
    run = Played(*ARRIVED, event)
    assert (run.decided, run.problems) == ("wait", ())
    assert run.on(TimePassed(9_000)).decided.startswith("elect a-0")
    run.on(replace(event, at_ms=event.at_ms + patience_ms))
    assert (run.decided, run.problems) == (f"read {ALL}", problems)


def test_each_refused_election_and_each_silence_is_tried_again() -> None:
    moves = tuple(PlannedMove(TopicPartition("a", n), (0, 1), (1, 0), 0, topic_id=f"id {n}") for n in range(2))
    never, late = (Refusal(move.topic_partition, f"no {move.topic_partition}") for move in moves)
    run = Played(begun(*moves, throttle=None, pace=Pace(elections_per_step=1)))
    run.on(MovesObserved(1_000, tuple(seen(move, AT_PLACE, leader=0) for move in moves)))
    run.on(LeadersElected(2_000, (), (never,)), CallFailed(90_000, "no answer"), LeadersElected(91_000, (), (late,)))
    there = "2 partitions (a-0, a-1) each was moved by someone else, as the plan does"
    assert (run.decided, run.problems) == ("wait", (there,))
    run.on(LeadersElected(92_000, (), (never,)), LeadersElected(93_000, (late.topic_partition,)))
    assert run.problems == (there, "a-0 has a preferred leader that could not be elected: no a-0")


@pytest.mark.parametrize("refused", [REFUSED, SILENT])
def test_a_run_whose_leaders_could_not_be_elected_can_be_resumed(refused: LeadersElected | CallFailed) -> None:
    ended = (*RESTORED[len(ELECTED) :], Verified(12_000, FOUND), LATE)
    late = (replace(one, at_ms=one.at_ms + 100_000) for one in (refused, *ended))
    run = Played(*ARRIVED, refused, *late)
    assert (run.step, run.view.can_be_resumed) == ("Failed", True)
    run.on(RunResumed(290_000, LIVE))
    assert run.decided.startswith("elect a-0")
    run.on(LeadersElected(291_000, (A0,)), ConfigsRead(291_000, ()), Verified(292_000, ()))
    assert (run.step, run.view.findings, run.view.can_be_resumed) == ("Done", (), False)


def read(*values: ConfigValue, **more: Any) -> ConfigsRead:
    return ConfigsRead(9_000, values, **more)


OURS = with_our_values()


@pytest.mark.parametrize(("event", "decided"), [
    (read(*OURS), f"restore {ALL}"),
    (read(*OURS[:2]), "restore leader 0, leader 1"),
    (read(*OURS[:4], ConfigValue(FOLLOWERS, "0:2,1:3,7:1"), OURS[5]), f"restore {ALL}; followers of a is shared"),
    (read(OURS[0], down=(3,)), "restore leader 0, follower 3"),
    (read(*OURS[:4], *with_before(LISTS)), "restore all rates"),
    (read(), "wait"),
], ids=["all", "what was read", "shared", "down", "doubtful", "nothing"])  # fmt: skip
def test_values_of_the_run_are_written_back(event: Event, decided: str) -> None:
    assert Played(*ELECTED, event).decided == decided


def twice(*values: ConfigValue, begin: tuple[Event, ...] = ELECTED) -> tuple[str, Played]:
    """The decision after a reading, and the run after a second reading that is not stale."""
    run = Played(*begin, read(*values))
    return run.decided, run.copy().on(replace(read(*values), at_ms=9_000 + PROPAGATION_MS))


CHANGED = "someone else changed a throttle during the run: {}, and the run had set it to '{}'"
LEFT = "someone else changed a throttle during the run, and it was left so: {}"


@pytest.mark.parametrize(("odd", "decided", "told"), [
    (ConfigValue(LEADER_0, None), "restore leader 0", CHANGED),
    (ConfigValue(LEADER_1, "7000"), "restore leader 1", CHANGED),
    (ConfigValue(FOLLOWERS, "1:3"), "restore followers of a", CHANGED),
    (ConfigValue(LEADER_0, "5"), "wait", LEFT),
])  # fmt: skip
def test_a_value_of_others_is_read_twice_and_told(odd: ConfigValue, decided: str, told: str) -> None:
    first, run = twice(odd)
    assert (first, run.decided) == ("wait", decided)
    ours = run.view.overrides[odd.key].value
    assert run.problems == (told.format(odd.then, ours),)
    assert (odd.key in run.view.pending_restores) == (told == CHANGED)
    assert not run.view.was_throttle_kept


def test_a_restored_value_is_not_taken_for_a_foreign_change() -> None:
    run = Played(*WRITTEN_BACK, ThrottleRestored(10_000))
    assert run.on(ConfigsRead(11_000, with_before())).decided == f"verify a-0 a-1 with {ALL}"
    assert run.view.was_throttle_kept


def test_an_earlier_rate_of_the_run_counts_as_its_own() -> None:
    run = Played(*SUBMITTED)
    for rate in (5, RATE):
        run.on(ThrottleRequested(5_000, 1, rate)).go("observe")
    run.go("read", AT_PLACE)
    shown = ConfigsRead(6_000, (ConfigValue(LEADER_0, "5"),))
    assert run.on(shown).decided == "wait"
    assert run.on(replace(shown, at_ms=6_000 + PROPAGATION_MS)).decided == "restore leader 0"


def test_rates_that_others_had_before_stay_while_their_moves_go_on() -> None:
    originals = (ConfigValue(LEADER_0, "70"), ConfigValue(FOLLOWERS, None))
    run = Played(begun(found=FoundThrottles.ALONGSIDE, originals=originals)).go("wait").go("read", AT_PLACE)
    assert run.decided == f"read {ALL} and moves of others"
    run.on(ConfigsRead(run.now, with_our_values(), others_move=True))
    assert run.decided == "restore leader 1, follower 2, follower 3, both lists"
    told = f"moves of others went on, so that a throttle was left that they had before: {OURS[0].then}"
    assert (run.problems, run.view.left_to_others) == ((told,), {LEADER_0})
    assert run.go("verify").decided == "verify a-0 a-1 with leader 1, follower 2, follower 3, both lists"


DOWN_2 = "broker 2 was down: the controller took the values that it had before the run"
GONE_3 = f"{RATES[3].then}; the cluster did not know that broker any more, so nothing was restored there"


@pytest.mark.parametrize(("event", "decided", "problems"), [
    (ThrottleRestored(10_000), f"read {ALL}", ()),
    (ThrottleRestored(10_000, ("broker 1 said no",)), f"read {ALL}", ("broker 1 said no",)),
    (ThrottleRestored(10_000, by_controller=(2,), unregistered=(3,)), "read leader 0, leader 1, both lists",
     (DOWN_2, GONE_3)),
])  # fmt: skip
def test_after_writing_back_it_is_read_again(event: Event, decided: str, problems: tuple[str, ...]) -> None:
    run = Played(*WRITTEN_BACK, event)
    assert (run.decided, run.problems) == (decided, problems)
    # What cannot be read is not verified either.
    run.on(ConfigsRead(11_000, with_before()))
    assert run.decided == decided.replace("read", "verify a-0 a-1 with")


def test_the_word_of_the_controller_counts_for_brokers_that_are_down() -> None:
    run = Played(*PREPARED, StopRequested(2_000), ConfigsRead(2_000, with_our_values(RATES)))
    run.on(ThrottleRestored(3_000, ("no",), by_controller=LIVE))
    assert (run.decided, run.step, run.pending) == ("", "Paused", "")
    assert run.problems[-1] == "over, from 00:00:03 to 00:00:03 UTC: no"


def test_a_rate_as_before_the_run_is_restored_while_its_broker_is_down() -> None:
    as_needed = ConfigsRead(1_000, (ConfigValue(LEADER_0, str(RATE)), *with_before(RATES[1:]), *with_before(LISTS)))
    run = Played(begun(), as_needed).go("wait").go("read", AT_PLACE)
    assert run.pending == ALL
    run.on(ConfigsRead(run.now, with_our_values(OVERRIDES[1:]), down=(0,)))
    assert run.decided == "restore leader 1, follower 2, follower 3, both lists"
    assert run.pending == "leader 1, follower 2, follower 3, both lists"


def test_restore_reads_again_before_it_writes_again() -> None:
    run = Played(*WRITTEN_BACK, ThrottleRestored(10_000))
    run.on(ConfigsRead(11_000, (*with_our_values(OVERRIDES[:1]), *with_before(OVERRIDES[1:]))))
    assert (run.decided, run.pending) == ("wait", "leader 0")
    assert run.on(TimePassed(12_000)).decided == "read leader 0"
    assert run.on(ConfigsRead(12_000, with_our_values(OVERRIDES[:1]))).decided == "restore leader 0"


RESTORING = Played(*ELECTED)
CONFIRMING = Played(*WRITTEN_BACK, ThrottleRestored(9_500, (), (Unwritten(3, "it is down"),)))
UNREAD = ConfigsRead(8_000, (), ("no answer",))
DOWN_3 = "the throttle of broker 3 could not be written: it is down"


@pytest.mark.parametrize("event", [SILENT, UNREAD], ids=["silent", "unread"])
@pytest.mark.parametrize(("run", "problems"), [
    (RESTORING, ("no answer",)),
    (CONFIRMING, ("no answer", DOWN_3)),
], ids=["restoring", "confirming"])  # fmt: skip
def test_a_throttle_that_cannot_be_read_is_left_after_a_minute_and_told(
    event: CallFailed | ConfigsRead, run: Played, problems: tuple[str, ...]
) -> None:
    run = run.copy().on(replace(event, at_ms=10_000))
    assert (run.decided, run.on(TimePassed(11_000)).decided) == ("wait", f"read {ALL}")
    assert run.on(replace(event, at_ms=9_999 + CALL_PATIENCE_MS)).decided == "wait"
    run.on(replace(event, at_ms=10_000 + CALL_PATIENCE_MS))
    assert (run.decided, run.problems) == (f"verify a-0 a-1 with {ALL}", problems)
    run.on(Verified(80_000, ()))
    assert (run.view.phase, run.view.residue) == (Phase.FAILED, tuple(map(str, OVERRIDES)))


def test_patience_with_a_throttle_begins_with_its_first_failure() -> None:
    late = replace(UNREAD, at_ms=10_000 + CALL_PATIENCE_MS)
    written = (ConfigsRead(20_000, with_our_values()), ThrottleRestored(30_000))
    run = Played(*ELECTED, replace(SILENT, at_ms=10_000), *written, late)
    assert (run.decided, run.problems) == (f"verify a-0 a-1 with {ALL}", ("no answer",))
    failing = Played(*PREPARED[:3], replace(PREPARED[3], problems=("no",)), replace(SILENT, at_ms=10_000), late)
    assert (failing.step, failing.view.ended_ms) == ("Failed", late.at_ms)


def test_a_throttle_that_was_left_may_be_restored_by_hand() -> None:
    run = Played(guarded()).go("wait").go("read", AT_PLACE)
    run.on(replace(SILENT, at_ms=10_000), replace(SILENT, at_ms=10_000 + CALL_PATIENCE_MS)).go("")
    assert (run.view.phase, run.view.can_be_resumed) == (Phase.FAILED, True)
    run.on(RunResumed(90_000, LIVE))
    assert (run.decided, run.problems) == (f"read {ALL}", ())
    assert run.on(ConfigsRead(90_000, with_before())).decided == f"verify a-0 a-1 with {ALL}"


@pytest.mark.parametrize(("begin", "step", "ended_ms"), [
    ((*PREPARED, StopRequested(2_000)), "Paused", None),
    ((*PREPARED[:3], replace(PREPARED[3], problems=("no",))), "Failed", 12_000),
    (ELECTED, "Verifying", None),
])  # fmt: skip
def test_once_the_throttle_is_restored_the_run_pauses_fails_or_is_verified(
    begin: tuple[Event, ...], step: str, ended_ms: int | None
) -> None:
    run = Played(*begin).go("restore").on(ThrottleRestored(11_000, ("said no",)))
    assert "said no" in run.problems
    run.on(ConfigsRead(12_000, with_before()))
    assert (run.step, run.view.ended_ms, run.pending) == (step, ended_ms, "")
    assert "over, from 00:00:11 to 00:00:12 UTC: said no" in run.problems


FOUND = ("a-0 is elsewhere",)
UNVERIFIED = "the result could not be verified: no answer"
LATE, NO_ANSWER = Verified(12_000 + VERIFY_PATIENCE_MS, FOUND), CallFailed(12_000 + CALL_PATIENCE_MS, "no answer")


@pytest.mark.parametrize(("events", "step", "findings"), [
    ([Verified(12_000, ())], "Done", ()),
    ([Verified(12_000, FOUND)], "Verifying", FOUND),
    ([Verified(12_000, FOUND), Verified(12_500, ())], "Done", ()),
    ([Verified(12_000, FOUND), replace(LATE, at_ms=LATE.at_ms - 1)], "Verifying", FOUND),
    ([Verified(12_000, FOUND), LATE], "Failed", FOUND),
    ([replace(NO_ANSWER, at_ms=12_000)], "Verifying", ()),
    ([replace(NO_ANSWER, at_ms=12_000), replace(NO_ANSWER, at_ms=NO_ANSWER.at_ms - 1)], "Verifying", ()),
    ([replace(NO_ANSWER, at_ms=12_000), NO_ANSWER], "Failed", (UNVERIFIED,)),
    ([Verified(12_000, FOUND), replace(NO_ANSWER, at_ms=13_000)], "Verifying", FOUND),
    ([replace(NO_ANSWER, at_ms=12_000), LATE], "Verifying", FOUND),
    ([Verified(12_000, FOUND), NO_ANSWER, replace(LATE, at_ms=NO_ANSWER.at_ms)], "Failed", FOUND),
])  # fmt: skip
def test_a_result_is_verified_until_it_is_right_or_patience_ends(
    events: list[Event], step: str, findings: tuple[str, ...]
) -> None:
    run = Played(*RESTORED, *events)
    assert (run.step, run.view.findings) == (step, findings)
    assert run.decided == ("wait" if step == "Verifying" else "")
    assert run.view.ended_ms == (None if step == "Verifying" else events[-1].at_ms)


def test_verification_is_repeated_after_a_wait() -> None:
    assert Played(*RESTORED, Verified(12_000, FOUND), TimePassed(13_000)).decided == f"verify a-0 a-1 with {ALL}"


LOST = Verified(12_000, FOUND, (A0,))


def test_a_leader_lost_after_its_move_is_elected_at_the_second_look() -> None:
    run = Played(*RESTORED, LOST)
    assert run.decided == "wait"
    run.on(TimePassed(13_000), replace(LOST, at_ms=13_000))
    assert run.decided == "elect a-0"
    run.on(LeadersElected(13_100, (A0,)), TimePassed(14_000), Verified(14_000, ()))
    assert (run.step, run.view.findings) == ("Done", ())


def test_a_lost_leader_that_cannot_be_elected_ends_the_run_in_time() -> None:
    run = Played(*RESTORED, LOST, replace(LOST, at_ms=13_000), replace(REFUSED, at_ms=13_100))
    assert run.decided == "wait"
    run.on(TimePassed(14_000), replace(REFUSED, at_ms=13_100 + VERIFY_PATIENCE_MS), replace(LOST, at_ms=LATE.at_ms))
    assert (run.step, run.view.findings, run.view.can_be_resumed) == ("Failed", FOUND, True)


@pytest.mark.parametrize(("first", "second", "step", "decided"), [
    (AT_PLACE, AT_PLACE, "Done", "verify a-0 a-1 with "),
    (AT_PLACE, UNTOUCHED, "Cancelled", "verify a-0 with "),
])  # fmt: skip
def test_a_cancelled_move_cancels_a_run(first: PlacementState, second: PlacementState, step: str, decided: str) -> None:
    found = MovesObserved(1_000, tuple(map(seen, MOVES, (first, second))))
    run = Played(begun(throttle=None), CancelRequested(500, 1, is_now=False), found).go("verify")
    assert (run.decided, run.go("").step, run.view.ended_ms) == (decided, step, 1_000)


def test_a_failed_move_weighs_more_than_a_cancelled_one() -> None:
    found = MovesObserved(1_000, tuple(map(seen, MOVES, (UNTOUCHED, GONE))))
    run = Played(begun(throttle=None), HoldRequested(0, 1), found, MovesObserved(16_000, ()))
    run.on(CancelRequested(17_000, 2, is_now=False), MovesObserved(17_000, ())).go("verify")
    assert (run.decided, run.moves, run.go("").step) == ("verify  with ", "cancelled failed", "Failed")


@pytest.mark.parametrize(("reaction", "step"), [
    (Reaction.CANCEL, "Failed"), (Reaction.HOLD, "Failed"), (Reaction.WARN, "Done"), (Reaction.OFF, "Done"),
])  # fmt: skip
def test_a_guarded_run_fails_if_others_changed_its_throttle(reaction: Reaction, step: str) -> None:
    run = Played(guarded(reaction=reaction)).go("wait").go("read", AT_PLACE)
    removed = ConfigsRead(5_000, (ConfigValue(LEADER_0, None),))
    run.on(removed, replace(removed, at_ms=5_000 + PROPAGATION_MS)).go("verify").go("")
    assert run.step == step
