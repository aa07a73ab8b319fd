"""Run the load job, step by step.

    snapshots     the latest of each cluster: partitions and replicas
    samples       new ones since the last load, judged together with those it left open (`checks.py`)
    hours         sums over the samples; closed hours of earlier loads are kept beside them
    load model    size and load per partition, from the hours of the window (`load_model.py`)
    forecast      with its test on the past (`forecast.py`), and how uneven topics are (`load_model.py`)
    plan inputs   per replica
    publication   one commit that makes the whole load visible at once

Readers do not see any version written before the last step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from kreassign.errors import DataError
from kreassign.model.text import HOUR_MS, counted, some_of
from kreassign.pipeline.load import checks, rules
from kreassign.pipeline.load.forecast import NEEDED, backtests, forecast, forecast_tables
from kreassign.pipeline.load.hours import DAY_S
from kreassign.pipeline.load.latest_snapshots import REQUIRED, RowCounts, Snapshots, latest_snapshots
from kreassign.pipeline.load.load_model import in_window, load_model, plan_inputs, skew
from kreassign.pipeline.load.measured import (
    READINGS,
    RECENT_DAYS,
    broker_loads,
    metric_counts,
    metric_hours,
    metric_sums,
    unknown_brokers,
    unknown_topics,
    with_measured,
    with_topic_names,
)
from kreassign.pipeline.load.partition_loads import WINDOW_DAYS
from kreassign.pipeline.load.rates import PARTITION_KEY
from kreassign.pipeline.load.unique_keys import require_unique_keys
from kreassign.pipeline.tables import commits, delta, parquet, schemas, spark_io

# Before making anything, check by the footers of its files that the last load's output is readable.
#
# An unreadable sample is left out of a load, and reported. Hours and open samples must be complete: they stand for
# samples that no load reads again, so a load without some of them would be silently wrong. Nor does a load fall back to
# all samples by itself: old samples may have expired while their hours are kept.


def require_kept(data_dir: delta.DataDir, before: parquet.Load, window_days: int) -> delta.TableLog:
    """Return the open samples of the load before.

    Raises DataError if a file of that load is unreadable that a load with this window needs.
    """
    left_open, hours = (
        delta.open_log(data_dir, each, before.versions[each.name])
        for each in (schemas.OPEN_SAMPLES, schemas.LOAD_HOURS)
    )
    for log, files in ((left_open, left_open.files()), (hours, _recent(hours, window_days))):
        for path, reason in parquet.why_not(log, files).items():
            raise DataError(
                f"table {log.table.name} of load {before.number}: "
                f"{delta.place(data_dir, log.table.name, path)} {reason}; "
                f"put it back from a copy, or {commits.ALL_AGAIN}"
            )
    return left_open


def _recent(hours: delta.TableLog, window_days: int) -> Sequence[delta.DataFile]:
    """Files with hours that may be in a cluster's window, which ends with its latest (open) hour."""
    files = hours.files({"is_open": True})
    begun = [int(file.lows["hour_ms"]) for file in files if file.lows.get("hour_ms") is not None]
    if not begun or len(begun) < len(files):
        return hours.files()
    return hours.files(time="hour_ms", begin_ms=min(begun) - window_days * DAY_S * 1000)


_NAMED = 3
"""Number of topics that a step names."""
_METRICS_MS = RECENT_DAYS * 24 * HOUR_MS


@dataclass(frozen=True, slots=True)
class StepCount:
    """Rows of a table that a step read or made.

    `bad` rows were set aside with a reason; `late` ones are kept with a reason, but do not count: duplicates. `skipped`
    are unreadable files, `unknown_topics` and `unknown_brokers` those that the snapshot lacks, with their rows.
    """

    table: schemas.Table
    good: int
    bad: int = 0
    late: int = 0
    skipped: tuple[parquet.Skipped, ...] = ()
    unknown_topics: Mapping[str, int] = field(default_factory=dict)
    unknown_brokers: Mapping[int, int] = field(default_factory=dict)

    def __str__(self) -> str:
        bad = f", {self.bad} bad (see table {schemas.QUARANTINE.name})" if self.bad else ""
        late = f", {self.late} late or twice" if self.late else ""
        return f"{self.table.name}: {counted(self.good, 'row')}{bad}{late}{self._unknown()}{self._files()}"

    def _unknown(self) -> str:
        return "".join(
            f"; {sum(rows.values())} of {kind} that are not in the snapshot: {some_of(rows, _NAMED)}"
            for kind, rows in (("topics", self.unknown_topics), ("brokers", self.unknown_brokers))
            if rows
        )

    def _files(self) -> str:
        if not self.skipped:
            return ""
        others = f", and {len(self.skipped) - 1} more" if len(self.skipped) > 1 else ""
        return f"; files not read: {self.skipped[0]}{others}"


