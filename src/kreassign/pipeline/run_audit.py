"""Compare what runs predicted with what happened.

Sources are journals and the snapshots around each run. Three parts: moves and runs, the traffic of brokers against
their throttle, and the job that reads and writes the tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sql

from kreassign.pipeline.tables import schemas
from kreassign.pipeline.tables.delta import DataDir
from kreassign.pipeline.tables.parquet import has_table
from kreassign.pipeline.tables.spark_io import read_table, struct_type, write_table

THROTTLE_TOLERANCE = 1.1
"""Share of its throttle that a broker may use over a minute: Kafka averages over eleven seconds."""

_RUN = ("run_id", "cluster_id")
_MOVE = (*_RUN, "topic", "partition")


@dataclass(frozen=True, slots=True)
class Sources:
    """Tables of journals and of snapshots; the snapshot tables may be empty."""

    runs: DataFrame
    moves: DataFrame
    copy_progress: DataFrame
    etas: DataFrame
    calls: DataFrame
    breaches: DataFrame
    clusters: DataFrame
    brokers: DataFrame
    partitions: DataFrame
    replicas: DataFrame


def runs_in_snapshots(runs: DataFrame, clusters: DataFrame) -> DataFrame:
    """Add to each run `snapshot_before` (the last before its start) and `snapshot_after` (the first since its end).

    Without a snapshot since the end, the last one since the start is used.
    """
    taken = clusters.select("cluster_id", "snapshot_id", "taken_ms")
    is_before = sql.col("taken_ms") <= sql.col("started_ms")
    is_since = sql.col("taken_ms") >= sql.col("ended_ms")
    order = sql.struct("taken_ms", "snapshot_id")
    last_before = sql.max(sql.when(is_before, order))["snapshot_id"]
    first_since = sql.min(sql.when(is_since, order))["snapshot_id"]
    last_of_all = sql.max(sql.when(~is_before, order))["snapshot_id"]
    found = (
        runs.join(taken, on="cluster_id")
        .groupBy("run_id")
        .agg(last_before.alias("snapshot_before"), sql.coalesce(first_since, last_of_all).alias("snapshot_after"))
    )
    return runs.join(found, on="run_id", how="left")


def audit_moves(sources: Sources, runs: DataFrame) -> DataFrame:
    """Table `audit_moves`; `runs` come from `runs_in_snapshots`."""
    moves = sources.moves.join(runs.select("run_id", "snapshot_after"), on="run_id")
    predicted = sql.col("size_bytes") * (sql.size("adding") + sql.size("rearranging"))
    seconds = (sql.col("completed_ms") - sql.col("submitted_ms")) / 1000
    ends = sources.moves.where("status = 'complete'").select(*_MOVE, sql.col("completed_ms").alias("end_ms"))
    eta_errors = _eta_errors(sources.etas.where("topic is not null").join(ends, on=list(_MOVE)), _MOVE)
    return (
        moves.join(_stored(sources, moves), on=list(_MOVE), how="left")
        .join(eta_errors, on=list(_MOVE), how="left")
        .withColumnRenamed("bytes_copied", "copied_bytes")
        .withColumn("predicted_bytes", predicted)
        .withColumn("bytes_error", _ratio("copied_bytes", "predicted_bytes") - 1)
        .withColumn("duration_s", seconds)
        .withColumn("rate_bytes_per_s", _ratio("copied_bytes", "duration_s"))
        .withColumn("eta_count", sql.coalesce("eta_count", sql.lit(0)))
        .select(*schemas.AUDIT_MOVES.column_names)
    )


def _stored(sources: Sources, moves: DataFrame) -> DataFrame:
    """Size of the new copies per move in the snapshot after, and whether the replica list is the planned one."""
    wanted = moves.select(*_MOVE, "snapshot_after", "target", sql.explode_outer("adding").alias("broker"))
    lists = sources.partitions.select(sql.col("snapshot_id").alias("snapshot_after"), "topic", "partition", "replicas")
    sizes = sources.replicas.select(
        sql.col("snapshot_id").alias("snapshot_after"), "topic", "partition", "broker", "size_bytes"
    )
    keys = ["snapshot_after", "topic", "partition"]
    is_known = sql.count("broker") == sql.count("size_bytes")
    return (
        wanted.join(lists, on=keys, how="left")
        .join(sizes, on=[*keys, "broker"], how="left")
        .groupBy(*_MOVE)
        .agg(
            sql.when(is_known, sql.sum("size_bytes")).alias("stored_bytes"),
            # A topic missing from the snapshot is not on its target either.
            sql.first(
                sql.when(sql.col("snapshot_after").isNotNull(), sql.col("replicas").eqNullSafe(sql.col("target")))
            ).alias("is_on_target"),
        )
    )


def _eta_errors(etas: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Errors of ETAs, relative to the time that was really left."""
    left_s = (sql.col("end_ms") - sql.col("at_ms")) / 1000
    off = (sql.col("eta_s") - left_s) / left_s
    return (
        etas.where(left_s > 0)
        .groupBy(*key)
        .agg(
            sql.count("*").alias("eta_count"),
            sql.avg(sql.abs(off)).alias("eta_error"),
            sql.avg(off).alias("eta_bias"),
        )
    )


