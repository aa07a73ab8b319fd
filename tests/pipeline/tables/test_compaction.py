from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bench import load_files
from bench.load_files import FIRST_HOUR, HOUR_MS
from kreassign.errors import DataError
from kreassign.model.load import LoadNumber
from kreassign.pipeline.ingest.snapshots import sample_rows
from kreassign.pipeline.tables import commits
from kreassign.pipeline.tables.delta import log_to_write, open_log, undo_after
from kreassign.pipeline.tables.parquet import TablesAt, loads_of, read_rows, tables_at, write_rows
from kreassign.pipeline.tables.schemas import (
    LOAD_HOURS,
    LOAD_MODEL,
    LOAD_QUALITY,
    LOADS,
    METRICS,
    QUARANTINE,
    RUNS,
    SAMPLES,
    Partitioning,
    Row,
)
from tests.pipeline.clusters import sample_round
from tests.pipeline.load_tables import quality, row

DAY_MS = 86_400_000
NOW_MS = time.time_ns() // 1_000_000


def fill(data: Path) -> list[Row]:
    """Three rounds on the second of January 1970, one on the third."""
    for taken_ms in (DAY_MS, DAY_MS + 1, DAY_MS + 2, 2 * DAY_MS):
        seen = sample_round(taken_ms, 120)
        write_rows(data, SAMPLES, sample_rows(seen), file_stem=seen.file_stem)
    return by_time(data)


def by_time(data: Path) -> list[Row]:
    return sorted(read_rows(data, SAMPLES), key=lambda row: row["taken_ms"])


def files(data: Path) -> list[str | None]:
    return [file.part for file in open_log(data, SAMPLES).files()]


def test_the_files_of_a_date_become_one_with_the_same_rows(tmp_path: Path) -> None:
    before = fill(tmp_path)
    assert files(tmp_path) == ["1970-01-02"] * 3 + ["1970-01-03"]
    assert commits.compact(tmp_path, SAMPLES) == 2
    assert sorted(map(str, files(tmp_path))) == ["1970-01-02", "1970-01-03"]
    assert by_time(tmp_path) == before
    assert commits.compact(tmp_path, SAMPLES) == 0


def test_dates_that_are_too_old_go(tmp_path: Path) -> None:
    fill(tmp_path)
    assert commits.expire(tmp_path, SAMPLES, "1970-01-02") == 0
    assert commits.expire(tmp_path, SAMPLES, "1970-01-03") == 3
    assert [row["taken_ms"] for row in by_time(tmp_path)] == [2 * DAY_MS]


def test_parts_written_again_after_they_were_found_outdated_stay(tmp_path: Path) -> None:
    def write(run_id: str, ended_ms: int | None) -> None:
        write_rows(tmp_path, RUNS, [row(RUNS, run_id=run_id, ended_ms=ended_ms)], file_stem=run_id)

    def outdated() -> set[str]:
        if any(each["ended_ms"] is None for each in read_rows(tmp_path, RUNS)):
            return {"old"}
        write("again", None)
        return {"again", "old"}

    for run_id in ("again", "old", "other"):
        write(run_id, 1)
    assert commits.expire_parts(tmp_path, RUNS, outdated) == 1
    assert {(each["run_id"], each["ended_ms"]) for each in read_rows(tmp_path, RUNS)} >= {("again", None), ("other", 1)}
    assert {each["run_id"] for each in read_rows(tmp_path, RUNS)} == {"again", "other"}


def test_parts_that_are_always_written_again_are_told_and_stay(tmp_path: Path) -> None:
    def outdated() -> set[str]:
        write_rows(tmp_path, RUNS, [row(RUNS, run_id="again", ended_ms=1)], file_stem="again")
        return {"again"}

    outdated()
    with pytest.raises(DataError, match="was changed by another process meanwhile"):
        commits.expire_parts(tmp_path, RUNS, outdated)
    assert {each["run_id"] for each in read_rows(tmp_path, RUNS)} == {"again"}


def test_old_dates_of_metrics_go_and_small_files_become_one(tmp_path: Path) -> None:
    metric: Row = {"cluster_id": "c", "broker": 1, "topic": None, "partition": None, "name": "cpu_share", "value": 0.5}
    times = (DAY_MS, 2 * DAY_MS, 2 * DAY_MS + 1)
    for taken_ms in times:
        write_rows(tmp_path, METRICS, [metric | {"taken_ms": taken_ms}], file_stem=str(taken_ms))
    assert (commits.expire(tmp_path, METRICS, "1970-01-03"), commits.compact(tmp_path, METRICS)) == (1, 1)
    assert sorted(row["taken_ms"] for row in read_rows(tmp_path, METRICS)) == [*times[1:]]


