"""DataFrame → DataFrame. What a load keeps for the next one: hours that are closed, and the samples after them.

An hour of a partition is closed once nothing that may still come can change it. What may still come are samples that
are less than `ALLOWED_LATENESS_MS` older than the latest of their partition. They, and those that are judged by them,
are open: `_RIGHT` samples that count see to it, for a sample is judged by

    the four intervals after it         is it a gap?
    two clean samples after each end    does one that goes back or ahead come back? (second rules of `rules.py`)
    three samples after each of them    the same, among all samples (first rules)

So a load adds hours that are closed now to those of before, replaces the open ones, and leaves behind, for the next
load, the samples of open hours and the last ones before them as neighbours: three samples, one that is clean, and five
that count (four intervals). Whatever the parts in which samples come, and in which order within the allowed lateness,
the hours are the same as if all had come at once: every figure is a sum of whole numbers, and histograms are counts.

All of it is one pass over the samples in their order, and one aggregation (`parts`): a part is what falls into the same
bin of the same hour, or one sample that is kept as it is, or a bad one (`intake.py`).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from kreassign.pipeline.load.histograms import bin_of, histogram
from kreassign.pipeline.load.rates import BAD, DECIDED, EPOCH_KEY, PARTITION_KEY, REASON, in_time, nearest
from kreassign.pipeline.load.rules import HOUR_CLOSED
from kreassign.pipeline.tables.schemas import LOAD_HOURS, OPEN_SAMPLES, SAMPLES

HOUR_MS = 3_600_000
MICRO = 1_000_000
ALLOWED_LATENESS_MS = 2 * HOUR_MS
_RIGHT = 4 + 2 + 3
_LEFT_SAMPLES, _LEFT_COUNTING = 3, 5
_KEPT = (*SAMPLES.column_names, *(name for name in DECIDED if name != BAD), "verdict")


def hour_of(time: Column) -> Column:
    """The start of the hour of a time in ms."""
    return (sql.floor(time / HOUR_MS) * HOUR_MS).cast("bigint")


def whole_ms(seconds: str) -> Column:
    """A column of seconds in whole milliseconds, whose sum is the same in whatever order they are added."""
    return sql.round(sql.col(seconds) * 1000).cast("bigint")


def parts(rates: DataFrame) -> DataFrame:
    """What samples of the same hour and bin add up to; and `kept`, each sample that is needed as it is.

    Kept are samples that do not count and are not there twice, for the quarantine; and for the next load those of open
    hours (`is_open`) and the neighbours before them (`is_neighbour`).
    """
    counts, is_judged = sql.col(REASON).isNull(), ~sql.col("is_closed")
    placed = _with_open_hours(rates)
    is_good = sql.col("verdict") == "good"
    rate = sql.when(is_good & (sql.col("seconds") > 0), sql.col("new_records") / sql.col("seconds"))
    is_odd = (is_judged & (sql.col("verdict") == "odd")) | sql.col(BAD).isNotNull()
    kept = sql.when(sql.col("is_open") | sql.col("is_neighbour") | is_odd, sql.struct(*_KEPT))
    grew = is_judged & sql.col("new_records").isNotNull()
    milliseconds = whole_ms("seconds")
    # By sums of whole numbers the order in which rows come makes no difference.
    squares = milliseconds.cast("double") * milliseconds
    seen = is_judged & counts
    figures = {
        "row_count": sql.count_if(is_judged),
        "sample_count": sql.count_if(seen),
        "new_count": sql.count_if(sql.col("is_new") & counts),
        "new_late_count": sql.count_if(sql.col("is_new") & _is_late()),
        "new_twice_count": sql.count_if(sql.col("is_new") & (sql.col("verdict") == "twice")),
        "known_ms": sql.sum(sql.when(grew, milliseconds)),
        "good_ms": sql.sum(sql.when(is_judged & is_good, milliseconds)),
        "good_square_ms": sql.sum(sql.when(is_judged & is_good, squares)),
        "good_records": sql.sum(sql.when(is_judged & is_good, sql.col("new_records"))),
        "rate_sum": sql.sum(sql.when(is_judged, sql.round(rate * MICRO).cast("bigint"))),
        "odd_count": sql.count_if(is_judged & (sql.col("verdict") == "odd")),
        "new_records": sql.sum(sql.when(grew, sql.col("new_records"))),
        "most_new_records": sql.max(sql.when(grew, sql.col("new_records"))),
        "sized_records": sql.sum(sql.when(is_judged, sql.col("sized_records"))),
        "new_bytes": sql.sum(sql.when(is_judged & sql.col("sized_records").isNotNull(), sql.col("new_bytes"))),
        "size_sum": sql.sum(sql.when(seen, sql.col("size_bytes"))),
        "size_count": sql.count(sql.when(seen, sql.col("size_bytes"))),
        "first_ms": sql.min(sql.when(seen, sql.col("taken_ms"))),
        "last_ms": sql.max(sql.when(seen, sql.col("taken_ms"))),
    } | {f"last_{name}": sql.max_by(name, sql.when(seen, sql.col("taken_ms"))) for name in _LAST}
    key = (*EPOCH_KEY, hour_of(sql.col("taken_ms")).alias("hour_ms"), "open_from_ms", "is_open", "is_neighbour", BAD)
    shares_bin = sql.when(is_judged, bin_of(rate)).alias("bin")
    return placed.groupBy(*key, shares_bin, kept.alias("kept")).agg(
        # More than one only of bad rows, which are not neighbours: of others all but one are there twice.
        sql.count("*").alias("kept_count"),
        sql.count_if(is_judged & rate.isNotNull()).alias("rate_count"),
        *(figure.alias(name) for name, figure in figures.items()),
    )


def _is_late() -> Column:
    return sql.coalesce(sql.col(REASON) == HOUR_CLOSED, sql.lit(col=False))


_LAST = ("leader", "start_offset", "end_offset", "size_bytes")


def _with_open_hours(rates: DataFrame) -> DataFrame:
    """Samples with `is_open`, whether their hour is; and `is_neighbour`, whether one in an open hour needs them."""
    counts, is_clean = sql.col(REASON).isNull(), sql.col("is_clean")
    whole = Window.partitionBy(*PARTITION_KEY)
    timed = rates.withColumns(
        {
            "counting_ms": sql.when(counts, sql.col("taken_ms")),
            "clean_ms": sql.when(is_clean, sql.col("taken_ms")),
        }
    )
    near = timed.withColumns(
        {
            "right_ms": nearest("lead", "counting_ms", _RIGHT),
            "left_counting_ms": nearest("lead", "counting_ms", _LEFT_COUNTING),
            "left_clean_ms": nearest("lead", "clean_ms"),
            "left_ms": sql.lead("taken_ms", _LEFT_SAMPLES).over(in_time()),
            "latest_ms": sql.max("counting_ms").over(whole),
        }
    )
    can_change = ~sql.coalesce(sql.col("right_ms") < sql.col("latest_ms") - ALLOWED_LATENESS_MS, sql.lit(col=False))
    is_over = ~sql.col("is_closed") & can_change
    first_ms = near.withColumn("first_open_ms", sql.min(sql.when(is_over, sql.col("taken_ms"))).over(whole))
    # Also where there is no sample yet, one may come.
    earliest = sql.least(sql.col("first_open_ms"), sql.col("latest_ms") - ALLOWED_LATENESS_MS)
    opened = first_ms.withColumn("open_from_ms", hour_of(earliest))

    def reaches(name: str) -> Column:
        return sql.coalesce(sql.col(name) >= sql.col("open_from_ms"), sql.lit(col=True))

    is_open = sql.coalesce(sql.col("taken_ms") >= sql.col("open_from_ms"), sql.lit(col=False))
    is_near = reaches("left_ms") | (is_clean & reaches("left_clean_ms")) | (counts & reaches("left_counting_ms"))
    is_real = sql.col(BAD).isNull() & ~_is_late()
    return opened.withColumn("is_open", is_open).withColumn("is_neighbour", is_real & ~is_open & is_near)


def hours_of(parts: DataFrame) -> DataFrame:
    """Table `load_hours`: the hours of these parts; an interval belongs to the hour in which it ends."""
    sums = ("known_ms", "good_ms", "good_square_ms", "good_records", "rate_sum", "odd_count", "new_records",
            "sized_records", "new_bytes", "size_sum", "size_count", "row_count", "sample_count",
            "rate_count")  # fmt: skip
    lasts = {f"last_{name}": sql.max_by(f"last_{name}", "last_ms") for name in _LAST}
    figures = {
        **{name: sql.sum(name) for name in sums},
        "most_new_records": sql.max("most_new_records"),
        "first_ms": sql.min("first_ms"),
        **lasts,
        "last_ms": sql.max("last_ms"),
    }
    named = tuple(figure.alias(name) for name, figure in figures.items())
    key = (*EPOCH_KEY, "hour_ms", "is_open")
    # Both are computed where the rows of a partition are: a bin may be in parts of its own, where samples are kept.
    bins = parts.repartition(*PARTITION_KEY).groupBy(*key, "bin").agg(*named)
    hours = bins.groupBy(*key).agg(*named, histogram("bin", "rate_count").alias("histogram"))
    return (
        hours.where(sql.col("row_count") > 0)
        .select(
            *EPOCH_KEY,
            "hour_ms",
            "is_open",
            (sql.coalesce("known_ms", sql.lit(0)) / 1000.0).alias("seconds"),
            (sql.coalesce("good_ms", sql.lit(0)) / 1000.0).alias("good_seconds"),
            (sql.coalesce("good_square_ms", sql.lit(0.0)) / 1_000_000.0).alias("squared_seconds"),
            sql.coalesce("good_records", sql.lit(0)).alias("good_records"),
            sql.coalesce("rate_sum", sql.lit(0)).alias("rate_sum"),
            sql.coalesce("new_records", sql.lit(0)).alias("new_records"),
            sql.coalesce("most_new_records", sql.lit(0)).alias("most_new_records"),
            sql.coalesce("sized_records", sql.lit(0)).alias("sized_records"),
            sql.coalesce("new_bytes", sql.lit(0)).alias("new_bytes"),
            sql.when(sql.col("size_count") > 0, sql.col("size_sum") / sql.col("size_count")).alias("mean_size_bytes"),
            sql.col("sample_count").cast("int").alias("sample_count"),
            sql.col("odd_count").cast("int").alias("odd_count"),
            "first_ms",
            "last_ms",
            *(f"last_{name}" for name in _LAST),
            sql.col("histogram.bin").alias("rate_bins"),
            sql.transform("histogram", lambda entry: entry["count"].cast("int")).alias("rate_counts"),
        )
        .select(*LOAD_HOURS.column_names)
    )


def open_samples(parts: DataFrame) -> DataFrame:
    """Table `open_samples`: what the next load has to read again."""
    kept = parts.where(sql.col("kept").isNotNull() & (sql.col("is_open") | sql.col("is_neighbour")))
    is_open = sql.col("is_open")
    return kept.select(
        *(sql.col(f"kept.{name}") for name in SAMPLES.column_names),
        "open_from_ms",
        (~is_open).alias("is_closed"),
        sql.when(~is_open, sql.col("kept.is_clean")).alias("is_clean"),
        sql.when(~is_open, sql.col(f"kept.{REASON}")).alias(REASON),
        sql.when(~is_open, sql.col("kept.epoch")).alias("epoch"),
    ).select(*OPEN_SAMPLES.column_names)


def reopened(open_samples: DataFrame) -> DataFrame:
    """Samples that the load before has left, as `rates` wants them."""
    known = {"is_new": sql.lit(col=False), BAD: sql.lit(None).cast("string")}
    return open_samples.withColumns(known).select(*SAMPLES.column_names, *DECIDED)


def quarantined(parts: DataFrame) -> DataFrame:
    """Samples that are bad or odd, as rows of table `quarantine`: those of open hours may be judged otherwise later."""
    odd = (sql.col("kept.verdict") == "odd") & ~sql.col("kept.is_closed")
    row = sql.to_json(sql.struct(*(sql.col(f"kept.{name}").alias(name) for name in SAMPLES.column_names)))
    each = parts.where(odd | sql.col(BAD).isNotNull())
    return each.withColumn("copy", sql.explode(sql.sequence(sql.lit(1), "kept_count"))).select(
        sql.lit(SAMPLES.name).alias("table_name"),
        sql.col(f"kept.{REASON}").alias("reason"),
        sql.coalesce(BAD, row).alias("row_json"),
        "is_open",
    )
