"""`python -m bench [NAME ...]`: run the named benchmarks, or all, and print their tables."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable
from pathlib import Path

from bench import (
    autopilot,
    collecting,
    commands,
    eta,
    executor_cost,
    forecast_truth,
    installs,
    journal_week,
    laws,
    load_days,
    load_files,
    load_kills,
    load_rounds,
    load_small,
    load_stages,
    load_truth,
    makespan,
    pacing,
    phases,
    pipeline_scale,
    pipeline_truth,
    planner,
    planner_exact,
    planner_random,
    planner_shapes,
    pop,
    real_run,
    record_audit,
    soak_connections,
    soak_hour,
    soak_page,
    soak_virtual,
    start_up,
    stream_kills,
    tools,
    twin_calibration,
    twin_churn,
    twin_million,
    twin_scale,
    twin_server,
    twin_start,
)

BENCHMARKS: dict[str, Callable[[], None]] = {
    "autopilot": autopilot.measure,
    "collecting": collecting.measure,
    "collecting-day": collecting.measure_day,
    "commands": commands.measure,
    "tools-1500": lambda: tools.compare(partitions=1_500, moving=1_500, runs=5),
    "tools-20000": lambda: tools.compare(partitions=20_000, moving=9_900, runs=3),
    "twin-calibration": twin_calibration.measure,
    "twin-churn": twin_churn.measure,
    "twin-start": twin_start.measure,
    "twin-million": twin_million.measure,
    "planner-random": planner_random.measure,
    "planner-shapes": planner_shapes.measure,
    "pop": pop.measure,
    "pop-executors": pop.measure_executors,
    "record-audit": record_audit.measure,
    "start-up": start_up.measure,
    "installs": installs.measure,
    "stream-kills": stream_kills.measure,
    "twin-scale": twin_scale.measure,
    "twin-server": twin_server.measure,
    "pipeline-truth": pipeline_truth.measure,
    "load-truth": load_truth.measure,
    "load-truth-others": load_truth.measure_others,
    "forecast-scores": forecast_truth.measure_scores,
    "forecast-totals": forecast_truth.measure_totals,
    "load-days": load_days.measure,
    "load-files": load_files.measure,
    "load-kills": load_kills.measure,
    "load-rounds": load_rounds.measure,
    "load-small": load_small.measure,
    "load-stages": load_stages.measure,
    "forecast-truth": forecast_truth.measure,
    "pipeline-250": lambda: pipeline_scale.measure(250, 60),
    "pipeline-2500": lambda: pipeline_scale.measure(2_500, 60),
    "pipeline-10000x30s": lambda: pipeline_scale.measure(10_000, 30),
    "pipeline-33334x30s": lambda: pipeline_scale.measure(33_334, 30),
    "pacing": pacing.measure,
    "makespan": makespan.measure,
    "real-run": real_run.measure,
    "eta": eta.measure,
    "executor-cost": executor_cost.measure,
    "journal-week": journal_week.measure,
    "laws": laws.measure,
    "planner": planner.measure,
    "planner-tasks": planner.measure_tasks,
    "planner-disks": planner.measure_disks,
    "planner-first": planner.measure_first,
    "planner-growth": planner.measure_growth,
    "phases-20000": lambda: phases.measure(partitions=20_000, runs=5),
}

ON_DEMAND: dict[str, Callable[[], None]] = {
    "planner-exact": planner_exact.measure,
    "soak-connections": soak_connections.measure,
    "soak-hour": soak_hour.measure,
    "soak-page": soak_page.measure,
    "soak-virtual": soak_virtual.measure,
}
"""What needs more than `make venv` installs, or lasts for long and writes a page (`make soak`)."""


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(BENCHMARKS)}; none means all")
    names = parser.parse_args().names or list(BENCHMARKS)
    unknown = [name for name in names if name not in BENCHMARKS | ON_DEMAND]
    if unknown:
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    print(machine())
    for name in names:
        print(f"\n## {name}\n")
        (BENCHMARKS | ON_DEMAND)[name]()


def machine() -> str:
    """The measuring machine in one line: processors, memory, Python."""
    memory_kib = next(
        int(line.split()[1]) for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal")
    )
    cores = len(os.sched_getaffinity(0))
    return (
        f"machine: {cores} cores, {memory_kib / 2**20:.0f} GiB, {platform.system()}, Python {platform.python_version()}"
    )


if __name__ == "__main__":
    main()
