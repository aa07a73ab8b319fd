"""Check that no table of a load has a key twice, before the load is published."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from kreassign.errors import DataError
from kreassign.model.text import counted
from kreassign.pipeline.tables import commits, parquet, schemas, spark_io
from kreassign.pipeline.tables.delta import DataDir, DataFile, TableLog, open_log


def require_unique_keys(
    spark: SparkSession, data_dir: DataDir, made: Iterable[commits.LoadedTable], before: parquet.Load | None
) -> None:
    """Raise DataError if two rows of a table that a load made have the same key; `before` is the load it builds on.

    Except `open_samples`, which holds samples as they were read, duplicates included. Spark looks through large tables
    only: for small ones it would take longer to plan than this process takes to look.
    """
    checked = [
        _RowsToCheck.of(each, data_dir, before)
        for each in made
        if parquet.is_of_loads(each.table) and each.table is not schemas.OPEN_SAMPLES
    ]
    small = (each for each in checked if each.row_count <= spark_io.ROWS_PER_TASK)
    found = next((twice for each in small if (twice := each.twice()) is not None), None)
    counts = [each.counted(spark) for each in checked if each.row_count > spark_io.ROWS_PER_TASK]
    if found is None and counts:
        # `first` would ask for one part after the other, in a job each.
        rows = reduce(DataFrame.unionAll, counts).collect()
        found = next(((row["name"], row["key"], row["count"]) for row in rows if row["key"] is not None), None)
    if found is not None:
        name, key, count = found
        raise DataError(
            f"table {name} in {data_dir} would have {counted(count, 'row')} of {key}: nothing of this load is seen; "
            f"{commits.ALL_AGAIN}"
        )


@dataclass(frozen=True, slots=True)
class _RowsToCheck:
    """Rows that may have a key twice: of `load_hours` only the time of which this load wrote hours."""

    log: TableLog
    files: Sequence[DataFile]
    within_ms: tuple[int, int] | None = None

    @classmethod
    def of(cls, each: commits.LoadedTable, data_dir: DataDir, before: parquet.Load | None) -> _RowsToCheck:
        log = each.opened(data_dir)
        if before is None or each.table is not schemas.LOAD_HOURS:
            return cls(log, log.files())
        known = {file.path for file in open_log(data_dir, each.table, before.versions[each.table.name]).files()}
        bounds = [(file.lows["hour_ms"], file.highs["hour_ms"]) for file in log.files() if file.path not in known]
        begin_ms, end_ms = min((low for low, _ in bounds), default=0), max((high for _, high in bounds), default=-1)
        return cls(log, log.files(time="hour_ms", begin_ms=begin_ms, end_ms=end_ms + 1), (begin_ms, end_ms))

    @property
    def row_count(self) -> int:
        return sum(file.row_count for file in self.files)

    def twice(self) -> tuple[str, str, int] | None:
        """The table, a key that is there more than once, and how often."""
        key = list(self.log.table.key)
        wanted = ds.scalar(value=True)
        if self.within_ms is not None:
            begin_ms, end_ms = self.within_ms
            wanted = (ds.field("hour_ms") >= begin_ms) & (ds.field("hour_ms") <= end_ms)
        counts = parquet.rows_in(self.log, self.files, wanted, key).group_by(key).aggregate([([], "count_all")])
        for row in counts.filter(pc.greater(counts["count_all"], 1)).slice(0, 1).to_pylist():
            return self.log.table.name, json.dumps({name: row[name] for name in key}), row["count_all"]
        return None

    def counted(self, spark: SparkSession) -> DataFrame:
        """A row with such a key, NULL without one."""
        key = self.log.table.key
        rows = spark_io.rows_of(spark, self.log, self.files)
        if self.within_ms is not None:
            rows = rows.where(sql.col("hour_ms").between(*self.within_ms))
        return (
            rows.groupBy(*key)
            .count()
            .where("count > 1")
            .select(sql.to_json(sql.struct(*key)).alias("key"), "count")
            .agg(
                sql.lit(self.log.table.name).alias("name"),
                sql.first("key").alias("key"),
                sql.first("count").alias("count"),
            )
        )
