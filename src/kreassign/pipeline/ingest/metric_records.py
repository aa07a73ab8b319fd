"""Records of a topic of metrics, without Spark: binary format, rules of plausibility, and what is stored of a batch.

Pure: NumPy and Arrow only. `metric_stream.py` does the part that needs Spark. The rules hold for imported files as
well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kreassign.model.text import counted
from kreassign.pipeline.ingest.exporters import METRIC_NAMES, NO_BROKER
from kreassign.pipeline.load import rules
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.schemas import METRIC_BATCHES, METRICS, METRICS_QUARANTINE, SAMPLES, Row, Table

# Plausibility rules for metrics and for samples from files: which rows are not stored, how they are treated, and why.
#
# Metrics come in files (`import-metrics`) and from a topic (`stream-metrics`). `_OF_METRICS` judges both; further rules
# depend on the source: the clock to compare with, and whether broker -1 is valid. Samples from files are judged by
# their times only, because rows are stored by hour; `kreassign load` judges the rest, among their neighbours
# (`pipeline/load/rules.py`).
#
# The conditions are like those of `load/rules.py`, in SQL that Spark and SQLite (`imported_samples.py`) read alike.
# Rules of files see the columns of the table and `:now_ms`, the time of the import. Rules of a topic see only the
# columns of `metrics` and `written_ms`, the time of the record, so a record that is read again is judged as before.

CLOCK_MS = 60_000
"""Clocks more than a minute apart are not synchronized."""
LARGEST_COUNTER = 2.0**63
LARGEST_SHARE = 2
"""Idle shares are sometimes a little above 1, and up to 2 if broker and controller share one pool."""
OF_NO_USE = "it is a metric of no use here"
OTHER_VALUE = "another value of the same key is kept"


def _topic_rule(table: Table) -> rules.Rule:
    return rules.Rule(
        table,
        "topic is not a name that Kafka allows",
        "topic REGEXP '[^a-zA-Z0-9._-]' OR length(topic) NOT BETWEEN 1 AND 249 OR topic IN ('.', '..')",
        "letters, digits, dots, underscores and dashes, 249 at most",
    )


_OF_METRICS = (
    rules.partition_rule(METRICS),
    rules.Rule(
        METRICS, "partition is given without a topic", "partition >= 0 AND topic IS NULL", "it is that of no log"
    ),
    _topic_rule(METRICS),
    rules.Rule(
        METRICS,
        "name is not one of table metrics",
        f"name NOT IN ({', '.join(repr(name) for name in sorted(METRIC_NAMES))})",
        "nothing reads it, so it is a mistake, or of a later version",
    ),
    rules.Rule(
        METRICS,
        "value is not a finite number",
        "isnan(value) OR ABS(value) > 1.7976931348623157E308",
        "NaN is how Prometheus ends a series, and infinity a division by zero",
    ),
    rules.Rule(METRICS, "value is negative", "value < 0", "-1 is how some tools say unknown"),
    rules.Rule(
        METRICS,
        "value is a percentage, not a share",
        f"name LIKE '%_share' AND value > {LARGEST_SHARE}",
        "a share is from 0 to 1; idle shares are up to 2 where broker and controller share one pool",
    ),
    rules.Rule(
        METRICS,
        "value is more bytes per second than a network can bring",
        f"name LIKE '%bytes%_per_s' AND value > {rules.MOST_BYTES_PER_S}",
        "50 GB/s, a network of 400 Gb/s",
    ),
    rules.Rule(
        METRICS,
        "value is more per second than a broker can do",
        f"name LIKE '%_per_s' AND name NOT LIKE '%bytes%' AND value > {rules.MOST_RECORDS_PER_S}",
        "a hundred million records or requests per second",
    ),
    rules.Rule(
        METRICS,
        "value is more than a counter holds",
        f"name LIKE '%_total' AND value >= {LARGEST_COUNTER!r}",
        "counters of Kafka have 64 bits",
    ),
    rules.Rule(
        METRICS,
        "value is more bytes than a disk holds",
        f"name = 'size_bytes' AND partition >= 0 AND value > {rules.LARGEST_LOG_BYTES}",
        "256 TiB: a log is in one directory of one broker",
    ),
    rules.Rule(
        METRICS,
        "value is more bytes than a topic has",
        f"name = 'size_bytes' AND value > {rules.LARGEST_DISK_BYTES}",
        "an exbibyte",
    ),
)
"""Rules of one metric from any source."""


def _times(table: Table) -> tuple[rules.Rule, ...]:
    return (
        *rules.time_rules(table),
        rules.Rule(
            table,
            "taken_ms is more than an hour ahead",
            f"taken_ms > :now_ms + {rules.AHEAD_MS}",
            "nothing is measured after it is imported, but clocks differ",
        ),
    )


IMPORT_RULES: Mapping[Table, tuple[rules.Rule, ...]] = {
    METRICS: (
        *_times(METRICS),
        rules.Rule(METRICS, "broker is negative", f"broker < {NO_BROKER}", "-1 is for metrics of a whole cluster"),
        *_OF_METRICS,
    ),
    SAMPLES: (*_times(SAMPLES), _topic_rule(SAMPLES)),
}
"""Rules for rows from files by table, in the order in which they are tried."""

METRIC_RULES = (
    *rules.time_rules(METRICS),
    rules.Rule(
        METRICS,
        "taken_ms is more than an hour ahead of its record",
        f"written_ms >= 0 AND taken_ms > written_ms + {rules.AHEAD_MS}",
        "no metric is written before it is taken, but clocks differ; it would count as the latest",
    ),
    rules.broker_rule(METRICS),
    *_OF_METRICS,
)
"""Rules for one record of a topic, in the order in which they are tried."""

CLOCK_AHEAD = rules.Rule(
    METRICS,
    "the clock of its broker is more than a minute ahead of its record",
    f"written_ms >= 0 AND taken_ms > written_ms + {CLOCK_MS}",
    "it concerns this broker only: no record is compared with the clock of another one",
    rules.Treatment.COUNTED,
)
TOLD_RULES = (
    CLOCK_AHEAD,
    rules.Rule(
        METRICS,
        OF_NO_USE,
        "one of Cruise Control's metrics that are not in the table of names",
        "times of requests and lengths of queues, which nothing here reads",
        rules.Treatment.SKIPPED,
    ),
    rules.Rule(
        METRICS,
        rules.SAME_KEY,
        f"a metric with the same {', '.join(METRICS.key)} and value was read before",
        "a producer that had no answer sent it again, or the topic is read again",
        rules.Treatment.LATE,
    ),
    rules.Rule(
        METRICS,
        OTHER_VALUE,
        f"a metric with the same {', '.join(METRICS.key)} and another value was read before",
        "one of the two is wrong, and nothing says which: the first one stays, whatever is read again",
    ),
)
"""Rules for records that pass all above; except for the first, conditions are in words, not SQL."""

STREAM_RULES = METRIC_RULES + TOLD_RULES


# Records of Cruise Control's metrics reporter → columns of table `metrics`, a batch at a time.
#
# They are binary, big-endian, as the comments of its `toBuffer` describe:
#
#     byte    class: 0 broker, 1 topic, 2 partition
#     byte    version: 0
#     byte    metric, a number for each name (`RawMetricType`)
#     long    time in milliseconds
#     int     broker
#     int     length of the topic's name, then the name in UTF-8      (classes 1 and 2)
#     int     partition                                               (class 2)
#     double  value
#
# Rates are per second over the reporter's interval, sizes in bytes, CPU is a share of all cores. numpy reads a batch
# field by field: all fields have a fixed place, or one that follows from the length of the topic's name.


class RecordForm(StrEnum):
    """Format of the topic's values; JSON values are objects with the columns of table `metrics`."""

    JSON = "json"
    CRUISE_CONTROL = "cruise-control"


