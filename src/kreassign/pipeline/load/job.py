"""The load job: the order of its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from kreassign.errors import DataError
from kreassign.pipeline.load.checks import NEVER_MS, Screened, all_bad_rows, bad_rows, counts, screen
from kreassign.pipeline.load.load_model import in_snapshots, latest_snapshots, load_model, plan_inputs
from kreassign.pipeline.load.rates import rates
from kreassign.pipeline.load.skew import skew
from kreassign.pipeline.load.trend import forecast, load_hours
from kreassign.pipeline.tables.schemas import (
    CLUSTERS,
    FORECAST,
    LOAD_HOURS,
    LOAD_MODEL,
    PARTITIONS,
    PLAN_INPUTS,
    QUARANTINE,
    RATES,
    REPLICAS,
    SAMPLES,
    SKEW,
    STEP_COUNTS,
    Table,
)
from kreassign.pipeline.tables.spark_io import DataDir, read_table, struct_type, write_table

_SOURCES = (CLUSTERS, PARTITIONS, REPLICAS, SAMPLES)


@dataclass(frozen=True, slots=True)
class StepCount:
    """Rows of a table that a step read or made.

    `bad` were set aside with a reason; `late` are kept with a reason, but do not count: duplicates.
    """

    table: Table
    good: int
    bad: int = 0
    late: int = 0

    def __str__(self) -> str:
        bad = f", {self.bad} bad (see table {QUARANTINE.name})" if self.bad else ""
        late = f", {self.late} late or twice" if self.late else ""
        return f"{self.table.name}: {self.good} rows{bad}{late}"


@dataclass(frozen=True, slots=True)
class Job:
    """One load job: where its tables are, and who hears of each step."""

    spark: SparkSession
    data_dir: DataDir
    tell: Callable[[StepCount], None]
    counted: list[StepCount]

    def read(self, table: Table) -> DataFrame:
        """All rows of a table."""
        return read_table(self.spark, self.data_dir, table)

    def write(self, rows: DataFrame, table: Table) -> DataFrame:
        """Replace a table and tell its rows. Returns it as stored."""
        write_table(rows, self.data_dir, table)
        stored = self.read(table)
        self.note(StepCount(table, stored.count()))
        return stored

    def note(self, step: StepCount) -> None:
        """Tell a step, and remember it for table `step_counts`."""
        self.counted.append(step)
        self.tell(step)


def run_load(
    spark: SparkSession,
    data_dir: DataDir,
    on_step: Callable[[StepCount], None],
    *,
    horizon_days: float = 30.0,
    now_ms: int = NEVER_MS,
) -> None:
    """Make every table of the load from snapshots and samples; tell the counts of each step.

    `now_ms` is the time of the load: what claims to be later is set aside. DataError when a table is missing or has no
    good row. Doing it again gives the same tables.
    """
    job = Job(spark, data_dir, on_step, [])
    screened = _screened(job, now_ms)
    _tell_good(job, screened)
    partitions, replicas = screened[PARTITIONS.name].good, screened[REPLICAS.name].good
    known = _rates(job, screened[SAMPLES.name].good)
    hours = job.write(load_hours(known), LOAD_HOURS)
    loads = job.write(load_model(partitions, replicas, known, hours), LOAD_MODEL)
    ahead = job.write(forecast(loads, horizon_days), FORECAST)
    job.write(skew(loads, partitions), SKEW)
    job.write(plan_inputs(partitions, replicas, loads, ahead), PLAN_INPUTS)
    write_table(_count_rows(job), data_dir, STEP_COUNTS)


def partition_counts(spark: SparkSession, data_dir: DataDir, column: str) -> dict[str, int]:
    """Partitions of table `load_model` by what a column of words says of them."""
    told = read_table(spark, data_dir, LOAD_MODEL).groupBy(column).agg(sql.count("*").alias("partitions"))
    return {row[column]: row["partitions"] for row in told.orderBy(column).collect()}


def _rates(job: Job, samples: DataFrame) -> DataFrame:
    """Table `rates` as stored; the samples in it that are odd are added to the quarantine."""
    write_table(rates(samples), job.data_dir, RATES)
    stored = job.read(RATES)
    kind = sql.col("verdict")
    is_odd, is_twice = kind == "odd", kind == "twice"
    counted = stored.agg(
        sql.count("*").alias("all"), sql.count_if(is_odd).alias("odd"), sql.count_if(is_twice).alias("twice")
    ).first()
    assert counted is not None  # an aggregate without a key has one row
    if counted["odd"]:
        odd = bad_rows(SAMPLES, stored.where(is_odd), "reason")
        write_table(odd, job.data_dir, QUARANTINE, part=RATES.name)
    good = counted["all"] - counted["odd"] - counted["twice"]
    job.note(StepCount(RATES, good, counted["odd"], counted["twice"]))
    return stored


def _screened(job: Job, now_ms: int) -> dict[str, Screened]:
    """The sources, judged; of the tables of snapshots only what belongs to the latest one of each cluster."""
    sources = {table: job.read(table) for table in _SOURCES}
    clusters = screen(CLUSTERS, sources[CLUSTERS], now_ms)
    latest = latest_snapshots(clusters.good)
    rows = {table: in_snapshots(sources[table], latest) for table in (PARTITIONS, REPLICAS)}
    rows[SAMPLES] = sources[SAMPLES]
    return {CLUSTERS.name: clusters} | {table.name: screen(table, found, now_ms) for table, found in rows.items()}


def _tell_good(job: Job, screened: Mapping[str, Screened]) -> None:
    """Set the bad rows aside and tell the counts."""
    write_table(all_bad_rows(screened.values()), job.data_dir, QUARANTINE)
    for step in _counted(screened):
        job.note(step)
        _require_good(step, job.data_dir)


def _count_rows(job: Job) -> DataFrame:
    rows = [(step.table.name, step.good, step.bad, step.late) for step in job.counted]
    return job.spark.createDataFrame(rows, struct_type(STEP_COUNTS)).coalesce(1).select(*STEP_COUNTS.column_names)


def _counted(screened: Mapping[str, Screened]) -> Iterator[StepCount]:
    told = {row["table_name"]: row for row in counts(screened.values()).collect()}
    for name, part in screened.items():
        yield StepCount(part.table, told[name]["good"], told[name]["bad"]) if name in told else StepCount(part.table, 0)


def _require_good(step: StepCount, data_dir: DataDir) -> None:
    if not step.good:
        raise DataError(
            f"table {step.table.name} in {data_dir} has no good row ({step.bad} bad, see table {QUARANTINE.name}); "
            f"make it again with `{step.table.made_by}`"
        )
