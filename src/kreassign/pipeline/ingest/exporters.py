"""Exporter series: readings, which series of which exporter counts, and their rows in table `metrics`.

Pure. `measure_files.py` reads files; `imported_samples.py` turns readings into rows of table `samples`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kreassign.model.documents import is_half
from kreassign.model.text import LARGEST_ID, signed_number, some_of
from kreassign.pipeline.tables.schemas import METRICS, Row

# Contents of a metrics file in any format: readings of series, and bad lines with their place.

END_OF_TIME_S = 253_402_300_800
"""End of the year 9999; later times have no hour folder."""
NO_TEXT = "is not a text in UTF-8"
NO_READING = 'is no reading such as name{label="text"} 1.5'
OTHER_VALUE = (
    "has another value than the same series in {}, which counts; import pages of several brokers as several files"
)


@dataclass(frozen=True, slots=True)
class SeriesValue:
    """One value of one series, possibly NaN; `taken_ms` is None if the file has no time.

    `place` is its place in the file, such as `line 7`.
    """

    name: str
    labels: Mapping[str, str]
    value: float
    taken_ms: int | None
    place: str = ""

    def __str__(self) -> str:
        return f"{self.name}{dict(self.labels)} {self.value}"

    @property
    def point(self) -> tuple[object, ...]:
        """Its series and time: a file that has it twice has one value of it, or nobody knows which."""
        return self.name, frozenset(self.labels.items()), self.taken_ms


@dataclass(frozen=True, slots=True)
class BadRow:
    """A line, entry or row of a file that is not stored, with the reason; `text` is its full content."""

    place: str
    reason: str
    text: str

    def __str__(self) -> str:
        return f"{self.place} {self.reason}"


@dataclass(frozen=True, slots=True)
class Parsed:
    """Readings of a file, and the lines or entries that could not be read."""

    readings: tuple[SeriesValue, ...]
    unreadable: tuple[BadRow, ...]


def parsed(found: Iterable[SeriesValue | BadRow]) -> Parsed:
    """Split a mixed sequence into readings and bad rows: also what contradicts an earlier reading of the same point."""
    readings, bad = [], []
    first: dict[tuple[object, ...], SeriesValue] = {}
    for one in found:
        if isinstance(one, BadRow):
            bad.append(one)
            continue
        before = first.get(one.point)
        if before is None or math.isnan(before.value):
            first[one.point] = one
        elif one.value != before.value and not math.isnan(one.value):
            bad.append(BadRow(one.place, OTHER_VALUE.format(before.place), str(one)))
            continue
        readings.append(one)
    return Parsed(tuple(readings), tuple(bad))


def reading(
    name: object, labels: Mapping[str, object], at_s: float | None, value: Any, place: str
) -> SeriesValue | None:
    """Build a reading; None if the value is not a number, a name not a text, or the time outside the calendar."""
    number = number_of(value)
    texts = {key: text for key, text in labels.items() if isinstance(text, str) and not is_half(text)}
    if number is None or not isinstance(name, str) or len(texts) < len(labels):
        return None
    if at_s is not None and not 0 <= at_s < END_OF_TIME_S:
        return None
    return SeriesValue(name, texts, number, None if at_s is None else round(at_s * 1000), place)


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?|nan", re.ASCII | re.IGNORECASE)
"""A number as exporters write it; `float` also takes underscores, and the digits of any script."""


def number_of(value: Any) -> float | None:
    """A number, or a text that is one; None for anything else, also for True."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    if isinstance(value, str) and _NUMBER.fullmatch(value) is None:
        return None
    try:
        return float(value)
    except OverflowError:
        return None


# Which exporter series are read, and what each becomes: a metric, or a fact about a partition.
#
# The tables below are the specification; `docs/guides/where-the-measures-come-from.md` shows them. Names are compared
# in lower case, as the JMX exporter writes them with its example rules:
#
#     kafka_server_brokertopicmetrics_bytesin_total{topic="t"}              its rules kafka-2_0_0.yml
#     kafka_server_brokertopicmetrics_bytesinpersec_count{topic="t"}        rules that keep the bean's name
#     kafka_server_BrokerTopicMetrics_Count{name="BytesInPerSec",topic="t"} no rules, as Amazon MSK has it
#     kafka_server_brokertopicmetrics_total_bytesinpersec_count             Bitnami's rules, of all topics of the broker
#
# All are the same measure. Confluent Cloud has its own names; each value is the sum of the last minute. One
# kminion reads a whole cluster: its labels are `topic_name`, `partition_id` and `broker_id`, and its sizes those of all
# replicas.


class Fact(StrEnum):
    """A property of a partition that a series reports."""

    END_OFFSET = "end offset"
    START_OFFSET = "start offset"
    SIZE = "size"
    LEADER = "leader"
    REPLICA_COUNT = "replicas of it that this broker leads"


