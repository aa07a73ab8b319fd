"""DataFrame → DataFrame. What brokers received and sent during a run, and how much of their throttle that was."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

MINUTE_MS = 60_000

_RUN = ("run_id", "cluster_id")
_SIDES = {"in": "broker", "out": "source"}


def broker_flows(moves: DataFrame, arrivals: DataFrame) -> DataFrame:
    """Per run and broker: bytes predicted and copied, peaks, and the part of the throttle that was used."""
    parts = _parts(arrivals)
    found = _predicted(moves)
    for side, column in _SIDES.items():
        found = found.join(_peaks(_by_broker(parts, column), side), on=[*_RUN, "broker"], how="full")
    return found.withColumn("throttle_use", sql.greatest("use_in", "use_out"))


def _predicted(moves: DataFrame) -> DataFrame:
    """What each broker is to get, and to send if the first replica of each list leads."""
    copies = moves.select(*_RUN, "original", "size_bytes", sql.explode("adding").alias("to"))
    size, nothing = sql.col("size_bytes"), sql.lit(0)
    both = copies.select(*_RUN, sql.col("to").alias("broker"), size.alias("in"), nothing.alias("out")).unionByName(
        copies.select(*_RUN, sql.col("original")[0].alias("broker"), nothing.alias("in"), size.alias("out"))
    )
    return both.groupBy(*_RUN, "broker").agg(*(sql.sum(side).alias(f"predicted_{side}_bytes") for side in _SIDES))


def _parts(arrivals: DataFrame) -> DataFrame:
    """What each look added to each copy. A copy that was begun anew adds from nothing."""
    copy = Window.partitionBy("run_id", "topic", "partition", "broker").orderBy("at_ms")
    more = sql.col("done_bytes") - sql.coalesce(sql.lag("done_bytes").over(copy), sql.lit(0))
    return arrivals.withColumn("more_bytes", sql.greatest(more, sql.lit(0)))


def _by_broker(parts: DataFrame, column: str) -> DataFrame:
    """Per broker and look: all that had come in, or gone out, by then."""
    so_far = Window.partitionBy("run_id", "broker").orderBy("at_ms")
    return (
        parts.select(*_RUN, sql.col(column).alias("broker"), "at_ms", "more_bytes", "throttle_bytes_per_s")
        .groupBy(*_RUN, "broker", "at_ms")
        .agg(
            sql.sum("more_bytes").alias("more_bytes"),
            sql.max("throttle_bytes_per_s").alias("throttle_bytes_per_s"),
        )
        .withColumn("bytes", sql.sum("more_bytes").over(so_far))
    )


def _peaks(looks: DataFrame, side: str) -> DataFrame:
    """The fastest minute of each broker, or the whole if it was shorter, and the part of the throttle that it was."""
    broker = Window.partitionBy("run_id", "broker").orderBy("at_ms")
    long_ago = broker.rangeBetween(Window.unboundedPreceding, -MINUTE_MS)
    since = broker.rangeBetween(-MINUTE_MS, Window.currentRow)
    is_last = sql.lead("at_ms").over(broker).isNull()
    is_short = sql.col("at_ms") - sql.min("at_ms").over(broker.rowsBetween(Window.unboundedPreceding, 0)) < MINUTE_MS
    earlier = sql.last(sql.struct("at_ms", "bytes")).over(long_ago)
    first = sql.first(sql.struct("at_ms", "bytes")).over(broker)
    begin = sql.coalesce(earlier, sql.when(is_last & is_short, first))
    limit = sql.when(
        sql.count_if(sql.col("throttle_bytes_per_s").isNull()).over(since) == 0,
        sql.max("throttle_bytes_per_s").over(since),
    )
    seconds = (sql.col("at_ms") - sql.col("begin.at_ms")) / 1000
    rate = sql.when(seconds > 0, (sql.col("bytes") - sql.col("begin.bytes")) / seconds)
    rated = looks.withColumns({"begin": begin, "limit": limit}).withColumn("rate", rate)
    span_s = (sql.max("at_ms") - sql.min("at_ms")) / 1000
    return rated.groupBy(*_RUN, "broker").agg(
        sql.max("bytes").alias(f"copied_{side}_bytes"),
        sql.max("rate").alias(f"peak_{side}_bytes_per_s"),
        sql.max(sql.col("rate") / sql.col("limit")).alias(f"use_{side}"),
        *((span_s.alias("receiving_s"),) if side == "in" else ()),
    )
