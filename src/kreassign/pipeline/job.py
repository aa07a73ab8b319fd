"""The load job: the order of its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from kreassign.errors import DataError
from kreassign.pipeline.checks import Screened, all_bad_rows, counts, screen
from kreassign.pipeline.load_model import in_snapshots, latest_snapshots, load_model
from kreassign.pipeline.plan_inputs import plan_inputs
from kreassign.pipeline.schemas import (
    CLUSTERS,
    LOAD_MODEL,
    PARTITIONS,
    PLAN_INPUTS,
    QUARANTINE,
    REPLICAS,
    SAMPLES,
    Table,
)
from kreassign.pipeline.tables import read_table, write_table

_SOURCES = (CLUSTERS, PARTITIONS, REPLICAS, SAMPLES)


@dataclass(frozen=True, slots=True)
class StepCount:
    """Rows of a table that a step read or made; `bad` were set aside."""

    table: Table
    good: int
    bad: int = 0

    def __str__(self) -> str:
        bad = f", {self.bad} bad (see table {QUARANTINE.name})" if self.bad else ""
        return f"{self.table.name}: {self.good} rows{bad}"


def run_load(spark: SparkSession, data_dir: Path, on_step: Callable[[StepCount], None]) -> None:
    """Make `load_model`, `plan_inputs` and `quarantine` from snapshots and samples; tell the counts of each step.

    DataError when a table is missing or has no good row. Doing it again gives the same tables.
    """
    screened = {table.name: screen(table, read_table(spark, data_dir, table)) for table in _SOURCES}
    write_table(all_bad_rows(screened.values()), data_dir, QUARANTINE)
    for step in _counted(screened):
        on_step(step)
        _require_good(step, data_dir)
    snapshots = latest_snapshots(screened[CLUSTERS.name].good)
    partitions = in_snapshots(screened[PARTITIONS.name].good, snapshots)
    replicas = in_snapshots(screened[REPLICAS.name].good, snapshots)
    write_table(load_model(partitions, replicas, screened[SAMPLES.name].good), data_dir, LOAD_MODEL)
    loads = read_table(spark, data_dir, LOAD_MODEL)
    on_step(StepCount(LOAD_MODEL, loads.count()))
    write_table(plan_inputs(partitions, replicas, loads), data_dir, PLAN_INPUTS)
    on_step(StepCount(PLAN_INPUTS, read_table(spark, data_dir, PLAN_INPUTS).count()))


def coverage_counts(spark: SparkSession, data_dir: Path) -> dict[str, int]:
    """Partitions of table `load_model` by what their rates rest on."""
    told = read_table(spark, data_dir, LOAD_MODEL).groupBy("coverage").agg(sql.count("*").alias("partitions"))
    return {row["coverage"]: row["partitions"] for row in told.orderBy("coverage").collect()}


def _counted(screened: Mapping[str, Screened]) -> Iterator[StepCount]:
    told = {row["table_name"]: row for row in counts(screened.values()).collect()}
    for name, part in screened.items():
        yield StepCount(part.table, told[name]["good"], told[name]["bad"]) if name in told else StepCount(part.table, 0)


def _require_good(step: StepCount, data_dir: Path) -> None:
    if not step.good:
        raise DataError(
            f"table {step.table.name} in {data_dir} has no good row ({step.bad} bad, see table {QUARANTINE.name}); "
            f"make it anew with `{step.table.made_by}`"
        )
