"""The stream on Spark, from files instead of a topic: they come one after the other, as offsets do."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kreassign.errors import DataError
from kreassign.pipeline.ingest.metric_records import BatchCount, RecordForm
from kreassign.pipeline.ingest.metric_stream import MetricTopic, metrics_of, run
from kreassign.pipeline.tables.parquet import read_rows
from kreassign.pipeline.tables.schemas import METRIC_BATCHES, METRICS, METRICS_QUARANTINE
from tests.pipeline.ingest.test_cruise_control import BROKER, PARTITION, metric

pytestmark = pytest.mark.spark

SOURCE = MetricTopic("nobody:9092", "metrics", RecordForm.JSON, "c")
SCHEMA = "partition int, offset bigint, timestamp timestamp, value binary"
NOW_MS = 1_800_000_000_000
MINUTE_MS = 60_000
NOW = datetime.fromtimestamp(NOW_MS / 1000, UTC)


def test_client_properties_reach_the_source_and_addresses_win() -> None:
    client = {"security.protocol": "SASL_SSL", "bootstrap.servers": "elsewhere:1"}
    source = MetricTopic("here:9093", "metrics", RecordForm.JSON, "c", client, max_offsets_per_trigger=7)
    assert source.options == {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.bootstrap.servers": "here:9093",
        "subscribe": "metrics",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "7",
    }
    assert "SASL_SSL" not in repr(source), "a password is among them, too"


def test_each_topic_of_each_cluster_has_a_checkpoint_of_its_own(tmp_path: Path) -> None:
    sources = [("c", "t"), ("c", "t.u"), ("d", "t"), ("../c", "t"), ("..", "t"), ("c/topic=t", "t")]
    places = [
        Path(MetricTopic("b:1", topic, RecordForm.JSON, cluster).checkpoint(tmp_path)) for cluster, topic in sources
    ]
    assert len(set(places)) == len(sources)
    assert all(place.resolve().parent.parent == tmp_path / "_metrics_checkpoint" for place in places)


GOOD: dict[str, Any] = {"taken_ms": NOW_MS, "broker": 1, "topic": "t", "name": "bytes_in_per_s", "value": 3}


def record(**change: Any) -> bytes:
    return json.dumps(GOOD | change).encode()


TELLING_NOTHING: list[tuple[bytes | None, str]] = [
    (None, "a record has no value"),
    (b"{", "a record is not JSON"),
    (b"\xff", "a record is not JSON"),
    (b'{"name": "\xff"}', "a record is not JSON"),
    (b'{"name":' + b"[" * 100_000, "a record is not JSON"),
    (b'{"value": NaN}', "a record is not JSON"),
    (record() + b" and more", "a record is not JSON"),
    (record() + record(broker=2), "a record is not JSON"),
    (record() + b"," + record(broker=2), "a record is not JSON"),
    (b'{"name": "a", "name": "b"}', "a record is not JSON"),
    (b"[]", "a record is not a JSON object"),
    (b"", "a record is not a JSON object"),
    (b"null", "a record is not a JSON object"),
    (record(taken_ms=None), "taken_ms is missing"),
    (b"{}", "taken_ms is missing"),
    (record(taken_ms=NOW_MS + 0.5), "taken_ms is not a whole number from 0 to 9223372036854775807"),
    (record(taken_ms=2**63), "taken_ms is not a whole number from 0 to 9223372036854775807"),
    (record(broker=-1), "broker is not a whole number from 0 to 2147483647"),
    (record(broker=True), "broker is not a whole number from 0 to 2147483647"),
    (record(broker="1"), "broker is not a whole number from 0 to 2147483647"),
    (record(broker=2**31), "broker is not a whole number from 0 to 2147483647"),
    (record(partition=-1), "partition is not a whole number from 0 to 2147483647"),
    (record(topic=3), "topic is not a text"),
    (record(cluster_id="\ud800"), "cluster_id is not a text"),
    (record(name=None), "name is missing"),
    (record(name="\ud800"), "name is not a text"),
    (record(value=None), "value is missing"),
    (record(value="3"), "value is not a number"),
    (record(value=10**400), "value is not a finite number"),
    (record().replace(b'"value": 3', b'"value": 1e999'), "value is not a finite number"),
    (record(taken_ms=0), "taken_ms is not a time after 1970"),
    (record(taken_ms=NOW_MS // 1000), "taken_ms is in seconds, not in milliseconds"),
    (record(taken_ms=NOW_MS * 1000), "taken_ms is in microseconds or smaller, not in milliseconds"),
    (record(taken_ms=1_200_000_000_000), "taken_ms is before 2011"),
    (record(taken_ms=NOW_MS + 61 * MINUTE_MS), "taken_ms is more than an hour ahead of its record"),
    (record(topic="a b"), "topic is not a name that Kafka allows"),
    (record(topic=".."), "topic is not a name that Kafka allows"),
    (record(topic=None, partition=1), "partition is given without a topic"),
    (record(name="bytes_in"), "name is not one of table metrics"),
    (record(value=-1), "value is negative"),
    (record(value=1e300), "value is more bytes per second than a network can bring"),
    (record(name="messages_in_per_s", value=1e9), "value is more per second than a broker can do"),
    (record(name="cpu_share", value=55), "value is a percentage, not a share"),
    (record(name="bytes_in_total", value=2**63), "value is more than a counter holds"),
    (record(name="size_bytes", partition=0, value=2**49), "value is more bytes than a disk holds"),
    (record(name="size_bytes", value=1e300), "value is more bytes than a topic has"),
]  # fmt: skip
"""Records that are no metric, and what is said of each."""


def judged(spark: SparkSession, source: MetricTopic, values: Sequence[bytes | None]) -> list[dict[str, Any]]:
    rows = [(0, number, NOW, None if value is None else bytearray(value)) for number, value in enumerate(values)]
    found = metrics_of(spark.createDataFrame(rows, SCHEMA), source).orderBy("source_offset").collect()
    return [row.asDict() for row in found]


def test_a_record_is_a_metric_or_the_reason_why_it_is_none(spark: SparkSession) -> None:
    good = [
        record(),
        record(cluster_id="d", partition=4),
        record(cluster_id="", topic=None, extra={"a": [1]}),
        record(taken_ms=NOW_MS + 55 * MINUTE_MS),
        record(name="bytes_in_total", value=2**53),
    ]
    found = judged(spark, SOURCE, [*(value for value, _ in TELLING_NOTHING), *good])
    told, rows = found[: len(TELLING_NOTHING)], found[len(TELLING_NOTHING) :]
    assert [row["reason"] for row in told] == [reason for _, reason in TELLING_NOTHING]
    assert [row["reason"] for row in rows] == [None] * len(good)
    metrics = [{name: row[name] for name in METRICS.column_names} for row in rows]
    plain = {**GOOD, "cluster_id": "c", "partition": None, "value": 3.0}
    assert metrics == [
        plain,
        {**plain, "cluster_id": "d", "partition": 4},
        {**plain, "topic": None},
        {**plain, "taken_ms": NOW_MS + 55 * MINUTE_MS},
        {**plain, "name": "bytes_in_total", "value": 2.0**53},
    ]
    assert [row["is_ahead"] for row in rows] == [False, False, False, True, False]

    binary = MetricTopic("b:1", "metrics", RecordForm.CRUISE_CONTROL, "c")
    values = [metric(PARTITION, 4, b"orders", 9), metric(BROKER, 62), b"", None, metric(PARTITION, 4, b"a b", -1)]
    first, *others = judged(spark, binary, values)
    assert (first["cluster_id"], first["topic"], first["partition"], first["value"]) == ("c", "orders", 9, 2.5)
    assert [row["reason"] for row in others] == [
        "it is a metric of no use here", "a record is cut off", "a record has no value", "partition is negative",
    ]  # fmt: skip


class Topic:
    """Records in files, put there a few at a time."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.end = 0

    def put(self, *values: bytes) -> None:
        """Let records arrive together."""
        rows = [(0, self.end + number, NOW, bytearray(value)) for number, value in enumerate(values)]
        self.end += len(rows)
        self.spark.createDataFrame(rows, SCHEMA).coalesce(1).write.mode("append").parquet(str(self.folder))

    def stream(self, data: Path) -> list[BatchCount]:
        """Read what is there into the tables."""
        told: list[BatchCount] = []
        records = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(self.folder))
        run(metrics_of(records, SOURCE), SOURCE, data, told.append, once=True)
        return told


