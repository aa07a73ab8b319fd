from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from kreassign.pipeline.tables import schemas
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.delta import log_to_write
from kreassign.pipeline.tables.spark_io import struct_type
from scripts.tables_page import LIFECYCLES

EVERY = (
    *schemas.TABLES,
    *schemas.METRIC_TABLES,
    *schemas.AUDIT_TABLES,
    *schemas.RUN_TABLES,
    *schemas.AUDITED_RUN_TABLES,
)
BY_NAME = pytest.mark.parametrize("table", EVERY, ids=lambda table: table.name)


@BY_NAME
def test_spark_and_pyarrow_see_the_same_columns(table: schemas.Table) -> None:
    by_spark = to_arrow_schema(struct_type(table), timestamp_utc=True, prefers_large_types=False)
    assert [(field.name, field.type) for field in by_spark] == [
        (field.name, field.type) for field in arrow_schema(table)
    ]


@BY_NAME
def test_spark_knows_the_comments_and_what_may_be_null(table: schemas.Table) -> None:
    fields = struct_type(table).fields
    assert [field.metadata["comment"] for field in fields] == [column.comment for column in table.columns]
    assert [field.nullable for field in fields] == [column.nullable for column in table.columns]


@BY_NAME
def test_every_table_is_described_in_full(table: schemas.Table) -> None:
    assert len(set(table.column_names)) == len(table.columns)
    assert set(table.key) <= set(table.column_names)
    assert table.comment.endswith(".")
    assert table.made_by.startswith("kreassign ")
    for column in table.columns:
        assert column.comment, column.name
        assert ("NULL" in column.comment) == column.nullable or column.name == "coverage", column.name


@BY_NAME
def test_rows_of_every_table_come_and_go_by_a_rule(table: schemas.Table) -> None:
    """Its date, its run, its reading or its columns of time; or all of it is replaced."""
    part = None if table.partition_by is None else table.partition_by.name
    rules = {
        "dated": part == "date",
        schemas.MERGED_BY_LOADS: table.kept is not None,
        "a part per run": part == "run",
        "a part per reading": part == "reading",
        "replaced by loads": part is None,
        "replaced by audits": part is None,
    }
    assert rules.keys() == LIFECYCLES.keys()
    assert rules[table.lifecycle]


def test_hours_of_an_earlier_version_get_the_new_column(tmp_path: Path) -> None:
    columns = tuple(column for column in schemas.LOAD_HOURS.columns if column.name != "reversal_sum")
    log_to_write(tmp_path, replace(schemas.LOAD_HOURS, columns=columns))
    assert "reversal_sum" in pa.schema(log_to_write(tmp_path, schemas.LOAD_HOURS).delta.schema().to_arrow()).names


def test_no_two_tables_share_a_name() -> None:
    assert len({table.name for table in EVERY}) == len(EVERY)


@pytest.mark.parametrize("table", [schemas.SAMPLES, schemas.LOAD_HOURS, schemas.METRICS], ids=lambda table: table.name)
def test_the_log_says_of_each_column_whether_it_may_be_null(table: schemas.Table, tmp_path: Path) -> None:
    found = pa.schema(log_to_write(tmp_path, table).delta.schema().to_arrow())
    assert {column.name: found.field(column.name).nullable for column in table.columns} == {
        column.name: column.nullable for column in table.columns
    }
