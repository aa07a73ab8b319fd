"""The latest snapshot of each cluster on Spark: its id, and its rows with the results of the checks.

A snapshot exists once table `clusters` has its row. Of that table only files are read that may have the newest usable
row of a cluster, or a row of an absurd time, of the others only the files of the chosen snapshots. Good rows count if
they are of chosen snapshots. A load needs partitions and replicas: if one of their files is unreadable, the snapshot
before is used. Brokers and log directories are checked if present.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import inf

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from kreassign.pipeline.load import checks, rules
from kreassign.pipeline.tables import parquet, schemas, spark_io
from kreassign.pipeline.tables.delta import DataDir, DataFile, TableLog, has_log, open_log

REQUIRED = (schemas.CLUSTERS, schemas.PARTITIONS, schemas.REPLICAS)
"""Tables that need a good row in every load."""
_WHOLE = (schemas.PARTITIONS, schemas.REPLICAS)
_OF_BROKERS = (schemas.BROKERS, schemas.LOG_DIRS)
_NOT_BAD = (None, rules.SAME_KEY, rules.NO_PARTITION)

RowCounts = Counter[tuple[str, str | None]]
"""Rows by name of the table and reason why they are not good; None for good ones."""


@dataclass(frozen=True, slots=True)
class Snapshots:
    """Latest snapshot of each cluster: checked rows by table.

    In `unique` only one row per key is good.
    """

    judged: Mapping[schemas.Table, checks.Screened]
    unique: Mapping[schemas.Table, checks.Screened]
    logs: Mapping[schemas.Table, TableLog]
    skipped: Mapping[schemas.Table, tuple[parquet.Skipped, ...]]

    def bad(self, counts: RowCounts) -> list[DataFrame]:
        """Rows to set aside, as rows of table `quarantine`, of the tables that have any."""
        named = {name for (name, reason), count in counts.items() if count and reason not in _NOT_BAD}
        parts = [part.bad for table, part in self.unique.items() if table.name in named]
        return [*parts, self._orphans()] if counts[schemas.REPLICAS.name, rules.NO_PARTITION] else parts

    def usable(self, table: schemas.Table, counts: RowCounts) -> DataFrame:
        """Good rows of a table, a row per key."""
        return (self.unique if counts[table.name, rules.SAME_KEY] else self.judged)[table].good

    def counts(self) -> RowCounts:
        """Count the rows; good ones include those with reason `NO_PARTITION`."""
        told = [self._orphans().select("table_name", sql.col("reason"))]
        for table, part in self.unique.items():
            told.append(
                part.judged.select(sql.lit(table.name).alias("table_name"), sql.col(checks.SCREENED).alias("reason"))
            )
        counted = reduce(DataFrame.unionAll, told).groupBy("table_name", "reason").count()
        return Counter({(row[0], row[1]): row[2] for row in counted.collect()})

    def brokers(self) -> DataFrame:
        """Cluster and id of each broker, also of those that only a replica list names."""
        listed = (self.judged[table].good for table in (schemas.REPLICAS, schemas.BROKERS) if table in self.judged)
        return reduce(DataFrame.unionAll, (rows.select("cluster_id", "broker") for rows in listed))

    def log_dirs(self, spark: SparkSession) -> DataFrame:
        """Rows of `log_dirs`, only of brokers without a bad directory.

        For the others, the sum would be taken for the broker's capacity, but lack a directory.
        """
        part = self.unique.get(schemas.LOG_DIRS)
        if part is None:
            return spark.createDataFrame([], spark_io.struct_type(schemas.LOG_DIRS))
        of_broker = ["snapshot_id", "broker"]
        doubtful = part.judged.where(checks.is_bad()).select(*of_broker).distinct()
        return part.good.join(doubtful, on=of_broker, how="left_anti").select(*schemas.LOG_DIRS.column_names)

    def _orphans(self) -> DataFrame:
        return checks.orphans(self.judged[schemas.REPLICAS].good, self.judged[schemas.PARTITIONS].good)


def latest_snapshots(spark: SparkSession, data_dir: DataDir, now_ms: int) -> Snapshots:
    """Check the latest snapshot of each cluster up to `now_ms`. Raises DataError if a table is missing."""
    logs = {table: spark_io.source_log(data_dir, table) for table in REQUIRED}
    logs |= {table: open_log(data_dir, table) for table in _OF_BROKERS if has_log(data_dir, table)}
    skipped: dict[schemas.Table, dict[str, parquet.Skipped]] = {
        table: {str(each.file): each for each in parquet.strange_files(log)} for table, log in logs.items()
    }
    chosen: dict[str, str] = {}
    files: dict[schemas.Table, dict[str, DataFile]] = {table: {} for table in logs}
    log, names, size = logs[schemas.CLUSTERS], set[tuple[str, int, str]](), 1
    waiting = log.files()
    while batch := files_to_read(waiting, chosen, size, now_ms):
        taken = {file.path for file in batch}
        waiting = [file for file in waiting if file.path not in taken]
        usable, unusable = parquet.readable_files(log, batch)
        skipped[schemas.CLUSTERS].update({str(each.file): each for each in unusable})
        files[schemas.CLUSTERS].update({file.path: file for file in usable})
        names |= _names(checks.screen(schemas.CLUSTERS, spark_io.rows_of(spark, log, usable), now_ms))
        for name in sorted(names, reverse=True):
            cluster_id, taken_ms, snapshot_id = name
            if cluster_id in chosen or may_be_newer(waiting, cluster_id, taken_ms):
                continue
            names.discard(name)
            found = _files_of_snapshot(logs, snapshot_id, skipped)
            if found is not None:
                chosen[cluster_id] = snapshot_id
                for table, of_table in found.items():
                    files[table].update({file.path: file for file in of_table})
        size *= 2
    if not files[schemas.CLUSTERS]:
        spark_io.some_usable(log, log.files())
    judged = {}
    is_chosen = sql.col("snapshot_id").isin(*chosen.values())
    for table, files_of_table in files.items():
        rows = checks.screen(table, spark_io.rows_of(spark, logs[table], list(files_of_table.values())), now_ms).judged
        counts = is_chosen | checks.is_bad() if table is schemas.CLUSTERS else is_chosen
        judged[table] = checks.Screened(table, rows.where(counts))
    return Snapshots(
        judged,
        {table: part.with_unique_keys() for table, part in judged.items()},
        logs,
        {table: tuple(skipped.get(table, {}).values()) for table in judged},
    )


def files_to_read(waiting: Sequence[DataFile], chosen: Collection[str], size: int, now_ms: int) -> list[DataFile]:
    """The newest files of table `clusters`, `size` of each cluster without a chosen snapshot.

    Which clusters a file of several has is not known from the log: such files are all read. So are files that may have
    a row of an absurd time, which is to be quarantined.
    """
    found: list[DataFile] = []
    counts = Counter[str]()
    for file in sorted(waiting, key=_latest_ms, reverse=True):
        cluster_id = file.lows.get("cluster_id")
        if cluster_id is None or cluster_id != file.highs.get("cluster_id") or _may_be_absurd(file, now_ms):
            found.append(file)
        elif cluster_id not in chosen and counts[cluster_id] < size:
            counts[cluster_id] += 1
            found.append(file)
    return found


def _may_be_absurd(file: DataFile, now_ms: int) -> bool:
    return file.may_be_within("taken_ms", None, rules.NO_KAFKA_BEFORE_MS) or file.may_be_within(
        "taken_ms", now_ms + rules.AHEAD_MS + 1, None
    )


def may_be_newer(files: Iterable[DataFile], cluster_id: str, taken_ms: int) -> bool:
    """True unless the bounds of these files rule out a snapshot of the cluster after `taken_ms`."""
    return any(
        file.may_have("cluster_id", cluster_id) and file.may_be_within("taken_ms", taken_ms + 1, None) for file in files
    )


def _latest_ms(file: DataFile) -> float:
    latest_ms = file.highs.get("taken_ms")
    return inf if latest_ms is None else float(latest_ms)


def _names(clusters: checks.Screened) -> set[tuple[str, int, str]]:
    """Cluster, time and id of the snapshots of good rows."""
    rows = clusters.good.select("cluster_id", "taken_ms", "snapshot_id").distinct().collect()
    return {(row[0], row[1], row[2]) for row in rows}


def _files_of_snapshot(
    logs: Mapping[schemas.Table, TableLog], snapshot_id: str, skipped: dict[schemas.Table, dict[str, parquet.Skipped]]
) -> dict[schemas.Table, list[DataFile]] | None:
    """The snapshot's files by table; None if partitions or replicas are unreadable, so that an older one is used."""
    found, is_whole = {}, True
    for table, log in logs.items():
        usable, unusable = parquet.readable_files(log, log.files({"snapshot_id": snapshot_id}))
        skipped[table].update({str(each.file): each for each in unusable})
        found[table] = usable
        is_whole = is_whole and not (unusable and table in _WHOLE)
    return found if is_whole else None
