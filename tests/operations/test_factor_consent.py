"""Changes of replication factors by a plan are told first, and refused where the operator has to agree."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.errors import IllegalPlan
from kreassign.model import Broker, Partition, TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.plan_facts_json import format_facts, parse_facts
from kreassign.model.replication_factor import lost_in_sync
from kreassign.model.snapshot import ClusterSnapshot, SnapshotBroker, SnapshotLogDir, SnapshotPartition, SnapshotTopic
from kreassign.operations.plan import PLAIN, make_plan
from kreassign.operations.plan_files import Assignments, PlanFile
from kreassign.operations.plan_inputs import Inputs, inputs_of_snapshot
from kreassign.operations.plan_tasks import ChangeReplicationFactor, Import, Restore, Task, WhatIf
from kreassign.planner.problem.policy import PlanPolicy

NAME = "shop.orders.v1"
FALLS = f"replication factor of 1 partition falls from 3 to 2: {NAME}-0"
AGREED = replace(PLAIN, allow_factor_change=True)


def inputs(isr: tuple[int, ...] = (1, 2, 3), **configs: str) -> Inputs:
    partition = SnapshotPartition((1, 2, 3), isr, isr[0], 0, (None,) * 3, (1_000,) * 3)
    set_values = {name.replace("_", "."): value for name, value in configs.items()}
    brokers = tuple(SnapshotBroker(Broker(number, "h", 9092), (SnapshotLogDir("/d"),)) for number in range(1, 5))
    found = ClusterSnapshot(0, "c", brokers, (SnapshotTopic(NAME, (partition,), set_values),))
    return inputs_of_snapshot(found, PlanPolicy(), "c@0")


def lists(*replicas: int) -> Plan:
    return Plan((PartitionAssignment(TopicPartition(NAME, 0), replicas),))


def imported(*replicas: int) -> Task:
    return Import(Assignments(PlanFile(lists(*replicas)), "proposals.json"))


@pytest.mark.parametrize("task", [imported(2, 3), Restore(lists(2, 3), "current.json")])
def test_lists_from_elsewhere_lower_a_factor_only_with_consent(task: Task) -> None:
    with pytest.raises(IllegalPlan) as refusal:
        make_plan(inputs(min_insync_replicas="2"), task)
    assert refusal.value.violations == (FALLS, "if that is meant, say so with --allow-factor-change")
    facts = make_plan(inputs(min_insync_replicas="2"), task, AGREED).facts
    assert facts.factors == (FALLS,)
    assert parse_facts(format_facts(facts)).factors == (FALLS,)


def test_an_asked_factor_is_refused_only_below_min_insync_replicas() -> None:
    assert make_plan(inputs(min_insync_replicas="2"), ChangeReplicationFactor(2)).facts.factors == (FALLS,)
    with pytest.raises(IllegalPlan, match=r"min\.insync\.replicas 2 is more than the replication factor 1"):
        make_plan(inputs(min_insync_replicas="2"), ChangeReplicationFactor(1))
    assert len(make_plan(inputs(min_insync_replicas="2"), ChangeReplicationFactor(1), AGREED).plan) == 1
    assert make_plan(inputs(min_insync_replicas="2"), WhatIf(replication_factor=1)).facts.factors


def test_what_is_not_known_of_min_insync_replicas_is_said() -> None:
    falls, unknown = make_plan(inputs(), ChangeReplicationFactor(2)).facts.factors
    assert falls == FALLS
    assert unknown.startswith(f"topic {NAME}: whether the factor is below min.insync.replicas is not known")


def test_a_rising_factor_is_told() -> None:
    facts = make_plan(inputs(min_insync_replicas="2"), imported(1, 2, 3, 4)).facts
    assert facts.factors == (f"replication factor of 1 partition rises from 3 to 4: {NAME}-0",)


def test_no_consent_makes_a_plan_keep_a_lagging_replica_for_one_in_sync() -> None:
    assert make_plan(inputs((1, 3)), ChangeReplicationFactor(2)).plan == lists(1, 3)
    here = Partition(TopicPartition(NAME, 0), (1, 2, 3), (1, 3), 1)
    with pytest.raises(IllegalPlan) as refusal:
        make_plan(inputs((1, 3)), imported(1, 2), AGREED)
    assert refusal.value.violations == (f"{NAME}-0: {lost_in_sync(here, (1, 2))}",), "as a run says it"


def test_replicas_of_unknown_standing_are_named() -> None:
    known = inputs(min_insync_replicas="1")
    problem = replace(known.problem, partitions=replace(known.problem.partitions, in_sync=None))
    _, unknown = make_plan(replace(known, problem=problem), ChangeReplicationFactor(2)).facts.factors
    assert unknown.startswith("which replicas are in sync is not known")
