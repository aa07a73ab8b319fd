"""With `--replan`, moves whose destination is lost get another one: on a twin, against all that may get in the way.

Brokers 0, 2, 4, 6 are in rack a, the others in rack b.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kreassign.executor.cluster.readings import partitions_of
from kreassign.executor.events import (
    CancelIntended,
    CancelRequested,
    Event,
    LeaseLost,
    LeaseTaken,
    MovesReplanned,
    MovesSubmitted,
    NewTarget,
    SubmissionIntended,
    ThrottleIntended,
    ThrottleRequested,
)
from kreassign.executor.guards import GuardName, Reaction
from kreassign.executor.history.audit_trail import audit_trail
from kreassign.executor.history.run_history import history, rollback_plan
from kreassign.executor.journal import Journal, post_request, read_events
from kreassign.executor.lease import OFFSETS_TOPIC
from kreassign.executor.progress import ProgressMeter
from kreassign.executor.runner import Listener
from kreassign.executor.state import Machine, RunView
from kreassign.executor.state.phases import Replanning
from kreassign.model import Batch, ConfigResource, LogDir, NewTopic
from kreassign.model.error_codes import REQUEST_TIMED_OUT
from kreassign.model.pace import Pace
from kreassign.model.run import Operator, RunHistory
from kreassign.model.throttle import FOLLOWER_THROTTLED_RATE
from kreassign.operations.run_journals import forget_brokers
from kreassign.operations.verify import verify_run
from kreassign.twin.blueprint import Blueprint
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.version import KAFKA_3_7
from tests.approved import approve
from tests.executor.deaths import Died, Dying
from tests.executor.odd_port import Answer, OddPort, Real, not_reached, refusal
from tests.executor.test_foreign_throttle_on_twin import change, clear_all
from tests.executor.test_lease_on_twin import CHANGES, give_up, lease_of, take_over
from tests.executor.twin_runs import RATE, TwinRig, pace, tp
from tests.twin.zookeeper.zookeeper_cluster import zookeeper_twin

pytestmark = pytest.mark.thorough

SLOW = RATE // 8
"""A copy of ten megabytes takes eighty seconds."""

HOME = {0: (0, 1), 1: (1, 0)}
AWAY = {0: (2, 1), 1: (3, 0)}


def new_rig(
    folder: Path,
    replicas: dict[int, tuple[int, ...]] = HOME,
    *,
    brokers: int = 7,
    make_twin: Callable[[Blueprint], Twin] = Twin,
) -> TwinRig:
    rig = TwinRig(folder, [list(one) for one in replicas.values()], brokers=brokers, make_twin=make_twin)
    if rig.twin.controller_id not in rig.twin.processes.ids:
        rig.let_reach_controllers()
    rig.end_within(3_600)
    return rig


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    return new_rig(tmp_path)


def replans(rig: TwinRig) -> list[MovesReplanned]:
    return [event for event in rig.seen if isinstance(event, MovesReplanned)]


def ended(found: RunHistory, rig: TwinRig) -> tuple[str, tuple[str, ...], dict[int, tuple[int, ...]], dict[str, str]]:
    return found.state, found.throttle_residue, rig.replicas, rig.throttles


# --- what it does ---


def test_a_move_to_a_lost_broker_gets_another_destination(rig: TwinRig) -> None:
    rig.after(4, lambda: rig.twin.crash(2))
    found = rig.run(rig.prepared(AWAY, throttle=SLOW, replans=True))
    (replan,) = replans(rig)
    assert (replan.lost, replan.targets, replan.refused) == ((2,), (NewTarget(tp(0), (2, 1), (4, 1)),), ())
    assert ended(found, rig) == ("done", (), {0: (4, 1), 1: (3, 0)}, {})
    assert [move.former_targets for move in found.moves] == [((2, 1),), ()]
    told = "broker 2 was down, so that moves were planned again at 00:01:31 UTC: t-0 to [4, 1] instead of [2, 1]"
    assert told in found.problems


def test_without_it_the_move_is_given_up_as_before_and_the_option_is_named(rig: TwinRig) -> None:
    rig.after(4, lambda: rig.twin.crash(2))
    found = rig.run(rig.prepared(AWAY, throttle=SLOW))
    assert replans(rig) == []
    assert (found.state, set(rig.replicas[0]), rig.replicas[1], rig.throttles) == ("failed", {0, 1}, (3, 0), {})
    approve([found.moves[0].problem], "given-up-without-replan")


def test_a_broker_that_is_back_within_a_minute_keeps_its_moves(rig: TwinRig) -> None:
    rig.after(4, lambda: rig.twin.crash(2))
    rig.after(40, lambda: rig.twin.start(2))
    found = rig.run(rig.prepared(AWAY, throttle=SLOW, replans=True))
    assert replans(rig) == []
    assert ended(found, rig) == ("done", (), AWAY, {})


def test_a_move_that_has_not_begun_is_changed_without_cancelling_anything(rig: TwinRig) -> None:
    rig.after(2, lambda: rig.twin.crash(3))
    found = rig.run(rig.prepared(AWAY, throttle=SLOW // 2, pace=pace(moves=1), replans=True))
    assert ended(found, rig) == ("done", (), {0: (2, 1), 1: (5, 0)}, {})
    assert not any(isinstance(event, CancelIntended) for event in rig.seen)


def test_a_move_in_steps_goes_on_from_the_step_that_it_reached(tmp_path: Path) -> None:
    rig = new_rig(tmp_path, {0: (0, 1)})
    rig.after(100, lambda: rig.twin.crash(2))
    found = rig.run(rig.prepared({0: (3, 2)}, throttle=SLOW, pace=Pace(is_stepwise=True), replans=True))
    assert ended(found, rig) == ("done", (), {0: (3, 4)}, {})
    submitted = [event.at_ms for event in rig.seen if isinstance(event, MovesSubmitted)]
    assert len(submitted) == 3, "the step that was over is not made again"


def test_replicas_that_the_lost_broker_had_do_not_hold_the_run(tmp_path: Path) -> None:
    """Partition 1 is under-replicated by its death, which holds a run that is not to go on without the broker."""
    rig = new_rig(tmp_path, {0: (0, 1), 1: (1, 2)})
    rig.after(4, lambda: rig.twin.crash(2))
    found = rig.run(rig.prepared({0: (2, 1)}, throttle=SLOW, replans=True))
    assert ended(found, rig) == ("done", (), {0: (4, 1), 1: (1, 2)}, {})


def test_a_plan_that_empties_brokers_still_empties_them(tmp_path: Path) -> None:
    """Brokers 0 and 4 are drained, and 4 would be in the right rack."""
    rig = new_rig(tmp_path, {0: (0, 1), 1: (4, 1)})
    rig.after(4, lambda: rig.twin.crash(2))
    found = rig.run(rig.prepared({0: (2, 1), 1: (6, 1)}, throttle=SLOW, replans=True))
    assert ended(found, rig) == ("done", (), {0: (6, 1), 1: (6, 1)}, {})


# --- what gets in the way ---


def test_a_broker_back_after_the_replan_changes_nothing(rig: TwinRig) -> None:
    rig.after(4, lambda: rig.twin.crash(2))
    rig.after(93, lambda: rig.twin.start(2))
    found = rig.run(rig.prepared(AWAY, throttle=SLOW, replans=True))
    assert len(replans(rig)) == 1
    assert ended(found, rig) == ("done", (), {0: (4, 1), 1: (3, 0)}, {})


def test_a_copy_complete_before_its_cancellation_keeps_its_target(tmp_path: Path) -> None:
    """The controller is not reached for a while after the event, and the broker is back by then."""
    rig = new_rig(tmp_path, {0: (0, 1)})
    odd = OddPort(rig.client)
    odd.answer("alter_partition_reassignments", lambda real, *args, **named: real(*args, **named))
    odd.answer("alter_partition_reassignments", *([not_reached] * 60))
    rig.odd_port = odd.port
    rig.after(4, lambda: rig.twin.crash(2))
    rig.after(92, lambda: rig.twin.start(2))
    found = rig.run(rig.prepared({0: (2, 1)}, throttle=RATE, replans=True))
    assert len(replans(rig)) == 1
    assert ended(found, rig) == ("done", (), {0: (2, 1)}, {})
    assert found.moves[0].former_targets == ()
    assert not any("planned again" in problem for problem in found.problems)


def test_the_second_choice_may_die_too(rig: TwinRig) -> None:
    rig.after(4, lambda: rig.twin.crash(2))
    rig.after(100, lambda: rig.twin.crash(4))
    found = rig.run(rig.prepared(AWAY, throttle=SLOW, replans=True))
    assert [event.targets for event in replans(rig)] == [
        (NewTarget(tp(0), (2, 1), (4, 1)),),
        (NewTarget(tp(0), (4, 1), (6, 1)),),
    ]
    assert ended(found, rig) == ("done", (), {0: (6, 1), 1: (3, 0)}, {})
    assert found.moves[0].former_targets == ((2, 1), (4, 1))


def test_a_move_is_given_up_where_no_other_broker_is_left(tmp_path: Path) -> None:
    rig = new_rig(tmp_path, HOME, brokers=4)
    rig.after(4, lambda: rig.twin.crash(2))
    found = rig.run(rig.prepared(AWAY, throttle=SLOW, replans=True))
    assert (found.state, set(rig.replicas[0]), rig.replicas[1], rig.throttles) == ("failed", {0, 1}, (3, 0), {})
    approve([found.moves[0].problem], "given-up-without-another-broker")


def test_a_partition_waits_for_its_only_in_sync_replica_to_replan(tmp_path: Path) -> None:
    rig = new_rig(tmp_path, {0: (2,), 1: (1, 0)})
    rig.after(4, lambda: rig.twin.crash(2))
    rig.after(4, lambda: rig.twin.crash(4))
    rig.after(200, lambda: rig.twin.start(2))
    warned = {GuardName.OFFLINE: Reaction.WARN}
    found = rig.run(rig.prepared({0: (4,), 1: (2, 1)}, throttle=SLOW, guards=warned, replans=True))
    assert [[one.topic_partition for one in event.targets] for event in replans(rig)] == [[tp(1)], [tp(0)]]
    assert replans(rig)[1].at_ms > 200_000
    assert ended(found, rig) == ("done", (), {0: (3,), 1: (6, 1)}, {})


def test_a_partition_without_a_leader_is_not_begun_elsewhere_either(tmp_path: Path) -> None:
    rig = new_rig(tmp_path, {0: (1, 0), 1: (2,)})
    rig.after(1, lambda: rig.twin.crash(2))
    rig.after(1, lambda: rig.twin.crash(4))
    found = rig.run(rig.prepared({0: (3, 0), 1: (4,)}, throttle=SLOW // 2, pace=pace(moves=1), replans=True))
    assert [move.status for move in found.moves] == ["complete", "failed"]
    assert (found.moves[1].problem or "").startswith(
        "its destination broker 4 had been down for 60 s, and no other could be found: it has no leader, so nothing"
    )
    assert rig.replicas == {0: (3, 0), 1: (2,)}


def kafka_3_7(blueprint: Blueprint) -> Twin:
    return Twin(blueprint, TwinSettings(KAFKA_3_7))


@pytest.mark.parametrize("make_twin", [kafka_3_7, zookeeper_twin])
def test_replan_works_without_factor_checks_and_with_zookeeper(
    tmp_path: Path, make_twin: Callable[[Blueprint], Twin]
) -> None:
    rig = new_rig(tmp_path, make_twin=make_twin)
    rig.after(4, lambda: rig.twin.crash(2))
    rig.after(150, lambda: rig.twin.start(2))
    found = rig.run(rig.prepared(AWAY, throttle=SLOW, replans=True))
    assert ended(found, rig) == ("done", (), {0: (4, 1), 1: (3, 0)}, {})


def without_sizes(real: Real, *args: Any, **named: Any) -> Batch[int, tuple[LogDir, ...]]:
    """Brokers tell of their directories, and of no replica in them."""
    found: Batch[int, tuple[LogDir, ...]] = real(*args, **named)
    return Batch({broker: tuple(replace(one, replicas=()) for one in dirs) for broker, dirs in found.ok.items()}, {})


def of_nobody(real: Real, *args: Any, **named: Any) -> Batch[int, tuple[LogDir, ...]]:
    """Answer in which no broker reports its directories."""
    del real, args, named
    return Batch({}, {})


@pytest.mark.parametrize(("answer", "end"), [
    (without_sizes, ("done", (), {0: (4, 1), 1: (3, 0)}, {})),
    (of_nobody, ("failed", (), {0: (1, 0), 1: (3, 0)}, {})),
])  # fmt: skip
def test_sizes_do_not_matter_for_another_destination_but_directories_do(
    rig: TwinRig, answer: Answer, end: tuple[object, ...]
) -> None:
    rig.after(4, lambda: rig.twin.crash(2))
    started = rig.prepared(AWAY, throttle=SLOW, replans=True)
    odd = OddPort(rig.client)
    odd.answer_always("describe_log_dirs", answer)
    rig.let_plan_over(odd)
    found = rig.run(started)
    assert ended(found, rig) == end


@pytest.mark.parametrize(("is_now", "state"), [(True, "cancelled"), (False, "failed")])
def test_a_run_cancelled_during_a_replan_begins_nothing(rig: TwinRig, is_now: bool, state: str) -> None:
    def cancel(number: int) -> CancelRequested:
        return CancelRequested(rig.transport.now_ms(), number, is_now=is_now)

    rig.after(4, lambda: rig.twin.crash(2))
    rig.listener = once_in(Replanning, lambda: post_request(rig.path(), cancel))
    found = rig.run(rig.prepared(AWAY, throttle=SLOW // 2, replans=True))
    kinds = [type(event) for event in rig.seen]
    assert kinds.index(CancelRequested) < kinds.index(MovesReplanned)
    assert [event.partitions for event in rig.seen if isinstance(event, SubmissionIntended)] == [(tp(0), tp(1))]
    assert (found.state, set(rig.replicas[0]), rig.throttles) == (state, {0, 1}, {})
    assert [move.former_targets for move in found.moves] == [(), ()]


def once_in(step: type, deed: Callable[[], object]) -> Listener:
    """Do something once, when the run has come to this step, before anything follows from that."""
    deeds = [deed]

    def note(_: Event, run: RunView) -> None:
        if deeds and run.step == step.__name__:
            deeds.pop()()

    return note


def test_where_nothing_was_found_the_rest_of_the_run_goes_on_all_the_same(tmp_path: Path) -> None:
    """Partition 3 is under-replicated by the death of the broker, which would hold what has not begun."""
    rig = new_rig(tmp_path, {**HOME, 2: (0, 3), 3: (1, 2)}, brokers=4)
    rig.after(2, lambda: rig.twin.crash(2))
    found = rig.run(
        rig.prepared({0: (2, 1), 1: (3, 0), 2: (1, 3)}, throttle=SLOW // 2, pace=pace(moves=1), replans=True)
    )
    assert [move.status for move in found.moves] == ["failed", "complete", "complete"]
    assert (found.throttle_residue, rig.throttles) == ((), {})


# --- its throttle, and its lease ---


def sent(rig: TwinRig, number: int) -> list[int]:
    """Time at which a partition was sent."""
    intended = [event for event in rig.seen if isinstance(event, SubmissionIntended)]
    return [event.at_ms for event in intended if tp(number) in event.partitions]


def throttled(rig: TwinRig, broker: int) -> list[int]:
    """Time at which a broker got a rate."""
    intended = [event for event in rig.seen if isinstance(event, ThrottleIntended)]
    resource = ConfigResource.broker(broker)
    return [event.at_ms for event in intended if resource in {one.key.resource for one in event.overrides}]


def test_a_new_destination_waits_for_its_settings(rig: TwinRig) -> None:
    """They cannot be read for longer than a run waits for them before it watches on."""
    odd, silent = OddPort(rig.client), set[ConfigResource]()

    def describe(real: Real, resources: Iterable[ConfigResource], **named: Any) -> Any:
        found = real(resources, **named)
        told = {one: entries for one, entries in found.ok.items() if one not in silent}
        return Batch(told, found.failed | {one: refusal(REQUEST_TIMED_OUT) for one in found.ok if one in silent})

    def note(event: Event, _: RunView) -> None:
        if isinstance(event, MovesReplanned):
            silent.add(ConfigResource.broker(4))

    odd.answer_always("describe_configs", describe)
    rig.odd_port, rig.listener = odd.port, note
    rig.after(4, lambda: rig.twin.crash(2))
    rig.after(250, silent.clear)
    found = rig.run(rig.prepared(AWAY, throttle=SLOW // 4, replans=True))
    assert throttled(rig, 4)[0] - found.started_ms >= 250_000
    assert throttled(rig, 4)[0] < sent(rig, 0)[1]
    assert ended(found, rig) == ("done", (), {0: (4, 1), 1: (3, 0)}, {})


def test_a_foreign_throttle_on_the_new_destination_is_left(rig: TwinRig) -> None:
    rig.after(4, lambda: rig.twin.crash(2))
    rig.after(20, lambda: change(rig, ConfigResource.broker(4), FOLLOWER_THROTTLED_RATE, "777"))
    found = rig.run(rig.prepared(AWAY, throttle=SLOW, replans=True))
    theirs = {"broker 4 follower.replication.throttled.rate": "777"}
    assert ended(found, rig) == ("done", (), {0: (6, 1), 1: (3, 0)}, theirs)
    assert throttled(rig, 4) == []


def test_a_new_target_waits_while_the_throttle_is_removed(rig: TwinRig) -> None:
    rig.after(4, lambda: rig.twin.crash(2))
    rig.after(60, lambda: clear_all(rig))
    rig.ask_after(300, lambda at_ms, number: ThrottleRequested(at_ms, number, SLOW))
    found = rig.run(rig.prepared(AWAY, throttle=SLOW // 2, replans=True))
    assert replans(rig)[0].at_ms - found.started_ms < 150_000
    assert sent(rig, 0)[1] - found.started_ms > 300_000
    assert ended(found, rig) == ("done", (), {0: (4, 1), 1: (3, 0)}, {})


def test_a_replan_without_the_lease_goes_on_once_regained(rig: TwinRig) -> None:
    rig.client.create_topics([NewTopic(OFFSETS_TOPIC, assignments=((0, 1, 3),))]).raise_if_any()
    rig.lease = lease_of(rig, "run-1")
    rig.lease.take()
    rig.after(4, lambda: rig.twin.crash(2))
    rig.after(250, lambda: give_up(rig))
    rig.listener = once_in(Replanning, lambda: take_over(rig))
    found = rig.run(rig.prepared(AWAY, throttle=SLOW // 4, replans=True))
    kinds = [type(event) for event in rig.seen]
    without = rig.seen[kinds.index(LeaseLost) : len(kinds) - 1 - kinds[::-1].index(LeaseTaken)]
    assert not [event for event in without if isinstance(event, (*CHANGES, CancelIntended))]
    assert kinds.index(MovesReplanned) < kinds.index(LeaseLost)
    assert ended(found, rig) == ("done", (), {0: (4, 1), 1: (3, 0)}, {})


def test_a_forgotten_broker_is_replaced_and_not_restored(tmp_path: Path) -> None:
    """Without controllers, who could take its throttle back."""
    rig = TwinRig(tmp_path, [list(one) for one in HOME.values()], brokers=7)
    rig.end_within(3_600)
    left_after(rig, 20, replans=False)
    forget_brokers(rig.path(), (2,), rig.transport)
    found = rig.resume(replans=True)
    assert (found.state, found.throttle_residue, rig.replicas) == ("done", (), {0: (4, 1), 1: (3, 0)})
    assert set(rig.throttles) == {"broker 2 follower.replication.throttled.rate"}


# --- snapshots ---


def test_a_snapshot_after_any_event_is_the_run_that_was_planned_again(rig: TwinRig) -> None:
    rig.after(4, lambda: rig.twin.crash(2))
    done = rig.run(rig.prepared(AWAY, throttle=RATE, pace=Pace(is_stepwise=True), replans=True))
    events = read_events(rig.path())
    machine = Machine()
    meter = ProgressMeter(machine.view)
    for number, event in enumerate(events):
        machine.replay(event)
        meter.follow(event)
        again, state = Machine.from_snapshot(machine.snapshot(meter.state()))
        shown = ProgressMeter.restored(again.view, state)
        for later in events[number + 1 :]:
            again.replay(later)
            shown.follow(later)
        assert history(again.view) == done, number
        assert (shown.progress().done_bytes, shown.progress().left_bytes) == (2 * 10 * RATE, 0), number


# --- the process dies, and another one resumes the run ---


@pytest.mark.parametrize("is_written", [True, False], ids=["not done", "done"])
def test_a_run_killed_around_its_replan_comes_to_the_same_end(tmp_path: Path, is_written: bool) -> None:
    def broken(folder: str) -> TwinRig:
        rig = new_rig(tmp_path / folder)
        rig.after(4, lambda: rig.twin.crash(2))
        return rig

    whole = broken("whole")
    whole.run(whole.prepared(AWAY, throttle=RATE, replans=True))
    kinds = [type(event) for event in read_events(whole.path())]
    first = kinds.index(MovesReplanned)
    assert kinds[first:].count(SubmissionIntended) == 1
    last = first + kinds[first:].index(MovesSubmitted)
    for row in range(first, last + 2):
        rig = broken(str(row))
        started = rig.prepared(AWAY, throttle=RATE, replans=True)
        with Journal.create(rig.state_dir, started) as journal:
            dying = Dying(journal, row, is_written=is_written)
            with pytest.raises(Died):
                rig.new_runner(dying).start(started)
        found = rig.resume()
        assert ended(found, rig) == ("done", (), {0: (4, 1), 1: (3, 0)}, {}), (row, kinds[row - 1])


def left_after(rig: TwinRig, seconds: float, *, replans: bool) -> None:
    rig.after(4, lambda: rig.twin.crash(2))
    rig.after(seconds, lambda: rig.runner.request_stop() if rig.runner else None)
    assert rig.run(rig.prepared(AWAY, throttle=SLOW, replans=replans)).state == "paused"


@pytest.mark.parametrize(("began", "resumed"), [(True, False), (False, True)])
def test_a_run_that_is_resumed_plans_again_if_it_began_so_or_is_asked_to(
    rig: TwinRig, began: bool, resumed: bool
) -> None:
    left_after(rig, 20, replans=began)
    found = rig.resume(replans=resumed)
    assert ended(found, rig) == ("done", (), {0: (4, 1), 1: (3, 0)}, {})


def test_a_run_resumed_after_its_replan_avoids_the_broker(tmp_path: Path) -> None:
    rig = new_rig(tmp_path, {0: (0, 1), 1: (1, 2)})
    rig.after(4, lambda: rig.twin.crash(2))
    rig.after(95, lambda: rig.runner.request_stop() if rig.runner else None)
    rig.run(rig.prepared({0: (2, 1)}, throttle=SLOW, replans=True))
    found = rig.resume()
    assert ended(found, rig) == ("done", (), {0: (4, 1), 1: (1, 2)}, {})


def test_a_resumed_run_copies_nothing_to_brokers_that_it_is_to_avoid(tmp_path: Path) -> None:
    rig = new_rig(tmp_path, {0: (0, 1), 1: (1, 2)})
    rig.after(4, lambda: rig.twin.crash(2))
    rig.after(30, lambda: rig.runner.request_stop() if rig.runner else None)
    rig.run(replace(rig.prepared({0: (2, 1)}, throttle=SLOW, replans=True), avoid=(4,)))
    rig.resume()
    assert 4 not in rig.replicas[0]


# --- those who read the journal ---


@pytest.fixture
def replanned_run(rig: TwinRig) -> TwinRig:
    rig.after(4, lambda: rig.twin.crash(2))
    assert rig.run(rig.prepared(AWAY, throttle=SLOW, replans=True)).state == "done"
    return rig


def test_verification_compares_with_the_new_targets(replanned_run: TwinRig) -> None:
    replanned_run.twin.start(2)
    replanned_run.transport.sleep(20)
    assert verify_run(replanned_run.client, replanned_run.path()).findings == ()


def test_a_rollback_goes_back_to_the_original_replicas(replanned_run: TwinRig) -> None:
    rig, events = replanned_run, read_events(replanned_run.path())
    done = audit_trail(events).history
    back = rollback_plan(done.moves, partitions_of(rig.client.describe_topics(["t"]).ok))
    assert (back.plan.replicas, back.skipped) == ({tp(0): HOME[0], tp(1): HOME[1]}, ())


def test_an_audit_knows_that_it_was_planned_again_and_what_arrived_where(replanned_run: TwinRig) -> None:
    trail = audit_trail(read_events(replanned_run.path()))
    assert [(call.ok, call.refused) for call in trail.calls if call.kind == "plan moves again"] == [(1, 0)]
    arrived = {one.broker: one.done_bytes for one in trail.copy_progress if (one.topic, one.partition) == ("t", 0)}
    assert arrived[4] == 10 * RATE


def test_who_executed_the_run_then_is_in_the_journal(rig: TwinRig) -> None:
    rig.after(4, lambda: rig.twin.crash(2))
    eva = Operator("eva", "host-1", ("kreassign", "run"))
    rig.run(replace(rig.prepared(AWAY, throttle=SLOW, replans=True), operator=eva))
    assert [event.operator for event in replans(rig)] == [eva]
