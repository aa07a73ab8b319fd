from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from kreassign.errors import DataError, InvariantBroken
from kreassign.operations.tables import show_load
from kreassign.pipeline.ingest.snapshots import replica_rows, sample_rows, snapshot_tables
from kreassign.pipeline.load.job import StepCount, run_load
from kreassign.pipeline.load.summary import partition_counts
from kreassign.pipeline.spark_session import failures_told
from kreassign.pipeline.tables import spark_io
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.commits import compact, last_load
from kreassign.pipeline.tables.parquet import TablesAt, read_rows, write_rows
from kreassign.pipeline.tables.schemas import (
    BACKTESTS,
    BROKER_LOADS,
    BROKERS,
    CLUSTERS,
    FORECAST,
    LOAD_MODEL,
    LOAD_QUALITY,
    LOADS,
    LOG_DIRS,
    METRICS,
    PARTITIONS,
    PLAN_INPUTS,
    QUARANTINE,
    REPLICAS,
    SAMPLES,
)
from kreassign.pipeline.tables.spark_io import struct_type, write_table
from tests.pipeline.clusters import TAKEN_MS, fill, observation, sample_round

pytestmark = pytest.mark.spark


def everything_made(data_dir: Path) -> list[list[str]]:
    """Rows that readers of the last load see."""
    load = last_load(data_dir)
    assert load is not None
    seen = TablesAt(data_dir, load.versions)
    # When a row was set aside depends on the load.
    tables = [
        [row | {"load_ms": 0} for row in read_rows(seen, table)] for table in (LOAD_MODEL, PLAN_INPUTS, QUARANTINE)
    ]
    return [sorted(map(str, rows)) for rows in tables]


def newest(folder: Path) -> Path:
    """The file of a table that was written last."""
    return max(folder.rglob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)


def cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def test_from_snapshots_and_samples_to_plan_inputs_and_again(spark: SparkSession, tmp_path: Path) -> None:
    fill(tmp_path)
    told: list[StepCount] = []
    run_load(spark, tmp_path, told.append)
    assert [(step.table.name, step.good, step.bad) for step in told] == [
        ("clusters", 1, 0),
        ("partitions", 2, 0),
        ("replicas", 5, 0),
        ("brokers", 3, 0),
        ("log_dirs", 4, 0),
        ("samples", 3, 1),
        ("load_hours", 1, 0),
        ("open_samples", 3, 0),
        ("quarantine", 1, 0),
        ("load_model", 2, 0),
        ("backtests", 1, 0),
        ("forecast", 2, 0),
        ("skew", 1, 0),
        ("plan_inputs", 5, 0),
    ]
    assert str(told[5]) == "samples: 3 rows, 1 bad (see table quarantine)"
    stored = [(row["table_name"], row["good"], row["bad"], row["late"]) for row in read_rows(tmp_path, LOADS)]
    assert stored[:-1] == [(step.table.name, step.good, step.bad, step.late) for step in told]
    assert stored[-1][0] == "load_quality"
    assert partition_counts(tmp_path, "coverage") == {"measured": 1, "no samples": 1}

    loads = {row["partition"]: row for row in read_rows(tmp_path, LOAD_MODEL)}
    # Partition 0: 30 records in 8 s; the leader keeps 40 records in 80 bytes.
    assert (loads[0]["size_bytes"], loads[0]["write_records_per_s"], loads[0]["write_bytes_per_s"]) == (80, 3.75, 7.5)
    assert (loads[1]["size_bytes"], loads[1]["write_bytes_per_s"], loads[1]["coverage"]) == (70, None, "no samples")

    inputs = {(row["partition"], row["broker"]): row for row in read_rows(tmp_path, PLAN_INPUTS)}
    assert sorted(inputs) == [(0, 1), (0, 2), (1, 1), (1, 2), (1, 3)]
    assert {row["snapshot_id"] for row in inputs.values()} == {observation().snapshot_id}
    assert [(key, row["position"]) for key, row in sorted(inputs.items()) if row["is_leader"]] == [
        ((0, 2), 1),
        ((1, 1), 0),
    ]
    assert {key: row["is_reassigning"] for key, row in inputs.items()} == {key: key[0] == 1 for key in inputs}
    assert (inputs[0, 1]["size_bytes"], inputs[0, 1]["write_bytes_per_s"]) == (80, 7.5)

    (quarantined,) = read_rows(tmp_path, QUARANTINE)
    assert (quarantined["table_name"], quarantined["reason"]) == ("samples", "end_offset is below start_offset")
    assert json.loads(quarantined["row_json"])["start_offset"] == 200

    first = everything_made(tmp_path)
    # Of snapshots only the latest is read: whatever became of an older one is no matter.
    for table in ("partitions", "replicas"):
        oldest, _ = sorted((tmp_path / table).rglob("*.parquet"))
        oldest.write_bytes(b"PAR1")
    run_load(spark, tmp_path, told.append)
    assert everything_made(tmp_path) == first
    assert not [step for step in told if step.skipped]
    again = {step.table.name: step.good for step in told[14:]}
    assert again == {step.table.name: step.good for step in told[:14]} | {"samples": 0}


