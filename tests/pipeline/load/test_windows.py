"""Measured part of each hour of the last day, from tables written as values."""

from __future__ import annotations

from pathlib import Path

from kreassign.model.load import MeasuredHour
from kreassign.pipeline.load.summary import load_columns, windows
from kreassign.pipeline.tables.delta import open_log
from kreassign.pipeline.tables.parquet import write_rows
from kreassign.pipeline.tables.schemas import LOAD_HOURS, Row
from tests.pipeline.finished_load import finish_load
from tests.pipeline.load_tables import HOUR_MS, TAKEN_MS, fill, load_row, row

LAST_MS = TAKEN_MS // HOUR_MS * HOUR_MS
"""The hour that goes on."""


def hour(ago: int, partition: int = 0, seconds: float = 3600.0, **values: object) -> Row:
    """A row of `load_hours` of topic t, so many hours before the last one."""
    key = {"cluster_id": "c.1", "topic": "t", "partition": partition, "hour_ms": LAST_MS - ago * HOUR_MS}
    return row(LOAD_HOURS, **key, seconds=seconds) | values


def measured(data: Path) -> dict[int, float]:
    """Measured part of each hour, by its distance in hours from the last one; hours without any are absent."""
    found = windows(data, load_columns(data, "c.1"))
    assert [one.hour_ms for one in found] == [LAST_MS - ago * HOUR_MS for ago in range(24, 0, -1)]
    return {24 - place: one.measured_share for place, one in enumerate(found) if one.measured_share}


def test_the_last_day_are_the_24_hours_before_the_last_one(tmp_path: Path) -> None:
    hours = [hour(0), hour(1), hour(5, seconds=1800.0), hour(24, seconds=900.0), hour(25)]
    fill(tmp_path, [load_row("t", 0, 1.0)], load_hours=hours)
    assert measured(tmp_path) == {1: 1.0, 5: 0.5, 24: 0.25}


def test_each_partition_counts_alike_and_missing_ones_for_nothing(tmp_path: Path) -> None:
    loads = [load_row("s", 0, 1.0), load_row("t", 0, 1.0), load_row("t", 1, 1.0), load_row("t", 2)]
    others = [hour(1, partition=7), hour(1, topic="gone"), hour(1, cluster_id="c.2"), hour(0, topic="s")]
    hours = [hour(1), hour(1, 1, seconds=1800.0), hour(2, 1), hour(3, topic="s"), *others]
    fill(tmp_path, loads, load_hours=hours)
    assert measured(tmp_path) == {1: 1.5 / 4, 2: 0.25, 3: 0.25}


def test_no_more_than_the_whole_hour_is_measured(tmp_path: Path) -> None:
    # An interval belongs to the hour that it ends in; of a log that was reset there are two rows.
    hours = [hour(0), hour(1, seconds=7200.0), hour(2), hour(2, epoch=1, seconds=1800.0), hour(3, seconds=3600.0)]
    fill(tmp_path, [load_row("t", 0, 1.0)], load_hours=hours)
    assert measured(tmp_path) == {1: 1.0, 2: 1.0, 3: 1.0}
    fill(tmp_path / "two", [load_row("t", 0, 1.0), load_row("t", 1, 1.0)], load_hours=[hour(0), *hours[1:2]])
    assert measured(tmp_path / "two") == {1: 0.5}


def test_only_files_of_the_last_day_are_read(tmp_path: Path) -> None:
    closed, going_on = [hour(200)], [hour(ago, is_open=True) for ago in (24, 2, 0)]
    fill(tmp_path, [load_row("t", 0, 1.0)], load_hours=[*closed, *going_on])
    old = min(open_log(tmp_path, LOAD_HOURS).files(), key=lambda file: file.highs["hour_ms"])
    next(tmp_path.rglob(Path(old.path).name)).unlink()
    assert measured(tmp_path) == {24: 1.0, 2: 1.0}


def test_where_no_hours_are_told_of_there_are_no_windows(tmp_path: Path) -> None:
    fill(tmp_path, [load_row("t", 0, 1.0)])
    assert windows(tmp_path, load_columns(tmp_path, "c.1")) == ()
    write_rows(tmp_path, LOAD_HOURS, [], file_stem="none")
    finish_load(tmp_path, TAKEN_MS + 1)
    assert windows(tmp_path, load_columns(tmp_path, "c.1")) == ()


def test_windows_are_values(tmp_path: Path) -> None:
    fill(tmp_path, [load_row("t", 0, 1.0)], load_hours=[hour(0), hour(1, seconds=1800.0)])
    found = windows(tmp_path, load_columns(tmp_path, "c.1"))
    assert found[-1] == MeasuredHour(LAST_MS - HOUR_MS, 0.5)
    assert found[0] == MeasuredHour(LAST_MS - 24 * HOUR_MS, 0.0)
