"""Disks during runs: what has no room waits, and brokers that can only be relieved by each other are named."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from kreassign.executor.events import (
    CancelRequested,
    HealthObserved,
    LogDirTarget,
    MovesObserved,
    MovesSubmitted,
    PlacementState,
    PlannedMove,
    RunStarted,
    SubmissionIntended,
    VerdictsRecorded,
)
from kreassign.executor.guards import GuardName, Health, LogDirSpace, Reaction
from kreassign.executor.guards.settings import settings
from kreassign.executor.instructions import CheckHealth, RecordVerdicts, SubmitMoves, Wait
from kreassign.executor.scheduling import Choice, DiskBudget, Order, Pace, Waiting, find_cycle
from kreassign.executor.scheduling.candidate import Endpoint
from kreassign.executor.state import disk_admission
from kreassign.executor.state.disk_admission import STUCK
from kreassign.executor.state.move import MoveStatus
from kreassign.executor.state.phases import Names
from kreassign.executor.state.run import PassingProblem, Run
from kreassign.executor.throttle.rates import NO_THROTTLE
from kreassign.model import TopicPartition
from tests.executor.run_events import A0, A1, LISTED, LIVE, MOVES, RATE, SUBMITTED, look, machine_after, seen
from tests.executor.state.run_changes import changed, run_after
from tests.executor.twin_runs import TwinRig, tp
from tests.twin.asking import MEGABYTES


def move(number: int, original: tuple[int, ...], target: tuple[int, ...], size: int = 1_000) -> PlannedMove:
    return PlannedMove(TopicPartition("a", number), original, target, size)


def begun(*moves: PlannedMove, guards: dict[GuardName, Reaction] | None = None, reserve: float = 0.0) -> RunStarted:
    pace = Pace(order=Order.NAME, disk_reserve=reserve)
    return RunStarted(0, "run-1", "cluster-1", moves, NO_THROTTLE, LIVE, settings(guards or {}), pace)


def free(**usable: int) -> Health:
    """Brokers `b2`, `b3`, … with one directory each of 10,000 bytes, and so many of them free."""
    rooms = (LogDirSpace(int(broker[1:]), "/d", 10_000, left) for broker, left in usable.items())
    return Health(LIVE, log_dir_space=tuple(rooms))


TWO = (move(0, (0, 1), (2, 1)), move(1, (1, 0), (2, 0)))
HALF_WAY = MovesObserved(1_000, (seen(TWO[0], PlacementState.MOVING, done=400), seen(TWO[1], PlacementState.UNTOUCHED)))


def after(health: Health, *moves: PlannedMove, **how: object):
    """What a run of these moves orders after its first inspection."""
    return machine_after(
        begun(*moves, **how), look(1_000, PlacementState.UNTOUCHED, *moves), HealthObserved(1_000, health)
    )


def test_only_what_fits_is_sent() -> None:
    run, instructions = after(free(b2=1_999), *TWO)
    assert instructions == (SubmitMoves({TWO[0].topic_partition: (2, 1)}),)
    run.replay(SubmissionIntended(2_000, (TWO[0].topic_partition,)))
    run.replay(MovesSubmitted(2_000, (TWO[0].topic_partition,)))
    assert run.replay(look(3_000, PlacementState.MOVING, TWO[0], done=400)) == (Wait(),)
    assert run.view.problems == ()


def test_the_reserve_is_no_room() -> None:
    assert isinstance(after(free(b2=1_999), *TWO, reserve=0.2)[1][0], RecordVerdicts)
    (order,) = after(free(b2=4_000), *TWO, reserve=0.2)[1]
    assert list(order.targets) == [one.topic_partition for one in TWO]


def test_with_its_guard_off_disks_do_not_matter() -> None:
    (order,) = after(free(b2=10), *TWO, guards={GuardName.DISK: Reaction.OFF})[1]
    assert list(order.targets) == [one.topic_partition for one in TWO]


def test_what_is_in_flight_has_its_room_already() -> None:
    run, _ = machine_after(begun(*TWO), HALF_WAY)
    assert isinstance(run.replay(HealthObserved(1_000, free(b2=1_599)))[0], Wait)
    run, _ = machine_after(begun(*TWO), HALF_WAY)
    assert run.replay(HealthObserved(1_000, free(b2=1_600))) == (SubmitMoves({TWO[1].topic_partition: (2, 0)}),)


def test_brokers_that_wait_for_each_other_are_named_once_and_the_run_goes_on_when_there_is_room() -> None:
    moves = (move(0, (2, 1), (3, 1)), move(1, (3, 1), (2, 1)))
    run, (order,) = after(free(b2=10, b3=20), *moves)
    assert [verdict.guard for verdict in order.verdicts] == [GuardName.DISK, GuardName.DISK]
    run.replay(VerdictsRecorded(1_000, order.verdicts))
    run.replay(look(31_000, PlacementState.UNTOUCHED, *moves))
    (story,) = [problem for problem in run.view.problems if problem.startswith("disks")]
    assert story.startswith(
        "disks have no space for any of 2 moves: a-0 waits because broker 3 has 20 bytes to promise"
    )
    assert "brokers 2 -> 3 -> 2 wait for each other" in story
    assert run.replay(HealthObserved(31_000, free(b2=10, b3=20))) == (Wait(),)
    instructions = run.replay(look(62_000, PlacementState.UNTOUCHED, *moves))
    for at_ms in range(62_000, 120_000, 5_000):
        match instructions[0]:
            case CheckHealth():
                instructions = run.replay(HealthObserved(at_ms, free(b2=10, b3=1_000)))
            case RecordVerdicts(verdicts):
                instructions = run.replay(VerdictsRecorded(at_ms, verdicts))
            case Wait():
                instructions = run.replay(look(at_ms, PlacementState.UNTOUCHED, *moves))
    assert instructions == (SubmitMoves({moves[0].topic_partition: (3, 1)}),)
    (over,) = [problem for problem in run.view.problems if "disks have" in problem]
    assert over.startswith("over, from 00:00:31 to ")
    assert over.endswith(story)


def with_guard(run: Run) -> Run:
    """The same with the guard of disks on."""
    run.identity.reactions = {GuardName.DISK: Reaction.HOLD}
    return run


SPACE = Health(
    LIVE,
    log_dir_space=(
        LogDirSpace(2, "/a", 10_000, 3_000),
        LogDirSpace(2, "/b", 20_000, 2_500),
        LogDirSpace(2, "/c", 30_000, 100),
        LogDirSpace(3, "/a", 1_000, 1_000),
    ),
)
USABLE: dict[Endpoint, float] = {
    ("log_dir", (2, "/a")): 2_000.0,
    ("log_dir", (2, "/b")): 500.0,
    ("log_dir", (2, "/c")): -2_900.0,
    ("destination", 2): 2_500.0,
    ("log_dir", (3, "/a")): 900.0,
    ("destination", 3): 900.0,
}
"""What is there with a tenth of each directory in reserve; a directory that is too full takes nothing from others."""


def test_free_are_all_directories_of_a_broker_without_their_reserve_and_what_is_in_flight_still_brings() -> None:
    run = with_guard(run_after(*SUBMITTED, look(5_000, PlacementState.MOVING, MOVES[0], done=400)))
    run.control.pace = Pace(disk_reserve=0.1)
    assert disk_admission.take_stock(run, (), SPACE) == ((), ())
    left: dict[Endpoint, float] = {("destination", 2): 2_500.0 - 600, ("destination", 3): 900.0 - 500}
    assert run.health.disk_budget == DiskBudget({**USABLE, **left}, RATE)


def test_without_its_guard_no_space_is_counted() -> None:
    run = run_after(*LISTED)
    assert changed(run, lambda: disk_admission.take_stock(run, (A1, A0), free(b2=0, b3=0))) == (
        ((A1, A0), (A1, A0)),
        {},
    )


ROOM = {"b2": 1_000, "b3": 500}


@pytest.mark.parametrize(("room", "starting", "stuck", "found"), [
    (ROOM, (A0, A1), (), ((A0, A1), (A0, A1))),
    (ROOM | {"b2": 999}, (A0, A1), (), ((A1,), (A1,))),
    ({"b2": 0, "b3": 0}, (A0,), (A1,), ((), (A0,))),
    ({"b2": 0, "b3": 0}, (), (A1,), ((), (A1,))),
])  # fmt: skip
def test_judged_is_what_starts_or_else_what_would(
    room: dict[str, int], starting: Names, stuck: Names, found: tuple[Names, Names]
) -> None:
    run = with_guard(run_after(*LISTED))
    run.control.pace, run.health.stuck = Pace(disk_reserve=0.0), stuck
    assert disk_admission.take_stock(run, starting, free(**room)) == found


def test_while_something_is_in_flight_nothing_else_is_judged() -> None:
    run = with_guard(run_after(*SUBMITTED, look(5_000, PlacementState.MOVING, MOVES[1], done=400)))
    assert disk_admission.take_stock(run, (), free(b2=0, b3=0)) == ((), ())


def test_what_was_sent_already_needs_no_space_and_takes_it_from_others() -> None:
    both = (move(0, (0, 1), (2, 1)), move(1, (1, 0), (2, 0)))
    run = with_guard(run_after(begun(*both), look(1_000, PlacementState.UNTOUCHED, *both)))
    first, second = (one.topic_partition for one in both)
    assert disk_admission.take_stock(run, (first, second), free(b2=1_000)) == ((first,), (first,))
    run.moves.records[first].status = MoveStatus.SENT
    assert disk_admission.take_stock(run, (first, second), free(b2=999)) == ((first,), (first,))
    assert disk_admission.take_stock(run, (second, first), free(b2=1_999)) == ((second, first), (second, first))


CIRCLE = (move(0, (2, 1), (3, 1)), move(1, (3, 1), (2, 1)), move(2, (2, 1), (4, 1)))
ALL_WAIT = Choice((), tuple(Waiting(one.topic_partition, "no space") for one in CIRCLE))
TOLD = (
    "disks have no space for any of 2 moves: a-0 waits because broker 3 has 20 bytes to promise, and a copy needs 1000"
    "; brokers 2 -> 3 -> 2 wait for each other; free space there, or `kreassign cancel` and replan"
)


def stuck() -> Run:
    """A run of which two moves have no space, and nothing said so yet."""
    run = with_guard(run_after(begun(*CIRCLE), look(1_000, PlacementState.UNTOUCHED, *CIRCLE)))
    run.health.disk_budget = DiskBudget({("destination", 2): 10.0, ("destination", 3): 20.0})
    run.health.stuck = ()
    run.problems.passing = {}
    return run


def test_what_has_no_space_is_named_with_the_brokers_that_wait_for_each_other() -> None:
    run = stuck()
    found = {
        "health.stuck": (CIRCLE[0].topic_partition, CIRCLE[1].topic_partition),
        "problems.passing": {STUCK: {TOLD: PassingProblem(TOLD, 3_000)}},
    }
    assert changed(run, lambda: disk_admission.note_stuck(run, ALL_WAIT, 3_000)) == (None, found)
    # It is not told again with other figures.
    run.health.disk_budget.free["destination", 3] = 30.0
    assert changed(run, lambda: disk_admission.note_stuck(run, ALL_WAIT, 4_000)) == (None, {})
    over = {"health.stuck": (), "problems.passing": {STUCK: {TOLD: PassingProblem(TOLD, 3_000, 5_000)}}}
    freed, begun_again, moving = deepcopy(run), deepcopy(run), deepcopy(run)
    freed.health.disk_budget.free = {}
    moving.moves.index.in_flight = {CIRCLE[0].topic_partition: moving.moves.records[CIRCLE[0].topic_partition]}
    moving.moves.records[CIRCLE[0].topic_partition].status = MoveStatus.MOVING
    starts = Choice((CIRCLE[2].topic_partition,), ALL_WAIT.waiting)
    for one, choice in ((freed, ALL_WAIT), (begun_again, starts), (moving, ALL_WAIT)):
        assert changed(one, partial(disk_admission.note_stuck, one, choice, 5_000)) == (
            None,
            over,
        )


def test_without_a_circle_only_the_space_is_told() -> None:
    run = stuck()
    disk_admission.note_stuck(run, Choice((), ALL_WAIT.waiting[:1]), 3_000)
    ((told,),) = run.problems.passing.values()
    assert told == TOLD.replace("2 moves", "1 moves").replace("; brokers 2 -> 3 -> 2 wait for each other", "")


def test_brokers_whose_directories_are_full_wait_for_each_other_too() -> None:
    named = tuple(replace(one, log_dirs=(LogDirTarget(one.target[0], "/d"),)) for one in CIRCLE[:2])
    run = with_guard(run_after(begun(*named), look(1_000, PlacementState.UNTOUCHED, *named)))
    run.health.disk_budget = DiskBudget({("log_dir", (2, "/d")): 10.0, ("log_dir", (3, "/d")): 20.0})
    run.health.stuck, run.problems.passing = (), {}
    disk_admission.note_stuck(run, Choice((), ALL_WAIT.waiting[:2]), 3_000)
    ((told,),) = run.problems.passing.values()
    assert told == TOLD.replace("broker 3 has", "log directory /d of broker 3 has")


def test_a_circle_is_found_and_a_mere_chain_is_none() -> None:
    assert find_cycle({1: {2}, 2: {3}, 3: {1, 4}}) == (1, 2, 3)
    assert find_cycle({4: {2}, 2: {4}, 1: {2}}) == (2, 4)
    assert find_cycle({1: {2}, 2: {3}}) == ()


def test_what_has_too_few_replicas_in_sync_goes_first(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 4], [2, 3], [0, 1]])
    rig.twin.crash(1)
    rig.twin.advance(60_000)
    started = rig.prepared({0: (2, 4), 1: (0, 3), 2: (3, 0)}, throttle=None)
    assert [one.is_urgent for one in started.moves] == [False, False, True]
    run, _ = machine_after(replace(started, guards=(), pace=Pace(order=Order.NAME)))
    (order,) = run.replay(look(1_000, PlacementState.UNTOUCHED, *started.moves))
    assert list(order.targets) == [tp(2), tp(0), tp(1)]


def test_a_run_fills_no_disk_and_says_what_it_waits_for(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]] * 3, log_dir_bytes=12 * MEGABYTES)
    rig.ask_after(300, lambda at_ms, number: CancelRequested(at_ms, number, is_now=False))
    found = rig.run(rig.prepared(dict.fromkeys(range(3), (4, 1))))
    assert [one.status for one in found.moves] == ["complete", "complete", "cancelled"]
    (story,) = [problem for problem in found.problems if "disks have no space" in problem]
    assert "t-2 waits because broker 4 has 2800000 bytes to promise, and a copy needs 10000000" in story
