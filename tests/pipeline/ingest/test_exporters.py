"""Each source of measures, as its documentation has it: what is read from it, and into which table."""

from __future__ import annotations

import json

import pytest

from kreassign.errors import InputError
from kreassign.pipeline.ingest.exporters import SeriesValue, told_broker
from kreassign.pipeline.ingest.imported_samples import NO_END, NO_LEADER, NO_LOCAL_START, NO_OFFSET, NO_START, TOO_LARGE
from tests.pipeline.ingest.golden_files import GOLDEN, READ_MS, SOURCES, golden, read

MS = 1_750_000_000_000


def test_every_golden_file_says_whose_form_it_has() -> None:
    assert sorted(SOURCES) == sorted(file.name for file in GOLDEN.iterdir())
    assert all(source.startswith("https://") for source in SOURCES.values())


def test_the_jmx_exporter_has_rows_per_measure_and_led_partition() -> None:
    found = read(golden("jmx-exporter.txt"), broker=1)
    assert found.values == [
        (1, "orders", READ_MS, "bytes_in_total", 1.5e6),
        (1, None, READ_MS, "bytes_in_total", 2.0e6),
        (1, "orders", READ_MS, "bytes_out_total", 3.0e6),
        (1, "orders", READ_MS, "fetch_requests_total", 900.0),
        (1, None, READ_MS, "request_handler_idle_share", 0.9985),
        (1, None, READ_MS, "cpu_share", 0.011176381795768447),
        (1, None, READ_MS, "cpu_seconds_total", 88.25),
    ]
    assert found.offsets == [(0, READ_MS, 1, 10, 12_345_678_901, 5000)]
    assert not found.bad


@pytest.mark.parametrize("series", [
    'kafka_server_brokertopicmetrics_bytesin_total{topic="t"}',
    'kafka_server_brokertopicmetrics_bytesinpersec_count{topic="t",}',
    'kafka_server_brokertopicmetrics_bytesinpersec_count_total{topic="t"}',
    'kafka_server_BrokerTopicMetrics_BytesInPerSec_Count{topic="t"}',
    'kafka_server_BrokerTopicMetrics_Count{name="BytesInPerSec",topic="t"}',
    'kafka_server_BrokerTopicMetrics_Count_total{name="BytesInPerSec",topic="t"}',
    'kafka_server_BrokerTopicMetrics_total{name="BytesInPerSec",topic="t"}',
])  # fmt: skip
def test_a_bean_is_the_same_under_every_name_that_rules_give_it(series: str) -> None:
    assert read(f"{series} 5".encode(), broker=1).values == [(1, "t", READ_MS, "bytes_in_total", 5.0)]


@pytest.mark.parametrize(("series", "name"), [
    ("kafka_server_brokertopicmetrics_total_bytesinpersec_count", "bytes_in_total"),
    ("kafka_server_BrokerTopicMetrics_total_ReplicationBytesOutPerSec_OneMinuteRate", "replication_bytes_out_per_s"),
    ("kafka_server_kafkarequesthandlerpool_total_requesthandleravgidlepercent_oneminuterate",
     "request_handler_idle_share"),
])  # fmt: skip
def test_bitnami_marks_what_is_of_all_topics_of_a_broker(series: str, name: str) -> None:
    assert read(f"{series} 0.5".encode(), broker=1).values == [(1, None, READ_MS, name, 0.5)]


def test_kafka_exporter_has_offsets_without_sizes_and_no_minus_one() -> None:
    found = read(golden("kafka-exporter.txt"))
    assert found.offsets == [(0, READ_MS, 2, 10, 12_345_678_901, None), (1, READ_MS, -1, 0, 70, None)]
    assert not found.metrics
    assert [(one.place, one.reason) for one in found.bad] == [("line 20", NO_OFFSET)]


def test_an_offset_that_a_double_cannot_hold_is_refused() -> None:
    series = 'kafka_topic_partition_{}_offset{{topic="t",partition="{}"}} {}\n'
    ends = (9_007_199_254_740_991, 9_007_199_254_740_993)
    lines = [series.format(*each) for number, end in enumerate(ends)
             for each in (("oldest", number, 0), ("current", number, end))]  # fmt: skip
    found = read("".join(lines).encode())
    assert [(row["partition"], row["end_offset"]) for row in found.samples] == [(0, 9_007_199_254_740_991)]
    assert (found.bad[0].place, found.bad[0].reason) == ("line 4", TOO_LARGE)


