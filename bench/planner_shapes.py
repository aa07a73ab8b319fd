"""Clusters of other shapes than the cases: few brokers, one rack, huge partitions, small topics, heavy tails."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from kreassign.model import TopicPartition
from kreassign.planner import BrokerFacts, PartitionFacts, Problem, problem_of, solve
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.results import least_bytes

GIGABYTE = 1_000_000_000
SEED = 20_260_101


@dataclass(frozen=True, slots=True)
class Shape:
    """Topics have up to `partitions` partitions; their sizes are log-normal with `sigma`; filled 1 to 1 + `skew`."""

    name: str
    brokers: int
    racks: int
    topics: int
    partitions: int
    sigma: float = 1.0
    median_gb: float = 1.0
    skew: float = 2.0
    factor: int = 3


SHAPES = (
    Shape("3 brokers, factor 2", 3, 3, 40, 20, factor=2),
    Shape("5 brokers", 5, 5, 60, 20),
    Shape("8 brokers in 4 racks", 8, 4, 80, 20),
    Shape("one rack", 30, 1, 300, 30),
    Shape("no rack known", 30, 0, 300, 30),
    Shape("huge partitions, about 10 a broker", 30, 5, 20, 8, sigma=0.3, median_gb=500),
    Shape("10,000 topics of 1 or 2 small partitions", 50, 5, 10_000, 2, median_gb=0.01),
    Shape("sizes log-normal 3.0", 50, 5, 1_000, 30, sigma=3.0),
    Shape("sizes log-normal 3.0, 8 brokers", 8, 4, 100, 20, sigma=3.0),
)


def problem(shape: Shape) -> Problem:
    """The cluster of a shape; the same each time. Replicas of a partition are in different racks where that can be."""
    random = Random(SEED)
    hosts = [
        BrokerFacts(broker, rack=f"r{broker % shape.racks}" if shape.racks else None) for broker in range(shape.brokers)
    ]
    weights = [1 + shape.skew * broker / max(1, shape.brokers - 1) for broker in range(shape.brokers)]
    loads = []
    for topic in range(shape.topics):
        typical = random.lognormvariate(0, shape.sigma) * shape.median_gb * GIGABYTE
        for number in range(random.randint(1, shape.partitions)):
            size = max(1, int(typical * random.lognormvariate(0, 0.2)))
            name = TopicPartition(f"topic-{topic:05}", number)
            loads.append(_partition(random, name, size, tuple(_drawn(random, shape, weights))))
    return problem_of(hosts, loads)


def _drawn(random: Random, shape: Shape, weights: list[float]) -> Iterator[int]:
    chosen: list[int] = []
    spread = shape.racks >= shape.factor
    while len(chosen) < shape.factor:
        (broker,) = random.choices(range(shape.brokers), weights)
        if broker in chosen or (spread and broker % shape.racks in {one % shape.racks for one in chosen}):
            continue
        chosen.append(broker)
        yield broker


def _partition(random: Random, name: TopicPartition, size: int, replicas: tuple[int, ...]) -> PartitionFacts:
    write = size / 86_400 * random.uniform(0.5, 2)
    return PartitionFacts(
        name,
        replicas,
        size_bytes=size,
        write_bytes_per_s=write,
        read_bytes_per_s=write * random.choice((1, 2, 5)),
        leader_cpu=write * 1.5,
        follower_cpu=write * 0.5,
    )


def measure() -> None:
    """Plan a rebalance of each, and judge it by the independent check and its bound."""
    titles = "shape | brokers | replicas | cpu s | copied GB | bound GB | × bound | bands missed before | after"
    print(f"| {titles} | broken rules |")
    print("|" + "---|" * 10)
    solve(problem(SHAPES[0]))  # compiles
    for shape in SHAPES:
        posed = problem(shape)
        began_s = time.process_time()
        assignment = solve(posed).assignment
        cpu_s = time.process_time() - began_s
        found = evaluate(posed, assignment)
        least = least_bytes(posed, found)
        ratio = f"{found.moved_bytes / least:.3f}" if least else "–"
        cells = (
            shape.name, shape.brokers, len(posed.partitions.replicas), f"{cpu_s:.2f}", f"{found.moved_bytes / 1e9:.0f}",
            f"{least / 1e9:.0f}", ratio, len(found.misses(before=True)), len(found.misses()), len(found.violations),
        )  # fmt: skip
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)
