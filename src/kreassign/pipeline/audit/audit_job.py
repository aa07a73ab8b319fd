"""The jobs of audits: read the records of topics into tables, compare two readings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from kreassign.errors import DataError
from kreassign.pipeline.audit.data_audit import data_audit
from kreassign.pipeline.audit.record_digests import AuditedPartition, audited_partitions, kafka_records, record_digests
from kreassign.pipeline.tables.audit_schemas import AUDITED_PARTITIONS, DATA_AUDIT, RECORD_DIGESTS
from kreassign.pipeline.tables.schemas import Row
from kreassign.pipeline.tables.spark_io import read_table, write_table


def read_records(
    spark: SparkSession,
    data_dir: Path,
    label: str,
    partitions: Sequence[AuditedPartition],
    *,
    client: Mapping[str, str],
    taken_ms: int,
) -> int:
    """Make the part of `record_digests` and `audited_partitions` with this label; how many records were read.

    A reading of the same label is replaced. Raises DataError when the cluster cannot be read through Spark.
    """
    part = f"label={label}"
    write_table(record_digests(kafka_records(spark, partitions, client), label), data_dir, RECORD_DIGESTS, part)
    digests = read_table(spark, data_dir, RECORD_DIGESTS).where(sql.col("label") == label)
    write_table(audited_partitions(digests, partitions, label, taken_ms), data_dir, AUDITED_PARTITIONS, part)
    return digests.count()


def compare_readings(spark: SparkSession, data_dir: Path, before: str, after: str) -> list[Row]:
    """Make table `data_audit` of two readings; its rows by topic and partition.

    Raises DataError when there is no reading of one of the labels.
    """
    partitions = read_table(spark, data_dir, AUDITED_PARTITIONS)
    labels = {row["label"] for row in partitions.select("label").distinct().collect()}
    _require((before, after), labels)
    write_table(
        data_audit(partitions, read_table(spark, data_dir, RECORD_DIGESTS), before, after), data_dir, DATA_AUDIT
    )
    rows = read_table(spark, data_dir, DATA_AUDIT).orderBy("topic", "partition").collect()
    return [row.asDict() for row in rows]


def _require(wanted: Iterable[str], known: set[str]) -> None:
    for label in wanted:
        if label not in known:
            raise DataError(
                f"there is no reading {label!r}, only {', '.join(sorted(known))}; make it with "
                f"`kreassign audit records --label {label}`"
            )
