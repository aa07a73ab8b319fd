from pathlib import Path

import numpy as np

from kreassign.pipeline.tables.parquet import Dictionary, read_columns, write_rows
from kreassign.pipeline.tables.schemas import BROKERS, LOAD_MODEL
from tests.pipeline import finished_load


def brokers(data: Path, *racks: str | None) -> None:
    rows = [
        {"snapshot_id": "s", "cluster_id": "c", "taken_ms": 0, "broker": number, "host": "h", "port": 1, "rack": rack,
         "is_fenced": number == 1, "log_dirs_error": None}
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
             "verdict": "unknown", "has_trend": False}  # fmt: skip
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
