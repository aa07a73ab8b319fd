from __future__ import annotations

import json
import re
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from kreassign.operations.tables import DefinitionForm, define_tables
from kreassign.pipeline.tables.access import dbt_sources, ddl
from kreassign.pipeline.tables.delta import log_schema
from kreassign.pipeline.tables.schemas import INT, INTS, STRING, TABLES, Column, Partitioning, Table
from tests.approved import approve

ODD = 'it\'s a \\ `comment`; with "quotes",\n-- a comment of its own, and /* another'
THINGS = Table(
    "things",
    ODD,
    "kreassign make",
    ("offset",),
    (Column("offset", INT, ODD), Column("partition", INTS, "where; NULL when lost", nullable=True)),
)
PLACES = Table("places", "Places.", "kreassign make", ("a", "b"), (Column("a", STRING, "A"), Column("b", STRING, "B")),
               partition_by=Partitioning("part", "b"))  # fmt: skip


def test_a_table_becomes_a_statement() -> None:
    approve(ddl([PLACES], "s3a://bucket/data/", "kafka"), "statement-of-a-table")


def test_columns_may_be_left_to_the_log() -> None:
    approve(ddl([PLACES], "/data", "kafka", with_columns=False), "statement-without-columns")


def statements(text: str) -> list[str]:
    return [part.strip() for part in re.split(r";\n(?:\n|$)", text) if part.strip()]


@pytest.mark.spark
def test_spark_reads_every_statement_as_the_columns_that_the_log_has(spark: SparkSession) -> None:
    parser = spark._jsparkSession.sessionState().sqlParser()

    def parsed(statement: str) -> list[tuple[str, str, str | None, bool]]:
        columns = parser.parsePlan(statement).columns()
        found = [columns.apply(place) for place in range(columns.size())]
        comments = (each.comment() for each in found)
        told = [None if comment.isEmpty() else comment.get() for comment in comments]
        return [
            (each.name(), each.dataType().catalogString(), text, each.nullable())
            for each, text in zip(found, told, strict=True)
        ]

    def logged(table: Table) -> list[tuple[str, str, str | None, bool]]:
        """Delta Lake in a catalog refuses a table whose log has other columns, comments or NULLs."""
        spark_types = {field.name: field.dataType.simpleString() for field in from_arrow_schema(log_schema(table))}
        return [
            (
                field.name,
                spark_types[field.name],
                (field.metadata or {}).get(b"comment", b"").decode() or None,
                field.nullable,
            )
            for field in log_schema(table)
        ]

    things = ddl([THINGS], "/data", "x").partition("\n\n")[2]
    bare = statements(define_tables("/data", with_columns=False))
    assert [parsed(statement) for statement in bare[1:]] == [[]] * (len(bare) - 1)
    schema, *made = statements(f"{define_tables('s3a://bucket/data')}\n{things}")
    assert schema == "CREATE SCHEMA IF NOT EXISTS `kreassign`"
    by_name = {re.findall(r"`\.`(\w+)`", statement)[0]: statement for statement in made}
    for table in (*TABLES, THINGS):
        assert parsed(by_name[table.name]) == logged(table), table.name


def read_yaml(text: str) -> Any:
    """The YAML that we write: mappings and lists by their indentation, texts of JSON, lists in brackets."""
    lines = [
        (len(line) - len(line.lstrip()), line.strip())
        for line in text.splitlines()
        if line.strip()[:1] not in {"", "#"}
    ]
    return block(lines, 0)[0]


def block(lines: list[tuple[int, str]], at: int) -> tuple[Any, int]:
    indent, found = lines[at][0], [] if lines[at][1].startswith("- ") else {}
    while at < len(lines) and lines[at][0] == indent:
        line = lines[at][1]
        if isinstance(found, list):
            lines[at] = (indent + 2, line.removeprefix("- "))
            assert line.startswith("- ")
            value, at = block(lines, at)
            found.append(value)
        else:
            key, _, rest = line.partition(":")
            assert re.fullmatch(r"[a-z_.]+", key), line
            value, at = (scalar(rest.strip()), at + 1) if rest else block(lines, at + 1)
            found[key] = value
    assert at == len(lines) or lines[at][0] < indent
    return found, at


def scalar(text: str) -> Any:
    if text.startswith("["):
        return [scalar(each) for each in text.strip("[]").split(", ")]
    return text if re.fullmatch(r"[a-z_]+", text) else json.loads(text)


def test_tables_become_sources_with_their_keys_as_tests() -> None:
    (source,) = read_yaml(dbt_sources([THINGS, PLACES], "/data", "kafka"))["sources"]
    assert (source["name"], source["schema"]) == ("kafka", "kafka")
    things, places = source["tables"]
    assert things["description"] == ODD
    assert things["columns"] == [
        {"name": "offset", "data_type": "int", "description": ODD, "data_tests": ["not_null", "unique"]},
        {"name": "partition", "data_type": "array<int>", "description": "where; NULL when lost"},
    ]
    assert "data_tests" not in things
    assert places["data_tests"] == [
        {"dbt_utils.unique_combination_of_columns": {"arguments": {"combination_of_columns": ["a", "b"]}}}
    ]
    assert [column.get("data_tests") for column in places["columns"]] == [["not_null"], ["not_null"], None]
    assert places["columns"][2]["description"] == "`b`, by which the files are partitioned"


def test_every_table_is_a_source_and_no_comment_is_taken_for_a_template() -> None:
    text = define_tables("/srv/data", DefinitionForm.DBT)
    (source,) = read_yaml(text)["sources"]
    tables = {table["name"]: table for table in source["tables"]}
    assert {table.name for table in TABLES} < tables.keys()
    assert tables["load_model"]["meta"] == {"made_by": "kreassign load", "location": "/srv/data/load_model"}
    assert "data_tests" not in tables["quarantine"]
    assert not [sign for sign in ("{{", "{%", "{#") if sign in text]