@dataclass(frozen=True, slots=True)
class Job:
    """One load job: its tables, its listeners, and the load before (None if all samples are read again).

    `begin` is called with a table before it is made, `tell` with its row counts afterwards.
    """

    spark: SparkSession
    data_dir: delta.DataDir
    tell: Callable[[StepCount], None]
    begin: Callable[[schemas.Table], None]
    now_ms: int
    before: parquet.Load | None = None
    made: list[commits.LoadedTable] = field(default_factory=list)
    judged: list[rules.Judged] = field(default_factory=list)

    def write(self, rows: DataFrame | pa.Table, table: schemas.Table) -> Stored:
        """Replace a table and report its rows."""
        stored = self.store(rows, table)
        self.note(stored.step, stored.log)
        return stored

    def store(self, rows: DataFrame | pa.Table, table: schemas.Table) -> Stored:
        """Replace a table without reporting it."""
        self.begin(table)
        if isinstance(rows, pa.Table):
            return Stored(self.spark, spark_io.write_here(rows, self.data_dir, table))
        return Stored(self.spark, spark_io.write_table(rows, self.data_dir, table))

    def store_on(self, rows: DataFrame | None, table: schemas.Table) -> Stored:
        """Replace the open rows (`is_open`) of a table, by None without any; rows closed by earlier loads stay."""
        self.begin(table)
        base = None if self.before is None else self.before.versions[table.name]
        replaced = None if base is None else (commits.OPEN,)
        log = spark_io.write_parts(rows, self.data_dir, table, replaced=replaced, base=base)
        return Stored(self.spark, log)

    def note(self, step: StepCount, log: delta.TableLog) -> None:
        """Report a step, and remember the version of the table that it read or made."""
        self.made.append(commits.LoadedTable(step.table, log.version, step.good, step.bad, step.late, log))
        self.tell(step)


@dataclass(frozen=True, slots=True)
class Stored:
    """A table as written."""

    spark: SparkSession
    log: delta.TableLog

    @property
    def step(self) -> StepCount:
        """Number of its rows."""
        return StepCount(self.log.table, spark_io.row_count(self.log))

    @property
    def is_small(self) -> bool:
        """True if one task takes all of its rows: then this process does, which needs no job for them."""
        return self.step.good <= spark_io.ROWS_PER_TASK

    def rows(self) -> DataFrame:
        """Its rows, read back."""
        return spark_io.rows_of(self.spark, self.log, self.log.files())


