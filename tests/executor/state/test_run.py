"""What a run knows beside its state: who executes it, its moves, its throttle and its problems."""

from __future__ import annotations

from dataclasses import replace
from time import tzset

import pytest

from kreassign.executor.events import Operator
from kreassign.executor.state import MoveStatus
from kreassign.executor.state.run import Doubt, PassingProblem, Run, RunIdentity, time_of_day
from kreassign.executor.throttle.ledger import ConfigValue
from kreassign.model import ConfigResource
from tests.executor.run_events import LISTS, OVERRIDES, RATE, RATES, SUBMITTED
from tests.executor.state.run_changes import changed, run_after

ANN, BOB = Operator("ann", "host"), Operator("bob", "host", ("kreassign", "resume"))


def test_whoever_executes_a_run_is_noted_once_each_and_who_does_so_now() -> None:
    identity = RunIdentity()
    for operator in (ANN, BOB, ANN):
        identity.note(operator)
    assert (identity.operators, identity.operator) == ((ANN, BOB), ANN)
    identity.note(None)
    assert (identity.operators, identity.operator) == ((ANN, BOB), None)


def test_moves_are_left_while_one_has_not_ended_and_in_flight_from_when_they_were_sent() -> None:
    run = run_after(*SUBMITTED)
    first, second = run.moves.records.values()
    flying = {MoveStatus.SENT, MoveStatus.MOVING, MoveStatus.CANCELLING}
    second.status = MoveStatus.FAILED
    for status in MoveStatus:
        first.status = status
        is_active = status in flying | {MoveStatus.PLANNED}
        assert run.moves.in_flight == ((first,) if status in flying else ())
        assert run.moves.active == ((first,) if is_active else ())
        assert run.moves.are_left == is_active


def test_settings_that_are_closed_are_forgotten_but_for_what_was_ever_set() -> None:
    run = run_after(*SUBMITTED)
    throttle = run.throttle
    key, kept = LISTS[0].key, {one.key: one for one in OVERRIDES if one is not LISTS[0]}
    doubt = Doubt(ConfigValue(key, "5"), 1)
    throttle.doubts = {key: doubt, RATES[0].key: doubt}
    throttle.due, throttle.unseen = {key, RATES[0].key}, {key, RATES[1].key}
    assert changed(run, lambda: throttle.close(key)) == (
        None,
        {
            "throttle.pending": kept,
            "throttle.in_force": {*kept},
            "throttle.doubts": {RATES[0].key: doubt},
            "throttle.due": {RATES[0].key},
            "throttle.unseen": {RATES[1].key},
        },
    )
    gone = (ConfigResource.topic("a"), ConfigResource.broker(2))
    rest = [one.key for one in RATES if one.key.broker != 2]
    throttle.close_gone(gone)
    assert [*throttle.pending] == rest
    assert set(throttle.overrides) == {one.key for one in OVERRIDES}


def test_entries_and_rates_that_were_ours_at_any_time_are_remembered() -> None:
    throttle = run_after(*SUBMITTED).throttle
    assert throttle.ever_set == OVERRIDES
    throttle.listed[LISTS[0].key] = {"0:2"}
    assert throttle.ever_set == OVERRIDES
    throttle.listed[LISTS[0].key] = {"9:2", "1:3", "0:2"}
    assert throttle.ever_set == (*RATES, replace(LISTS[0], unconfirmed=("0:2,1:3,9:2",)), *LISTS[1:])
    assert throttle.with_every_rate(RATES[0]) == RATES[0]
    throttle.rated[RATES[0].key] = {"9", "5", str(RATE)}
    assert throttle.with_every_rate(RATES[0]) == replace(RATES[0], unconfirmed=("5", "9"))
    unconfirmed = replace(RATES[0], unconfirmed=("9", "8"))
    assert throttle.with_every_rate(unconfirmed) == replace(RATES[0], unconfirmed=("9", "8", "5"))


def test_lists_that_others_left_behind_are_told_from_their_rates() -> None:
    throttle = run_after(*SUBMITTED).throttle
    throttle.adopted = {LISTS[0].key: "0:9", RATES[0].key: "7"}
    assert throttle.adopted_lists == {LISTS[0].key: "0:9"}


def test_residue_are_settings_that_may_still_have_a_value_of_the_run() -> None:
    throttle = run_after(*SUBMITTED).throttle
    as_before = replace(RATES[0], value=RATES[0].before)
    throttle.pending = {one.key: one for one in (as_before, RATES[1])}
    assert throttle.residue == (str(RATES[1]),)


def test_a_problem_is_noted_once_and_for_good_instead_of_what_may_pass() -> None:
    run = Run()
    run.tell("reading", 1, "no answer")
    run.tell("setting", 1, "refused")
    run.note("noted")
    run.note("noted")
    run.note_for_good("reading", ("no answer", "noted"))
    assert run.problems.noted == ["noted", "no answer"]
    assert run.problems.passing == {"setting": {"refused": PassingProblem("refused", 1)}}
    run.note_for_good("never told", ())
    assert run.problems.noted == ["noted", "no answer"]


def test_problems_that_pass_begin_end_and_come_again() -> None:
    run = Run()
    run.tell("reading", 1)
    assert run.problems.passing == {}
    run.tell("reading", 2, "one", "other")
    run.tell("reading", 3, "one")
    known = {"one": PassingProblem("one", 2), "other": PassingProblem("other", 2, 3)}
    assert run.problems.passing == {"reading": known}
    run.tell("reading", 4, "other")
    known = {"one": PassingProblem("one", 2, 4), "other": PassingProblem("other", 2, None, 2)}
    assert run.problems.passing == {"reading": known}
    run.tell("reading", 5)
    run.tell("reading", 6)
    known = {"one": PassingProblem("one", 2, 4), "other": PassingProblem("other", 2, 5, 2)}
    assert run.problems.passing == {"reading": known}


def test_times_of_day_are_those_of_utc_wherever_the_process_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    tzset()
    try:
        assert (time_of_day(0), time_of_day(86_399_999), time_of_day(86_400_000)) == (
            "00:00:00",
            "23:59:59",
            "00:00:00",
        )
    finally:
        monkeypatch.undo()
        tzset()
