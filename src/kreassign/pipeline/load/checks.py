"""Check the rows that a load reads: each row by itself, then all samples of a partition together.

Rows that fail go to quarantine with the reason. Executors have NumPy and PyArrow only, and load `judge.py`, not this.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import from_arrow_schema

from kreassign.pipeline.load.judge import JUDGED, TO_JUDGE, judge
from kreassign.pipeline.load.rates import PARTITION_KEY
from kreassign.pipeline.load.rules import NO_PARTITION, ROW_RULES, SAME_KEY, Rule
from kreassign.pipeline.tables.schemas import LOAD_HOURS, OPEN_SAMPLES, PARTITIONS, QUARANTINE, REPLICAS, SAMPLES, Table
from kreassign.pipeline.tables.spark_io import dealt

# Checks of rows: first columns that must have a value, as NULL makes no rule true; then the rules of `rules.py`, in
# their order. Rows that fail go to quarantine with the first reason.

SCREENED = "_reason"
"""Column that screening adds: why a row is not good; NULL for good rows."""
SET_ASIDE = tuple(name for name in QUARANTINE.column_names if name != "load_ms")
"""Columns of bad rows, which are rows of table `quarantine` but for the time of the load."""
NEVER_MS = 2**62
"""Load time after all others, for rows that are not compared with the clock."""


@dataclass(frozen=True, slots=True)
class Screened:
    """Rows of a table with the result of its checks."""

    table: Table
    judged: DataFrame

    @property
    def good(self) -> DataFrame:
        """Usable rows, with the columns of the table."""
        return self.judged.where(sql.col(SCREENED).isNull()).select(*self.table.column_names)

    @property
    def bad(self) -> DataFrame:
        """Rows to set aside, with the columns `SET_ASIDE`."""
        return bad_rows(self.table, self.judged.where(is_bad()), SCREENED)

    def with_unique_keys(self) -> Screened:
        """Keep one good row per key, the latest; mark the others as late."""
        latest_first = (sql.col(SCREENED).isNotNull(), sql.desc("taken_ms"), sql.xxhash64(*self.table.column_names))
        copy = sql.row_number().over(Window.partitionBy(*self.table.key).orderBy(*latest_first))
        reason = sql.coalesce(SCREENED, sql.when(sql.col("copy") > 1, SAME_KEY))
        return Screened(self.table, self.judged.withColumn("copy", copy).withColumn(SCREENED, reason))


def is_bad() -> Column:
    """True for rows to quarantine; mere duplicates are not."""
    return sql.col(SCREENED).isNotNull() & (sql.col(SCREENED) != SAME_KEY)


def is_broken(rule: Rule, now_ms: int = NEVER_MS) -> Column:
    """A rule's condition as a column."""
    return sql.expr(rule.is_broken.replace(":now_ms", str(now_ms)))


def first_broken(rules: Iterable[Rule], now_ms: int = NEVER_MS) -> Column:
    """Reason of the first rule that is true of a row, or NULL."""
    return sql.coalesce(*(sql.when(is_broken(rule, now_ms), rule.reason) for rule in rules))


def screen(table: Table, rows: DataFrame, now_ms: int) -> Screened:
    """Check the rows of a table at time `now_ms`."""
    missing = (
        sql.when(value.isNull() | (value.cast("string") == ""), f"{name} is missing")
        for name, value in ((column.name, sql.col(column.name)) for column in table.columns if not column.nullable)
    )
    rules = (rule for rule in ROW_RULES if rule.table is table)
    return Screened(table, rows.withColumn(SCREENED, sql.coalesce(*missing, first_broken(rules, now_ms))))


def bad_rows(table: Table, rows: DataFrame, reason: str) -> DataFrame:
    """Convert rows of a table to rows of table `quarantine`; column `reason` names their fault."""
    return rows.select(
        sql.lit(table.name).alias("table_name"),
        sql.col(reason).alias("reason"),
        sql.to_json(sql.struct(*table.column_names)).alias("row_json"),
        # The next load reads its own snapshots.
        sql.lit(col=True).alias("is_open"),
    ).select(*SET_ASIDE)


def orphans(replicas: DataFrame, partitions: DataFrame) -> DataFrame:
    """Replicas without a row of their partition, as rows of table `quarantine`."""
    key = list(PARTITIONS.key)
    found = replicas.join(partitions.select(*key), on=key, how="left_anti").withColumn(SCREENED, sql.lit(NO_PARTITION))
    return bad_rows(REPLICAS, found, SCREENED)


# Samples of a load on Spark: which are judged, and with what result.
#
# New rows of table `samples` are first checked one by one: a rule of one row that is true of them (`rules.py`) becomes
# their `reason`. Then each task gets all samples of some partitions, new ones and those that the load before left open,
# and judges them (`judge`). Bad rows go the same way, so that samples are read once and all are counted at the end. Why
# not by an `Observation`: docs/design/decisions/load-on-spark.md.
#
# The executors need this package, with NumPy and PyArrow: installed, or sent to them (`--py-files`).

_TYPES = {column.name: column.type for column in OPEN_SAMPLES.columns}


def judged(samples: DataFrame, left_open: DataFrame | None, now_ms: int, row_count: int) -> DataFrame:
    """Judge new rows of table `samples` with those of `open_samples`, together about `row_count` rows.

    Rows with a time after `now_ms`, the time of the load, are bad.
    """
    unknown = {name: sql.lit(None).cast(_TYPES[name]) for name in ("open_from_ms", "is_clean", "epoch")}
    known = {"is_closed": sql.lit(col=False), "reason": sql.col(SCREENED), "is_new": sql.lit(col=True)}
    rows = screen(SAMPLES, samples, now_ms).judged.withColumns(unknown | known).select(*TO_JUDGE)
    if left_open is not None:
        rows = rows.unionByName(left_open.withColumn("is_new", sql.lit(col=False)).select(*TO_JUDGE))
    # The key of a bad row is unreliable, so it must not become a neighbour of other samples.
    is_bad = sql.col("is_new") & sql.col("reason").isNotNull()
    place = sql.when(is_bad, sql.xxhash64(*SAMPLES.column_names)).otherwise(sql.xxhash64(*PARTITION_KEY))
    return dealt(rows, row_count, place).mapInArrow(judge, from_arrow_schema(JUDGED))


def hours_of(judged: DataFrame) -> DataFrame:
    """Table `load_hours` without the hours closed by earlier loads."""
    return judged.where("hour IS NOT NULL").select("hour.*").select(*LOAD_HOURS.column_names)


def open_samples(judged: DataFrame) -> DataFrame:
    """Table `open_samples`: samples that the next load reads again."""
    kept = judged.where("kept.is_read_again").select("kept.*")
    return kept.withColumn("reason", sql.when(sql.col("is_closed"), sql.col("reason"))).select(
        *OPEN_SAMPLES.column_names
    )


def quarantined(judged: DataFrame) -> DataFrame:
    """Bad or odd samples as rows of table `quarantine`; later loads may judge those of open hours differently."""
    set_aside = judged.where("kept.is_set_aside").select("kept.*")
    row = {
        "table_name": sql.lit(SAMPLES.name),
        "row_json": sql.to_json(sql.struct(*SAMPLES.column_names)),
        "is_open": ~sql.col("is_closed"),
    }
    return set_aside.withColumns(row).select(*SET_ASIDE)
