"""The same plan given to `run` again: after it was executed, and after its run was cancelled half way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kreassign.errors import IllegalPlan, PlanIsMet
from kreassign.executor.events import CancelRequested
from kreassign.executor.journal import post_request
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.throttle import ThrottleRates
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.run import RunContext, RunRequest, prepare_run
from tests.executor.twin_runs import RATE, TwinRig, pace, tp

LISTS = [[0, 1], [1, 0], [2, 3]]
TARGETS = {0: (2, 1), 1: (2, 0)}
PLAN = PlanFile(
    Plan(tuple(PartitionAssignment(tp(number), target) for number, target in TARGETS.items())),
    {tp(number): tuple(LISTS[number]) for number in TARGETS},
)


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    return TwinRig(tmp_path, LISTS)


ASKED = RunRequest(PLAN, ThrottleRates(RATE), pace=pace(moves=1), measure_for_s=0)


def test_a_plan_that_was_executed_names_its_run(rig: TwinRig) -> None:
    started = prepare_run(rig.client, ASKED, RunContext(rig.state_dir), rig.transport)
    assert rig.run(started).state == "done"
    by = f"the plan was already executed by run {started.run_id}: "
    unsaid = replace(ASKED, plan=PlanFile(PLAN.plan))  # as without its facts file
    for state_dir, request, words in (
        (rig.state_dir, ASKED, by),
        (rig.state_dir, unsaid, by),
        (rig.state_dir / "b", unsaid, ""),
    ):
        with pytest.raises(PlanIsMet, match=f"^{words}every partition is where the plan puts it"):
            prepare_run(rig.client, request, RunContext(state_dir), rig.transport)


def test_a_plan_of_a_cancelled_run_is_run_on(rig: TwinRig) -> None:
    started = prepare_run(rig.client, ASKED, RunContext(rig.state_dir), rig.transport)
    due_ms = rig.transport.now_ms() + 15_000
    path = rig.path(started.run_id)
    rig.after(15, lambda: post_request(path, lambda number: CancelRequested(due_ms, number, is_now=True)))
    assert rig.run(started).state == "cancelled"
    assert sorted(rig.replicas[number] == target for number, target in TARGETS.items()) == [False, True]
    again = prepare_run(rig.client, ASKED, RunContext(rig.state_dir), rig.transport)
    assert sum(bool(move.adding) for move in again.moves) == 1
    assert rig.run(again).state == "done"


def test_a_plan_from_which_another_run_moved_on_is_stale(rig: TwinRig) -> None:
    started = prepare_run(rig.client, ASKED, RunContext(rig.state_dir), rig.transport)
    assert rig.run(started).state == "done"
    assert rig.run(rig.prepared({0: (3, 1)})).state == "done"
    with pytest.raises(IllegalPlan, match=r"t-0: its replicas are \[3, 1\]"):
        prepare_run(rig.client, ASKED, RunContext(rig.state_dir), rig.transport)
