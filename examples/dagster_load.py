"""Assets for Dagster: a snapshot, the load that is made of it, and a check of how much of the load is doubtful.

Samples come from `kreassign collect`, which runs all the time as a service of its own: a rate needs what was before.
Try it with `dagster dev -f dagster_load.py`, with the addresses in the environment of the process:
KREASSIGN_BOOTSTRAP_SERVER and KREASSIGN_DATA.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import dagster as dg

import kreassign

MOST_DOUBTFUL = 0.1
"""A plan from a load with a larger share of doubtful writes is a guess."""


def run(command_line: str) -> str:
    """Run a command of kreassign; what it printed. Its exit code is 0, or the asset fails and its log says why."""
    return subprocess.run(shlex.split(command_line), check=True, stdout=subprocess.PIPE, text=True).stdout


@dg.asset(group_name="kafka")
def snapshot() -> dg.MaterializeResult:
    """The cluster as it is: tables `clusters`, `brokers`, `partitions` and `replicas`."""
    return dg.MaterializeResult(metadata={"told": run("kreassign snapshot")})


@dg.asset(group_name="kafka", deps=[snapshot])
def load() -> dg.MaterializeResult:
    """Size and write rate of every partition, with the forecast: tables `load_model`, `forecast`, `plan_inputs`."""
    told = run("kreassign load --quality --page load.html")
    totals = [found.totals for found in kreassign.show_load(Path(os.environ["KREASSIGN_DATA"]))]
    return dg.MaterializeResult(
        metadata={
            "told": dg.MetadataValue.md(f"```\n{told}\n```"),
            "page": dg.MetadataValue.path("load.html"),
            "dagster/row_count": sum(each.partition_count for each in totals),
            "size_bytes": sum(each.size_bytes for each in totals),
        }
    )


@dg.asset_check(asset=load)
def little_is_doubtful() -> dg.AssetCheckResult:
    """Whether nine tenths of the writes were measured well enough to plan by."""
    doubtful = [found.doubtful for found in kreassign.show_load(Path(os.environ["KREASSIGN_DATA"]))]
    # Without any known write there is no share: then a single doubtful partition is too many.
    share = max(float(each.count > 0) if each.write_share is None else each.write_share for each in doubtful)
    return dg.AssetCheckResult(passed=share <= MOST_DOUBTFUL, metadata={"doubtful_share": share})


hourly = dg.ScheduleDefinition(name="hourly_load", target=dg.AssetSelection.groups("kafka"), cron_schedule="0 * * * *")
defs = dg.Definitions(assets=[snapshot, load], asset_checks=[little_is_doubtful], schedules=[hourly])
