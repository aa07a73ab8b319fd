"""Others reassign a partition of the plan to the very target that the run has for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kreassign.errors import IllegalPlan
from kreassign.executor import events
from kreassign.executor.cluster.readings import partitions_of
from kreassign.executor.guards import DEFAULTS, GuardName, Reaction
from kreassign.executor.history.run_history import RollbackPlan, rollback_plan
from kreassign.executor.state import RunView
from kreassign.model import TopicPartition
from kreassign.model.error_codes import NOT_CONTROLLER
from kreassign.model.pace import NO_LIMITS
from kreassign.model.run import RunHistory
from tests.executor.deaths import die
from tests.executor.odd_port import OddPort, each_refused
from tests.executor.twin_runs import RATE, TwinRig, pace, tp

pytestmark = pytest.mark.thorough

HOME = [[0, 1], [1, 0]]
TARGETS = {0: (0, 2), 1: (1, 3)}
THEIRS, OURS = tp(0), tp(1)
FAST = 5 * RATE
STEPWISE = replace(NO_LIMITS, is_stepwise=True)
MOVED = "t-0 was moved by someone else, as the plan does"
BEGUN_AGAIN = "t-0 was reassigned by someone else after the run had cancelled it; that is left alone"
MOVES = "t-0 is moved by someone else, as the plan does; the run leaves that alone until it ends"


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    """A rig whose copies take ten seconds at the throttle of the run."""
    rig = TwinRig(tmp_path, HOME, size_bytes=50 * RATE)
    rig.end_within(600)
    return rig


def begin(rig: TwinRig) -> None:
    """Begin their move, as another tool does."""
    rig.client.alter_partition_reassignments({THEIRS: TARGETS[0]}).raise_if_any()


def moving(rig: TwinRig) -> set[TopicPartition]:
    return set(rig.client.list_partition_reassignments())


def cancel_after(rig: TwinRig, seconds: float) -> None:
    rig.ask_after(seconds, lambda at_ms, number: events.CancelRequested(at_ms, number, is_now=True))


def way_back(rig: TwinRig, run: RunHistory) -> RollbackPlan:
    return rollback_plan(run.moves, partitions_of(rig.client.describe_topics(["t"]).ok))


def undone(rig: TwinRig, run: RunHistory) -> set[TopicPartition]:
    """Partitions that a rollback would move back."""
    return set(way_back(rig, run).plan.replicas)


def throttled(rig: TwinRig) -> set[str]:
    """Entries that the run put on lists of throttled replicas."""
    overrides = (one for event in rig.seen if isinstance(event, events.ThrottleIntended) for one in event.overrides)
    return {entry for one in overrides if one.is_list for entry in (one.value or "").split(",") if entry}


def stall(rig: TwinRig) -> None:
    """Keep their copy from ending: stop the broker that gets it."""
    rig.twin.stop(2)


def run_beside(rig: TwinRig, *, stalled_s: float = 40, **settings: Any) -> RunHistory:
    """A run while others move a partition of its plan, a copy that ends only after `stalled_s`."""
    started = rig.prepared(TARGETS, throttle=FAST, **settings)
    stall(rig)
    begin(rig)
    rig.after(stalled_s, lambda: rig.twin.start(2))
    return rig.run(started)


def test_a_move_that_others_began_before_the_run_is_refused(rig: TwinRig) -> None:
    begin(rig)
    with pytest.raises(IllegalPlan, match="being reassigned already"):
        rig.prepared(TARGETS)


def test_a_cancel_leaves_a_move_that_others_began_first(rig: TwinRig) -> None:
    started = rig.prepared(TARGETS, throttle=FAST)
    stall(rig)
    begin(rig)
    cancel_after(rig, 6)
    run = rig.run(started)
    assert (run.state, moving(rig)) == ("cancelled", {THEIRS})
    assert THEIRS not in undone(rig, run)
    assert any(MOVES in problem for problem in run.problems)
    assert throttled(rig) == {"1:0", "1:1", "1:3"}
    assert rig.throttles == {}


def test_a_run_waits_for_a_move_of_others_and_does_the_rest(rig: TwinRig) -> None:
    run = run_beside(rig)
    assert (run.state, rig.replicas, undone(rig, run)) == ("done", TARGETS, {OURS})
    assert MOVED in run.problems
    assert [move.bytes_copied for move in run.moves if move.topic_partition == THEIRS] == [0]
    assert throttled(rig) == {"1:0", "1:1", "1:3"}


@pytest.mark.parametrize("is_stepwise", [False, True])
def test_a_move_others_made_before_it_was_sent_has_no_bytes_of_ours(rig: TwinRig, is_stepwise: bool) -> None:
    started = rig.prepared(TARGETS, throttle=FAST, pace=replace(NO_LIMITS, is_stepwise=is_stepwise))
    begin(rig)
    rig.transport.sleep(120)
    run = rig.run(started)
    assert (run.state, rig.replicas, undone(rig, run)) == ("done", TARGETS, {OURS})
    assert [move.bytes_copied for move in run.moves] == [0, 50 * RATE]
    assert run.problems == (MOVED,)


def test_a_step_that_others_made_has_no_bytes_of_ours(rig: TwinRig) -> None:
    step, target = (0, 1, 2), (0, 1, 2, 3)
    started = rig.prepared({0: target}, throttle=FAST, pace=STEPWISE)
    rig.client.alter_partition_reassignments({THEIRS: step}).raise_if_any()
    rig.transport.sleep(120)
    run = rig.run(started)
    assert (run.state, rig.replicas[0]) == ("done", target)
    assert [move.bytes_copied for move in run.moves] == [50 * RATE]
    assert way_back(rig, run).plan.replicas == {THEIRS: step}


def test_a_rollback_leaves_a_list_whose_last_step_others_made(rig: TwinRig) -> None:
    target = (3, 2)
    started = rig.prepared({0: target}, throttle=FAST, pace=STEPWISE)
    rig.ask_after(5, events.HoldRequested)
    rig.between_steps(25, lambda: rig.client.alter_partition_reassignments({THEIRS: target}).raise_if_any())
    run = rig.run(started)
    assert (run.state, rig.replicas[0], [move.bytes_copied for move in run.moves]) == ("done", target, [50 * RATE])
    left = "t-0: its replicas are [3, 2]; someone else made that list during the run, look at it"
    assert (way_back(rig, run).plan.assignments, way_back(rig, run).skipped) == ((), (left,))


def test_a_move_of_others_to_a_lost_broker_is_not_planned_again(rig: TwinRig) -> None:
    run = run_beside(rig, stalled_s=200, replans=True)
    assert (run.state, rig.replicas) == ("done", TARGETS)
    assert MOVED in run.problems


def test_a_run_sends_a_move_that_others_cancelled(rig: TwinRig) -> None:
    started = rig.prepared(TARGETS, throttle=FAST)
    stall(rig)
    begin(rig)
    rig.between_steps(8, lambda: rig.client.alter_partition_reassignments({THEIRS: None}).raise_if_any())
    rig.after(40, lambda: rig.twin.start(2))
    run = rig.run(started)
    assert (run.state, rig.replicas, undone(rig, run)) == ("done", TARGETS, {THEIRS, OURS})
    assert MOVED not in run.problems


def test_the_guard_holds_a_run_while_others_move_its_partition(rig: TwinRig) -> None:
    guards = {**DEFAULTS, GuardName.FOREIGN_MOVE: Reaction.HOLD}
    run = run_beside(rig, guards=guards)
    assert (run.state, rig.replicas) == ("done", TARGETS)
    (ended,) = (move.ended_ms for move in run.moves if move.topic_partition == THEIRS)
    (sent,) = (move.submitted_ms for move in run.moves if move.topic_partition == OURS)
    assert ended is not None
    assert sent is not None
    assert ended < sent


def refused_once(rig: TwinRig, then: Callable[[], None]) -> events.RunStarted:
    """Prepare a run whose first request the controller refuses for now; `then` happens before the next one."""
    odd = OddPort(rig.client)
    rig.odd_port = odd.port
    started = rig.prepared(TARGETS, throttle=FAST)
    odd.answer("alter_partition_reassignments", each_refused(NOT_CONTROLLER))

    def listen(event: events.Event, _: RunView) -> None:
        if isinstance(event, events.MovesSubmitted) and event.deferred:
            then()

    rig.listener = listen
    return started


def test_a_move_that_kafka_refused_us_and_others_began_is_theirs(rig: TwinRig) -> None:
    def begin_stalled() -> None:
        stall(rig)
        begin(rig)

    started = refused_once(rig, begin_stalled)
    cancel_after(rig, 8)
    run = rig.run(started)
    assert moving(rig) == {THEIRS}
    assert THEIRS not in undone(rig, run)


def cancel_and_begin_again(rig: TwinRig, *, is_stalled: bool, cancelled_s: float = 6) -> RunHistory:
    """A run that cancels its move, which others begin again before the next poll."""
    started = rig.prepared({0: TARGETS[0]}, throttle=FAST)
    if is_stalled:
        rig.let_reach_controllers()  # which take the throttle of the broker that is down
        rig.after(3, lambda: stall(rig))

    def listen(event: events.Event, _: RunView) -> None:
        if isinstance(event, events.MovesCancelled) and event.accepted:
            begin(rig)

    rig.listener = listen
    cancel_after(rig, cancelled_s)
    return rig.run(started)


def test_a_move_that_others_began_again_after_our_cancel_is_theirs(rig: TwinRig) -> None:
    run = cancel_and_begin_again(rig, is_stalled=True)
    assert (run.state, moving(rig), rig.throttles) == ("cancelled", {THEIRS}, {})
    assert BEGUN_AGAIN in run.problems
    assert len([event for event in rig.seen if isinstance(event, events.CancelIntended)]) == 1
    # Its entries go from the lists while it is still looked at.
    assert [event for event in rig.seen if isinstance(event, events.ThrottleIntended)][-1].at_ms < rig.seen[
        -1
    ].at_ms - 10_000
    rig.twin.start(2)
    rig.transport.sleep(120)
    assert (rig.replicas[0], undone(rig, run)) == (TARGETS[0], set())


def test_a_health_check_takes_a_move_begun_again_for_one_of_others(rig: TwinRig) -> None:
    cancel_and_begin_again(rig, is_stalled=True, cancelled_s=25)
    looks = [event.health.foreign_moves for event in rig.seen if isinstance(event, events.HealthObserved)]
    assert looks == [*[()] * (len(looks) - 1), (THEIRS,)]


def test_a_move_that_others_began_again_and_ended_is_theirs(rig: TwinRig) -> None:
    run = cancel_and_begin_again(rig, is_stalled=False)
    assert (run.state, rig.replicas[0], undone(rig, run)) == ("cancelled", TARGETS[0], set())
    assert BEGUN_AGAIN in run.problems


def test_a_list_that_others_made_after_a_cancelled_run_is_not_rolled_back(rig: TwinRig) -> None:
    started = rig.prepared({0: TARGETS[0]}, throttle=FAST)
    cancel_after(rig, 6)
    run = rig.run(started)
    begin(rig)
    rig.transport.sleep(120)
    assert (run.state, rig.replicas[0], undone(rig, run)) == ("cancelled", TARGETS[0], set())


def test_a_target_that_others_made_after_they_cancelled_ours_is_theirs(rig: TwinRig) -> None:
    started = rig.prepared({0: TARGETS[0]}, throttle=FAST)
    rig.between_steps(6, lambda: rig.client.alter_partition_reassignments({THEIRS: None}).raise_if_any())
    run = rig.run(started)
    begin(rig)
    rig.transport.sleep(120)
    assert (run.state, rig.replicas[0], undone(rig, run)) == ("failed", TARGETS[0], set())


def test_a_move_sent_before_death_counts_as_ours_whoever_began_it_again(rig: TwinRig) -> None:
    started = rig.prepared({0: TARGETS[0]}, throttle=FAST)
    die(rig, started, events.MovesSubmitted, is_written=False)
    rig.client.alter_partition_reassignments({THEIRS: None}).raise_if_any()
    begin(rig)
    run = rig.resume()
    assert (run.state, run.problems, rig.replicas[0]) == ("done", (), TARGETS[0])
    assert undone(rig, run) == {THEIRS}


def test_a_leader_that_others_chose_while_the_run_was_held_stays(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]])
    rig.end_within(600)
    rig.ask_after(5, events.HoldRequested)
    for seconds, replicas in ((40, (4, 3)), (80, (3, 4))):
        rig.between_steps(
            seconds, lambda to=replicas: rig.client.alter_partition_reassignments({tp(0): to}).raise_if_any()
        )
    rig.ask_after(100, events.ReleaseRequested)
    found = rig.run(rig.prepared({0: (2, 0), 1: (3, 1)}, pace=pace(moves=1)))
    assert rig.replicas == {0: (3, 4), 1: (3, 1)}
    assert rig.twin.metadata.topics["t"].partitions[0].leader == 4
    assert any("replicas are [3, 4] and not [2, 0]" in problem for problem in found.problems)
