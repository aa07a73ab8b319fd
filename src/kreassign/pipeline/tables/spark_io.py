"""The only place where Spark reads and writes: every table is checked against its schema on the way in and out."""

from __future__ import annotations

from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from kreassign.errors import DataError, InvariantBroken
from kreassign.pipeline.tables.schemas import BIGINT, BOOLEAN, DOUBLE, INT, INTS, STRING, Table

_SPARK_TYPES: dict[str, spark_types.DataType] = {
    STRING: spark_types.StringType(),
    INT: spark_types.IntegerType(),
    BIGINT: spark_types.LongType(),
    DOUBLE: spark_types.DoubleType(),
    BOOLEAN: spark_types.BooleanType(),
    INTS: spark_types.ArrayType(spark_types.IntegerType()),
}

DataDir = Path | str
"""A directory, or an address that Spark's file systems understand, such as `s3a://bucket/data`."""

_MISSING = ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA")


def struct_type(table: Table) -> spark_types.StructType:
    """The schema for Spark, with the comments."""
    return spark_types.StructType(
        [
            spark_types.StructField(
                column.name, _SPARK_TYPES[column.type], column.nullable, {"comment": column.comment}
            )
            for column in table.columns
        ]
    )


def read_table(spark: SparkSession, data_dir: DataDir, table: Table) -> DataFrame:
    """All rows of a table with exactly its columns; DataError when it is missing or has other columns."""
    try:
        # Folders of dates are only names of places here: files outside of them belong to the table as well.
        rows = spark.read.option("recursiveFileLookup", "true").parquet(_place(data_dir, table.name))
    except AnalysisException as error:
        if error.getCondition() not in _MISSING:
            raise
        message = f"there is no table {table.name} in {data_dir}; make it with `{table.made_by}`"
        raise DataError(message) from error
    wrong = _wrong_columns(table, rows)
    if wrong:
        raise DataError(
            f"table {table.name} in {data_dir} lacks the columns {', '.join(wrong)} of this version of kreassign, or "
            f"has them in another type; make it again with `{table.made_by}`"
        )
    return rows.select(*table.column_names)


def write_table(rows: DataFrame, data_dir: DataDir, table: Table, part: str = "") -> None:
    """Replace a table as a whole, or a part of it that has a folder of its own: doing it again gives the same table."""
    if tuple(rows.columns) != table.column_names or _wrong_columns(table, rows):
        raise InvariantBroken(f"table {table.name}: a step made {rows.schema.simpleString()}")
    rows.write.mode("overwrite").parquet(_place(data_dir, table.name, part))


def write_batch(rows: DataFrame, data_dir: DataDir, table: Table, folder: str) -> None:
    """Replace one folder of a table, so that doing a batch again gives the same table."""
    if tuple(rows.columns) != table.column_names or _wrong_columns(table, rows):
        raise InvariantBroken(f"table {table.name}: a batch made {rows.schema.simpleString()}")
    rows.coalesce(1).write.mode("overwrite").parquet(_place(data_dir, table.name, folder))


def _place(data_dir: DataDir, *names: str) -> str:
    if isinstance(data_dir, Path):
        return str(data_dir.joinpath(*names))
    return "/".join((data_dir.rstrip("/"), *filter(None, names)))


def _wrong_columns(table: Table, rows: DataFrame) -> list[str]:
    found = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
    return [column.name for column in table.columns if found.get(column.name) != column.type]
