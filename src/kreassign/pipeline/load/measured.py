"""Load of partitions and of brokers as brokers measured it (table `metrics`).

Series become hourly means (`metric_hours`). A reading covers the time since the previous one of its series, if that
is at most an hour, and belongs to the hour in which it ends; a counter that goes back was reset, and that time is not
measured. Nor is the time before a reading that is another broker's: the counter goes back soon, and on from the reading
before it, where a restarted one begins at 0; or it is further ahead than a broker can count. `measured_share` is the
measured part of an hour: the completeness of the window.

What brokers sent to consumers in an hour, and the requests they got, are shared out to the partitions that they led
in that hour (`share_out`), and

    read_bytes_per_s = write_bytes_per_s * sum of bytes read / sum of bytes written    over the hours that have both
                       (the mean of the hours, where nothing was written)
    read_error_share = mean error of sharing out + the part of the hours that was not measured

The ratio keeps metrics of a few hours from being taken for the mean of weeks. Kafka's bytes out are those to
consumers; bytes to followers are a metric of their own, which is compared with writes times copies
(`replication_out_ratio` of `broker_loads`: 1 where metrics and samples agree).

CPU is shared out by its known costs, in the proportions of `model/load.py`: bytes that a leader receives and sends,
and bytes that a follower copies. Other work of the broker is included, and small or compressed batches cost more per
byte; so the error is as large as for any broker metric that is shared out to partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from kreassign.model.disks import sum_of_disks
from kreassign.model.load import COMPLETE, CPU_PER_COPY, CPU_PER_READ, CPU_PER_WRITE
from kreassign.model.text import HOUR_MS
from kreassign.pipeline.load.rates import PARTITION_KEY
from kreassign.pipeline.load.rules import (
    AFTER_GAP,
    ANOTHERS,
    FIRST,
    METRIC_HOUR_RULES,
    MOST_BYTES_PER_S,
    MOST_RECORDS_PER_S,
    TOO_FAST,
    TWICE,
    WENT_BACK,
)
from kreassign.pipeline.tables.schemas import BROKER_LOADS, LOAD_MODEL, METRIC_HOURS

# Share out what a broker measured in an hour to the partitions that it led. Arrays in, arrays out.
#
# A broker counts its bytes to consumers and its requests per broker, some of them per topic, hardly any per partition.
# A partition's share comes from the finest metric there is (`basis`):
#
#     partition   the partition's own metric
#     topic       the topic's metric on the broker, or in the whole cluster if there is no other (Confluent Cloud);
#                 less its partitions with own metrics; split over the others that the broker led, by their writes
#     broker      the broker's metric, less its topics and partitions with own metrics; split over the others, likewise
#
# A broker's metric of a topic of which it led no known partition is never split over other partitions.
#
# Where nothing was written, the split is even. A partition of unknown writes, as without the size of a record, gets the
# mean of its peers in the metric, with the spread of a broker. `spread` is the possible error of a partition's share,
# relative to it: `SPREADS` says how much more or less than its peers in a metric a partition may be read. It shrinks as
# the share grows: a partition that is alone in a metric has it exactly.

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NO_BROKER = -1
"""Broker id of cluster-wide metrics."""
NO_TOPIC = NO_PARTITION = -1
PARTITION, TOPIC, BROKER = range(3)
NOTHING = -1
BASES = ("partition", "topic", "broker")
SPREADS: Mapping[int, float] = {PARTITION: 0.0, TOPIC: 0.2, BROKER: 1.0}
"""Consumer groups read all partitions of a topic alike, within a fifth; topics of a broker have different readers."""
MEASURED_COLUMNS = (
    "read_bytes_per_s", "read_basis", "read_error_share", "read_measured_share", "requests_per_s",
    "requests_error_share", "cpu_share", "follower_cpu_share", "cpu_error_share",
)  # fmt: skip
"""Columns of table `load_model` that only brokers can measure."""
_BITS = 32


@dataclass(frozen=True, slots=True, eq=False)
class Led:
    """Partitions in one hour: numbers of topics, partitions and leaders, and bytes per second written; NaN: unknown."""

    topics: Ints
    partitions: Ints
    leaders: Ints
    written: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """One metric in the same hour: broker, topic and partition, mean, and measured part of the hour, per row."""

    brokers: Ints
    topics: Ints
    partitions: Ints
    values: Floats
    shares: Floats

    def where(self, which: npt.NDArray[np.bool_]) -> Told:
        """Select rows."""
        keys = (self.brokers[which], self.topics[which], self.partitions[which])
        return Told(*keys, self.values[which], self.shares[which])


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """One entry per partition: its rate, `basis` as an index into `BASES`, spread, and the measured part.

    NaN, `NOTHING`, NaN and 0 where nothing was measured.
    """

    rates: Floats
    basis: Ints
    spread: Floats
    told: Floats


def share_out(led: Led, told: Told) -> Shares:
    """Split a metric over the partitions; see the comment above."""
    count = len(led.topics)
    rates, spread = np.full(count, np.nan), np.full(count, np.nan)
    basis, measured = np.full(count, NOTHING, np.int64), np.zeros(count)
    is_written = ~np.isnan(led.written)
    nobodys = _of_nobody(led, told)
    for level, keys, metric in _levels(led, told):
        found = _sums(keys, metric)
        is_open = np.isnan(rates)
        _, groups = np.unique(keys, return_inverse=True)
        taken = np.bincount(groups, np.where(is_open, 0.0, rates))[groups]
        weights = _weights(groups, led.written, is_open & is_written)
        part = weights / np.maximum(np.bincount(groups, np.where(is_open, weights, 0.0))[groups], 1e-300)
        takes = is_open & found.is_told
        others = taken + nobodys if level == BROKER else taken
        rates[takes] = (np.maximum(found.rates - others, 0.0) * part)[takes]
        spread[takes] = (np.where(is_written, SPREADS[level], SPREADS[BROKER]) * (1 - part))[takes]
        basis[takes], measured[takes] = level, found.told[takes]
    return Shares(rates, basis, spread, measured)


def _weights(groups: Ints, written: Floats, is_known: npt.NDArray[np.bool_]) -> Floats:
    """Weight of each partition in its group: what was written, where unknown the mean of the others."""
    total, count = np.bincount(groups, np.where(is_known, written, 0.0)), np.bincount(groups, is_known)
    mean = (total / np.maximum(count, 1.0))[groups]
    weights: Floats = np.where(np.isnan(written), mean, written) + 1e-9
    return weights


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """Per partition: total rate of the partitions that share its metric, and the measured part."""

    rates: Floats
    told: Floats
    is_told: npt.NDArray[np.bool_]


def _levels(led: Led, told: Told) -> Iterator[tuple[int, Ints, tuple[Ints, Told]]]:
    """Levels from the finest on: the level, each partition's key, and the level's metrics with their keys."""
    is_of_partition = told.partitions != NO_PARTITION
    is_of_topic = ~is_of_partition & (told.topics != NO_TOPIC)
    is_of_cluster = told.brokers == NO_BROKER
    one = told.where(is_of_partition)
    yield PARTITION, _key(led.topics, led.partitions), (_key(one.topics, one.partitions), one)
    one = told.where(is_of_topic & ~is_of_cluster)
    yield TOPIC, _key(led.topics, led.leaders), (_key(one.topics, one.brokers), one)
    one = told.where(is_of_topic & is_of_cluster)
    yield TOPIC, led.topics, (one.topics, one)
    one = told.where((told.topics == NO_TOPIC) & ~is_of_cluster)
    yield BROKER, led.leaders, (one.brokers, one)


def _of_nobody(led: Led, told: Told) -> Floats:
    """Rate per partition that its leader reports for topics of which it led no partition."""
    of_topics = told.where((told.partitions == NO_PARTITION) & (told.topics != NO_TOPIC) & (told.brokers != NO_BROKER))
    keys = _key(of_topics.topics, of_topics.brokers)
    is_nobodys = ~np.isin(keys, _key(led.topics, led.leaders))
    each, places = np.unique(keys[is_nobodys], return_index=True)
    rates = _sums(each, (keys[is_nobodys], of_topics.where(is_nobodys))).rates
    leaders, of_leaders = np.unique(led.leaders, return_inverse=True)
    brokers = of_topics.brokers[is_nobodys][places]
    is_leader = np.isin(brokers, leaders)
    at = np.searchsorted(leaders, brokers[is_leader])
    nobodys: Floats = np.bincount(at, rates[is_leader], len(leaders)).astype(np.float64)
    return nobodys[of_leaders]


def _key(first: Ints, second: Ints) -> Ints:
    return (first << _BITS) + second


def _sums(keys: Ints, metric: tuple[Ints, Told]) -> _Found:
    """Add up metrics of the same key.

    If a partition's leader moved, each broker reports a part of the hour, or both report all of it: amounts add up.
    """
    theirs, told = metric
    if not len(theirs):
        return _Found(np.zeros(len(keys)), np.zeros(len(keys)), np.zeros(len(keys), np.bool_))
    known, places = np.unique(theirs, return_inverse=True)
    amounts = np.bincount(places, told.values * told.shares)
    measured = np.minimum(np.bincount(places, told.shares), 1.0)
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    is_told = (known[at] == keys) & (measured[at] > 0)
    return _Found(amounts[at] / np.maximum(measured[at], 1e-300), measured[at], is_told)


HOUR_S = 3600.0
READS, REQUESTS = "bytes_out", "requests"
RECENT_DAYS = 7
"""Days of metrics that count: every hour and weekday is in them, and readers change more often than writers."""
_REQUEST_NAMES = ("requests", "produce_requests", "fetch_requests")
_OF_BROKERS = {
    "bytes_in": "bytes_in_per_s",
    "bytes_out": "bytes_out_per_s",
    "replication_bytes_out": "replication_bytes_out_per_s",
    REQUESTS: "requests_per_s",
    "cpu_share": "cpu_share",
}
_HOUR = ("cluster_id", "hour_ms")
_SHARED = (
    "cluster_id string, topic string, partition int, seconds double, written double, "
    "read double, basis int, spread double, told double, requests double, asked_spread double, asked_told double"
)
_DISKS = "cluster_id string, broker int, disk_bytes bigint"


class _Dir(NamedTuple):
    total_bytes: int | None
    usable_bytes: int | None


READINGS = "readings"
"""Total number of readings, beside the counts by reason."""
_AFTER = (1, 2, 3, 4)
"""Readings to look ahead for a counter that goes on from before: those of two brokers may come in any order."""


def metric_sums(metrics: DataFrame) -> DataFrame:
    """Rows of table `metrics` by series, hour and kind: seconds, the amount in them, and readings by reason.

    Gives hours and counts in one pass over the metrics.
    """
    key = ("cluster_id", "broker", "topic", "partition", "name")
    in_time = Window.partitionBy(*key).orderBy("taken_ms", "value")
    seconds = (sql.col("taken_ms") - sql.lag("taken_ms").over(in_time)) / 1000.0
    near = {f"after_{place}": sql.lead("value", place).over(in_time) for place in _AFTER}
    timed = metrics.withColumns({"seconds": seconds, "before": sql.lag("value").over(in_time), **near})
    value, before, is_counter = sql.col("value"), sql.col("before"), sql.col("name").endswith("_total")
    rate = sql.when(is_counter, (value - before) / sql.col("seconds")).otherwise(value)
    lower = sql.coalesce(*(sql.when(sql.col(name) < value, sql.col(name)) for name in near))
    # A restarted counter begins at 0, and is soon more than twice what a young one had.
    goes_on = (lower >= before) & (lower < 2 * before)
    most = sql.when(sql.contains("name", sql.lit("bytes")), MOST_BYTES_PER_S).otherwise(MOST_RECORDS_PER_S)
    reason = (
        sql.when(sql.col("seconds").isNull(), FIRST)
        .when(sql.col("seconds") == 0, TWICE)
        .when(sql.col("seconds") > HOUR_S, AFTER_GAP)
        .when(rate < 0, WENT_BACK)
        .when(is_counter & goes_on, ANOTHERS)
        .when(is_counter & (rate > most), TOO_FAST)
    )
    base = sql.regexp_replace("name", "_(total|per_s)$", "")
    told = timed.withColumn("reason", reason).select(
        *key[:-1],
        sql.when(base.isin(*_REQUEST_NAMES), REQUESTS).otherwise(base).alias("name"),
        base.alias("kind"),
        (sql.floor(sql.col("taken_ms") / HOUR_MS) * HOUR_MS).cast("bigint").alias("hour_ms"),
        "reason",
        sql.when(sql.col("reason").isNull(), sql.col("seconds")).alias("seconds"),
        sql.when(sql.col("reason").isNull(), rate * sql.col("seconds")).alias("amount"),
    )
    return told.groupBy(*key, "hour_ms", "kind").agg(
        sql.sum("seconds").alias("seconds"),
        sql.sum("amount").alias("amount"),
        sql.count("*").alias(READINGS),
        *(sql.count(sql.when(sql.col("reason") == each.reason, 1)).alias(each.reason) for each in METRIC_HOUR_RULES),
    )


def with_topic_names(metrics: DataFrame, partitions: DataFrame) -> DataFrame:
    """Restore topic names of the snapshot where metrics have them in Kafka's metric scopes.

    In the scope of a metric Kafka writes `shop_orders` for `shop.orders`. It refuses topics whose names differ in that
    alone, so the restored name is unique.
    """
    names = partitions.select("cluster_id", sql.col("topic").alias("full_name")).distinct()
    scopes = names.withColumn("topic", sql.translate("full_name", ".", "_")).where("topic != full_name")
    found = metrics.join(sql.broadcast(scopes), on=["cluster_id", "topic"], how="left")
    return found.withColumn("topic", sql.coalesce("full_name", "topic")).select(*metrics.columns)


def unknown_topics(sums: DataFrame, partitions: DataFrame) -> dict[str, int]:
    """Topics of `metric_sums` that the snapshot lacks, with their readings; most readings first."""
    names = partitions.select("cluster_id", "topic").distinct()
    others = sums.where("topic IS NOT NULL").join(names, on=["cluster_id", "topic"], how="left_anti")
    counted = others.groupBy("topic").agg(sql.sum(READINGS).alias(READINGS)).orderBy(sql.desc(READINGS), "topic")
    return {row["topic"]: row[READINGS] for row in counted.collect()}


def unknown_brokers(sums: DataFrame, brokers: DataFrame) -> dict[int, int]:
    """Brokers of `metric_sums` that the snapshot lacks, with their readings; most readings first."""
    ids = brokers.select("cluster_id", "broker").distinct()
    others = sums.where(sql.col("broker") != NO_BROKER).join(ids, on=["cluster_id", "broker"], how="left_anti")
    counted = others.groupBy("broker").agg(sql.sum(READINGS).alias(READINGS)).orderBy(sql.desc(READINGS), "broker")
    return {row["broker"]: row[READINGS] for row in counted.collect()}


def metric_hours(sums: DataFrame) -> DataFrame:
    """Table `metric_hours`, from the result of `metric_sums`."""
    # Kinds of requests add up; a counter and a rate of the same measure do not.
    added, mean = sql.sum(sql.col("amount") / sql.col("seconds")), sql.sum("amount") / sql.sum("seconds")
    measured = sums.where(sql.col("seconds").isNotNull())
    together = measured.groupBy("cluster_id", "broker", "topic", "partition", "name", "hour_ms").agg(
        sql.when(sql.col("name") == REQUESTS, added).otherwise(mean).alias("value"),
        sql.least(sql.max("seconds") / HOUR_S, sql.lit(1.0)).alias("measured_share"),
    )
    return together.select(*METRIC_HOURS.column_names)


def metric_counts(sums: DataFrame) -> dict[str, int]:
    """Number of readings in total, and by each reason of `METRIC_HOUR_RULES`."""
    names = (READINGS, *(rule.reason for rule in METRIC_HOUR_RULES))
    (row,) = sums.agg(*(sql.sum(sums[name]).alias(name) for name in names)).collect()
    return {name: row[name] or 0 for name in names}


def with_measured(loads: DataFrame, hours: DataFrame, replicas: DataFrame, measured: DataFrame) -> DataFrame:
    """Add brokers' measurements to rows of `load_model`: from `load_hours`, `replicas` and `metric_hours`."""
    plain = loads.drop(*MEASURED_COLUMNS)
    written = _written(plain, _recent(hours, measured))
    wanted = measured.where(sql.col("name").isin(READS, REQUESTS))
    shared = written.groupBy(*_HOUR).cogroup(wanted.groupBy(*_HOUR)).applyInArrow(_shared_out, _SHARED)
    told = plain.join(_of_partitions(shared), on=list(PARTITION_KEY), how="left")
    ratio = sql.col("sum_reads") / sql.col("sum_written")
    by_ratio = sql.when(sql.col("sum_written") > 0, sql.col("write_bytes_per_s") * ratio)
    reads = sql.coalesce(by_ratio, "mean_reads")
    known = told.withColumns(
        {
            "read_bytes_per_s": reads,
            "read_basis": sql.when(reads.isNotNull(), sql.col("basis")),
            "read_error_share": sql.when(reads.isNotNull(), sql.col("error")),
            "read_measured_share": sql.when(reads.isNotNull(), sql.col("told_share")),
        }
    )
    return _with_cpu(known, replicas, measured).select(*LOAD_MODEL.column_names)


