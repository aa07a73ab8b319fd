"""The latest snapshot of each cluster on Spark: which it is, and its rows as the checks judge them.

A snapshot is there once table `clusters` says so. Only of that table all rows are read, of the others the files that
have the snapshots to use. Without its partitions and replicas no load can be made: where a file of theirs cannot be
read, the snapshot before stands in. Brokers and their directories are judged where they are there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from kreassign.pipeline.load.checks import SCREENED, Screened, all_bad_rows, is_bad, orphans, screen
from kreassign.pipeline.tables.delta import DataDir, DataFile, TableLog, has_log, open_log
from kreassign.pipeline.tables.parquet import Skipped, usable_files
from kreassign.pipeline.tables.schemas import BROKERS, CLUSTERS, LOG_DIRS, PARTITIONS, REPLICAS, Table
from kreassign.pipeline.tables.spark_io import rows_of, some_usable, source_log, struct_type

REQUIRED = (CLUSTERS, PARTITIONS, REPLICAS)
"""The tables that have a good row in every load."""
_WHOLE = (PARTITIONS, REPLICAS)
_OF_BROKERS = (BROKERS, LOG_DIRS)


@dataclass(frozen=True, slots=True)
class Snapshots:
    """The latest snapshot of each cluster: the rows of its tables as judged.

    In `unique` only one row of each key is good.
    """

    judged: Mapping[Table, Screened]
    unique: Mapping[Table, Screened]
    versions: Mapping[Table, int]
    skipped: Mapping[Table, tuple[Skipped, ...]]

    def bad(self) -> DataFrame:
        """What is set aside, as rows of table `quarantine`."""
        return all_bad_rows(self.unique.values()).unionByName(self._orphans())

    def counts(self) -> Counter[tuple[str, str | None]]:
        """How many rows of a table there are by reason: None are good, those with `NO_PARTITION` are among them."""
        told = [self._orphans().select("table_name", sql.col("reason"))]
        for table, part in self.unique.items():
            told.append(part.judged.select(sql.lit(table.name).alias("table_name"), sql.col(SCREENED).alias("reason")))
        counted = reduce(DataFrame.unionAll, told).groupBy("table_name", "reason").count()
        return Counter({(row[0], row[1]): row[2] for row in counted.collect()})

    def log_dirs(self, spark: SparkSession) -> DataFrame:
        """The rows of `log_dirs` of brokers none of whose directories is bad.

        Of others the sum would be taken for the capacity of the broker, and lack one.
        """
        part = self.unique.get(LOG_DIRS)
        if part is None:
            return spark.createDataFrame([], struct_type(LOG_DIRS))
        of_broker = ["snapshot_id", "broker"]
        doubtful = part.judged.where(is_bad()).select(*of_broker).distinct()
        return part.good.join(doubtful, on=of_broker, how="left_anti").select(*LOG_DIRS.column_names)

    def _orphans(self) -> DataFrame:
        return orphans(self.judged[REPLICAS].good, self.judged[PARTITIONS].good)


def latest_snapshots(spark: SparkSession, data_dir: DataDir, now_ms: int) -> Snapshots:
    """Judge the latest snapshot of each cluster that is not later than `now_ms`. DataError where a table is missing."""
    logs = {table: source_log(data_dir, table) for table in REQUIRED}
    logs |= {table: open_log(data_dir, table) for table in _OF_BROKERS if has_log(data_dir, table)}
    usable, unusable = some_usable(logs[CLUSTERS], logs[CLUSTERS].files())
    clusters = screen(CLUSTERS, rows_of(spark, logs[CLUSTERS], usable), now_ms)
    names = clusters.good.select("cluster_id", "taken_ms", "snapshot_id").distinct().collect()
    newest_first = sorted(((row[0], row[1], row[2]) for row in names), reverse=True)
    skipped: dict[Table, dict[str, Skipped]] = {CLUSTERS: {str(each.file): each for each in unusable}}
    chosen: dict[str, str] = {}
    files: dict[Table, dict[str, DataFile]] = {table: {} for table in logs if table is not CLUSTERS}
    for cluster_id, _, snapshot_id in newest_first:
        if cluster_id not in chosen:
            found = _files_of_snapshot(logs, snapshot_id, skipped)
            if found is not None:
                chosen[cluster_id] = snapshot_id
                for table, of_table in found.items():
                    files[table].update({file.path: file for file in of_table})
    judged = {CLUSTERS: clusters}
    for table, chosen_files in files.items():
        rows = rows_of(spark, logs[table], list(chosen_files.values()))
        judged[table] = screen(table, rows.where(sql.col("snapshot_id").isin(*chosen.values())), now_ms)
    return Snapshots(
        judged,
        {table: part.with_unique_keys() for table, part in judged.items()},
        {table: log.version for table, log in logs.items()},
        {table: tuple(skipped.get(table, {}).values()) for table in judged},
    )


def _files_of_snapshot(
    logs: Mapping[Table, TableLog], snapshot_id: str, skipped: dict[Table, dict[str, Skipped]]
) -> dict[Table, list[DataFile]] | None:
    """Its files by table; None if its partitions or replicas cannot be read: then an older snapshot stands in."""
    found, is_whole = {}, True
    for table, log in logs.items():
        if table is CLUSTERS:
            continue
        usable, unusable = usable_files(log, log.files({"snapshot_id": snapshot_id}))
        skipped.setdefault(table, {}).update({str(each.file): each for each in unusable})
        found[table] = usable
        is_whole = is_whole and not (unusable and table in _WHOLE)
    return found if is_whole else None
