"""The load job: the order of its steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sql

from kreassign.errors import DataError
from kreassign.pipeline.load.checks import NEVER_MS, Screened, all_bad_rows, bad_rows, orphans, screen
from kreassign.pipeline.load.forecast import backtests, forecast
from kreassign.pipeline.load.load_model import in_snapshots, latest_snapshots, load_model, plan_inputs
from kreassign.pipeline.load.measured import (
    HOUR_MS,
    RECENT_DAYS,
    broker_loads,
    led_hours,
    metric_hours,
    with_measured,
)
from kreassign.pipeline.load.quality import GOOD, Judged, quality_rows
from kreassign.pipeline.load.rates import PARTITION_KEY, rates
from kreassign.pipeline.load.rules import NO_PARTITION, SAME_KEY, Treatment
from kreassign.pipeline.load.skew import skew
from kreassign.pipeline.load.trend import WINDOW_DAYS, load_hours
from kreassign.pipeline.tables.delta import DataDir, has_log, log_to_write, open_log, undo_after
from kreassign.pipeline.tables.loads import Load, LoadedTable, last_load, publish
from kreassign.pipeline.tables.parquet import Skipped, TablesAt, usable_files, write_rows
from kreassign.pipeline.tables.schemas import (
    BACKTESTS,
    BROKER_LOADS,
    CLUSTERS,
    FORECAST,
    LOAD_HOURS,
    LOAD_MODEL,
    LOAD_QUALITY,
    LOG_DIRS,
    METRIC_HOURS,
    METRICS,
    PARTITIONS,
    PLAN_INPUTS,
    QUARANTINE,
    RATES,
    REPLICAS,
    SAMPLES,
    SKEW,
    Row,
    Table,
)
from kreassign.pipeline.tables.spark_io import (
    Source,
    read_source,
    read_table,
    row_count,
    rows_of,
    struct_type,
    write_table,
)

_SOURCES = (CLUSTERS, PARTITIONS, REPLICAS, SAMPLES)


@dataclass(frozen=True, slots=True)
class StepCount:
    """Rows of a table that a step read or made.

    `bad` were set aside with a reason; `late` are kept with a reason, but do not count: duplicates. `skipped` are files
    that could not be read.
    """

    table: Table
    good: int
    bad: int = 0
    late: int = 0
    skipped: tuple[Skipped, ...] = ()

    def __str__(self) -> str:
        bad = f", {self.bad} bad (see table {QUARANTINE.name})" if self.bad else ""
        late = f", {self.late} late or twice" if self.late else ""
        return f"{self.table.name}: {self.good} rows{bad}{late}{self._files()}"

    def _files(self) -> str:
        if not self.skipped:
            return ""
        others = f", and {len(self.skipped) - 1} more" if len(self.skipped) > 1 else ""
        return f"; files not read: {self.skipped[0]}{others}"


@dataclass(frozen=True, slots=True)
class Job:
    """One load job: where its tables are, and who hears of each step."""

    spark: SparkSession
    data_dir: DataDir
    tell: Callable[[StepCount], None]
    now_ms: int
    before: Load | None
    made: list[LoadedTable] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)

    def read(self, table: Table, version: int) -> DataFrame:
        """All rows of a table in a version, which need not be of a finished load."""
        return read_table(self.spark, TablesAt(self.data_dir, {table.name: version}), table)

    def write(self, rows: DataFrame, table: Table) -> DataFrame:
        """Replace a table and tell its rows. Returns it as stored."""
        version = write_table(rows, self.data_dir, table)
        self.note(StepCount(table, row_count(self.data_dir, table, version)), version)
        return self.read(table, version)

    def note(self, step: StepCount, version: int) -> None:
        """Tell a step, and remember it, with the version of the table that it read or made."""
        self.made.append(LoadedTable(step.table, version, step.good, step.bad, step.late))
        self.tell(step)


def run_load(
    spark: SparkSession,
    data_dir: DataDir,
    on_step: Callable[[StepCount], None],
    *,
    horizon_days: float = 30.0,
    window_days: int = WINDOW_DAYS,
    now_ms: int = NEVER_MS,
) -> None:
    """Make every table of the load from snapshots and samples; tell the counts of each step.

    The forecast looks `horizon_days` ahead and rests on the last `window_days`. `now_ms` is the time of the load: what
    claims to be later is set aside. DataError when a table is missing or has no good row. Doing it again gives the same
    tables.
    """
    job = Job(spark, data_dir, on_step, now_ms, last_load(data_dir))
    good = _good_rows(job)
    partitions, replicas = good[PARTITIONS.name], good[REPLICAS.name]
    known = _rates(job, good[SAMPLES.name], partitions)
    hours = job.write(load_hours(known), LOAD_HOURS)
    loads = _loads(job, load_model(partitions, replicas, known, hours, window_days), led_hours(known), replicas)
    tested = job.write(backtests(loads), BACKTESTS)
    ahead = job.write(forecast(loads, tested, horizon_days), FORECAST)
    job.write(skew(loads, partitions), SKEW)
    job.write(plan_inputs(partitions, replicas, loads, ahead), PLAN_INPUTS)
    _add_quality(job)
    publish(data_dir, now_ms, job.made, job.before)


def _loads(job: Job, plain: DataFrame, hours: DataFrame, replicas: DataFrame) -> DataFrame:
    """Table `load_model` as stored, with what brokers measured, if they did. `hours` say who led a partition when."""
    measured = _measured(job, hours)
    if measured is None:
        return job.write(plain, LOAD_MODEL)
    plain.persist(StorageLevel.DISK_ONLY)
    try:
        loads = job.write(with_measured(plain, hours, replicas, measured), LOAD_MODEL)
    finally:
        plain.unpersist()
    job.write(broker_loads(loads, replicas, measured, _log_dirs(job, replicas)), BROKER_LOADS)
    return loads


def _measured(job: Job, hours: DataFrame) -> DataFrame | None:
    """Table `metric_hours` as stored, of the last days of the hours; None where there are no metrics of them."""
    if not has_log(job.data_dir, METRICS):
        return None
    last = hours.agg(sql.max("hour_ms")).first()
    if last is None or last[0] is None:
        return None
    begin_ms, end_ms = last[0] - RECENT_DAYS * 24 * HOUR_MS, last[0] + HOUR_MS
    log = open_log(job.data_dir, METRICS)
    usable, skipped = usable_files(log, log.files(time="taken_ms", begin_ms=begin_ms, end_ms=end_ms))
    job.judged.extend(Judged(METRICS.name, Treatment.SKIPPED, str(each), 1) for each in skipped)
    if not usable:
        return None
    rows = rows_of(job.spark, log, usable).where(sql.col("taken_ms").between(begin_ms, end_ms))
    return job.write(metric_hours(rows), METRIC_HOURS)


def _log_dirs(job: Job, replicas: DataFrame) -> DataFrame:
    """Table `log_dirs` of the snapshots that these replicas are of."""
    if not has_log(job.data_dir, LOG_DIRS):
        return job.spark.createDataFrame([], struct_type(LOG_DIRS))
    ids = [row["snapshot_id"] for row in replicas.select("snapshot_id").distinct().collect()]
    log = open_log(job.data_dir, LOG_DIRS)
    files = {file.path: file for each in ids for file in log.files({"snapshot_id": each})}
    usable, _ = usable_files(log, list(files.values()))
    return rows_of(job.spark, log, usable).where(sql.col("snapshot_id").isin(*ids))


def quality(spark: SparkSession, data_dir: DataDir) -> list[Row]:
    """Table `load_quality`."""
    return [row.asDict() for row in read_table(spark, data_dir, LOAD_QUALITY).collect()]


def partition_counts(spark: SparkSession, data_dir: DataDir, column: str) -> dict[str, int]:
    """Partitions of table `load_model` by what a column of words says of them."""
    told = read_table(spark, data_dir, LOAD_MODEL).groupBy(column).agg(sql.count("*").alias("partitions"))
    return {row[column]: row["partitions"] for row in told.orderBy(column).collect()}


def backtest_results(spark: SparkSession, data_dir: DataDir) -> list[str]:
    """What table `backtests` says, one sentence per cluster."""
    rows = read_table(spark, data_dir, BACKTESTS).orderBy("cluster_id").collect()
    return [_backtest_sentence(row.asDict()) for row in rows]


def _backtest_sentence(tested: Row) -> str:
    name = f"backtest of {tested['cluster_id']}"
    if not tested["partition_count"]:
        return f"{name}: none, no partition has two whole weeks of samples"
    return (
        f"{name}: {tested['partition_count']} partitions, their last week as forecast from the days before it: "
        f"median error {tested['median_error']:.1%}, 95th percentile {tested['p95_error']:.1%}; "
        f"{tested['covered_share']:.1%} were in the 95% interval, which was widened {tested['widening']:.2f} times"
    )


def _good_rows(job: Job) -> dict[str, DataFrame]:
    """The good rows of the sources; the others are set aside and told.

    One pass over each source writes the bad rows and counts all. Keys are made unique only where some are not, for
    the rows are read again and that takes a sort.
    """
    sources = {table: read_source(job.spark, job.data_dir, table) for table in _SOURCES}
    screened = _screened(job, sources)
    unique = {name: part if name == SAMPLES.name else part.with_unique_keys() for name, part in screened.items()}
    told = {name: Observation() for name in unique}
    observed = {name: part.observed(told[name]) for name, part in unique.items()}
    alone = orphans(screened[REPLICAS.name].good, screened[PARTITIONS.name].good)
    write_table(all_bad_rows(observed.values()).unionByName(alone), job.data_dir, QUARANTINE)
    _tell(job, sources, {name: observation.get for name, observation in told.items()})
    return {name: (unique if told[name].get["late"] else screened)[name].good for name in screened}


def _tell(job: Job, sources: Mapping[Table, Source], told: Mapping[str, Mapping[str, int]]) -> None:
    """Tell the counts of the sources. DataError when one has no good row."""
    reasons = read_table(job.spark, job.data_dir, QUARANTINE).groupBy("table_name", "reason").count().collect()
    lonely = sum(row["count"] for row in reasons if (row["table_name"], row["reason"]) == (REPLICAS.name, NO_PARTITION))
    for table in _SOURCES:
        counts, without = told[table.name], lonely if table is REPLICAS else 0
        skipped = sources[table].skipped
        step = StepCount(table, counts["good"] - without, counts["bad"] + without, counts["late"], skipped)
        job.note(step, sources[table].version)
        _require_good(step, job.data_dir)
        job.judged.append(Judged(table.name, GOOD, None, step.good))
        job.judged.append(Judged(table.name, Treatment.LATE, SAME_KEY, step.late))
        job.judged.extend(Judged(table.name, Treatment.SKIPPED, str(each), 1) for each in skipped)
    job.judged.extend(
        Judged(row["table_name"], Treatment.QUARANTINED, row["reason"], row["count"])
        for row in sorted(reasons, key=lambda row: (row["table_name"], row["reason"]))
    )


def _rates(job: Job, samples: DataFrame, partitions: DataFrame) -> DataFrame:
    """Table `rates` as stored; the samples in it that are odd are added to the quarantine."""
    version = write_table(rates(samples), job.data_dir, RATES)
    stored = job.read(RATES, version)
    kinds: Counter[tuple[str, str | None]] = Counter()
    unknown = 0
    for row in _kinds_of_rates(stored, partitions).collect():
        kinds[row["kind"], row["reason"]] += row["rows"]
        unknown += 0 if row["is_known"] else row["rows"]
    by_kind = {kind: sum(count for (each, _), count in kinds.items() if each == kind) for kind in ("odd", "twice")}
    if by_kind["odd"]:
        odd = bad_rows(SAMPLES, stored.where(sql.col("verdict") == "odd"), "reason")
        write_table(odd, job.data_dir, QUARANTINE, append=True)
    good = kinds.total() - by_kind["odd"] - by_kind["twice"]
    job.note(StepCount(RATES, good, by_kind["odd"], by_kind["twice"]), version)
    job.judged.append(Judged(RATES.name, GOOD, None, good))
    job.judged.append(Judged(RATES.name, Treatment.COUNTED, NO_PARTITION, unknown))
    treatments = {"odd": Treatment.QUARANTINED, "twice": Treatment.LATE}
    job.judged.extend(
        Judged(RATES.name, treatments[kind], reason, count) for (kind, reason), count in kinds.items() if reason
    )
    return stored


def _kinds_of_rates(stored: DataFrame, partitions: DataFrame) -> DataFrame:
    """Rows by verdict (`odd`, `twice` or the others), reason, and whether the snapshot has their partition."""
    verdict, key = sql.col("verdict"), list(PARTITION_KEY)
    kind = sql.when(verdict.isin("odd", "twice"), verdict).otherwise("good").alias("kind")
    by_partition = stored.groupBy(*key, kind, "reason").agg(sql.count("*").alias("rows"))
    known = partitions.select(*key, sql.lit(col=True).alias("is_known"))
    return (
        by_partition.join(known, on=key, how="left")
        .groupBy("kind", "reason", "is_known")
        .agg(sql.sum("rows").alias("rows"))
        .select("kind", "reason", "is_known", "rows")
    )


def _screened(job: Job, sources: Mapping[Table, Source]) -> dict[str, Screened]:
    """The sources, judged; of the tables of snapshots only what belongs to the latest one of each cluster."""
    clusters = screen(CLUSTERS, sources[CLUSTERS].rows, job.now_ms)
    latest = latest_snapshots(_whole(clusters.good, sources))
    rows = {table: in_snapshots(sources[table].rows, latest) for table in (PARTITIONS, REPLICAS)}
    rows[SAMPLES] = sources[SAMPLES].rows
    screened = {table.name: screen(table, found, job.now_ms) for table, found in rows.items()}
    return {CLUSTERS.name: clusters} | screened


def _whole(clusters: DataFrame, sources: Mapping[Table, Source]) -> DataFrame:
    """The snapshots whose files were read: where one was skipped, an older snapshot stands in."""
    for table in (PARTITIONS, REPLICAS):
        if sources[table].skipped:
            clusters = clusters.join(sources[table].rows.select("snapshot_id").distinct(), "snapshot_id", "left_semi")
    return clusters


def _add_quality(job: Job) -> None:
    """Add the rows of this load to table `load_quality`, as the load before left it."""
    if job.before is not None and LOAD_QUALITY.name in job.before.versions:
        undo_after(log_to_write(job.data_dir, LOAD_QUALITY), job.before.versions[LOAD_QUALITY.name])
    rows = list(quality_rows(job.now_ms, job.judged))
    version = write_rows(job.data_dir, LOAD_QUALITY, rows, file_stem=str(job.now_ms))
    job.made.append(LoadedTable(LOAD_QUALITY, version, len(rows)))


def _require_good(step: StepCount, data_dir: DataDir) -> None:
    if not step.good:
        raise DataError(
            f"table {step.table.name} in {data_dir} has no good row ({step.bad} bad, see table {QUARANTINE.name}); "
            f"make it again with `{step.table.made_by}`"
        )