def nothing_measured() -> dict[str, Column]:
    """NULL for the columns that `with_measured` fills, if brokers measured nothing."""
    return {
        column.name: sql.lit(None).cast(column.type) for column in LOAD_MODEL.columns if column.name in MEASURED_COLUMNS
    }


def broker_loads(loads: DataFrame, replicas: DataFrame, measured: DataFrame, log_dirs: DataFrame) -> DataFrame:
    """Table `broker_loads`; replicas and `log_dirs` are of one snapshot per cluster, `measured` is `metric_hours`."""
    whole = measured.where(sql.col("topic").isNull() & (sql.col("broker") != NO_BROKER))
    of_name = sql.struct("value", sql.col("measured_share").alias("share"))
    hours = whole.groupBy("cluster_id", "broker", "hour_ms").agg(
        sql.max("measured_share").alias("measured_share"),
        *(sql.max(sql.when(sql.col("name") == name, of_name)).alias(name) for name in _OF_BROKERS),
    )
    over = hours.groupBy("cluster_id", "broker").agg(
        sql.count("*").cast("int").alias("hour_count"),
        sql.avg("measured_share").alias("measured_share"),
        *(_mean(name).alias(column) for name, column in _OF_BROKERS.items()),
        *(_peak(name).alias(f"peak_{column}") for name, column in _OF_BROKERS.items()),
    )
    # A partition without followers copies nothing, whatever its rate; where another's is unknown, so is the sum.
    copied = sql.when(sql.col("factor") > 1, sql.col("write_bytes_per_s") * (sql.col("factor") - 1)).otherwise(0.0)
    expected = sql.when(sql.count(copied) == sql.count("*"), sql.sum(copied))
    led = _placed(loads, replicas).where("is_leader").groupBy("cluster_id", "broker")
    key = ["cluster_id", "broker"]
    disks = log_dirs.select(*key, *_Dir._fields).groupBy(*key).applyInArrow(_disks, _DISKS)
    joined = over.join(led.agg(expected.alias("expected")), on=key, how="left").join(disks, on=key, how="left")
    replicated = sql.col("replication_bytes_out_per_s")
    moved = sql.col("bytes_in_per_s") + sql.col("bytes_out_per_s") + replicated
    return joined.withColumns(
        {
            "replication_out_ratio": sql.when(sql.col("expected") > 0, replicated / sql.col("expected")),
            "cpu_capacity_bytes_per_s": sql.when(sql.col("cpu_share") > 0, moved / sql.col("cpu_share")),
        }
    ).select(*BROKER_LOADS.column_names)


