"""A load a day for 90 days: what each costs, beside loads that read all samples again.

The days go on in one session. On some of them what the command itself takes is measured, on copies of the tables:
`kreassign load` and `kreassign load --full`, each a process of its own with all that it starts (Java, and the Python
that judges samples there), Spark's start too. So each is started as small as its rows are few (`SMALL_ROWS`).
"""

from __future__ import annotations

import shutil
import tempfile
from itertools import islice
from pathlib import Path

from bench.known_load import BEGIN_MS, DAY_MS, Shape, known_load, write_hours
from bench.process import TreeRun, run_kreassign
from kreassign.model.load import SparkOptions
from kreassign.pipeline.load.job import rows_to_read, run_load
from kreassign.pipeline.spark_session import SMALL_ROWS, spark_session

_TOLD = (2, 10, 20, 30, 45, 60, 75, 90)


def measure(days: int = 90, partitions: int = 100, interval_s: int = 300) -> None:
    """Print a row for some of the days."""
    shape = Shape(partitions=partitions, days=days, interval_s=interval_s)
    print(
        f"{partitions} partitions, a round every {interval_s} s; a load a day for {days} days. A session is started as"
    )
    print(f"a small one up to {SMALL_ROWS:,} rows of samples and hours\n")
    print("| day | samples so far | a day's load: rows | s | CPU s | MiB | a load of all: rows | s | CPU s | MiB |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        data, rows = Path(folder) / "data", 0
        hours = write_hours(data, known_load(shape), snapshot_day=0)
        with spark_session(Path(folder) / "spark.log", SparkOptions("local[2]"), is_small=True) as spark:
            for day in range(1, days + 1):
                rows += sum(islice(hours, 24))
                if day in _TOLD:
                    told = " | ".join(_told(data, arguments) for arguments in ((), ("--full",)))
                    print(f"| {day} | {rows:,} | {told} |", flush=True)
                run_load(spark, data, lambda _: None, now_ms=BEGIN_MS + (day + 1) * DAY_MS)


def _told(data: Path, arguments: tuple[str, ...]) -> str:
    rows, taken = rows_to_read(data, is_full=bool(arguments)), _run(data, arguments)
    return f"{rows:,} | {taken.wall_s:.1f} | {taken.cpu_s:.1f} | {taken.peak_mib:,.0f}"


def _run(data: Path, arguments: tuple[str, ...]) -> TreeRun:
    """A load of a copy of the tables."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "data"
        shutil.copytree(data, copy)
        return run_kreassign("load", *arguments, "--data", str(copy))
