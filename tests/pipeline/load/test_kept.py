from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from kreassign.errors import DataError
from kreassign.pipeline.load.job import require_kept
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.commits import last_load
from kreassign.pipeline.tables.delta import commit, log_to_write
from kreassign.pipeline.tables.parquet import write_files, write_rows
from kreassign.pipeline.tables.schemas import LOAD_HOURS, OPEN_SAMPLES
from tests.pipeline.finished_load import finish_load
from tests.pipeline.load_tables import DAY_MS, TAKEN_MS, row

WINDOW_DAYS = 28


def file_of(data: Path, table: str, stem: str) -> Path:
    (file,) = (data / table).rglob(f"{stem}.*.parquet")
    return file


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A load with open samples, and hours: of today, of a week ago, when another cluster was last seen, and older."""
    key = {"cluster_id": "c.1", "topic": "t", "partition": 0}
    write_rows(tmp_path, OPEN_SAMPLES, [row(OPEN_SAMPLES, **key, taken_ms=TAKEN_MS)], file_stem="left")
    for stem, *days in (("open", 0, 7), ("closed-30", 30), ("closed-40", 40)):
        hours = [row(LOAD_HOURS, **key, hour_ms=TAKEN_MS - each * DAY_MS, is_open=stem == "open") for each in days]
        found = pa.Table.from_pylist(hours, schema=arrow_schema(LOAD_HOURS))
        # As loads do it: each adds to what was closed before.
        commit(log_to_write(tmp_path, LOAD_HOURS), write_files(tmp_path, LOAD_HOURS, found, stem))
    finish_load(tmp_path)
    return tmp_path


def ask(data: Path) -> None:
    load = last_load(data)
    assert load is not None
    require_kept(data, load, WINDOW_DAYS)


def test_what_the_load_before_left_is_asked_for_whole(data: Path) -> None:
    ask(data)


@pytest.mark.parametrize(
    ("table", "stem"), [("open_samples", "left"), ("load_hours", "open"), ("load_hours", "closed-30")]
)
@pytest.mark.parametrize(("damage", "why"), [
    (lambda file: file.write_bytes(file.read_bytes()[:-20]), "is cut off, or not a Parquet file"),
    (Path.unlink, "is in the log of the table, but not there"),
])  # fmt: skip
def test_a_file_that_cannot_be_read_is_named_with_what_to_do(
    data: Path, table: str, stem: str, damage: Callable[[Path], object], why: str
) -> None:
    file = file_of(data, table, stem)
    damage(file)
    with pytest.raises(DataError) as caught:
        ask(data)
    assert str(caught.value).startswith(f"table {table} of load 1: {file} {why}")
    assert "put it back from a copy, or run `kreassign load --full`" in str(caught.value)


def test_hours_before_the_window_of_every_cluster_are_not_asked_for(data: Path) -> None:
    file_of(data, "load_hours", "closed-40").unlink()
    ask(data)
