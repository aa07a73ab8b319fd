"""Read and write tables with Spark, each checked against its schema. No other module does.

Spark reads the Parquet files that the log of a table names, and writes into a new folder every time; only the
following commit to the log makes its files part of the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.transaction import AddAction
from pyarrow import fs
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql import types as spark_types

from kreassign.errors import DataError, InvariantBroken
from kreassign.model.text import DAY_MS
from kreassign.pipeline.tables import delta, schemas
from kreassign.pipeline.tables.commits import expire_parts
from kreassign.pipeline.tables.parquet import Skipped, Where, log_of, usable_files, write_files

_SPARK_TYPES: dict[str, spark_types.DataType] = {
    schemas.STRING: spark_types.StringType(),
    schemas.INT: spark_types.IntegerType(),
    schemas.BIGINT: spark_types.LongType(),
    schemas.DOUBLE: spark_types.DoubleType(),
    schemas.BOOLEAN: spark_types.BooleanType(),
    schemas.INTS: spark_types.ArrayType(spark_types.IntegerType()),
}
ROWS_PER_TASK = 400_000
"""Rows that one task takes. No more are read by one task, which needs neither shuffles nor jobs for them."""

_FILES_PER_TASK = 100
"""Files that one task opens; an object store has latency for each."""


def struct_type(table: schemas.Table) -> spark_types.StructType:
    """Spark schema of the table, with comments."""
    return spark_types.StructType(
        [
            spark_types.StructField(
                column.name, _SPARK_TYPES[column.type], column.nullable, {"comment": column.comment}
            )
            for column in table.columns
        ]
    )


def read_table(spark: SparkSession, where: Where, table: schemas.Table) -> DataFrame:
    """Read all rows of a table with exactly its columns. Raises DataError if it is missing or has other columns."""
    log = log_of(where, table)
    delta.refuse_wrong_columns(log)
    return rows_of(spark, log, log.files())


def source_log(data_dir: delta.DataDir, table: schemas.Table) -> delta.TableLog:
    """Open the log of a source table. Raises DataError if it is missing or lacks required columns."""
    log = delta.open_log(data_dir, table)
    delta.refuse_wrong_columns(log)
    return log


def some_usable(log: delta.TableLog, files: Sequence[delta.DataFile]) -> tuple[list[delta.DataFile], list[Skipped]]:
    """Split files of a table into readable and skipped ones. Raises DataError if none is readable."""
    usable, skipped = usable_files(log, files)
    if files and not usable:
        raise DataError(
            f"no file of table {log.table.name} in {log.data_dir} can be read: {skipped[0]}; "
            f"make it again with `{log.table.made_by}`"
        )
    return usable, skipped


def row_count(log: delta.TableLog) -> int:
    """Number of rows of a version of a table, from its log."""
    return sum(file.row_count for file in log.files())


def rows_of(spark: SparkSession, log: delta.TableLog, files: Sequence[delta.DataFile]) -> DataFrame:
    """Read the rows of some files of a table, with exactly its columns."""
    if not files:
        return spark.createDataFrame([], struct_type(log.table))
    # Without this option Spark would derive columns from the names of folders.
    reader = spark.read.option("recursiveFileLookup", "true").schema(struct_type(log.table))
    rows = reader.parquet(*(log.place_of(file) for file in files))
    if sum(file.row_count for file in files) > ROWS_PER_TASK:
        return rows
    return rows.coalesce(1) if len(files) <= _FILES_PER_TASK else rows.repartition(1)


def dealt(rows: DataFrame, row_count: int, *key: Column | str) -> DataFrame:
    """Bring rows of the same key into one task each: few rows into one, without a shuffle."""
    tasks = -(-row_count // ROWS_PER_TASK)
    return rows.repartition(tasks, *key) if tasks > 1 else rows.coalesce(1)


def write_table(
    rows: DataFrame,
    data_dir: delta.DataDir,
    table: schemas.Table,
    *,
    parts: Sequence[str] | None = None,
    sealed_by: schemas.Table | None = None,
) -> delta.TableLog:
    """Replace the rows of a table, or of some partitions; returns the table at its new version.

    `parts` are values of the partition column, and all rows must be in them. If that is not a date, there is one value.
    Rows of `sealed_by` describe these parts as a whole: those of the replaced rows go first.
    """
    _refuse_other_columns(rows, table)
    log = delta.log_to_write(data_dir, table)
    files = _written(rows, log, parts)
    if sealed_by is not None and delta.has_log(data_dir, sealed_by):
        expire_parts(data_dir, sealed_by, lambda: parts or ())
    return at_version(log, delta.commit(log, files, replace=True, parts=parts))


def write_parts(
    rows: DataFrame | None,
    data_dir: delta.DataDir,
    table: schemas.Table,
    *,
    replaced: Sequence[str] | None,
    base: int | None,
) -> delta.TableLog:
    """Add rows to their partitions, replacing all rows in the `replaced` ones; returns the table at its new version.

    With `replaced` None, they replace all rows; `rows` is None if there are none. `base` is the version that the rows
    build on: later commits belong to a load that was never finished, and are undone first.
    """
    if rows is not None:
        _refuse_other_columns(rows, table)
    log = delta.log_to_write(data_dir, table)
    if base is not None:
        delta.undo_after(log, base)
    files = [] if rows is None else _written(rows, log, None)
    return at_version(log, delta.commit(log, files, replace=True, parts=replaced))


def write_here(rows: pa.Table, data_dir: delta.DataDir, table: schemas.Table) -> delta.TableLog:
    """Replace the rows of a table by some that this process has; returns the table at its new version."""
    log = delta.log_to_write(data_dir, table)
    return at_version(log, delta.commit(log, write_files(data_dir, table, rows, "load"), replace=True))


def at_version(log: delta.TableLog, version: int) -> delta.TableLog:
    """The table at a version: the open log, unless another process has committed since."""
    return log if log.version == version else delta.open_log(log.data_dir, log.table, version)


def _refuse_other_columns(rows: DataFrame, table: schemas.Table) -> None:
    found = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
    if tuple(rows.columns) != table.column_names or found != {each.name: each.type for each in table.columns}:
        raise InvariantBroken(f"table {table.name}: a step made {rows.schema.simpleString()}")


def _written(rows: DataFrame, log: delta.TableLog, parts: Sequence[str] | None) -> list[AddAction]:
    """Let Spark write into a new folder of the table; returns its files with rows."""
    folder, part = str(uuid4()), log.table.partition_by
    is_known = part is None or (not part.is_date and parts is not None)
    staged = rows if part is None or is_known else rows.withColumn(part.name, _value_of(part))
    writer = staged.write.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
    writer = writer if part is None or is_known else writer.partitionBy(part.name)
    writer.parquet(delta.place(log.data_dir, log.table.name, folder))
    if part is None or not is_known:
        return _listed(log, folder, None)
    (value,) = parts or ()
    return _listed(log, folder, value)


def _value_of(part: schemas.Partitioning) -> Column:
    """Column expression for `Partitioning.value_of`; a date is UTC, whatever the session's time zone."""
    if not part.is_date:
        return sql.col(part.column).cast("string")
    bounded = sql.least(sql.greatest(sql.col(part.column), sql.lit(0)), sql.lit(schemas.LAST_DATE_MS))
    days = sql.floor(bounded / sql.lit(DAY_MS)).cast("int")
    return sql.date_add(sql.lit("1970-01-01").cast("date"), days).cast("string")


def _listed(log: delta.TableLog, folder: str, value: str | None) -> list[AddAction]:
    """Files of a folder with rows; if `value` is None, the folders' names hold the partition values."""
    system, root = delta.storage(log.data_dir, log.table)
    files = []
    for info in system.get_file_info(fs.FileSelector(f"{root}{folder}", recursive=True)):
        path = info.path.removeprefix(root)
        if info.type is fs.FileType.File and path.endswith(".parquet"):
            with system.open_input_file(info.path) as stream:
                metadata = pq.read_metadata(stream)
            inner = path.removeprefix(f"{folder}/").partition("/")[0].partition("=")[2]
            if metadata.num_rows:
                files.append(
                    delta.described(
                        log.table, path, info.size, delta.modified_ms(info), metadata, value or inner or None
                    )
                )
    return files