def test_an_incremental_load_ends_like_one_of_everything(spark: SparkSession, tmp_path: Path) -> None:
    class KilledError(Exception):
        """The load ends before it is published."""

    def killed(step: StepCount) -> None:
        if step.table is PLAN_INPUTS:
            raise KilledError

    def take(name: str, minutes: Iterable[int], ahead: int = 0) -> None:
        rounds = [sample_round(TAKEN_MS + 60_000 * minute, 200 + 3 * minute + ahead) for minute in minutes]
        write_rows(tmp_path, SAMPLES, [row for each in rounds for row in sample_rows(each)], file_stem=name)

    def counts(name: str) -> tuple[int, int, int]:
        step = next(step for step in told if step.table.name == name)
        return step.good, step.bad, step.late

    def collect_and_compact(step: StepCount) -> None:
        """Work of a collector beside a load: here a round after each of its steps, and compaction."""
        beside.append(600 + len(beside))
        take(f"beside {step.table.name}", beside[-1:])
        for table in (SAMPLES, PARTITIONS, REPLICAS):
            compact(tmp_path, table)

    fill(tmp_path)
    half, rest = range(20, 600, 20), range(620, 900, 20)
    beside: list[int] = []
    take("half", half)
    run_load(spark, tmp_path, collect_and_compact)
    # Nothing of these is complete: a snapshot that was broken off, and a load.
    write_rows(tmp_path, REPLICAS, [next(replica_rows(observation())) | {"snapshot_id": "zzz"}], file_stem="zzz")
    take("rest", rest)
    take("wrong", [710], ahead=-150)
    before = everything_made(tmp_path)
    with pytest.raises(KilledError):
        run_load(spark, tmp_path, killed)
    assert everything_made(tmp_path) == before

    take("late", [30])  # of an hour that was closed long ago
    told: list[StepCount] = []
    run_load(spark, tmp_path, told.append)
    assert counts("samples") == (len(beside) + len(rest), 1, 1)
    hours_of_two = counts("load_hours")
    in_two = everything_made(tmp_path)
    (treated,) = [row for row in read_rows(tmp_path, LOAD_QUALITY) if row["reason"] == "its hour is closed"]
    assert (treated["treatment"], treated["row_count"]) == ("late", 1)

    told.clear()
    (late,) = (tmp_path / "samples").rglob("late*.parquet")
    late.unlink()
    cut_off(newest(tmp_path / "open_samples"))
    with pytest.raises(DataError, match=r"open_samples of load 2: \S+\.parquet is cut off.*put it back .* --full`"):
        run_load(spark, tmp_path, told.append)
    # The hours are lost: no load may stand on what is left, and one that reads all needs none of it.
    shutil.rmtree(tmp_path / "load_hours")
    with pytest.raises(DataError, match=r"load_hours in .* is not the one that load 2 knew: it is gone; .* --full`"):
        run_load(spark, tmp_path, told.append)
    run_load(spark, tmp_path, told.append, is_full=True)
    # Those of `fill`, and one of another time that is wrong there.
    assert counts("samples") == (3 + len(half) + len(beside) + len(rest), 2, 0)
    assert counts("load_hours") == hours_of_two
    assert everything_made(tmp_path) == in_two


