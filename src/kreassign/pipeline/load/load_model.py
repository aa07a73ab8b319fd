"""DataFrame → DataFrame. Size and load per partition, table `load_model`; per replica, table `plan_inputs`.

How the rates come about, for the samples of one partition since its log last restarted that count (see `rates.py`):

    write_records_per_s = sum of end offset differences / sum of their seconds
    write_bytes_per_s   = write_records_per_s * bytes_per_record   (0 when there were no records)

and bytes_per_record is, by the first of these that can be told (`record_size_basis`),

    growth  sum of size differences / sum of end offset differences, over the pairs of neighbouring samples between
            which the log only grew: same leader, same start offset, size not smaller
    log     size / (end offset - start offset), at the last sample

Percentiles are of the intervals between neighbouring samples, those across gaps left out; the peak hour and what the
forecast rests on are made from hours and days (`trend.py`, `forecast.py`). All are rates of records times the one
bytes_per_record.

What that is worth. The rate of records is exact for the span, up to the time that a round of questions takes: a tenth
of a second over a span of ten seconds is one per cent. Offsets count what a log holds, so markers of transactions
count as records. `growth` is the size of the records that just came, up to what came between the question for the
offset and that for the size; it is too small where the log is compacted and the cleaner ran meanwhile. `log` lags
behind when records have lately become larger or smaller (by any factor), is too large when records were deleted up to
an offset inside a segment or markers are gone, and too small when the log is compacted. Segments are on disk as they
were sent, so the bytes are compressed bytes, which is what replication and a move copy too.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from kreassign.pipeline.load.forecast import DAY_S
from kreassign.pipeline.load.measured import nothing_measured
from kreassign.pipeline.load.rates import PARTITION_KEY
from kreassign.pipeline.load.trend import WHOLE, WINDOW_DAYS, peak_hours, trends
from kreassign.pipeline.tables.schemas import LOAD_MODEL, PLAN_INPUTS

_SNAPSHOT_KEY = ("cluster_id", "snapshot_id")
_PERCENTILES = (0.5, 0.95, 0.99)
_BYTES_OF_RECORDS = {
    "p50_write_bytes_per_s": "p50_records_per_s",
    "p95_write_bytes_per_s": "p95_records_per_s",
    "p99_write_bytes_per_s": "p99_records_per_s",
    "peak_write_bytes_per_s": "peak_records_per_s",
    "recent_write_bytes_per_s": "recent_records_per_s",
}


def latest_snapshots(clusters: DataFrame) -> DataFrame:
    """The last complete snapshot of each cluster: cluster_id, snapshot_id."""
    newest = sql.max(sql.struct("taken_ms", "snapshot_id")).alias("newest")
    return clusters.groupBy("cluster_id").agg(newest).select("cluster_id", sql.col("newest.snapshot_id"))


def in_snapshots(rows: DataFrame, snapshots: DataFrame) -> DataFrame:
    """The rows of a snapshot table that belong to the given snapshots."""
    return rows.join(sql.broadcast(snapshots), on=list(_SNAPSHOT_KEY), how="left_semi").select(*rows.columns)


def load_model(
    partitions: DataFrame,
    replicas: DataFrame,
    rates: DataFrame,
    hours: DataFrame,
    window_days: int = WINDOW_DAYS,
) -> DataFrame:
    """Table `load_model`: one row per given partition; `partitions` and `replicas` are of one snapshot per cluster.

    `window_days` are the last days on which the forecast rests.
    """
    sizes = partition_sizes(replicas)
    joined = partitions.join(sizes, on=[*_SNAPSHOT_KEY, "topic", "partition"], how="left").join(
        write_rates(rates, hours, window_days), on=list(PARTITION_KEY), how="left"
    )
    return (
        joined.withColumns(
            {name: sql.coalesce(name, sql.lit(0)) for name in ("sample_count", "reset_count", "day_count")}
        )
        .withColumns({name: sql.coalesce(name, sql.lit(0.0)) for name in ("span_s", "covered_share")})
        .withColumn("has_trend", sql.coalesce("has_trend", sql.lit(col=False)))
        .withColumns({name: in_bytes(sql.col(records)) for name, records in _BYTES_OF_RECORDS.items()})
        .withColumn("write_bytes_per_s", in_bytes(sql.col("write_records_per_s")))
        .withColumn("coverage", coverage())
        .withColumn("verdict", verdict())
        .withColumns(nothing_measured())
        .select(*LOAD_MODEL.column_names)
    )


def partition_sizes(replicas: DataFrame) -> DataFrame:
    """Size per partition: of the leader's copy, else of the largest; keyed by snapshot, topic and partition."""
    leader_size = sql.max(sql.when(sql.col("is_leader"), sql.col("size_bytes")))
    return (
        replicas.groupBy(*_SNAPSHOT_KEY, "topic", "partition")
        .agg(sql.coalesce(leader_size, sql.max("size_bytes")).alias("size_bytes"))
        .select(*_SNAPSHOT_KEY, "topic", "partition", "size_bytes")
    )


def write_rates(rates: DataFrame, hours: DataFrame, window_days: int) -> DataFrame:
    """Rates of records per partition since its log last restarted; see the top of this module."""
    epoch_key = [*PARTITION_KEY, "epoch"]
    latest = latest_epochs(rates)
    return (
        latest.join(peak_hours(hours), on=epoch_key, how="left")
        .join(trends(hours, window_days), on=epoch_key, how="left")
        .withColumn("reset_count", sql.col("epoch"))
    )