NO_VALUE = "a record has no value"
CUT_OFF = "a record is cut off"

BROKER, TOPIC, PARTITION = range(3)
# Only metrics in use have a name. Requests are counted once per partition, as by the broker's own meters.
_NAMES = {
    0: "bytes_in_per_s",
    1: "bytes_out_per_s",
    2: "bytes_in_per_s",
    3: "bytes_out_per_s",
    4: "size_bytes",
    5: "cpu_share",
    6: "replication_bytes_in_per_s",
    7: "replication_bytes_out_per_s",
    8: "produce_requests_per_s",
    9: "fetch_requests_per_s",
    10: "messages_in_per_s",
    11: "replication_bytes_in_per_s",
    12: "replication_bytes_out_per_s",
    13: "produce_requests_per_s",
    14: "fetch_requests_per_s",
    15: "messages_in_per_s",
    19: "request_handler_idle_share",
}
_LAST_NUMBER = 62
_OF_TOPICS = (2, 3, 11, 12, 13, 14, 15)
_OF_PARTITIONS = (4,)
_UNKNOWN = -1

_HEAD, _LENGTH, _PARTITION, _VALUE = 15, 4, 4, 8
"""Sizes in bytes: all fields before the name's length, that length, the partition, and the value."""

_REASONS = (
    NO_VALUE,
    CUT_OFF,
    "the class or version of a metric is not known: only classes 0 to 2 in version 0 are",
    "the length of the topic's name is more than the record has",
    "the topic's name is not UTF-8",
    "the number of the metric is not one of its class",
    OF_NO_USE,
)