def run_load(
    spark: SparkSession,
    data_dir: delta.DataDir,
    on_step: Callable[[StepCount], None],
    *,
    horizon_days: float = 30.0,
    window_days: int = WINDOW_DAYS,
    now_ms: int = checks.NEVER_MS,
    is_full: bool = False,
    on_begin: Callable[[schemas.Table], None] = lambda _: None,
) -> None:
    """Make every table of a load from the latest snapshots and the samples; report the counts of each step.

    Reads only samples since the last load, with the hours and open samples that it left; all samples without such a
    load, or with `is_full`. The forecast looks `horizon_days` ahead and rests on the last `window_days`. `now_ms` is
    the time of the load: rows with later times are set aside. `on_begin` is called before each table is made. Raises
    DataError if a table is missing, has no good row or is not the one that the last load knew; if the last load's
    output is unreadable; if it is unknown which samples came since; if the clock went back; if a table would have a key
    twice; or if another load was finished meanwhile: then nothing of this one becomes visible.
    """
    begun = parquet.last_load(data_dir)
    before, left = _before(data_dir, begun, is_full=is_full), None
    if before is not None:
        now_ms = commits.time_of_load(now_ms, before)
        left = require_kept(data_dir, before, window_days)
    job = Job(spark, data_dir, on_step, on_begin, now_ms, before)
    snapshots = latest_snapshots(spark, data_dir, now_ms)
    source = _new_samples(job, left)
    found = checks.judged(source.rows, source.left_open, now_ms, source.row_count).persist(StorageLevel.DISK_ONLY)
    try:
        hours = job.store_on(checks.hours_of(found), schemas.LOAD_HOURS)
        left_open = job.store(checks.open_samples(found), schemas.OPEN_SAMPLES)
        counts = snapshots.counts()
        partitions, replicas = (snapshots.usable(table, counts) for table in (schemas.PARTITIONS, schemas.REPLICAS))
        kinds = _judged_kinds(found, partitions)
        set_aside = job.store_on(_set_aside(snapshots, counts, found, kinds, now_ms), schemas.QUARANTINE)
        _tell_snapshots(job, snapshots, counts)
        _tell_samples(job, source, kinds)
    finally:
        found.unpersist()
    for kept in (hours, left_open, set_aside):
        job.note(kept.step, kept.log)
    recent, recent_count = _recent_hours(hours, kinds, window_days)
    plain = load_model(partitions, replicas, recent, recent_count, window_days)
    stored = _loads(job, plain, recent, replicas, snapshots)
    ahead = _forecast(job, stored, horizon_days).rows()
    loads = stored.rows()
    job.write(skew(loads, partitions), schemas.SKEW)
    job.write(plan_inputs(partitions, replicas, loads, ahead), schemas.PLAN_INPUTS)
    _add_quality(job, begun)
    require_unique_keys(spark, data_dir, job.made, before)
    commits.publish(data_dir, now_ms, [commits.tended(data_dir, each, window_days) for each in job.made], begun)


def rows_to_read(data_dir: delta.DataDir, *, is_full: bool = False) -> int:
    """Number of rows of samples and hours that a load would read now, from the tables' logs, without Spark.

    Raises DataError if a table that it needs is missing.
    """
    *_, log = [spark_io.source_log(data_dir, table) for table in (*REQUIRED, schemas.SAMPLES)]
    before = _before(data_dir, parquet.last_load(data_dir), is_full=is_full)
    if before is None:
        return sum(file.row_count for file in log.files())
    kept = sum(
        spark_io.row_count(delta.open_log(data_dir, each, before.versions[each.name]))
        for each in (schemas.LOAD_HOURS, schemas.OPEN_SAMPLES)
    )
    return kept + sum(file.row_count for file in commits.added_since(log, before.versions[schemas.SAMPLES.name]))


def _before(data_dir: delta.DataDir, begun: parquet.Load | None, *, is_full: bool) -> parquet.Load | None:
    """The load to build on; None if this one reads all samples."""
    return None if begun is None or is_full else commits.standing_on(data_dir, begun)


def _set_aside(
    snapshots: Snapshots, counts: RowCounts, found: DataFrame, kinds: Iterable[schemas.Row], now_ms: int
) -> DataFrame | None:
    """Rows of table `quarantine`; None without any, as usual: then no job looks for them."""
    bad = snapshots.bad(counts)
    if any(row["kind"] in _SET_ASIDE for row in kinds):
        bad.append(checks.quarantined(found))
    if not bad:
        return None
    rows = reduce(DataFrame.unionByName, bad).withColumn("load_ms", sql.lit(now_ms))
    return rows.select(*schemas.QUARANTINE.column_names)


def _forecast(job: Job, loads: Stored, horizon_days: float) -> Stored:
    """Table `forecast` as stored, after table `backtests`."""
    if loads.is_small:
        tested, ahead = forecast_tables(parquet.all_rows(loads.log, NEEDED), horizon_days)
        job.write(tested, schemas.BACKTESTS)
        return job.write(ahead, schemas.FORECAST)
    stored = job.write(backtests(loads.rows(), horizon_days), schemas.BACKTESTS)
    return job.write(forecast(loads.rows(), stored.rows(), horizon_days), schemas.FORECAST)


