"""Series of exporters: readings, which series of which exporter counts, and their rows in table `metrics`.

Pure. `measure_files.py` makes readings of files; `imported_samples.py` makes rows of table `samples` of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kreassign.model.documents import is_half
from kreassign.model.text import LARGEST_ID, signed_number
from kreassign.pipeline.tables.schemas import METRICS, Row

# Contents of a file of measures, whatever its format: readings of series, and bad lines with their place.

END_OF_TIME_S = 253_402_300_800
"""The end of the year 9999: no folder of an hour is after it."""
NO_TEXT = "is not a text in UTF-8"
NO_READING = "is no reading"


@dataclass(frozen=True, slots=True)
class Reading:
    """One value of one series, which may be NaN; `taken_ms` is None where it was not written down.

    `place` is where in its file it is, such as `line 7`.
    """

    name: str
    labels: Mapping[str, str]
    value: float
    taken_ms: int | None
    place: str = ""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A line, an entry or a row of a file that is not stored, and why; `text` is all of it."""

    place: str
    reason: str
    text: str

    def __str__(self) -> str:
        return f"{self.place} {self.reason}"


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a file holds: readings, and the lines or entries that are none."""

    readings: tuple[Reading, ...]
    unreadable: tuple[BadRow, ...]


def parsed(found: Iterable[Reading | BadRow]) -> Parsed:
    """Readings and what is none, kept apart."""
    together = tuple(found)
    return Parsed(
        tuple(one for one in together if isinstance(one, Reading)),
        tuple(one for one in together if isinstance(one, BadRow)),
    )


def reading(name: object, labels: Mapping[str, object], at_s: float | None, value: Any, place: str) -> Reading | None:
    """One reading; None for what is none: no number, no text, or at a time that no calendar has."""
    number = _number(value)
    texts = {key: text for key, text in labels.items() if isinstance(text, str) and not is_half(text)}
    if number is None or not isinstance(name, str) or len(texts) < len(labels):
        return None
    if at_s is not None and not 0 <= at_s < END_OF_TIME_S:
        return None
    return Reading(name, texts, number, None if at_s is None else round(at_s * 1000), place)


def _number(text: Any) -> float | None:
    try:
        return float(text)
    except (TypeError, ValueError, OverflowError):
        return None


# Series of exporters that are read, and what each becomes: a metric, or a fact of a partition.
#
# The tables below are the specification; `docs/guides/where-the-measures-come-from.md` shows them. Names are compared
# in lower case, and as the JMX exporter writes them with its example rules:
#
#     kafka_server_brokertopicmetrics_bytesin_total{topic="t"}              its rules kafka-2_0_0.yml
#     kafka_server_brokertopicmetrics_bytesinpersec_count{topic="t"}        rules that keep the bean's name
#     kafka_server_BrokerTopicMetrics_Count{name="BytesInPerSec",topic="t"} no rules, as Amazon MSK has it
#
# The three are one measure. Confluent Cloud has its own names, of which each value is the sum of the last minute.


class Fact(StrEnum):
    """What a series says of a partition."""

    END_OFFSET = "end offset"
    START_OFFSET = "start offset"
    SIZE = "size"
    LEADER = "leader"
    REPLICA_COUNT = "replicas of it that this broker leads"


@dataclass(frozen=True, slots=True)
class Metric:
    """What a series is in table `metrics`: its name there, and what its values are multiplied by."""

    name: str
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class PartitionFact:
    """What a series is for table `samples`. `is_of_replica` unless it is of the partition, whoever leads."""

    fact: Fact
    is_of_replica: bool


PER_MINUTE = 1 / 60
NO_BROKER = -1
"""Broker of what is measured for a cluster as a whole."""
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
}
"""Series of the JMX exporter that are about a broker, or about a topic on a broker."""

METRICS_OF_CLUSTERS = {
    f"{CONFLUENT}received_bytes": Metric("bytes_in_per_s", PER_MINUTE),
    f"{CONFLUENT}sent_bytes": Metric("bytes_out_per_s", PER_MINUTE),
    f"{CONFLUENT}received_records": Metric("messages_in_per_s", PER_MINUTE),
    f"{CONFLUENT}retained_bytes": Metric("size_bytes"),
    f"{CONFLUENT}request_count": Metric("requests_per_s", PER_MINUTE),
}
"""Series of Confluent Cloud, by cluster, topic or partition, but not by broker."""
_REQUEST_TYPES = {"produce": "produce_requests_per_s", "fetch": "fetch_requests_per_s"}

FACTS_OF_PARTITIONS = {
    "kafka_topic_partition_current_offset": PartitionFact(Fact.END_OFFSET, is_of_replica=False),
    "kafka_topic_partition_oldest_offset": PartitionFact(Fact.START_OFFSET, is_of_replica=False),
    "kafka_topic_partition_leader": PartitionFact(Fact.LEADER, is_of_replica=False),
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
"""Series of kafka_exporter, of a partition, and of the JMX exporter, of a replica."""

SIGNS_OF_REMOTE_STORAGE = frozenset(
    f"{_TOPIC_BEAN}{bean}{attribute}"
    for beans, attributes in (
        (("remotelogsizebytes", "remotelogmetadatacount"), ("", "_value")),
        (("remotecopybytes", "remotecopybytespersec"), ("_total", "_count")),
    )
    for bean in beans
    for attribute in attributes
)
"""Series of the JMX exporter that are above 0 only where a topic has segments in remote storage (KIP-405, KIP-963)."""

METRIC_NAMES = frozenset(
    {f"{name}_{unit}" for name in (*_BEANS.values(), "requests") for unit in ("total", "per_s")}
    | {metric.name for metric in (*METRICS_OF_BROKERS.values(), *METRICS_OF_CLUSTERS.values())}
)
"""Every name in table `metrics`."""

_KEEPS_NAME = re.compile(r"(?P<type>.+)_(?P<attribute>total|count|value|oneminuterate)")
# Port 11001 is that of the JMX exporter; on 11002 is one of the machine, which has a CPU of its own.
_MSK_HOST = re.compile(r"b-(\d{1,6})\.[^:]*(:11001)?")


def is_process_cpu(reading: Reading) -> bool:
    """Whether it is the CPU of whoever wrote the page: of the broker, as the JMX exporter is part of it, or not."""
    return reading.name == _PROCESS_CPU


def is_of_go(reading: Reading) -> bool:
    """Whether it says that a program in Go wrote the page, as kafka_exporter and node_exporter are: no broker."""
    return reading.name.startswith("go_")


def plain_name(reading: Reading) -> str:
    """The name in lower case; without rules the exporter leaves the bean's name in a label, and it is put back.

    Since its version 1.0 all that its rules call a counter ends in `_total`, after what the rule says.
    """
    name, bean = reading.name.lower(), reading.labels.get("name", "").lower()
    if name.endswith("_count_total"):
        name = name.removesuffix("_total")
    parts = _KEEPS_NAME.fullmatch(name) if bean else None
    return name if parts is None else f"{parts['type']}_{bean}_{parts['attribute']}"


def metric_of(reading: Reading) -> tuple[Metric, bool] | None:
    """What a series is in table `metrics`, and whether it is of a broker; None for what is of no use there."""
    name = plain_name(reading)
    if name in METRICS_OF_BROKERS:
        return METRICS_OF_BROKERS[name], True
    if name not in METRICS_OF_CLUSTERS:
        return None
    kind = reading.labels.get("type", "").lower()
    if not kind:
        return METRICS_OF_CLUSTERS[name], False
    return (Metric(_REQUEST_TYPES[kind], PER_MINUTE), False) if kind in _REQUEST_TYPES else None


def is_future(reading: Reading) -> bool:
    """Whether it is of a replica that is being built in another log directory.

    Before Kafka 3.5 it may also be of the only one: the label stayed when the replica was whole (KAFKA-14544).
    """
    return reading.labels.get("is_future") == "true"


def fact_of(reading: Reading) -> PartitionFact | None:
    """What a series says of a partition, or None."""
    return FACTS_OF_PARTITIONS.get(plain_name(reading))


def tiered_topic(reading: Reading) -> str | None:
    """The topic of which a series says that older segments are in remote storage, or None."""
    if plain_name(reading) not in SIGNS_OF_REMOTE_STORAGE or not reading.value > 0:
        return None
    return reading.labels.get("topic") or None


def told_broker(reading: Reading, instance: str) -> int | None:
    """The broker that labels name: one that says so, or the host of an instance as Amazon MSK names its brokers."""
    for label in ("broker_id", "broker"):
        number = signed_number(reading.labels.get(label, ""))
        if number is not None and 0 <= number <= LARGEST_ID:
            return number
    found = _MSK_HOST.fullmatch(instance)
    return None if found is None else int(found[1])


# Readings → rows of table `metrics`, one row for each measure.

_COUNTER, _RATE = "_total", "_per_s"
_POD_LABELS = ("pod", "kubernetes_pod_name")


@dataclass(frozen=True, slots=True)
class Origin:
    """What a file does not say of itself: cluster, when a page was read, and the broker of each instance.

    `only_broker` is for files of one broker; None where `brokers` says it by the label `instance` or that of a pod, or
    by the name of the file (`file`) where there is no such label.
    """

    cluster_id: str
    taken_ms: int
    only_broker: int | None
    brokers: Mapping[str, int]
    file: str = ""

    def broker_of(self, reading: Reading) -> int | None:
        """The broker of a reading, or None when nobody said it."""
        if self.only_broker is not None:
            return self.only_broker
        names = (self.instance_of(reading), *(reading.labels.get(label, "") for label in _POD_LABELS))
        told = (self.brokers[name] for name in names if name in self.brokers)
        return next(told, told_broker(reading, names[0]))

    def instance_of(self, reading: Reading) -> str:
        """What was scraped: its label, or the name of the file."""
        return reading.labels.get("instance") or self.file

    def is_known(self, reading: Reading) -> bool:
        """Whether it is known whose metric it is; those of a whole cluster need no broker."""
        found = metric_of(reading)
        return found is None or not found[1] or self.broker_of(reading) is not None

    def is_of_cluster(self, reading: Reading) -> bool:
        """Whether a reading is of this cluster; those of Confluent Cloud say of which they are."""
        return reading.labels.get("kafka_id", self.cluster_id) == self.cluster_id

    def time_of(self, reading: Reading) -> int:
        """When it was taken: as it says, or when its page was read."""
        return self.taken_ms if reading.taken_ms is None else reading.taken_ms


@dataclass(frozen=True, slots=True)
class Found:
    """A row of table `metrics` and the reading that it was made of."""

    row: Row
    reading: Reading


def of_brokers(readings: Sequence[Reading], origin: Origin) -> list[Reading]:
    """The readings without the CPU of programs that are no broker, where they have told of themselves."""
    others = {origin.instance_of(one) for one in readings if is_of_go(one)}
    return [one for one in readings if not (is_process_cpu(one) and origin.instance_of(one) in others)]


def metric_rows(readings: Iterable[Reading], origin: Origin) -> Iterator[Found]:
    """Rows of table `metrics`: of the known metrics of known brokers, one for each measure.

    An exporter may have a measure under several names: the first one counts, and a counter more than its rate. What
    Confluent Cloud tells by client or by type is added up.
    """
    rows: dict[tuple[object, ...], Found] = {}
    points: set[tuple[object, ...]] = set()
    for one, metric, broker in _known(readings, origin):
        row = _row(one, metric, broker, origin)
        key = tuple(row[name] for name in METRICS.key)
        before = rows.get(key)
        if before is None or math.isnan(before.row["value"]):
            rows[key] = Found(row, one)
        elif broker == NO_BROKER and not math.isnan(one.value) and _point(one) not in points:
            before.row["value"] += row["value"]
        points.add(_point(one))
    for key, found in rows.items():
        *head, name = key
        if not (str(name).endswith(_RATE) and (*head, str(name).removesuffix(_RATE) + _COUNTER) in rows):
            yield found


def _point(one: Reading) -> tuple[object, ...]:
    """What is the same where an answer is in a file twice."""
    return one.name, frozenset(one.labels.items()), one.taken_ms


def is_metric(reading: Reading) -> bool:
    """Whether it is of use in table `metrics`, whoever it is of."""
    return metric_of(reading) is not None


def _known(readings: Iterable[Reading], origin: Origin) -> Iterator[tuple[Reading, Metric, int]]:
    for one in readings:
        found = metric_of(one)
        if found is not None and origin.is_of_cluster(one):
            metric, is_of_broker = found
            broker = origin.broker_of(one) if is_of_broker else NO_BROKER
            if broker is not None:
                yield one, metric, broker


def _row(one: Reading, metric: Metric, broker: int, origin: Origin) -> Row:
    return {
        "cluster_id": origin.cluster_id,
        "taken_ms": origin.time_of(one),
        "broker": broker,
        "topic": one.labels.get("topic") or None,
        "partition": signed_number(one.labels.get("partition", "")),
        "name": metric.name,
        "value": one.value * metric.factor,
    }