def audit_brokers(sources: Sources, runs: DataFrame) -> DataFrame:
    """Table `audit_brokers`: the brokers of either snapshot and of the run."""
    flows = broker_flows(sources.moves, sources.copy_progress)
    before, after = (_holdings(sources, runs, when) for when in ("before", "after"))
    use = sql.col("throttle_use")
    return (
        flows.join(_present(sources, runs), on=[*_RUN, "broker"], how="full")
        .join(before, on=[*_RUN, "broker"], how="full")
        .join(after, on=[*_RUN, "broker"], how="full")
        .join(_planned(sources, runs), on=[*_RUN, "broker"], how="left")
        .join(runs.select("run_id", "snapshot_before", "snapshot_after"), on="run_id")
        .withColumns({name: sql.coalesce(name, sql.lit(0)) for name in _COUNTED})
        .withColumns(
            {
                name: _known(name, when)
                for when in ("before", "after")
                for name in (f"stored_bytes_{when}", f"leaders_{when}")
            }
        )
        .withColumns(
            {
                f"{name}_planned": sql.col(f"{name}_before") + sql.coalesce(f"{name}_more", sql.lit(0))
                for name in ("stored_bytes", "leaders")
            }
        )
        .withColumn("is_within_throttle", use <= THROTTLE_TOLERANCE)
        .select(*schemas.AUDIT_BROKERS.column_names)
    )


_COUNTED = ("predicted_in_bytes", "predicted_out_bytes", "copied_in_bytes", "copied_out_bytes")


def _known(name: str, when: str) -> Column:
    """0 where the snapshot has no replica of the broker; NULL without a snapshot, and where a size is unknown."""
    has_none = sql.col(f"leaders_{when}").isNull() & sql.col(f"snapshot_{when}").isNotNull()
    return sql.when(has_none, 0).otherwise(sql.col(name))


def _present(sources: Sources, runs: DataFrame) -> DataFrame:
    """Brokers in the snapshots around each run, including empty ones."""
    snapshots = runs.select(*_RUN, sql.explode(sql.array("snapshot_before", "snapshot_after")).alias("snapshot_id"))
    return (
        sources.brokers.select("snapshot_id", "broker")
        .join(snapshots, on="snapshot_id")
        .select(*_RUN, "broker")
        .distinct()
    )


def _holdings(sources: Sources, runs: DataFrame, when: str) -> DataFrame:
    """Bytes and leaderships of each broker in the snapshot before or after the run."""
    snapshots = runs.select(*_RUN, sql.col(f"snapshot_{when}").alias("snapshot_id"))
    return (
        sources.replicas.drop("cluster_id")
        .join(snapshots, on="snapshot_id")
        .groupBy(*_RUN, "broker")
        .agg(
            sql.when(sql.count("size_bytes") == sql.count("*"), sql.sum("size_bytes")).alias(f"stored_bytes_{when}"),
            sql.count_if("is_leader").alias(f"leaders_{when}"),
        )
    )


