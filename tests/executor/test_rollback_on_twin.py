"""What a run really did is undone by another one, on a twin: copies, and the order of replicas."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.executor.cluster.queries import partitions_of
from kreassign.executor.events import CancelRequested
from kreassign.executor.history.rollback_plan import RollbackPlan, rollback_plan
from kreassign.executor.history.run_history import RunHistory
from kreassign.executor.preflight.prepare import RunSettings, prepare
from kreassign.executor.throttle.rates import ThrottleRates
from tests.executor.twin_runs import RATE, World

HOME = {0: (0, 1), 1: (1, 0), 2: (0, 1)}
AWAY = {0: (2, 3), 1: (0, 1), 2: (1, 2)}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, [list(replicas) for replicas in HOME.values()])


def back_from(world: World, done: RunHistory) -> RollbackPlan:
    return rollback_plan(done.moves, partitions_of(world.client.describe_topics(["t"])))


def undo(world: World, back: RollbackPlan) -> RunHistory:
    settings = RunSettings("run-2", world.transport.now_ms(), ThrottleRates(RATE))
    return world.run(prepare(world.client, back.plan, settings, expected=back.expected))


def test_a_run_that_was_done_is_undone_to_the_same_replicas_in_the_same_order(world: World) -> None:
    done = world.run(world.prepared(AWAY, throttle=None))
    assert world.replicas == AWAY
    back = back_from(world, done)
    assert (back.copy_count, back.copied_bytes) == (3, 30 * RATE)
    assert undo(world, back).state == "done"
    assert (world.replicas, world.throttles) == (HOME, {})


def test_a_run_that_was_cancelled_half_way_is_undone_in_what_it_did(world: World) -> None:
    # The order of partition 1 has changed by then, the copies of the others are thrown away.
    world.ask_after(4, lambda at_ms, number: CancelRequested(at_ms, number, is_now=True))
    done = world.run(world.prepared(AWAY, throttle=RATE // 4))
    assert done.state == "cancelled"
    back = back_from(world, done)
    assert back.copy_count == 0
    assert undo(world, back).state == "done"
    assert (world.replicas, world.throttles) == (HOME, {})
