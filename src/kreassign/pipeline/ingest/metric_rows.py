"""PURE. Readings → rows of table `metrics`, one row for each measure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kreassign.model.whole_number import signed_number
from kreassign.pipeline.ingest.exporters import NO_BROKER, Metric, is_of_go, is_process_cpu, metric_of, told_broker
from kreassign.pipeline.ingest.readings import Reading
from kreassign.pipeline.tables.schemas import METRICS, Row

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
