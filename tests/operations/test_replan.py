"""New destinations are checked against the cluster as a plan is, each move by itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kreassign.executor.events import NewTarget
from kreassign.executor.instructions import ReplanMoves
from kreassign.executor.runner import Replanned
from kreassign.executor.throttle_ledger import ConfigKey
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.throttle import LEADER_THROTTLED_RATE, NO_THROTTLE, BrokerRate, ThrottleRates
from kreassign.operations.plan import replanned
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.run import RunContext, RunRequest, prepare_run
from tests.executor.odd_port import OddPort, each_refused
from tests.executor.test_foreign_throttle_on_twin import change
from tests.executor.twin_runs import RATE, TwinRig, tp

CLUSTER_AUTHORIZATION_FAILED = 31


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    return TwinRig(tmp_path, [[0, 1], [1, 0]])


def question(rig: TwinRig, **changes: object) -> ReplanMoves:
    """Broker 2 is down, to which partition 0 was to move."""
    moves = rig.prepared({0: (2, 1), 1: (3, 0)}).moves
    rig.twin.crash(2)
    rig.transport.sleep(15)
    asked = ReplanMoves(moves[:1], (2,), frozenset(), moves, ThrottleRates(RATE), frozenset(), 0.05)
    return replace(asked, **changes)


def reasons(found: Replanned) -> dict[TopicPartition, str]:
    return {one.topic_partition: one.message for one in found.refused}


def test_a_move_gets_another_broker_of_the_same_rack(rig: TwinRig) -> None:
    found = replanned(rig.client, question(rig))
    assert found == Replanned((NewTarget(tp(0), (2, 1), (4, 1)),))


def test_a_copy_that_its_throttle_would_never_let_end_is_refused(rig: TwinRig) -> None:
    slow = ThrottleRates(None, (BrokerRate(4, 1_000),))
    asked = question(rig, rates=slow, writes={tp(0): 50_000.0})
    assert "never" in reasons(replanned(rig.client, asked))[tp(0)]


def test_a_partition_that_somebody_else_is_reassigning_is_refused(rig: TwinRig) -> None:
    asked = question(rig)
    rig.client.alter_partition_reassignments({tp(0): (3, 1)})
    assert "it is being reassigned already" in reasons(replanned(rig.client, asked))[tp(0)]


def test_what_the_run_itself_has_under_way_is_no_objection(rig: TwinRig) -> None:
    asked = question(rig, in_flight=frozenset({tp(0)}))
    rig.client.alter_partition_reassignments({tp(0): (3, 1)}, warns_of_overrides=False)
    assert reasons(replanned(rig.client, asked)) == {}


def test_a_topic_that_was_recreated_is_refused(rig: TwinRig) -> None:
    asked = question(rig)
    other = replace(asked.moves[0], topic_id="00000000-0000-0000-0000-000000000001")
    found = replanned(rig.client, replace(asked, moves=(other,)))
    assert "is not the one that the plan was made for" in reasons(found)[tp(0)]


def test_a_partition_that_is_gone_is_refused(rig: TwinRig) -> None:
    asked = question(rig)
    gone = replace(asked.moves[0], topic_partition=TopicPartition("gone", 0))
    found = replanned(rig.client, replace(asked, moves=(gone, *asked.moves)))
    assert reasons(found) == {TopicPartition("gone", 0): "it is not there any more"}
    assert [one.topic_partition for one in found.targets] == [tp(0)]


def test_a_broker_that_does_not_report_its_log_directories_takes_nothing(rig: TwinRig) -> None:
    asked, odd = question(rig), OddPort(rig.client)

    def without_4(real, *args, **named):
        answer = real(*args, **named)
        return replace(answer, ok={broker: dirs for broker, dirs in answer.ok.items() if broker != 4})

    odd.answer("describe_log_dirs", without_4)
    rig.let_plan_over(odd)
    assert "every other broker is in a rack" in reasons(rig.replanner(asked))[tp(0)]


def test_a_silent_broker_leaves_the_others_their_disk_limits(rig: TwinRig) -> None:
    asked, odd = question(rig), OddPort(rig.client)

    def without_3_and_with_4_full(real, *args, **named):
        answer = real(*args, **named)
        full = tuple(replace(one, total_bytes=1_000, usable_bytes=0) for one in answer.ok[4])
        return replace(answer, ok={**{broker: dirs for broker, dirs in answer.ok.items() if broker != 3}, 4: full})

    odd.answer("describe_log_dirs", without_3_and_with_4_full)
    rig.let_plan_over(odd)
    assert "no other broker has room for" in reasons(rig.replanner(asked))[tp(0)]


def test_a_broker_whose_throttle_somebody_else_has_set_takes_nothing(rig: TwinRig) -> None:
    asked = question(rig)
    change(rig, ConfigResource.broker(4), LEADER_THROTTLED_RATE, "5")
    assert reasons(replanned(rig.client, asked)) == {
        tp(0): "every other broker is in a rack that has a replica of it; broker 4 was left out, whose throttle is "
        "not this run's: leader.replication.throttled.rate of broker 4 is '5'"
    }
    agreed_on = frozenset({ConfigKey(ConfigResource.broker(4), LEADER_THROTTLED_RATE)})
    assert reasons(replanned(rig.client, replace(asked, known_settings=agreed_on))) == {}
    assert reasons(replanned(rig.client, replace(asked, rates=NO_THROTTLE))) == {}, "it is not touched"


def test_a_broker_that_the_run_is_to_avoid_takes_nothing(rig: TwinRig) -> None:
    assert reasons(replanned(rig.client, question(rig, avoid=(4,)))) == {
        tp(0): "every other broker is in a rack that has a replica of it; broker 4 was left out, as in the plan"
    }


def test_a_broker_that_is_restarted_meanwhile_is_no_rack_of_its_own(tmp_path: Path) -> None:
    """Three replicas in two racks: two may share one. Which rack a broker that is down is in, nobody knows."""
    rig = TwinRig(tmp_path, [[0, 1, 4], [5, 0]], brokers=7)
    moves = rig.prepared({0: (2, 1, 4)}).moves
    rig.twin.crash(2)
    rig.twin.crash(5)
    rig.transport.sleep(15)
    found = replanned(rig.client, ReplanMoves(moves, (2,), frozenset(), moves, NO_THROTTLE, frozenset(), 0.05))
    assert found == Replanned((NewTarget(tp(0), (2, 1, 4), (3, 1, 4)),))


def cordon(rig: TwinRig, broker: int) -> None:
    change(rig, ConfigResource.broker(broker), "cordoned.log.dirs", "*")


@pytest.mark.parametrize("release", ["4.3", "4.4"])
def test_a_broker_that_was_cordoned_meanwhile_takes_nothing(tmp_path: Path, release: str) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]], release=release)
    asked = question(rig)
    cordon(rig, 4)
    assert "every other broker is in a rack" in reasons(replanned(rig.client, asked))[tp(0)]


@pytest.mark.parametrize("release", ["4.3", "4.4"])
def test_a_move_that_keeps_a_cordoned_broker_is_refused_where_kafka_would(tmp_path: Path, release: str) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]], release=release)
    asked = question(rig)
    cordon(rig, 1)
    found = replanned(rig.client, asked)
    if release == "4.3":
        assert found == Replanned((NewTarget(tp(0), (2, 1), (4, 1)),))
    else:
        assert "broker 1 is to keep a replica, but" in reasons(found)[tp(0)]


def test_a_permission_that_is_missing_by_now_is_named(rig: TwinRig) -> None:
    asked, odd = question(rig), OddPort(rig.client)
    odd.answer("incremental_alter_configs", each_refused(CLUSTER_AUTHORIZATION_FAILED))
    rig.let_plan_over(odd)
    assert "permission is missing: AlterConfigs" in reasons(rig.replanner(asked))[tp(0)]


def test_nothing_is_changed_by_asking(rig: TwinRig) -> None:
    before = (rig.replicas, rig.throttles)
    replanned(rig.client, question(rig))
    assert (rig.replicas, rig.throttles, rig.client.list_partition_reassignments(None)) == (*before, {})


def test_a_run_begins_with_it_only_where_that_was_asked_for(rig: TwinRig) -> None:
    plan = PlanFile(Plan((PartitionAssignment(tp(0), (2, 1)),)))
    context = RunContext(rig.state_dir)
    requests = (RunRequest(plan, replan=True), RunRequest(plan))
    asked, plain = (prepare_run(rig.client, request, context, rig.transport) for request in requests)
    assert (asked.replans, plain.replans) == (True, False)


@pytest.mark.parametrize("behind", range(2))
def test_new_destinations_count_replicas_beside_a_broker_that_lags(tmp_path: Path, behind: int) -> None:
    """Broker 6 holds the others by now, which a broker that lags shows on broker 4."""
    rig = TwinRig(tmp_path, [[0, 1], [1, 0], *[[4, 1]] * 4], brokers=8)
    asked = question(rig)
    rig.twin.views.hold_back(behind)
    rig.client.alter_partition_reassignments({tp(number): (6, 1) for number in range(2, 6)}).raise_if_any()
    rig.transport.sleep(120)
    assert replanned(rig.client, asked) == Replanned((NewTarget(tp(0), (2, 1), (4, 1)),))
