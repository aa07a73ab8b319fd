from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kreassign.errors import DataError
from kreassign.pipeline.ingest.snapshots import sample_rows
from kreassign.pipeline.tables.compaction import compact, expire, repair
from kreassign.pipeline.tables.parquet import read_rows, write_rows
from kreassign.pipeline.tables.schemas import SAMPLES, Row
from tests.pipeline.clusters import sample_round

HOUR_MS = 3_600_000
TEN = 10 * HOUR_MS


def fill(data: Path) -> list[Row]:
    """Three rounds in the hour from ten, one in the next."""
    for taken_ms in (TEN, TEN + 1, TEN + 2, TEN + HOUR_MS):
        seen = sample_round(taken_ms, 120)
        write_rows(data, SAMPLES, sample_rows(seen), file_stem=seen.file_stem, taken_ms=taken_ms)
    return by_time(data)


def by_time(data: Path) -> list[Row]:
    return sorted(read_rows(data, SAMPLES), key=lambda row: row["taken_ms"])


def files(data: Path) -> dict[str, int]:
    hours = sorted((data / "samples").glob("date=*/*"))
    return {hour.name: len(list(hour.glob("*.parquet"))) for hour in hours}


def test_the_files_of_an_hour_that_is_over_become_one_with_the_same_rows(tmp_path: Path) -> None:
    before = fill(tmp_path)
    assert compact(tmp_path, SAMPLES, ended_before_ms=TEN + HOUR_MS - 1) == 0
    assert compact(tmp_path, SAMPLES, ended_before_ms=TEN + HOUR_MS) == 2
    assert files(tmp_path) == {"hour=10": 1, "hour=11": 1}
    assert by_time(tmp_path) == before
    assert compact(tmp_path, SAMPLES, ended_before_ms=TEN + 9 * HOUR_MS) == 0


def test_hours_that_are_too_old_go_and_with_the_last_the_day(tmp_path: Path) -> None:
    fill(tmp_path)
    assert expire(tmp_path, SAMPLES, ended_before_ms=TEN + HOUR_MS) == 3
    assert [row["taken_ms"] for row in by_time(tmp_path)] == [TEN + HOUR_MS]
    assert expire(tmp_path, SAMPLES, ended_before_ms=TEN + 2 * HOUR_MS) == 1
    assert list((tmp_path / "samples").iterdir()) == []


@pytest.mark.parametrize("moment", ["while it writes", "between the renames", "before the old files are gone"])
def test_a_kill_at_any_moment_is_put_right_without_loss(tmp_path: Path, moment: str) -> None:
    before = fill(tmp_path)
    day = next((tmp_path / "samples").iterdir())
    hour, merged, old = day / "hour=10", day / ".hour=10.merged", day / ".hour=10.old"
    merged.mkdir()
    if moment == "while it writes":
        (merged / "a.parquet").write_bytes(b"half")
    else:
        hour.rename(old)
    if moment == "before the old files are gone":
        merged.rmdir()
        hour.mkdir()
        for file in old.iterdir():
            (hour / file.name).write_bytes(file.read_bytes())
    assert repair(tmp_path, SAMPLES) > 0
    assert by_time(tmp_path) == before
    assert sorted(files(tmp_path)) == ["hour=10", "hour=11"]
    assert repair(tmp_path, SAMPLES) == 0


def test_what_is_hidden_while_it_is_not_done_is_not_read(tmp_path: Path) -> None:
    before = fill(tmp_path)
    day = next((tmp_path / "samples").iterdir())
    hidden = day / ".hour=10.merged"
    hidden.mkdir()
    for file in (day / "hour=10").iterdir():
        (hidden / file.name).write_bytes(file.read_bytes())
    assert by_time(tmp_path) == before


def test_a_file_of_another_version_is_named_and_nothing_is_touched(tmp_path: Path) -> None:
    fill(tmp_path)
    hour = tmp_path / "samples" / "date=1970-01-01" / "hour=10"
    pq.write_table(pa.table({"taken_ms": [1]}), hour / "older.parquet")
    with pytest.raises(DataError, match=r"older\.parquet lacks the columns"):
        compact(tmp_path, SAMPLES, ended_before_ms=TEN + HOUR_MS)
    assert files(tmp_path) == {"hour=10": 4, "hour=11": 1}
