"""Names in a policy or a task are judged by the placement, before anybody waits for loads to be measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.errors import InputError
from kreassign.operations.plan_inputs import Inputs, inputs_of_cluster
from kreassign.operations.plan_tasks import DrainBrokers, ExpectedRates, Rebalance, Task, pose_topic
from kreassign.planner.problem.policy import PlanPolicy
from kreassign.planner.tasks import TopicChoice
from tests.executor.twin_runs import TwinRig

DAY_S = 86_400.0
PLAIN = PlanPolicy()


class Case:
    """A twin with topics t and orders, whose loads take a day to measure."""

    def __init__(self, folder: Path) -> None:
        self.rig = TwinRig(folder / "state", [[0, 1], [1, 2]], others={"orders": [[0, 1]]})

    def refusal(self, policy: PlanPolicy, task: Task) -> str:
        begun = self.rig.transport.now_ms()
        with pytest.raises(InputError) as refused:
            self.inputs(policy, task)
        assert self.rig.transport.now_ms() - begun < 60_000
        return str(refused.value)

    def inputs(self, policy: PlanPolicy, task: Task) -> Inputs:
        clock = self.rig.transport
        return inputs_of_cluster(self.rig.client, policy, measure_for_s=DAY_S, clock=clock, judge=task.pose)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


@pytest.mark.parametrize(("policy", "task", "words"), [
    (PLAIN, Rebalance(TopicChoice(("order",))), "there is no topic 'order' in this cluster; did you mean 'orders'?"),
    (PLAIN, DrainBrokers((7,)), "there is no broker 7 in this cluster; it has 0,1,2,3,4"),
    (PlanPolicy(least_topic_leaders={"odrers": 1}), Rebalance(),
     "least-topic-leaders: there is no topic 'odrers' in this cluster; did you mean 'orders'?"),
    (PlanPolicy(excluded_topics=("order",)), Rebalance(), "no topic matches 'order'; did you mean 'orders'?"),
], ids=["topic", "broker", "policy", "pattern"])  # fmt: skip
def test_a_misspelt_name_is_refused_before_the_measurement(
    case: Case, policy: PlanPolicy, task: Task, words: str
) -> None:
    assert words in case.refusal(policy, task)


def test_what_is_measured_is_not_what_was_judged(case: Case) -> None:
    """Example: nothing is written, while the placement is judged with some rate everywhere."""
    assert not case.inputs(PLAIN, Rebalance()).problem.partitions.write_bytes_per_s.any()


def test_the_topic_that_a_new_one_is_like_is_judged_as_it_is_posed(case: Case) -> None:
    inputs = case.inputs(PLAIN, Rebalance())
    with pytest.raises(InputError, match="there is no topic 'odrers' in this cluster; did you mean 'orders'"):
        pose_topic(inputs, PLAIN, "new", 2, 2, "odrers")
    assert pose_topic(inputs, PLAIN, "new", 2, 2, ExpectedRates())