def _planned(sources: Sources, runs: DataFrame) -> DataFrame:
    """Bytes (sizes of the journal) and leaderships that the plan adds to each broker and removes from it."""
    size = sql.col("size_bytes")
    removing = sql.explode(sql.array_except("original", "target"))
    nothing = sql.lit(0)
    leaders = sources.partitions.select(sql.col("snapshot_id").alias("snapshot_before"), "topic", "partition", "leader")
    led = sources.moves.join(runs.select("run_id", "snapshot_before"), on="run_id").join(
        leaders, on=["snapshot_before", "topic", "partition"]
    )
    changes = [
        sources.moves.select(
            *_RUN, sql.explode("adding").alias("broker"), size.alias("bytes"), nothing.alias("leaders")
        ),
        sources.moves.select(*_RUN, removing.alias("broker"), (-size).alias("bytes"), nothing.alias("leaders")),
        led.select(*_RUN, sql.col("leader").alias("broker"), nothing.alias("bytes"), sql.lit(-1).alias("leaders")),
        led.select(*_RUN, sql.col("target")[0].alias("broker"), nothing.alias("bytes"), sql.lit(1).alias("leaders")),
    ]
    return (
        reduce(DataFrame.unionByName, changes)
        .groupBy(*_RUN, "broker")
        .agg(sql.sum("bytes").alias("stored_bytes_more"), sql.sum("leaders").alias("leaders_more"))
    )


def audit_runs(sources: Sources, runs: DataFrame, moves: DataFrame, brokers: DataFrame) -> DataFrame:
    """Table `audit_runs`, from `audit_moves` and `audit_brokers`."""
    per_second = sql.col("throttle_bytes_per_s")
    joined = runs
    breaches = sources.breaches.groupBy("run_id").agg(sql.count("*").alias("breach_count"))
    calls, errors = _of_calls(sources.calls), _eta_errors_of_runs(sources, runs)
    for part in (_of_moves(moves), _of_brokers(brokers), calls, errors, breaches):
        joined = joined.join(part, on="run_id", how="left")
    return (
        joined.fillna(0, subset=list(_TOTALS))
        .withColumn("predicted_s", sql.when(per_second > 0, sql.col("most_bytes") / per_second))
        .withColumn("duration_s", (sql.col("ended_ms") - sql.col("started_ms")) / 1000)
        .select(*schemas.AUDIT_RUNS.column_names)
    )


_TOTALS = (
    "move_count", "complete_count", "off_target_count", "predicted_bytes", "copied_bytes", "over_throttle_count",
    "call_count", "failed_call_count", "breach_count",
)  # fmt: skip


def _of_moves(moves: DataFrame) -> DataFrame:
    is_complete = sql.col("status") == "complete"
    return moves.groupBy("run_id").agg(
        sql.count("*").alias("move_count"),
        sql.count_if(is_complete).alias("complete_count"),
        sql.count_if(is_complete & ~sql.col("is_on_target")).alias("off_target_count"),
        sql.sum("predicted_bytes").alias("predicted_bytes"),
        sql.sum("copied_bytes").alias("copied_bytes"),
        ((sql.max("completed_ms") - sql.min("submitted_ms")) / 1000).alias("copying_s"),
    )


def _of_brokers(brokers: DataFrame) -> DataFrame:
    spread = {
        f"imbalance_{when}": sql.when(sql.count(stored) == sql.count("*"), sql.max(stored) / sql.avg(stored) - 1)
        for when in ("before", "planned", "after")
        for stored in (f"stored_bytes_{when}",)
    }
    return brokers.groupBy("run_id").agg(
        sql.max(sql.greatest("predicted_in_bytes", "predicted_out_bytes")).alias("most_bytes"),
        sql.count_if(~sql.col("is_within_throttle")).alias("over_throttle_count"),
        *(column.alias(name) for name, column in spread.items()),
    )


def _of_calls(calls: DataFrame) -> DataFrame:
    return calls.groupBy("run_id").agg(
        sql.count("*").alias("call_count"),
        sql.count_if((sql.col("refused") > 0) | (sql.col("unknown") > 0)).alias("failed_call_count"),
    )


