"""PURE. Schemas of tables as Arrow has them. Apart from their log, which executors of Spark have no use for."""

from __future__ import annotations

import pyarrow as pa

from kreassign.pipeline.tables.schemas import BIGINT, BOOLEAN, DOUBLE, INT, INTS, STRING, Table

ARROW_TYPES: dict[str, pa.DataType] = {
    STRING: pa.string(),
    INT: pa.int32(),
    BIGINT: pa.int64(),
    DOUBLE: pa.float64(),
    BOOLEAN: pa.bool_(),
    INTS: pa.list_(pa.int32()),
}


def arrow_schema(table: Table) -> pa.Schema:
    """The schema for pyarrow; NULL in columns that are not nullable is refused when rows are written."""
    return pa.schema([pa.field(column.name, ARROW_TYPES[column.type]) for column in table.columns])
