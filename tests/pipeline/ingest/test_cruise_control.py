from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pytest

from kreassign.pipeline.ingest.exporters import METRIC_NAMES
from kreassign.pipeline.ingest.metric_records import BROKER, PARTITION, TOPIC, decode


def metric(kind: int, number: int, topic: bytes = b"", partition: int = 0, version: int = 0) -> bytes:
    """A value as the reporter writes it, field by field."""
    value = struct.pack(">BBBqi", kind, version, number, 1_700_000_000_000, 4)
    if kind != BROKER:
        value += struct.pack(">i", len(topic)) + topic
    if kind == PARTITION:
        value += struct.pack(">i", partition)
    return value + struct.pack(">d", 2.5)


def decoded(*values: bytes | None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = decode(pa.array(values, pa.binary())).to_pylist()
    return rows


# Written down byte by byte, so that the test does not rest on the same idea of the layout as the code.
BY_HAND = bytes.fromhex("02 00 04 0000018bcfe56800 00000007 00000002 c3a9 00000003 4059000000000000".replace(" ", ""))


def test_a_value_written_by_hand_is_read() -> None:
    assert decoded(BY_HAND) == [{
        "taken_ms": 1_700_000_000_000, "broker": 7, "topic": "é", "partition": 3, "name": "size_bytes", "value": 100.0,
        "reason": None,
    }]  # fmt: skip


@pytest.mark.parametrize(("value", "topic", "partition", "name"), [
    (metric(BROKER, 5), None, None, "cpu_share"),
    (metric(BROKER, 9), None, None, "fetch_requests_per_s"),
    (metric(TOPIC, 3, b"orders"), "orders", None, "bytes_out_per_s"),
    (metric(TOPIC, 13, b"orders"), "orders", None, "produce_requests_per_s"),
    (metric(PARTITION, 4, b"orders", 9), "orders", 9, "size_bytes"),
])  # fmt: skip
def test_each_class_has_its_own_fields(value: bytes, topic: str | None, partition: int | None, name: str) -> None:
    (row,) = decoded(value)
    assert row == {
        "taken_ms": 1_700_000_000_000, "broker": 4, "topic": topic, "partition": partition, "name": name, "value": 2.5,
        "reason": None,
    }  # fmt: skip
    assert name in METRIC_NAMES


UNKNOWN_CLASS = "the class or version of a metric is not known: only classes 0 to 2 in version 0 are"
TOO_LONG = "the length of the topic's name is more than the record has"
REFUSED: list[tuple[bytes | None, str]] = [
    (None, "a record has no value"),
    (b"", "a record is cut off"),
    (BY_HAND[:14], "a record is cut off"),
    (BY_HAND[:18], "a record is cut off"),
    (BY_HAND[:-1], "a record is cut off"),
    (metric(BROKER, 5)[:-1], "a record is cut off"),
    (metric(3, 0), UNKNOWN_CLASS),
    (metric(BROKER, 5, version=1), UNKNOWN_CLASS),
    (struct.pack(">BBBqii", TOPIC, 0, 3, 1, 1, 1000) + b"abc", TOO_LONG),
    (struct.pack(">BBBqii", TOPIC, 0, 3, 1, 1, -1) + b"abc", TOO_LONG),
    (metric(TOPIC, 3, b"\xff"), "the topic's name is not UTF-8"),
    (metric(BROKER, 63), "the number of the metric is not one of its class"),
    (metric(BROKER, 255), "the number of the metric is not one of its class"),
    (metric(TOPIC, 5, b"orders"), "the number of the metric is not one of its class"),
    (metric(BROKER, 62), "it is a metric of no use here"),
]  # fmt: skip


def test_a_cut_or_unknown_record_says_so_and_costs_no_other() -> None:
    around = [BY_HAND, metric(TOPIC, 3, b"orders"), metric(BROKER, 5)]
    rows = decoded(around[0], *(value for value, _ in REFUSED), *around[1:])
    assert [row["reason"] for row in rows[1:-2]] == [reason for _, reason in REFUSED]
    assert [rows[0], *rows[-2:]] == decoded(*around)


def test_a_part_of_a_batch_and_an_empty_one_are_read() -> None:
    values = pa.array([metric(TOPIC, 3, b"a"), BY_HAND, metric(BROKER, 5)], pa.binary())
    assert decode(values[1:]).to_pylist() == decode(values).to_pylist()[1:]
    assert decode(values[:0]).num_rows == 0