def counted(data: Path) -> dict[str, int]:
    """Records of all batches by what became of them."""
    found: Counter[str] = Counter()
    for row in read_rows(data, METRIC_BATCHES):
        found[row["treatment"]] += row["records"]
    return dict(found)


def values(data: Path) -> list[float]:
    return sorted(row["value"] for row in read_rows(data, METRICS))


def dead_letters(data: Path) -> list[tuple[int, str]]:
    return sorted((row["source_offset"], row["reason"]) for row in read_rows(data, METRICS_QUARANTINE))


def test_what_stops_the_tables_stops_the_stream_and_is_told_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    topic, data = Topic(spark, tmp_path / "in"), tmp_path / "data"
    (data / "metrics").mkdir(parents=True)
    (data / "metrics" / "old.parquet").write_bytes(b"as an older version wrote it")
    topic.put(record())
    with pytest.raises(DataError, match=r"old\.parquet belongs to no table"):
        topic.stream(data)
    (data / "metrics" / "old.parquet").unlink()
    topic.stream(data)
    assert values(data) == [3.0]


def test_every_record_becomes_one_metric_or_a_dead_letter(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    topic, data = Topic(spark, tmp_path / "in"), tmp_path / "data"

    # One broker's clock is 55 minutes ahead. It costs nobody else anything, however old their metrics are.
    ahead = record(taken_ms=NOW_MS + 55 * MINUTE_MS, value=0)
    topic.put(ahead)
    topic.stream(data)
    topic.put(*(record(broker=number % 50, taken_ms=NOW_MS - number, value=number) for number in range(1, 1001)))
    (batch,) = topic.stream(data)
    assert batch.of("good") == 1_000
    # Nothing is remembered between batches but by the tables: there is no state that could grow, or be lost.
    assert not (Path(SOURCE.checkpoint(data)) / "state").exists()
    assert values(data) == list(range(1_001))

    # Sent again by a producer that had no answer; another value of a key; rubbish; and too old for any watermark.
    other = record(broker=1, taken_ms=NOW_MS - 1, value=77)
    topic.put(
        record(broker=1, taken_ms=NOW_MS - 1, value=1), other, b"rubbish", record(taken_ms=NOW_MS - 10**9, value=5)
    )
    (batch,) = topic.stream(data)
    assert str(batch) == "batch 2: 1 row, 1 known before, 2 quarantined (see table metrics_quarantine)"
    metrics, letters = sorted([*range(1_001), 5.0]), [
        (1_002, "another value of the same key is kept"), (1_003, "a record is not JSON"),
    ]  # fmt: skip
    counts = {"good": 1_002, "late": 1, "quarantined": 2, "counted": 1}
    assert (values(data), dead_letters(data), counted(data)) == (metrics, letters, counts)
    kept = {row["source_offset"]: row["row_json"] for row in read_rows(data, METRICS_QUARANTINE)}
    assert bytes.fromhex(kept[1_002]) == other

    # Killed after a batch was stored and before the checkpoint says so: it comes again, and changes nothing.
    checkpoint = Path(SOURCE.checkpoint(data))
    (last,) = (checkpoint / "commits").glob("2")
    for file in (last, last.with_name(".2.crc")):
        file.unlink(missing_ok=True)
    (batch,) = topic.stream(data)
    assert batch.number == 2
    assert (values(data), dead_letters(data), counted(data)) == (metrics, letters, counts)

    # The checkpoint is lost: all is read again, in batches with the same numbers, and nothing comes twice.
    shutil.rmtree(checkpoint)
    again = topic.stream(data)
    assert sum(batch.of("good") for batch in again) == 0
    assert (values(data), dead_letters(data)) == (metrics, letters)
    assert counted(data) == {"good": 1_002, "late": 1 + 1_003, "quarantined": 4, "counted": 1}