def _eta_errors_of_runs(sources: Sources, runs: DataFrame) -> DataFrame:
    """Errors of the ETAs of whole runs, against the move that completed last."""
    ends = sources.moves.groupBy("run_id").agg(sql.max("completed_ms").alias("end_ms"))
    is_over = runs.where("state = 'done'").select("run_id")
    etas = sources.etas.where("topic is null").join(ends, on="run_id").join(is_over, on="run_id")
    return _eta_errors(etas, ("run_id",)).select("run_id", "eta_error")


def _ratio(over: str, under: str) -> Column:
    return sql.when(sql.col(under) > 0, sql.col(over) / sql.col(under))


MINUTE_MS = 60_000

_SIDES = {"in": "broker", "out": "source"}


def broker_flows(moves: DataFrame, copy_progress: DataFrame) -> DataFrame:
    """Bytes predicted and copied, peak rates and the used part of the throttle, per run and broker."""
    copy = Window.partitionBy("run_id", "topic", "partition", "broker").orderBy("at_ms")
    # What each poll added to each copy; a restarted copy counts from 0.
    more = sql.col("done_bytes") - sql.coalesce(sql.lag("done_bytes").over(copy), sql.lit(0))
    parts = copy_progress.withColumn("more_bytes", sql.greatest(more, sql.lit(0)))
    found = _predicted(moves)
    for side, column in _SIDES.items():
        found = found.join(_peaks(_by_broker(parts, column), side), on=[*_RUN, "broker"], how="full")
    return found.withColumn("throttle_use", sql.greatest("use_in", "use_out"))


def _predicted(moves: DataFrame) -> DataFrame:
    """Bytes that each broker is to receive, and to send if the first replica of each list leads."""
    copies = moves.select(*_RUN, "original", "size_bytes", sql.explode("adding").alias("to"))
    size, nothing = sql.col("size_bytes"), sql.lit(0)
    both = copies.select(*_RUN, sql.col("to").alias("broker"), size.alias("in"), nothing.alias("out")).unionByName(
        copies.select(*_RUN, sql.col("original")[0].alias("broker"), nothing.alias("in"), size.alias("out"))
    )
    return both.groupBy(*_RUN, "broker").agg(*(sql.sum(side).alias(f"predicted_{side}_bytes") for side in _SIDES))


def _by_broker(parts: DataFrame, column: str) -> DataFrame:
    """Cumulative bytes received or sent per broker and poll."""
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
    """Rate of each broker's fastest minute (of the whole run if shorter), and its part of the throttle."""
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


def write_run_audit(spark: SparkSession, data_dir: DataDir) -> Mapping[str, list[schemas.Row]]:
    """Write the audit tables of all runs with journals in the tables; return their rows by table name.

    Repeating it writes the same tables. Columns that need a missing snapshot are NULL.
    """
    sources = Sources(
        *(read_table(spark, data_dir, table) for table in schemas.RUN_TABLES),
        *(
            _read_or_empty(spark, data_dir, table)
            for table in (schemas.CLUSTERS, schemas.BROKERS, schemas.PARTITIONS, schemas.REPLICAS)
        ),
    )
    runs = runs_in_snapshots(sources.runs, sources.clusters)
    moves = _written(spark, data_dir, schemas.AUDIT_MOVES, audit_moves(sources, runs))
    brokers = _written(spark, data_dir, schemas.AUDIT_BROKERS, audit_brokers(sources, runs))
    summary = _written(spark, data_dir, schemas.AUDIT_RUNS, audit_runs(sources, runs, moves, brokers))
    return {
        schemas.AUDIT_RUNS.name: _rows(summary, ("run_id",)),
        schemas.AUDIT_BROKERS.name: _rows(brokers, ("run_id", "broker")),
    }


def _written(spark: SparkSession, data_dir: DataDir, table: schemas.Table, rows: DataFrame) -> DataFrame:
    write_table(rows, data_dir, table)
    return read_table(spark, data_dir, table)


def _rows(found: DataFrame, order: Sequence[str]) -> list[schemas.Row]:
    """Collect a small table: one row per run, or per run and broker."""
    return [row.asDict() for row in found.orderBy(*order).collect()]


def _read_or_empty(spark: SparkSession, data_dir: DataDir, table: schemas.Table) -> DataFrame:
    if has_table(data_dir, table):
        return read_table(spark, data_dir, table)
    return spark.createDataFrame([], struct_type(table))
