"""One planning process, from file to plan file: `python -m bench.planner_process TASK CASE BROKERS RACKS OUT`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.planner_files import read_case, write_plan
from kreassign.planner import BrokerFacts, Problem, evaluate, problem_of, solve
from kreassign.planner.bounds import bytes_bound

SHARE = 10  # one broker in so many is drained or joins
SEED = 3


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
    """The same cluster with the first two replicas of each partition, to have three again."""
    partitions = problem.partitions
    kept = (np.arange(len(partitions.replicas)) - np.repeat(partitions.offsets[:-1], partitions.factors)) < 2
    lists = replace(
        partitions,
        offsets=np.concatenate(([0], np.cumsum(np.minimum(partitions.factors, 2)))).astype(np.int32),
        replicas=partitions.replicas[kept],
        log_dirs=partitions.log_dirs[kept],
    )
    return replace(problem, partitions=lists)


TASKS: dict[str, Callable[[Problem], Problem]] = {
    "rebalance": lambda problem: problem,
    "drain": drain,
    "add": add,
    "factor": factor,
}


def main() -> None:
    """Plan, write the plan, and with JUDGE as a sixth argument print what it costs and brings."""
    task, case, brokers, racks, out = sys.argv[1:6]
    problem = TASKS[task](read_case(Path(case), int(brokers), int(racks)))
    solution = solve(problem)
    write_plan(Path(out), problem, solution.assignment)
    if sys.argv[6:] == ["judge"]:
        judged = evaluate(problem, solution.assignment)
        print(
            json.dumps(
                {
                    "moved": judged.moved_bytes,
                    "bound": bytes_bound(problem).total,
                    "held": int((problem.partitions.size_bytes * problem.partitions.factors).sum()),
                    "misses": len(judged.misses()),
                    "violations": len(judged.violations),
                    "moves": judged.moves,
                    "leader_changes": judged.leader_changes,
                }
            )
        )


if __name__ == "__main__":
    main()