@pytest.mark.parametrize("broker", [None, 7])
def test_kminion_has_offsets_of_partitions_and_sizes_of_topics_and_brokers(broker: int | None) -> None:
    """Its page is one of the cluster, so `--broker` says nothing of it; its sizes are those of all replicas."""
    found = read(golden("kminion.txt"), broker=broker)
    assert found.offsets == [(0, READ_MS, -1, 10, 2_091_521, None), (1, READ_MS, -1, 0, 70, None)]
    assert {row["topic"] for row in found.samples} == {"orders"}
    assert found.values == [
        (1, None, READ_MS, "size_bytes", 9.1e9),
        (2, None, READ_MS, "size_bytes", 8.4e9),
        (-1, "orders", READ_MS, "size_bytes", 4.5e9),
    ]
    assert not found.bad


def test_the_cpu_of_an_exporter_is_not_that_of_a_broker() -> None:
    assert not read(golden("kafka-exporter.txt"), broker=1).metrics
    host = 'process_cpu_seconds_total{{instance="b-1.demo.amazonaws.com:{}"}} 5\n'
    found = read("".join(host.format(port) for port in (11001, 11002)).encode())
    assert found.values == [(1, None, READ_MS, "cpu_seconds_total", 5.0)], "11002 is the exporter of the machine"


def test_a_pod_names_its_broker_as_an_instance_does() -> None:
    page = b'process_cpu_seconds_total{instance="10.0.0.7:9404",kubernetes_pod_name="prod-kafka-2"} 5\n'
    assert [row["broker"] for row in read(page, brokers={"prod-kafka-2": 2}).metrics] == [2]
    assert not read(page, brokers={"prod-kafka-3": 3}).metrics


def test_a_host_with_digits_of_another_script_names_no_broker() -> None:
    reading = SeriesValue("up", {}, 1.0, None)
    hosts = ("b-3.orders.kafka.eu-west-1.amazonaws.com:11001", "b-\u0663.orders.kafka.eu-west-1.amazonaws.com:11001")
    assert [told_broker(reading, host) for host in hosts] == [3, None]


def test_amazon_msk_keeps_bean_names_and_hosts_name_brokers() -> None:
    found = read(golden("msk-open-monitoring.txt"))
    assert found.values == [
        (1, "orders", MS + 1, "bytes_in_total", 1.5e6),
        (2, "orders", MS + 2, "bytes_in_total", 250.0),
        (1, None, MS + 1, "bytes_out_total", 9.0),
        (1, "orders", MS + 1, "messages_in_per_s", 12.5),
        (1, None, MS + 1, "request_handler_idle_share", 0.93),
        (1, None, MS + 1, "network_idle_share", 0.5),
    ]
    assert found.offsets == [(0, MS + 1, 1, 10, 100, 5000)]
    assert not found.bad


def test_query_api_times_are_seconds_and_the_leading_replica_leads() -> None:
    brokers = {"kafka-1:7071": 1, "kafka-2:7071": 2}
    found = read(golden("query-range.json"), brokers=brokers)
    assert found.offsets == [
        (0, MS, 1, 10, 100, 5000),
        (0, MS + 60_000, 1, 10, 160, 8000),
        (0, MS + 120_000, 2, 10, 230, 11_500),
    ]
    assert [value[:4] for value in found.values] == [
        (1, "orders", MS, "bytes_in_total"),
        (1, "orders", MS + 60_000, "bytes_in_total"),
    ]
    anonymous = read(golden("query-range.json"))
    assert [row[2:] for row in anonymous.offsets] == [(-1, 10, 100, 5000), (-1, 10, 160, 8000), (-1, 10, 230, 11_500)]
    assert not anonymous.metrics


def test_answers_to_one_query_each_are_joined_over_files() -> None:
    together = json.loads(golden("query-range.json"))
    files = [
        json.dumps({"status": "success", "data": {"result": [one]}}).encode() for one in together["data"]["result"]
    ]
    assert read(*files).samples == read(golden("query-range.json")).samples
    assert read(b"\n".join(files)).samples == read(golden("query-range.json")).samples, "appended to one file"
    sizes = b"\n".join(
        line for line in golden("jmx-exporter.txt").splitlines() if line.startswith(b"kafka_log_log_size")
    )
    sized = read(golden("kafka-exporter.txt"), sizes, broker=2)
    assert sized.offsets == [(0, READ_MS, 2, 10, 12_345_678_901, 5000), (1, READ_MS, -1, 0, 70, None)]