def test_the_counts_of_every_load_add_up_and_say_how_rows_were_treated(spark: SparkSession, tmp_path: Path) -> None:
    fill(tmp_path)
    for table in (CLUSTERS, BROKERS, LOG_DIRS, PARTITIONS, REPLICAS, SAMPLES):  # as if they had been imported once more
        write_rows(tmp_path, table, read_rows(tmp_path, table), file_stem="again")
    first, *_, last = read_rows(tmp_path, LOG_DIRS, only={"snapshot_id": observation().snapshot_id})
    odd = [first | {"path": "/odd", "total_bytes": -1}, last | {"path": "/odd", "usable_bytes": 1001}]
    write_rows(tmp_path, LOG_DIRS, odd, file_stem="odd")
    alone = next(replica_rows(observation())) | {"topic": "gone"}
    write_rows(tmp_path, REPLICAS, [alone], file_stem="alone")
    gone = sample_rows(sample_round(TAKEN_MS, 110))[0] | {"topic": "gone"}
    write_rows(tmp_path, SAMPLES, [gone], file_stem="gone")
    last = sample_rows(sample_round(TAKEN_MS + 12_000, 139))[0]
    write_rows(tmp_path, SAMPLES, [last], file_stem="last")

    told: dict[str, StepCount] = {}
    now_ms = TAKEN_MS + 60_000
    run_load(spark, tmp_path, lambda step: told.update({step.table.name: step}), now_ms=now_ms)
    counts = {name: (step.good, step.bad, step.late) for name, step in told.items()}
    assert {
        name: counts[name] for name in ("clusters", "brokers", "log_dirs", "partitions", "replicas", "samples")
    } == {
        "clusters": (1, 0, 1),
        "brokers": (3, 0, 3),
        "log_dirs": (4, 2, 4),
        "partitions": (2, 0, 2),
        "replicas": (5, 1, 5),
        "samples": (4, 3, 3),
    }
    assert (counts["load_model"][0], counts["plan_inputs"][0]) == (2, 5)
    rows = read_rows(tmp_path, LOAD_QUALITY)
    assert {row["load_ms"] for row in rows} == {now_ms}
    told_why = {(row["table_name"], row["treatment"], row["reason"]): row["row_count"] for row in rows}
    assert {key: count for key, count in told_why.items() if key[1] != "good"} == {
        ("clusters", "late", "another row has the same key"): 1,
        ("brokers", "late", "another row has the same key"): 3,
        ("log_dirs", "late", "another row has the same key"): 4,
        ("log_dirs", "quarantined", "total_bytes is negative"): 1,
        ("log_dirs", "quarantined", "usable_bytes is more than total_bytes"): 1,
        ("partitions", "late", "another row has the same key"): 2,
        ("replicas", "late", "another row has the same key"): 5,
        ("replicas", "quarantined", "its partition is not in the snapshot"): 1,
        ("samples", "quarantined", "end_offset is below start_offset"): 2,
        ("samples", "late", "another row has the same time"): 3,
        ("samples", "quarantined", "end_offset is behind the sample before it, and is the last"): 1,
        ("samples", "counted", "its partition is not in the snapshot"): 1,
    }
    assert told_why["samples", "good", None] == 4
    assert told["samples"].unknown_topics == {"gone": 1}
    assert len(read_rows(tmp_path, QUARANTINE)) == 6

    metric = {"cluster_id": "c.1", "broker": 2, "topic": "orders", "partition": None, "name": "bytes_out_per_s"}
    metrics = [metric | {"taken_ms": TAKEN_MS + 1000 * second, "value": 15.0} for second in (-100, 0, 8)]
    write_rows(tmp_path, METRICS, metrics, file_stem="read")
    run_load(spark, tmp_path, lambda step: told.update({step.table.name: step}), now_ms=now_ms + 1000, is_full=True)
    again = [row for row in read_rows(tmp_path, LOAD_QUALITY) if row["load_ms"] == now_ms + 1000]
    assert [(row["treatment"], row["reason"], row["row_count"]) for row in again if row["table_name"] == "metrics"] == [
        ("good", None, 3),
        ("counted", "it is the first of its series", 1),
    ]
    assert len(again) == len(rows) + 2
    assert (told["metrics"].good, told["metrics"].late) == (3, 0)
    assert (told["metric_hours"].good, told["broker_loads"].good) == (1, 0)
    # Broker 2 leads partition 0 only, which alone was read; by the ratio to what was written in the same hour.
    for table in (LOAD_MODEL, PLAN_INPUTS):
        reads = {row["partition"]: (row["read_bytes_per_s"], row["read_basis"]) for row in read_rows(tmp_path, table)}
        assert reads == {0: (pytest.approx(15.0), "topic"), 1: (None, None)}


