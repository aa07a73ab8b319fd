"""However a run ends, every throttle has again the value that it had before, also one that somebody else had set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kreassign.executor.cluster.readings import partitions_of
from kreassign.executor.events import CancelRequested, HoldRequested, ReleaseRequested, ThrottleRequested
from kreassign.executor.guards import GuardName, Reaction
from kreassign.executor.history.run_history import rollback_plan
from kreassign.executor.preflight import RunSettings, prepare
from kreassign.model import ConfigResource, throttle
from kreassign.model.pace import AtWindowEnd, Pace, Schedule
from kreassign.model.run import RunHistory
from kreassign.twin.controller.decision import Decision
from kreassign.twin.metadata import ConfigChanged
from tests.executor.twin_runs import RATE, TwinRig, pace

pytestmark = pytest.mark.thorough

AWAY = {0: (2, 1), 1: (3, 0), 2: (2, 1)}
SLOW = RATE // 2
THEIRS = {
    "topic t leader.replication.throttled.replicas": "7:4",
    "topic t follower.replication.throttled.replicas": "",
    "broker 0 leader.replication.throttled.rate": "7000000",
    "broker 2 follower.replication.throttled.rate": "1",
    "broker 4 follower.replication.throttled.rate": "9",
}
"""What is set before the run; of broker 3 nothing is, and broker 4 has no part in it."""


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    found = TwinRig(tmp_path, [[0, 1], [1, 0], [0, 1]])
    topic, broker = ConfigResource.topic("t"), ConfigResource.broker
    records = (
        ConfigChanged(topic, throttle.LEADER_THROTTLED_REPLICAS, "7:4"),
        ConfigChanged(topic, throttle.FOLLOWER_THROTTLED_REPLICAS, ""),
        ConfigChanged(broker(0), throttle.LEADER_THROTTLED_RATE, "7000000"),
        ConfigChanged(broker(2), throttle.FOLLOWER_THROTTLED_RATE, "1"),
        ConfigChanged(broker(4), throttle.FOLLOWER_THROTTLED_RATE, "9"),
    )
    found.twin.commit(Decision(records, None))
    assert found.throttles == THEIRS
    return found


def run_slowly(rig: TwinRig) -> RunHistory:
    return rig.run(rig.prepared(AWAY, throttle=SLOW))


def done(rig: TwinRig) -> RunHistory:
    return run_slowly(rig)


def cancelled_gracefully(rig: TwinRig) -> RunHistory:
    rig.ask_after(3, lambda at_ms, number: CancelRequested(at_ms, number, is_now=False))
    return rig.run(rig.prepared(AWAY, throttle=SLOW, pace=pace(moves=1)))


def cancelled_now(rig: TwinRig) -> RunHistory:
    rig.ask_after(3, lambda at_ms, number: CancelRequested(at_ms, number, is_now=True))
    return run_slowly(rig)


def cancelled_before_it_moved(rig: TwinRig) -> RunHistory:
    return rig.run(
        rig.prepared(AWAY, throttle=SLOW),
        lambda number: HoldRequested(0, number),
        lambda number: CancelRequested(0, number, is_now=False),
    )


def held_and_released(rig: TwinRig) -> RunHistory:
    started = rig.prepared(AWAY, throttle=SLOW)
    rig.ask_after(8, ReleaseRequested)
    return rig.run(started, lambda number: HoldRequested(0, number))


def throttled_otherwise(rig: TwinRig) -> RunHistory:
    rig.ask_after(3, lambda at_ms, number: ThrottleRequested(at_ms, number, RATE))
    return run_slowly(rig)


def throttled_no_more(rig: TwinRig) -> RunHistory:
    rig.ask_after(3, lambda at_ms, number: ThrottleRequested(at_ms, number, None))
    return run_slowly(rig)


def stopped_before_it_moved(rig: TwinRig) -> RunHistory:
    rig.stop_after(2)
    return rig.run(rig.prepared(AWAY, throttle=SLOW), lambda number: HoldRequested(0, number))


def stopped_and_resumed(rig: TwinRig) -> RunHistory:
    rig.stop_after(5)
    assert run_slowly(rig).state == "paused"
    assert rig.throttles != THEIRS
    return rig.resume()


def failed_with_a_dead_destination(rig: TwinRig) -> RunHistory:
    rig.after(4, lambda: rig.twin.crash(3))
    rig.after(95, lambda: rig.twin.start(3))
    return run_slowly(rig)


def ended_by_a_guard(rig: TwinRig) -> RunHistory:
    rig.after(3, lambda: rig.twin.crash(4))
    return rig.run(rig.prepared(AWAY, throttle=SLOW // 4, guards={GuardName.BROKER: Reaction.CANCEL}))


def ended_by_its_deadline(rig: TwinRig) -> RunHistory:
    started = rig.prepared(AWAY, throttle=SLOW, pace=pace(moves=1))
    hours = Schedule(deadline_ms=started.at_ms + 30_000, at_end=AtWindowEnd.CANCEL)
    return rig.run(replace(started, pace=replace(started.pace, hours=hours)))


def done_in_steps(rig: TwinRig) -> RunHistory:
    return rig.run(rig.prepared({0: (2, 3)}, throttle=SLOW, pace=Pace(is_stepwise=True)))


def cancelled_in_steps(rig: TwinRig) -> RunHistory:
    rig.ask_after(25, lambda at_ms, number: CancelRequested(at_ms, number, is_now=True))
    return rig.run(rig.prepared({0: (2, 3)}, throttle=SLOW, pace=Pace(is_stepwise=True)))


def ended_by_a_guard_to_be_undone(rig: TwinRig) -> RunHistory:
    rig.after(3, lambda: rig.twin.crash(4))
    found = rig.run(rig.prepared(AWAY, throttle=SLOW // 4, guards={GuardName.BROKER: Reaction.ROLLBACK}))
    assert found.wants_rollback
    return found


def rolled_back(rig: TwinRig) -> RunHistory:
    found = run_slowly(rig)
    back = rollback_plan(found.moves, partitions_of(rig.client.describe_topics(["t"]).ok))
    settings = RunSettings("run-2", rig.transport.now_ms(), throttle.ThrottleRates(SLOW))
    return rig.run(rig.as_found(prepare(rig.client, back.plan, settings, expected=back.expected)))


@pytest.mark.parametrize(
    ("end", "state"),
    [
        (done, "done"),
        (held_and_released, "done"),
        (throttled_otherwise, "done"),
        (throttled_no_more, "done"),
        (stopped_and_resumed, "done"),
        (done_in_steps, "done"),
        (rolled_back, "done"),
        (cancelled_gracefully, "cancelled"),
        (cancelled_now, "cancelled"),
        (cancelled_before_it_moved, "cancelled"),
        (cancelled_in_steps, "cancelled"),
        (ended_by_a_guard, "cancelled"),
        (ended_by_a_guard_to_be_undone, "cancelled"),
        (ended_by_its_deadline, "failed"),  # what no time was left for
        (failed_with_a_dead_destination, "failed"),
        (stopped_before_it_moved, "paused"),
    ],
)
def test_nothing_is_left_of_the_throttle(rig: TwinRig, end: Callable[[TwinRig], RunHistory], state: str) -> None:
    found = end(rig)
    assert (found.state, found.throttle_residue) == (state, ())
    assert rig.throttles == THEIRS
