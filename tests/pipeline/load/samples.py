"""Samples as rows that state only what a test is about, judged without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from kreassign.pipeline.load.judge import JUDGED, TO_JUDGE, in_order, judge, samples_of
from kreassign.pipeline.load.rates import IntervalVerdict, rates
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.schemas import LOAD_HOURS, OPEN_SAMPLES, Row

_SAMPLE: Mapping[str, Any] = {
    "cluster_id": "c",
    "taken_ms": 1000,
    "topic": "t",
    "topic_id": "id-1",
    "partition": 0,
    "leader": 1,
    "start_offset": 0,
    "end_offset": 0,
    "size_bytes": None,
    "is_closed": False,
    "is_new": True,
}
_TO_JUDGE = arrow_schema(OPEN_SAMPLES).append(pa.field("is_new", pa.bool_()))


def to_judge(rows: list[Row]) -> pa.Table:
    """Samples of which nothing is known yet, but what the rows say."""
    return pa.Table.from_pylist([dict.fromkeys(TO_JUDGE) | _SAMPLE | row for row in rows], schema=_TO_JUDGE)


def rated(rows: list[Row]) -> list[Row]:
    """Each sample with what `rates` says of it, by partition and time."""
    table = to_judge(rows)
    order, series = in_order(table)
    ordered = table.take(order)
    reasons, samples = samples_of(ordered, series)
    told = rates(samples)
    figures = ("seconds", "new_records", "sized_records", "new_bytes")
    columns = {name: pa.array(getattr(told, name), from_pandas=True).to_pylist() for name in figures}
    columns["epoch"], columns["contradicts"] = told.epoch.tolist(), told.contradicts.tolist()
    columns["verdict"] = [IntervalVerdict(code).name.lower() for code in told.verdict]
    columns["reason"] = [reasons[code].as_py() for code in told.reason]
    return [
        row | {name: values[place] for name, values in columns.items()} for place, row in enumerate(ordered.to_pylist())
    ]


def judged(table: pa.Table) -> pa.Table:
    """Rows of `JUDGED`."""
    return pa.Table.from_batches(judge(table.to_batches()), schema=JUDGED)


def hours(rows: list[Row]) -> pa.Table:
    """Table `load_hours` of samples."""
    found = judged(to_judge(rows))["hour"].combine_chunks().drop_null()
    return pa.Table.from_struct_array(found).select(list(LOAD_HOURS.column_names))