def _recent_hours(hours: Stored, kinds: Iterable[schemas.Row], window_days: int) -> tuple[DataFrame, int]:
    """Hours of the window, and the number of rows of the files that may have some."""
    latest: dict[str, int] = {}
    for row in kinds:
        if row["latest_ms"] is not None:
            latest[row["cluster_id"]] = max(row["latest_ms"], latest.get(row["cluster_id"], 0))
    files = _recent(hours.log, window_days)
    rows = spark_io.rows_of(hours.spark, hours.log, files)
    return in_window(rows, latest, window_days) if latest else rows, sum(file.row_count for file in files)


def _loads(job: Job, plain: DataFrame, hours: DataFrame, replicas: DataFrame, snapshots: Snapshots) -> Stored:
    """Table `load_model` as stored, with brokers' measurements if any. `hours` have each partition's past leaders."""
    measured = _measured(job, hours, snapshots)
    if measured is None:
        return job.write(plain, schemas.LOAD_MODEL)
    plain.persist(StorageLevel.DISK_ONLY)
    try:
        loads = job.write(with_measured(plain, hours, replicas, measured), schemas.LOAD_MODEL)
    finally:
        plain.unpersist()
    job.write(broker_loads(loads.rows(), replicas, measured, snapshots.log_dirs(job.spark)), schemas.BROKER_LOADS)
    return loads


def _measured(job: Job, hours: DataFrame, snapshots: Snapshots) -> DataFrame | None:
    """Table `metric_hours` as stored, for the last days of each cluster with hours; None without metrics of them."""
    if not delta.has_log(job.data_dir, schemas.METRICS):
        return None
    last_hours = {row[0]: row[1] for row in hours.groupBy("cluster_id").agg(sql.max("hour_ms")).collect()}
    if not last_hours:
        return None
    log = delta.open_log(job.data_dir, schemas.METRICS)
    usable, skipped = parquet.usable_files(log, files_of_metrics(log, last_hours))
    if not usable:
        if skipped:
            job.note(StepCount(schemas.METRICS, 0, skipped=tuple(skipped)), log)
        job.judged.extend(_skipped(schemas.METRICS, skipped))
        return None
    rows = spark_io.rows_of(job.spark, log, usable).where(in_days_of_metrics(last_hours))
    partitions = snapshots.judged[schemas.PARTITIONS].good
    sums = metric_sums(with_topic_names(rows, partitions)).persist(StorageLevel.DISK_ONLY)
    try:
        topics, brokers = unknown_topics(sums, partitions), unknown_brokers(sums, snapshots.brokers())
        _tell_metrics(job, log, metric_counts(sums), topics, brokers, tuple(skipped))
        return job.write(metric_hours(sums), schemas.METRIC_HOURS).rows()
    finally:
        sums.unpersist()


def files_of_metrics(log: delta.TableLog, last_hours: Mapping[str, int]) -> list[delta.DataFile]:
    """Files with metrics of the last days of a cluster, by its last hour: it may have been silent for long.

    Of a cluster without hours, the last days are those of the others.
    """
    newest = max(last_hours.values())

    def has_some(file: delta.DataFile) -> bool:
        ends = [newest, *(end for cluster, end in last_hours.items() if file.may_have("cluster_id", cluster))]
        return any(file.may_be_within("taken_ms", end - _METRICS_MS, end + HOUR_MS) for end in ends)

    return [file for file in log.files() if has_some(file)]


def in_days_of_metrics(last_hours: Mapping[str, int]) -> Column:
    """True for metrics of the last days of their cluster."""
    pairs = (sql.lit(each) for pair in last_hours.items() for each in pair)
    own = sql.try_element_at(sql.create_map(*pairs), sql.col("cluster_id"))
    last = sql.coalesce(own, sql.lit(max(last_hours.values())))
    return sql.col("taken_ms").between(last - _METRICS_MS, last + HOUR_MS)


def _tell_metrics(
    job: Job,
    log: delta.TableLog,
    counts: Mapping[str, int],
    topics: Mapping[str, int],
    brokers: Mapping[int, int],
    skipped: tuple[parquet.Skipped, ...],
) -> None:
    """Report how the metrics of the last days were treated."""
    late = counts[rules.SAME_KEY]
    good = counts[READINGS] - late
    step = StepCount(schemas.METRICS, good, late=late, skipped=skipped, unknown_topics=topics, unknown_brokers=brokers)
    job.note(step, log)
    job.judged.append(rules.Judged(schemas.METRICS.name, rules.GOOD, None, step.good))
    job.judged.append(rules.Judged(schemas.METRICS.name, rules.Treatment.COUNTED, rules.NO_TOPIC, sum(topics.values())))
    job.judged.append(
        rules.Judged(schemas.METRICS.name, rules.Treatment.COUNTED, rules.UNKNOWN_BROKER, sum(brokers.values()))
    )
    job.judged.extend(
        rules.Judged(schemas.METRICS.name, rule.treatment, rule.reason, counts[rule.reason])
        for rule in rules.METRIC_HOUR_RULES
    )
    job.judged.extend(_skipped(schemas.METRICS, skipped))