@dataclass(frozen=True, slots=True)
class Metric:
    """A series' name in table `metrics`, and the factor for its values."""

    name: str
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class PartitionFact:
    """A series' property for table `samples`; `is_of_replica` is False if it holds for the whole partition."""

    fact: Fact
    is_of_replica: bool


PER_MINUTE = 1 / 60
NO_BROKER = -1
"""Broker id of cluster-wide metrics."""
CONFLUENT = "confluent_kafka_server_"
_BEANS = {
    "bytesin": "bytes_in",
    "bytesout": "bytes_out",
    "messagesin": "messages_in",
    "replicationbytesin": "replication_bytes_in",
    "replicationbytesout": "replication_bytes_out",
    "totalproducerequests": "produce_requests",
    "totalfetchrequests": "fetch_requests",
}
_KMINION = "kminion_kafka_"
_ATTRIBUTES = {"total": "total", "count": "total", "oneminuterate": "per_s"}
_TOPIC_BEAN = "kafka_server_brokertopicmetrics_"
_PROCESS_CPU = "process_cpu_seconds_total"
_IDLE_HANDLERS = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle"
_IDLE_NETWORK = "kafka_network_socketserver_networkprocessoravgidle"

METRICS_OF_BROKERS = {
    **{
        f"{_TOPIC_BEAN}{bean}{suffix}_{attribute}": Metric(f"{name}_{unit}")
        for bean, name in _BEANS.items()
        for suffix in ("", "persec")
        for attribute, unit in _ATTRIBUTES.items()
    },
    f"{_IDLE_HANDLERS}_percent": Metric("request_handler_idle_share"),
    f"{_IDLE_HANDLERS}percent": Metric("request_handler_idle_share"),
    f"{_IDLE_HANDLERS}percent_oneminuterate": Metric("request_handler_idle_share"),
    f"{_IDLE_NETWORK}_percent": Metric("network_idle_share"),
    f"{_IDLE_NETWORK}percent": Metric("network_idle_share"),
    f"{_IDLE_NETWORK}percent_value": Metric("network_idle_share"),
    _PROCESS_CPU: Metric("cpu_seconds_total"),
    "java_lang_operatingsystem_processcpuload": Metric("cpu_share"),
    f"{_KMINION}broker_log_dir_size_total_bytes": Metric("size_bytes"),
}
"""Series of the JMX exporter about a broker, or about a topic on a broker; of kminion about a broker."""

METRICS_OF_CLUSTERS = {
    f"{CONFLUENT}received_bytes": Metric("bytes_in_per_s", PER_MINUTE),
    f"{CONFLUENT}sent_bytes": Metric("bytes_out_per_s", PER_MINUTE),
    f"{CONFLUENT}received_records": Metric("messages_in_per_s", PER_MINUTE),
    f"{CONFLUENT}retained_bytes": Metric("size_bytes"),
    f"{CONFLUENT}request_count": Metric("requests_per_s", PER_MINUTE),
    f"{_KMINION}topic_log_dir_size_total_bytes": Metric("size_bytes"),
}
"""Series of Confluent Cloud by cluster, topic or partition, and of kminion by topic, but not by broker."""
_REQUEST_TYPES = {"produce": "produce_requests_per_s", "fetch": "fetch_requests_per_s"}

FACTS_OF_PARTITIONS = {
    "kafka_topic_partition_current_offset": PartitionFact(Fact.END_OFFSET, is_of_replica=False),
    "kafka_topic_partition_oldest_offset": PartitionFact(Fact.START_OFFSET, is_of_replica=False),
    "kafka_topic_partition_leader": PartitionFact(Fact.LEADER, is_of_replica=False),
    f"{_KMINION}topic_partition_high_water_mark": PartitionFact(Fact.END_OFFSET, is_of_replica=False),
    f"{_KMINION}topic_partition_low_water_mark": PartitionFact(Fact.START_OFFSET, is_of_replica=False),
    **{
        f"{bean}{attribute}": PartitionFact(fact, is_of_replica=True)
        for bean, fact in {
            "kafka_log_log_logendoffset": Fact.END_OFFSET,
            "kafka_log_log_logstartoffset": Fact.START_OFFSET,
            "kafka_log_log_size": Fact.SIZE,
            "kafka_cluster_partition_replicascount": Fact.REPLICA_COUNT,
        }.items()
        for attribute in ("", "_value")
    },
}
"""Series of kafka_exporter and kminion (about a partition) and of the JMX exporter (about a replica)."""

