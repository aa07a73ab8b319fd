from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kreassign.errors import DataError, InvariantBroken
from kreassign.pipeline.ingest.snapshots import partition_rows, sample_rows, snapshot_tables
from kreassign.pipeline.tables.audit_schemas import RUN_ETA_HISTORY, RUNS
from kreassign.pipeline.tables.parquet import check_columns, read_rows, write_rows
from kreassign.pipeline.tables.schemas import PARTITIONS, PLAN_INPUTS, QUARANTINE, SAMPLES, STRING, Column, Row, Table
from tests.pipeline.clusters import observation, sample_round


def a_sample(taken_ms: int = 5000) -> list[Row]:
    return sample_rows(sample_round(taken_ms, end_offset=150))


def test_every_snapshot_table_reads_back_as_it_was_written(tmp_path: Path) -> None:
    for table, rows in snapshot_tables(observation()):
        write_rows(tmp_path, table, rows, file_stem="one")
        assert read_rows(tmp_path, table) == rows


def test_files_are_read_in_order_of_their_names(tmp_path: Path) -> None:
    write_rows(tmp_path, SAMPLES, a_sample(2000), file_stem="b")
    write_rows(tmp_path, SAMPLES, a_sample(1000), file_stem="a")
    assert [row["taken_ms"] for row in read_rows(tmp_path, SAMPLES)] == [1000, 2000]


def test_writing_the_same_file_again_replaces_it(tmp_path: Path) -> None:
    write_rows(tmp_path, SAMPLES, a_sample(1000), file_stem="a")
    path = write_rows(tmp_path, SAMPLES, a_sample(2000), file_stem="a")
    assert path == tmp_path / "samples" / "a.parquet"
    assert read_rows(tmp_path, SAMPLES) == a_sample(2000)
    assert [file.name for file in path.parent.iterdir()] == ["a.parquet"]


def test_what_a_killed_writer_leaves_is_not_read(tmp_path: Path) -> None:
    written = write_rows(tmp_path, SAMPLES, a_sample(), file_stem="a")
    (written.parent / ".b.77.unfinished").write_bytes(written.read_bytes()[:50])
    for name in ("_SUCCESS", "_c.parquet", ".d.parquet"):
        (written.parent / name).touch()
    assert read_rows(tmp_path, SAMPLES) == a_sample()


def test_a_missing_table_is_told_with_the_command_that_makes_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no table plan_inputs in .*; make it with `kreassign load`") as caught:
        read_rows(tmp_path, PLAN_INPUTS)
    assert str(tmp_path) in str(caught.value)


def test_a_table_without_rows_is_told(tmp_path: Path) -> None:
    write_rows(tmp_path, QUARANTINE, [], file_stem="a")
    with pytest.raises(DataError, match=r"table quarantine in .* has no rows"):
        read_rows(tmp_path, QUARANTINE)


def test_a_table_with_missing_or_changed_columns_is_told_with_their_names(tmp_path: Path) -> None:
    written = write_rows(tmp_path, SAMPLES, a_sample(), file_stem="a")
    old = pq.read_table(written).drop_columns(["topic_id"])
    old = old.set_column(old.schema.get_field_index("leader"), "leader", pa.array(["2"]))
    pq.write_table(old, written.with_name("b.parquet"))
    with pytest.raises(DataError, match=r"b\.parquet lacks the columns topic_id, leader .*kreassign collect"):
        read_rows(tmp_path, SAMPLES)


def test_a_file_that_is_not_parquet_is_told(tmp_path: Path) -> None:
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "a.parquet").write_text("not a table at all")
    with pytest.raises(DataError, match=r"a\.parquet is not a Parquet file.*kreassign collect"):
        read_rows(tmp_path, SAMPLES)


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


def test_a_table_with_the_name_of_an_older_version_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "run_promises").mkdir()
    with pytest.raises(DataError, match=r"the table run_promises of an older kreassign, which is run_eta_history now"):
        read_rows(tmp_path, RUN_ETA_HISTORY)


def test_columns_of_an_older_version_are_refused_in_any_file(tmp_path: Path) -> None:
    old = Table("runs", "Runs.", "kreassign audit run", ("run_id",), (Column("run_id", STRING, "id"),))
    write_rows(tmp_path, old, [{"run_id": "run-1"}], file_stem="run-1")
    with pytest.raises(DataError, match=r"run-1\.parquet lacks the columns .*unrestored_count"):
        check_columns(tmp_path, RUNS)
