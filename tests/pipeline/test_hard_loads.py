"""Loads that are hard to deal out: one partition has most samples, files are thousands, shuffles spill."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from bench.known_load import BEGIN_MS, Shape, write_snapshot
from bench.process import run_kreassign
from kreassign.pipeline.load.job import StepCount, run_load
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.delta import commit, log_to_write
from kreassign.pipeline.tables.parquet import read_rows, write_files
from kreassign.pipeline.tables.schemas import FORECAST, LOAD_MODEL, PLAN_INPUTS, SAMPLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

RECORDS_PER_S, RECORD_BYTES = 10, 100
HOT, OTHERS, RARER = 494_000, 26, 494
"""Samples of the partition that is sampled each second, number of others, and seconds between their samples."""
SPILLING = (
    "spark.shuffle.sort.bypassMergeThreshold=1",  # or few rows would never be sorted
    "spark.shuffle.spill.numElementsForceSpillThreshold=10000",
)


def samples(partition: int, seconds: Iterable[int]) -> pa.Table:
    """Samples of a partition to which the same is written in each second."""
    since = np.fromiter(seconds, np.int64)
    ends = RECORDS_PER_S * since
    columns = {
        "cluster_id": pa.repeat("synthetic", len(since)),
        "taken_ms": BEGIN_MS + 1000 * since,
        "topic": pa.repeat("topic-0000", len(since)),
        "topic_id": pa.repeat("id", len(since)),
        "partition": np.full(len(since), partition, np.int32),
        "leader": np.ones(len(since), np.int32),
        "start_offset": np.zeros(len(since), np.int64),
        "end_offset": ends,
        "size_bytes": RECORD_BYTES * ends,
    }
    return pa.table(columns, schema=arrow_schema(SAMPLES))


def store(data: Path, files: Iterable[pa.Table]) -> None:
    """Write each table into files of its own, and all of them in one commit."""
    log = log_to_write(data, SAMPLES)
    commit(
        log, [file for number, table in enumerate(files) for file in write_files(data, SAMPLES, table, f"{number:06}")]
    )


def rates(data: Path) -> dict[int, tuple[float, str]]:
    """Bytes per second of each partition, and the verdict."""
    return {row["partition"]: (row["write_bytes_per_s"], row["verdict"]) for row in read_rows(data, LOAD_MODEL)}


def known_rates(count: int) -> dict[int, tuple[float, str]]:
    return dict.fromkeys(range(count), (pytest.approx(RECORDS_PER_S * RECORD_BYTES), "enough"))


def spilled_bytes(events: Path) -> int:
    """Bytes that tasks put on disk because they were too many, from Spark's log of events."""
    lines = (line for file in events.rglob("events_*") for line in file.read_text(encoding="utf-8").splitlines())
    tasks = (event for event in map(json.loads, lines) if event["Event"] == "SparkListenerTaskEnd")
    return sum(task["Task Metrics"]["Disk Bytes Spilled"] for task in tasks if task.get("Task Metrics"))


def test_a_load_of_a_skewed_topic_is_right_and_the_same_if_it_spills(tmp_path: Path) -> None:
    plain, spilled, events = (tmp_path / name for name in ("plain", "spilled", "events"))
    events.mkdir()
    write_snapshot(plain, Shape(1 + OTHERS, days=HOT / 86_400, interval_s=1))
    others = [samples(1 + number, range(0, HOT, RARER)) for number in range(OTHERS)]
    store(plain, [samples(0, range(HOT)), *others])
    shutil.copytree(plain, spilled)
    run_kreassign("load", "--data", str(plain))
    logged = ("spark.eventLog.enabled=true", "spark.eventLog.compress=false", f"spark.eventLog.dir={events.as_uri()}")
    settings = [word for setting in (*SPILLING, *logged) for word in ("--conf", setting)]
    run_kreassign("load", "--data", str(spilled), *settings)
    assert spilled_bytes(events) > 0
    assert rates(plain) == known_rates(1 + OTHERS)
    for table in (LOAD_MODEL, FORECAST, PLAN_INPUTS):
        rows, after_spilling = (sorted(map(str, read_rows(data, table))) for data in (plain, spilled))
        assert after_spilling == rows


def test_a_load_of_ten_thousand_small_files_counts_every_row(spark: SparkSession, tmp_path: Path) -> None:
    rounds = 10_000

    def files() -> Iterator[pa.Table]:
        for number in range(rounds):
            yield pa.concat_tables([samples(partition, [60 * number]) for partition in (0, 1)])

    write_snapshot(tmp_path, Shape(2, days=rounds / 1440, interval_s=60))
    store(tmp_path, files())
    told: dict[str, StepCount] = {}
    run_load(spark, tmp_path, lambda step: told.update({step.table.name: step}))
    read = told[SAMPLES.name]
    assert (read.good, read.bad, read.late, read.skipped) == (2 * rounds, 0, 0, ())
    assert rates(tmp_path) == known_rates(2)
