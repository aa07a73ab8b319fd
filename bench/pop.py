"""A giant cluster, planned as a whole and in parts: bytes, bound, and time by number of parts.

The bound is what any plan must copy that meets every band; where some are missed, a plan may stay below it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from kreassign.model.load import SparkOptions
from kreassign.model.replica_columns import ReplicaColumns
from kreassign.pipeline.spark_session import map_on_executors, spark_session
from kreassign.planner import BrokerFacts, Problem, bytes_bound, problem_from, solve
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.problem.problem import Assignment
from kreassign.planner.search.subproblems import DEFAULT_SEED, attempt, merged, split

Result = TypeVar("Result")

RACKS = 20
FACTOR = 3
SEED = 7


@dataclass(frozen=True, slots=True)
class Timed:
    """Seconds of the longest part, of all parts one after the other, and of everything else."""

    longest_s: float
    parts_s: float
    rest_s: float


def giant(brokers: int, replicas: int, topics: int) -> Problem:
    """Brokers in racks, three replicas in three racks, sizes and rates over two orders, brokers filled 1 : 3."""
    random = np.random.default_rng(SEED)
    count = replicas // FACTOR
    topic = np.sort(random.integers(0, topics, count))
    begins = np.flatnonzero(np.diff(topic, prepend=-1))
    number = np.arange(count) - np.repeat(begins, np.diff(np.append(begins, count)))
    popularity = random.lognormal(0, 1.2, topics)[topic]
    size = popularity * random.lognormal(0, 0.3, count) * 1e9
    write = popularity * random.lognormal(0, 0.3, count) * 1e4
    columns = ReplicaColumns(
        topic_names=tuple(f"topic-{index:06}" for index in range(topics)),
        topics=np.repeat(topic, FACTOR).astype(np.int32),
        partitions=np.repeat(number, FACTOR).astype(np.int32),
        brokers=_placed(random, brokers, count).ravel().astype(np.int32),
        positions=np.tile(np.arange(FACTOR), count).astype(np.int32),
        is_reassigning=np.zeros(count * FACTOR, bool),
        size_bytes=np.repeat(size, FACTOR),
        write_bytes_per_s=np.repeat(write, FACTOR),
    )
    return problem_from([BrokerFacts(number, rack=f"rack-{number % RACKS}") for number in range(brokers)], columns)


def measure(brokers: int = 1_000, replicas: int = 2_000_000, parts: Sequence[int] = (1, 2, 4, 8, 16)) -> None:
    """Plan in as many parts as given, one after the other, and print a row for each."""
    solve(giant(40, 6_000, 50))  # compiles
    problem = giant(brokers, replicas, topics=brokers * 20)
    print(f"{brokers} brokers, {len(problem.partitions.replicas)} replicas, seed {DEFAULT_SEED}\n")
    print("| parts | moved TB | x bound | x single | misses | longest part s | all parts s | rest s |")
    print("|---|---|---|---|---|---|---|---|")
    single, bound = 0, bytes_bound(problem).total
    for count in parts:
        assignment, timed = _planned(problem, count)
        found = evaluate(problem, assignment)
        assert not found.violations, found.violations[:3]
        single = single or found.moved_bytes
        print(
            f"| {count} | {found.moved_bytes / 1e12:.2f} | {found.moved_bytes / bound:.4f} "
            f"| {found.moved_bytes / single:.4f} | {len(found.misses())} | {timed.longest_s:.1f} "
            f"| {timed.parts_s:.1f} | {timed.rest_s:.1f} |",
            flush=True,
        )


def measure_executors(
    brokers: int = 100, replicas: int = 200_000, parts: int = 4, executors: Sequence[int] = (1, 2), runs: int = 3
) -> None:
    """Solve the parts of a smaller cluster on so many executors of Spark on this machine, and print a row for each."""
    problem = giant(brokers, replicas, topics=brokers * 20)
    problems = [part.problem for part in split(problem, parts)]
    print(f"{brokers} brokers, {len(problem.partitions.replicas)} replicas, {parts} parts\n")
    print("| executors | parts solved and sent to and fro, s |")
    print("|---|---|")
    for count in executors:
        with (
            TemporaryDirectory() as folder,
            spark_session(Path(folder) / "spark.log", SparkOptions(f"local[{count}]")) as spark,
        ):
            map_on_executors(spark, attempt, problems)  # starts the workers
            seconds = sorted(_timed(lambda: map_on_executors(spark, attempt, problems))[1] for _ in range(runs))
        print(f"| {count} | {seconds[len(seconds) // 2]:.1f} ({seconds[0]:.1f}–{seconds[-1]:.1f}) |", flush=True)


def _planned(problem: Problem, count: int) -> tuple[Assignment, Timed]:
    if count == 1:
        whole, seconds = _timed(lambda: solve(problem).assignment)
        return whole, Timed(seconds, seconds, 0.0)
    parts, cutting_s = _timed(lambda: split(problem, count))
    answers = [_timed(partial(attempt, part.problem)) for part in parts]
    each_s = [taken for _, taken in answers]
    begin, merging_s = _timed(lambda: merged(problem, parts, [answer for answer, _ in answers]))
    whole, repair_s = _timed(lambda: solve(problem, begin).assignment)
    return whole, Timed(max(each_s), sum(each_s), cutting_s + merging_s + repair_s)


def _timed(work: Callable[[], Result]) -> tuple[Result, float]:
    begun = time.perf_counter()
    found = work()
    return found, time.perf_counter() - begun


def _placed(random: np.random.Generator, brokers: int, count: int) -> npt.NDArray[np.int64]:
    """Brokers of each partition, in three racks; within a rack by weights from 1 to 3."""
    racks = np.argsort(random.random((count, RACKS)), axis=1)[:, :FACTOR]
    per_rack = brokers // RACKS
    weights = 1 + 2 * np.arange(per_rack) / max(1, per_rack - 1)
    within = random.choice(per_rack, (count, FACTOR), p=weights / weights.sum())
    return within * RACKS + racks
