"""Records of a topic of metrics → the columns of table `metrics`, each record with the reason why it is none.

JSON records are objects with the columns of table `metrics`; `cluster_id`, `topic` and `partition` may be left out.
They are read as variants, which keep the types of JSON: a schema of Spark's would make a text of a number, and would
not say which column it could not read. Binary records are decoded in Arrow batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql import types as spark_types

from kreassign.pipeline.ingest.metric_records import NO_VALUE, RecordForm, decode
from kreassign.pipeline.ingest.metric_rules import CLOCK_AHEAD, METRIC_RULES
from kreassign.pipeline.load.checks import first_broken, is_broken
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.schemas import BIGINT, INT, METRICS, STRING
from kreassign.pipeline.tables.spark_io import struct_type

RECORD = ("source_partition", "source_offset", "written_ms", "record")
"""What is kept of each record beside its metric: its place, its time and its bytes."""
JUDGED = (*METRICS.column_names, "reason", "is_ahead", *RECORD)
"""The columns of judged records. `reason` is NULL for a good one; `is_ahead` says that `CLOCK_AHEAD` is true of it."""

_LARGEST = {BIGINT: 2**63 - 1, INT: 2**31 - 1}
_NUMBERS = ("BIGINT", "DOUBLE", "FLOAT")
# Half of a surrogate pair, which is no character: Spark makes a question mark of it.
_HALF = r"\\u[dD][89a-fA-F]"
_FIELDS = tuple(column for column in METRICS.columns if column.name != "cluster_id")


def judged_metrics(records: DataFrame, form: RecordForm, cluster_id: str) -> DataFrame:
    """Columns `JUDGED` from the columns `RECORD`; `cluster_id` is the cluster of records that do not name one."""
    read = _json_metrics(records, cluster_id) if form is RecordForm.JSON else _binary_metrics(records, cluster_id)
    reason = sql.coalesce("reason", first_broken(METRIC_RULES))
    is_ahead = sql.coalesce(is_broken(CLOCK_AHEAD), sql.lit(col=False))
    return read.withColumns({"reason": reason, "is_ahead": is_ahead}).select(*JUDGED)


def _json_metrics(records: DataFrame, cluster_id: str) -> DataFrame:
    text = sql.col("record").cast("string")
    # As a list of one: alone, what follows an object would be passed over.
    parsed = records.withColumn("_json", sql.try_parse_json(sql.concat(sql.lit("["), text, sql.lit("]"))))
    named = sql.nullif(_field("cluster_id", STRING), sql.lit(""))
    columns = {column.name: _field(column.name, column.type) for column in _FIELDS}
    return parsed.select(
        sql.coalesce(named, sql.lit(cluster_id)).alias("cluster_id"),
        *(value.alias(name) for name, value in columns.items()),
        sql.coalesce(_not_an_object(text), *_wrong_fields(text)).alias("reason"),
        *RECORD,
    )


def _field(name: str, kind: str) -> Column:
    return sql.try_variant_get("_json", f"$[0].{name}", kind)


def _kind(path: str) -> Column:
    """The type of a part of the document, as JSON has it; NULL where there is no such part."""
    return sql.schema_of_variant(sql.try_variant_get("_json", path, "variant"))


def _not_an_object(text: Column) -> Column:
    is_json = sql.is_valid_utf8(text) & sql.col("_json").isNotNull() & _kind("$[1]").isNull()
    return sql.coalesce(
        sql.when(sql.col("record").isNull(), NO_VALUE),
        sql.when(~is_json, "a record is not JSON"),
        sql.when(
            ~sql.coalesce(_kind("$[0]").startswith("OBJECT"), sql.lit(col=False)), "a record is not a JSON object"
        ),
    )


def _wrong_fields(text: Column) -> Iterator[Column]:
    has_half = text.rlike(_HALF)
    for column in METRICS.columns:
        kind = _kind(f"$[0].{column.name}")
        is_absent = sql.coalesce(kind, sql.lit("VOID")) == "VOID"
        if not column.nullable and column.name != "cluster_id":
            yield sql.when(is_absent, f"{column.name} is missing")
        if column.type == STRING:
            is_text = (kind == "STRING") & ~(has_half & _field(column.name, STRING).contains("?"))
            yield sql.when(~is_absent & ~is_text, f"{column.name} is not a text")
        elif column.type in _LARGEST:
            largest = _LARGEST[column.type]
            is_whole = (kind == "BIGINT") & (_field(column.name, BIGINT).between(0, largest))
            yield sql.when(~is_absent & ~is_whole, f"{column.name} is not a whole number from 0 to {largest}")
        else:
            is_number = kind.isin(*_NUMBERS) | kind.startswith("DECIMAL")
            yield sql.when(~is_absent & ~is_number, f"{column.name} is not a number")


def _binary_metrics(records: DataFrame, cluster_id: str) -> DataFrame:
    fields = [field for field in struct_type(METRICS).fields if field.name != "cluster_id"]
    loose = [spark_types.StructField(field.name, field.dataType) for field in fields]
    reason = spark_types.StructField("reason", spark_types.StringType())
    kept = [records.schema[name] for name in RECORD]
    decoded = records.select(*RECORD).mapInArrow(_decoded, spark_types.StructType([*loose, reason, *kept]))
    return decoded.withColumn("cluster_id", sql.lit(cluster_id))


def _decoded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    types = {field.name: field.type for field in arrow_schema(METRICS)} | {"reason": pa.string()}
    for batch in batches:
        found = decode(batch.column("record"))
        columns = {name: found.column(name).cast(types[name]) for name in found.schema.names}
        yield pa.RecordBatch.from_pydict(columns | {name: batch.column(name) for name in RECORD})
