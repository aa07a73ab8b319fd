from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kreassign.errors import DataError
from kreassign.pipeline.tables.parquet import Dictionary, read_columns, write_rows
from kreassign.pipeline.tables.schemas import BROKERS, LOAD_MODEL, LOADS
from tests.pipeline import finished_load
from tests.pipeline.load_tables import a_cluster, fill


def brokers(data: Path, *racks: str | None) -> None:
    rows = [
        {"snapshot_id": "s", "cluster_id": "c", "taken_ms": 0, "broker": number, "host": "h", "port": 1, "rack": rack,
         "is_fenced": number == 1, "log_dirs_error": None, "in_maintenance": None, "may_be_named": None}
        for number, rack in enumerate(racks)
    ]  # fmt: skip
    write_rows(data, BROKERS, rows, file_stem="s")


def test_texts_become_sorted_names_and_codes(tmp_path: Path) -> None:
    brokers(tmp_path, "z", "a", None, "z")
    rack = read_columns(tmp_path, BROKERS, ("rack",))["rack"]
    assert isinstance(rack, Dictionary)
    assert (rack.names, rack.codes.tolist()) == (("a", "z"), [1, 0, -1, 1])


def test_numbers_and_flags_become_arrays_of_the_rows_asked_for(tmp_path: Path) -> None:
    brokers(tmp_path, "z", "a", None)
    found = read_columns(tmp_path, BROKERS, ("broker", "is_fenced"), only={"rack": "a"})
    assert {name: np.asarray(values).tolist() for name, values in found.items()} == {"broker": [1], "is_fenced": [True]}


def test_numbers_that_are_missing_are_not_a_number(tmp_path: Path) -> None:
    known = {"cluster_id": "c", "snapshot_id": "s", "topic": "t", "partition": 0, "sample_count": 0, "span_s": 0.0,
             "covered_share": 0.0, "day_count": 0, "reset_count": 0, "coverage": "no samples",
             "verdict": "unknown", "has_trend": False, "has_slowed": False, "has_jumped": False}  # fmt: skip
    row = dict.fromkeys(LOAD_MODEL.column_names) | known
    finished_load.write_rows(tmp_path, LOAD_MODEL, [row, {**row, "partition": 1, "size_bytes": 7}], file_stem="s")
    sizes = np.asarray(read_columns(tmp_path, LOAD_MODEL, ("size_bytes",))["size_bytes"])
    assert np.isnan(sizes[0])
    assert sizes[1] == 7.0


def test_a_column_without_any_text_has_no_names(tmp_path: Path) -> None:
    brokers(tmp_path, None)
    rack = read_columns(tmp_path, BROKERS, ("rack",))["rack"]
    assert isinstance(rack, Dictionary)
    assert (rack.names, rack.codes.tolist()) == ((), [-1])


def test_a_file_that_has_a_column_twice_is_named(tmp_path: Path) -> None:
    brokers(tmp_path, "a")
    (file,) = (tmp_path / BROKERS.name).glob("**/*.parquet")
    rows = pq.read_table(file)
    pq.write_table(rows.append_column("rack", rows.column("rack")), file)
    with pytest.raises(DataError, match=rf"{file.name} has 'rack' more than once; restore it from a copy"):
        read_columns(tmp_path, BROKERS, ("rack",))


def foreign(rows: pa.Table) -> pa.Table:
    return pa.table({"x": [1]})


def without_versions(rows: pa.Table) -> pa.Table:
    return rows.set_column(rows.column_names.index("version"), "version", pa.nulls(len(rows), pa.int64()))


@pytest.mark.parametrize("damage", [foreign, without_versions, None])
def test_a_file_that_says_wrongly_which_loads_were_finished_is_named(
    tmp_path: Path, damage: Callable[[pa.Table], pa.Table] | None
) -> None:
    fill(tmp_path, a_cluster()["loads"])
    (file,) = (tmp_path / LOADS.name).glob("*.parquet")
    if damage is None:
        file.write_bytes(file.read_bytes()[:-50])
    else:
        pq.write_table(damage(pq.read_table(file)), file)
    with pytest.raises(DataError, match=rf"{file.name} (cannot be read|lacks the columns .*version).*restore it"):
        read_columns(tmp_path, LOAD_MODEL, ("topic",))


def test_rows_without_a_required_value_are_told_with_table_and_column(tmp_path: Path) -> None:
    fill(tmp_path, a_cluster()["loads"])
    for file in (tmp_path / LOAD_MODEL.name).glob("**/*.parquet"):
        rows = pq.read_table(file)
        nothing = pa.array([None, *rows.column("topic").to_pylist()[1:]], pa.string())
        pq.write_table(rows.set_column(rows.column_names.index("topic"), "topic", nothing), file)
    with pytest.raises(DataError, match=r"table load_model in .* has no topic in 1 of its rows.*`kreassign load"):
        read_columns(tmp_path, LOAD_MODEL, ("topic",))
