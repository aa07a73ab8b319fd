"""PURE. Records of Cruise Control's metrics reporter → columns of table `metrics`, a batch at a time.

They are binary, big-endian, as the comments of its `toBuffer` describe them:

    byte    class: 0 broker, 1 topic, 2 partition
    byte    version: 0
    byte    metric, a number for each name (`RawMetricType`)
    long    time in milliseconds
    int     broker
    int     length of the topic's name, then the name in UTF-8      (classes 1 and 2)
    int     partition                                               (class 2)
    double  value

Rates are per second over the reporter's interval, sizes in bytes, CPU is a share of all cores. A batch is read field by
field with numpy: all fields but the name have a fixed place, or one that follows from the length of the name.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kreassign.pipeline.ingest.metric_rules import OF_NO_USE


class RecordForm(StrEnum):
    """What the values of the topic are; JSON ones are objects with the columns of table `metrics`."""

    JSON = "json"
    CRUISE_CONTROL = "cruise-control"


NO_VALUE = "a record has no value"
CUT_OFF = "a record is cut off"

BROKER, TOPIC, PARTITION = range(3)
# Only metrics of use here have a name. Requests are counted once per partition, as the broker's own meters count them.
_NAMES = {
    0: "bytes_in_per_s",
    1: "bytes_out_per_s",
    2: "bytes_in_per_s",
    3: "bytes_out_per_s",
    4: "size_bytes",
    5: "cpu_share",
    6: "replication_bytes_in_per_s",
    7: "replication_bytes_out_per_s",
    8: "produce_requests_per_s",
    9: "fetch_requests_per_s",
    10: "messages_in_per_s",
    11: "replication_bytes_in_per_s",
    12: "replication_bytes_out_per_s",
    13: "produce_requests_per_s",
    14: "fetch_requests_per_s",
    15: "messages_in_per_s",
    19: "request_handler_idle_share",
}
_LAST_NUMBER = 62
_OF_TOPICS = (2, 3, 11, 12, 13, 14, 15)
_OF_PARTITIONS = (4,)
_UNKNOWN = -1

_HEAD, _LENGTH, _PARTITION, _VALUE = 15, 4, 4, 8
"""Bytes of all fields before the name's length, of that, of the partition, and of the value."""

_REASONS = (
    NO_VALUE,
    CUT_OFF,
    "the class or version of a metric is not known: only classes 0 to 2 in version 0 are",
    "the length of the topic's name is more than the record has",
    "the topic's name is not UTF-8",
    "the number of the metric is not one of its class",
    OF_NO_USE,
)

_Numbers = npt.NDArray[np.int64]


def decode(values: pa.Array) -> pa.RecordBatch:
    """Columns `taken_ms`, `broker`, `topic`, `partition`, `name`, `value` and `reason`, one row per value.

    `reason` says why a record is none of a metric of use here, and is NULL otherwise; then the others mean something.
    """
    raw = _Raw.of(values)
    kind, version, number = (raw.numbers(raw.start + place, ">u1") for place in range(3))
    has_topic, has_partition = kind >= TOPIC, kind == PARTITION
    told = np.where(has_topic, raw.numbers(raw.start + _HEAD, ">i4"), 0)
    left = raw.size - _HEAD - _LENGTH
    is_too_long = has_topic & ((told < 0) | (told > left))
    length = np.where(is_too_long, 0, told)
    name_at = raw.start + _HEAD + _LENGTH
    partition_at = np.where(has_topic, name_at + length, raw.start + _HEAD)
    value_at = partition_at + _PARTITION * has_partition
    topic, is_text = raw.texts(name_at, length)
    broken = (
        values.is_null().to_numpy(zero_copy_only=False),
        (raw.size < _HEAD) | (has_topic & (left < 0)),
        (kind > PARTITION) | (version > 0),
        is_too_long,
        ~is_text,
        _CLASSES[number] != kind,
        value_at + _VALUE > raw.start + raw.size,
        _NAMED[number] == "",
    )
    reasons = (0, 1, 2, 3, 4, 5, 1, 6)
    code = np.select(broken, reasons, len(_REASONS))
    return pa.RecordBatch.from_pydict(
        {
            "taken_ms": raw.numbers(raw.start + 3, ">i8"),
            "broker": raw.numbers(raw.start + 11, ">i4").astype(np.int32),
            "topic": pc.if_else(pa.array(has_topic), topic, pa.scalar(None, pa.string())),
            "partition": pa.array(raw.numbers(partition_at, ">i4").astype(np.int32), mask=~has_partition),
            "name": pa.array(_NAMED[number], pa.string()),
            "value": raw.numbers(value_at, ">f8"),
            "reason": pa.array(_REASON_OF[code], pa.string()),
        }
    )


def _classes() -> npt.NDArray[np.int64]:
    found = np.full(256, _UNKNOWN)
    found[: _LAST_NUMBER + 1] = BROKER
    found[list(_OF_TOPICS)] = TOPIC
    found[list(_OF_PARTITIONS)] = PARTITION
    return found


_CLASSES = _classes()
_NAMED = np.array([_NAMES.get(number, "") for number in range(256)], dtype=object)
_REASON_OF = np.array([*_REASONS, None], dtype=object)


@dataclass(frozen=True, slots=True)
class _Raw:
    """The bytes of all values, one after the other, and where each begins."""

    data: npt.NDArray[np.uint8]
    start: _Numbers
    size: _Numbers

    @classmethod
    def of(cls, values: pa.Array) -> _Raw:
        plain = pc.fill_null(values.cast(pa.large_binary()), b"")
        _, offsets, data = plain.buffers()
        ends = np.frombuffer(offsets, np.int64)[plain.offset : plain.offset + len(plain) + 1]
        found = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
        # Fields of a value that is cut off are read before anybody knows that: they must be somewhere.
        padded = np.concatenate([found, np.zeros(_HEAD + _LENGTH + _PARTITION + _VALUE, np.uint8)])
        return cls(padded, ends[:-1], np.diff(ends))

    def numbers(self, place: _Numbers, kind: str) -> npt.NDArray[Any]:
        """A number of this type at each of these places."""
        wanted = np.dtype(kind)
        found = self.data[place[:, np.newaxis] + np.arange(wanted.itemsize)]
        numbers: npt.NDArray[Any] = found.view(wanted)[:, 0].astype(wanted.newbyteorder("="))
        return numbers

    def texts(self, place: _Numbers, length: _Numbers) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
        """The text of that many bytes at each of these places, and whether it is one in UTF-8."""
        ends = np.concatenate([[0], np.cumsum(length)])
        data = self.data[np.repeat(place - ends[:-1], length) + np.arange(ends[-1])]
        buffers = [None, pa.py_buffer(ends.astype(np.int64)), pa.py_buffer(data)]
        found = pa.Array.from_buffers(pa.large_binary(), len(length), buffers)
        try:
            return found.cast(pa.string()), np.ones(len(length), np.bool_)
        except pa.ArrowInvalid:  # which does not say of which
            texts = [_text(value) for value in found.to_pylist()]
            return pa.array(texts, pa.string()), np.array([text is not None for text in texts])


def _text(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None
