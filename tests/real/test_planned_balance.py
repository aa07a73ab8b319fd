"""Plan on a snapshot of a real cluster, carry the plan out there, and hold predicted against achieved balance."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kreassign.cli.main import kreassign
from kreassign.operations.plan_files import read_plan_file
from kreassign.operations.plan_inputs import inputs_of_snapshot_file
from kreassign.planner import Assignment
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.problem.policy import PlanPolicy
from testbed import ClusterSpec, KafkaCluster
from testbed.records import load_topic

MEGABYTE = 1_000_000
# What goes to the log meanwhile: offsets of groups, segments' indexes. Goals of counts are exact.
CLOSE = 0.02


@dataclass(frozen=True, slots=True)
class Loads:
    """Bytes, replicas and preferred leaders per broker."""

    disk: dict[int, float]
    replicas: dict[int, float]
    leaders: dict[int, float]


def invoke(*arguments: object) -> str:
    result = CliRunner().invoke(kreassign, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def skewed(cluster: KafkaCluster, topic: str) -> None:
    """24 partitions of 1 to 3 MB; the first two brokers hold nearly all of them, and lead most."""
    one, two, three, four = sorted(cluster.brokers)[:4]
    lists = [[one, two]] * 14 + [[two, one]] * 6 + [[three, four]] * 4
    cluster.create_topic(topic, lists)
    load_topic(cluster.bootstrap_servers, topic, {number: (1 + number % 3) * MEGABYTE for number in range(24)}, seed=1)


def loads_of(snapshot: Path) -> Loads:
    """Loads of a snapshot, added up by the independent check and not by the plan."""
    problem = inputs_of_snapshot_file(snapshot, PlanPolicy()).problem
    found = evaluate(problem, Assignment.current(problem.partitions))
    per_goal = {goal: found.before[:, column].tolist() for column, goal in enumerate(found.goals)}
    return Loads(
        *(dict(zip(found.broker_ids, per_goal[goal], strict=True)) for goal in ("disk", "replicas", "leaders"))
    )


def spread(loads: dict[int, float]) -> float:
    """Distance of the fullest broker from the mean."""
    return max(loads.values()) * len(loads) / sum(loads.values()) - 1


def test_a_real_cluster_becomes_as_even_as_was_predicted(
    start_cluster: Callable[[ClusterSpec], KafkaCluster], topic_name: str, tmp_path: Path
) -> None:
    # Of its own: how even a cluster can become depends on all topics that it has.
    kafka = start_cluster(ClusterSpec(brokers=4))
    skewed(kafka, topic_name)
    where = ("--bootstrap-server", kafka.bootstrap_servers)
    before, after, plan = (tmp_path / name for name in ("before.json", "after.json", "plan.json"))
    invoke("snapshot", *where, "--out", before, "--measure-for", "0")
    planned: dict[str, Any] = json.loads(
        invoke("plan", "rebalance", "--snapshot", before, "--out", plan, "--rate", "20MB/s", "--format", "json")
    )
    run = json.loads(
        invoke(
            "run", "--yes", plan, *where, "--throttle", "20MB/s", "--state-dir", tmp_path / "state", "--format", "json"
        )
    )
    assert run["state"] == "done"
    invoke("snapshot", *where, "--out", after, "--measure-for", "0")

    was, became = loads_of(before), loads_of(after)
    promised = {one["broker"]: one["after"] for one in planned["brokers"]}
    assert became.replicas == {broker: loads["replicas"] for broker, loads in promised.items()}
    assert became.leaders == {broker: loads["leaders"] for broker, loads in promised.items()}
    mean = sum(became.disk.values()) / len(became.disk)
    for broker, loads in promised.items():
        assert became.disk[broker] == pytest.approx(loads["disk"], abs=CLOSE * mean)
    assert spread(became.disk) < 0.12 < spread(was.disk)
    assert read_plan_file(plan).plan.replicas.items() <= assignments(after).items()


def assignments(snapshot: Path) -> dict[Any, tuple[int, ...]]:
    problem = inputs_of_snapshot_file(snapshot, PlanPolicy()).problem
    lists = problem.partitions
    return {lists.name(index): tuple(problem.brokers.ids[lists.list_of(index)].tolist()) for index in range(len(lists))}
