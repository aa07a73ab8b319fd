"""The job that audits runs: their journals as tables, then what is made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from kreassign.pipeline.audit.run_audit import Sources, audit_brokers, audit_moves, audit_runs, runs_in_snapshots
from kreassign.pipeline.tables.arrow_rows import has_table
from kreassign.pipeline.tables.run_schemas import AUDIT_BROKERS, AUDIT_MOVES, AUDIT_RUNS, RUN_TABLES
from kreassign.pipeline.tables.schemas import BROKERS, CLUSTERS, PARTITIONS, REPLICAS, Row, Table
from kreassign.pipeline.tables.spark_io import read_table, struct_type, write_table


def audit_told_runs(spark: SparkSession, data_dir: Path) -> Mapping[str, list[Row]]:
    """Make the audit tables of all runs whose journals are in the tables; the rows of each, by name of the table.

    Doing it again makes the same tables. Snapshots may be missing: then what they would tell is NULL.
    """
    told = Sources(
        *(read_table(spark, data_dir, table) for table in RUN_TABLES),
        *(_read_or_empty(spark, data_dir, table) for table in (CLUSTERS, BROKERS, PARTITIONS, REPLICAS)),
    )
    runs = runs_in_snapshots(told.runs, told.clusters)
    moves = _stored(spark, data_dir, AUDIT_MOVES, audit_moves(told, runs))
    brokers = _stored(spark, data_dir, AUDIT_BROKERS, audit_brokers(told, runs))
    summary = _stored(spark, data_dir, AUDIT_RUNS, audit_runs(told, runs, moves, brokers))
    return {AUDIT_RUNS.name: _rows(summary, ("run_id",)), AUDIT_BROKERS.name: _rows(brokers, ("run_id", "broker"))}


def _stored(spark: SparkSession, data_dir: Path, table: Table, rows: DataFrame) -> DataFrame:
    write_table(rows, data_dir, table)
    return read_table(spark, data_dir, table)


def _rows(found: DataFrame, order: Sequence[str]) -> list[Row]:
    """Of small tables only: one row per run, or per run and broker."""
    return [row.asDict() for row in found.orderBy(*order).collect()]


def _read_or_empty(spark: SparkSession, data_dir: Path, table: Table) -> DataFrame:
    if has_table(data_dir, table):
        return read_table(spark, data_dir, table)
    return spark.createDataFrame([], struct_type(table))
