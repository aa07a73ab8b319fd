"""PURE. Answers of Confluent Cloud's Metrics API (`/v2/metrics/cloud/query`) → readings, as its export page has them.

An answer has times, values and the labels that were asked for, but names neither its metric nor how long an interval
is. The query does; so both are read together, as `jq -s add query.json answer.json` joins them. A value counts what
came in the interval that begins at its time, and is told per minute at its end. What is retained is a level, and is
read by the minute only: over longer intervals the API may add levels up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from kreassign.errors import InputError
from kreassign.pipeline.ingest.exporters import CONFLUENT
from kreassign.pipeline.ingest.readings import NO_READING, BadRow, Reading, reading

_METRIC = "io.confluent.kafka.server/"
_GRANULARITY = re.compile(r"PT(\d{1,4})([MH])|P(\d{1,2})D", re.ASCII)
_SECONDS = {"M": 60, "H": 3600}
_LEVELS = ("retained_bytes",)
_LABELS = {
    "metric.topic": "topic",
    "metric.partition": "partition",
    "metric.type": "type",
    "resource.kafka.id": "kafka_id",
    "metric.principal_id": "principal_id",
}


def is_confluent(document: Any) -> bool:
    """Whether a JSON document is an answer of this API: its data are a list."""
    return isinstance(document, dict) and isinstance(document.get("data"), list)


def read_confluent(document: Mapping[str, Any]) -> Iterator[Reading | BadRow]:
    """Readings of an answer that was joined with its query. Raises InputError without the query."""
    name, interval_s = _metric(document), _interval_s(document)
    filtered = _kafka_id(document.get("filter"))
    is_level = name in _LEVELS
    if is_level and interval_s != 60:
        raise InputError(f"{name} is a level; query it with the granularity PT1M")
    for number, (labels, entry) in enumerate(_entries(document["data"]), start=1):
        place = f"entry {number}"
        known = {"kafka_id": filtered} if filtered else {}
        known |= {_LABELS[key]: str(text) for key, text in labels.items() if key in _LABELS and text is not None}
        yield _reading(name, known, entry, place, interval_s) or BadRow(
            place, NO_READING, json.dumps(labels | {"point": entry})
        )
    if _has_more(document):
        yield BadRow("the answer", "has further pages that are not in the file", json.dumps(document.get("meta")))


def _reading(name: str, labels: Mapping[str, str], entry: Any, place: str, interval_s: int) -> Reading | None:
    try:
        begun_s = datetime.fromisoformat(entry["timestamp"]).timestamp()
        value = float(entry["value"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    per_minute = value if name in _LEVELS else value * 60 / interval_s
    return reading(f"{CONFLUENT}{name}", labels, begun_s + interval_s, per_minute, place)


def _entries(data: list[Any]) -> Iterator[tuple[dict[str, Any], Any]]:
    """Labels and point of every entry, in the flat format and in the grouped one."""
    for entry in data:
        labels = {key: value for key, value in entry.items() if key in _LABELS} if isinstance(entry, dict) else {}
        points = entry.get("points") if isinstance(entry, dict) else None
        for point in points if isinstance(points, list) else [entry]:
            yield labels, point


def _metric(document: Mapping[str, Any]) -> str:
    try:
        (aggregation,) = document["aggregations"]
        name = aggregation["metric"]
    except (KeyError, TypeError, ValueError):
        name = None
    if not isinstance(name, str) or not name.startswith(_METRIC):
        raise InputError(
            "this answer of Confluent's Metrics API does not name its metric; join it with its query, which has one "
            "aggregation: jq -s add query.json answer.json"
        )
    return name.removeprefix(_METRIC)


def _interval_s(document: Mapping[str, Any]) -> int:
    found = _GRANULARITY.fullmatch(str(document.get("granularity")))
    seconds = 0 if found is None else int(found[3]) * 86_400 if found[3] else int(found[1]) * _SECONDS[found[2]]
    if not seconds:
        raise InputError("the query of this answer has no granularity such as PT1M, so that its values have no unit")
    return seconds


def _kafka_id(condition: Any) -> str | None:
    """The one cluster that the query asks for, if that is what its filter says."""
    if not isinstance(condition, dict):
        return None
    if condition.get("field") == "resource.kafka.id" and condition.get("op") == "EQ":
        return str(condition.get("value"))
    inner = condition.get("filters")
    if condition.get("op") != "AND" or not isinstance(inner, list):
        return None
    return next((found for one in inner if (found := _kafka_id(one))), None)


def _has_more(document: Mapping[str, Any]) -> bool:
    meta = document.get("meta")
    pages = meta.get("pagination") if isinstance(meta, dict) else None
    return isinstance(pages, dict) and bool(pages.get("next_page_token"))
