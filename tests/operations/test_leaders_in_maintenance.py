"""A broker of a twin in maintenance leads nothing: no plan, no run and no election at its end lets it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from kreassign.errors import ClusterError
from kreassign.executor.events import RunStarted, VerdictsRecorded
from kreassign.executor.lease import LeasePolicy
from kreassign.executor.maintenance.record import ids_in_maintenance
from kreassign.operations.plan import make_plan
from kreassign.operations.plan_inputs import inputs_of_cluster
from kreassign.operations.plan_tasks import BalanceLeaders, Rebalance, Task
from kreassign.planner.goals import LEADERS
from kreassign.planner.problem.policy import PlanPolicy
from kreassign.planner.problem.problem import Band
from tests.executor.twin_runs import MEGABYTES, RATE, TwinRig
from tests.operations.test_maintenance import Operator, leaders, lists

LISTS = [*([1, 3] for _ in range(40)), [3, 1]]


def operator(tmp_path: Path, lists: list[list[int]], release: str, **settings: int) -> Operator:
    rig = TwinRig(tmp_path / "bob", lists, release=release, **settings)
    rig.in_maintenance = partial(ids_in_maintenance, rig.client)
    rig.end_within(3_000)
    return Operator(rig, tmp_path / "ann", LeasePolicy.REQUIRE)


def planned(ann: Operator, task: Task) -> tuple[dict[int, tuple[int, ...]], tuple[str, ...]]:
    policy = PlanPolicy(bands=(Band(LEADERS),))
    inputs = inputs_of_cluster(ann.rig.client, policy, measure_for_s=0, clock=ann.rig.transport)
    outcome = make_plan(inputs, task)
    found = {name.partition: target for name, target in outcome.plan.replicas.items() if name.topic == "t"}
    return found, outcome.facts.remaining


@pytest.mark.parametrize("task", [BalanceLeaders(), Rebalance()])
@pytest.mark.parametrize("release", ["4.2", "4.3", "4.4"])
def test_no_plan_lets_it_lead_until_the_end(tmp_path: Path, release: str, task: Task) -> None:
    ann = operator(tmp_path, LISTS, release)
    assert ann.enter().is_finished
    found, remaining = planned(ann, task)
    assert 3 not in {target[0] for target in found.values()}
    assert any("broker 3 gets nothing" in one and "it is in maintenance" in one for one in remaining)
    assert ann.exit().is_finished
    found, _ = planned(ann, task)
    assert sum(target[0] == 3 for target in (dict(enumerate(map(tuple, LISTS))) | found).values()) > 1


@pytest.mark.parametrize("target", [(3, 1, 2), (3, 0, 2)])
@pytest.mark.parametrize("release", ["4.2", "4.3", "4.4"])
def test_a_list_that_lets_it_lead_waits_alone(tmp_path: Path, release: str, target: tuple[int, ...]) -> None:
    ann = operator(tmp_path, [[1, 3, 2], [1, 4, 2]], release)
    rig, meanwhile = ann.rig, list[list[list[int]]]()
    started = rig.prepared({0: target, 1: (1, 0, 2)}, throttle=None)
    assert ann.enter().is_finished

    def end() -> None:
        meanwhile.append(lists(rig))
        assert ann.exit().is_finished

    rig.between_steps(40, end)
    run = rig.run(started)
    assert meanwhile == [[[1, 3, 2], [1, 0, 2]]]
    assert (lists(rig)[0], leaders(rig)[0], run.state) == (list(target), 3, "done")
    told = [str(one) for event in rig.seen if isinstance(event, VerdictsRecorded) for one in event.verdicts]
    assert any(
        "broker 3 is to become the leader of partitions that wait, but it is in maintenance" in one for one in told
    )


def began_before(ann: Operator) -> RunStarted:
    """A run that keeps broker 3 first in a list, which enters maintenance in the middle and is restarted."""
    rig = ann.rig
    rig.between_steps(10, lambda: ann.enter(wait_s=20))
    rig.after(40, lambda: rig.twin.stop(3))
    rig.after(70, lambda: rig.twin.start(3))
    return rig.prepared({0: (3, 0, 2)}, throttle=RATE)


def test_the_election_at_the_end_of_a_run_passes_it_over(tmp_path: Path) -> None:
    ann = operator(tmp_path, [[3, 0, 1]], "4.2", size_bytes=200 * MEGABYTES)
    ann = replace(ann, state_dir=ann.rig.state_dir)
    run = ann.rig.run(began_before(ann))
    assert (lists(ann.rig), run.state) == ([[3, 0, 2]], "done")
    assert leaders(ann.rig) != [3]
    (told,) = [one for one in run.problems if "maintenance" in one]
    assert told.startswith("t-0 got no election of broker 3, which was in maintenance: ")
    assert ann.exit().is_finished
    assert leaders(ann.rig) == [3]


def test_nobody_is_elected_while_it_is_unknown_who_is_in_maintenance(tmp_path: Path) -> None:
    ann = operator(tmp_path, [[3, 0, 1]], "4.2", size_bytes=200 * MEGABYTES)
    rig = ann.rig
    ann = replace(ann, state_dir=rig.state_dir)
    started = began_before(ann)

    def silent() -> Collection[int]:
        raise ClusterError("no answer")

    rig.after(60, lambda: setattr(rig.runner, "_in_maintenance", silent))
    run = rig.run(started)
    assert (lists(rig), run.state) == ([[3, 0, 2]], "failed")
    assert leaders(rig) != [3]
