"""Times of a full load by table: wall time, and Spark's own account of its stages."""

from __future__ import annotations

import json
import os
import tempfile
import time
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.known_load import Shape, known_load, write_samples
from kreassign.model.load import SparkOptions
from kreassign.pipeline.load.job import run_load
from kreassign.pipeline.spark_session import pages_of, spark_session
from kreassign.pipeline.tables.schemas import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_GIVEN_UP_S = 30.0
_SUMS = ("numCompleteTasks", "executorRunTime", "executorCpuTime", "jvmGcTime", "inputBytes", "shuffleWriteBytes")


@dataclass(frozen=True, slots=True)
class _Step:
    """Step of a load, from a time on, seconds since 1970."""

    name: str
    begun_s: float


def measure(partitions: int = 2_500, interval_s: int = 60) -> None:
    """Print the table. Time of tasks is of Java and of the Python that it waits for; its CPU is of Java alone."""
    with tempfile.TemporaryDirectory() as folder:
        rows = write_samples(Path(folder), known_load(Shape(partitions, days=1, interval_s=interval_s)))
        begun_s, begun_cpu_s = time.time(), _own_cpu_s()
        with spark_session(Path(folder) / "spark.log", SparkOptions("local[2]")) as spark:
            steps = [_Step("snapshots", time.time())]

            def begin(table: Table) -> None:
                steps.append(_Step(table.name, time.time()))

            run_load(spark, Path(folder), lambda _: None, on_begin=begin)
            steps.append(_Step("", time.time()))
            own_s, stages = _own_cpu_s() - begun_cpu_s, complete_stages(spark)
        print(f"{partitions:,} partitions, {rows:,} samples; Spark took {steps[0].begun_s - begun_s:.1f} s to start,")
        print(f"and Python, which tells it what to do, {own_s:.1f} CPU s in all\n")
        print(
            "| step | s | stages | tasks | time of tasks s | Java's CPU s | its collector s | read MB | shuffled MB |"
        )
        print("|---|---|---|---|---|---|---|---|---|")
        for line in _lines(steps, stages):
            print(line)


def _own_cpu_s() -> float:
    return sum(os.times()[:2])


def complete_stages(spark: SparkSession) -> list[dict[str, Any]]:
    """All complete stages of a session, once Spark's pages know of no other."""
    address = f"{pages_of(spark)}/api/v1/applications/{spark.sparkContext.applicationId}/stages"
    opened = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy knows nothing of this machine
    deadline = time.monotonic() + _GIVEN_UP_S
    while True:
        with opened.open(address, timeout=10) as answer:
            stages: list[dict[str, Any]] = json.load(answer)
        if all(each["status"] in {"COMPLETE", "SKIPPED"} for each in stages):
            return [each for each in stages if each["status"] == "COMPLETE"]
        if time.monotonic() > deadline:
            raise TimeoutError("Spark's pages still tell of stages that go on")
        time.sleep(0.1)


def _lines(steps: list[_Step], stages: Iterable[dict[str, Any]]) -> Iterator[str]:
    wall_s: dict[str, float] = defaultdict(float)
    for step, after in pairwise(steps):
        wall_s[step.name] += after.begun_s - step.begun_s
    sums: dict[str, dict[str, float]] = {name: defaultdict(float) for name in wall_s}
    for stage in stages:
        at_s = datetime.strptime(stage["submissionTime"].replace("GMT", "+0000"), "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()
        of_step = sums[[step for step in steps[:-1] if step.begun_s <= at_s][-1].name]
        of_step["stages"] += 1
        for name in _SUMS:
            of_step[name] += stage[name]
    for name, wall in wall_s.items():
        yield _line(name, wall, sums[name].__getitem__)
    yield _line("**all**", sum(wall_s.values()), lambda what: sum(of_step[what] for of_step in sums.values()))


def _line(name: str, wall_s: float, of: Callable[[str], float]) -> str:
    tasks, run_ms, cpu_ns, collector_ms, read, shuffled = (of(name) for name in _SUMS)
    return (
        f"| {name} | {wall_s:.1f} | {of('stages'):.0f} | {tasks:.0f} | {run_ms / 1e3:.1f} | {cpu_ns / 1e9:.1f} | "
        f"{collector_ms / 1e3:.1f} | {read / 1e6:.0f} | {shuffled / 1e6:.0f} |"
    )
