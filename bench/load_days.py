"""A load a day for 90 days: what each costs, beside loads that read all samples again."""

from __future__ import annotations

import os
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from bench.known_load import BEGIN_MS, DAY_MS, Shape, known_load, write_hours
from kreassign.model.spark_options import SparkOptions
from kreassign.pipeline.load.job import run_load
from kreassign.pipeline.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TOLD = (2, 10, 20, 30, 45, 60, 75, 90)


def measure(days: int = 90, partitions: int = 100, interval_s: int = 300) -> None:
    """Print a row for some of the days. All loads are in one session, so that Java is as warm for all but the first."""
    shape = Shape(partitions=partitions, days=days, interval_s=interval_s)
    print(f"{partitions} partitions, a round every {interval_s} s; a load a day for {days} days\n")
    print("| day | samples so far | a day's load: s | Java's CPU s | a load of all: s | Java's CPU s |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        data, rows = Path(folder) / "data", 0
        hours = write_hours(data, known_load(shape), snapshot_day=0)
        with spark_session(Path(folder) / "spark.log", SparkOptions("local[2]"), is_small=True) as spark:
            for day in range(1, days + 1):
                rows += sum(islice(hours, 24))
                cells = [_load(spark, data, day, is_full=False)]
                if day in _TOLD:
                    cells.append(_load(spark, data, day, is_full=True))
                    told = (f"{wall_s:.1f} | {cpu_s:.1f}" for wall_s, cpu_s in cells)
                    print(f"| {day} | {rows:,} | " + " | ".join(told) + " |", flush=True)


def _load(spark: SparkSession, data: Path, day: int, *, is_full: bool) -> tuple[float, float]:
    """Seconds that a load takes, and seconds of processor time of Java."""
    begun, begun_cpu = time.perf_counter(), _java_cpu_s()
    run_load(spark, data, lambda _: None, now_ms=BEGIN_MS + (day + 1) * DAY_MS + is_full, is_full=is_full)
    return time.perf_counter() - begun, _java_cpu_s() - begun_cpu


def _java_cpu_s() -> float:
    """Processor time of the Java that Spark has started, the only child that lives."""
    ours = str(os.getpid())
    stats = [file.read_text().rpartition(")")[2].split() for file in Path("/proc").glob("[0-9]*/stat")]
    return sum(int(each[11]) + int(each[12]) for each in stats if each[1] == ours) / os.sysconf("SC_CLK_TCK")
