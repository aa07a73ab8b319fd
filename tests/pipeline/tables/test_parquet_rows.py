from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kreassign.errors import DataError, InvariantBroken
from kreassign.pipeline.ingest.snapshots import partition_rows, sample_rows, snapshot_tables
from kreassign.pipeline.tables.delta import new_name
from kreassign.pipeline.tables.parquet import has_table, read_rows, write_rows
from kreassign.pipeline.tables.schemas import PARTITIONS, PLAN_INPUTS, QUARANTINE, SAMPLES, STRING, Column, Row, Table
from tests.pipeline.clusters import observation, sample_round


def a_sample(taken_ms: int = 5000) -> list[Row]:
    return sample_rows(sample_round(taken_ms, end_offset=150))


def test_every_snapshot_table_reads_back_as_it_was_written(tmp_path: Path) -> None:
    for table, rows in snapshot_tables(observation()):
        expected = list(rows)
        write_rows(tmp_path, table, iter(expected), file_stem="one")
        assert read_rows(tmp_path, table) == expected


def test_files_are_read_in_order_of_their_names(tmp_path: Path) -> None:
    write_rows(tmp_path, SAMPLES, a_sample(2000), file_stem="b")
    write_rows(tmp_path, SAMPLES, a_sample(1000), file_stem="a")
    assert [row["taken_ms"] for row in read_rows(tmp_path, SAMPLES)] == [1000, 2000]


def test_writing_the_same_file_again_replaces_it(tmp_path: Path) -> None:
    write_rows(tmp_path, SAMPLES, a_sample(1000), file_stem="a")
    write_rows(tmp_path, SAMPLES, a_sample(2000), file_stem="a.b")
    write_rows(tmp_path, SAMPLES, a_sample(3000), file_stem="a")
    assert sorted(row["taken_ms"] for row in read_rows(tmp_path, SAMPLES)) == [2000, 3000]


def test_what_a_killed_writer_leaves_is_not_read(tmp_path: Path) -> None:
    write_rows(tmp_path, SAMPLES, a_sample(), file_stem="a")
    (written,) = (tmp_path / "samples").rglob("*.parquet")
    written.with_name(new_name("b")).write_bytes(written.read_bytes()[:50])
    written.with_name(new_name("c")).write_bytes(written.read_bytes())
    for name in ("_SUCCESS", "_c.parquet", ".d.parquet"):
        (written.parent / name).touch()
    assert read_rows(tmp_path, SAMPLES) == a_sample()


def test_a_missing_table_is_told_with_the_command_that_makes_it(tmp_path: Path) -> None:
    write_rows(tmp_path, SAMPLES, a_sample(), file_stem="a")
    with pytest.raises(DataError, match=r"no table plan_inputs in .*; make it with `kreassign load`") as caught:
        read_rows(tmp_path, PLAN_INPUTS)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(("at", "said"), [
    ("nowhere", "there is no folder {at}; correct the name, or fill it with `kreassign collect`"),
    ("empty", "there are no tables in {at}; correct the name, or fill it with `kreassign collect`"),
    (".", "there are no tables in {at}, but in {at}/data; name that folder"),
    ("data/samples", "{at} is itself a table; name the folder that has it, {at.parent}"),
])  # fmt: skip
def test_a_folder_without_tables_is_told_instead_of_a_table(tmp_path: Path, at: str, said: str) -> None:
    write_rows(tmp_path / "data", SAMPLES, a_sample(), file_stem="a")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError) as refused:
        read_rows(tmp_path / at, PLAN_INPUTS)
    assert str(refused.value) == said.format(at=tmp_path / at)


def test_a_table_without_rows_is_told(tmp_path: Path) -> None:
    write_rows(tmp_path, QUARANTINE, [], file_stem="a")
    with pytest.raises(DataError, match=r"table quarantine in .* has no rows"):
        read_rows(tmp_path, QUARANTINE)


def test_a_file_that_was_damaged_or_lost_is_told_with_what_to_do(tmp_path: Path) -> None:
    write_rows(tmp_path, SAMPLES, a_sample(), file_stem="a")
    (written,) = (tmp_path / "samples").rglob("*.parquet")
    old = pq.read_table(written).drop_columns(["topic_id", "end_offset"])
    pq.write_table(old.set_column(old.schema.get_field_index("leader"), "leader", pa.array(["2"])), written)
    with pytest.raises(DataError, match=rf"{written} lacks the columns end_offset; restore it .*kreassign compact"):
        read_rows(tmp_path, SAMPLES)
    written.write_text("not a table at all")
    with pytest.raises(DataError, match=rf"{written} is cut off, or not a Parquet file"):
        read_rows(tmp_path, SAMPLES)
    written.unlink()
    with pytest.raises(DataError, match=rf"{written} is in the log of the table, but not there"):
        read_rows(tmp_path, SAMPLES)


