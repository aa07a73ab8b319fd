"""The busiest partitions of a load, by pandas, DuckDB and Spark: `python open_tables.py data` (`--spark` for the last).

Tables are Delta tables. Their log says which files belong to them, so open them by it and never by the names of files:
`deltalake` reads it without Java, and Arrow reads the files, for pandas and whatever takes Arrow. Both take addresses,
too (`s3://bucket/data`). Which versions belong to one load, table `loads` says.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import duckdb
import pyarrow.dataset as ds
from deltalake import DeltaTable

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession


def rows_of(table: DeltaTable) -> ds.Dataset:
    """The rows of a table. `DeltaTable.to_pyarrow_dataset()` is shorter, but may abort the process at its end."""
    return ds.dataset(table.file_uris(), format="parquet")


def as_loaded(data: str, name: str) -> DeltaTable:
    """A table as the last finished load made it: a load that goes on may have written the next version already."""
    loads = rows_of(DeltaTable(f"{data}/loads")).to_table().to_pandas()
    last = loads[loads["load_number"] == loads["load_number"].max()].set_index("table_name")
    return DeltaTable(f"{data}/{name}", version=int(last["version"][name]))


def by_pandas(data: str) -> pd.DataFrame:
    """The busiest partitions: a small table fits into memory."""
    columns = ["topic", "partition", "write_bytes_per_s", "verdict"]
    loads = rows_of(as_loaded(data, "load_model")).to_table(columns=columns).to_pandas()
    return loads.nlargest(5, "write_bytes_per_s")


def by_duckdb(data: str) -> duckdb.DuckDBPyRelation:
    """The busiest hours of the day by topic: DuckDB reads what it needs of large tables, and finds them by their names.

    Its own extension for Delta is not needed, which it would download.
    """
    connection = duckdb.connect()
    for name in ("load_model", "load_hours"):
        connection.register(name, rows_of(as_loaded(data, name)))
    return connection.sql("""
        WITH by_hour AS (
            SELECT topic, partition, hour_ms // 3600000 % 24 AS hour,
                   sum(new_records) / sum(seconds) * any_value(bytes_per_record) AS rate
            FROM load_hours JOIN load_model USING (cluster_id, topic, partition)
            GROUP BY ALL
        ), by_topic AS (
            SELECT topic, hour, sum(rate) AS write_bytes_per_s FROM by_hour GROUP BY ALL
        )
        SELECT topic, max_by(hour, write_bytes_per_s) AS busiest_hour, max(write_bytes_per_s) AS write_bytes_per_s
        FROM by_topic GROUP BY topic ORDER BY write_bytes_per_s DESC
    """)


def by_spark(spark: SparkSession, data: str) -> DataFrame:
    """The busiest partitions. Spark needs no jars for the files that the log names, as they are now.

    With those of Delta Lake it is `spark.read.format("delta").load(…)`, or a catalog: `kreassign define-tables`.
    """
    loads = spark.read.parquet(*as_loaded(data, "load_model").file_uris())
    return loads.select("topic", "partition", "write_bytes_per_s").orderBy(loads.write_bytes_per_s.desc()).limit(5)


def main(data: str, *, with_spark: bool) -> None:
    """Print what each of them finds."""
    print(by_pandas(data))
    print(by_duckdb(data))
    if with_spark:
        from pyspark.sql import SparkSession

        by_spark(SparkSession.builder.getOrCreate(), data).show(truncate=False)


if __name__ == "__main__":
    main(sys.argv[1], with_spark="--spark" in sys.argv)
