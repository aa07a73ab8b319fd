"""Timeline of a run, from events, and from runs on a twin."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kreassign.executor.events import (
    CancelRequested,
    Event,
    HealthObserved,
    HoldRequested,
    MovesSubmitted,
    PlacementState,
    Refusal,
    ReleaseRequested,
    RunResumed,
    StopRequested,
    ThrottleRequested,
    VerdictsRecorded,
    Verified,
)
from kreassign.executor.guards import GuardName, Health, Reaction, Troubled, Verdict, guard_settings
from kreassign.executor.history.audit_trail import audit_trail
from kreassign.executor.journal import read_events
from kreassign.model.run import InSync, MarkKind, ThrottleStep
from tests.approved import approve
from tests.executor.run_events import A0, A1, LIVE, RATE, SUBMITTED, WHOLE, look, started
from tests.executor.twin_runs import RATE as TWIN_RATE
from tests.executor.twin_runs import TwinRig

BEHIND = Verdict(GuardName.UNDER_REPLICATED, Reaction.HOLD, "1 partition is out of sync", "wait")


def test_a_run_without_incidents_has_no_marks_and_a_log_of_what_it_did() -> None:
    told = audit_trail(WHOLE).timeline
    assert told.marks == ()
    approve((f"{line.at_ms} ms: {line.text}" for line in told.log), "log-of-a-run")
    assert [line.at_ms for line in told.log] == sorted(line.at_ms for line in told.log)


def test_the_throttle_is_told_as_it_was_written_and_until_it_was_restored() -> None:
    told = audit_trail(WHOLE).timeline
    assert {(step.at_ms, step.bytes_per_s) for step in told.throttle} == {(1_000, RATE), (10_000, None)}
    assert {step.broker for step in told.throttle} == {0, 1, 2, 3}
    assert ThrottleStep(1_000, 2, RATE) in told.throttle


def test_what_people_asked_for_is_marked_in_words() -> None:
    asked = (
        HoldRequested(4_100, 1),
        ReleaseRequested(4_200, 2),
        ThrottleRequested(4_300, 3, 2_000_000),
        ThrottleRequested(4_400, 4, None, (2,)),
        CancelRequested(4_500, 5, is_now=True),
    )
    marks = audit_trail([*SUBMITTED, *asked]).timeline.marks
    approve((f"{mark.at_ms} ms, {mark.kind.name}: {mark.text}" for mark in marks), "marks-of-requests")


def test_a_silent_process_counts_as_killed_when_last_heard() -> None:
    told = audit_trail([*SUBMITTED, RunResumed(60_000, LIVE)]).timeline
    assert [(mark.at_ms, mark.kind) for mark in told.marks] == [(4_000, MarkKind.KILLED), (60_000, MarkKind.RESUMED)]


def checked(at_ms: int, health: Health, *verdicts: Verdict) -> tuple[Event, ...]:
    """A look at the moves, an inspection, and what the guards say of it."""
    return look(at_ms, PlacementState.MOVING), HealthObserved(at_ms, health), VerdictsRecorded(at_ms, verdicts)


def guarded(*checks: tuple[Event, ...]) -> list[Event]:
    """A run with guards, and what they said."""
    return [replace(started(throttle=None), guards=guard_settings()), *(event for check in checks for event in check)]


def test_guards_are_marked_when_they_begin_and_when_all_are_content() -> None:
    worse = replace(BEHIND, seen="2 partitions are out of sync")
    told = audit_trail(guarded(
        checked(40_000, Health(LIVE, cordoned=(2,)), BEHIND),
        checked(80_000, Health(LIVE, cordoned=(2, 3)), worse),
        checked(120_000, Health(LIVE)),
    )).timeline  # fmt: skip
    assert [(mark.at_ms, mark.kind) for mark in told.marks] == [
        (40_000, MarkKind.GUARD), (120_000, MarkKind.ALL_CLEAR)
    ]  # fmt: skip


def test_replicas_out_of_sync_are_told_of_the_run_and_of_the_cluster() -> None:
    health = Health(LIVE, cordoned=(2,), offline=Troubled(1), under_min_isr=Troubled(2), under_replicated=Troubled(3))
    told = audit_trail(guarded(checked(40_000, health, BEHIND))).timeline
    # What a run adds itself is not out of sync.
    assert told.in_sync == (InSync(40_000, 0), InSync(40_000, 0, 3, 2, 1))


def test_equal_outcomes_that_follow_each_other_are_told_once() -> None:
    missing, other = ("a-0: led by 1",), ("a-0: led by 1", "a-1: led by 1")
    verified = [
        Verified(12_000 + 1_000 * n, words) for n, words in enumerate((missing, missing, other, other, missing))
    ]
    told = [line.text for line in audit_trail([*WHOLE[:-1], *verified]).timeline.log if "led by" in line.text]
    assert told == ["a-0: led by 1", "a-0: led by 1; a-1: led by 1", "a-0: led by 1"]


def test_refusals_are_in_the_log_with_their_words() -> None:
    answer = MovesSubmitted(4_500, (A1,), (Refusal(A0, "not enough brokers"),))
    log = [line.text for line in audit_trail([*SUBMITTED[:-1], answer]).timeline.log]
    assert "moves: 1 submitted, 1 refused" in log
    assert "a-0 was refused: not enough brokers" in log


def test_a_slowed_stopped_and_resumed_run_has_it_all_in_its_timeline(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]])
    rig.ask_after(3, lambda at_ms, number: ThrottleRequested(at_ms, number, 2 * TWIN_RATE))
    rig.stop_after(6)
    rig.run(rig.prepared({0: (2, 1), 1: (3, 0)}))
    rig.resume()
    events = read_events(rig.path())
    told = audit_trail(events).timeline
    assert [mark.kind for mark in told.marks] == [MarkKind.THROTTLE, MarkKind.STOPPED, MarkKind.RESUMED]
    rates = [step.bytes_per_s for step in told.throttle if step.broker == 2]
    assert rates == [TWIN_RATE, 2 * TWIN_RATE, None]
    assert any(isinstance(event, StopRequested) for event in events)
