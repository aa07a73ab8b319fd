"""Parts that cannot be undone now are named; the rest is undone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kreassign.errors import ClusterBusy, Drifted
from kreassign.executor.events import Event, MovesSubmitted
from kreassign.executor.preflight import RunSettings, prepare
from kreassign.executor.state import RunView
from kreassign.executor.throttle_ledger import FoundThrottles
from kreassign.model import ConfigChange, ConfigResource
from kreassign.model.pace import NO_LIMITS, Order
from kreassign.model.plan import ANY_LOG_DIR, PartitionAssignment, Plan
from kreassign.model.throttle import BrokerRate
from kreassign.operations.rollback import (
    RollbackRequest,
    done_since,
    end_run_to_undo,
    plan_rollback,
    preview_rollback,
    preview_rollback_run,
    rollback_sentences,
    start_rollback,
)
from kreassign.operations.run import RunContext
from kreassign.twin.faults import inject
from tests.executor.twin_runs import RATE, TwinRig, pace, tp

HOME = ((0, 1), (1, 0), (0, 1))


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    return TwinRig(tmp_path, [list(replicas) for replicas in HOME])


def test_a_partition_without_a_leader_is_named_and_the_others_go_back(rig: TwinRig) -> None:
    two = [ConfigChange.set("min.insync.replicas", "2")]
    rig.client.incremental_alter_configs({ConfigResource.topic("t"): two}).raise_if_any()
    done = rig.run(rig.prepared({0: (2, 0), 1: (1,)}, throttle=None, allows_factor_change=True))
    # Its only replica is killed, and is not led again when that is back: those that it had before are eligible still.
    rig.twin.crash(1)
    rig.twin.advance(60_000)
    rig.twin.start(1)
    rig.twin.advance(60_000)
    back = plan_rollback(rig.client, done)
    assert back.plan.assignments == (PartitionAssignment(tp(0), HOME[0], (ANY_LOG_DIR,) * 2),)
    (left,) = back.skipped
    assert left.startswith("t-1: it has no leader, so nothing can be copied to [0]: bring back one of its replicas [1]")


def test_the_run_that_changed_a_partition_since_is_named(rig: TwinRig) -> None:
    done = rig.run(rig.prepared({0: (2, 0), 1: (2, 1)}, throttle=None))
    since = rig.run(replace(rig.prepared({0: (3, 1)}, throttle=None), run_id="run-2"))
    latest = rig.run(replace(rig.prepared({2: (3, 1)}, throttle=None), run_id="run-3"))
    for later, why in (
        ((latest, since), "as run run-2 left it since; roll back that run first"),
        ((latest,), "changed since by somebody else; look at it"),
    ):
        back = plan_rollback(rig.client, done, later=later)
        assert back.skipped == (f"t-0: its replicas are [3, 1], {why}",)
        assert [entry.topic_partition for entry in back.plan.assignments] == [tp(1)]


def test_moves_in_flight_of_the_run_to_undo_are_not_of_others(rig: TwinRig) -> None:
    rig.stop_after(5)
    left = rig.run(rig.prepared({0: (2, 0), 1: (2, 1)}))
    assert left.ended_ms is None
    seen = preview_rollback(rig.client, RollbackRequest("run-1"), RunContext(rig.state_dir))
    assert (seen.in_flight, seen.plan.skipped) == (2, ())


def one_done_one_in_flight(rig: TwinRig) -> None:
    """Leave a run of two moves, the second of which is in flight."""
    started = rig.prepared({0: (2, 0), 1: (2, 1)}, pace=pace(Order.NAME, moves=1))

    def listen(event: Event, _: RunView) -> None:
        if isinstance(event, MovesSubmitted) and tp(1) in event.accepted and rig.runner is not None:
            rig.runner.request_stop()

    rig.listener = listen
    assert rig.run(started).state == "paused"


def test_a_change_since_the_preview_of_a_run_that_went_on_is_refused(rig: TwinRig) -> None:
    one_done_one_in_flight(rig)
    request, context = RollbackRequest("run-1"), RunContext(rig.state_dir)
    seen = preview_rollback(rig.client, request, context)
    assert [*seen.plan.plan.replicas] == [tp(0)]
    rig.client.alter_partition_reassignments({tp(0): (3, 4)}).raise_if_any()
    rig.transport.sleep(60)
    prepared = end_run_to_undo(rig.client, request, context, rig.transport)
    told = "run run-1 has ended [(]failed[)], and is not undone: nothing was started: t-0 changed since the preview"
    with pytest.raises(Drifted, match=told):
        start_rollback(rig.client, prepared, request, context, rig.transport, seen=seen)
    assert rig.replicas[0] == (3, 4)


def test_a_step_that_the_run_made_since_the_preview_goes_back(rig: TwinRig) -> None:
    started = rig.prepared({0: (2, 3)}, throttle=None, pace=replace(NO_LIMITS, is_stepwise=True))

    def listen(_: Event, view: RunView) -> None:
        if view.records[tp(0)].step.original not in {HOME[0], (2, 3)} and rig.runner is not None:
            rig.runner.request_stop()

    rig.listener = listen
    assert rig.run(started).state == "paused"
    rig.listener = None
    request, context = RollbackRequest("run-1"), RunContext(rig.state_dir)
    seen = preview_rollback(rig.client, request, context)
    assert [*seen.plan.expected.values()] == [(0, 2)]
    assert rig.resume().state == "done"
    prepared = end_run_to_undo(rig.client, request, context, rig.transport)
    assert done_since(seen, prepared) == "run run-1 went on since the preview: t-0 moves back further than shown"
    start_rollback(rig.client, prepared, request, context, rig.transport, seen=seen)
    assert rig.replicas[0] == HOME[0]


def test_what_the_run_did_since_the_preview_goes_back_and_is_told(rig: TwinRig) -> None:
    one_done_one_in_flight(rig)
    request, context = RollbackRequest("run-1"), RunContext(rig.state_dir)
    seen = preview_rollback(rig.client, request, context)
    rig.transport.sleep(60)
    prepared = end_run_to_undo(rig.client, request, context, rig.transport)
    assert done_since(seen, prepared) == "run run-1 went on since the preview: t-1 moves back, too"
    undone = start_rollback(rig.client, prepared, request, context, rig.transport, seen=seen)
    assert undone.run is not None
    assert {number: rig.replicas[number] for number in (0, 1)} == {0: HOME[0], 1: HOME[1]}


def test_a_rollback_removes_no_throttle_of_a_run_that_goes_on(rig: TwinRig) -> None:
    started = rig.prepared({0: (2, 0), 1: (2, 1)}, pace=pace(Order.NAME, moves=1))
    request = RollbackRequest("run-1", found=FoundThrottles.REMOVE)
    refused: list[dict[str, str]] = []

    def listen(event: Event, _: RunView) -> None:
        if isinstance(event, MovesSubmitted) and tp(1) in event.accepted:
            context, before = RunContext(rig.state_dir), rig.throttles
            seen = preview_rollback(rig.client, request, context)
            with pytest.raises(ClusterBusy, match="run run-1 is active on this cluster"):
                start_rollback(rig.client, seen, request, context, rig.transport)
            assert rig.throttles == before
            refused.append(before)

    rig.listener = listen
    assert rig.run(started).state == "done"
    assert len(refused) == 1
    assert refused[0]


def test_a_rate_of_the_run_for_a_broker_that_is_down_refuses_nothing(rig: TwinRig) -> None:
    rig.run(rig.prepared({0: (2, 1)}, per_broker=(BrokerRate(2, RATE), BrokerRate(3, RATE))))
    rig.twin.stop(3)
    rig.transport.sleep(60)
    request, context = RollbackRequest("run-1"), RunContext(rig.state_dir)
    ahead = preview_rollback_run(rig.client, preview_rollback(rig.client, request, context), request, context)
    assert ahead is not None
    assert ahead.rates.per_broker == (BrokerRate(2, RATE),)


def test_a_copy_whose_old_directory_failed_is_named_others_go_back(rig: TwinRig) -> None:
    there, elsewhere = (one.path for one in rig.twin.metadata.brokers[0].log_dirs[:2])
    plan = Plan((PartitionAssignment(tp(0), HOME[0], (elsewhere, ANY_LOG_DIR)), PartitionAssignment(tp(1), (1, 2))))
    done = rig.run(prepare(rig.client, plan, RunSettings("run-1", rig.transport.now_ms())))
    inject(rig.twin, f"fail:0:{there}")
    back = plan_rollback(rig.client, done)
    assert back.plan.assignments == (PartitionAssignment(tp(1), HOME[1], (ANY_LOG_DIR,) * 2),)
    (left,) = back.skipped
    assert left.startswith(f"t-0: log directory {there} of broker 0 is offline")


def test_a_list_that_others_put_back_in_their_order_is_left(rig: TwinRig) -> None:
    done = rig.run(rig.prepared({0: (2, 1), 1: (2, 0)}, throttle=None))
    rig.client.alter_partition_reassignments({tp(0): (1, 0)}).raise_if_any()
    rig.transport.sleep(60)
    back = plan_rollback(rig.client, done)
    assert back.skipped == ("t-0: its replicas are [1, 0], changed since by somebody else; look at it",)
    assert [entry.topic_partition for entry in back.plan.assignments] == [tp(1)]


def test_a_partition_that_others_moved_is_not_said_to_be_back(rig: TwinRig) -> None:
    started = rig.prepared({0: (2, 1)}, throttle=None)
    rig.client.alter_partition_reassignments({tp(0): (2, 1)}).raise_if_any()
    rig.transport.sleep(60)
    done = rig.run(started)
    assert (done.state, rig.replicas[0]) == ("done", (2, 1))
    (said,) = rollback_sentences(preview_rollback(rig.client, RollbackRequest("run-1"), RunContext(rig.state_dir)))
    unmoved = "nothing moves back, for every partition that the run moved is where it was before"
    assert said == f"rollback of run run-1: {unmoved}"


def test_a_later_run_with_the_same_target_is_not_undone(rig: TwinRig) -> None:
    done = rig.run(rig.prepared({0: (2, 1)}, throttle=None))
    undone = rig.run(replace(rig.prepared({0: HOME[0]}, throttle=None), run_id="run-2"))
    again = rig.run(replace(rig.prepared({0: (2, 1)}, throttle=None), run_id="run-3"))
    back = plan_rollback(rig.client, done, later=(again, undone))
    assert back.plan.assignments == ()
    assert back.skipped == ("t-0: its replicas are [2, 1], as run run-3 left it since; roll back that run first",)
    assert plan_rollback(rig.client, again, later=()).plan.assignments[0].replicas == HOME[0]


def test_the_run_that_left_a_list_is_found_however_many_came_after(rig: TwinRig) -> None:
    lists = [{0: (2, 1)}, {0: HOME[0]}, {0: (2, 1)}, *({1: (2, 0)}, {1: HOME[1]}) * 11]
    for number, targets in enumerate(lists):
        rig.run(replace(rig.prepared(targets, throttle=None), run_id=f"run-{number:02}"))
    warnings: list[str] = []
    context = RunContext(rig.state_dir, warn=warnings.append)
    seen = preview_rollback(rig.client, RollbackRequest("run-00"), context)
    assert seen.plan.skipped == ("t-0: its replicas are [2, 1], as run run-02 left it since; roll back that run first",)
    assert warnings == []


def test_a_copy_whose_new_directory_failed_is_named(rig: TwinRig) -> None:
    there, elsewhere = (one.path for one in rig.twin.metadata.brokers[0].log_dirs[:2])
    plan = Plan((PartitionAssignment(tp(0), HOME[0], (elsewhere, ANY_LOG_DIR)),))
    done = rig.run(prepare(rig.client, plan, RunSettings("run-1", rig.transport.now_ms())))
    inject(rig.twin, f"fail:0:{elsewhere}")
    back = plan_rollback(rig.client, done)
    assert back.plan.assignments == ()
    (left,) = back.skipped
    assert left.startswith(f"t-0: no directory of broker 0 shows its copy, which was in {there}: the broker is down")


@pytest.mark.parametrize("behind", range(3))
def test_a_change_since_is_seen_beside_a_broker_behind(rig: TwinRig, behind: int) -> None:
    done = rig.run(rig.prepared({0: (2, 1)}, throttle=None))
    rig.twin.views.hold_back(behind)
    rig.client.alter_partition_reassignments({tp(0): (3, 1)}).raise_if_any()
    rig.transport.sleep(60)
    back = plan_rollback(rig.client, done)
    assert back.skipped == ("t-0: its replicas are [3, 1], changed since by somebody else; look at it",)


@pytest.mark.parametrize("behind", range(3))
def test_a_broker_is_left_out_only_where_two_say_that_it_is_down(tmp_path: Path, behind: int) -> None:
    rig = TwinRig(tmp_path, [[3, 1]])
    done = rig.run(rig.prepared({0: (2, 1)}, throttle=None))
    rig.twin.stop(3)
    rig.transport.sleep(60)
    rig.twin.views.hold_back(behind)
    rig.twin.start(3)
    rig.transport.sleep(60)
    back = plan_rollback(rig.client, done)
    assert ([one.replicas for one in back.plan.assignments], back.skipped) == ([(3, 1)], ())
