"""Brokers of a twin that show topics as they were before a cancellation or deletion that the controller knows of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from kreassign.admin import AdminClient
from kreassign.executor.cluster.readings import every_topic_of_two, partitions_of
from kreassign.executor.events import (
    CancelRequested,
    Event,
    LeadersElected,
    MovesObserved,
    PlacementState,
    SubmissionIntended,
    ThrottleIntended,
)
from kreassign.executor.state import RunView
from kreassign.executor.throttle_ledger import ConfigKey
from kreassign.model import Batch, ConfigResource, Topic, TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.throttle import LEADER_THROTTLED_RATE
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.verify import verify_plan, verify_run
from tests.executor.odd_port import Answer, OddPort, Real, lost_on_the_way_back, lost_on_the_way_there
from tests.executor.twin_runs import RATE, TwinRig, pace, tp

pytestmark = pytest.mark.thorough

AWAY = {0: (2, 1), 1: (3, 0)}
BEFORE = {0: (1, 0), 1: (0, 1)}
"""The brokers from before the moves, in the order that a cancelled move leaves."""
BRIEF_S, LONG_S = 3, 30
"""Shorter and longer than a strange state is looked at again."""
FOR_EVER_S = 1e6
ARRIVED = PlacementState.ARRIVED


class Behind:
    """A rig whose brokers stop learning of topic `t` for some time."""

    def __init__(self, folder: Path) -> None:
        self.rig = TwinRig(folder, [[0, 1], [1, 0]])
        self.odd = OddPort(self.rig.client)
        self.rig.odd_port = self.odd.port
        self.odd.answer_always("describe_topics", self._describe)
        self._shown: Topic | None = None
        self._until_ms = 0.0
        self.rig.end_within(600)

    @property
    def client(self) -> AdminClient:
        return cast(AdminClient, self.odd)

    def fall_behind(self, for_s: float) -> None:
        self._shown = self.rig.client.describe_topics(["t"])["t"]
        self._until_ms = self.rig.transport.now_ms() + 1000 * for_s

    def delete(self, for_s: float) -> None:
        """Delete the topic, which brokers go on showing."""
        self.fall_behind(for_s)
        self.rig.client.delete_topics(["t"]).raise_if_any()

    def cancel_after(self, seconds: float) -> None:
        self.rig.ask_after(seconds, lambda at_ms, number: CancelRequested(at_ms, number, is_now=True))

    def _describe(self, real: Real, names: Iterable[str] | None = None, **named: object) -> Batch[str, Topic]:
        found: Batch[str, Topic] = real(names, **named)
        if self._shown is None or self.rig.transport.now_ms() >= self._until_ms or "t" not in (names or ["t"]):
            return found
        failed = {name: error for name, error in found.failed.items() if name != "t"}
        return Batch({**found.ok, "t": self._shown}, failed)


@pytest.fixture
def behind(tmp_path: Path) -> Behind:
    return Behind(tmp_path)


@pytest.mark.parametrize("for_s", [BRIEF_S, LONG_S, FOR_EVER_S])
def test_a_cancelled_run_is_cancelled_while_brokers_show_the_old_lists(behind: Behind, for_s: float) -> None:
    rig = behind.rig
    rig.between_steps(5, lambda: behind.fall_behind(for_s))
    behind.cancel_after(5)
    done = rig.run(rig.prepared(AWAY))
    assert (done.state, done.problems, done.throttle_residue) == ("cancelled", (), ())
    assert [(move.status, move.problem) for move in done.moves] == [("cancelled", None)] * 2
    assert (rig.replicas, rig.throttles, rig.client.list_partition_reassignments()) == (BEFORE, {}, {})


@pytest.mark.parametrize("for_s", [BRIEF_S, LONG_S])
@pytest.mark.parametrize("is_begun", [False, True], ids=["before the run", "while it moves"])
def test_a_run_ends_while_brokers_show_its_deleted_topic(behind: Behind, is_begun: bool, for_s: float) -> None:
    rig = behind.rig
    started = rig.prepared(AWAY, pace=pace(moves=1))
    if is_begun:
        rig.between_steps(5, lambda: behind.delete(for_s))
    else:
        behind.delete(for_s)
    done = rig.run(started)
    assert (done.state, done.throttle_residue, rig.throttles) == ("failed", (), {})
    assert all("deleted" in (move.problem or "") for move in done.moves)


@pytest.mark.parametrize("for_s", [BRIEF_S, LONG_S])
def test_a_cancelled_run_of_a_deleted_topic_blames_no_one_else_alone(behind: Behind, for_s: float) -> None:
    rig = behind.rig
    rig.between_steps(4, lambda: behind.delete(for_s))
    behind.cancel_after(5)
    done = rig.run(rig.prepared(AWAY, pace=pace(moves=1)))
    first, second = done.moves
    assert "deleted" in (first.problem or "")
    assert (second.status, second.problem) == ("cancelled", None)
    assert (done.throttle_residue, rig.throttles) == ((), {})


def test_verify_tells_a_deleted_topic_only_once_brokers_show_it(behind: Behind) -> None:
    rig = behind.rig
    rig.run(rig.prepared(AWAY))
    plan = PlanFile(Plan(tuple(PartitionAssignment(tp(number), replicas) for number, replicas in AWAY.items())))
    behind.delete(LONG_S)
    early = verify_plan(behind.client, plan), verify_run(behind.client, rig.path())
    assert not any("no such partition" in str(one) for found in early for one in found.findings)
    rig.transport.sleep(LONG_S)
    for found in (verify_plan(behind.client, plan), verify_run(behind.client, rig.path())):
        assert not found.is_ok
        assert any("there is no such partition" in str(one) or "is not here" in str(one) for one in found.findings)


class Aside:
    """A rig whose only odd broker, which is asked by default, shows other replicas of partition 0 from then on."""

    def __init__(self, folder: Path, replicas: list[int]) -> None:
        self.rig = TwinRig(folder, [replicas])
        self.odd = OddPort(self.rig.client)
        self.rig.odd_port = self.odd.port
        self.rig.end_within(600)

    def show(self, replicas: tuple[int, ...]) -> None:
        """Show these replicas, in sync and led by the first of them."""

        def answer(
            real: Real, names: Iterable[str] | None = None, *, broker: int | None = None, **named: object
        ) -> Batch[str, Topic]:
            found: Batch[str, Topic] = real(names, broker=broker, **named)
            if broker not in {None, 0}:
                return found
            return found.map(
                lambda topic: replace(
                    topic,
                    partitions=tuple(
                        replace(one, replicas=replicas, isr=replicas, leader=replicas[0]) for one in topic.partitions
                    ),
                )
            )

        self.odd.answer_always("describe_topics", answer)


@pytest.mark.parametrize(
    ("original", "target"),
    [([0, 1], (1, 0)), ([0, 1], (2, 1)), ([0, 1], (0, 1, 2))],
    ids=["another order", "move", "addition"],
)
@pytest.mark.parametrize("shows_target", [True, False], ids=["shows the target", "shows the original"])
@pytest.mark.parametrize("lost", [lost_on_the_way_there, lost_on_the_way_back], ids=["there", "back"])
def test_one_broker_that_lags_ends_no_move_whose_request_was_lost(
    tmp_path: Path, original: list[int], target: tuple[int, ...], shows_target: bool, lost: Answer
) -> None:
    aside = Aside(tmp_path, original)
    started = aside.rig.prepared({0: target})
    aside.show(target if shows_target else tuple(original))
    aside.odd.answer("alter_partition_reassignments", lost)
    done = aside.rig.run(started)
    assert (done.state, done.problems, done.throttle_residue) == ("done", (), ())
    assert (aside.rig.replicas, aside.rig.throttles) == ({0: target}, {})


@pytest.mark.parametrize("at_s", [3, 12])
def test_trouble_that_one_broker_that_lags_shows_holds_no_run_for_ever(tmp_path: Path, at_s: int) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 2], [2, 0]], brokers=4)
    targets = {0: (2, 1), 1: (0, 2), 2: (1, 0)}
    started = rig.prepared(targets, pace=pace(moves=1))
    rig.end_within(600)
    rig.after(at_s, lambda: rig.twin.views.hold_back(0))
    done = rig.run(started)
    assert {move.status for move in done.moves} == {"complete"}
    assert rig.replicas == targets


def test_a_guard_holds_though_the_broker_asked_first_shows_no_trouble(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[1, 2], [2, 3]], others={"far": [[3, 4]]})
    started = rig.prepared({0: (3, 2), 1: (1, 3)}, throttle=RATE // 4, pace=pace(moves=1))
    rig.end_within(600)
    sent: list[int] = []

    def look() -> None:
        sent.append(len([event for event in rig.seen if isinstance(event, SubmissionIntended)]))

    rig.after(2, lambda: rig.twin.views.hold_back(0))
    rig.after(3, lambda: rig.twin.crash(4))
    rig.after(120, look)
    rig.after(121, lambda: rig.twin.start(4))
    assert rig.run(started).state == "done"
    assert sent == [1]


@pytest.mark.parametrize("behind", [None, 0], ids=["nobody lags", "broker 0 lags"])
def test_a_waiting_move_undoes_nothing_that_others_did_meanwhile(tmp_path: Path, behind: int | None) -> None:
    """A broker that lags shows the very list with which the move waits."""
    rig = TwinRig(tmp_path, [[0, 1], [1, 2]], brokers=6)
    started = rig.prepared({0: (2, 1), 1: (0, 2)}, pace=pace(moves=1))
    rig.end_within(600)

    def others() -> None:
        if behind is not None:
            rig.twin.views.hold_back(behind)
        waiting = next(iter({tp(0), tp(1)} - rig.client.list_partition_reassignments().keys()))
        rig.client.alter_partition_reassignments({waiting: (4, 5)}).raise_if_any()

    rig.between_steps(2, others)
    done = rig.run(started)
    assert sorted(move.status for move in done.moves) == ["complete", "failed"]
    assert (4, 5) in rig.replicas.values()


def test_a_run_names_the_broker_that_does_not_know_its_throttle(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 2]], brokers=4)
    started = rig.prepared({0: (2, 1), 1: (0, 2)}, pace=pace(moves=1))
    rig.end_within(600)
    told: list[str] = []

    def look() -> None:
        assert rig.runner is not None
        told.extend(rig.runner.run.problems)
        rig.twin.views.release(0)

    rig.twin.views.hold_back(0)
    rig.after(60, look)
    assert rig.run(started).throttle_residue == ()
    assert any("if nobody did, broker 0 lags behind the controller: restart it" in one for one in told)


@pytest.mark.parametrize("replans", [True, False], ids=["replanned", "given up"])
def test_a_destination_that_only_one_broker_calls_down_keeps_its_moves(tmp_path: Path, replans: bool) -> None:
    """Broker 2 was restarted, and broker 0, which is asked by default, was cut off meanwhile."""
    rig = TwinRig(tmp_path, [[3, 1], [1, 3]])
    started = replace(rig.prepared({0: (2, 1)}, throttle=RATE // 16, replans=replans), lost_after_ms=60_000)
    rig.end_within(3_600)
    rig.after(4, lambda: rig.twin.crash(2))
    rig.after(20, lambda: rig.twin.views.hold_back(0))
    rig.after(30, lambda: rig.twin.start(2))
    done = rig.run(started)
    assert (done.state, [move.former_targets for move in done.moves]) == ("done", [()])
    assert (rig.replicas[0], rig.throttles) == ((2, 1), {})


def test_a_run_resumed_beside_a_broker_behind_throttles_every_source(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[3, 1], [3, 4]])
    started = rig.prepared({0: (3, 2), 1: (3, 2)}, pace=pace(moves=1))
    rig.stop_after(6)
    rig.run(started)
    rig.restart_unseen(3, behind=0)
    resumed_ms = rig.transport.now_ms()
    assert rig.resume().state == "done"
    first = next(event for event in rig.seen if isinstance(event, ThrottleIntended) and event.at_ms >= resumed_ms)
    assert ConfigKey(ConfigResource.broker(3), LEADER_THROTTLED_RATE) in [one.key for one in first.overrides]


def leaders_of(rig: TwinRig) -> dict[TopicPartition, int]:
    return {name: one.leader for name, one in partitions_of(every_topic_of_two(rig.port).known).items()}


def test_the_leader_is_that_of_the_newer_epoch(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[3, 1], [1, 3]])
    rig.twin.views.hold_back(0)
    rig.twin.crash(3)
    rig.transport.sleep(60)
    rig.twin.start(3)
    rig.transport.sleep(60)
    assert {one.leader for one in partitions_of(rig.client.describe_topics().ok).values()} == {1, 3}
    assert leaders_of(rig) == {tp(0): 1, tp(1): 1}


def test_a_leader_is_elected_beside_a_list_that_brokers_show_differently(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [0, 1, 2]])

    def listen(event: Event, _: RunView) -> None:
        if isinstance(event, MovesObserved) and any(one.placement is ARRIVED for one in event.observations):
            rig.show_differently(1)
        if isinstance(event, LeadersElected):
            rig.show_alike()

    rig.listener = listen
    assert rig.run(rig.prepared({0: (1, 0)}, throttle=None)).state == "done"
    (elected,) = (event for event in rig.seen if isinstance(event, LeadersElected))
    assert (elected.elected, elected.refused) == ((tp(0),), ())


def test_one_list_that_brokers_show_differently_delays_no_other_election(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [0, 1, 2]])

    def listen(event: Event, run: RunView) -> None:
        if isinstance(event, MovesObserved) and not run.in_flight and run.records[tp(0)].submitted_ms is not None:
            rig.show_differently(1)
        if isinstance(event, LeadersElected):
            rig.show_alike()

    rig.listener = listen
    assert rig.run(rig.prepared({0: (1, 0), 1: (1, 0, 2)}, throttle=None)).state == "done"
    first, *_ = (event for event in rig.seen if isinstance(event, LeadersElected))
    assert (first.elected, [one.topic_partition for one in first.refused]) == ((tp(0),), [tp(1)])
    assert first.refused[0].message.startswith("brokers do not agree about t-1: broker 0 shows replicas of t-1 as")