def test_a_broken_answer_costs_only_itself() -> None:
    one = json.dumps(json.loads(golden("query-range.json")), separators=(",", ":")).encode()
    error = b'{"status":"error","error":"timeout"}'
    found = read(one[:500] + b"\n" + error + one)
    assert found.samples == read(one).samples
    assert [one.place for one in found.bad] == ["document 1", "document 2"]


def test_confluent_cloud_has_no_brokers_and_tells_what_came_in_each_minute() -> None:
    found = read(golden("confluent-export.txt"), cluster="lkc-abc12")
    assert found.values == [
        (-1, "orders", MS, "bytes_in_per_s", 1000.0),
        (-1, "orders", MS, "bytes_out_per_s", 2000.0),
        (-1, "orders", MS, "size_bytes", 5e9),
        (-1, None, MS, "produce_requests_per_s", 3.0),
    ]
    twice = read(golden("confluent-export.txt") * 2, cluster="lkc-abc12")
    assert twice.values == found.values, "a page that was appended twice adds nothing up"


def test_what_two_servers_scraped_of_a_cluster_counts_once() -> None:
    series = 'confluent_kafka_server_sent_bytes{{kafka_id="lkc-abc12",topic="orders",{}}} 60000 {}\n'
    labels = ('principal_id="u-1",prometheus_replica="a",instance="x:443"',
              'principal_id="u-1",prometheus_replica="b",instance="y:443"',
              'principal_id="u-2",prometheus_replica="a",instance="x:443"')  # fmt: skip
    found = read("".join(series.format(own, MS) for own in labels).encode(), cluster="lkc-abc12")
    assert found.values == [(-1, "orders", MS, "bytes_out_per_s", 2000.0)]


def test_a_metrics_api_answer_is_read_with_its_query_and_intervals() -> None:
    found = read(golden("confluent-query.json"), cluster="lkc-abc12")
    five_minutes = 300_000
    assert found.values == [
        (-1, "orders", MS - 400_000 + five_minutes, "bytes_in_per_s", 200.0),
        (-1, "orders", MS - 400_000 + 2 * five_minutes, "bytes_in_per_s", 300.0),
    ]
    assert [row["partition"] for row in found.metrics] == [0, 0]
    assert [(one.place, one.reason) for one in found.bad] == [
        ("entry 3", "is no reading: a number and a time with its zone, such as 2025-06-15T15:00:00Z")
    ]
    assert not read(golden("confluent-query.json"), cluster="other").metrics


def query(**changes: object) -> bytes:
    document = json.loads(golden("confluent-query.json")) | changes
    return json.dumps({key: value for key, value in document.items() if value is not None}).encode()


