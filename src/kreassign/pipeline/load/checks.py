"""Row checks: from columns to a column; rows that fail one go to quarantine with the reason.

A check is a reason and the condition under which a row is good. The first that fails names the reason. A
condition that is NULL counts as failed: what cannot be judged is not good. So each column that must not be NULL is
checked first, and then the rules of `rules.py` in their order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from kreassign.pipeline.load.rules import NO_PARTITION, ROW_RULES, SAME_KEY, Rule
from kreassign.pipeline.tables.schemas import PARTITIONS, QUARANTINE, REPLICAS, Table

SCREENED = "_reason"
"""The column that screening adds: why a row is not good, NULL for good ones."""
NEVER_MS = 2**62
"""A time of the load after all others, for rows that are not to be compared with it."""


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
        return self.judged.where(sql.col(SCREENED).isNull()).select(*self.table.column_names)

    @property
    def bad(self) -> DataFrame:
        """The rows to set aside, as rows of table `quarantine`."""
        return bad_rows(self.table, self.judged.where(is_bad()), SCREENED)

    def with_unique_keys(self) -> Screened:
        """Of the rows of one key only one is good, the latest; the others are late."""
        latest_first = (sql.col(SCREENED).isNotNull(), sql.desc("taken_ms"), sql.xxhash64(*self.table.column_names))
        copy = sql.row_number().over(Window.partitionBy(*self.table.key).orderBy(*latest_first))
        reason = sql.coalesce(SCREENED, sql.when(sql.col("copy") > 1, SAME_KEY))
        return Screened(self.table, self.judged.withColumn("copy", copy).withColumn(SCREENED, reason))


def is_bad() -> Column:
    """Whether a screened row is set aside: what is only there twice is not."""
    return sql.col(SCREENED).isNotNull() & (sql.col(SCREENED) != SAME_KEY)


def checks_of(table: Table, now_ms: int = NEVER_MS) -> tuple[RowCheck, ...]:
    """The checks of a table that the load job reads, at this time. Needs a Spark session, as columns do."""
    required = tuple(
        RowCheck(f"{column.name} is missing", present(sql.col(column.name)))
        for column in table.columns
        if not column.nullable
    )
    rules = tuple(
        RowCheck(rule.reason, ~sql.coalesce(is_broken(rule, now_ms), sql.lit(col=False)))
        for rule in ROW_RULES
        if rule.table is table
    )
    return required + rules


def is_broken(rule: Rule, now_ms: int = NEVER_MS) -> Column:
    """The condition of a rule as a column."""
    return sql.expr(rule.is_broken.replace(":now_ms", str(now_ms)))


def first_broken(rules: Iterable[Rule]) -> Column:
    """The reason of the first rule that is true of a row; NULL where none is."""
    return sql.coalesce(*(sql.when(is_broken(rule), rule.reason) for rule in rules))


def screen(table: Table, rows: DataFrame, now_ms: int = NEVER_MS) -> Screened:
    """Judge the rows of a table by its checks, at this time."""
    return Screened(table, rows.withColumn(SCREENED, first_failure(checks_of(table, now_ms))))


def first_failure(checks: tuple[RowCheck, ...]) -> Column:
    """The reason of the first check that a row fails; NULL for good rows."""
    return sql.coalesce(*(sql.when(~sql.coalesce(check.is_good, sql.lit(col=False)), check.reason) for check in checks))


def present(value: Column) -> Column:
    """Whether there is a value, and not an empty text."""
    return value.isNotNull() & (value.cast("string") != "")


def bad_rows(table: Table, rows: DataFrame, reason: str) -> DataFrame:
    """Rows of a table, with their reason in the column of that name, as rows of table `quarantine`."""
    return rows.select(
        sql.lit(table.name).alias("table_name"),
        sql.col(reason).alias("reason"),
        sql.to_json(sql.struct(*table.column_names)).alias("row_json"),
        # The next load looks at its own snapshots.
        sql.lit(col=True).alias("is_open"),
    ).select(*QUARANTINE.column_names)


def orphans(replicas: DataFrame, partitions: DataFrame) -> DataFrame:
    """Replicas without a row of their partition, as rows of table `quarantine`."""
    key = list(PARTITIONS.key)
    found = replicas.join(partitions.select(*key), on=key, how="left_anti").withColumn(SCREENED, sql.lit(NO_PARTITION))
    return bad_rows(REPLICAS, found, SCREENED)


def all_bad_rows(screened: Iterable[Screened]) -> DataFrame:
    """The set-aside rows of several tables together: table `quarantine`."""
    return reduce(DataFrame.unionByName, (part.bad for part in screened)).select(*QUARANTINE.column_names)
