"""Notes on the hours of a run before it begins, and on a journal that is locked."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest

from kreassign.admin import AdminClient
from kreassign.clock import VirtualClock
from kreassign.errors import IllegalPlan, InputError, JournalLocked
from kreassign.executor.events import PlannedMove, RunStarted
from kreassign.executor.lease import LeasePolicy
from kreassign.model import TopicPartition
from kreassign.model.pace import Pace, Schedule, Window
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.throttle import ThrottleRates
from kreassign.operations.journal_waits import LockWatch
from kreassign.operations.maintenance import Way, maintain
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.run import RunContext, RunRequest, new_run_id, prepare_run
from kreassign.operations.run_outlook import warn_of_outlook
from kreassign.twin.cluster import Twin
from tests.executor.odd_port import OddPort, not_reached
from tests.executor.twin_runs import TwinRig

RATE = 12
"""Of which eleven are reached."""


def started(hours: Schedule, *sizes: int, throttle: int | None = RATE) -> RunStarted:
    moves = tuple(PlannedMove(TopicPartition("t", n), (0, 1), (2, 1), size) for n, size in enumerate(sizes))
    return RunStarted(0, "r", "c", moves, ThrottleRates(throttle), (0, 1, 2), pace=Pace(hours=hours))


def test_a_deadline_that_holds_everything_is_passed_over_in_silence() -> None:
    warnings: list[str] = []
    warn_of_outlook(started(Schedule(deadline_ms=100_000), 600, 500), warnings.append)
    warn_of_outlook(started(Schedule(), 10**9), warnings.append)
    warn_of_outlook(started(Schedule(deadline_ms=1), 10**9, throttle=None), warnings.append)
    assert not warnings


def test_a_deadline_that_cannot_be_met_is_warned_of() -> None:
    warnings: list[str] = []
    warn_of_outlook(started(Schedule(deadline_ms=100_000), 600, 501), warnings.append)
    assert warnings[0].startswith("at 11 B/s per broker at most 1 of 2 moves (600 B) end by 1970-01-01 00:01 UTC")


def test_a_plan_of_which_nothing_fits_is_refused() -> None:
    with pytest.raises(IllegalPlan, match="at most 0 of 1 move"):
        warn_of_outlook(started(Schedule(deadline_ms=100_000), 1101))


def test_a_move_that_fits_into_no_window_is_refused() -> None:
    with pytest.raises(IllegalPlan, match=r"no time to come is long enough for 1 move \(t-1\)"):
        warn_of_outlook(started(Schedule((Window(0, 1),)), 600, 661))


def test_a_locked_journal_is_told_once_and_its_end() -> None:
    clock, told = VirtualClock(), list[str]()
    lock = JournalLocked("it cannot be written: process 7 has locked it", "Let it end")
    watch = LockWatch("run 1", "starts nothing", told.append, clock)
    for seconds, is_told in ((0, False), (4, False), (1, True), (60, True)):
        clock.sleep(seconds)
        watch.follow(lock)
        assert bool(told) is is_told
    watch.follow(None)
    watch.follow(lock)
    watch.follow(None)
    assert len(told) == 2, "a short lock is not told"
    assert "holds: it cannot be written: process 7 has locked it. Let it end. Until then it starts nothing" in told[0]
    assert "can be written again, after 65 s" in told[1]


def test_ids_sort_by_time_and_those_of_one_millisecond_differ() -> None:
    begun_ms = 1_801_519_200_000
    ids = [{new_run_id(begun_ms + after_ms) for _ in range(10)} for after_ms in (0, 1, 999)]
    assert [len(of_one) for of_one in ids] == [10] * 3
    assert all(max(before) < min(after) for before, after in pairwise(ids))
    assert all(re.fullmatch(r"20270201T220000Z-[0-9a-f]{8}", name) for of_one in ids for name in of_one)


def test_expected_replicas_have_to_cover_the_plan(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 2]])
    plan = Plan(
        (PartitionAssignment(TopicPartition("t", 0), (0, 2)), PartitionAssignment(TopicPartition("t", 1), (1, 3)))
    )
    context = RunContext(tmp_path, lease=LeasePolicy.OFF, warn=pytest.fail)
    whole = {TopicPartition("t", 0): (0, 1), TopicPartition("t", 1): (1, 2), TopicPartition("u", 0): (1,)}
    for missing in ("t-0", "t-1", "t-0, t-1"):
        expected = {name: replicas for name, replicas in whole.items() if str(name) not in missing}
        request = RunRequest(PlanFile(plan), expected=PlanFile(Plan(), expected))
        with pytest.raises(InputError, match=f"do not name {missing}, which the plan moves"):
            prepare_run(rig.client, request, context, rig.transport)
    request = RunRequest(PlanFile(plan), expected=PlanFile(Plan(), whole))
    assert len(prepare_run(rig.client, request, context, rig.transport).moves) == 2


def controllers_of(rig: TwinRig) -> AdminClient:
    rig.let_reach_controllers()
    assert isinstance(rig.controllers, AdminClient)
    return rig.controllers


ONE_MOVE = RunRequest(PlanFile(Plan((PartitionAssignment(TopicPartition("t", 0), (0, 2)),))))


@pytest.mark.parametrize("ask", [
    lambda rig, context: prepare_run(rig.client, ONE_MOVE, context, rig.transport),
    lambda rig, context: maintain(rig.client, (2,), Way.ENTER, context, clock=rig.transport),
], ids=["a run", "maintenance"])  # fmt: skip
def test_controllers_of_another_cluster_are_refused(
    tmp_path: Path, ask: Callable[[TwinRig, RunContext], object]
) -> None:
    """Also where all brokers are up, so that nothing would be sent to a controller yet: by a dry run, too."""
    rig = TwinRig(tmp_path, [[0, 1]])
    other = TwinRig(tmp_path, [[0, 1]], make_twin=lambda one: Twin(replace(one, cluster_id="other")))
    context = RunContext(tmp_path, controllers=controllers_of(other), lease=LeasePolicy.OFF, warn=pytest.fail)
    with pytest.raises(InputError, match="are those of cluster other, and the brokers of cluster twin; name"):
        ask(rig, context)
    assert ask(rig, replace(context, controllers=controllers_of(rig), warn=lambda _: None))


def test_controllers_that_do_not_answer_are_warned_of(tmp_path: Path) -> None:
    rig, warnings = TwinRig(tmp_path, [[0, 1]]), list[str]()
    odd = OddPort(controllers_of(rig))
    odd.answer("describe_cluster", not_reached)
    context = RunContext(tmp_path, controllers=cast(AdminClient, odd), lease=LeasePolicy.OFF, warn=warnings.append)
    assert prepare_run(rig.client, ONE_MOVE, context, rig.transport)
    assert warnings[0].startswith("the controllers (--bootstrap-controller) could not be asked: could not connect. ")
