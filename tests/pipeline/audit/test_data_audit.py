"""Two readings of a topic, and what the comparison makes of their differences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkValueError
from pyspark.sql import SparkSession

from kreassign.errors import DataError
from kreassign.pipeline.data_audit import AuditedPartition, compare_readings, kafka_records, read_records
from kreassign.pipeline.spark_session import kafka_jars, line_of
from kreassign.pipeline.tables.parquet import read_rows, write_rows
from kreassign.pipeline.tables.schemas import AUDITED_PARTITIONS, RECORD_DIGESTS

pytestmark = pytest.mark.spark

Record = tuple[int, str | None]
"""Offset and content. The key is the first letter of the content; without a content it is a tombstone of key `a`."""
PROBLEMS = ("lost", "duplicated", "added", "altered", "displaced")


def log(text: str, start: int = 0) -> list[Record]:
    """A log with these letters as records."""
    return list(enumerate(text, start))


CASES: dict[str, tuple[str, Sequence[Record], Sequence[Record], dict[str, Any]]] = {
    "same": ("delete", log("abcd"), log("abcd"), {}),
    "lost": ("delete", log("abcd"), [(0, "a"), (1, "b"), (3, "d")], {"lost": 1, "first_offset": 2}),
    "lost-at-the-end": ("delete", log("abcd"), log("abc"), {"lost": 1, "first_offset": 3}),
    "lost-and-closed-up": ("delete", log("abcd"), log("acd"), {"lost": 1, "displaced": 2, "first_offset": 1}),
    "duplicated": (
        "delete",
        log("abcd"),
        log("abbcd"),
        {"duplicated": 1, "displaced": 2, "first_offset": 2},
    ),
    "duplicated-in-a-gap": ("delete", [(0, "a"), (2, "c")], log("aac"), {"duplicated": 1, "first_offset": 1}),
    "added-in-a-gap": ("delete", [(0, "a"), (2, "c")], log("axc"), {"added": 1, "first_offset": 1}),
    "altered": ("delete", log("abcd"), log("abxd"), {"altered": 1, "first_offset": 2}),
    "reordered": ("delete", log("abcd"), log("acbd"), {"displaced": 2, "first_offset": 1}),
    "expired": ("delete", log("abcd"), log("cd", start=2), {"expired": 2, "record_count": 2}),
    "appended": ("delete", log("ab"), log("abcd"), {"appended": 2, "record_count": 2}),
    "compacted": ("compact", log("abac"), [(1, "b"), (2, "a"), (3, "c")], {"compacted": 1}),
    "compacted-by-what-came-later": ("compact", log("ab"), [(1, "b"), (2, "a")], {"compacted": 1, "appended": 1}),
    "tombstone": ("compact", [(0, None), (1, "b")], [(1, "b")], {"compacted": 1}),
    "not-to-be-compacted": ("compact", log("abc"), [(1, "b"), (2, "c")], {"lost": 1, "first_offset": 0}),
    "a-hole-without-compaction": ("delete", log("aba"), [(1, "b"), (2, "a")], {"lost": 1, "first_offset": 0}),
}


def digests(label: str, topic: str, records: Sequence[Record]) -> list[dict[str, Any]]:
    return [
        {
            "label": label,
            "topic": topic,
            "partition": 0,
            "offset": offset,
            "content": ord(content or "-"),
            "key_hash": ord(content or "a"),
            "is_tombstone": content is None,
        }
        for offset, content in records
    ]


def partition(label: str, topic: str, policy: str, records: Sequence[Record], topic_id: str = "1") -> dict[str, Any]:
    offsets = [offset for offset, _ in records]
    # Compaction and gaps leave the start of a log where it is.
    start = 0 if policy == "compact" or "lost" in topic or "hole" in topic else min(offsets)
    return {
        "label": label,
        "taken_ms": 1,
        "cluster_id": "c",
        "topic": topic,
        "topic_id": topic_id,
        "cleanup_policy": policy,
        "partition": 0,
        "start_offset": start,
        "end_offset": max(offsets) + 1,
        "record_count": len(records),
        "checksum": "0",
    }


@pytest.fixture(scope="module")
def found(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The rows of all cases, by topic: one comparison for all of them, because Spark takes its time."""
    data = tmp_path_factory.mktemp("audit")
    told = [
        partition(label, topic, policy, records)
        for topic, (policy, *both, _) in CASES.items()
        for label, records in zip(("before", "after"), both, strict=True)
    ]
    gone = [partition("before", "gone", "delete", log("ab"))]
    another = [partition(label, "another", "delete", log("ab"), label) for label in ("before", "after")]
    rows = [
        row
        for topic, (_, *both, _) in CASES.items()
        for label, records in zip(("before", "after"), both, strict=True)
        for row in digests(label, topic, records)
    ]
    rows += digests("before", "gone", log("ab"))
    rows += [row for label in ("before", "after") for row in digests(label, "another", log("ab"))]
    write_rows(data, AUDITED_PARTITIONS, [*told, *gone, *another], file_stem="all")
    write_rows(data, RECORD_DIGESTS, rows, file_stem="all")
    return {row["topic"]: row for row in compare_readings(spark, data, "before", "after")}


@pytest.mark.parametrize("topic", CASES)
def test_every_difference_is_found_and_distinguished(found: dict[str, dict[str, Any]], topic: str) -> None:
    row, (_, _, _, wanted) = found[topic], CASES[topic]
    problems = [name for name in PROBLEMS if wanted.get(name)]
    assert {name: row[name] for name in wanted} == wanted
    assert {name: row[name] for name in PROBLEMS if row[name]} == {name: wanted[name] for name in problems}
    assert row["verdict"] == (", ".join(problems) or "same")
    assert (row["first_offset"] is None) == (not problems)


def test_a_partition_that_was_not_read_again_has_lost_all(found: dict[str, dict[str, Any]]) -> None:
    assert (found["gone"]["verdict"], found["gone"]["lost"]) == ("not read again, lost", 2)


def test_a_recreated_topic_differs_even_with_the_same_records(
    found: dict[str, dict[str, Any]],
) -> None:
    assert found["another"]["verdict"] == "another topic of the same name"


def test_a_reading_that_is_not_there_is_named(spark: SparkSession, tmp_path: Path) -> None:
    write_rows(tmp_path, AUDITED_PARTITIONS, [partition("before", "t", "delete", log("a"))], file_stem="all")
    with pytest.raises(DataError, match=r"there is no reading 'after', only before; .*now shows only the present"):
        compare_readings(spark, tmp_path, "before", "after")


def test_a_reading_made_again_that_breaks_off_is_no_reading(spark: SparkSession, tmp_path: Path) -> None:
    for label in ("before", "other"):
        write_rows(tmp_path, AUDITED_PARTITIONS, [partition(label, "t", "delete", log("a"))], file_stem=label)
    unnamed: Any = None
    asked = [AuditedPartition("t", 0, 0, 0, unnamed)]
    with pytest.raises(PySparkValueError, match="cleanup_policy"):
        read_records(spark, tmp_path, "before", asked, client={}, taken_ms=1, cluster_id="c")
    assert {each["label"] for each in read_rows(tmp_path, AUDITED_PARTITIONS)} == {"other"}


def test_without_the_kafka_source_its_jars_are_named(spark: SparkSession) -> None:
    wanted = [AuditedPartition("orders", 0, 0, 5, "delete")]
    with pytest.raises(DataError, match="Spark has no Kafka source; ") as refused:
        kafka_records(spark, wanted, {"bootstrap.servers": "broker-1:9092"})
    assert str(refused.value).endswith(kafka_jars(line_of(spark.version)))