_Numbers = npt.NDArray[np.int64]


def decode(values: pa.Array) -> pa.RecordBatch:
    """Columns `taken_ms`, `broker`, `topic`, `partition`, `name`, `value` and `reason`, one row per value.

    `reason` is NULL for a usable metric; otherwise it says why not, and the other columns are meaningless.
    """
    raw = _Raw.of(values)
    kind, version, number = (raw.numbers(raw.start + place, ">u1") for place in range(3))
    has_topic, has_partition = kind >= TOPIC, kind == PARTITION
    told = np.where(has_topic, raw.numbers(raw.start + _HEAD, ">i4"), 0)
    left = raw.size - _HEAD - _LENGTH
    is_too_long = has_topic & ((told < 0) | (told > left))
    length = np.where(is_too_long, 0, told)
    name_at = raw.start + _HEAD + _LENGTH
    partition_at = np.where(has_topic, name_at + length, raw.start + _HEAD)
    value_at = partition_at + _PARTITION * has_partition
    topic, is_text = raw.texts(name_at, length)
    broken = (
        values.is_null().to_numpy(zero_copy_only=False),
        (raw.size < _HEAD) | (has_topic & (left < 0)),
        (kind > PARTITION) | (version > 0),
        is_too_long,
        ~is_text,
        _CLASSES[number] != kind,
        value_at + _VALUE > raw.start + raw.size,
        _NAMED[number] == "",
    )
    reasons = (0, 1, 2, 3, 4, 5, 1, 6)
    code = np.select(broken, reasons, len(_REASONS))
    return pa.RecordBatch.from_pydict(
        {
            "taken_ms": raw.numbers(raw.start + 3, ">i8"),
            "broker": raw.numbers(raw.start + 11, ">i4").astype(np.int32),
            "topic": pc.if_else(pa.array(has_topic), topic, pa.scalar(None, pa.string())),
            "partition": pa.array(raw.numbers(partition_at, ">i4").astype(np.int32), mask=~has_partition),
            "name": pa.array(_NAMED[number], pa.string()),
            "value": raw.numbers(value_at, ">f8"),
            "reason": pa.array(_REASON_OF[code], pa.string()),
        }
    )


_CLASSES = np.full(256, _UNKNOWN)
_CLASSES[: _LAST_NUMBER + 1] = BROKER
_CLASSES[list(_OF_TOPICS)] = TOPIC
_CLASSES[list(_OF_PARTITIONS)] = PARTITION
_NAMED = np.array([_NAMES.get(number, "") for number in range(256)], dtype=object)
_REASON_OF = np.array([*_REASONS, None], dtype=object)


