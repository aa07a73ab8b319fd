"""The only place where Spark reads and writes: every table is checked against its schema on the way in and out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import types as spark_types

from kreassign.errors import DataError, InvariantBroken
from kreassign.pipeline.tables.parquet import Skipped, usable_files
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
        rows = _reader(spark).parquet(_place(data_dir, table.name))
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


@dataclass(frozen=True, slots=True)
class Source:
    """The rows of a table as they are found, NULL in columns that a file lacks; and what was not read."""

    rows: DataFrame
    skipped: tuple[Skipped, ...] = ()


def read_source(spark: SparkSession, data_dir: DataDir, table: Table) -> Source:
    """All rows of a table that others write, without the files that cannot be read.

    DataError when it is missing, or no file of it can be read. At an address that only Spark understands, files are
    taken as they are.
    """
    place = local_place(data_dir)
    if place is None:
        return Source(read_table(spark, data_dir, table))
    usable, skipped = usable_files(place, table)
    if not usable:
        if not skipped:
            raise DataError(f"there is no table {table.name} in {data_dir}; make it with `{table.made_by}`")
        raise DataError(
            f"no file of table {table.name} in {data_dir} can be read: {skipped[0]}; "
            f"make it again with `{table.made_by}`"
        )
    paths = map(str, usable) if skipped else (_place(data_dir, table.name),)
    rows = _reader(spark).schema(struct_type(table)).parquet(*paths)
    return Source(rows.select(*table.column_names), tuple(skipped))


def local_place(data_dir: DataDir) -> Path | None:
    """The directory, if it is one of this machine and not an address elsewhere."""
    if isinstance(data_dir, Path):
        return data_dir
    return Path(unquote(urlsplit(data_dir).path)) if data_dir.startswith("file:") else None


def _reader(spark: SparkSession) -> DataFrameReader:
    # Folders of dates are only names of places here: files outside of them belong to the table as well.
    return spark.read.option("recursiveFileLookup", "true").option("pathGlobFilter", "*.parquet")


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
