"""The tables for others' catalogs: statements of SQL, and sources of dbt."""

from __future__ import annotations

from enum import StrEnum

from kreassign.operations.tables import ALL_TABLES
from kreassign.pipeline.tables.definitions import dbt_sources, ddl

SCHEMA = "kreassign"


class DefinitionForm(StrEnum):
    """What the definitions are written for."""

    DDL = "ddl"
    DBT = "dbt"


def define_tables(
    location: str, form: DefinitionForm = DefinitionForm.DDL, schema: str = SCHEMA, *, with_columns: bool = True
) -> str:
    """The definitions of every table below an address, in a schema of a catalog. Reads nothing and changes nothing.

    Statements without columns leave them to the log of each table.
    """
    if form is DefinitionForm.DBT:
        return dbt_sources(ALL_TABLES, location, schema)
    return ddl(ALL_TABLES, location, schema, with_columns=with_columns)
