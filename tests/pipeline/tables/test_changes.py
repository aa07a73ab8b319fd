from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

from kreassign.errors import DataError
from kreassign.pipeline.ingest.snapshots import sample_rows
from kreassign.pipeline.tables.commits import added_since, compact, expire
from kreassign.pipeline.tables.delta import DataFile, open_log
from kreassign.pipeline.tables.parquet import write_rows
from kreassign.pipeline.tables.schemas import SAMPLES
from tests.pipeline.clusters import sample_round

DAY_MS = 86_400_000


def add_round(data: Path, taken_ms: int) -> int:
    """Add a round of samples; the version that this made."""
    seen = sample_round(taken_ms, 120)
    return write_rows(data, SAMPLES, sample_rows(seen), file_stem=seen.file_stem)


def changes(data: Path, after: int) -> tuple[DataFile, ...]:
    return added_since(open_log(data, SAMPLES), after)


def times_in(data: Path, found: Sequence[DataFile]) -> list[int]:
    """Times of the rounds whose rows are in the added files; each as often as it is there."""
    files = [data / SAMPLES.name / file.path for file in found]
    rows = [row for file in files for row in pq.read_table(file, partitioning=None).to_pylist()]
    assert sum(file.row_count for file in found) == len(rows)
    return sorted(row["taken_ms"] for row in rows if (row["topic"], row["partition"]) == first_of(rows))


def first_of(rows: list[dict[str, object]]) -> tuple[object, object]:
    return min((str(row["topic"]), row["partition"]) for row in rows)


def test_rounds_compacted_together_are_read_from_the_new_file(tmp_path: Path) -> None:
    before = add_round(tmp_path, DAY_MS - 1)
    for second in range(5):
        add_round(tmp_path, DAY_MS + 1000 * second)
    compact(tmp_path, SAMPLES)
    add_round(tmp_path, DAY_MS + 5000)
    found = changes(tmp_path, before)
    assert len(found) == 2
    assert times_in(tmp_path, found) == [DAY_MS + 1000 * second for second in range(6)]


def test_rounds_compacted_with_older_ones_are_read_as_written(tmp_path: Path) -> None:
    before = add_round(tmp_path, DAY_MS)
    add_round(tmp_path, DAY_MS + 1000)
    compact(tmp_path, SAMPLES)
    add_round(tmp_path, DAY_MS + 2000)
    compact(tmp_path, SAMPLES)
    found = changes(tmp_path, before)
    assert len(found) == 2
    assert times_in(tmp_path, found) == [DAY_MS + 1000, DAY_MS + 2000]


def test_rounds_that_expired_since_were_never_added(tmp_path: Path) -> None:
    before = add_round(tmp_path, DAY_MS)
    add_round(tmp_path, DAY_MS + 1000)
    add_round(tmp_path, 2 * DAY_MS)
    expire(tmp_path, SAMPLES, "1970-01-03")
    found = changes(tmp_path, before)
    assert times_in(tmp_path, found) == [2 * DAY_MS]


def test_a_log_that_was_cleaned_no_longer_tells_the_changes(tmp_path: Path) -> None:
    """The package `deltalake` cleans it by itself, once a checkpoint is a week old."""
    before = add_round(tmp_path, DAY_MS)
    for second in range(1, 12):
        add_round(tmp_path, DAY_MS + 1000 * second)
    log = tmp_path / SAMPLES.name / "_delta_log"
    for file in log.iterdir():
        os.utime(file, (1, 1))
    add_round(tmp_path, 2 * DAY_MS)
    assert not (log / f"{before + 1:020}.json").exists()
    with pytest.raises(DataError, match=rf"samples .* since version {before}: .* 7 days; run `kreassign load --full"):
        changes(tmp_path, before)


def test_a_lost_file_of_the_table_is_left_to_its_reader(tmp_path: Path) -> None:
    before = add_round(tmp_path, DAY_MS)
    last = add_round(tmp_path, DAY_MS + 1000)
    (file,) = changes(tmp_path, before)
    (tmp_path / SAMPLES.name / file.path).unlink()
    assert changes(tmp_path, before) == (file,)
    assert changes(tmp_path, last) == ()


def test_a_round_compacted_with_older_ones_and_vacuumed_is_unknown(tmp_path: Path) -> None:
    before = add_round(tmp_path, DAY_MS)
    add_round(tmp_path, DAY_MS + 1000)
    (file,) = changes(tmp_path, before)
    compact(tmp_path, SAMPLES)
    (tmp_path / SAMPLES.name / file.path).unlink()
    with pytest.raises(DataError, match=r"no longer tells what was added"):
        changes(tmp_path, before)


def test_a_compaction_without_its_parts_is_not_trusted(tmp_path: Path) -> None:
    """The format leaves it to the writer whether it says so."""
    before = add_round(tmp_path, DAY_MS)
    add_round(tmp_path, DAY_MS + 1000)
    compact(tmp_path, SAMPLES)
    log = open_log(tmp_path, SAMPLES)
    path = tmp_path / SAMPLES.name / "_delta_log" / f"{log.version:020}.json"
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        action.get("remove", {}).pop("partitionValues", None)
    path.write_text("\n".join(map(json.dumps, actions)))
    assert times_in(tmp_path, changes(tmp_path, before)) == [DAY_MS + 1000]


@pytest.mark.parametrize("seed", range(6))
def test_each_added_round_is_there_once_after_compaction_and_expiry(tmp_path: Path, seed: int) -> None:
    chance, taken = Random(seed), iter(range(DAY_MS, 9 * DAY_MS, DAY_MS // 4))
    versions, rounds, first_kept = [], [], 0
    for _ in range(16):
        step = chance.choice(["round"] * 4 + ["compact"] * 2 + ["expire"]) if rounds else "round"
        if step == "round":
            rounds.append(next(taken))
            versions.append(add_round(tmp_path, rounds[-1]))
        elif step == "compact":
            compact(tmp_path, SAMPLES)
        else:
            first_kept = chance.choice(rounds) // DAY_MS * DAY_MS
            expire(tmp_path, SAMPLES, f"1970-01-{1 + first_kept // DAY_MS:02}")
    for number, version in enumerate(versions):
        if found := changes(tmp_path, version):
            added = rounds[number + 1 :]
            times = times_in(tmp_path, found)
            assert set(times) >= {each for each in added if each >= first_kept}
            assert set(times) <= set(added)
            assert len(times) == len(set(times))
