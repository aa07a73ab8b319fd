"""PURE. Records of a topic of metrics → rows of table `metrics`: each a row, or the reason why it is none.

JSON records are objects with the columns of table `metrics`; `cluster_id`, `topic` and `partition` may be left out.
Records of Cruise Control's metrics reporter are binary, big-endian, as the comments of its `toBuffer` describe them:

    byte    class: 0 broker, 1 topic, 2 partition
    byte    version: 0
    byte    metric, a number for each name
    long    time in milliseconds
    int     broker
    int     length of the topic's name, then the name in UTF-8      (classes 1 and 2)
    int     partition                                               (class 2)
    double  value

Rates are per second over the reporter's interval, sizes in bytes, CPU is a share of all cores.
"""

from __future__ import annotations

import math
import struct
from enum import StrEnum
from typing import TypeVar

from kreassign.errors import InputError
from kreassign.model import strict_json
from kreassign.pipeline.tables.schemas import Row

Value = TypeVar("Value")
_LARGEST_INT = 2**31 - 1
_LARGEST_LONG = 2**63 - 1


class RecordForm(StrEnum):
    """What the values of the topic are."""

    JSON = "json"
    CRUISE_CONTROL = "cruise-control"


def read_record(value: bytes | None, form: RecordForm, cluster_id: str, *, latest_ms: int) -> Row | None:
    """A row of table `metrics`, or None for a metric of no use. Raises InputError, which says what is wrong."""
    if value is None:
        raise InputError("a record has no value")
    row = _json_row(value, cluster_id) if form is RecordForm.JSON else decode(value, cluster_id)
    if row is not None:
        _check(row, latest_ms)
    return row


def _check(row: Row, latest_ms: int) -> None:
    if not math.isfinite(row["value"]):
        raise InputError(f"value {row['value']} is not a finite number")
    if row["taken_ms"] <= 0:
        raise InputError("taken_ms is not a time after 1970")
    if row["taken_ms"] > latest_ms:
        raise InputError("taken_ms is after the time at which the record was written")


def _json_row(value: bytes, cluster_id: str) -> Row:
    try:
        given = strict_json.loads(value.decode())
    except ValueError as error:
        raise InputError(f"a record is not JSON: {error}") from error
    if not isinstance(given, dict):
        raise InputError("a record is not a JSON object")
    return {
        "cluster_id": _text(given, "cluster_id") or cluster_id,
        "taken_ms": _required(_whole(given, "taken_ms", _LARGEST_LONG), "taken_ms"),
        "broker": _required(_whole(given, "broker", _LARGEST_INT), "broker"),
        "topic": _text(given, "topic"),
        "partition": _whole(given, "partition", _LARGEST_INT),
        "name": _required(_text(given, "name"), "name"),
        "value": _number(given),
    }


def _required(value: Value | None, name: str) -> Value:
    if value is None:
        raise InputError(f"{name} is missing")
    return value


def _text(given: Row, name: str) -> str | None:
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise InputError(f"{name} is not a text")
    return value


def _whole(given: Row, name: str, largest: int) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= largest:
        raise InputError(f"{name} is not a whole number from 0 to {largest}")
    return value


def _number(given: Row) -> float:
    value = given.get("value")
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise InputError("value is not a number")
    try:
        return float(value)
    except OverflowError as error:
        raise InputError("value is not a finite number") from error


BROKER, TOPIC, PARTITION = range(3)
_HEAD = struct.Struct(">BBBqi")
_LENGTH = struct.Struct(">i")
_VALUE = struct.Struct(">d")
# Only metrics of use here; the numbers of the others (times of requests, queues) are known to nobody below.
_NAMES = {
    0: "bytes_in_per_s",
    1: "bytes_out_per_s",
    2: "bytes_in_per_s",
    3: "bytes_out_per_s",
    4: "size_bytes",
    5: "cpu_share",
    6: "replication_bytes_in_per_s",
    7: "replication_bytes_out_per_s",
    10: "messages_in_per_s",
    11: "replication_bytes_in_per_s",
    12: "replication_bytes_out_per_s",
    15: "messages_in_per_s",
    19: "request_handler_idle_share",
}


def decode(value: bytes, cluster_id: str) -> Row | None:
    """The row of a record's value; None for a metric of no use here. Raises InputError, which says what is wrong."""
    try:
        return _decode(value, cluster_id)
    except (struct.error, UnicodeDecodeError) as error:
        raise InputError(f"a metric of {len(value)} bytes is cut off or damaged: {error}") from error


def _decode(value: bytes, cluster_id: str) -> Row | None:
    kind, version, metric, taken_ms, broker = _HEAD.unpack_from(value)
    if kind > PARTITION or version > 0:
        raise InputError(f"class {kind} and version {version} of a metric are not known: only 0 to 2, in version 0")
    place, topic, partition = _HEAD.size, None, None
    if kind != BROKER:
        (length,) = _LENGTH.unpack_from(value, place)
        place += _LENGTH.size
        if not 0 <= length <= len(value) - place:
            raise InputError(f"a metric of {len(value)} bytes claims a topic's name of {length}")
        topic = value[place : place + length].decode()
        place += length
    if kind == PARTITION:
        (partition,) = _LENGTH.unpack_from(value, place)
        place += _LENGTH.size
    (number,) = _VALUE.unpack_from(value, place)
    name = _NAMES.get(metric)
    key = {"cluster_id": cluster_id, "taken_ms": taken_ms, "broker": broker, "topic": topic, "partition": partition}
    return None if name is None else key | {"name": name, "value": number}
