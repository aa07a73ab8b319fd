"""Row checks: from columns to a column; rows that fail one go to quarantine with the reason.

A check is a reason and the condition under which a row is good. The first that fails names the reason. A
condition that is NULL counts as failed: what cannot be judged is not good. So each column that must not be NULL is
checked first, and then the rules of `rules.py` in their order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from kreassign.pipeline.load.rules import ROW_RULES, Rule
from kreassign.pipeline.tables.schemas import QUARANTINE, Table

_REASON = "_reason"
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
        return self.judged.where(sql.col(_REASON).isNull()).select(*self.table.column_names)

    @property
    def bad(self) -> DataFrame:
        """The rows to set aside, as rows of table `quarantine`."""
        return bad_rows(self.table, self.judged.where(sql.col(_REASON).isNotNull()), _REASON)

    @property
    def verdicts(self) -> DataFrame:
        """One row per row: table_name and is_good."""
        return self.judged.select(
            sql.lit(self.table.name).alias("table_name"), sql.col(_REASON).isNull().alias("is_good")
        )


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
    return Screened(table, rows.withColumn(_REASON, first_failure(checks_of(table, now_ms))))


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
    ).select(*QUARANTINE.column_names)


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
