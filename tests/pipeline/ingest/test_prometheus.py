"""Output of Prometheus at its edges: pages line by line, answers point by point."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import math
from collections.abc import Callable

import pytest

from kreassign.errors import InputError
from kreassign.pipeline.ingest.exporters import NO_READING, NO_TEXT, Parsed
from kreassign.pipeline.ingest.measure_files import parse as parse_file
from tests.pipeline.ingest.golden_files import READ_MS, golden, read

SCRAPE = r"""
# HELP kafka_server_brokertopicmetrics_bytesin_total by topic
# TYPE kafka_server_brokertopicmetrics_bytesin_total counter
kafka_server_brokertopicmetrics_bytesin_total{topic="orders",} 1.5E6
kafka_server_brokertopicmetrics_bytesout_total{topic="or\"ders"} 7 1700000000123
kafka_server_BrokerTopicMetrics_Count{name="MessagesInPerSec",topic="orders",} 12.0
kafka_server_brokertopicmetrics_failedproducerequests_total{topic="orders"} 3
kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent 0.93
kafka_network_socketserver_networkprocessoravgidle_percent 0.5
process_cpu_seconds_total 88.25
jvm_threads_current 41
half a line
"""


def parse(text: str) -> Parsed:
    return parse_file(text.encode())


def test_a_scrape_is_read_by_line_and_bad_lines_are_kept_apart() -> None:
    found = read(SCRAPE.encode(), broker=3)
    assert found.values == [
        (3, "orders", READ_MS, "bytes_in_total", 1.5e6),
        (3, 'or"ders', 1_700_000_000_123, "bytes_out_total", 7.0),
        (3, "orders", READ_MS, "messages_in_total", 12.0),
        (3, None, READ_MS, "request_handler_idle_share", 0.93),
        (3, None, READ_MS, "network_idle_share", 0.5),
        (3, None, READ_MS, "cpu_seconds_total", 88.25),
    ]
    assert [(one.place, one.reason, one.text) for one in found.bad] == [("line 12", NO_READING, "half a line")]


@pytest.mark.parametrize(
    ("line", "name", "labels"),
    [
        ('up{topic="a}b"} 1', "up", {"topic": "a}b"}),
        ('up{topic="a"}1', "up", {"topic": "a"}),
        ('up {topic="x\\\\y\\n",} 1', "up", {"topic": "x\\y\n"}),
        ('{"up", topic="a"} 1', "up", {"topic": "a"}),
        ('up{topic="a\x85b\u2028c\x0cd"} 1', "up", {"topic": "a\x85b\u2028c\x0cd"}),
    ],
)
def test_labels_are_read_as_prometheus_reads_them(line: str, name: str, labels: dict[str, str]) -> None:
    (reading,) = parse(f"# a scrape\n{line}").readings
    assert (reading.name, reading.labels, reading.value, reading.taken_ms) == (name, labels, 1.0, None)


@pytest.mark.parametrize("line", ["up{a=b} 1", 'up{a-b="c"} 1', 'up{a="b",a="c"} 1', "café 1", "up 1_000", "up one",
                                  "up 1 1700000000000 7", 'up{a="b"} 1 1700000000000 7',
                                  "up 1,5", "up ١٢", "up 1 ١٢", 'up{a="b"} ١٢'])  # fmt: skip
def test_a_bad_line_is_kept_apart_and_the_rest_of_the_page_read(line: str) -> None:
    parsed = parse(f'before 1\n{line}\nafter{{a="b"}} 2')
    assert [(one.place, one.text) for one in parsed.unreadable] == [("line 2", line)]
    assert [reading.name for reading in parsed.readings] == ["before", "after"]


def test_a_line_that_is_not_utf_8_costs_itself_and_says_which_it_is() -> None:
    parsed = parse_file(b"before 1\n" + 'up{topic="gr\xfc\xdfe"} 1\n'.encode("latin-1") + b"after 2\n")
    assert [str(one) for one in parsed.unreadable] == [f"line 2 {NO_TEXT}"]
    assert [reading.name for reading in parsed.readings] == ["before", "after"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_page_with_a_byte_order_mark_is_read(encoding: str) -> None:
    (reading,) = parse_file('up{topic="größer"} 1\n'.encode(encoding)).readings
    assert (reading.name, reading.labels) == ("up", {"topic": "größer"})


def test_an_exemplar_is_no_sample_and_openmetrics_has_seconds() -> None:
    found = read(golden("openmetrics.txt"), broker=1)
    assert found.values == [
        (1, "orders", 1_750_000_000_500, "bytes_in_total", 3.0),
        (1, 'a # {b="c"} 9', READ_MS, "bytes_out_total", 4.0),
        (1, None, 1_750_000_000_000, "cpu_seconds_total", 88.25),
    ]
    assert not found.bad


@pytest.mark.parametrize(("written", "taken_ms"), [
    ("1750000000123", 1_750_000_000_123),
    ("1750000000", 1_750_000_000_000),
    ("1750000000.5", 1_750_000_000_500),
    ("3600000", 3_600_000),
])  # fmt: skip
def test_a_time_that_can_only_be_in_seconds_is_read_so(written: str, taken_ms: int) -> None:
    (reading,) = parse(f"up 1 {written}\nup").readings
    assert reading.taken_ms == taken_ms


def test_a_counter_keeps_the_name_that_it_has_on_the_page() -> None:
    parsed = parse("# TYPE requests_count counter\nrequests_count 3")
    assert [reading.name for reading in parsed.readings] == ["requests_count"]


def labels(topic: str, instance: str) -> dict[str, str]:
    return {"__name__": "kafka_server_brokertopicmetrics_bytesout_total", "topic": topic, "instance": instance}


def test_answers_of_the_query_api_name_their_instance() -> None:
    matrix = {"metric": labels("t", "b1:7071"), "values": [[10.5, "1"], [20.5, "2"], [30.5, "one"]]}
    vector = {"metric": labels("u", "b9:7071"), "value": [40, "3"]}
    answer = json.dumps({"status": "success", "data": {"result": [matrix, vector]}}).encode()
    found = read(answer, brokers={"b1:7071": 1})
    assert found.values == [(1, "t", 10_500, "bytes_out_total", 1.0), (1, "t", 20_500, "bytes_out_total", 2.0)]
    assert len(parse_file(answer).readings) == 3
    assert [one.place for one in found.bad] == ["series 1"]


def test_series_of_remote_read_have_times_in_milliseconds() -> None:
    assert read(golden("remote-read.json"), brokers={"kafka-1:7071": 3}).values == [
        (3, "orders", 1_750_000_000_123, "bytes_out_total", 1_500_000.0),
        (3, "orders", 1_750_000_060_123, "bytes_out_total", 1_500_600.0),
    ]


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
    ({"__name__": "up"}, 1, "one"),
    ({"__name__": "up"}, 1, 10**400),
    ({"__name__": "up"}, 1, "1_000"),
    ({"__name__": "up"}, 1, "1,000"),
    ({"__name__": "up"}, 1, "١٢"),
    ({"__name__": "up"}, 1, True),
    ({"__name__": "up"}, True, "1"),
    ({"__name__": "up"}, "1_700", "1"),
])  # fmt: skip
def test_a_point_that_is_no_reading_is_kept_apart_and_the_rest_is_read(
    labels: object, at_s: object, value: object
) -> None:
    good = {"metric": {"__name__": "up"}, "value": [1, "1"]}
    answer = {"data": {"result": [{"metric": labels, "value": [at_s, value]}, good]}}
    parsed = parse(json.dumps(answer))
    assert (len(parsed.readings), len(parsed.unreadable)) == (1, 1)


def test_nan_is_a_reading_for_it_says_that_a_series_has_ended() -> None:
    (reading,) = parse("up NaN").readings
    assert math.isnan(reading.value)
    twins = b"process_cpu_seconds_total NaN\nprocess_cpu_seconds_total 5\nprocess_cpu_seconds_total NaN\n"
    assert [row["value"] for row in read(twins, broker=1).metrics] == [5], "it never stands for a number"


def test_two_values_of_one_series_on_a_page_are_told_and_the_first_counts() -> None:
    parsed = parse(
        'up{a="1",b="2"} 5\nup{b="2",a="1"} 5\nup{a="1"} 6\nup{a="1",b="2"} 7\nup{a="1",b="2"} 8 1750000000000\n'
    )
    assert [one.value for one in parsed.readings] == [5, 5, 6, 8]
    (bad,) = parsed.unreadable
    assert str(bad).startswith("line 4 has another value than the same series in line 1, which counts")


@pytest.mark.parametrize(
    ("packed", "tool"), [(gzip.compress, "gunzip"), (bz2.compress, "bunzip2"), (lzma.compress, "unxz")]
)
def test_a_compressed_page_is_named_with_what_unpacks_it(packed: Callable[[bytes], bytes], tool: str) -> None:
    with pytest.raises(InputError, match=f"compressed file.*{tool}"):
        parse_file(packed(b"up 1"))


def test_function_results_have_no_name_native_histograms_no_value() -> None:
    rate = {"metric": {"topic": "t"}, "values": [[1, "1"]]}
    histogram = {"metric": {"__name__": "h"}, "histograms": [[1, {"count": "1"}]]}
    parsed = parse(json.dumps({"data": {"result": [rate, histogram]}}))
    assert [str(one) for one in parsed.unreadable] == [
        "series 1 has no name; query the series themselves, not a function of them"
    ]


def test_a_series_that_became_a_native_histogram_keeps_its_values() -> None:
    labels, histograms = {"__name__": "up"}, [[2, {"count": "1"}]]
    answer = {"data": {"result": [{"metric": labels, "values": [[1, "7"]], "histograms": histograms}]}}
    named = [{"name": "__name__", "value": "up"}]
    series = [{"labels": named, "histograms": histograms}, {"labels": named, "samples": [{"timestamp": 1, "value": 7}]}]
    for document in (answer, {"timeseries": series}):
        parsed = parse(json.dumps(document))
        assert ([one.value for one in parsed.readings], parsed.unreadable) == ([7.0], ())


@pytest.mark.parametrize("line", ["up 1 1e300", "up 1 -5", "up 1 99999999999999999999"])
def test_a_line_with_a_time_that_no_calendar_has_is_kept_apart(line: str) -> None:
    assert [one.text for one in parse(line).unreadable] == [line]
