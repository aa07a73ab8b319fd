"""A load of a small cluster: what it takes beside the start of Spark, and into how many jobs it is cut.

36 partitions are sampled some hundred times. `kreassign load` reads all that, and again what a few rounds more add to
it. Beside them, a process that starts the same Spark session and ends it. Each is run with all that it starts.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from bench.known_load import Shape, known_load, write_hours
from bench.load_stages import complete_stages
from bench.process import Spread, TreeRun, run_kreassign, run_tree
from kreassign.clock import SystemClock
from kreassign.model.load import SparkOptions
from kreassign.pipeline.load.job import run_load
from kreassign.pipeline.spark_session import spark_session

PARTITIONS, INTERVAL_S, FIRST_HOURS, NEW_HOURS = 36, 240, 24, 1
RUNS = 3
_EMPTY = """
import sys
from pathlib import Path
from kreassign.pipeline.spark_session import spark_session
with spark_session(Path(sys.argv[1]) / "spark.log", is_small=True):
    pass
"""


@dataclass(frozen=True, slots=True)
class _Case:
    """A load: what it is called, the tables before it, and their samples that it reads."""

    name: str
    data: Path
    rows: int


def measure(runs: int = RUNS) -> None:
    """Print the table: medians with the least and the most of the runs. The loads take turns with the empty session."""
    with tempfile.TemporaryDirectory() as folder:
        cases = _cases(Path(folder))
        empty: list[TreeRun] = []
        taken: dict[str, list[TreeRun]] = {case.name: [] for case in cases}
        for _ in range(runs):
            empty.append(run_tree([sys.executable, "-c", _EMPTY, folder]))
            for case in cases:
                taken[case.name].append(_run(case.data))
        print(f"{PARTITIONS} partitions, a round every {INTERVAL_S} s; {runs} runs\n")
        print("| | samples | CPU s | beyond an empty session: CPU s | s | MiB | Spark's jobs | stages |")
        print("|---|---|---|---|---|---|---|---|")
        print(f"| an empty session | - | {_cpu(empty)} | - | {_wall(empty)} | {_mib(empty)} | 0 | 0 |")
        start_s = _cpu(empty).median
        for case in cases:
            found = taken[case.name]
            beyond = Spread(tuple(run.cpu_s - start_s for run in found))
            jobs, stages = _jobs(case.data)
            print(
                f"| {case.name} | {case.rows:,} | {_cpu(found)} | {beyond} | {_wall(found)} | {_mib(found)} | {jobs} | "
                f"{stages} |"
            )


def _cases(folder: Path) -> tuple[_Case, _Case]:
    first, later = folder / "first", folder / "later"
    hours = write_hours(later, known_load(Shape(PARTITIONS, days=2, interval_s=INTERVAL_S)), snapshot_day=0)
    rows = sum(islice(hours, FIRST_HOURS))
    shutil.copytree(later, first)
    run_kreassign("load", "--data", str(later))
    return _Case("a first load", first, rows), _Case("the next load", later, sum(islice(hours, NEW_HOURS)))


def _run(data: Path) -> TreeRun:
    """A load of a copy of the tables."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "data"
        shutil.copytree(data, copy)
        return run_kreassign("load", "--data", str(copy))


def _jobs(data: Path) -> tuple[int, int]:
    """Number of jobs that Spark ran, and of their stages, without skipped ones."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "data"
        shutil.copytree(data, copy)
        with spark_session(Path(folder) / "spark.log", SparkOptions("local[2]"), is_small=True) as spark:
            run_load(spark, copy, lambda _: None, now_ms=SystemClock().now_ms())
            return len(spark.sparkContext.statusTracker().getJobIdsForGroup(None)), len(complete_stages(spark))


def _cpu(runs: list[TreeRun]) -> Spread:
    return Spread(tuple(run.cpu_s for run in runs))


def _wall(runs: list[TreeRun]) -> Spread:
    return Spread(tuple(run.wall_s for run in runs))


def _mib(runs: list[TreeRun]) -> str:
    return f"{statistics.median(run.peak_mib for run in runs):,.0f}"
