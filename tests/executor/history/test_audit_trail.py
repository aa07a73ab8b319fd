from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kreassign.executor import events
from kreassign.executor.guards import GuardName, Health, Reaction, Verdict, guard_settings
from kreassign.executor.history.audit_trail import audit_trail
from kreassign.executor.journal import read_events
from kreassign.model.run import Arrival, Breach, Call
from tests.executor.run_events import A0, A1, LIVE, RATE, SUBMITTED, WHOLE, look, started
from tests.executor.twin_runs import TwinRig

STALL = Verdict(GuardName.STALL, Reaction.WARN, "a-0 has made no progress", "look")
RACE = Verdict(GuardName.RATE, Reaction.HOLD, "a-1 is too slow", "give more")


def checked(at_ms: int, *verdicts: Verdict) -> tuple[events.Event, ...]:
    """A health check that finds something else than the one before, and what the guards say of it."""
    health = events.HealthObserved(at_ms, Health(LIVE, cordoned=(2,)))
    return look(at_ms, events.PlacementState.MOVING), health, events.VerdictsRecorded(at_ms, verdicts)


def test_every_copy_arrives_from_nothing_to_all_of_it() -> None:
    told = audit_trail([*SUBMITTED, look(5_000, events.PlacementState.MOVING, done=100), *WHOLE[len(SUBMITTED) :]])
    first = [(one.at_ms, one.source, one.done_bytes) for one in told.copy_progress if one.partition == 0]
    assert first[:2] == [(4_000, 0, 0), (5_000, 0, 100)]
    assert first[-1][1:] == (0, 1_000)
    assert told.copy_progress[0] == Arrival(4_000, "a", 0, 2, 0, 0, RATE)


def test_calls_show_their_question_and_their_trouble() -> None:
    answer = events.MovesSubmitted(4_500, (A1,), (events.Refusal(A0, "not enough brokers"),))
    told = audit_trail([*SUBMITTED[:-1], answer, events.CallFailed(5_000, "no answer")])
    assert [(call.number, call.kind) for call in told.calls] == [
        (1, "read settings"),
        (2, "set throttle"),
        (3, "observe moves"),
        (4, "set throttle"),
        (5, "submit moves"),
        (6, "failed call"),
    ]
    assert told.calls[4] == Call(5, "submit moves", 3_000, 4_500, 1, 1, 0, "a-0: not enough brokers")
    assert (told.calls[5].asked_ms, told.calls[5].refused, told.calls[5].problem) == (None, 1, "no answer")


def test_a_verdict_lasts_until_it_is_given_no_more() -> None:
    told = audit_trail(
        [
            replace(started(throttle=None), guards=guard_settings()),
            *checked(40_000, STALL),
            *checked(80_000, STALL, RACE),
            *checked(120_000, RACE),
        ]
    )
    assert told.breaches == (
        Breach("stall", "warn", STALL.seen, "look", 40_000, 120_000),
        Breach("rate", "hold", RACE.seen, "give more", 80_000, None),
    )


def test_promises_come_true_on_a_steady_cluster(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]])
    assert rig.run(rig.prepared({0: (2, 1)})).state == "done"
    told = audit_trail(read_events(rig.path()))
    ended_ms = told.history.moves[0].completed_ms
    assert ended_ms is not None
    assert {one.topic for one in told.eta_history} == {None, "t"}
    # The first seconds are faster than the throttle, which has nothing to even out yet.
    for one in told.eta_history[len(told.eta_history) // 2 :]:
        assert one.at_ms + 1000 * one.eta_s == pytest.approx(ended_ms, abs=2_500)
    assert told.copy_progress[-1].done_bytes == told.history.bytes_copied


def test_a_run_that_elects_its_leaders_in_many_steps_is_told_in_full(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]] * 101)
    found = rig.run(rig.prepared(dict.fromkeys(range(101), (1, 0))))
    assert found.state == "done"
    told = audit_trail(read_events(rig.path()))
    assert told.history == found
    assert [call.ok for call in told.calls if call.kind == "elect leaders"] == [100, 1]
