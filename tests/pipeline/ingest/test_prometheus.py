from __future__ import annotations

import json

import pytest

from kreassign.errors import InputError
from kreassign.pipeline.ingest.prometheus import Origin, Parsed, metric_rows, parse

SCRAPE = r"""
# HELP kafka_server_brokertopicmetrics_bytesin_total by topic
# TYPE kafka_server_brokertopicmetrics_bytesin_total counter
kafka_server_brokertopicmetrics_bytesin_total{topic="orders",} 1.5E6
kafka_server_brokertopicmetrics_bytesout_total{topic="or\"ders"} 7 1700000000123
kafka_server_BrokerTopicMetrics_Count{name="MessagesInPerSec",topic="orders",} 12.0
kafka_server_brokertopicmetrics_totalproducerequests_total{topic="orders"} 3
kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent 0.93
kafka_network_socketserver_networkprocessoravgidle_percent 0.5
process_cpu_seconds_total 88.25
jvm_threads_current 41
kafka_server_brokertopicmetrics_bytesin_total{topic="gone"} NaN
half a line
"""
HERE = Origin("c", 5000, 3, {})


def found(parsed: Parsed, origin: Origin = HERE) -> list[tuple[object, ...]]:
    names = ("broker", "topic", "taken_ms", "name", "value")
    return [tuple(row[name] for name in names) for row in metric_rows(parsed.readings, origin)]


def test_a_scrape_is_read_line_by_line_and_what_is_no_reading_is_kept_apart() -> None:
    parsed = parse(SCRAPE)
    assert found(parsed) == [
        (3, "orders", 5000, "bytes_in_total", 1.5e6),
        (3, 'or"ders', 1_700_000_000_123, "bytes_out_total", 7.0),
        (3, "orders", 5000, "messages_in_total", 12.0),
        (3, None, 5000, "request_handler_idle_share", 0.93),
        (3, None, 5000, "network_idle_share", 0.5),
        (3, None, 5000, "cpu_seconds_total", 88.25),
    ]
    assert parsed.unreadable == ('kafka_server_brokertopicmetrics_bytesin_total{topic="gone"} NaN', "half a line")


@pytest.mark.parametrize(
    ("line", "name", "labels"),
    [
        ('up{topic="a}b"} 1', "up", {"topic": "a}b"}),
        ('up{topic="a"}1', "up", {"topic": "a"}),
        ('up {topic="x\\\\y\\n",} 1', "up", {"topic": "x\\y\n"}),
        ('{"up", topic="a"} 1', "up", {"topic": "a"}),
    ],
)
def test_labels_are_read_as_prometheus_reads_them(line: str, name: str, labels: dict[str, str]) -> None:
    (reading,) = parse(f"# a scrape\n{line}").readings
    assert (reading.name, reading.labels, reading.value, reading.taken_ms) == (name, labels, 1.0, None)


@pytest.mark.parametrize("line", ["up{a=b} 1", 'up{a-b="c"} 1', 'up{a="b",a="c"} 1', "café 1", "up 1_000", "up one"])
def test_a_bad_line_is_kept_apart_and_the_rest_of_the_page_read(line: str) -> None:
    parsed = parse(f'before 1\n{line}\nafter{{a="b"}} 2')
    assert parsed.unreadable == (line,)
    assert [reading.name for reading in parsed.readings] == ["before", "after"]


def test_a_counter_keeps_the_name_that_it_has_on_the_page() -> None:
    parsed = parse("# TYPE requests_count counter\nrequests_count 3")
    assert [reading.name for reading in parsed.readings] == ["requests_count"]


def labels(topic: str, instance: str) -> dict[str, str]:
    return {"__name__": "kafka_server_brokertopicmetrics_bytesout_total", "topic": topic, "instance": instance}


def test_answers_of_the_query_api_name_their_instance() -> None:
    matrix = {"metric": labels("t", "b1:7071"), "values": [[10.5, "1"], [20.5, "2"], [30.5, "+Inf"]]}
    vector = {"metric": labels("u", "b9:7071"), "value": [40, "3"]}
    parsed = parse(json.dumps({"status": "success", "data": {"result": [matrix, vector]}}))
    origin = Origin("c", 0, None, {"b1:7071": 1})
    assert found(parsed, origin) == [
        (1, "t", 10_500, "bytes_out_total", 1.0),
        (1, "t", 20_500, "bytes_out_total", 2.0),
    ]
    assert len(parsed.readings) == 3
    assert len(parsed.unreadable) == 1


def test_series_of_remote_read_have_times_in_milliseconds() -> None:
    pairs = [{"name": name, "value": value} for name, value in labels("t", "b1:7071").items()]
    series = {"labels": pairs, "samples": [{"timestamp": "1234", "value": 9}]}
    assert found(parse(json.dumps({"timeseries": [series]}))) == [(3, "t", 1234, "bytes_out_total", 9.0)]


@pytest.mark.parametrize("text", ["{", "[]", '{"data": 3}', '{"data": {"result": [{"metric": {}}]}}', "[" * 100_000])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="neither an answer of Prometheus' query API nor series"):
        parse(text)


@pytest.mark.parametrize(("labels", "at_s", "value"), [
    ({"__name__": 5}, 1, "1"),
    ({"__name__": "up", "topic": ["t"]}, 1, "1"),
    ({"__name__": "up", "topic": "\ud800"}, 1, "1"),
    (["__name__"], 1, "1"),
    ({"__name__": "up"}, "inf", "1"),
    ({"__name__": "up"}, 1e15, "1"),
    ({"__name__": "up"}, -1, "1"),
    ({"__name__": "up"}, 1, "NaN"),
    ({"__name__": "up"}, 1, 10**400),
])  # fmt: skip
def test_a_point_that_is_no_reading_is_kept_apart_and_the_rest_is_read(
    labels: object, at_s: object, value: object
) -> None:
    good = {"metric": {"__name__": "up"}, "value": [1, "1"]}
    answer = {"data": {"result": [{"metric": labels, "value": [at_s, value]}, good]}}
    parsed = parse(json.dumps(answer))
    assert (len(parsed.readings), len(parsed.unreadable)) == (1, 1)


@pytest.mark.parametrize("line", ["up 1 1e300", "up 1 -5", "up 1 99999999999999999999"])
def test_a_line_with_a_time_that_no_calendar_has_is_kept_apart(line: str) -> None:
    assert parse(line).unreadable == (line,)
