from __future__ import annotations

import json
from typing import Any

import pytest

from kreassign.errors import InputError
from kreassign.pipeline.ingest.metric_records import RecordForm, read_record
from tests.pipeline.ingest.test_cruise_control import BY_HAND

GOOD: dict[str, Any] = {"taken_ms": 5000, "broker": 1, "topic": "t", "name": "bytes_in_per_s", "value": 3}


def read(value: bytes | None, form: RecordForm = RecordForm.JSON) -> dict[str, Any] | None:
    return read_record(value, form, "c", latest_ms=2_000_000_000_000)


def test_a_json_record_is_a_row_and_may_name_its_cluster() -> None:
    row = read(json.dumps(GOOD).encode())
    assert row == {**GOOD, "cluster_id": "c", "partition": None, "value": 3.0}
    other = read(json.dumps(GOOD | {"cluster_id": "d", "partition": 4}).encode())
    assert other is not None
    assert (other["cluster_id"], other["partition"]) == ("d", 4)


def test_a_record_of_cruise_control_is_read_by_its_layout() -> None:
    row = read(BY_HAND, RecordForm.CRUISE_CONTROL)
    assert row is not None
    assert (row["name"], row["value"]) == ("size_bytes", 100.0)


@pytest.mark.parametrize(("change", "reason"), [
    ({"taken_ms": None}, "taken_ms is missing"),
    ({"taken_ms": 0}, "taken_ms is not a time after 1970"),
    ({"taken_ms": 3_000_000_000_000}, "after the time at which the record was written"),
    ({"broker": -1}, "broker is not a whole number"),
    ({"broker": True}, "broker is not a whole number"),
    ({"broker": 2**31}, "broker is not a whole number"),
    ({"topic": 3}, "topic is not a text"),
    ({"name": None}, "name is missing"),
    ({"value": "3"}, "value is not a number"),
    ({"value": float("nan")}, "NaN is not a number in JSON"),
    ({"value": 10**400}, "value is not a finite number"),
    ({"name": "\ud800"}, "half of a surrogate pair"),
])  # fmt: skip
def test_a_record_that_says_nothing_is_refused_with_the_reason(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        read(json.dumps(GOOD | change).encode())


@pytest.mark.parametrize(("value", "reason"), [
    (None, "no value"), (b"{", "not JSON"), (b"\xff", "not JSON"), (b"[]", "not a JSON object"),
    (b'{"name":' + b"[" * 100_000, "nested too deeply"), (b'{"value": 1e999}', "1e999 is not a finite number"),
])  # fmt: skip
def test_what_is_no_object_is_refused(value: bytes | None, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        read(value)