def _disks(dirs: pa.Table) -> pa.Table:
    """Row of `_DISKS` for the log directories of one broker; no size if that of any directory is unknown."""
    total_bytes, _ = sum_of_disks(_Dir(**row) for row in dirs.select(_Dir._fields).to_pylist())
    sizes = pa.array([total_bytes], pa.int64())
    return pa.table({"cluster_id": dirs["cluster_id"][:1], "broker": dirs["broker"][:1], "disk_bytes": sizes})


def _mean(name: str) -> Column:
    """Mean of the hours that have a value, weighted by the part of them in which this metric was measured."""
    value, share = sql.col(f"{name}.value"), sql.col(f"{name}.share")
    return sql.try_divide(sql.sum(value * share), sql.sum(share))


def _peak(name: str) -> Column:
    """Largest mean of an hour that was measured whole: some seconds of an hour say nothing of it."""
    return sql.max(sql.when(sql.col(f"{name}.share") >= COMPLETE, sql.col(f"{name}.value")))


def _recent(hours: DataFrame, measured: DataFrame) -> DataFrame:
    """Hours of the last days in which brokers measured something."""
    last = sql.broadcast(measured.groupBy("cluster_id").agg(sql.max("hour_ms").alias("last_metric_ms")))
    begin = sql.col("last_metric_ms") - RECENT_DAYS * 24 * HOUR_MS
    return hours.join(last, on="cluster_id").where(
        (sql.col("hour_ms") > begin) & (sql.col("hour_ms") <= sql.col("last_metric_ms"))
    )


