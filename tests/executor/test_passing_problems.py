"""Past problems are told as over, with their times; present ones in the present tense.

On the twin: each cause is brought about, what a run tells is read while it lasts, and again at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from kreassign.errors import OutcomeUnknown
from kreassign.executor.events import ThrottleRestored
from kreassign.executor.guards import NAMED, GuardName, Reaction
from kreassign.executor.history.run_history import fold, history
from kreassign.executor.journal import read_events
from kreassign.executor.state.run import PassingProblem, Run
from kreassign.executor.state.view import RunView
from kreassign.model import Batch, ConfigResource, TopicPartition
from kreassign.model.run import RunHistory
from kreassign.model.text import some_of
from kreassign.model.throttle import LEADER_THROTTLED_RATE
from tests.executor.odd_port import OddPort, as_it_is, not_reached
from tests.executor.test_foreign_throttle_on_twin import ONE_BY_ONE, change
from tests.executor.twin_runs import RATE, TwinRig

AWAY = {0: (2, 1), 1: (3, 0)}


def test_a_thousand_partitions_with_the_same_reason_are_one_problem() -> None:
    run, names = Run(), [TopicPartition("t", number) for number in range(1_000)]
    for name in names:
        run.tell("others", 1_000, "is moved by someone else", of=name)
        run.note("was refused", name)
    shown = f"1,000 partitions ({some_of(names, NAMED)}) each"
    assert RunView(run).problems == (f"{shown} was refused", f"{shown} is moved by someone else")
    every = RunView(run).problem_partitions
    assert every == dict.fromkeys(RunView(run).problems, tuple(map(str, names)))
    for name in names[1:]:
        run.tell("others", 2_000, of=name)
    rest = f"999 partitions ({some_of(names[1:], NAMED)}) each is moved by someone else"
    over = f"over, from 00:00:01 to 00:00:02 UTC: {rest}"
    assert RunView(run).problems[1:] == ("t-0 is moved by someone else", over)


def test_a_problem_partitions_had_at_different_times_is_no_period() -> None:
    run, lost = Run(), "had no leader"
    for number, (since_ms, until_ms) in enumerate(((1_000, 2_000), (60_000, 61_000), (90_000, 91_000))):
        run.tell("leader", since_ms, lost, of=TopicPartition("t", number))
        run.tell("leader", until_ms, of=TopicPartition("t", number))
    three = "3 partitions (t-0, t-1, t-2) each had no leader"
    assert RunView(run).problems == (f"over, at times between 00:00:01 and 00:01:31 UTC: {three}",)
    run.tell("leader", 120_000, lost, of=TopicPartition("t", 2))
    run.tell("leader", 130_000, of=TopicPartition("t", 2))
    assert RunView(run).problems == (f"over, up to 2 times between 00:00:01 and 00:02:10 UTC: {three}",)
    run.tell("leader", 150_000, lost, of=TopicPartition("t", 0))
    run.tell("leader", 160_000, lost, of=TopicPartition("t", 1))
    left = "when the run was left, since 00:00:01 UTC or later: 2 partitions (t-0, t-1) each had no leader"
    assert left in RunView(run).as_left.problems


def test_a_problem_is_told_as_it_is_as_it_was_and_as_it_was_left() -> None:
    run = Run()
    run.tell("kind", 1_000, "a is wrong")
    run.tell("another kind", 1_000)
    assert RunView(run).problems == ("a is wrong",)
    assert RunView(run).as_left.problems == ("when the run was left, since 00:00:01 UTC: a is wrong",)
    run.tell("kind", 3_000, "b is wrong")
    assert RunView(run).problems == ("over, from 00:00:01 to 00:00:03 UTC: a is wrong", "b is wrong")
    run.tell("kind", 61_000, "a is wrong")
    run.tell("kind", 62_000)
    assert RunView(run).problems == (
        "over, 2 times from 00:00:01 to 00:01:02 UTC: a is wrong",
        "over, from 00:00:03 to 00:01:01 UTC: b is wrong",
    )
    assert RunView(run).as_left.problems == RunView(run).problems


def test_times_are_those_of_the_wall_clock() -> None:
    told = PassingProblem("a is wrong", 1_000, 2_000).told(is_going_on=True, ahead_ms=3_600_000)
    assert told == "over, from 01:00:01 to 01:00:02 UTC: a is wrong"


def told_at(rig: TwinRig, *seconds: float) -> list[tuple[str, ...]]:
    """Messages of the run at these times."""
    found: list[tuple[str, ...]] = []
    for second in seconds:
        rig.after(second, lambda: found.append(rig.runner.run.problems if rig.runner else ()))
    return found


def assert_over(found: RunHistory, text: str, *before: tuple[str, ...]) -> None:
    """Assert a present fact at these times, and a past one now."""
    for problems in before:
        assert any(text in one and not one.startswith("over, ") for one in problems), problems
    now = [one for one in found.problems if text in one]
    assert now
    assert all(one.startswith("over, ") for one in now), now


@pytest.mark.thorough
def test_a_throttle_that_could_not_be_restored_at_first(rig: TwinRig, odd: OddPort) -> None:
    failures = [not_reached]
    rig.listener = lambda _, run: (
        odd.answer("incremental_alter_configs", failures.pop()) if run.step == "Restoring" and failures else None
    )
    found = rig.run(rig.prepared(AWAY))
    assert any(isinstance(event, ThrottleRestored) and event.problems for event in rig.seen)
    assert_over(found, "throttle settings could not be changed: could not connect")
    assert (found.state, rig.throttles) == ("done", {})


@pytest.mark.thorough
def test_a_partition_about_which_nobody_answered(rig: TwinRig, odd: OddPort) -> None:
    def silence(real: Callable[..., Any], names: Iterable[str] | None, **named: Any) -> Any:
        found = real(names, **named)
        return found if names is None else Batch({}, {"t": OutcomeUnknown("no answer in time")})

    started = rig.prepared(AWAY, throttle=RATE // 4)
    during = told_at(rig, 15)
    rig.after(10, lambda: odd.answer_always("describe_topics", silence))
    rig.after(20, lambda: odd.answer_always("describe_topics", as_it_is))
    found = rig.run(started)
    assert_over(
        found, "2 partitions (t-0, t-1) each is unknown: topic t could not be described: no answer in time", *during
    )


@pytest.mark.thorough
def test_moves_that_could_not_be_planned_again_at_first(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]], brokers=7)
    odd = OddPort(rig.client)
    rig.let_plan_over(odd)
    odd.answer_always("describe_topics", not_reached)
    during = told_at(rig, 110)
    rig.after(4, lambda: rig.twin.crash(2))
    rig.after(130, lambda: odd.answer_always("describe_topics", as_it_is))
    found = rig.run(rig.prepared(AWAY, throttle=RATE // 8, replans=True))
    assert_over(found, "moves whose destination is lost could not be planned again yet: ", *during)


@pytest.mark.thorough
def test_former_unrestored_settings_are_not_told_during_the_run(rig: TwinRig) -> None:
    rig.after(5, lambda: rig.twin.crash(1))
    found = rig.run(rig.prepared({0: (0, 2)}))
    assert any("the throttle of broker 1 could not be written" in one for one in found.problems)
    rig.twin.start(1)
    rig.transport.sleep(15)
    told: list[tuple[str, ...]] = []
    rig.listener = lambda _, run: told.append((*run.problems, *run.findings))
    assert rig.resume().state == "done"
    assert not [one for problems in told for one in problems if "could not be written" in one]


@pytest.mark.thorough
def test_messages_of_a_dead_process_are_not_told_as_present(rig: TwinRig) -> None:
    rig.after(3, lambda: rig.twin.crash(4))
    rig.after(60, lambda: rig.runner and rig.runner.request_stop())
    rig.run(rig.prepared(AWAY, throttle=RATE // 20, pace=ONE_BY_ONE, guards={GuardName.BROKER: Reaction.HOLD}))
    events = [event for event in read_events(rig.path()) if type(event).__name__ != "StopRequested"]
    run = fold(events)
    assert any(one.startswith("broker: broker 4, ") for one in history(run).problems)
    left = history(run.as_left)
    (told,) = [one for one in left.problems if "broker 4, " in one]
    assert told.startswith("broker (as last checked, ")
    assert "nothing new is started" not in told
    assert (left.verdicts, left.outlook) == ((), ())


@pytest.mark.thorough
def test_a_rate_that_somebody_else_set_is_told_as_it_was(rig: TwinRig) -> None:
    rig.after(2, lambda: change(rig, ConfigResource.broker(0), LEADER_THROTTLED_RATE, "2000000"))
    found = rig.run(rig.prepared({0: (2, 1)}, throttle=RATE // 4))
    what = "leader.replication.throttled.rate of broker 0 was '2000000'"
    assert f"someone else changed a throttle during the run, and it was left so: {what}" in found.problems