def test_a_file_in_a_folder_without_a_log_is_refused_by_name(tmp_path: Path) -> None:
    write_rows(tmp_path, SAMPLES, a_sample(), file_stem="a")
    shutil.rmtree(tmp_path / "samples" / "_delta_log")
    (file,) = (tmp_path / "samples").rglob("*.parquet")
    for attempt in (
        lambda: read_rows(tmp_path, SAMPLES),
        lambda: has_table(tmp_path, SAMPLES),
        lambda: write_rows(tmp_path, SAMPLES, a_sample(), file_stem="b"),
    ):
        with pytest.raises(DataError, match=rf"{file} belongs to no table: .*/samples has no _delta_log; restore that"):
            attempt()
    assert list((tmp_path / "samples").rglob("*.parquet")) == [file]


def test_a_row_that_does_not_fit_the_schema_is_a_bug_and_writes_nothing(tmp_path: Path) -> None:
    good = a_sample()[0]
    extra, without_value = good | {"color": "red"}, good | {"end_offset": None}
    lacking = {name: value for name, value in good.items() if name != "leader"}
    for bad, complaint in ((extra, "color"), (lacking, "not"), (without_value, "no value for end_offset")):
        with pytest.raises(InvariantBroken, match=f"samples: .*{complaint}"):
            write_rows(tmp_path, SAMPLES, [good, bad], file_stem="a")
    assert list(tmp_path.iterdir()) == []


def test_null_is_allowed_where_the_schema_says_so(tmp_path: Path) -> None:
    rows = [row | {"topic_id": None} for row in partition_rows(observation())]
    write_rows(tmp_path, PARTITIONS, rows, file_stem="a")
    assert [row["topic_id"] for row in read_rows(tmp_path, PARTITIONS)] == [None, None]


LABEL, NOTE = Column("label", STRING, "label"), Column("note", STRING, "a note", nullable=True)


def notes(*columns: Column) -> Table:
    return Table("notes", "Notes.", "kreassign note", ("label",), columns)


def test_a_table_of_other_columns_is_refused(tmp_path: Path) -> None:
    write_rows(tmp_path, notes(LABEL), [{"label": "a"}], file_stem="a")
    long = notes(LABEL, replace(NOTE, nullable=False))
    for attempt in (
        lambda: read_rows(tmp_path, long),
        lambda: write_rows(tmp_path, long, [{"label": "b", "note": "x"}], file_stem="b"),
    ):
        with pytest.raises(
            DataError, match=r"table notes in .* lacks the columns note .*; move its folder away .*note"
        ):
            attempt()
    assert read_rows(tmp_path, notes(LABEL)) == [{"label": "a"}]


def test_a_table_of_an_earlier_version_gets_the_columns_that_may_be_empty(tmp_path: Path) -> None:
    write_rows(tmp_path, notes(LABEL), [{"label": "a"}], file_stem="a")
    with pytest.raises(DataError, match=r"lacks the columns note of this version of kreassign; `kreassign note` adds"):
        read_rows(tmp_path, notes(LABEL, NOTE))
    write_rows(tmp_path, notes(LABEL, NOTE), [{"label": "b", "note": "x"}], file_stem="b")
    assert read_rows(tmp_path, notes(LABEL, NOTE)) == [{"label": "a", "note": None}, {"label": "b", "note": "x"}]


def test_writers_that_begin_at_once_after_an_upgrade_lose_nothing(tmp_path: Path) -> None:
    """Each finds the table without the new column, and one adds it."""
    write_rows(tmp_path, notes(LABEL), [{"label": "a"}], file_stem="a")

    def write(label: str) -> None:
        write_rows(tmp_path, notes(LABEL, NOTE), [{"label": label, "note": "x"}], file_stem=label)

    with ThreadPoolExecutor(6) as writers:
        list(writers.map(write, "bcdefg"))
    assert [row["label"] for row in read_rows(tmp_path, notes(LABEL, NOTE))] == [*"abcdefg"]


@pytest.mark.parametrize("name", ["with space", "a#b?c&d=e", "größe", "[x]"])
def test_a_directory_may_have_any_name_but_one_that_looks_like_an_address(tmp_path: Path, name: str) -> None:
    write_rows(tmp_path / name, SAMPLES, a_sample(), file_stem="a:b c%20d")
    assert read_rows(tmp_path / name, SAMPLES) == a_sample()
    with pytest.raises(DataError, match="has a `%` with digits"):
        write_rows(tmp_path / "50%20off", SAMPLES, a_sample(), file_stem="a")
    assert not (tmp_path / "50%20off").exists()
