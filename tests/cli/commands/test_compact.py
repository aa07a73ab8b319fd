"""Effects of `kreassign compact` on tables, and its output."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from kreassign.cli.main import kreassign
from kreassign.operations.tables import compact_tables
from kreassign.pipeline.tables.delta import open_log
from kreassign.pipeline.tables.parquet import read_rows, write_rows
from kreassign.pipeline.tables.schemas import (
    AUDITED_PARTITIONS,
    METRICS,
    RECORD_DIGESTS,
    RUN_CALLS,
    RUNS,
    SAMPLES,
    Row,
    Table,
)
from tests.pipeline.load_tables import row

DAY_MS = 86_400_000
METRIC: Row = {"cluster_id": "c", "broker": 1, "topic": None, "partition": None, "name": "cpu_share", "value": 0.5}
SAMPLE: Row = {"cluster_id": "c", "topic": "t", "topic_id": None, "partition": 0, "leader": 1, "start_offset": 0,
               "end_offset": 9, "size_bytes": 90}  # fmt: skip
GOOD: dict[Table, Row] = {METRICS: METRIC, SAMPLES: SAMPLE}


def compacted(data: Path, *arguments: str) -> list[str]:
    result = CliRunner().invoke(kreassign, ["compact", "--data", str(data), *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def age_days(data: Path, table: Table, now_ms: int) -> list[int]:
    return sorted((now_ms - row["taken_ms"]) // DAY_MS for row in read_rows(data, table))


def test_files_of_a_date_become_one_and_old_dates_go_only_when_asked(tmp_path: Path) -> None:
    # In the middle of a day (UTC), so that no date is near its end.
    now_ms = time.time_ns() // 1_000_000
    noon_ms = now_ms // DAY_MS * DAY_MS + DAY_MS // 2
    for table, good in GOOD.items():
        for number, days in enumerate((40, 31, 29, 2, 2, 2)):
            taken_ms = noon_ms - days * DAY_MS + number
            write_rows(tmp_path, table, [good | {"taken_ms": taken_ms}], file_stem=str(taken_ms))
    assert sorted(compacted(tmp_path)) == [
        f"{table}: 2 files merged, 0 expired, 0 deleted" for table in ("metrics", "samples")
    ]
    assert [age_days(tmp_path, table, noon_ms + 10) for table in GOOD] == [[2, 2, 2, 29, 31, 40]] * 2
    assert sorted(compacted(tmp_path, "--keep-days", "30")) == [
        f"{table}: 0 files merged, 2 expired, 0 deleted" for table in ("metrics", "samples")
    ]
    for table in GOOD:
        assert age_days(tmp_path, table, noon_ms + 10) == [2, 2, 2, 29]
        assert len(open_log(tmp_path, table).files()) == 2
    assert compacted(tmp_path, "--keep-days", "30") == []


def write_reading(
    data: Path, label: str, taken_ms: int, topics: str, topic_id: str | None = None, cluster_id: str = "c"
) -> None:
    write_rows(data, RECORD_DIGESTS, [row(RECORD_DIGESTS, label=label)], file_stem=label)
    known = {"label": label, "taken_ms": taken_ms, "cluster_id": cluster_id, "topic_id": topic_id}
    rows = [row(AUDITED_PARTITIONS, topic=topic, **known) for topic in topics]
    write_rows(data, AUDITED_PARTITIONS, rows, file_stem=label)


def test_old_runs_and_readings_go_with_all_their_rows(tmp_path: Path) -> None:
    now_ms = time.time_ns() // 1_000_000
    ended = {"old's": now_ms - 31 * DAY_MS, "young": now_ms - 29 * DAY_MS, "running": None}
    for run_id, ended_ms in ended.items():
        write_rows(tmp_path, RUN_CALLS, [row(RUN_CALLS, run_id=run_id)], file_stem=run_id)
        write_rows(tmp_path, RUNS, [row(RUNS, run_id=run_id, ended_ms=ended_ms)], file_stem=run_id)
    for label, days in {"old's": 40, "young": 31, "running": 0}.items():
        write_reading(tmp_path, label, now_ms - days * DAY_MS, "ab")
    assert compacted(tmp_path) == []
    assert sorted(compacted(tmp_path, "--keep-days", "30")) == [
        f"{table}: 0 files merged, 1 expired, 0 deleted"
        for table in ("audited_partitions", "record_digests", "run_calls", "runs")
    ]
    for table, name in ((RUN_CALLS, "run_id"), (RUNS, "run_id"), (RECORD_DIGESTS, "label")):
        assert sorted(each[name] for each in read_rows(tmp_path, table)) == ["running", "young"]
    assert compacted(tmp_path, "--keep-days", "30") == []


def test_a_reading_stays_until_its_topics_were_read_again_so_long_ago(tmp_path: Path) -> None:
    now_ms = time.time_ns() // 1_000_000
    readings = {"before": (99, "ab"), "a again": (50, "a"), "other": (45, "c"), "b again": (29, "b"), "c": (31, "c")}
    for label, (days, topics) in readings.items():
        write_reading(tmp_path, label, now_ms - days * DAY_MS, topics)
    compacted(tmp_path, "--keep-days", "30")
    assert {each["label"] for each in read_rows(tmp_path, RECORD_DIGESTS)} == readings.keys() - {"other"}


@pytest.mark.parametrize(("topic_ids", "gone"), [
    (("here", "there"), set()),
    (("here", "here"), {"before"}),
    ((None, "here"), {"before"}),
    (("here", None), {"before"}),
    (("here", "there", "here"), {"before"}),
    (("here", "there", None), {"before", "again"}),
])  # fmt: skip
def test_topics_created_again_count_as_others(tmp_path: Path, topic_ids: tuple[str, ...], gone: set[str]) -> None:
    labels, now_ms = ("before", "again", "last"), time.time_ns() // 1_000_000
    readings = tuple(zip(labels, topic_ids, strict=False))
    for number, (label, topic_id) in enumerate(readings):
        write_reading(tmp_path, label, now_ms - (99 - number) * DAY_MS, "a", topic_id)
    compacted(tmp_path, "--keep-days", "30")
    assert {label for label, _ in readings} - {each["label"] for each in read_rows(tmp_path, RECORD_DIGESTS)} == gone


@pytest.mark.parametrize(("cluster_id", "gone"), [("here", {"before"}), ("there", set())])
def test_topics_without_ids_are_distinguished_by_cluster(tmp_path: Path, cluster_id: str, gone: set[str]) -> None:
    now_ms = time.time_ns() // 1_000_000
    write_reading(tmp_path, "before", now_ms - 99 * DAY_MS, "a", cluster_id="here")
    write_reading(tmp_path, "again", now_ms - 50 * DAY_MS, "a", cluster_id=cluster_id)
    compacted(tmp_path, "--keep-days", "30")
    assert {"before", "again"} - {each["label"] for each in read_rows(tmp_path, RECORD_DIGESTS)} == gone


def test_a_reading_that_is_made_again_meanwhile_stays(tmp_path: Path) -> None:
    now_ms = time.time_ns() // 1_000_000
    for label, days in {"a": 99, "b": 98}.items():
        write_reading(tmp_path, label, now_ms - days * DAY_MS, "t")
    for done in compact_tables(tmp_path, keep_days=30):
        if done.table == RECORD_DIGESTS.name:
            write_reading(tmp_path, "a", now_ms, "t")
    for table in (RECORD_DIGESTS, AUDITED_PARTITIONS):
        assert {each["label"] for each in read_rows(tmp_path, table)} == {"a", "b"}


def test_runs_that_cannot_be_read_keep_no_old_dates(tmp_path: Path) -> None:
    write_rows(tmp_path, METRICS, [METRIC | {"taken_ms": DAY_MS}], file_stem="old")
    write_rows(tmp_path, RUNS, [row(RUNS, run_id="r", ended_ms=DAY_MS)], file_stem="r")
    (file,) = (tmp_path / "runs").rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:-9])
    result = CliRunner().invoke(kreassign, ["compact", "--data", str(tmp_path), "--keep-days", "30"])
    assert (result.exit_code, file.name in result.stderr) == (6, True)
    assert open_log(tmp_path, METRICS).files() == []


def test_a_folder_without_tables_is_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(kreassign, ["compact", "--data", str(tmp_path / "dta")])
    assert (result.exit_code, f"there is no folder {tmp_path / 'dta'}; " in result.stderr) == (6, True)


@pytest.mark.parametrize("days", ["0", "-1", "forever"])
def test_days_that_keep_nothing_are_refused(tmp_path: Path, days: str) -> None:
    result = CliRunner().invoke(kreassign, ["compact", "--data", str(tmp_path), "--keep-days", days])
    assert result.exit_code == 2
    assert "--keep-days" in result.stderr