@pytest.mark.parametrize(("content", "said"), [
    (query(aggregations=None), "does not name its metric; join it with its query.*jq -s add query.json answer.json"),
    (query(granularity=None), "has no granularity such as PT1M"),
    (query(granularity="ALL"), "has no granularity such as PT1M"),
    (query(granularity="PT4H"), "the granularity PT4H is more than an hour"),
    (query(granularity="P1D"), "the granularity P1D is more than an hour"),
    (query(aggregations=[{"metric": "io.confluent.kafka.server/retained_bytes"}]), "with the granularity PT1M"),
    (b'{"status":"error","errorType":"bad_data","error":"invalid parameter"}', "an error of Prometheus.*invalid param"),
])  # fmt: skip
def test_an_answer_that_cannot_be_understood_says_what_to_do(content: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read(content)


def test_the_first_page_of_an_answer_is_known_to_be_not_all() -> None:
    found = read(query(meta={"pagination": {"next_page_token": "x"}}), cluster="lkc-abc12")
    assert [str(one) for one in found.bad][-1] == "the answer has further pages that are not in the file"


@pytest.mark.parametrize("time", ["2025-06-15T15:00:00", "2025-06-15"])
def test_a_time_without_its_zone_is_not_taken_for_local_time(time: str) -> None:
    points = [{"timestamp": time, "value": 60000.0}]
    found = read(query(data=[{"metric.topic": "orders", "points": points}]), cluster="lkc-abc12")
    assert found.values == []
    assert [one.reason for one in found.bad if one.place == "entry 1"] == [
        "is no reading: a number and a time with its zone, such as 2025-06-15T15:00:00Z"
    ]


def test_the_grouped_format_of_an_answer_is_read_too() -> None:
    points = [{"timestamp": "2025-06-15T15:00:00Z", "value": 60000.0}]
    found = read(query(data=[{"metric.topic": "orders", "points": points}]), cluster="lkc-abc12")
    assert found.values == [(-1, "orders", MS - 100_000, "bytes_in_per_s", 200.0)]


OFFSETS = (
    'kafka_log_log_logendoffset{{instance="{0}",topic="t",partition="0"}} {1} {2}\n'
    'kafka_log_log_logstartoffset{{instance="{0}",topic="t",partition="0"}} 0 {2}\n'
)


def pages(*seen: tuple[str, int, int]) -> bytes:
    return "".join(OFFSETS.format(*one) for one in seen).encode()


def test_where_brokers_are_read_in_turn_one_replica_stands_for_all() -> None:
    found = read(pages(("a", 10, MS), ("b", 11, MS + 5), ("a", 20, MS + 60), ("b", 19, MS + 65)))
    assert [row[1] for row in found.offsets] == [MS, MS + 60], "the one that is ahead in the end"


def test_a_replica_that_is_being_moved_between_log_directories_counts_once() -> None:
    line = 'kafka_log_Log_Value{{name="{}",partition="0",topic="orders",is_future="true"}} 1\n'
    future = "".join(line.format(name) for name in ("Size", "LogStartOffset", "LogEndOffset")).encode()
    whole = golden("jmx-exporter.txt")
    assert read(future + whole, broker=1).offsets == read(whole, broker=1).offsets
    # KAFKA-14544: the label stayed when the move was over.
    stayed = b"\n".join([future, b'kafka_cluster_partition_replicascount{topic="orders",partition="0"} 3', b""])
    assert read(stayed, broker=1).offsets == [(0, READ_MS, 1, 1, 1, 1)]


def test_of_one_broker_it_must_be_said_what_it_leads() -> None:
    found = read(pages(("a", 10, MS), ("a", 20, MS + 60)))
    assert not found.samples
    assert [(one.place, one.reason, one.text) for one in found.bad] == [("partition t-0", NO_LEADER, "2 times")]


@pytest.mark.parametrize("sign", [
    'kafka_server_brokertopicmetrics_remotelogsizebytes{topic="t"} 70',
    'kafka_server_BrokerTopicMetrics_Value{name="RemoteLogSizeBytes",topic="t"} 70',
    'kafka_server_brokertopicmetrics_remotecopybytes_total{topic="t"} 70',
    'kafka_server_BrokerTopicMetrics_Count{name="RemoteCopyBytesPerSec",topic="t"} 70',
])  # fmt: skip
def test_the_size_of_a_tiered_topic_is_left_out(sign: str) -> None:
    names = {"LogEndOffset": 100, "LogStartOffset": 0, "Size": 50}
    page = "".join(
        f'kafka_log_Log_Value{{name="{name}",partition="0",topic="{topic}"}} {value}\n'
        f'kafka_cluster_partition_replicascount{{topic="{topic}",partition="0"}} 2\n'
        for name, value in names.items()
        for topic in ("t", "other")
    )
    found = read(page.encode(), sign.encode(), broker=1)
    assert {row["topic"]: row["size_bytes"] for row in found.samples} == {"t": None, "other": 50}
    assert [(one.place, one.reason, one.text) for one in found.bad] == [("partition t-0", NO_LOCAL_START, "1 time")]
    # No segment was ever copied, or somewhere in the cluster.
    for nothing in (sign.replace(" 70", " 0"), sign.replace('topic="t"', 'cluster="c"')):
        assert not read(page.encode(), nothing.encode(), broker=1).bad


@pytest.mark.parametrize(("line", "reason"), [
    ('kafka_log_log_logendoffset{topic="t",partition="0"} 5', NO_START),
    ('kafka_log_log_size{topic="t",partition="0"} 5', NO_END),
    ('kafka_topic_partition_oldest_offset{topic="t",partition="0"} 5', NO_END),
    ('kafka_log_log_logendoffset{topic="t",partition="0"} NaN', NO_OFFSET),
    ('kafka_log_log_logendoffset{topic="t",partition="0"} 1e300', NO_OFFSET),
    ('kafka_log_log_logendoffset{topic="t",partition="0"} 1.5', NO_OFFSET),
    ('kafka_log_log_logendoffset{partition="0"} 1', "has no topic or no number of a partition"),
    ('kafka_log_log_logendoffset{topic="t",partition="x"} 1', "has no topic or no number of a partition"),
])  # fmt: skip
def test_what_is_no_sample_says_why(line: str, reason: str) -> None:
    found = read(line.encode())
    assert not found.samples
    assert [one.reason for one in found.bad] == [reason]