def _written(loads: DataFrame, hours: DataFrame) -> DataFrame:
    """Writes to each partition in each hour, and its last leader in that hour."""
    sizes = loads.select(*PARTITION_KEY, "bytes_per_record")
    known = hours.where(sql.col("seconds") > 0).join(sizes, on=list(PARTITION_KEY), how="inner")
    return known.select(
        *PARTITION_KEY,
        "hour_ms",
        sql.col("last_leader").alias("leader"),
        "seconds",
        sql.when(sql.col("new_records") == 0, 0.0)
        .otherwise(sql.col("new_records") * sql.col("bytes_per_record"))
        .alias("written"),
    )


def _shared_out(written: pa.Table, measured: pa.Table) -> pa.Table:
    """Rows of `_SHARED` for one hour of one cluster, from its writes and its metrics."""
    count = written.num_rows
    texts = pa.chunked_array([*written["topic"].chunks, *measured["topic"].chunks], pa.string())
    topics = _ints(pc.index_in(texts, value_set=pc.unique(texts.drop_null())), NO_TOPIC)
    seconds, amounts = (np.asarray(written[name], np.float64) for name in ("seconds", "written"))
    led = Led(topics[:count], _ints(written["partition"], NO_PARTITION), _ints(written["leader"], NO_BROKER - 1),
              amounts / seconds)  # fmt: skip
    told = Told(
        _ints(measured["broker"], NO_BROKER), topics[count:], _ints(measured["partition"], NO_PARTITION),
        *(np.asarray(measured[name], np.float64) for name in ("value", "measured_share")),
    )  # fmt: skip
    is_read = np.asarray(pc.equal(measured["name"], READS))
    read, asked = share_out(led, told.where(is_read)), share_out(led, told.where(~is_read))
    columns = {name: written[name] for name in ("cluster_id", "topic", "partition", "seconds", "written")}
    return pa.table(
        columns
        | {"read": _known(read.rates), "basis": pa.array(read.basis.astype(np.int32)), "spread": _known(read.spread)}
        | {"told": pa.array(read.told), "requests": _known(asked.rates)}
        | {"asked_spread": _known(asked.spread), "asked_told": pa.array(asked.told)}
    )