@dataclass(frozen=True, slots=True)
class _Raw:
    """The bytes of all values in a row, with the start and size of each."""

    data: npt.NDArray[np.uint8]
    start: _Numbers
    size: _Numbers

    @classmethod
    def of(cls, values: pa.Array) -> _Raw:
        plain = pc.fill_null(values.cast(pa.large_binary()), b"")
        _, offsets, data = plain.buffers()
        ends = np.frombuffer(offsets, np.int64)[plain.offset : plain.offset + len(plain) + 1]
        found = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
        # Fields of a truncated value are read before the truncation is detected, so pad the buffer.
        padded = np.concatenate([found, np.zeros(_HEAD + _LENGTH + _PARTITION + _VALUE, np.uint8)])
        return cls(padded, ends[:-1], np.diff(ends))

    def numbers(self, place: _Numbers, kind: str) -> npt.NDArray[Any]:
        """The number of this type at each place."""
        wanted = np.dtype(kind)
        found = self.data[place[:, np.newaxis] + np.arange(wanted.itemsize)]
        numbers: npt.NDArray[Any] = found.view(wanted)[:, 0].astype(wanted.newbyteorder("="))
        return numbers

    def texts(self, place: _Numbers, length: _Numbers) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
        """The text of `length` bytes at each place, and whether it is valid UTF-8."""
        ends = np.concatenate([[0], np.cumsum(length)])
        data = self.data[np.repeat(place - ends[:-1], length) + np.arange(ends[-1])]
        buffers = [None, pa.py_buffer(ends.astype(np.int64)), pa.py_buffer(data)]
        found = pa.Array.from_buffers(pa.large_binary(), len(length), buffers)
        try:
            return found.cast(pa.string()), np.ones(len(length), np.bool_)
        except pa.ArrowInvalid:  # does not say which value is invalid
            texts = [_text(value) for value in found.to_pylist()]
            return pa.array(texts, pa.string()), np.array([text is not None for text in texts])