SIGNS_OF_REMOTE_STORAGE = frozenset(
    f"{_TOPIC_BEAN}{bean}{attribute}"
    for beans, attributes in (
        (("remotelogsizebytes", "remotelogmetadatacount"), ("", "_value")),
        (("remotecopybytes", "remotecopybytespersec"), ("_total", "_count")),
    )
    for bean in beans
    for attribute in attributes
)
"""JMX exporter series above 0 only if the topic has segments in remote storage (KIP-405, KIP-963)."""

METRIC_NAMES = frozenset(
    {f"{name}_{unit}" for name in (*_BEANS.values(), "requests") for unit in ("total", "per_s")}
    | {metric.name for metric in (*METRICS_OF_BROKERS.values(), *METRICS_OF_CLUSTERS.values())}
)
"""Every name in table `metrics`."""

_KEEPS_NAME = re.compile(r"(?P<type>.+)_(?P<attribute>total|count|value|oneminuterate)")
_OF_ALL_TOPICS = re.compile(r"(kafka_server_[a-z]+)_total_(.+)")
"""How the rules of Bitnami's chart mark what is of the whole broker."""
# Port 11001 is the JMX exporter; 11002 is a machine's exporter, with its own CPU series.
_MSK_HOST = re.compile(r"b-(\d{1,6})\.[^:]*(:11001)?", re.ASCII)


def plain_name(reading: SeriesValue) -> str:
    """Lower-case name of the series; without rules it is rebuilt from the bean's name in a label.

    From version 1.0 the exporter appends `_total` to all that its rules call a counter.
    """
    name, bean = reading.name.lower(), reading.labels.get("name", "").lower()
    if name.endswith("_count_total"):
        name = name.removesuffix("_total")
    if whole := _OF_ALL_TOPICS.fullmatch(name):
        name = f"{whole[1]}_{whole[2]}"
    parts = _KEEPS_NAME.fullmatch(name) if bean else None
    return name if parts is None else f"{parts['type']}_{bean}_{parts['attribute']}"


def metric_of(reading: SeriesValue) -> tuple[Metric, bool] | None:
    """The series' metric, and whether it belongs to a broker; None for unused series."""
    name = plain_name(reading)
    if name in METRICS_OF_BROKERS:
        return METRICS_OF_BROKERS[name], True
    if name not in METRICS_OF_CLUSTERS:
        return None
    kind = reading.labels.get("type", "").lower()
    if not kind:
        return METRICS_OF_CLUSTERS[name], False
    return (Metric(_REQUEST_TYPES[kind], PER_MINUTE), False) if kind in _REQUEST_TYPES else None


def is_future(reading: SeriesValue) -> bool:
    """True for a replica that is being built in another log directory (future replica).

    Before Kafka 3.5 the only replica may have the label too: it stayed after the move was complete (KAFKA-14544).
    """
    return reading.labels.get("is_future") == "true"


def fact_of(reading: SeriesValue) -> PartitionFact | None:
    """The property of a partition that a series reports, or None."""
    return FACTS_OF_PARTITIONS.get(plain_name(reading))


def tiered_topic(reading: SeriesValue) -> str | None:
    """The topic that a series shows to have older segments in remote storage, or None."""
    if plain_name(reading) not in SIGNS_OF_REMOTE_STORAGE or not reading.value > 0:
        return None
    return topic_of(reading)


def topic_of(reading: SeriesValue) -> str | None:
    """The topic of a reading; None without one."""
    return reading.labels.get("topic") or reading.labels.get("topic_name") or None


def partition_of(reading: SeriesValue) -> int | None:
    """The partition of a reading; None without one."""
    return signed_number(reading.labels.get("partition") or reading.labels.get("partition_id", ""))


def told_broker(reading: SeriesValue, instance: str) -> int | None:
    """Broker id from the labels: a broker label, or the instance's host as Amazon MSK names its brokers."""
    for label in ("broker_id", "broker"):
        number = signed_number(reading.labels.get(label, ""))
        if number is not None and 0 <= number <= LARGEST_ID:
            return number
    found = _MSK_HOST.fullmatch(instance)
    return None if found is None else signed_number(found[1])


# A file of which no series is used.

_SHOWN = 3
KNOWN_SERIES = (
    "JMX exporter and Amazon MSK (kafka_server_brokertopicmetrics_…, kafka_log_log_…), kafka_exporter "
    "(kafka_topic_partition_…), kminion (kminion_kafka_topic_partition_…), Confluent Cloud (confluent_kafka_server_…)"
)


def nothing_known(readings: Iterable[SeriesValue]) -> str:
    """The sentence about a file without a known series: which it has, and which are known."""
    names = sorted({one.name for one in readings})
    return (
        f"no series in it is known: it has {some_of(names, _SHOWN)}. Known are those of {KNOWN_SERIES}; "
        "export one of them, or measure with kreassign collect"
    )


# Readings → rows of table `metrics`, one row per measure.