def test_a_recent_version_reads_the_same_after_compaction_and_vacuum(tmp_path: Path) -> None:
    before = fill(tmp_path)
    version = open_log(tmp_path, SAMPLES).version
    commits.compact(tmp_path, SAMPLES)
    commits.expire(tmp_path, SAMPLES, "1970-01-03")
    assert commits.vacuum(tmp_path, SAMPLES, NOW_MS) == 0
    then = read_rows(TablesAt(tmp_path, {"samples": version}), SAMPLES)
    assert sorted(then, key=lambda row: row["taken_ms"]) == before


def test_copies_that_a_sync_brought_back_after_compaction_are_nobodys(tmp_path: Path) -> None:
    before = fill(tmp_path)
    copies = {file: file.read_bytes() for file in (tmp_path / "samples").rglob("*.parquet")}
    commits.compact(tmp_path, SAMPLES)
    for file, content in copies.items():
        file.write_bytes(content)
        file.with_name(f"copy-of-{file.name}").write_bytes(content)
    assert by_time(tmp_path) == before


def test_a_lost_file_is_taken_out_of_the_table(tmp_path: Path) -> None:
    fill(tmp_path)
    lost = next(file for file in open_log(tmp_path, SAMPLES).files() if file.part == "1970-01-03")
    (tmp_path / "samples" / lost.path).unlink()
    assert commits.repair(tmp_path, SAMPLES) == 1
    assert [row["taken_ms"] for row in by_time(tmp_path)] == [DAY_MS, DAY_MS + 1, DAY_MS + 2]
    assert commits.repair(tmp_path, SAMPLES) == 0


def load(data: Path, name: str, days_ago: int, *, is_killed: bool = False) -> None:
    """Replace the rows of table `load_model`, so many days ago: all that happened before it is as long ago, too."""
    version = write_rows(data, LOAD_MODEL, [row(LOAD_MODEL, cluster_id=name)], file_stem="load")
    if not is_killed:
        commits.publish(
            data, NOW_MS - days_ago * DAY_MS, [commits.LoadedTable(LOAD_MODEL, version, 1)], commits.last_load(data)
        )


def make_older(data: Path, days: int) -> None:
    """Let all that was done in table `load_model` be so many days ago, or that many more."""
    for file in (data / "load_model").rglob("*"):
        then_ns = file.stat().st_mtime_ns - days * DAY_MS * 1_000_000
        if file.suffix == ".json":
            actions = [json.loads(line) for line in file.read_text().splitlines()]
            for action in actions:
                if "remove" in action:
                    action["remove"]["deletionTimestamp"] -= days * DAY_MS
            file.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
        os.utime(file, ns=(then_ns, then_ns))


def seen(data: Path, number: int | None = None) -> list[str]:
    at = tables_at(data, None if number is None else LoadNumber(number))
    return [each["cluster_id"] for each in read_rows(at, LOAD_MODEL)]


def test_what_loads_replaced_goes_once_no_load_of_the_last_days_has_it(tmp_path: Path) -> None:
    load(tmp_path, "first", 30)
    make_older(tmp_path, 10)
    load(tmp_path, "second", 20)
    make_older(tmp_path, 10)
    load(tmp_path, "killed", 10, is_killed=True)
    make_older(tmp_path, 7)
    load(tmp_path, "third", 3)
    make_older(tmp_path, 3)
    load(tmp_path, "fourth", 0)
    assert commits.compact(tmp_path, LOAD_MODEL) == 0, "readers read what the loads made"
    # The second was the last one until three days ago, though a load that was killed replaced its files before.
    assert (commits.vacuum(tmp_path, LOAD_MODEL, NOW_MS), commits.vacuum(tmp_path, LOAD_MODEL, NOW_MS)) == (1, 0)
    assert [seen(tmp_path, number) for number in (2, 3, 4, None)] == [["second"], ["third"], ["fourth"], ["fourth"]]
    with pytest.raises(DataError, match=r"version 1 of table load_model in .* is no longer there: old .* for 7 days;"):
        seen(tmp_path, 1)
    make_older(tmp_path, 8)
    assert commits.vacuum(tmp_path, LOAD_MODEL, NOW_MS + 8 * DAY_MS) == 3
    assert seen(tmp_path) == ["fourth"], "however old it is, the last load stays"


def test_one_checkpoint_a_day_is_left_and_all_versions_are_readable(tmp_path: Path) -> None:
    for number in range(45):
        write_rows(tmp_path, SAMPLES, sample_rows(sample_round(DAY_MS + number, 120)), file_stem=str(number))
    folder = tmp_path / "samples" / "_delta_log"
    checkpoints = sorted(folder.glob("*.checkpoint.parquet"))
    assert len(checkpoints) == 4
    for file, day in zip(checkpoints, (3, 3, 2, 2), strict=True):
        os.utime(file, (NOW_MS / 1000 - day * 86_400,) * 2)
    version = open_log(tmp_path, SAMPLES).version
    commits.compact(tmp_path, SAMPLES)
    assert sorted(folder.glob("*.checkpoint.parquet")) == [checkpoints[at] for at in (0, 2, 3)]
    rows = [len(open_log(tmp_path, SAMPLES, each).files()) for each in range(version + 1)]
    assert rows == list(range(version + 1))
    assert files(tmp_path) == ["1970-01-02"]


