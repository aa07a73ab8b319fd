"""PURE. What Prometheus scrapes and what it answers → readings.

Three formats: a page of metrics (the text exposition format, or OpenMetrics), an answer of the query API
(`/api/v1/query` or `query_range`), and series as remote read has them, written as JSON.

Times on a page are milliseconds in the text format and seconds in OpenMetrics, which ends with `# EOF`. Some exporters
write seconds into the text format, too: a time that in milliseconds is before 1975 and in seconds after 2011 is meant
in seconds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from kreassign.errors import InputError
from kreassign.model.printable import shortened
from kreassign.model.strict_json import is_half
from kreassign.pipeline.ingest.readings import NO_READING, NO_TEXT, BadRow, Reading, reading
from kreassign.pipeline.load.rules import NO_KAFKA_BEFORE_MS

# An exemplar follows the value of a sample as a comment of its own, with labels, a value and a time of its own.
_BEFORE_EXEMPLAR = re.compile(r'((?:[^"#]|"(?:[^"\\]|\\.)*")*)#')
_OPEN_METRICS = re.compile(r"^# EOF\s*\Z", re.MULTILINE)
_READS_AS_SECONDS = range(NO_KAFKA_BEFORE_MS // 1000, NO_KAFKA_BEFORE_MS // 10)


def read_page(text: str) -> Iterator[Reading | BadRow]:
    """Read a page of metrics; comments and blank lines are skipped.

    Line by line: on a whole page the library stops at the first bad line, and it renames counters by the comments.
    Bytes that are not UTF-8 are half surrogates here (`surrogateescape`), and cost their line.
    """
    is_open_metrics = _OPEN_METRICS.search(text) is not None
    for number, line in enumerate(text.splitlines(), start=1):
        if (stripped := line.strip()) and not stripped.startswith("#"):
            yield from _read_line(stripped, f"line {number}", is_open_metrics=is_open_metrics)


def _read_line(line: str, place: str, *, is_open_metrics: bool) -> Iterator[Reading | BadRow]:
    if is_half(line):
        yield BadRow(place, NO_TEXT, line)
        return
    before = _BEFORE_EXEMPLAR.match(line)
    try:
        families = list(text_string_to_metric_families(before[1].rstrip() if before else line))
    except ValueError:
        families = []
    samples = [sample for family in families for sample in family.samples]
    if not samples:
        yield BadRow(place, NO_READING, line)
    for name, labels, value, timestamp, *_ in samples:
        # The library takes it for milliseconds.
        at_s = None if timestamp is None else _seconds(float(timestamp) * 1000, is_open_metrics=is_open_metrics)
        yield reading(name, labels, at_s, value, place) or BadRow(place, NO_READING, line)


def _seconds(number: float, *, is_open_metrics: bool) -> float:
    return number if is_open_metrics or _reads_as_seconds(number) else number / 1000


def _reads_as_seconds(number: float) -> bool:
    return _READS_AS_SECONDS.start <= number < _READS_AS_SECONDS.stop


def read_answer(document: Any) -> Iterator[Reading | BadRow]:
    """Read an answer of the query API, or series as remote read has them. Raises InputError when it is neither."""
    if isinstance(document, dict) and document.get("status") == "error":
        raise InputError(f"this is an error of Prometheus, not an answer: {shortened(str(document.get('error')))}")
    try:
        points = list(_points(document))
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as error:
        raise InputError(
            f"this is neither an answer of Prometheus' query API nor series of remote read as JSON ({error!r})"
        ) from error
    for place, labels, at_s, value in points:
        name = labels.get("__name__") if isinstance(labels, dict) else None
        found = None if name is None else reading(name, labels, at_s, value, place)
        yield found or BadRow(place, _why_none(labels, name), json.dumps([labels, at_s, value]))


def _why_none(labels: object, name: object) -> str:
    if isinstance(labels, dict) and name is None:
        return "has no name; query the series themselves, not a function of them"
    return NO_READING


def _points(content: Any) -> Iterator[tuple[str, Any, float, Any]]:
    """Place, labels, seconds and value of every point. Series of native histograms have none."""
    if "timeseries" in content:
        for number, series in enumerate(content["timeseries"], start=1):
            labels = {label["name"]: label["value"] for label in series["labels"]}
            for point in series["samples"]:
                yield f"series {number}", labels, int(point["timestamp"]) / 1000, point["value"]
        return
    for number, series in enumerate(content["data"]["result"], start=1):
        if "histogram" in series or "histograms" in series:
            continue
        points = series["values"] if "values" in series else [series["value"]]
        yield from ((f"series {number}", series["metric"], float(at_s), value) for at_s, value in points)