def _ints(column: Any, unknown: int) -> Ints:
    return np.asarray(column.fill_null(unknown), np.int64)


def _known(values: Any) -> pa.Array:
    return pa.array(values, mask=np.isnan(values))


def _of_partitions(shared: DataFrame) -> DataFrame:
    """By partition, over its hours: sums, mean, basis and error of reads, and the mean of requests."""
    seconds, is_told = sql.col("seconds"), sql.col("read").isNotNull()

    def over_time(name: str) -> tuple[Column, Column]:
        return sql.sum(sql.col(name) * seconds), sql.sum(sql.when(sql.col(name).isNotNull(), seconds))

    told_share = sql.avg("told")
    return shared.groupBy(*PARTITION_KEY).agg(
        over_time("read")[0].alias("sum_reads"),
        sql.sum(sql.when(is_told, sql.col("written"))).alias("sum_written"),
        sql.try_divide(*over_time("read")).alias("mean_reads"),
        # The coarsest basis used.
        sql.get(sql.array(*map(sql.lit, BASES)), sql.max("basis")).alias("basis"),
        (sql.avg("spread") + 1 - told_share).alias("error"),
        told_share.alias("told_share"),
        sql.try_divide(*over_time("requests")).alias("requests_per_s"),
        (sql.avg("asked_spread") + 1 - sql.avg("asked_told")).alias("requests_error_share"),
    )


