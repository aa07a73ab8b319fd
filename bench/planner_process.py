"""One planning process, from file to plan file: `python -m bench.planner_process TASK CASE BROKERS RACKS OUT`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.planner_files import read_case, write_plan
from kreassign.planner import Assignment, BrokerFacts, LogDirs, Problem, Rules, bytes_bound, problem_of, solve
from kreassign.planner.arrays import FloatArray
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.tasks import only_forced

SHARE = 10  # one broker in so many is drained or joins
SEED = 3
DISKS = 12
TOLERANCE = 0.10


def drain(problem: Problem) -> Problem:
    """Decommission a tenth of the brokers, drawn at random."""
    count = len(problem.brokers)
    leaving = np.zeros(count, bool)
    leaving[np.random.default_rng(SEED).choice(count, count // SHARE, replace=False)] = True
    return replace(problem, brokers=replace(problem.brokers, must_empty=leaving))


def add(problem: Problem) -> Problem:
    """A tenth more brokers, empty, in the racks that there are."""
    count, racks = len(problem.brokers), len(problem.brokers.rack_names)
    hosts = [BrokerFacts(broker, rack=f"rack-{broker % racks:03}") for broker in range(count + count // SHARE)]
    return replace(problem, brokers=problem_of(hosts, ()).brokers)


def factor(problem: Problem) -> Problem:
    """Cluster with the first two replicas of each partition, to have three again."""
    partitions = problem.partitions
    kept = (np.arange(len(partitions.replicas)) - np.repeat(partitions.offsets[:-1], partitions.factors)) < 2
    lists = replace(
        partitions,
        offsets=np.concatenate(([0], np.cumsum(np.minimum(partitions.factors, 2)))).astype(np.int32),
        replicas=partitions.replicas[kept],
        log_dirs=partitions.log_dirs[kept],
        is_lost=partitions.is_lost[kept],
        in_sync=None if partitions.in_sync is None else partitions.in_sync[kept],
    )
    return replace(problem, partitions=lists)


def disks(problem: Problem) -> Problem:
    """Every broker with twelve directories, the last of which hold three times as much as the first; they alone."""
    count = len(problem.brokers)
    dirs = LogDirs(
        brokers=np.repeat(np.arange(count, dtype=np.int32), DISKS),
        paths=tuple(f"/d{disk:02}" for disk in range(DISKS)) * count,
        capacity_bytes=np.full(count * DISKS, np.inf),
        may_receive=np.ones(count * DISKS, bool),
        must_empty=np.zeros(count * DISKS, bool),
    )
    weights = np.linspace(1, 3, DISKS) / np.linspace(1, 3, DISKS).sum()
    drawn = np.random.default_rng(SEED).choice(DISKS, len(problem.partitions.replicas), p=weights)
    placed = (problem.partitions.replicas * DISKS + drawn).astype(np.int32)
    rules = Rules(between_brokers=False, leaders=False, between_log_dirs=True)
    return replace(problem, log_dirs=dirs, rules=rules, partitions=replace(problem.partitions, log_dirs=placed))


def brokers_and_disks(problem: Problem) -> Problem:
    """Cluster with moves between brokers and between disks, in one plan."""
    return replace(disks(problem), rules=Rules(between_log_dirs=True))


TASKS: dict[str, Callable[[Problem], Problem]] = {
    "rebalance": lambda problem: problem,
    "drain": lambda problem: only_forced(drain(problem)),
    "drain and balance": drain,
    "add": add,
    "factor": lambda problem: only_forced(factor(problem)),
    "factor and balance": factor,
    "disks": disks,
    "brokers and disks": brokers_and_disks,
}


def main() -> None:
    """Plan, write the plan, and with JUDGE as a sixth argument print what it costs and brings."""
    task, case, brokers, racks, out = sys.argv[1:6]
    problem = TASKS[task](read_case(Path(case), int(brokers), int(racks)))
    solution = solve(problem)
    write_plan(Path(out), problem, solution.assignment)
    if sys.argv[6:] == ["judge"]:
        print(json.dumps(judged(problem, solution.assignment) | judged_disks(problem, solution.assignment)))


def judged(problem: Problem, assignment: Assignment) -> dict[str, int]:
    """Results of the independent check and the bound."""
    found = evaluate(problem, assignment)
    return {
        "moved": found.moved_bytes,
        "bound": bytes_bound(problem).total,
        "misses": len(found.misses()),
        "violations": len(found.violations),
        "moved_inside": found.log_dir_bytes,
    }


def judged_disks(problem: Problem, assignment: Assignment) -> dict[str, int]:
    """Directories outside ±10 % of their broker's mean, before and after, and what each broker must at least move."""
    if problem.log_dirs is None:
        return {}
    before, after = (_by_disk(problem, one) for one in (Assignment.current(problem.partitions), assignment))
    middle = before.mean(axis=1, keepdims=True)
    excess = np.maximum(before - (1 + TOLERANCE) * middle, 0).sum(axis=1)
    lack = np.maximum((1 - TOLERANCE) * middle - before, 0).sum(axis=1)
    return {
        "disks_out_before": _outside(before),
        "disks_out": _outside(after),
        "bound_inside": int(np.maximum(excess, lack).sum()),
    }


def _by_disk(problem: Problem, assignment: Assignment) -> FloatArray:
    sizes = np.repeat(problem.partitions.size_bytes, np.diff(assignment.offsets))
    held = np.bincount(assignment.log_dirs, sizes, len(problem.brokers) * DISKS)
    return held.astype(float).reshape(-1, DISKS)


def _outside(held: FloatArray) -> int:
    return int((np.abs(held / held.mean(axis=1, keepdims=True) - 1) > TOLERANCE + 1e-9).sum())


if __name__ == "__main__":
    main()
