"""A topic that was deleted and recreated under its name is another one: no run, resume or rollback touches it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.errors import IllegalPlan
from kreassign.executor.cluster.readings import partitions_of, topic_ids_of
from kreassign.executor.cluster.requests import check_throttle
from kreassign.executor.events import Event, LeadersElected, MovesObserved, PlacementState
from kreassign.executor.history.run_history import Present, rollback_plan
from kreassign.executor.preflight import PlanOrigin, RunSettings, prepare
from kreassign.executor.state import RunView
from kreassign.executor.throttle_ledger import ConfigKey, ConfigOverride
from kreassign.model import ConfigChange, ConfigResource, NewTopic, throttle
from kreassign.model.plan import PartitionAssignment, Plan
from tests.executor.odd_port import OddPort, Real, as_it_is
from tests.executor.twin_runs import RATE, TwinRig, pace, tp

pytestmark = pytest.mark.thorough

HOME = {0: (0, 1), 1: (1, 0), 2: (0, 1)}
AWAY = {0: (2, 1), 1: (3, 0), 2: (4, 1)}
LISTS = tuple(HOME.values())


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    return TwinRig(tmp_path, [list(replicas) for replicas in HOME.values()])


def recreate(rig: TwinRig, lists: tuple[tuple[int, ...], ...] = LISTS) -> None:
    rig.client.delete_topics(["t"]).raise_if_any()
    rig.client.create_topics([NewTopic("t", assignments=lists)]).raise_if_any()


def plan_of(targets: dict[int, tuple[int, ...]]) -> Plan:
    return Plan(tuple(PartitionAssignment(tp(number), target) for number, target in targets.items()))


@pytest.mark.parametrize("behind", [(), (0,)], ids=["nobody lags", "broker 0 lags"])
def test_moves_of_a_recreated_topic_fail_and_it_stays_as_created(rig: TwinRig, behind: tuple[int, ...]) -> None:
    """A broker that lags shows the former topic, and the very lists with which moves wait."""
    rig.end_within(600)

    def recreated() -> None:
        for broker in behind:
            rig.twin.views.hold_back(broker)
        recreate(rig)

    rig.between_steps(5, recreated)
    done = rig.run(rig.prepared(AWAY, pace=pace(moves=1)))
    assert {move.status for move in done.moves} == {"failed"}
    assert all("another one created under its name" in (move.problem or "") for move in done.moves)
    assert (rig.replicas, rig.client.list_partition_reassignments(), rig.throttles) == (HOME, {}, {})


def test_a_resumed_run_leaves_a_recreated_topic_alone(rig: TwinRig) -> None:
    rig.stop_after(2)
    rig.run(rig.prepared(AWAY, pace=pace(moves=1)))
    recreate(rig)
    done = rig.resume()
    assert {move.status for move in done.moves} == {"failed"}
    assert (rig.replicas, rig.throttles) == (HOME, {})


def test_a_rollback_leaves_a_recreated_topic_alone(
    rig: TwinRig,
) -> None:
    done = rig.run(rig.prepared(AWAY, throttle=None))
    recreate(rig, tuple(AWAY.values()))
    topics = rig.client.describe_topics(["t"])
    back = rollback_plan(done.moves, partitions_of(topics.ok), present=Present(topic_ids=topic_ids_of(topics.ok)))
    assert len(back.plan) == 0
    assert [sentence.partition(":")[0] for sentence in back.skipped] == ["t-0", "t-1", "t-2"]
    assert "another one created under its name" in back.skipped[0]


@pytest.mark.parametrize("behind", [(), (0,)], ids=["nobody lags", "broker 0 lags"])
def test_leaders_of_a_topic_that_was_recreated_are_not_elected(rig: TwinRig, behind: tuple[int, ...]) -> None:
    """Its move was complete, and it was recreated before leaders are elected."""
    odd = OddPort(rig.client)
    rig.odd_port = odd.port

    def recreated_topic(real: Real, *args: object, **named: object) -> object:
        for broker in behind:
            rig.twin.views.hold_back(broker)
        recreate(rig)
        return real(*args, **named)

    began = rig.prepared({0: (1, 0)}, throttle=None)
    # Before that are the two looks before it is sent, the health check, and the look after, which two brokers confirm.
    odd.answer("describe_topics", *[as_it_is] * 8, recreated_topic)
    rig.run(began)
    elected = next(event for event in rig.seen if isinstance(event, LeadersElected))
    assert elected.elected == ()
    assert "another one created under its name" in elected.refused[0].message
    assert "elect_leaders" not in [name for name, *_ in odd.calls]


def test_settings_of_a_recreated_topic_are_gone_beside_a_broker_behind(rig: TwinRig) -> None:
    topic_ids = topic_ids_of(rig.client.describe_topics(["t"]).ok)
    ours = ConfigOverride(ConfigKey(ConfigResource.topic("t"), throttle.LEADER_THROTTLED_REPLICAS), None, "0:0")
    change = ConfigChange.set(throttle.LEADER_THROTTLED_REPLICAS, "0:0")
    rig.client.incremental_alter_configs({ours.key.resource: [change]}).raise_if_any()
    rig.transport.sleep(1)
    rig.twin.views.hold_back(0)
    recreate(rig)
    found = check_throttle(rig.client, [ours], topic_ids)
    assert (found.differ, found.unread, found.gone) == ((), (), (ours.key.resource,))


def test_a_run_fails_if_a_topic_was_recreated_after_its_last_move(
    rig: TwinRig,
) -> None:
    odd = OddPort(rig.client)
    rig.odd_port = odd.port

    def recreated_topic(real: Real, *args: object, **named: object) -> object:
        placements = [
            one.placement for event in rig.seen if isinstance(event, MovesObserved) for one in event.observations
        ]
        if PlacementState.ARRIVED in placements:
            recreate(rig, ((0, 2), *LISTS[1:]))
            odd.answer_always("describe_topics", as_it_is)
        return real(*args, **named)

    odd.answer_always("describe_topics", recreated_topic)
    done = rig.run(rig.prepared({0: (0, 2)}, throttle=None))
    assert {move.status for move in done.moves} == {"complete"}
    assert done.state == "failed"
    (problem,) = done.problems
    assert problem.startswith("t-0: its topic was deleted")


def test_a_plan_for_a_topic_that_was_recreated_is_refused(rig: TwinRig) -> None:
    topic_ids = topic_ids_of(rig.client.describe_topics(["t"]).ok)
    origin = PlanOrigin(rig.twin.cluster_id, topic_ids)
    chosen = RunSettings("run-1", rig.transport.now_ms())
    assert prepare(rig.client, plan_of(AWAY), chosen, origin=origin).moves[0].topic_id == topic_ids["t"]
    recreate(rig)
    with pytest.raises(IllegalPlan, match="topic t is not the one that the plan was made for"):
        prepare(rig.client, plan_of(AWAY), chosen, origin=origin)


def test_a_rollback_leaves_partitions_alone_whose_original_broker_is_down(rig: TwinRig) -> None:
    done = rig.run(rig.prepared({0: (2, 1), 1: (1, 3), 2: (2, 4)}, throttle=None))
    rig.twin.crash(0)
    rig.transport.sleep(30)
    live = rig.client.describe_cluster().broker_ids
    back = rollback_plan(done.moves, partitions_of(rig.client.describe_topics(["t"]).ok), present=Present(live))
    assert [sentence.partition(":")[0] for sentence in back.skipped] == ["t-0", "t-1", "t-2"]
    assert "its original broker 0 is not up" in back.skipped[0]


def test_what_has_its_original_brokers_is_rolled_back_beside_what_has_not(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 2]])
    done = rig.run(rig.prepared({0: (3, 1), 1: (4, 2)}, throttle=None))
    rig.twin.crash(0)
    rig.transport.sleep(30)
    live = rig.client.describe_cluster().broker_ids
    back = rollback_plan(done.moves, partitions_of(rig.client.describe_topics(["t"]).ok), present=Present(live))
    chosen = RunSettings("run-2", rig.transport.now_ms())
    undone = rig.run(prepare(rig.client, back.plan, chosen, expected=back.expected))
    assert (undone.state, rig.replicas) == ("done", {0: (3, 1), 1: (1, 2)})
    assert back.skipped == (
        "t-0: its original broker 0 is not up; start what is down and roll back again, or plan without it",
    )


def test_copies_are_throttled_while_a_topic_is_recreated(tmp_path: Path) -> None:
    """The copies are of another topic on the same brokers, whose rates they share."""
    rig = TwinRig(tmp_path, [[0, 1]], others={"u": [[0, 1]]})
    throttles: list[tuple[int, dict[str, str]]] = []

    def watch(event: Event, run: RunView) -> None:
        del run
        state = rig.twin.metadata.partition(tp(0, "u"))
        if state is not None and set(state.adding) - set(state.isr):
            throttles.append((event.at_ms, rig.throttles))

    rig.listener = watch
    rig.between_steps(5, lambda: recreate(rig, ((0, 1),)))
    targets = {tp(0): (2, 1), tp(0, "u"): (2, 1)}
    plan = Plan(tuple(PartitionAssignment(name, target) for name, target in targets.items()))
    done = rig.run(
        prepare(rig.client, plan, RunSettings("run-1", rig.transport.now_ms(), throttle.ThrottleRates(RATE // 4)))
    )
    assert {f"{move.topic}-{move.partition}": move.status for move in done.moves} == {
        "t-0": "failed",
        "u-0": "complete",
    }
    assert {at_ms > 10_000 for at_ms, _ in throttles} == {False, True}, "it is copied before and long after"
    expected = {
        f"topic u {throttle.LEADER_THROTTLED_REPLICAS}": "0:0,0:1",
        f"topic u {throttle.FOLLOWER_THROTTLED_REPLICAS}": "0:2",
        f"broker 0 {throttle.LEADER_THROTTLED_RATE}": str(RATE // 4),
        f"broker 2 {throttle.FOLLOWER_THROTTLED_RATE}": str(RATE // 4),
    }
    assert not [at_ms for at_ms, found in throttles if not expected.items() <= found.items()]
    assert (done.throttle_residue, rig.throttles, rig.replicas) == ((), {}, {0: (0, 1)})