def _placed(loads: DataFrame, replicas: DataFrame) -> DataFrame:
    """Replicas with the load of their partition, and `factor`, its number of replicas."""
    key = ("cluster_id", "snapshot_id", "topic", "partition")
    copies = replicas.select(*key, "broker", "is_leader")
    factor = sql.count("*").over(Window.partitionBy(*key))
    return copies.withColumn("factor", factor).join(loads, on=list(key), how="inner")


def _with_cpu(loads: DataFrame, replicas: DataFrame, measured: DataFrame) -> DataFrame:
    """Add cpu_share (the leader's, on its broker) and follower_cpu_share (the followers' mean, on theirs).

    What a partition costs is unknown where its write rate is; then the others have all that their broker used, and
    nothing says how much of it is theirs.
    """
    is_cpu = (sql.col("name") == "cpu_share") & sql.col("topic").isNull()
    used = (
        measured.where(is_cpu)
        .groupBy("cluster_id", "broker")
        .agg(
            (sql.sum(sql.col("value") * sql.col("measured_share")) / sql.sum("measured_share")).alias("cpu_used"),
            sql.avg("measured_share").alias("cpu_told"),
        )
    )
    writes = sql.col("write_bytes_per_s")
    sent = writes * (sql.col("factor") - 1) + sql.coalesce(sql.col("read_bytes_per_s"), writes)
    led = CPU_PER_WRITE * writes + CPU_PER_READ * sent
    costs = _placed(loads, replicas).select(
        *PARTITION_KEY, "broker", "is_leader",
        sql.when(sql.col("is_leader"), led).otherwise(CPU_PER_COPY * writes).alias("cost"),
    )  # fmt: skip
    brokers = Window.partitionBy("cluster_id", "broker")
    of_broker, has_unknown = sql.sum("cost").over(brokers), sql.max(sql.col("cost").isNull()).over(brokers)
    share = sql.when(sql.col("of_broker") > 0, sql.col("cost") / sql.col("of_broker"))
    with_broker = costs.withColumns({"of_broker": of_broker, "has_unknown": has_unknown})
    shared = with_broker.join(used, on=["cluster_id", "broker"], how="inner")
    of_others = sql.when(sql.col("has_unknown"), 1.0).otherwise(1 - share)
    known = shared.withColumns(
        {"part": sql.col("cpu_used") * share, "off": SPREADS[BROKER] * of_others + 1 - sql.col("cpu_told")}
    )
    of_partitions = known.groupBy(*PARTITION_KEY).agg(
        sql.max(sql.when(sql.col("is_leader"), sql.col("part"))).alias("cpu_share"),
        sql.avg(sql.when(~sql.col("is_leader"), sql.col("part"))).alias("follower_cpu_share"),
        sql.max(sql.when(sql.col("is_leader"), sql.col("off"))).alias("cpu_error_share"),
    )  # fmt: skip
    return loads.join(of_partitions, on=list(PARTITION_KEY), how="left")
