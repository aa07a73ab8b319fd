from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from kreassign.cli.main import kreassign
from kreassign.errors import DataError
from kreassign.pipeline.ingest.snapshots import sample_rows
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.audit_schemas import AUDITED_PARTITIONS
from kreassign.pipeline.tables.convert import convert
from kreassign.pipeline.tables.delta import open_log
from kreassign.pipeline.tables.parquet import read_rows
from kreassign.pipeline.tables.schemas import LOAD_MODEL, PLAN_INPUTS, SAMPLES, Row, Table
from tests.approved import approve
from tests.pipeline.clusters import sample_round

DAY_MS = 86_400_000


def older(data: Path, table: Table, path: str, rows: list[Row]) -> Path:
    """A file as an older version wrote it."""
    file = data / table.name / path
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=arrow_schema(table)), file)
    return file


def a_round(taken_ms: int) -> list[Row]:
    return sample_rows(sample_round(taken_ms, 150))


def by_time(data: Path) -> list[int]:
    return sorted(row["taken_ms"] for row in read_rows(data, SAMPLES))


def test_a_folder_is_converted_in_place_and_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    in_place = older(tmp_path, SAMPLES, "date=1970-01-02/hour=00/a.parquet", a_round(DAY_MS))
    two_dates = older(tmp_path, SAMPLES, "b.parquet", [*a_round(DAY_MS + 1), *a_round(2 * DAY_MS)])
    older(tmp_path, SAMPLES, "import of 50%/c.parquet", a_round(3))
    (tmp_path / "samples" / "cut.parquet").write_bytes(two_dates.read_bytes()[:-9])
    older(tmp_path, LOAD_MODEL, "part-0.parquet", [])
    older(tmp_path, PLAN_INPUTS, "part-0.parquet", [])
    row = {"label": "before move", "taken_ms": 1, "topic": "t", "topic_id": None, "cleanup_policy": "delete",
           "partition": 0, "start_offset": 0, "end_offset": 1, "record_count": 1, "checksum": "7"}  # fmt: skip
    older(tmp_path, AUDITED_PARTITIONS, "label=before move/part-0.parquet", [row])
    for table in (SAMPLES, PLAN_INPUTS):
        with pytest.raises(DataError, match=f"kreassign convert-tables --data {tmp_path}"):
            read_rows(tmp_path, table)

    result = CliRunner().invoke(kreassign, ["convert-tables", "--data", str(tmp_path)])
    assert result.exit_code == 0, result.output
    approve(result.stdout, "convert-tables")
    assert f"warning: {tmp_path}/samples/cut.parquet is cut off" in result.stderr
    assert by_time(tmp_path) == [3, DAY_MS, DAY_MS + 1, 2 * DAY_MS]
    log = open_log(tmp_path, SAMPLES)
    assert [file.part for file in log.files({"taken_ms": DAY_MS})] == ["1970-01-02"]
    assert str(in_place.relative_to(tmp_path / "samples")) in {file.path for file in log.files()}
    assert read_rows(tmp_path, AUDITED_PARTITIONS, only={"label": "before move"}) == [row]
    again = CliRunner().invoke(kreassign, ["convert-tables", "--data", str(tmp_path)])
    assert (again.exit_code, again.stdout) == (0, f"{tmp_path} has no table to convert\n")


def test_a_conversion_that_was_killed_begins_again_without_loss_or_doubles(tmp_path: Path) -> None:
    older(tmp_path, SAMPLES, "a.parquet", [*a_round(1), *a_round(DAY_MS)])
    convert(tmp_path, SAMPLES)
    (tmp_path / "samples" / "_delta_log" / f"{0:020}.json").unlink()  # the commit, which comes last
    (tmp_path / "samples" / "_delta_log").rmdir()
    assert len(list((tmp_path / "samples").rglob("*.parquet"))) == 3
    found = convert(tmp_path, SAMPLES)
    assert found is not None
    assert (found.rows, found.files) == (2, 2)
    assert by_time(tmp_path) == [1, DAY_MS]
