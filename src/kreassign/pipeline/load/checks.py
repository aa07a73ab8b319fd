"""Row checks: from columns to a column; rows that fail one go to quarantine with the reason.

A check is a reason and the condition under which a row is good. The first that fails names the reason. A
condition that is NULL counts as failed: what cannot be judged is not good. Columns that may be NULL say so in their
condition.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from kreassign.pipeline.tables.schemas import CLUSTERS, PARTITIONS, QUARANTINE, REPLICAS, SAMPLES, Table

_REASON = "_reason"


@dataclass(frozen=True, slots=True)
class RowCheck:
    """`is_good` is true for rows that pass; `reason` says what is wrong with the others."""

    reason: str
    is_good: Column


@dataclass(frozen=True, slots=True)
class Screened:
    """The rows of a table, each judged by the table's checks."""

    table: Table
    judged: DataFrame

    @property
    def good(self) -> DataFrame:
        """The rows to use, with the columns of the table."""
        return self.judged.where(sql.col(_REASON).isNull()).select(*self.table.column_names)

    @property
    def bad(self) -> DataFrame:
        """The rows to set aside, as rows of table `quarantine`."""
        named = self.judged.where(sql.col(_REASON).isNotNull()).select(
            sql.lit(self.table.name).alias("table_name"),
            sql.col(_REASON).alias("reason"),
            sql.to_json(sql.struct(*self.table.column_names)).alias("row_json"),
        )
        return named.select(*QUARANTINE.column_names)

    @property
    def verdicts(self) -> DataFrame:
        """One row per row: table_name and is_good."""
        return self.judged.select(
            sql.lit(self.table.name).alias("table_name"), sql.col(_REASON).isNull().alias("is_good")
        )


def checks_of(table: Table) -> tuple[RowCheck, ...]:
    """The checks of a table that the load job reads. Needs a Spark session, as columns do."""
    required = tuple(
        RowCheck(f"{column.name} is missing", present(sql.col(column.name)))
        for column in table.columns
        if not column.nullable
    )
    return required + _own_checks(table)


def screen(table: Table, rows: DataFrame) -> Screened:
    """Judge the rows of a table by its checks."""
    return Screened(table, rows.withColumn(_REASON, first_failure(checks_of(table))))


def first_failure(checks: tuple[RowCheck, ...]) -> Column:
    """The reason of the first check that a row fails; NULL for good rows."""
    return sql.coalesce(*(sql.when(~sql.coalesce(check.is_good, sql.lit(col=False)), check.reason) for check in checks))


def present(value: Column) -> Column:
    """Whether there is a value, and not an empty text."""
    return value.isNotNull() & (value.cast("string") != "")


def not_negative(value: Column) -> Column:
    """Whether a number is zero or more."""
    return value >= 0


def not_negative_if_known(value: Column) -> Column:
    """Whether a number is zero or more, or NULL."""
    return value.isNull() | (value >= 0)


def in_order(smaller: Column, larger: Column) -> Column:
    """Whether the first number is not above the second."""
    return smaller <= larger


def all_bad_rows(screened: Iterable[Screened]) -> DataFrame:
    """The set-aside rows of several tables together: table `quarantine`."""
    return reduce(DataFrame.unionByName, (part.bad for part in screened)).select(*QUARANTINE.column_names)


def counts(screened: Iterable[Screened]) -> DataFrame:
    """Rows per table: table_name, good, bad. A table without any row is not in it."""
    verdicts = reduce(DataFrame.unionByName, (part.verdicts for part in screened))
    return (
        verdicts.groupBy("table_name")
        .agg(sql.count_if("is_good").alias("good"), sql.count_if(~sql.col("is_good")).alias("bad"))
        .select("table_name", "good", "bad")
    )


def _own_checks(table: Table) -> tuple[RowCheck, ...]:
    return {
        CLUSTERS.name: _cluster_checks,
        PARTITIONS.name: _partition_checks,
        REPLICAS.name: _replica_checks,
        SAMPLES.name: _sample_checks,
    }[table.name]()


def _cluster_checks() -> tuple[RowCheck, ...]:
    return (RowCheck("taken_ms is not a time after 1970", sql.col("taken_ms") > 0),)


def _partition_checks() -> tuple[RowCheck, ...]:
    return (
        RowCheck("partition is negative", not_negative(sql.col("partition"))),
        RowCheck("replicas is empty", sql.size("replicas") > 0),
    )


def _replica_checks() -> tuple[RowCheck, ...]:
    return (
        RowCheck("partition is negative", not_negative(sql.col("partition"))),
        RowCheck("broker is negative", not_negative(sql.col("broker"))),
        RowCheck("size_bytes is negative", not_negative_if_known(sql.col("size_bytes"))),
    )


def _sample_checks() -> tuple[RowCheck, ...]:
    return (
        RowCheck("taken_ms is not a time after 1970", sql.col("taken_ms") > 0),
        RowCheck("partition is negative", not_negative(sql.col("partition"))),
        RowCheck("start_offset is negative", not_negative(sql.col("start_offset"))),
        RowCheck("end_offset is below start_offset", in_order(sql.col("start_offset"), sql.col("end_offset"))),
        RowCheck("size_bytes is negative", not_negative_if_known(sql.col("size_bytes"))),
    )
