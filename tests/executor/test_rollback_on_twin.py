"""Rollback of a run on a twin: copies, and the order of replicas."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.executor.cluster.readings import partitions_of
from kreassign.executor.events import CancelRequested
from kreassign.executor.history.run_history import RollbackPlan, rollback_plan
from kreassign.executor.preflight import RunSettings, prepare
from kreassign.model.run import RunHistory
from kreassign.model.throttle import ThrottleRates
from tests.executor.twin_runs import RATE, TwinRig

pytestmark = pytest.mark.thorough

HOME = {0: (0, 1), 1: (1, 0), 2: (0, 1)}
AWAY = {0: (2, 3), 1: (0, 1), 2: (1, 2)}


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    return TwinRig(tmp_path, [list(replicas) for replicas in HOME.values()])


def back_from(rig: TwinRig, done: RunHistory) -> RollbackPlan:
    return rollback_plan(done.moves, partitions_of(rig.client.describe_topics(["t"]).ok))


def undo(rig: TwinRig, back: RollbackPlan) -> RunHistory:
    settings = RunSettings("run-2", rig.transport.now_ms(), ThrottleRates(RATE))
    return rig.run(prepare(rig.client, back.plan, settings, expected=back.expected))


def test_rollback_restores_the_same_replicas_in_order(rig: TwinRig) -> None:
    done = rig.run(rig.prepared(AWAY, throttle=None))
    assert rig.replicas == AWAY
    back = back_from(rig, done)
    assert (back.copy_count, back.copied_bytes) == (3, 30 * RATE)
    assert undo(rig, back).state == "done"
    assert (rig.replicas, rig.throttles) == (HOME, {})


def test_a_run_that_was_cancelled_half_way_is_undone_in_what_it_did(rig: TwinRig) -> None:
    # The order of partition 1 has changed by then, the copies of the others are thrown away.
    rig.ask_after(4, lambda at_ms, number: CancelRequested(at_ms, number, is_now=True))
    done = rig.run(rig.prepared(AWAY, throttle=RATE // 4))
    assert done.state == "cancelled"
    back = back_from(rig, done)
    assert back.copy_count == 0
    assert undo(rig, back).state == "done"
    assert (rig.replicas, rig.throttles) == (HOME, {})