def test_what_is_missing_or_wrong_is_told_before_anything_is_made(spark: SparkSession, tmp_path: Path) -> None:
    fill(tmp_path)
    for file in (tmp_path / "samples").rglob("*.parquet"):
        file.unlink()
    with pytest.raises(DataError, match=r"no file of table samples in .* can be read: .*\.parquet is in the log .*not"):
        run_load(spark, tmp_path, lambda _: None)
    shutil.rmtree(tmp_path / "samples")
    with pytest.raises(DataError, match=r"no table samples in .*kreassign collect"):
        run_load(spark, tmp_path, lambda _: None)
    assert not (tmp_path / "load_model").exists()

    spark.range(3).write.parquet(str(tmp_path / "samples"))
    with pytest.raises(
        DataError, match=r"\.parquet belongs to no table: .*/samples has no _delta_log; .*kreassign collect"
    ):
        run_load(spark, tmp_path, lambda _: None)
    shutil.rmtree(tmp_path / "samples")
    write_rows(tmp_path, replace(SAMPLES, columns=SAMPLES.columns[:3], key=()), [], file_stem="a")
    with pytest.raises(DataError, match=r"samples in .* lacks the columns topic_id, partition, .*kreassign collect"):
        run_load(spark, tmp_path, lambda _: None)


def test_a_step_names_topics_that_are_not_in_the_snapshot() -> None:
    step = StepCount(METRICS, 9, unknown_topics={"gone": 3, "a": 1, "b": 1, "c": 1})
    assert str(step) == "metrics: 9 rows; 6 of topics that are not in the snapshot: gone, a, b and 1 more"
    step = StepCount(METRICS, 9, unknown_topics={"gone": 3}, unknown_brokers={11: 4, 2: 1})
    assert str(step).endswith(
        "; 3 of topics that are not in the snapshot: gone; 5 of brokers that are not in the snapshot: 11, 2"
    )


def test_samples_and_metrics_of_what_the_snapshot_lacks_are_named(spark: SparkSession, tmp_path: Path) -> None:
    """Examples: a topic of another cluster, and `import-metrics --broker` with a mistyped id."""
    fill(tmp_path)
    sample = {"cluster_id": "c.1", "topic": "gone", "topic_id": None, "partition": 0, "leader": -1, "size_bytes": 500}
    rows = [sample | {"taken_ms": TAKEN_MS + step, "start_offset": 0, "end_offset": 100 + step} for step in (0, 9000)]
    write_rows(tmp_path, SAMPLES, rows, file_stem="others")
    metric = {"cluster_id": "c.1", "broker": 77, "topic": None, "partition": None, "name": "bytes_out_per_s"}
    metrics = [metric | {"taken_ms": TAKEN_MS + step, "value": 15.0} for step in (0, 9000)]
    write_rows(tmp_path, METRICS, metrics, file_stem="mistyped")
    told: dict[str, StepCount] = {}
    run_load(spark, tmp_path, lambda step: told.update({step.table.name: step}), now_ms=TAKEN_MS + 60_000)
    assert "; 2 of topics that are not in the snapshot: gone" in str(told["samples"])
    assert "; 2 of brokers that are not in the snapshot: 77" in str(told["metrics"])


