"""Records of a batch, by the known metrics."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kreassign.pipeline.ingest.metric_records import (
    OF_NO_USE,
    OTHER_VALUE,
    BatchCount,
    MetricBatch,
    count_rows,
    sort_records,
)
from kreassign.pipeline.ingest.metric_stream import JUDGED
from kreassign.pipeline.load.rules import SAME_KEY
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.schemas import METRICS
from tests.approved import approve

BATCH = MetricBatch("c", "metrics", "id", 3)
METRIC: dict[str, Any] = {"cluster_id": "c", "taken_ms": 1_000, "broker": 1, "topic": None, "partition": None,
                          "name": "cpu_share", "value": 1.0}  # fmt: skip
RECORD: dict[str, Any] = {"reason": None, "is_ahead": False, "source_partition": 0, "written_ms": 2_000, "record": b"r"}
EXTRA = pa.schema(
    [("reason", pa.string()), ("is_ahead", pa.bool_()), ("source_partition", pa.int32()), ("source_offset", pa.int64()),
     ("written_ms", pa.int64()), ("record", pa.binary())]
)  # fmt: skip
SCHEMA = pa.schema([*arrow_schema(METRICS), *EXTRA])


def batch_of(*records: dict[str, Any]) -> pa.Table:
    rows = [{**METRIC, **RECORD, "source_offset": offset, **record} for offset, record in enumerate(records)]
    return pa.Table.from_pylist(rows, SCHEMA)


def known(*metrics: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([{**METRIC, **metric} for metric in metrics], arrow_schema(METRICS))


def test_the_columns_of_a_batch_are_those_that_are_judged() -> None:
    assert tuple(SCHEMA.names) == JUDGED


def test_the_first_value_of_a_key_stays_and_others_are_counted() -> None:
    records = batch_of(
        {"broker": 2, "value": 5.0},
        {"broker": 2, "value": 6.0, "source_offset": -1, "is_ahead": True},
        {"broker": 2, "value": 6.0, "source_partition": 1, "written_ms": 2_500},
        {"value": 1.0},
        {"value": 7.0, "record": b"\x00\xff"},
        {"topic": "t", "value": 8.0},
        {"topic": "t", "partition": 0, "value": 9.0},
        {"topic": "", "value": 10.0},
        {"reason": OF_NO_USE},
        {"reason": "it is odd", "record": None, "source_offset": 20},
    )
    found = sort_records(records, known({}, {"broker": 3, "value": 0.5}), BATCH)
    new = [(row["broker"], row["topic"], row["partition"], row["value"]) for row in found.metrics.to_pylist()]
    assert sorted(new, key=str) == sorted(
        [(2, None, None, 6.0), (1, "t", None, 8.0), (1, "t", 0, 9.0), (1, "", None, 10.0)], key=str
    )
    letters = {row["source_offset"]: (row["reason"], row["row_json"]) for row in found.quarantined.to_pylist()}
    assert letters == {0: (OTHER_VALUE, "72"), 4: (OTHER_VALUE, "00ff"), 20: ("it is odd", "")}
    assert found.latest_ms == 2_500
    told = {(row["treatment"], row["reason"]): row["records"] for row in count_rows(BATCH, found)}
    assert told == {
        ("good", None): 4, ("late", SAME_KEY): 2, ("skipped", OF_NO_USE): 1, ("quarantined", OTHER_VALUE): 2,
        ("quarantined", "it is odd"): 1,
        ("counted", "the clock of its broker is more than a minute ahead of its record"): 1,
    }  # fmt: skip
    approve([BatchCount(3, found.counts)], "counts-of-a-batch")


_METRICS = st.fixed_dictionaries(
    {"broker": st.integers(0, 2), "topic": st.sampled_from([None, "", "t"]), "taken_ms": st.integers(1, 3),
     "partition": st.sampled_from([None, 0]), "value": st.sampled_from([0.0, 1.0])}
)  # fmt: skip


@given(st.lists(_METRICS, max_size=30), st.lists(st.integers(0, 30), max_size=4))
def test_metrics_do_not_depend_on_how_records_are_batched(metrics: list[dict[str, Any]], cuts: list[int]) -> None:
    whole = batch_of(*metrics)

    def stored(batches: list[pa.Table]) -> tuple[pa.Table, list[Any], int]:
        table, letters, late = known(), [], 0
        for records in batches:
            found = sort_records(records, table, BATCH)
            assert sum(count for (what, _), count in found.counts.items() if what != "counted") == records.num_rows
            table = pa.concat_tables([table, found.metrics])
            letters += found.quarantined["source_offset"].to_pylist()
            late += found.counts.get(("late", SAME_KEY), 0)
        return table, letters, late

    places = [0, *sorted(min(cut, len(metrics)) for cut in cuts), len(metrics)]
    pieces = [whole.slice(begin, end - begin) for begin, end in pairwise(places)]
    at_once, in_pieces = stored([whole] if len(metrics) else []), stored([piece for piece in pieces if len(piece)])
    assert in_pieces == at_once
    assert len(at_once[0]) == len({tuple(row[name] for name in METRICS.key) for row in at_once[0].to_pylist()})
    again = sort_records(whole, at_once[0], BATCH) if len(metrics) else None
    assert again is None or again.metrics.num_rows == 0, "all read again adds nothing"
