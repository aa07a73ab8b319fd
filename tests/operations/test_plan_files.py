import json
from dataclasses import replace
from pathlib import Path

import pytest

from kreassign.errors import MalformedPlan
from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.plan_facts import PlanFacts, PlannedPartition, Totals, plan_id
from kreassign.operations.plan_files import PlanFile, approve, read_assignments, read_plan_file, write_plan
from kreassign.operations.verify import read_placement


def test_a_plan_that_was_written_is_read_back(tmp_path: Path) -> None:
    plan = Plan((PartitionAssignment(TopicPartition("t", 0), (2, 1)),))
    write_plan(tmp_path / "plan.json", plan, None)
    assert read_plan_file(tmp_path / "plan.json").plan == plan
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


@pytest.mark.parametrize("content", [b"once upon a time", b"\xff\xfe", b'{"version":7}'])
def test_what_is_no_plan_is_refused_with_the_name_of_the_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    with pytest.raises(MalformedPlan) as refused:
        read_plan_file(path)
    assert refused.value.path == str(path)
    assert str(path) in str(refused.value)


PLAN = Plan((PartitionAssignment(TopicPartition("t", 0), (2, 1)),))
FACTS = PlanFacts(
    plan_id(PLAN),
    "hash",
    "rebalance",
    Totals(0, 0, 1),
    partitions=(PlannedPartition(TopicPartition("t", 0), (1, 2), 5),),
)


def test_facts_are_kept_beside_the_plan_and_read_with_it(tmp_path: Path) -> None:
    write_plan(tmp_path / "plan.json", PLAN, FACTS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan.facts.json", "plan.json"]
    found = read_plan_file(tmp_path / "plan.json")
    assert found == PlanFile(PLAN, {TopicPartition("t", 0): (1, 2)}, FACTS)


def test_a_plan_without_facts_expects_nothing(tmp_path: Path) -> None:
    write_plan(tmp_path / "plan", PLAN, None)
    assert read_plan_file(tmp_path / "plan") == PlanFile(PLAN)


def test_a_new_plan_leaves_no_facts_of_the_old_one(tmp_path: Path) -> None:
    other = Plan((PartitionAssignment(TopicPartition("t", 1), (2, 1)),))
    write_plan(tmp_path / "plan.json", PLAN, FACTS)
    write_plan(tmp_path / "plan.json", other, None)
    assert read_plan_file(tmp_path / "plan.json") == PlanFile(other)


def test_facts_of_another_plan_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    write_plan(path, PLAN, FACTS)
    path.write_text(path.read_text().replace("[2,1]", "[2,3]"))
    with pytest.raises(MalformedPlan, match=r"plan\.facts\.json: describes plan .* was changed after"):
        read_plan_file(path)


def test_damaged_facts_are_refused_with_the_name_of_their_file(tmp_path: Path) -> None:
    write_plan(tmp_path / "plan.json", PLAN, None)
    (tmp_path / "plan.facts.json").write_text("{}")
    with pytest.raises(MalformedPlan) as refused:
        read_plan_file(tmp_path / "plan.json")
    assert refused.value.path == str(tmp_path / "plan.facts.json")


def test_proposals_of_cruise_control_are_read_as_a_plan(tmp_path: Path) -> None:
    path = tmp_path / "proposals.json"
    path.write_text(
        '{"proposals":[{"topicPartition":{"topic":"t","partition":0},"oldReplicas":[1,2],"newReplicas":[2,1]}]}'
    )
    assert read_plan_file(path).plan == PLAN
    assert read_plan_file(path).expected == {TopicPartition("t", 0): (1, 2)}


GENERATED = (
    "Current partition replica assignment\n"
    '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}\n\n'
    "Proposed partition reassignment configuration\n"
    '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[2,1]}]}'
)


def test_an_output_of_generate_is_a_plan_with_what_it_was_made_from(tmp_path: Path) -> None:
    path = tmp_path / "generated.txt"
    path.write_text(GENERATED)
    assert read_plan_file(path) == PlanFile(PLAN, {TopicPartition("t", 0): (1, 2)})
    assert read_assignments([path]).file.expected == read_plan_file(path).current == {TopicPartition("t", 0): (1, 2)}


def test_two_assignments_are_no_placement(tmp_path: Path) -> None:
    path = tmp_path / "generated.json"
    path.write_text(GENERATED)
    for read in (lambda: read_plan_file(path, takes_two=False), lambda: read_placement([tmp_path])):
        with pytest.raises(MalformedPlan, match=r"generated\.json: it has two assignments, .* save the JSON"):
            read()


@pytest.mark.parametrize(("replicas", "said"), [
    ([], "t-0: the list of replicas is empty"), ([1, 2, 1], "t-0: broker 1 is named more than once")
])  # fmt: skip
def test_a_list_that_no_partition_can_have_is_refused_with_its_file(
    tmp_path: Path, replicas: list[int], said: str
) -> None:
    path = tmp_path / "odd.json"
    path.write_text(json.dumps({"partitions": [{"topic": "t", "partition": 0, "replicas": replicas}]}))
    with pytest.raises(MalformedPlan, match=rf"odd\.json: {said}"):
        read_assignments([path])


def test_a_facts_file_and_an_approval_are_no_plans(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    write_plan(path, PLAN, FACTS)
    approve(path, plan_id(PLAN), "ann", "", 1)
    for name, words in (("plan.facts.json", "the facts file of a plan"), ("plan.approval.json", "the approval of a")):
        with pytest.raises(MalformedPlan, match=rf"{name}: this is {words}"):
            read_plan_file(tmp_path / name)
    assert read_assignments([tmp_path]).file.plan == PLAN


def test_a_facts_file_that_names_a_partition_twice_is_refused(tmp_path: Path) -> None:
    write_plan(tmp_path / "plan.json", PLAN, replace(FACTS, partitions=FACTS.partitions * 2))
    with pytest.raises(MalformedPlan, match=r"plan\.facts\.json: .* it has a partition twice"):
        read_plan_file(tmp_path / "plan.json")
