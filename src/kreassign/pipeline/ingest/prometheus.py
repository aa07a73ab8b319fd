"""PURE. What Prometheus has of a broker's JMX metrics → rows of table `metrics`.

Three formats are read: a scrape (Prometheus' text exposition format), a response of the query API (`/api/v1/query` or
`query_range`), and series as remote read has them, written as JSON. Names of metrics depend on an operator's rules for
the JMX exporter; those of the exporter's own example rules and of no rules at all are known, in upper or lower case.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Timestamp

from kreassign.errors import InputError
from kreassign.model.strict_json import is_half
from kreassign.pipeline.tables.schemas import Row

_COUNTERS = {
    "bytesin": "bytes_in_total",
    "bytesout": "bytes_out_total",
    "messagesin": "messages_in_total",
    "replicationbytesin": "replication_bytes_in_total",
    "replicationbytesout": "replication_bytes_out_total",
}
_TOPIC_METRIC = re.compile(r"kafka_server_brokertopicmetrics_(?:(?P<bean>[a-z]+?)(?:persec)?_)?(?:total|count)")
END_OF_TIME_S = 253_402_300_800
"""The end of the year 9999: no folder of an hour is after it."""
_GAUGES = {
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent": "request_handler_idle_share",
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent": "request_handler_idle_share",
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_oneminuterate": "request_handler_idle_share",
    "kafka_network_socketserver_networkprocessoravgidle_percent": "network_idle_share",
    "kafka_network_socketserver_networkprocessoravgidlepercent": "network_idle_share",
    "kafka_network_socketserver_networkprocessoravgidlepercent_value": "network_idle_share",
    "process_cpu_seconds_total": "cpu_seconds_total",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """One value of one series; `taken_ms` is None where a scrape leaves it to the time of the scrape."""

    name: str
    labels: Mapping[str, str]
    value: float
    taken_ms: int | None


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a file holds: readings, and the lines or entries that are none."""

    readings: tuple[Reading, ...]
    unreadable: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Origin:
    """What a file does not say of itself: the cluster, the time of a scrape, and the broker of each instance.

    `only_broker` is for files of one broker; None where `brokers` says it by the label `instance`.
    """

    cluster_id: str
    taken_ms: int
    only_broker: int | None
    brokers: Mapping[str, int]

    def broker_of(self, reading: Reading) -> int | None:
        """The broker of a reading, or None when nobody said it."""
        if self.only_broker is not None:
            return self.only_broker
        return self.brokers.get(reading.labels.get("instance", ""))


def parse(text: str) -> Parsed:
    """Read a file of any of the three forms. Raises InputError when it is JSON of another kind."""
    return parse_json(text) if text.lstrip()[:1] in ("{", "[") else parse_text(text)


def parse_text(text: str) -> Parsed:
    """Read a scrape; comments and blank lines are skipped.

    Line by line: on a whole page the library stops at the first bad line, and it renames counters by the comments.
    """
    readings: list[Reading] = []
    unreadable: list[str] = []
    for line in (line.strip() for line in text.splitlines()):
        if line and not line.startswith("#"):
            found = _line_readings(line)
            readings.extend(found)
            if not found:
                unreadable.append(line)
    return Parsed(tuple(readings), tuple(unreadable))


def _line_readings(line: str) -> list[Reading]:
    try:
        samples = [sample for family in text_string_to_metric_families(line) for sample in family.samples]
    except ValueError:
        return []
    found = (_reading(sample.name, sample.labels, sample.timestamp, sample.value) for sample in samples)
    return [reading for reading in found if reading is not None]


def _reading(name: object, labels: Mapping[str, object], at_s: float | Timestamp | None, value: Any) -> Reading | None:
    """One reading; None for what is none: no finite number, no text, or at a time that no calendar has."""
    number, taken_s = _number(value), None if at_s is None else float(at_s)
    texts = {key: text for key, text in labels.items() if isinstance(text, str) and not is_half(text)}
    if number is None or not isinstance(name, str) or len(texts) < len(labels):
        return None
    if taken_s is not None and not 0 <= taken_s < END_OF_TIME_S:
        return None
    return Reading(name, texts, number, None if taken_s is None else round(taken_s * 1000))


def parse_json(text: str) -> Parsed:
    """Read an answer of the query API, or series as remote read has them."""
    try:
        points = list(_series(json.loads(text)))
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise InputError(
            f"this is neither an answer of Prometheus' query API nor series of remote read as JSON ({error!r})"
        ) from error
    readings, unreadable = [], []
    for labels, at_s, value in points:
        found = _reading(labels.get("__name__"), labels, at_s, value) if isinstance(labels, dict) else None
        if found is None:
            unreadable.append(json.dumps([labels, at_s, value]))
        else:
            readings.append(found)
    return Parsed(tuple(readings), tuple(unreadable))


def metric_rows(readings: Iterable[Reading], origin: Origin) -> Iterator[Row]:
    """Rows of table `metrics`: of the known metrics of known brokers."""
    for reading in readings:
        name, broker = metric_name(reading), origin.broker_of(reading)
        if name is not None and broker is not None:
            yield {
                "cluster_id": origin.cluster_id,
                "taken_ms": origin.taken_ms if reading.taken_ms is None else reading.taken_ms,
                "broker": broker,
                "topic": reading.labels.get("topic"),
                "partition": None,
                "name": name,
                "value": reading.value,
            }


def metric_name(reading: Reading) -> str | None:
    """Our name of a metric, or None for one that is of no use here."""
    text = reading.name.lower()
    if text in _GAUGES:
        return _GAUGES[text]
    found = _TOPIC_METRIC.fullmatch(text)
    if found is None:
        return None
    # Without rules, the exporter leaves the name of the bean in a label.
    bean = found["bean"] or reading.labels.get("name", "").lower().removesuffix("persec")
    return _COUNTERS.get(bean)


def _series(content: Any) -> Iterator[tuple[Any, float, Any]]:
    """Labels, seconds and value of every point."""
    if "timeseries" in content:
        for series in content["timeseries"]:
            labels = {label["name"]: label["value"] for label in series["labels"]}
            yield from ((labels, int(point["timestamp"]) / 1000, point["value"]) for point in series["samples"])
        return
    for series in content["data"]["result"]:
        points = series["values"] if "values" in series else [series["value"]]
        yield from ((series["metric"], float(at_s), value) for at_s, value in points)


def _number(text: Any) -> float | None:
    """A finite number; NaN is what Prometheus has for a series that has ended."""
    try:
        value = float(text)
    except (TypeError, ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None
