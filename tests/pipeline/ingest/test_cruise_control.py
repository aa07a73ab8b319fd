from __future__ import annotations

import struct

import pytest

from kreassign.errors import InputError
from kreassign.pipeline.ingest.metric_records import BROKER, PARTITION, TOPIC, decode


def metric(kind: int, number: int, topic: bytes = b"", partition: int = 0, version: int = 0) -> bytes:
    """A value as the reporter writes it, field by field."""
    value = struct.pack(">BBBqi", kind, version, number, 1_700_000_000_000, 4)
    if kind != BROKER:
        value += struct.pack(">i", len(topic)) + topic
    if kind == PARTITION:
        value += struct.pack(">i", partition)
    return value + struct.pack(">d", 2.5)


# Written down byte by byte, so that the test does not rest on the same idea of the layout as the code.
BY_HAND = bytes.fromhex("02 00 04 0000018bcfe56800 00000007 00000002 c3a9 00000003 4059000000000000".replace(" ", ""))


def test_a_value_written_by_hand_is_read() -> None:
    assert decode(BY_HAND, "c") == {
        "cluster_id": "c", "taken_ms": 1_700_000_000_000, "broker": 7, "topic": "é", "partition": 3,
        "name": "size_bytes", "value": 100.0,
    }  # fmt: skip


@pytest.mark.parametrize(("value", "topic", "partition", "name"), [
    (metric(BROKER, 5), None, None, "cpu_share"),
    (metric(TOPIC, 3, b"orders"), "orders", None, "bytes_out_per_s"),
    (metric(PARTITION, 4, b"orders", 9), "orders", 9, "size_bytes"),
])  # fmt: skip
def test_each_class_has_its_own_fields(value: bytes, topic: str | None, partition: int | None, name: str) -> None:
    row = decode(value, "c")
    assert row is not None
    assert (row["topic"], row["partition"], row["name"], row["value"], row["broker"]) == (
        topic,
        partition,
        name,
        2.5,
        4,
    )


def test_a_metric_of_no_use_is_passed_over() -> None:
    assert decode(metric(BROKER, 62), "c") is None


@pytest.mark.parametrize("value", [b"", BY_HAND[:-1], metric(3, 0), metric(BROKER, 5, version=1), BY_HAND[:18]])
def test_what_is_cut_off_or_unknown_is_refused(value: bytes) -> None:
    with pytest.raises(InputError):
        decode(value, "c")


def test_a_name_that_is_longer_than_the_value_is_refused() -> None:
    with pytest.raises(InputError, match="claims a topic's name of 1000"):
        decode(struct.pack(">BBBqii", TOPIC, 0, 3, 1, 1, 1000) + b"abc", "c")