def test_a_load_that_leaves_all_to_spark_makes_the_same_tables(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load of few rows forecasts in its own process, and has a job for bad rows only if there are any."""
    tables = (LOAD_MODEL, BACKTESTS, FORECAST, PLAN_INPUTS)
    found, jobs = [], {}
    for name, rows_per_task in (("few", spark_io.ROWS_PER_TASK), ("many", 1)):
        monkeypatch.setattr(spark_io, "ROWS_PER_TASK", rows_per_task)
        fill(tmp_path / name)
        spark.sparkContext.setJobGroup(name, "a load")
        run_load(spark, tmp_path / name, lambda _: None, now_ms=TAKEN_MS + 60_000)
        spark.sparkContext.setJobGroup(f"{name} again", "a load without new samples")
        run_load(spark, tmp_path / name, lambda _: None, now_ms=TAKEN_MS + 120_000)
        for group in (name, f"{name} again"):
            jobs[group] = len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
        found.append([sorted(map(str, read_rows(tmp_path / name, table))) for table in tables])
    assert found[0] == found[1]
    assert (jobs["few"], jobs["few again"]) == (9, 8)
    assert jobs["many"] > 9
    assert [len(rows) for rows in found[0]] == [2, 1, 2, 5]


def test_a_cluster_that_was_silent_for_weeks_keeps_its_reads(spark: SparkSession, tmp_path: Path) -> None:
    fill(tmp_path)
    later = TAKEN_MS + 21 * 86_400_000
    sample = {"cluster_id": "c.2", "topic": "other", "topic_id": None, "partition": 0, "leader": 1, "size_bytes": 500}
    rows = [sample | {"taken_ms": later + step, "start_offset": 0, "end_offset": 100 + step} for step in (0, 9000)]
    write_rows(tmp_path, SAMPLES, rows, file_stem="later")
    metric = {"cluster_id": "c.1", "broker": 2, "topic": "orders", "partition": None, "name": "bytes_out_per_s"}
    metrics = [metric | {"taken_ms": TAKEN_MS + 1000 * second, "value": 15.0} for second in (-100, 0, 8)]
    # Of a cluster of which nothing else is known, the days of the others count.
    unknown = [metric | {"cluster_id": "c.3", "taken_ms": at_ms, "value": 7.0}
               for at_ms in (TAKEN_MS, TAKEN_MS + 9000, later, later + 9000)]  # fmt: skip
    write_rows(tmp_path, METRICS, [*metrics, *unknown], file_stem="read")
    told: dict[str, StepCount] = {}
    run_load(spark, tmp_path, lambda step: told.update({step.table.name: step}), now_ms=later + 60_000)
    assert told["metrics"].good == 5
    reads = {row["partition"]: row["read_bytes_per_s"] for row in read_rows(tmp_path, LOAD_MODEL)}
    assert reads == {0: pytest.approx(15.0), 1: None}


def test_a_table_with_bad_rows_only_is_told(spark: SparkSession, tmp_path: Path) -> None:
    fill(tmp_path)
    for file in (tmp_path / "samples").rglob("2*.parquet"):
        file.unlink()
    with pytest.raises(DataError, match=r"samples in .* has no good row \(1 bad, see table quarantine\)"):
        run_load(spark, tmp_path, lambda _: None)
    assert len(read_rows(tmp_path, QUARANTINE)) == 1


def test_files_that_cannot_be_read_are_skipped_counted_and_named(spark: SparkSession, tmp_path: Path) -> None:
    fill(tmp_path)
    samples = tmp_path / "samples"
    good = sample_rows(sample_round(TAKEN_MS + 12_000, 160))
    (samples / "README.md").write_text("What is in here?")
    (samples / "empty.parquet").touch()
    table = pa.Table.from_pylist(good, schema=arrow_schema(SAMPLES))

    def without(name: str) -> pa.Table:
        return table.drop_columns([name])

    def cast(name: str, kind: pa.DataType) -> pa.Table:
        return table.set_column(table.schema.get_field_index(name), name, table.column(name).cast(kind))

    def put(stem: str, damaged: pa.Table | None) -> None:
        """A file in the log that is not what was written; cut off without a table."""
        write_rows(tmp_path, SAMPLES, good, file_stem=stem)
        (file,) = samples.rglob(f"{stem}.*.parquet")
        if damaged is None:
            file.write_bytes(file.read_bytes()[:-20])
        else:
            pq.write_table(damaged, file)

    put("0-without-what-may-be-null", without("size_bytes"))
    put("0-without-leader", without("leader"))
    put("a-cut-off", None)
    put("long-partition", cast("partition", pa.int64()))
    put("text", cast("end_offset", pa.string()))
    put("double", cast("end_offset", pa.float64()))
    put("lost", None)
    next(samples.rglob("lost.*.parquet")).unlink()
    newest = max((tmp_path / "replicas").rglob("*.parquet"), key=lambda file: file.name)
    newest.write_bytes(newest.read_bytes()[:-20])

    told: dict[str, StepCount] = {}
    run_load(spark, tmp_path, lambda step: told.update({step.table.name: step}), now_ms=TAKEN_MS + 60_000)
    skipped = {Path(each.file).name.split(".")[0]: each.reason.split(":")[0] for each in told["samples"].skipped}
    assert skipped == {
        "README": "is no file of a table",
        "0-without-leader": "lacks the columns leader",
        "a-cut-off": "is cut off, or not a Parquet file",
        "double": "has end_offset as double in place of int64",
        "empty": "is not in the log of the table; import it with `kreassign import-samples`",
        "long-partition": "has partition as int64 in place of int32",
        "lost": "is in the log of the table, but not there",
        "text": "has end_offset as string in place of int64",
    }
    assert (told["samples"].good, told["samples"].bad) == (4, 1)
    assert str(told["replicas"]).startswith(f"replicas: 5 rows; files not read: {newest} is cut off")
    assert re.search(r"0-without-leader\S* lacks the columns leader, and 7 more", str(told["samples"]))
    # The replicas of the latest snapshot are lost; those of the one before it stand in.
    older = replace(observation(), taken_ms=TAKEN_MS - 60_000).snapshot_id
    assert {row["snapshot_id"] for row in read_rows(tmp_path, PLAN_INPUTS)} == {older}
    rows = [row for row in read_rows(tmp_path, LOAD_QUALITY) if row["treatment"] == "skipped"]
    assert sorted(row["table_name"] for row in rows) == ["replicas", *["samples"] * 8]


def test_unreadable_metrics_and_disks_are_counted_and_named(spark: SparkSession, tmp_path: Path) -> None:
    class KilledError(Exception):
        """The load ends while it keeps what it has computed."""

    def killed(step: StepCount) -> None:
        if step.table is LOAD_MODEL:
            assert kept_of(spark)
            raise KilledError

    fill(tmp_path)
    of_broker = {"cluster_id": "c.1", "broker": 2, "topic": None, "partition": None, "name": "bytes_out_per_s"}
    for stem, seconds in (("0", (-100, 0, 8)), ("1-cut-off", (4,))):
        rows = [of_broker | {"taken_ms": TAKEN_MS + 1000 * second, "value": 15.0} for second in seconds]
        write_rows(tmp_path, METRICS, rows, file_stem=stem)
    (metrics,) = (tmp_path / "metrics").rglob("1-cut-off.*.parquet")
    (dirs,) = (tmp_path / "log_dirs").rglob(f"{observation().snapshot_id}.*.parquet")
    with pytest.raises(KilledError):
        run_load(spark, tmp_path, killed)
    assert not kept_of(spark)
    for file in (metrics, dirs):
        cut_off(file)

    told: dict[str, StepCount] = {}
    run_load(spark, tmp_path, lambda step: told.update({step.table.name: step}), now_ms=TAKEN_MS + 60_000)
    assert not kept_of(spark)
    assert str(told["metrics"]).startswith(f"metrics: 3 rows; files not read: {metrics} is cut off")
    assert str(told["log_dirs"]).startswith(f"log_dirs: 0 rows; files not read: {dirs} is cut off")
    (measured,) = read_rows(tmp_path, BROKER_LOADS)
    assert (measured["broker"], measured["disk_bytes"]) == (2, None)
    assert measured["bytes_out_per_s"] == pytest.approx(15.0)
    (shown,) = show_load(tmp_path)
    assert [(one.broker, one.bytes_out_per_s, one.disk_bytes) for one in shown.measured_brokers] == [
        (2, measured["bytes_out_per_s"], None)
    ]
    rows = [row for row in read_rows(tmp_path, LOAD_QUALITY) if row["treatment"] == "skipped"]
    assert sorted(row["table_name"] for row in rows) == ["log_dirs", "metrics"]

    for file in (tmp_path / "metrics").rglob("*.parquet"):
        file.unlink()
    told.clear()
    run_load(spark, tmp_path, lambda step: told.update({step.table.name: step}), now_ms=TAKEN_MS + 60_000)
    assert re.match(r"metrics: 0 rows; files not read: \S+ is in the log .*, and 1 more", str(told["metrics"]))
    assert told["plan_inputs"].good == 5
    assert "broker_loads" not in told


def kept_of(spark: SparkSession) -> int:
    """Number of results that Spark keeps, in memory or on its disks."""
    return int(spark.sparkContext._jsc.getPersistentRDDs().size())


def test_a_snapshot_of_an_absurd_time_is_told_and_the_former_used(spark: SparkSession, tmp_path: Path) -> None:
    fill(tmp_path)
    now_ms = TAKEN_MS + 60_000
    ahead, lost = (replace(observation(), taken_ms=at) for at in (now_ms + 30 * 86_400_000, 86_400_000))
    for absurd in (ahead, lost):
        for table, rows in snapshot_tables(absurd):
            write_rows(tmp_path, table, rows, file_stem=absurd.snapshot_id)
    told: dict[str, StepCount] = {}
    run_load(spark, tmp_path, lambda step: told.update({step.table.name: step}), now_ms=now_ms)
    assert str(told["clusters"]) == "clusters: 1 row, 2 bad (see table quarantine)"
    bad = [row for row in read_rows(tmp_path, QUARANTINE) if row["table_name"] == "clusters"]
    assert {row["reason"]: json.loads(row["row_json"])["snapshot_id"] for row in bad} == {
        "taken_ms is more than an hour ahead of the load": ahead.snapshot_id,
        "taken_ms is before 2011": lost.snapshot_id,
    }
    assert {row["snapshot_id"] for row in read_rows(tmp_path, PLAN_INPUTS)} == {observation().snapshot_id}

    assert compact(tmp_path, CLUSTERS) == 1
    run_load(spark, tmp_path, lambda step: told.update({step.table.name: step}), now_ms=now_ms + 1)
    assert str(told["clusters"]) == "clusters: 1 row, 2 bad (see table quarantine)", (
        "the files are others, not the rows"
    )

    # Without any other one there is nothing to plan for, and that is what is wrong.
    for file in (tmp_path / "clusters").rglob("*.parquet"):
        if not file.name.startswith(ahead.snapshot_id):
            file.unlink()
    with pytest.raises(DataError, match=r"table clusters in .* has no good row \(1 bad, see table quarantine\)"):
        run_load(spark, tmp_path, lambda _: None, now_ms=now_ms + 2)


def test_a_table_without_any_file_that_can_be_read_says_why(spark: SparkSession, tmp_path: Path) -> None:
    fill(tmp_path)
    for file in (tmp_path / "clusters").rglob("*.parquet"):
        file.write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"no file of table clusters in .*\.parquet is cut off.*snapshot`"):
        run_load(spark, tmp_path, lambda _: None)


def test_what_spark_cannot_do_is_one_line_with_what_to_do(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    spark.range(1000).coalesce(1).write.parquet(str(tmp_path / "numbers"))
    capfd.readouterr()
    (stored,) = (tmp_path / "numbers").glob("*.parquet")
    whole = stored.read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    stored.write_bytes(whole[:4] + bytes(footer - 4) + whole[footer:])
    with pytest.raises(DataError) as damaged, failures_told(tmp_path / "spark.log"):
        spark.read.parquet(str(tmp_path / "numbers")).collect()
    with pytest.raises(DataError) as overflow, failures_told(tmp_path / "spark.log"):
        spark.range(1).select((sql.col("id") + sql.lit(2**63 - 1)) * 2).collect()
    for caught in (damaged, overflow):
        assert "\n" not in str(caught.value)
        assert "spark.log" in str(caught.value)
    assert stored.name in str(damaged.value)
    assert "Remove the file" in str(damaged.value)
    assert "overflow. Nothing was changed" in str(overflow.value)
    assert "ansi" not in str(overflow.value)
    printed = capfd.readouterr()
    assert '{"ts"' not in printed.out + printed.err


def test_a_step_that_makes_other_columns_is_a_bug_and_writes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.createDataFrame([], struct_type(REPLICAS))
    for wrong in (rows.drop("broker"), rows.withColumn("broker", rows["broker"].cast("string"))):
        with pytest.raises(InvariantBroken, match="table replicas: a step made struct<"):
            write_table(wrong, tmp_path, REPLICAS)
    assert list(tmp_path.iterdir()) == []
