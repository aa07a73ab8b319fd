"""DataFrame → DataFrame. Size and load per partition, table `load_model`; per replica, table `plan_inputs`.

How the rates come about, for the hours of the window (`in_window`) since the log of the partition last restarted, and
the samples in them that count (see `rates.py` and `hours.py`):

    write_records_per_s = sum of end offset differences / sum of their seconds
    write_bytes_per_s   = write_records_per_s * bytes_per_record   (0 when there were no records)

and bytes_per_record is, by the first of these that can be told (`record_size_basis`),

    growth  sum of size differences / sum of end offset differences, over the pairs of neighbouring samples between
            which the log only grew: same leader, same start offset, size not smaller
    log     size / (end offset - start offset), at the last sample

Percentiles are of the intervals between neighbouring samples, those across gaps left out, from the histograms of the
hours: off by half a percent at most (`histograms.py`). The peak hour and what the forecast rests on are made from hours
and days (`trend.py`, `forecast.py`). All are rates of records times the one
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

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from kreassign.pipeline.load.accuracy import TOLD_ERROR, UNSEEN_PEAK, Evidence, evidence
from kreassign.pipeline.load.forecast import DAY_S
from kreassign.pipeline.load.histograms import histogram, quantile, shift
from kreassign.pipeline.load.hours import HOUR_MS
from kreassign.pipeline.load.measured import nothing_measured
from kreassign.pipeline.load.rates import PARTITION_KEY
from kreassign.pipeline.load.trend import HOURS_A_DAY, WINDOW_DAYS, peak_hours, trends
from kreassign.pipeline.tables.schemas import LOAD_MODEL, PLAN_INPUTS

_SNAPSHOT_KEY = ("cluster_id", "snapshot_id")
_PERCENTILES = (0.5, 0.95, 0.99)
_BYTES_OF_RECORDS = {
    "p50_write_bytes_per_s": "p50_records_per_s",
    "p95_write_bytes_per_s": "p95_records_per_s",
    "p99_write_bytes_per_s": "p99_records_per_s",
    "peak_write_bytes_per_s": "peak_records_per_s",
    "recent_write_bytes_per_s": "recent_records_per_s",
    "low_p95_write_bytes_per_s": "low_p95_records_per_s",
    "high_p95_write_bytes_per_s": "high_p95_records_per_s",
}


def load_model(
    partitions: DataFrame,
    replicas: DataFrame,
    hours: DataFrame,
    window_days: int = WINDOW_DAYS,
) -> DataFrame:
    """Table `load_model`: one row per given partition; `partitions` and `replicas` are of one snapshot per cluster.

    `hours` are rows of table `load_hours`, those `in_window` of `window_days`.
    """
    sizes = partition_sizes(replicas)
    joined = partitions.join(sizes, on=[*_SNAPSHOT_KEY, "topic", "partition"], how="left").join(
        write_rates(hours, window_days), on=list(PARTITION_KEY), how="left"
    )
    return (
        joined.withColumns(
            {name: sql.coalesce(name, sql.lit(0)) for name in ("sample_count", "reset_count", "day_count")}
        )
        .withColumns({name: sql.coalesce(name, sql.lit(0.0)) for name in ("span_s", "covered_share")})
        .withColumn("has_trend", sql.coalesce("has_trend", sql.lit(col=False)))
        .withColumns({name: in_bytes(sql.col(records)) for name, records in _BYTES_OF_RECORDS.items()})
        .withColumn("write_bytes_per_s", in_bytes(sql.col("write_records_per_s")))
        .withColumns(_mean_interval())
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


def in_window(hours: DataFrame, latest: DataFrame, window_days: int = WINDOW_DAYS) -> DataFrame:
    """The hours that a load rests on: of the last `window_days` of each cluster, back from its `latest` hour.

    `latest` has `latest_ms`, the start of that hour, by cluster_id.
    """
    begins = (sql.col("latest_ms") - (window_days * HOURS_A_DAY - 1) * HOUR_MS).alias("begin_ms")
    windows = sql.broadcast(latest.select("cluster_id", begins))
    return hours.join(windows, on="cluster_id").where(sql.col("hour_ms") >= sql.col("begin_ms")).select(*hours.columns)


def write_rates(hours: DataFrame, window_days: int) -> DataFrame:
    """Rates of records per partition since its log last restarted; see the top of this module."""
    epoch_key = [*PARTITION_KEY, "epoch"]
    latest = of_latest_epoch(hours)
    told = sums(latest).join(evidence(latest), on=epoch_key, how="left")
    return (
        told.join(_histograms(latest), on=epoch_key, how="left")
        .withColumns(_percentiles())
        .join(peak_hours(latest), on=epoch_key, how="left")
        .join(trends(latest, window_days), on=epoch_key, how="left")
        .withColumn("reset_count", sql.col("epoch"))
    )


def of_latest_epoch(hours: DataFrame) -> DataFrame:
    """The hours since the log of their partition last restarted."""
    latest = sql.max("epoch").over(Window.partitionBy(*PARTITION_KEY))
    seen = hours.where(sql.col("sample_count") > 0).withColumn("latest_epoch", latest)
    return seen.where(sql.col("epoch") == sql.col("latest_epoch")).drop("latest_epoch")


def sums(hours: DataFrame) -> DataFrame:
    """What the hours of each partition and epoch say together."""
    last = {
        f"last_{name}": sql.max_by(f"last_{name}", "last_ms") for name in ("start_offset", "end_offset", "size_bytes")
    }
    figures = {
        "first_ms": sql.min("first_ms"),
        **last,
        "last_ms": sql.max("last_ms"),
        "sample_count": sql.sum("sample_count").cast("int"),
        "good_s": _seconds("good_seconds"),
        "known_s": _seconds("seconds"),
        # As doubles, which cannot overflow.
        **{name: sql.sum(sql.col(name).cast("double")) for name in ("new_records", "sized_records", "new_bytes")},
    }
    together = hours.groupBy(*PARTITION_KEY, "epoch").agg(*(each.alias(name) for name, each in figures.items()))
    return together.select(*PARTITION_KEY, "epoch", *_epoch_rates())


def _seconds(name: str) -> Column:
    """The sum of whole milliseconds: it is the same in whatever order they are added."""
    return sql.sum(sql.round(sql.col(name) * 1000).cast("bigint")) / 1000.0


def _histograms(hours: DataFrame) -> DataFrame:
    """The rates of the intervals outside gaps, by partition and epoch, in records of the mean size of the epoch.

    Records of an hour in which they are twice as large as usual count twice.
    """
    key = (*PARTITION_KEY, "epoch")
    epoch = Window.partitionBy(*key)
    usual = sql.try_divide(sql.sum("new_bytes").over(epoch), sql.sum("sized_records").over(epoch))
    # NULL, which is no shift, or 0, where no size is known of the hour.
    larger = sql.try_divide(sql.try_divide("new_bytes", "sized_records"), usual)
    sized = hours.withColumn("by", shift(larger))
    moved = sized.select(*key, "by", sql.explode(sql.arrays_zip("rate_bins", "rate_counts")).alias("entry"))
    bins = moved.groupBy(*key, (sql.col("entry.rate_bins") + sql.col("by")).alias("bin"))
    merged = bins.agg(sql.sum("entry.rate_counts").alias("count")).groupBy(*key)
    return merged.agg(histogram("bin", "count").alias("histogram"))


def _percentiles() -> dict[str, Column]:
    """Of the histogram: p50, p95 and p99, and the ends of the interval of the p95, in records per second."""
    whole, told = sql.col("histogram"), _evidence()
    plain = {f"p{round(100 * share)}_records_per_s": quantile(whole, share) for share in _PERCENTILES}
    (low, high), (low_factor, high_factor) = told.p95_places(), told.p95_factors()
    most = quantile(whole, high) * high_factor
    unseen = sql.greatest(most, UNSEEN_PEAK * sql.col("write_records_per_s"))
    return plain | {
        "low_p95_records_per_s": quantile(whole, low) * low_factor,
        "high_p95_records_per_s": sql.when(told.is_peak_seen(), most).otherwise(unseen),
    }


def _evidence() -> Evidence:
    # Where nothing is written it does not matter how large it is.
    return Evidence(is_by_log=(sql.col("record_size_basis") == "log") & (sql.col("write_records_per_s") > 0))


def _epoch_rates() -> tuple[Column, ...]:
    span_s = (sql.col("last_ms") - sql.col("first_ms")) / 1000.0
    kept = sql.col("last_end_offset") - sql.col("last_start_offset")
    has_grown = (sql.col("sized_records") > 0) & (sql.col("new_bytes") > 0)
    by_growth = sql.when(has_grown, sql.col("new_bytes") / sql.col("sized_records"))
    by_log = sql.when(kept > 0, sql.col("last_size_bytes") / kept)
    basis = sql.coalesce(sql.when(by_growth.isNotNull(), "growth"), sql.when(by_log.isNotNull(), "log"))
    # The first interval of the window began before it.
    covered = sql.least(sql.coalesce("good_s", sql.lit(0.0)) / span_s, sql.lit(1.0))
    return (
        sql.coalesce(by_growth, by_log).alias("bytes_per_record"),
        basis.alias("record_size_basis"),
        sql.when(sql.col("known_s") > 0, sql.col("new_records") / sql.col("known_s")).alias("write_records_per_s"),
        sql.col("sample_count"),
        span_s.alias("span_s"),
        sql.when(span_s > 0, covered).alias("covered_share"),
    )


def in_bytes(records: Column) -> Column:
    """Records per second times their size; 0 without records, however large they would be."""
    return sql.when(records == 0, 0.0).when(records != 0, records * sql.col("bytes_per_record"))


def _mean_interval() -> dict[str, Column]:
    low, high = _evidence().mean_factors()
    mean = sql.col("write_bytes_per_s")
    return {"low_write_bytes_per_s": mean * low, "high_write_bytes_per_s": mean * high}


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
    low, high = _evidence().mean_factors()
    is_known = (1 - low <= TOLD_ERROR) & (high - 1 <= TOLD_ERROR) & _is_p95_known()
    is_long = sql.col("span_s") >= DAY_S
    is_enough = sql.coalesce(is_known, sql.lit(col=False))
    return (
        sql.when(~is_measured, "unknown")
        .when(is_measured & is_enough, "enough")
        .when(is_measured & ~is_enough & ~is_long, "short")
        .when(is_measured & ~is_enough & is_long, "gaps")
    )


def _is_p95_known() -> Column:
    p95, low, high = (sql.col(f"{end}p95_write_bytes_per_s") for end in ("", "low_", "high_"))
    is_idle = (high == 0) & _evidence().is_peak_seen()
    return is_idle | ((p95 - low <= TOLD_ERROR * p95) & (high - p95 <= TOLD_ERROR * p95) & (p95 > 0))


_KEY = ("cluster_id", "snapshot_id", "topic", "partition")
_RATES = ("write_bytes_per_s", "p95_write_bytes_per_s", "p99_write_bytes_per_s", "peak_write_bytes_per_s")
_INTERVALS = tuple(f"{end}_{name}" for name in _RATES[:2] for end in ("low", "high"))

_READS = ("read_bytes_per_s", "read_basis", "read_error_share", "cpu_share", "follower_cpu_share")


def plan_inputs(partitions: DataFrame, replicas: DataFrame, load_model: DataFrame, forecast: DataFrame) -> DataFrame:
    """Table `plan_inputs`. Every replica carries the size of the whole partition: what it takes, or will take.

    All are of the same snapshot per cluster. A replica whose partition is unknown has no row.
    """
    moving = (sql.size("adding") > 0) | (sql.size("removing") > 0)
    states = partitions.select(*_KEY, moving.alias("is_reassigning"))
    loads = load_model.select(*_KEY, "size_bytes", *_RATES, *_INTERVALS, *_READS, "coverage", "verdict")
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
