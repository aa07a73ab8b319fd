"""PURE. Records of a topic of metrics → rows: each with what it says, or with the reason why it says nothing.

JSON records are objects with the columns of table `metrics`; `cluster_id`, `topic` and `partition` may be left out.
"""

from __future__ import annotations

import json
import math
from enum import StrEnum
from typing import TypeVar

from kreassign.errors import InputError
from kreassign.pipeline.ingest.cruise_control import decode
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
        given = json.loads(value)
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
    return float(value)
