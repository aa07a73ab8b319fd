"""The rules of plausibility of imports: each refuses what it is for, with its reason, and lets the rest through."""

from __future__ import annotations

import math

import pytest

from kreassign.pipeline.ingest.plausible import METRIC_RULES, why_not
from kreassign.pipeline.tables.schemas import METRICS, SAMPLES

NOW_MS = 1_760_000_000_000
GOOD = {"taken_ms": NOW_MS, "broker": 1, "name": "bytes_in_total", "value": 5.0}
BROKEN = {
    "taken_ms is not a time after 1970": {"taken_ms": 0},
    "taken_ms is in seconds, not in milliseconds": {"taken_ms": NOW_MS // 1000},
    "taken_ms is before 2011": {"taken_ms": 3_600_000},
    "taken_ms is in microseconds or smaller, not in milliseconds": {"taken_ms": NOW_MS * 1000},
    "taken_ms is more than an hour ahead": {"taken_ms": NOW_MS + 3_600_001},
    "name is not one of table metrics": {"name": "kafka_server_brokertopicmetrics_bytesin_total"},
    "broker is negative": {"broker": -2},
    "value is not a number": {"value": math.nan},
    "value is negative": {"value": -1e-9},
    "value is infinite": {"value": math.inf},
    "value is a percentage, not a share": {"name": "cpu_share", "value": 93.0},
    "value is more bytes per second than a network can bring": {"name": "bytes_in_per_s", "value": 1e300},
    "value is more per second than a broker can do": {"name": "messages_in_per_s", "value": 1e300},
    "value is more than a counter holds": {"value": 1e300},
    "value is more bytes than a topic has": {"name": "size_bytes", "value": 1e300},
}


def test_every_rule_is_tried() -> None:
    assert list(BROKEN) == [rule.reason for rule in METRIC_RULES]


@pytest.mark.parametrize("reason", BROKEN)
def test_a_metric_that_cannot_be_is_refused_for_this_reason(reason: str) -> None:
    assert why_not(METRICS, GOOD | BROKEN[reason], NOW_MS) == reason


@pytest.mark.parametrize("change", [
    {}, {"value": 0.0}, {"taken_ms": NOW_MS + 3_600_000}, {"broker": -1}, {"value": 2.0**62},
    {"name": "request_handler_idle_share", "value": 1.9}, {"name": "bytes_out_per_s", "value": 1e10},
])  # fmt: skip
def test_what_can_be_is_good(change: dict[str, object]) -> None:
    assert why_not(METRICS, GOOD | change, NOW_MS) is None


def test_of_samples_only_the_time_is_judged_here() -> None:
    assert why_not(SAMPLES, {"taken_ms": NOW_MS // 1000}, NOW_MS) == "taken_ms is in seconds, not in milliseconds"
    assert why_not(SAMPLES, {"taken_ms": NOW_MS}, NOW_MS) is None