def latest_epochs(rates: DataFrame) -> DataFrame:
    """What the samples of the latest epoch of each partition say together."""
    seen = sql.struct("taken_ms", "start_offset", "end_offset", "size_bytes")
    is_good = sql.col("verdict") == "good"
    counts = sql.col("reason").isNull()
    figures = {
        "first": sql.min(seen),
        "last": sql.max(seen),
        "sample_count": sql.count("*").cast("int"),
        "good_s": sql.sum(sql.when(is_good, sql.col("seconds"))),
        "known_s": sql.sum(sql.when(sql.col("new_records").isNotNull(), sql.col("seconds"))),
        # As doubles, which cannot overflow.
        "new_records": sql.sum(sql.col("new_records").cast("double")),
        "sized_records": sql.sum(sql.col("sized_records").cast("double")),
        "new_bytes": sql.sum(sql.col("new_bytes").cast("double")),
        "percentiles": sql.percentile(
            sql.when(is_good & (sql.col("seconds") > 0), sql.col("new_records") / sql.col("seconds")),
            sql.array(*map(sql.lit, _PERCENTILES)),
        ),
    }
    per_epoch = (
        rates.where(counts).groupBy(*PARTITION_KEY, "epoch").agg(*(each.alias(name) for name, each in figures.items()))
    )
    latest = sql.max_by(sql.struct(*figures), "epoch").alias("latest")
    chosen = per_epoch.groupBy(*PARTITION_KEY).agg(latest, sql.max("epoch").alias("epoch"))
    return chosen.select(*PARTITION_KEY, "epoch", "latest.*").select(*PARTITION_KEY, "epoch", *_epoch_rates())


def _epoch_rates() -> tuple[Column, ...]:
    span_s = (sql.col("last.taken_ms") - sql.col("first.taken_ms")) / 1000.0
    kept = sql.col("last.end_offset") - sql.col("last.start_offset")
    has_grown = (sql.col("sized_records") > 0) & (sql.col("new_bytes") > 0)
    by_growth = sql.when(has_grown, sql.col("new_bytes") / sql.col("sized_records"))
    by_log = sql.when(kept > 0, sql.col("last.size_bytes") / kept)
    basis = sql.coalesce(sql.when(by_growth.isNotNull(), "growth"), sql.when(by_log.isNotNull(), "log"))
    return (
        sql.coalesce(by_growth, by_log).alias("bytes_per_record"),
        basis.alias("record_size_basis"),
        sql.when(sql.col("known_s") > 0, sql.col("new_records") / sql.col("known_s")).alias("write_records_per_s"),
        *(
            sql.get("percentiles", place).alias(f"p{round(100 * part)}_records_per_s")
            for place, part in enumerate(_PERCENTILES)
        ),
        sql.col("sample_count"),
        span_s.alias("span_s"),
        sql.when(span_s > 0, sql.coalesce("good_s", sql.lit(0.0)) / span_s).alias("covered_share"),
    )


def in_bytes(records: Column) -> Column:
    """Records per second times their size; 0 without records, however large they would be."""
    return sql.when(records == 0, 0.0).when(records != 0, records * sql.col("bytes_per_record"))


def coverage() -> Column:
    """What the rates rest on, in the words of the schema; the cases exclude each other and leave none out."""
    several = sql.col("sample_count") > 1
    one = sql.col("sample_count") == 1
    has_bytes = sql.col("write_bytes_per_s").isNotNull()
    return (
        sql.when(several & has_bytes, "measured")
        .when(several & ~has_bytes, "no size")
        .when(one & (sql.col("reset_count") > 0), "reset")
        .when(one & (sql.col("reset_count") == 0), "one sample")
        .when(sql.col("sample_count") == 0, "no samples")
    )


def verdict() -> Column:
    """Whether there is enough data to plan by, in the words of the schema; the cases exclude each other."""
    is_measured = sql.col("coverage") == "measured"
    is_long = sql.col("span_s") >= WHOLE * DAY_S
    is_dense = sql.col("covered_share") >= WHOLE
    return (
        sql.when(~is_measured, "unknown")
        .when(is_measured & ~is_long, "short")
        .when(is_measured & is_long & ~is_dense, "gaps")
        .when(is_measured & is_long & is_dense, "enough")
    )


_KEY = ("cluster_id", "snapshot_id", "topic", "partition")
_RATES = ("write_bytes_per_s", "p95_write_bytes_per_s", "p99_write_bytes_per_s", "peak_write_bytes_per_s")

_READS = ("read_bytes_per_s", "read_basis", "read_error_share", "cpu_share", "follower_cpu_share")


def plan_inputs(partitions: DataFrame, replicas: DataFrame, load_model: DataFrame, forecast: DataFrame) -> DataFrame:
    """Table `plan_inputs`. Every replica carries the size of the whole partition: what it takes, or will take.

    All are of the same snapshot per cluster. A replica whose partition is unknown has no row.
    """
    moving = (sql.size("adding") > 0) | (sql.size("removing") > 0)
    states = partitions.select(*_KEY, moving.alias("is_reassigning"))
    loads = load_model.select(*_KEY, "size_bytes", *_RATES, *_READS, "coverage", "verdict")
    ahead = forecast.select(
        *_KEY,
        sql.col("size_bytes").alias("forecast_size_bytes"),
        sql.col("write_bytes_per_s").alias("forecast_write_bytes_per_s"),
    )
    return (
        replicas.select(*_KEY, "broker", "position", "is_leader")
        .join(states, on=list(_KEY), how="inner")
        .join(loads, on=list(_KEY), how="inner")
        .join(ahead, on=list(_KEY), how="inner")
        .select(*PLAN_INPUTS.column_names)
    )
