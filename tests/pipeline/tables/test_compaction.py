from __future__ import annotations

from pathlib import Path

from kreassign.pipeline.ingest.snapshots import sample_rows
from kreassign.pipeline.tables.compaction import compact, expire, repair, vacuum
from kreassign.pipeline.tables.delta import open_log
from kreassign.pipeline.tables.parquet import TablesAt, read_rows, write_rows
from kreassign.pipeline.tables.schemas import SAMPLES, Row
from tests.pipeline.clusters import sample_round

DAY_MS = 86_400_000


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
    assert compact(tmp_path, SAMPLES) == 2
    assert sorted(map(str, files(tmp_path))) == ["1970-01-02", "1970-01-03"]
    assert by_time(tmp_path) == before
    assert compact(tmp_path, SAMPLES) == 0


def test_dates_that_are_too_old_go(tmp_path: Path) -> None:
    fill(tmp_path)
    assert expire(tmp_path, SAMPLES, "1970-01-02") == 0
    assert expire(tmp_path, SAMPLES, "1970-01-03") == 3
    assert [row["taken_ms"] for row in by_time(tmp_path)] == [2 * DAY_MS]


def test_a_version_of_the_last_days_reads_as_it_was_after_compaction_and_vacuum(tmp_path: Path) -> None:
    before = fill(tmp_path)
    version = open_log(tmp_path, SAMPLES).version
    compact(tmp_path, SAMPLES)
    expire(tmp_path, SAMPLES, "1970-01-03")
    assert vacuum(tmp_path, SAMPLES) == 0
    then = read_rows(TablesAt(tmp_path, {"samples": version}), SAMPLES)
    assert sorted(then, key=lambda row: row["taken_ms"]) == before


def test_copies_that_a_sync_brought_back_after_compaction_are_nobodys(tmp_path: Path) -> None:
    before = fill(tmp_path)
    copies = {file: file.read_bytes() for file in (tmp_path / "samples").rglob("*.parquet")}
    compact(tmp_path, SAMPLES)
    for file, content in copies.items():
        file.write_bytes(content)
        file.with_name(f"copy-of-{file.name}").write_bytes(content)
    assert by_time(tmp_path) == before


def test_a_lost_file_is_taken_out_of_the_table(tmp_path: Path) -> None:
    fill(tmp_path)
    lost = next(file for file in open_log(tmp_path, SAMPLES).files() if file.part == "1970-01-03")
    (tmp_path / "samples" / lost.path).unlink()
    assert repair(tmp_path, SAMPLES) == 1
    assert [row["taken_ms"] for row in by_time(tmp_path)] == [DAY_MS, DAY_MS + 1, DAY_MS + 2]
    assert repair(tmp_path, SAMPLES) == 0