def _text(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


# Judged records of a batch, and the known metrics → rows to store, and counts by treatment.
#
# A record is good if its key is new; of several with one key in a batch, the first by partition and offset. Others with
# that key are late if the value is the same, else quarantined: either may be right, so the stored one stays, whatever
# is read again.

Counts = Mapping[tuple[str, str | None], int]
"""Number of records by treatment and reason."""


@dataclass(frozen=True, slots=True)
class MetricBatch:
    """Identity of a batch: the metrics' cluster, the topic, the checkpoint id, and the batch number."""

    cluster_id: str
    topic: str
    checkpoint: str
    number: int


@dataclass(frozen=True, slots=True)
class Sorted:
    """Rows for `metrics` and `metrics_quarantine`, counts by treatment, and the time of the latest record."""

    metrics: pa.Table
    quarantined: pa.Table
    counts: Counts
    latest_ms: int


@dataclass(frozen=True, slots=True)
class BatchCount:
    """Number of records in one or several batches, by treatment and reason."""

    number: int
    counts: Counts

    def of(self, *treatments: str) -> int:
        """Number of records with one of these treatments."""
        return sum(count for (treatment, _), count in self.counts.items() if treatment in treatments)

    def __str__(self) -> str:
        told = [
            counted(self.of(rules.GOOD), "row"),
            f"{self.of(rules.Treatment.LATE):,} known before",
            f"{self.of(rules.Treatment.QUARANTINED):,} quarantined (see table {METRICS_QUARANTINE.name})",
            f"{self.of(rules.Treatment.SKIPPED):,} of no use here",
            f"{self.of(rules.Treatment.COUNTED):,} with a clock ahead",
        ]
        return f"batch {self.number}: " + ", ".join(text for text in told if not text.startswith("0 ") or "row" in text)


def sort_records(records: pa.Table, known: pa.Table, batch: MetricBatch) -> Sorted:
    """Sort records (columns `JUDGED`) by treatment; `known` are the rows of `metrics` at the same times."""
    ordered = records.sort_by([("source_partition", "ascending"), ("source_offset", "ascending")])
    is_good = pc.is_null(ordered["reason"])
    bad = ordered.filter(pc.invert(is_good))
    metrics = ordered.filter(is_good)
    is_new, is_other = _compared(known, metrics.select(METRICS.column_names).cast(known.schema))
    skipped = pc.equal(bad["reason"], OF_NO_USE)
    others = metrics.filter(is_other)
    place = others.schema.get_field_index("reason")
    others = others.set_column(place, others.schema.field(place), [_repeated(OTHER_VALUE, len(others))])
    quarantined = pa.concat_tables([bad.filter(pc.invert(skipped)), others])
    new = metrics.filter(is_new)
    counts: Counter[tuple[str, str | None]] = Counter({(rules.GOOD, None): new.num_rows})
    counts[rules.Treatment.LATE, rules.SAME_KEY] = int((~is_new & ~is_other).sum())
    counts[rules.Treatment.SKIPPED, OF_NO_USE] = pc.sum(skipped).as_py() or 0
    counts[rules.Treatment.COUNTED, CLOCK_AHEAD.reason] = pc.sum(new["is_ahead"]).as_py() or 0
    for reason in quarantined["reason"].to_pylist():
        counts[rules.Treatment.QUARANTINED, reason] += 1
    latest_ms = pc.max(records["written_ms"]).as_py()
    return Sorted(new.select(METRICS.column_names), _quarantine_rows(quarantined, batch), counts, latest_ms)


def count_rows(batch: MetricBatch, found: Sorted) -> list[Row]:
    """Rows of table `metric_batches`: one per count above zero, and always one for good records."""
    return [
        {
            "cluster_id": batch.cluster_id,
            "source_topic": batch.topic,
            "checkpoint": batch.checkpoint,
            "batch": batch.number,
            "latest_ms": found.latest_ms,
            "treatment": str(treatment),
            "reason": reason,
            "records": count,
        }
        for (treatment, reason), count in found.counts.items()
        if count or treatment == rules.GOOD
    ]


def _compared(known: pa.Table, metrics: pa.Table) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Two masks over `metrics`: the key is new; the value differs from the first of its key."""
    rows = pa.concat_tables([known, metrics])
    _, first, of_key = np.unique(_key_codes(rows), return_index=True, return_inverse=True)
    values = rows["value"].to_numpy()
    first_of_key = first[of_key]
    is_first = first_of_key == np.arange(len(rows))
    is_other = values != values[first_of_key]
    return is_first[len(known) :], is_other[len(known) :]


def _key_codes(rows: pa.Table) -> npt.NDArray[np.int64]:
    """A number per row, equal for rows of equal keys; NULL is a value like any other."""
    codes = np.zeros(len(rows), np.int64)
    for name in METRICS.key:
        coded = rows[name].combine_chunks().dictionary_encode(null_encoding="encode")
        pairs = codes * max(1, len(coded.dictionary)) + coded.indices.to_numpy()
        codes = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
    return codes


def _quarantine_rows(records: pa.Table, batch: MetricBatch) -> pa.Table:
    columns = {
        "cluster_id": _repeated(batch.cluster_id, len(records)),
        "source_topic": _repeated(batch.topic, len(records)),
        "table_name": _repeated(METRICS.name, len(records)),
        "row_json": pa.array([(value or b"").hex() for value in records["record"].to_pylist()], pa.string()),
    }
    found = {name: columns[name] if name in columns else records[name] for name in METRICS_QUARANTINE.column_names}
    return pa.table(found).cast(arrow_schema(METRICS_QUARANTINE))


def _repeated(text: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), count)


BATCH_KEY = tuple(name for name in METRIC_BATCHES.key if name not in ("treatment", "reason"))
"""Columns of table `metric_batches` that identify a batch."""
