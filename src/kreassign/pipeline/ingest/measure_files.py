"""Read a metrics file in any format: Prometheus pages and answers, answers of Confluent Cloud's Metrics API.

Pure. The content decides the format: JSON documents, one or several in a row (as curl appends them), are answers of
Prometheus or of Confluent Cloud; everything else is a page of metrics.
"""

from __future__ import annotations

import json
import math
import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from kreassign.errors import InputError
from kreassign.model.documents import is_half, refuse_other_kind
from kreassign.model.text import shortened
from kreassign.pipeline.ingest import exporters
from kreassign.pipeline.load.rules import NO_KAFKA_BEFORE_MS

# Prometheus: scraped pages and API answers → readings.
#
# Three formats: a page of metrics (text exposition format, or OpenMetrics), an answer of the query API
# (`/api/v1/query` or `query_range`), and remote-read series written as JSON.
#
# Times on a page are milliseconds in the text format and seconds in OpenMetrics, which ends with `# EOF`. Some
# exporters write seconds into the text format, too: a time before 1975 in milliseconds and after 2011 in seconds is
# taken as seconds.

# An exemplar follows a sample's value as a comment, with its own labels, value and time.
_BEFORE_EXEMPLAR = re.compile(r'((?:[^"#]|"(?:[^"\\]|\\.)*")*)#')
_MOST_NUMBERS = 2
"""A value and its time."""
_NO_POINT = "is no reading: a series with labels, a time and a number"
_OPEN_METRICS = re.compile(r"^# EOF\s*\Z", re.MULTILINE)
_READS_AS_SECONDS = range(NO_KAFKA_BEFORE_MS // 1000, NO_KAFKA_BEFORE_MS // 10)


def read_page(text: str) -> Iterator[exporters.SeriesValue | exporters.BadRow]:
    """Read a page of metrics; comments and blank lines are skipped.

    Line by line: on a whole page the library stops at the first bad line, and it renames counters by the comments.
    Bytes that are not UTF-8 are half surrogates here (`surrogateescape`), and make their line a bad row.
    """
    is_open_metrics = _OPEN_METRICS.search(text) is not None
    # Not by `splitlines`: labels may hold U+0085, U+2028 and form feeds.
    for number, line in enumerate(text.split("\n"), start=1):
        if (stripped := line.strip()) and not stripped.startswith("#"):
            yield from _read_line(stripped, f"line {number}", is_open_metrics=is_open_metrics)


def _read_line(line: str, place: str, *, is_open_metrics: bool) -> Iterator[exporters.SeriesValue | exporters.BadRow]:
    if is_half(line):
        yield exporters.BadRow(place, exporters.NO_TEXT, line)
        return
    before = _BEFORE_EXEMPLAR.match(line)
    sample = before[1].rstrip() if before else line
    try:
        families = list(text_string_to_metric_families(sample))
    except ValueError:
        families = []
    # The library also takes digits of other scripts behind the labels, and of more than two numbers the last as time.
    numbers = sample.rpartition("}")[2] if "}" in sample else sample.partition(" ")[2]
    is_plain = (line.rpartition("}")[2] if "}" in line else line).isascii() and len(numbers.split()) <= _MOST_NUMBERS
    samples = [sample for family in families for sample in family.samples if is_plain]
    if not samples:
        yield exporters.BadRow(place, exporters.NO_READING, line)
    for name, labels, value, timestamp, *_ in samples:
        # The library reads the time as milliseconds.
        at_s = None if timestamp is None else _seconds(float(timestamp) * 1000, is_open_metrics=is_open_metrics)
        yield exporters.reading(name, labels, at_s, value, place) or exporters.BadRow(place, exporters.NO_READING, line)


def _seconds(number: float, *, is_open_metrics: bool) -> float:
    reads_as_seconds = _READS_AS_SECONDS.start <= number < _READS_AS_SECONDS.stop
    return number if is_open_metrics or reads_as_seconds else number / 1000


def read_answer(document: Any) -> Iterator[exporters.SeriesValue | exporters.BadRow]:
    """Read an answer of the query API, or remote-read series. Raises InputError for anything else."""
    if isinstance(document, dict) and document.get("status") == "error":
        raise InputError(f"this is an error of Prometheus, not an answer: {shortened(str(document.get('error')))}")
    try:
        points = list(_points(document))
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as error:
        raise InputError(f"{_NEITHER} ({error!r})") from error
    for place, labels, at_s, value in points:
        name = labels.get("__name__") if isinstance(labels, dict) else None
        found = None if name is None else exporters.reading(name, labels, at_s, value, place)
        is_nameless = isinstance(labels, dict) and name is None
        why = "has no name; query the series themselves, not a function of them" if is_nameless else _NO_POINT
        yield found or exporters.BadRow(place, why, json.dumps([labels, at_s, value]))


def _points(content: Any) -> Iterator[tuple[str, Any, float, Any]]:
    """Place, labels, seconds and value of every point. Native histograms have none; a series may have become one."""
    if "timeseries" in content:
        for number, series in enumerate(content["timeseries"], start=1):
            labels = {label["name"]: label["value"] for label in series["labels"]}
            for point in () if "samples" not in series and "histograms" in series else series["samples"]:
                yield f"series {number}", labels, _time(point["timestamp"]) / 1000, point["value"]
        return
    for number, series in enumerate(content["data"]["result"], start=1):
        if not series.keys() & {"value", "values"} and series.keys() & {"histogram", "histograms"}:
            continue
        points = series["values"] if "values" in series else [series["value"]]
        yield from ((f"series {number}", series["metric"], _time(at_s), value) for at_s, value in points)


def _time(value: Any) -> float:
    """A time; NaN, which is none, for what is no number."""
    number = exporters.number_of(value)
    return math.nan if number is None else number


# Answers of Confluent Cloud's Metrics API (`/v2/metrics/cloud/query`) → readings, named as on its export page.
#
# An answer has times, values and the requested labels, but not its metric or interval length. The query has both, so
# they are read together, joined by `jq -s add query.json answer.json`. A value counts what came in the interval that
# begins at its time; the reading is per minute, at the interval's end, and stands for an hour at most. `retained_bytes`
# is a level, and is read by the minute only: over longer intervals the API may add levels up.

_METRIC = "io.confluent.kafka.server/"
_GRANULARITY = re.compile(r"PT(\d{1,4})([MH])|P(\d{1,2})D", re.ASCII)
_SECONDS = {"M": 60, "H": 3600}
_MOST_SECONDS = 3600
_LEVELS = ("retained_bytes",)
_NO_ENTRY = "is no reading: a number and a time with its zone, such as 2025-06-15T15:00:00Z"
_LABELS = {
    "metric.topic": "topic",
    "metric.partition": "partition",
    "metric.type": "type",
    "resource.kafka.id": "kafka_id",
    "metric.principal_id": "principal_id",
}


def read_confluent(document: Mapping[str, Any]) -> Iterator[exporters.SeriesValue | exporters.BadRow]:
    """Readings of an answer joined with its query. Raises InputError without the query."""
    name, interval_s = _metric(document), _interval_s(document)
    filtered = _kafka_id(document.get("filter"))
    is_level = name in _LEVELS
    if is_level and interval_s != 60:
        raise InputError(f"{name} is a level; query it with the granularity PT1M")
    for number, (labels, entry) in enumerate(_entries(document["data"]), start=1):
        place = f"entry {number}"
        known = {"kafka_id": filtered} if filtered else {}
        known |= {_LABELS[key]: str(text) for key, text in labels.items() if key in _LABELS and text is not None}
        yield _reading(name, known, entry, place, interval_s) or exporters.BadRow(
            place, _NO_ENTRY, json.dumps(labels | {"point": entry})
        )
    if _has_more(document):
        yield exporters.BadRow(
            "the answer", "has further pages that are not in the file", json.dumps(document.get("meta"))
        )


def _reading(
    name: str, labels: Mapping[str, str], entry: Any, place: str, interval_s: int
) -> exporters.SeriesValue | None:
    try:
        begun = datetime.fromisoformat(entry["timestamp"])
        begun_s, value = begun.timestamp(), exporters.number_of(entry["value"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    # Without a zone, Python takes it for the local time of this machine.
    if value is None or begun.tzinfo is None:
        return None
    per_minute = value if name in _LEVELS else value * 60 / interval_s
    return exporters.reading(f"{exporters.CONFLUENT}{name}", labels, begun_s + interval_s, per_minute, place)


def _entries(data: list[Any]) -> Iterator[tuple[dict[str, Any], Any]]:
    """Labels and point of every entry, in the flat and the grouped format."""
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
    if found is None or not seconds:
        raise InputError("the query of this answer has no granularity such as PT1M, so that its values have no unit")
    if seconds > _MOST_SECONDS:
        raise InputError(f"the granularity {found[0]} is more than an hour, which no load can use; query it with PT1M")
    return seconds


def _kafka_id(condition: Any) -> str | None:
    """The cluster id, if the query's filter asks for exactly one cluster."""
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


_BEGIN = '{"status":'
_NEITHER = "this is neither an answer of Prometheus' query API nor series of remote read as JSON"


def parse(content: bytes) -> exporters.Parsed:
    """Read a file of any of the formats. Raises InputError if it is JSON of another kind.

    An unreadable document among several becomes a bad row.
    """
    text = _decoded(content)
    if text.lstrip()[:1] not in ("{", "["):
        return exporters.parsed(read_page(text))
    found: list[exporters.SeriesValue | exporters.BadRow] = []
    refused: list[InputError] = []
    for number, document in enumerate(_documents(text), start=1):
        try:
            found.extend(_read(document))
        except InputError as error:
            refused.append(error)
            written = document.text if isinstance(document, _CutOff) else json.dumps(document)
            found.append(exporters.BadRow(f"document {number}", str(error), written))
    if refused and len(found) == len(refused):
        raise refused[0]
    return exporters.parsed(found)


def _read(document: Any) -> Iterator[exporters.SeriesValue | exporters.BadRow]:
    if isinstance(document, _CutOff):
        raise InputError(f"{_NEITHER} ({document.why})")
    # In an answer of Confluent's API, `data` is a list.
    is_confluent = isinstance(document, dict) and isinstance(document.get("data"), list)
    return read_confluent(document) if is_confluent else read_answer(document)


@dataclass(frozen=True, slots=True)
class _CutOff:
    """Text that is not JSON, up to the next possible start of a document."""

    text: str
    why: str


def _documents(text: str) -> Iterator[Any]:
    decoder, place = json.JSONDecoder(), 0
    while rest := text[place:].lstrip():
        place = len(text) - len(rest)
        try:
            document, length = decoder.raw_decode(rest)
        except (ValueError, RecursionError) as error:
            # curl left a truncated answer; the next one that it appended may be whole.
            again = rest.find(_BEGIN, 1)
            length = len(rest) if again < 0 else again
            document = _CutOff(rest[:length], repr(error))
        yield document
        place += length


def _decoded(content: bytes) -> str:
    """Decode the file; bytes that are not UTF-8 become half surrogates, which spoil their line only."""
    if content.startswith((BOM_UTF16_BE, BOM_UTF16_LE)):  # what `curl … > file` writes in Windows PowerShell
        return content.decode("utf-16", errors="replace")
    refuse_other_kind(content)
    return content.removeprefix(BOM_UTF8).decode(errors="surrogateescape")
