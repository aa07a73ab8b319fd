"""Hours as rows that state only what a test is about, and what they say of their partitions, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from kreassign.pipeline.load.partition_loads import HOUR_COLUMNS, LOADS, partition_loads
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
}


def hour_table(rows: list[Row]) -> pa.Table:
    """Table `load_hours` of these rows."""
    return pa.Table.from_pylist([{**HOUR, **row} for row in rows], schema=arrow_schema(LOAD_HOURS))


def loads_of(hours: pa.Table) -> list[Row]:
    """Load of each partition by its hours."""
    batches = hours.select(list(HOUR_COLUMNS)).to_batches()
    return pa.Table.from_batches(partition_loads(batches), schema=LOADS).to_pylist()


def loads(rows: list[Row]) -> list[Row]:
    """Load of each partition by these rows of table `load_hours`."""
    return loads_of(hour_table(rows))
