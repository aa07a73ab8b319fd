"""Others know a run only by its read view: nobody outside the machine imports its insides."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kreassign import executor
from kreassign.executor.events import Operator, PlacementState, PlannedMove
from kreassign.executor.guards import GuardName, Reaction, Verdict
from kreassign.executor.scheduling import Pace
from kreassign.executor.state import Phase, RunView, WindDown
from kreassign.executor.state.move import Replan
from kreassign.executor.state.phases import (
    Cancelled,
    Cancelling,
    Done,
    Failed,
    MeasuringTraffic,
    Observing,
    Paused,
    RunState,
    Waiting,
)
from kreassign.executor.state.run import Control, GuardBreach, PassingProblem, Run
from kreassign.executor.throttle.rates import ThrottleRates
from kreassign.model import ConfigResource, TopicPartition
from tests.executor.run_events import (
    A1,
    LISTS,
    MOVES,
    OVERRIDES,
    PREPARED,
    RATES,
    SUBMITTED,
    WHOLE,
    look,
    machine_after,
    replayed,
    started,
)
from tests.executor.state.run_changes import run_after

SOURCE = Path(executor.__file__).parent.parent
STATE = SOURCE / "executor" / "state"


def imports(path: Path) -> Iterator[str]:
    """Every module of the machine that a file imports, and others."""
    text = path.read_text(encoding="utf-8")
    # Reading all of the product as programs would take a second.
    for node in ast.walk(ast.parse(text if "executor.state" in text else "")):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def test_nobody_outside_the_machine_imports_its_insides() -> None:
    outside = [path for path in SOURCE.rglob("*.py") if STATE not in path.parents]
    strangers = {
        f"{path.relative_to(SOURCE)}: {name}"
        for path in outside
        for name in imports(path)
        if name.startswith("kreassign.executor.state.")
    }
    assert len(outside) > 100
    assert strangers == set()


def test_a_view_shows_the_run_as_it_is_and_lets_nobody_change_it() -> None:
    view, _ = replayed(*SUBMITTED)
    assert (view.phase, view.step, view.ended_ms) == (Phase.MOVING, "Observing", None)
    assert view.can_be_resumed
    done, _ = replayed(*WHOLE)
    assert (done.phase, done.ended_ms, done.can_be_resumed) == (Phase.DONE, 12_000, False)
    changeable = [name for name, value in vars(RunView).items() if isinstance(value, property) and value.fset]
    assert changeable == []


def test_a_run_can_be_resumed_while_moves_are_left_or_settings_are_to_be_restored() -> None:
    unthrottled = replayed(started(throttle=None), look(1_000, PlacementState.UNTOUCHED))[0]
    assert (unthrottled.can_be_resumed, dict(unthrottled.pending_restores)) == (True, {})
    assert replayed(*PREPARED)[0].can_be_resumed
    assert not replayed(*WHOLE)[0].can_be_resumed


def test_a_run_that_nobody_executes_foresees_nothing_and_no_guard_speaks() -> None:
    machine, _ = machine_after(*SUBMITTED)
    run = machine._run
    run.moves.outlook = ("waits for its window",)
    run.health.verdicts = (Verdict(GuardName.DISK, Reaction.HOLD, "full", "make room"),)
    run.moves.absent = (2,)
    going_on, left = machine.view, machine.view.as_left
    assert going_on.outlook == (*going_on.lost_destinations, "waits for its window")
    assert (len(going_on.lost_destinations), going_on.verdicts) == (1, run.health.verdicts)
    assert (left.outlook, left.verdicts) == ((), ())


def test_a_view_of_a_run_that_was_left_is_of_the_same_run() -> None:
    view = replayed(replace(started(), at_ms=7, plan_id="p"), *PREPARED[1:])[0]
    left = view.as_left
    assert (left.run_id, left.cluster_id, left.plan_id, left.started_ms) == ("run-1", "cluster-1", "p", 7)
    assert (left.records, left.phase) == (view.records, view.phase)


# --- every property ------------------------------------------------------------------------------------------------

ANN, BOB = Operator("ann", "host"), Operator("bob", "host", ("kreassign", "resume"))


def test_what_is_known_of_a_run_is_told_as_it_is() -> None:
    run = run_after(*SUBMITTED)
    run.identity.note(ANN)
    run.identity.note(BOB)
    run.control = Control(
        ThrottleRates(5),
        Pace(elections_per_step=3),
        is_held=True,
        wind_down=WindDown.FINISH,
        wants_rollback=True,
        last_request=7,
        lease="held",
    )
    run.moves.absent, run.problems.findings, run.wall_ahead_ms = (4,), ("a-0 is elsewhere",), 60_000
    run.throttle.left, run.throttle.listed = {RATES[0].key}, {LISTS[0].key: {"0:2", "1:3", "7:1"}}
    view = RunView(run)
    told: dict[str, object] = {
        "run_id": "run-1",
        "cluster_id": "cluster-1",
        "plan_id": "",
        "operators": (ANN, BOB),
        "started_ms": 0,
        "step": "Observing",
        "rates": ThrottleRates(5),
        "pace": Pace(elections_per_step=3),
        "is_held": True,
        "wind_down": WindDown.FINISH,
        "wants_rollback": True,
        "last_request": 7,
        "lease": "held",
        "absent": (4,),
        "findings": ("a-0 is elsewhere",),
        "wall_ahead_ms": 60_000,
        "left_to_others": {RATES[0].key},
        "pending_restores": {one.key: one for one in OVERRIDES},
        "overrides": {one.key: one for one in OVERRIDES}
        | {LISTS[0].key: replace(LISTS[0], unconfirmed=("0:2,1:3,7:1",))},
        "residue": tuple(map(str, OVERRIDES)),
        "in_flight": tuple(run.moves.records.values()),
        "records": run.moves.records,
        "was_throttle_kept": True,
        "can_be_resumed": True,
        "unreachable_since_ms": None,
    }
    assert {name: getattr(view, name) for name in told} == told


def test_of_what_waits_is_told_what_producers_write_to_it() -> None:
    written = replace(MOVES[0], write_bytes_per_s=3.0)
    run = run_after(started(written, throttle=None), look(1_000, PlacementState.UNTOUCHED, written))
    assert RunView(run).waiting_write_bytes_per_s == {("source", 0): 3.0, ("destination", 2): 3.0}


@pytest.mark.parametrize(("state", "ended_ms", "unreachable_since_ms"), [
    (Done(7), 7, None),
    (Cancelled(8), 8, None),
    (Failed(9), 9, None),
    (Paused(), None, None),
    (Observing((), (), 5), None, 5),
    (Waiting(6), None, 6),
    (MeasuringTraffic(4), None, 4),
    (Waiting(), None, None),
    (Cancelling(), None, None),
])  # fmt: skip
def test_when_a_run_ended_and_since_when_its_cluster_does_not_answer(
    state: RunState, ended_ms: int | None, unreachable_since_ms: int | None
) -> None:
    run = run_after(*SUBMITTED)
    run.state = state
    view = RunView(run)
    assert (view.ended_ms, view.unreachable_since_ms, view.phase) == (ended_ms, unreachable_since_ms, state.phase)


@pytest.mark.parametrize(("spoil", "is_kept"), [
    (lambda run: run.tell("reading", 1, "no answer"), True),
    (lambda run: setattr(run.throttle, "is_lost", True), False),
    (lambda run: setattr(run.throttle, "was_found_changed", True), False),
    (lambda run: run.health.breaches.append(breach(GuardName.FOREIGN_THROTTLE, 1, 2)), False),
    (lambda run: run.health.breaches.append(breach(GuardName.DISK, 1, 2)), True),
], ids=["nothing", "lost", "found changed", "told", "another guard"])  # fmt: skip
def test_a_throttle_was_kept_while_nobody_is_known_to_have_changed_it(
    spoil: Callable[[Run], None], is_kept: bool
) -> None:
    run = run_after(*SUBMITTED)
    spoil(run)
    assert RunView(run).was_throttle_kept == is_kept


def breach(guard: GuardName, from_ms: int, last_ms: int, until_ms: int | None = None) -> GuardBreach:
    return GuardBreach(Verdict(guard, Reaction.HOLD, f"seen {guard}", "do something"), from_ms, last_ms, until_ms)


LOST = ("broker 2 is down, and 1 moves copy to it", "broker 3 is down, and 1 moves copy to it")


def test_destinations_that_are_down_are_told_with_what_copies_to_them() -> None:
    run = run_after(*SUBMITTED)
    run.moves.absent = (2, 3, 4)
    run.moves.outlook = ("waits for its window",)
    run.moves.records[A1].awaited_replan = Replan(1, (3,), (1, 3), (1, 4))
    cancelled = "1 moves to brokers that are down are cancelled, to be made to others"
    assert RunView(run).lost_destinations == LOST
    assert RunView(run).outlook == (*LOST, cancelled, "waits for its window")
    run.moves.records[A1].awaited_replan = None
    assert RunView(run).outlook == (*LOST, "waits for its window")
    assert RunView(run).as_left.outlook == ()
    run.state = Paused()
    assert RunView(run).outlook == ()


HOUR_MS = 3_600_000


def troubled() -> Run:
    """A run with every kind of problem, an hour after midnight by a clock that is half an hour ahead."""
    run = run_after(*SUBMITTED)
    run.wall_ahead_ms = HOUR_MS // 2
    run.problems.noted = ["noted", "noted twice", "noted twice"]
    run.problems.unset = {2: "broker 2 is down", 4: "broker 4 is down"}
    run.problems.unrestored = ("not restored",)
    run.problems.passing = {
        "reading": {"now": PassingProblem("now", HOUR_MS)},
        "setting": {
            "over": PassingProblem("over", HOUR_MS, HOUR_MS + 5_000),
            "often": PassingProblem("often", HOUR_MS, HOUR_MS + 5_000, 2),
        },
    }
    run.throttle.awaited = frozenset({2})
    run.throttle.unread = (ConfigResource.broker(1), ConfigResource.topic("a"))
    run.health.breaches = [
        breach(GuardName.DISK, HOUR_MS, HOUR_MS + 1_000),
        breach(GuardName.BROKER, HOUR_MS, HOUR_MS + 2_000, HOUR_MS + 3_000),
    ]
    return run


PAST = (
    "over, from 01:30:00 to 01:30:05 UTC: over",
    "over, 2 times from 01:30:00 to 01:30:05 UTC: often",
)


def test_problems_of_a_run_that_goes_on_are_told_as_what_is_so_now() -> None:
    assert RunView(troubled()).problems == (
        "noted",
        "noted twice",
        "broker 2 is down",
        (
            "nothing is started while the throttle of broker 1 cannot be read: a broker has to answer, and to allow "
            "DescribeConfigs on the cluster"
        ),
        (
            "nothing is started while the throttle of topic a cannot be read: a broker has to answer, and to allow "
            "DescribeConfigs on the topic"
        ),
        "not restored",
        "now",
        *PAST,
        "disk: seen disk; nothing new is started meanwhile. do something",
        "broker (over, from 01:30:00 to 01:30:03 UTC): seen broker",
    )


def test_problems_of_a_run_that_was_left_are_told_as_what_was_so() -> None:
    run = troubled()
    left = (
        "noted",
        "noted twice",
        "not restored",
        "when the run was left, since 01:30:00 UTC: now",
        *PAST,
        "disk (as last checked, 01:30:01 UTC): seen disk",
        "broker (over, from 01:30:00 to 01:30:03 UTC): seen broker",
    )
    assert RunView(run).as_left.problems == left
    run.state = Paused()
    assert RunView(run).problems == left
    assert RunView(run).time_of_day(HOUR_MS) == "01:30:00 UTC"


def test_without_a_clock_that_is_ahead_times_are_those_of_the_run() -> None:
    passing = PassingProblem("over", HOUR_MS, HOUR_MS + 1)
    assert passing.told(is_going_on=True) == "over, from 01:00:00 to 01:00:00 UTC: over"
    known = breach(GuardName.DISK, HOUR_MS, HOUR_MS + 1_000)
    assert known.told(is_going_on=False) == "disk (as last checked, 01:00:01 UTC): seen disk"


def test_what_was_planned_again_is_told_once_for_all_that_was_lost_at_a_time() -> None:
    moves = tuple(PlannedMove(TopicPartition("a", number), (0,), (2,), 0) for number in range(23))
    run = run_after(started(*moves, throttle=None))
    first, *others = run.moves.records.values()
    for record in others:
        record.replans = (Replan(HOUR_MS, (2,), (2,), (3,)),)
    first.replans = (Replan(HOUR_MS, (2, 4), (2,), (4,)), Replan(2 * HOUR_MS, (2,), (4,), (1,)))
    assert RunView(run).problems == ()
    run.control.replans = True
    named = "; ".join(f"a-{number} to [3] instead of [2]" for number in range(1, 21))
    again = "were down, so that moves were planned again at"
    assert RunView(run).problems == (
        f"brokers [2, 4] {again} 01:00:00 UTC: a-0 to [4] instead of [2]",
        f"brokers [2] {again} 02:00:00 UTC: a-0 to [1] instead of [4]",
        f"brokers [2] {again} 01:00:00 UTC: {named} and 2 more",
    )
    others[-1].replans = others[-2].replans = ()
    assert RunView(run).problems[-1] == f"brokers [2] {again} 01:00:00 UTC: {named}"
