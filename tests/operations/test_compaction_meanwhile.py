"""Compaction by whoever writes small files all the time."""

from __future__ import annotations

import os
import time
from pathlib import Path

from kreassign.clock import SystemClock
from kreassign.operations.ingest import VACUUM_EVERY, Compaction
from kreassign.pipeline.tables.delta import open_log
from kreassign.pipeline.tables.parquet import read_rows, write_rows
from kreassign.pipeline.tables.schemas import METRIC_BATCHES, METRICS, METRICS_QUARANTINE, Row

TAKEN_MS = 1_760_000_000_000
EVERY = 3


def write(data: Path, number: int) -> None:
    row: Row = {"cluster_id": "c", "taken_ms": TAKEN_MS + number, "broker": 1, "topic": None, "partition": None,
                "name": "cpu_share", "value": 0.5}  # fmt: skip
    write_rows(data, METRICS, [row], file_stem=f"{number:04}")


def files(data: Path) -> int:
    return len(open_log(data, METRICS).files())


def test_tables_are_compacted_after_so_many_writes_and_keep_every_row(tmp_path: Path) -> None:
    warned: list[str] = []
    # Those that are not there are nobody's trouble.
    compaction = Compaction(
        tmp_path, (METRICS_QUARANTINE, METRICS, METRIC_BATCHES), EVERY, SystemClock(), warned.append
    )
    seen = []
    for number in range(1, 8):
        write(tmp_path, number)
        compaction.after(number)
        seen.append(files(tmp_path))
    assert seen == [1, 2, 1, 2, 3, 1, 2]
    assert sorted(row["taken_ms"] - TAKEN_MS for row in read_rows(tmp_path, METRICS)) == [*range(1, 8)]
    assert warned == []


def test_what_no_version_has_goes_with_every_twenty_fourth_compaction(tmp_path: Path) -> None:
    left, a_week_ago = tmp_path / METRICS.name / "left-by-a-killed-writer.parquet", time.time() - 8 * 86_400
    compaction = Compaction(tmp_path, (METRICS,), 1, SystemClock(), [].append)
    write(tmp_path, 1)
    left.touch()
    os.utime(left, (a_week_ago, a_week_ago))
    for number in range(1, VACUUM_EVERY + 1):
        assert left.exists()
        compaction.after(number)
    assert not left.exists()
    assert files(tmp_path) == 1


def test_a_table_that_cannot_be_compacted_is_told_and_costs_no_other(tmp_path: Path) -> None:
    warned: list[str] = []
    for number in (1, 2):
        write(tmp_path, number)
    broken = tmp_path / METRICS_QUARANTINE.name
    (broken / "_delta_log").mkdir(parents=True)
    (broken / "_delta_log" / f"{0:020}.json").write_text("not a log")
    Compaction(tmp_path, (METRICS_QUARANTINE, METRICS), 1, SystemClock(), warned.append).after(1)
    assert files(tmp_path) == 1
    (told,) = warned
    assert told.startswith("not compacted: ")
    assert METRICS_QUARANTINE.name in told