@dataclass(frozen=True, slots=True)
class NewSamples:
    """Samples that no load has read, up to a version of their table, and those that the last load left open.

    `row_count` is the number of both together.
    """

    rows: DataFrame
    log: delta.TableLog
    row_count: int
    skipped: tuple[parquet.Skipped, ...]
    left_open: DataFrame | None


def _new_samples(job: Job, left_open: delta.TableLog | None) -> NewSamples:
    log = spark_io.source_log(job.data_dir, schemas.SAMPLES)
    if job.before is None:
        usable, skipped = spark_io.some_usable(log, log.files())
    else:
        known = job.before.versions[schemas.SAMPLES.name]
        usable, skipped = parquet.usable_files(log, commits.added_since(log, known))
    left, left_count = None, 0
    if left_open is not None:
        delta.refuse_wrong_columns(left_open)
        left, left_count = spark_io.rows_of(job.spark, left_open, left_open.files()), spark_io.row_count(left_open)
    rows = left_count + sum(file.row_count for file in usable)
    return NewSamples(spark_io.rows_of(job.spark, log, usable), log, rows, tuple(skipped), left)


def _tell_snapshots(job: Job, snapshots: Snapshots, counts: RowCounts) -> None:
    """Report the snapshots' rows. Raises DataError if a required table has no good one."""
    for table in snapshots.unique:
        own = {reason: count for (name, reason), count in counts.items() if name == table.name}
        good, late, skipped = (
            own.pop(None, 0) - own.get(rules.NO_PARTITION, 0),
            own.pop(rules.SAME_KEY, 0),
            snapshots.skipped[table],
        )
        step = StepCount(table, good, sum(own.values()), late, skipped)
        if table in REQUIRED:
            _require_good(step, job.data_dir)
        job.note(step, snapshots.logs[table])
        told = [
            rules.Judged(table.name, rules.GOOD, None, good),
            rules.Judged(table.name, rules.Treatment.LATE, rules.SAME_KEY, late),
            *_skipped(table, skipped),
            *(
                rules.Judged(table.name, rules.Treatment.QUARANTINED, reason, own[reason])
                for reason in sorted(filter(None, own))
            ),
        ]
        job.judged.extend(told)


def _skipped(table: schemas.Table, skipped: Iterable[parquet.Skipped]) -> Iterable[rules.Judged]:
    return (rules.Judged(table.name, rules.Treatment.SKIPPED, str(each), 1) for each in skipped)


_SET_ASIDE = ("odd", "odd before")
"""Kinds of samples that are set aside: new ones, and those of open hours that earlier loads have counted."""


