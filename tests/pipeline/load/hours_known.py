"""Hours as rows that state only what a test is about, and what they say of their partitions, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from kreassign.pipeline.load.partition_loads import HOUR_COLUMNS, IS_COMPACTED, LOADS, partition_loads
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.schemas import LOAD_HOURS, Row

HOUR: Mapping[str, Any] = {
    **dict.fromkeys(LOAD_HOURS.column_names),
    "cluster_id": "c",
    "topic": "t",
    "partition": 0,
    # Of an hour that was measured whole, nobody knows how.
    "epoch": 0,
    "is_open": False,
    "seconds": 3600.0,
    "good_seconds": 3600.0,
    "squared_seconds": 0.0,
    "good_records": 0,
    "rate_sum": 0,
    "most_new_records": 0,
    "sized_records": 0,
    "new_bytes": 0,
    "sample_count": 1,
    "odd_count": 0,
    "rate_bins": [],
    "rate_counts": [],
    IS_COMPACTED: None,
}


def hour_table(rows: list[Row]) -> pa.Table:
    """Table `load_hours` of these rows, with `is_compacted` of their topics."""
    schema = arrow_schema(LOAD_HOURS).append(pa.field(IS_COMPACTED, pa.bool_()))
    return pa.Table.from_pylist([{**HOUR, **row} for row in rows], schema=schema)


def loads_of(hours: pa.Table) -> list[Row]:
    """Load of each partition by its hours; without `is_compacted`, the cleanup policy is unknown."""
    if IS_COMPACTED not in hours.column_names:
        hours = hours.append_column(IS_COMPACTED, pa.nulls(len(hours), pa.bool_()))
    batches = hours.select(list(HOUR_COLUMNS)).to_batches()
    return pa.Table.from_batches(partition_loads(batches), schema=LOADS).to_pylist()


def loads(rows: list[Row]) -> list[Row]:
    """Load of each partition by these rows of table `load_hours`."""
    return loads_of(hour_table(rows))