_COUNTER, _RATE = "_total", "_per_s"
_OF_SCRAPERS = frozenset(
    {"instance", "job", "endpoint", "service", "namespace", "container", "pod", "prometheus", "prometheus_replica",
     "replica", "receive_replica", "monitor"}
)  # fmt: skip
"""Labels that say who read a series, and where: two Prometheus servers have one cluster's series twice."""
_POD_LABELS = ("pod", "kubernetes_pod_name")


@dataclass(frozen=True, slots=True)
class FileOrigin:
    """Facts that a file lacks: cluster, time of the page, and the broker of each instance.

    `only_broker` is for files of one broker. If None, `brokers` maps the label `instance`, a pod label, or without
    these the name of the file (`file`) to a broker.
    """

    cluster_id: str
    taken_ms: int
    only_broker: int | None
    brokers: Mapping[str, int]
    file: str = ""

    def broker_of(self, reading: SeriesValue) -> int | None:
        """Broker of a reading; None if unknown. kminion's page is one of the cluster, and names brokers itself."""
        if reading.name.startswith(_KMINION):
            return told_broker(reading, "")
        if self.only_broker is not None:
            return self.only_broker
        names = (self.instance_of(reading), *(reading.labels.get(label, "") for label in _POD_LABELS))
        told = (self.brokers[name] for name in names if name in self.brokers)
        return next(told, told_broker(reading, names[0]))

    def instance_of(self, reading: SeriesValue) -> str:
        """The scraped instance: its label, or the name of the file."""
        return reading.labels.get("instance") or self.file

    def is_known(self, reading: SeriesValue) -> bool:
        """False if the reading needs a broker and has none; cluster-wide metrics need none."""
        found = metric_of(reading)
        return found is None or not found[1] or self.broker_of(reading) is not None

    def is_of_cluster(self, reading: SeriesValue) -> bool:
        """True if the reading belongs to this cluster; Confluent Cloud labels each reading with its cluster."""
        return reading.labels.get("kafka_id", self.cluster_id) == self.cluster_id

    def time_of(self, reading: SeriesValue) -> int:
        """Time of a reading in ms: its own, else the page's."""
        return self.taken_ms if reading.taken_ms is None else reading.taken_ms


@dataclass(frozen=True, slots=True)
class Found:
    """A row of table `metrics` and its source reading."""

    row: Row
    reading: SeriesValue


def of_brokers(readings: Sequence[SeriesValue], origin: FileOrigin) -> list[SeriesValue]:
    """Drop CPU readings of instances that also report Go metrics: they are not brokers."""
    # A page with Go metrics comes from kafka_exporter or node_exporter; the JMX exporter runs inside the broker.
    others = {origin.instance_of(one) for one in readings if one.name.startswith("go_")}
    return [one for one in readings if one.name != _PROCESS_CPU or origin.instance_of(one) not in others]


def metric_rows(readings: Iterable[SeriesValue], origin: FileOrigin) -> Iterator[Found]:
    """Rows of table `metrics`, one per measure, for known metrics of known brokers.

    If an exporter has a measure under several names, the first counts, and a counter wins over its rate. Confluent
    Cloud's values by client or by type are summed, each once, however many servers scraped it.
    """
    rows: dict[tuple[object, ...], Found] = {}
    seen: set[tuple[object, ...]] = set()
    for one, metric, broker in _known(readings, origin):
        row: Row = {
            "cluster_id": origin.cluster_id,
            "taken_ms": origin.time_of(one),
            "broker": broker,
            "topic": topic_of(one),
            "partition": partition_of(one),
            "name": metric.name,
            "value": one.value * metric.factor,
        }
        key = tuple(row[name] for name in METRICS.key)
        told = *key, one.name, frozenset((name, of) for name, of in one.labels.items() if name not in _OF_SCRAPERS)
        before = rows.get(key)
        if before is None or math.isnan(before.row["value"]):
            rows[key] = Found(row, one)
        elif broker == NO_BROKER and not math.isnan(one.value) and told not in seen:
            before.row["value"] += row["value"]
        seen.add(told)
    for key, found in rows.items():
        *head, name = key
        if not (str(name).endswith(_RATE) and (*head, str(name).removesuffix(_RATE) + _COUNTER) in rows):
            yield found


def is_metric(reading: SeriesValue) -> bool:
    """True if table `metrics` uses the series, whether or not the broker is known."""
    return metric_of(reading) is not None


def _known(readings: Iterable[SeriesValue], origin: FileOrigin) -> Iterator[tuple[SeriesValue, Metric, int]]:
    for one in readings:
        found = metric_of(one)
        if found is not None and origin.is_of_cluster(one):
            metric, is_of_broker = found
            broker = origin.broker_of(one) if is_of_broker else NO_BROKER
            if broker is not None:
                yield one, metric, broker
