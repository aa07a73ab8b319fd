"""PURE. The tables for a catalog: `CREATE TABLE` statements for Spark, and sources for dbt, from their schemas.

Rules:

- A statement names the columns with types and comments, and the column of the partitioning, as the log of the table
  has them (`delta.py`): a catalog refuses a table that is there already with others.
- In dbt, columns that must not be NULL are tested to have no NULL, and keys to be unique. Rows in quarantine, and
  samples that are read again, may be there twice, and have no key.
- Every text is quoted; none of it can end the statement, or change the structure of the YAML.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from kreassign.pipeline.tables.schemas import METRICS_QUARANTINE, OPEN_SAMPLES, QUARANTINE, Column, Partitioning, Table

_PART_TYPES = {True: "DATE", False: "STRING"}
_NO_KEY = {QUARANTINE.name, METRICS_QUARANTINE.name, OPEN_SAMPLES.name}
_DBT_HEAD = """\
# Sources for dbt, made by `kreassign define-tables --format dbt` from the schemas of the tables; do not edit.
# Keys of several columns are tested by the package dbt_utils: add dbt-labs/dbt_utils to packages.yml.
version: 2

sources:"""


def ddl(tables: Iterable[Table], location: str, schema: str, *, with_columns: bool = True) -> str:
    """Statements in Spark's SQL that make the tables below an address known to a catalog, in a schema of it.

    Without columns, the catalog takes them and what they mean from the log of each table, which must be there.
    """
    statements = [f"CREATE SCHEMA IF NOT EXISTS {_name(schema)};"]
    made = (_create(table, location, schema, with_columns=with_columns) for table in tables)
    return "\n\n".join([*statements, *made]) + "\n"


def dbt_sources(tables: Iterable[Table], location: str, schema: str) -> str:
    """A file `sources.yml` for dbt: the tables with what their columns mean, and tests of their keys."""
    lines = [
        _DBT_HEAD,
        f"  - name: {_text(schema)}",
        f"    schema: {_text(schema)}",
        '    description: "The tables of kreassign: snapshots, samples and loads of Kafka clusters."',
        "    tables:",
    ]
    return "\n".join([*lines, *(line for table in tables for line in _dbt_table(table, location))]) + "\n"


def _create(table: Table, location: str, schema: str, *, with_columns: bool) -> str:
    part = table.partition_by if with_columns else None
    named = f"CREATE TABLE IF NOT EXISTS {_name(schema)}.{_name(table.name)}"
    lines = [
        f"{named} (\n{_columns(table)}\n)" if with_columns else named,
        "USING DELTA",
        *([] if part is None else [f"PARTITIONED BY ({_name(part.name)})"]),
        f"COMMENT {_literal(table.comment)}",
        f"LOCATION {_literal(_place(location, table))};",
    ]
    return "\n".join(lines)


def _columns(table: Table) -> str:
    columns = [f"{_name(column.name)} {_type(column)} COMMENT {_literal(column.comment)}" for column in table.columns]
    if table.partition_by is not None:
        columns.append(f"{_name(table.partition_by.name)} {_PART_TYPES[table.partition_by.is_date]}")
    return ",\n".join(f"  {column}" for column in columns)


def _dbt_table(table: Table, location: str) -> Iterator[str]:
    yield f"      - name: {_text(table.name)}"
    yield f"        description: {_text(table.comment)}"
    yield "        meta:"
    yield f"          made_by: {_text(table.made_by.replace('`', ''))}"
    yield f"          location: {_text(_place(location, table))}"
    yield from _unique_together(table)
    yield "        columns:"
    for column in table.columns:
        yield f"          - name: {_text(column.name)}"
        yield f"            data_type: {_text(_type(column).lower())}"
        yield f"            description: {_text(column.comment)}"
        tests = [] if column.nullable else ["not_null"]
        if table.key == (column.name,) and table.name not in _NO_KEY:
            tests.append("unique")
        if tests:
            yield f"            data_tests: [{', '.join(tests)}]"

    if table.partition_by is not None:
        yield f"          - name: {_text(table.partition_by.name)}"
        yield f"            data_type: {_text(_PART_TYPES[table.partition_by.is_date].lower())}"
        yield f"            description: {_text(_part_comment(table.partition_by))}"


def _part_comment(part: Partitioning) -> str:
    return f"{'UTC date of ' if part.is_date else ''}`{part.column}`, by which the files are partitioned"


def _unique_together(table: Table) -> Iterator[str]:
    if len(table.key) == 1 or table.name in _NO_KEY:
        return
    yield "        data_tests:"
    yield "          - dbt_utils.unique_combination_of_columns:"
    yield "              arguments:"
    yield f"                combination_of_columns: [{', '.join(map(_text, table.key))}]"


def _place(location: str, table: Table) -> str:
    return f"{location.rstrip('/')}/{table.name}"


def _type(column: Column) -> str:
    return column.type.upper()


def _name(text: str) -> str:
    """An identifier: `partition`, `offset` and `position` mean something in SQL."""
    return f"`{text.replace('`', '``')}`"


def _literal(text: str) -> str:
    """A text of Spark's SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _text(text: str) -> str:
    """A text of YAML: those of JSON are."""
    return json.dumps(text)