def test_a_lost_file_stays_out_when_the_next_load_undoes_the_rest(
    tmp_path: Path,
) -> None:
    for load_ms in (NOW_MS, NOW_MS + 1):
        write_rows(tmp_path, LOAD_QUALITY, quality(1, begun_ms=load_ms), file_stem=str(load_ms))
    known = open_log(tmp_path, LOAD_QUALITY)
    lost, kept = known.files()
    Path(known.place_of(lost)).unlink()
    assert commits.repair(tmp_path, LOAD_QUALITY) == 1
    undo_after(log_to_write(tmp_path, LOAD_QUALITY), known.version)
    assert open_log(tmp_path, LOAD_QUALITY).files() == [kept]


def hourly_loads(data: Path, count: int, begin: int = 0) -> None:
    for number in range(begin + 1, begin + count + 1):
        load_files.load(data, number, partitions=10)


def hours_of_last_load(data: Path) -> list[int]:
    return sorted({each["hour_ms"] // HOUR_MS - FIRST_HOUR for each in read_rows(tables_at(data), LOAD_HOURS)})


def test_tables_to_which_loads_add_have_few_files_and_all_their_rows(tmp_path: Path) -> None:
    hourly_loads(tmp_path, 60)
    loads = commits.last_load(tmp_path)
    assert loads is not None
    for table in (LOAD_HOURS, LOAD_QUALITY, QUARANTINE, LOADS):
        version = loads.versions.get(table.name)
        assert len(open_log(tmp_path, table, version).files()) <= commits.MOST_SMALL_FILES + 2
    assert hours_of_last_load(tmp_path) == list(range(61))
    assert len(read_rows(tmp_path, LOAD_QUALITY)) == 60 * 3
    assert [load.number for load in loads_of(tmp_path)] == list(range(1, 61))


def test_each_load_reads_as_it_was_made_though_later_ones_merged_files(tmp_path: Path) -> None:
    hourly_loads(tmp_path, 30)
    for number in (5, 25, 26, 30):
        found = read_rows(tables_at(tmp_path, LoadNumber(number)), LOAD_HOURS)
        assert {each["hour_ms"] // HOUR_MS - FIRST_HOUR for each in found} == set(range(number + 1))


def test_a_load_that_another_overtook_merges_nothing(tmp_path: Path) -> None:
    hourly_loads(tmp_path, 24)
    loads = commits.last_load(tmp_path)
    assert loads is not None
    made = commits.LoadedTable(LOAD_HOURS, loads.versions["load_hours"], 20)
    write_rows(tmp_path, LOAD_HOURS, [row(LOAD_HOURS, cluster_id="other", is_open=True)], file_stem="other")
    version = open_log(tmp_path, LOAD_HOURS).version
    assert commits.tended(tmp_path, made) == made
    assert open_log(tmp_path, LOAD_HOURS).version == version


def test_old_hours_accounts_and_loads_go_but_for_the_window(tmp_path: Path) -> None:
    days = LOAD_HOURS.kept.days if LOAD_HOURS.kept else 0
    hourly_loads(tmp_path, 10)
    hourly_loads(tmp_path, 30, begin=days * 24 + 100)
    assert min(hours_of_last_load(tmp_path)) == days * 24 + 100
    assert len(read_rows(tmp_path, LOAD_QUALITY)) == 30 * 3
    assert len(read_rows(tmp_path, QUARANTINE)) == 30
    assert min(load.number for load in loads_of(tmp_path)) == 11
    # A window that is longer keeps what is in it.
    made = commits.LoadedTable(LOAD_HOURS, open_log(tmp_path, LOAD_HOURS).version, 0)
    hourly_loads(tmp_path, 1, begin=2 * days * 24 + 200)
    made = commits.LoadedTable(LOAD_HOURS, open_log(tmp_path, LOAD_HOURS).version, 0)
    assert commits.tended(tmp_path, made, window_days=10 * days) == made


def test_a_table_that_groups_its_files_otherwise_is_refused(tmp_path: Path) -> None:
    other = replace(LOAD_QUALITY, partition_by=Partitioning("load", "load_ms"))
    write_rows(tmp_path, other, quality(1), file_stem="a")
    with pytest.raises(DataError, match=r"load_quality in .* groups its files by load, and this version .* by nothing"):
        log_to_write(tmp_path, LOAD_QUALITY)