def _judged_kinds(found: DataFrame, partitions: DataFrame) -> list[schemas.Row]:
    """Number of samples (`rows`) by cluster, `kind`, `reason`, whether the snapshot has their partition, and topic.

    The topic (`unknown_topic`) is only that of those whose topic it lacks.

    Those that are of an hour say in `latest_ms` when the latest open one began: more samples of it may come.
    """
    none, one = sql.lit(None).cast("string"), sql.lit(1).cast("bigint")
    key = [sql.coalesce(f"kept.{name}", f"hour.{name}").alias(name) for name in PARTITION_KEY]
    is_aside, is_new = sql.col("kept.is_set_aside"), sql.col("kept.is_new")
    is_odd = is_aside & is_new
    kinds = {
        "odd": sql.when(is_odd, one),
        "odd before": sql.when(is_aside & ~is_new, one),
        "good": sql.col("hour.new_count"),
        "twice": sql.col("hour.new_twice_count"),
        "late": sql.col("late_count"),
    }
    each = sql.array(*(sql.struct(sql.lit(kind).alias("kind"), rows.alias("rows")) for kind, rows in kinds.items()))
    reason = sql.when(is_odd, sql.col("kept.reason")).otherwise(none).alias("reason")
    latest = sql.when(sql.col("hour.is_open"), sql.col("hour.hour_ms")).alias("latest_ms")
    counted = found.select(*key, reason, latest, sql.explode(each).alias("each")).where(
        "each.rows > 0 OR (each.kind = 'good' AND latest_ms IS NOT NULL)"
    )
    total = sql.sum("each.rows").alias("rows")
    sums = counted.groupBy(*PARTITION_KEY, "reason", "each.kind").agg(total, sql.max("latest_ms").alias("latest_ms"))
    known = partitions.select(*PARTITION_KEY, sql.lit(col=True).alias("is_known"))
    topics = partitions.select("cluster_id", "topic", sql.lit(col=True).alias("has_topic")).distinct()
    with_known = sums.join(known, on=list(PARTITION_KEY), how="left").join(
        topics, on=["cluster_id", "topic"], how="left"
    )
    unknown_topic = sql.when(sql.col("has_topic").isNull(), sql.col("topic")).alias("unknown_topic")
    judged = with_known.groupBy("cluster_id", "kind", "reason", "is_known", unknown_topic)
    told = judged.agg(sql.coalesce(sql.sum("rows"), sql.lit(0)).alias("rows"), sql.max("latest_ms").alias("latest_ms"))
    return [row.asDict() for row in told.collect()]


def _tell_samples(job: Job, source: NewSamples, kinds: Iterable[schemas.Row]) -> None:
    """Report how new samples were treated. Raises DataError if there are no samples to load."""
    odd: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    unknown = 0
    topics: Counter[str] = Counter()
    for row in kinds:
        if row["kind"] == "odd":
            odd[row["reason"]] += row["rows"]
        else:
            counts[row["kind"]] += row["rows"]
            unknown += row["rows"] if row["kind"] == "good" and not row["is_known"] else 0
            topics[row["unknown_topic"]] += row["rows"] if row["kind"] == "good" and row["unknown_topic"] else 0
    named = {name: rows for name, rows in sorted(topics.items(), key=lambda one: (-one[1], str(one[0]))) if rows}
    late = counts["twice"] + counts["late"]
    step = StepCount(schemas.SAMPLES, counts["good"], odd.total(), late, source.skipped, named)
    if source.left_open is None:
        _require_good(step, job.data_dir)
    job.note(step, source.log)
    told = [
        rules.Judged(schemas.SAMPLES.name, rules.GOOD, None, counts["good"]),
        rules.Judged(schemas.SAMPLES.name, rules.Treatment.COUNTED, rules.NO_PARTITION, unknown),
        rules.Judged(schemas.SAMPLES.name, rules.Treatment.LATE, rules.SAME_TIME, counts["twice"]),
        rules.Judged(schemas.SAMPLES.name, rules.Treatment.LATE, rules.HOUR_CLOSED, counts["late"]),
        *(
            rules.Judged(schemas.SAMPLES.name, rules.Treatment.QUARANTINED, reason, count)
            for reason, count in sorted(odd.items())
        ),
        *_skipped(schemas.SAMPLES, source.skipped),
    ]
    job.judged.extend(told)


def _add_quality(job: Job, before: parquet.Load | None) -> None:
    """Add the rows of this load to table `load_quality`, after those of the load before."""
    if before is not None and commits.why_another(job.data_dir, before, schemas.LOAD_QUALITY) is None:
        delta.undo_after(
            delta.log_to_write(job.data_dir, schemas.LOAD_QUALITY), before.versions[schemas.LOAD_QUALITY.name]
        )
    rows = list(rules.quality_rows(job.now_ms, job.judged))
    version = parquet.write_rows(job.data_dir, schemas.LOAD_QUALITY, rows, file_stem=str(job.now_ms))
    job.made.append(commits.LoadedTable(schemas.LOAD_QUALITY, version, len(rows)))


def _require_good(step: StepCount, data_dir: delta.DataDir) -> None:
    if not step.good:
        raise DataError(
            f"table {step.table.name} in {data_dir} has no good row "
            f"({step.bad} bad, see table {schemas.QUARANTINE.name}); make it again with `{step.table.made_by}`"
        )
