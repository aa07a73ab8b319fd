"""Verification beside a broker that lags: one broker decides neither that all is as planned nor that it is not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from kreassign.admin import AdminClient
from kreassign.errors import ClusterError, Unreachable
from kreassign.executor.cluster.observations import Expectations, Facts
from kreassign.executor.cluster.observations import verify as compare
from kreassign.executor.cluster.readings import settings_of_two, topics_of_two
from kreassign.executor.cluster.sizes import REMOTE_STORAGE
from kreassign.model import Batch, ConfigChange, ConfigResource, OngoingReassignment, Partition, TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.requests import NewTopic
from kreassign.model.throttle import LEADER_THROTTLED_RATE, LEADER_THROTTLED_REPLICAS
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.verify import (
    Verification,
    check_placement,
    placement_of_cluster,
    verify_plan,
    write_placement,
)
from tests.executor.odd_port import OddPort, Real
from tests.executor.twin_runs import TwinRig, tp

BEFORE, AFTER = {0: (0, 1), 1: (1, 2)}, {0: (1, 0), 1: (1, 2)}
TOPIC = ConfigResource.topic("t")
SET = ConfigChange.set(LEADER_THROTTLED_REPLICAS, "0:0")


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    return TwinRig(tmp_path, [[0, 1], [1, 2]])


def planned(lists: Mapping[int, tuple[int, ...]]) -> PlanFile:
    return PlanFile(Plan(tuple(PartitionAssignment(tp(number), target) for number, target in lists.items())))


def reorder(rig: TwinRig) -> None:
    rig.client.alter_partition_reassignments({tp(0): AFTER[0]})
    rig.client.elect_leaders([tp(0)])


def findings(rig: TwinRig, lists: Mapping[int, tuple[int, ...]]) -> list[str]:
    return [str(one) for one in verify_plan(rig.client, planned(lists)).findings]


def drifts(rig: TwinRig, lists: Mapping[int, tuple[int, ...]]) -> list[TopicPartition]:
    plan = planned(lists)
    return [one.topic_partition for one in check_placement(plan.plan, placement_of_cluster(rig.client, plan)).drifts]


def test_findings_are_counted_by_state_and_the_rarest_are_listed_first() -> None:
    """As after a run that was cancelled: most partitions are where they were, few are half way."""
    before = {tp(number): (0, 1) for number in range(25)}
    expected = Expectations(dict.fromkeys(before, (2, 1)))
    present = {name: Partition(name, (0, 1), (0, 1), 0) for name in before}
    moved, elsewhere, moving = tp(0), tp(23), tp(24)
    present[moved] = Partition(moved, (2, 1), (2, 1), 2)
    present[elsewhere] = Partition(elsewhere, (1, 2), (1, 2), 1)
    facts = Facts(present, {moving: OngoingReassignment((2, 1, 0), (2,), (0,))})
    found = Verification(expected, facts, compare(expected, facts), before=before)
    assert not found.is_untouched
    first, *rest = found.lines(4)
    assert first == "findings: 22 not moved, 1 with other replicas, 1 still moving"
    assert [line.partition(":")[0] for line in rest[:4]] == ["t-23", "t-24", "t-1", "t-10"]
    assert rest[4:] == ["and 20 more; --format json has all"]


def test_a_single_finding_is_not_counted() -> None:
    expected, facts = Expectations({tp(0): (0, 1)}), Facts({})
    found = Verification(expected, facts, compare(expected, facts))
    assert list(found.lines(4)) == ["t-0: there is no such partition"]


@pytest.mark.parametrize("behind", range(3))
def test_a_broker_behind_does_not_hide_a_change(rig: TwinRig, behind: int) -> None:
    rig.twin.views.hold_back(behind)
    reorder(rig)
    assert findings(rig, BEFORE) == ["t-0: replicas are [1, 0] and not [0, 1]"]
    assert drifts(rig, BEFORE) == [tp(0)]


@pytest.mark.parametrize("behind", range(3))
def test_a_broker_behind_shows_no_difference(rig: TwinRig, behind: int) -> None:
    rig.twin.views.hold_back(behind)
    reorder(rig)
    assert (findings(rig, AFTER), drifts(rig, AFTER)) == ([], [])


@pytest.mark.parametrize("behind", range(3))
def test_a_throttle_is_found_beside_a_broker_behind(rig: TwinRig, behind: int) -> None:
    rig.twin.views.hold_back(behind)
    rig.client.incremental_alter_configs({TOPIC: [SET]})
    assert findings(rig, BEFORE) == ["topic t: leader.replication.throttled.replicas is '0:0' and should not be set"]


@pytest.mark.parametrize("behind", range(3))
def test_a_throttle_that_is_gone_is_not_found_at_a_broker_behind(rig: TwinRig, behind: int) -> None:
    rig.client.incremental_alter_configs({TOPIC: [SET]})
    rig.twin.views.hold_back(behind)
    rig.client.incremental_alter_configs({TOPIC: [ConfigChange.delete(LEADER_THROTTLED_REPLICAS)]})
    assert findings(rig, BEFORE) == []


def test_two_brokers_that_do_not_agree_are_named_as_unknown(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]], brokers=2)
    rig.twin.views.hold_back(0)
    reorder(rig)
    lists = {0: AFTER[0], 1: (1, 0)}
    assert findings(rig, lists)[0] == (
        "t-0: could not be described: brokers do not agree about topic t: broker 0 shows replicas of t-0 as [0, 1], "
        "broker 1 shows replicas of t-0 as [1, 0]; broker 0 lags: it knows leader epoch 0 of t-0, and another one 1. "
        "Try again; if this lasts, restart that broker"
    )


def test_a_broker_behind_is_named_by_what_it_does_not_know(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]], brokers=2)
    rig.twin.views.hold_back(0)
    rig.client.create_topics([NewTopic("new", 1, 1)]).raise_if_any()
    (reason,) = topics_of_two(rig.client, ["new"]).unknown.values()
    assert str(reason) == (
        "brokers do not agree about topic new: broker 0 does not know it, broker 1 knows it; one of them lags "
        "(`kafka-metadata-quorum.sh describe --replication` shows which). Try again; if this lasts, restart that broker"
    )


def test_a_broker_behind_is_named_by_its_settings(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]], brokers=2)
    rig.twin.views.hold_back(0)
    rig.client.incremental_alter_configs({TOPIC: [SET]})
    (reason,) = settings_of_two(rig.client, [TOPIC], [LEADER_THROTTLED_REPLICAS]).unknown.values()
    assert (
        "broker 0 shows leader.replication.throttled.replicas of the topic as not set, "
        "broker 1 shows leader.replication.throttled.replicas of the topic as 0:0; one of them lags"
    ) in str(reason)


def test_the_check_of_a_placement_reads_each_topic_from_two_brokers_once(rig: TwinRig) -> None:
    odd = OddPort(rig.client)
    placement_of_cluster(cast(AdminClient, odd), planned(BEFORE))
    asked = [(names, named["broker"]) for method, names, named in odd.calls if method == "describe_topics"]
    assert asked == [((None,), 0), ((None,), 1)]


def test_a_placement_is_written_only_where_each_of_its_topics_is_known(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]], others={"u": [[1, 0]]}, brokers=2)
    file = tmp_path / "placement.json"
    assert write_placement(file, placement_of_cluster(rig.client)) == 3
    before = file.read_text()
    rig.twin.views.hold_back(0)
    reorder(rig)
    for topics in ((), ("t", "u"), (".",)):
        with pytest.raises(ClusterError, match="brokers do not agree about topic t"):
            write_placement(file, placement_of_cluster(rig.client, topics=topics), topics)
    assert file.read_text() == before
    others: list[str] = []
    assert write_placement(file, placement_of_cluster(rig.client, warn=others.append, topics=["u"]), ["u"]) == 1
    assert others == []


@pytest.mark.parametrize("behind", range(2))
def test_a_new_topic_is_no_drift_beside_a_broker_behind(rig: TwinRig, behind: int) -> None:
    rig.twin.views.hold_back(behind)
    rig.client.create_topics([NewTopic("new", assignments=((0, 1),))]).raise_if_any()
    new = PartitionAssignment(TopicPartition("new", 0), (0, 1))
    plan = PlanFile(Plan((new, *planned(BEFORE).plan.assignments)))
    assert check_placement(plan.plan, placement_of_cluster(rig.client, plan)).drifts == ()


@pytest.mark.parametrize("release", ["3.9", "4.3"])
def test_a_throttle_of_a_broker_that_is_down_is_unknown(tmp_path: Path, release: str) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 2]], release=release)
    rate = {ConfigResource.broker(4): [ConfigChange.set(LEADER_THROTTLED_RATE, "7")]}
    rig.client.incremental_alter_configs(rate).raise_if_any()
    rig.twin.stop(4)
    rig.transport.sleep(30)
    plan = replace(planned(BEFORE), expected={tp(0): (4, 1)})
    findings = verify_plan(rig.client, plan).findings
    assert [str(one) for one in findings] == ["broker 4: is down, so its settings were not read"]
    assert verify_plan(rig.client, plan, ignore_throttles=True).is_ok


@pytest.mark.parametrize("behind", range(2))
def test_a_throttle_is_found_that_a_broker_behind_calls_down(rig: TwinRig, behind: int) -> None:
    rig.restart_unseen(4, behind)
    rate = {ConfigResource.broker(4): [ConfigChange.set(LEADER_THROTTLED_RATE, "7")]}
    rig.new_client().incremental_alter_configs(rate).raise_if_any()
    assert findings(rig, BEFORE) == ["broker 4: leader.replication.throttled.rate is '7' and should not be set"]


def test_sizes_that_are_not_compared_are_named(rig: TwinRig) -> None:
    odd = OddPort(rig.client)

    def answer(real: Real, resources: Iterable[ConfigResource], **named: object) -> object:
        found = real(resources, **named)
        untold = named.get("names") == (REMOTE_STORAGE,)
        return Batch({}, dict.fromkeys(found.ok, Unreachable("it is silent"))) if untold else found

    odd.answer_always("describe_configs", answer)
    assert [str(one) for one in verify_plan(cast(AdminClient, odd), planned(BEFORE)).findings] == [
        "topic t: its sizes were not compared, for whether it is tiered is unknown: it is silent"
    ]


def test_verify_tells_the_factors_that_a_plan_changes(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1, 2], [0, 1], [0, 1, 2]])
    fallen = PlanFile(planned({0: (0, 1), 1: (0, 1, 2), 2: (2, 1, 0)}).plan, expected={tp(0): (0, 1, 2), tp(1): (0, 1)})
    told = (
        "replication factor of 1 partition falls from 3 to 2: t-0",
        "replication factor of 1 partition rises from 2 to 3: t-1",
    )
    assert verify_plan(rig.client, fallen).factors == told
    rig.run(rig.prepared({0: (0, 1), 1: (0, 1, 2)}, allows_factor_change=True))
    assert verify_plan(rig.client, fallen).factors == told, "as it was before, where the plan says that"
