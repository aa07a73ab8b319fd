"""Cost of tables to which each load adds: the commits of a thousand hourly loads, without Spark.

Each load writes the hours that it closed and those that are open, its account, an odd sample and its row in `loads`,
as `kreassign load` does, and reads before what it builds on: the last load and the files of the window.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kreassign.pipeline.load.job import require_kept
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.commits import LoadedTable, publish, tended
from kreassign.pipeline.tables.delta import TableLog, commit, log_to_write, open_log
from kreassign.pipeline.tables.parquet import last_load, write_files, write_rows
from kreassign.pipeline.tables.schemas import LOAD_HOURS, LOAD_QUALITY, LOADS, OPEN_SAMPLES, QUARANTINE, Row

HOUR_MS = 3_600_000
FIRST_HOUR = 480_000
WINDOW_DAYS = 28
_TOLD = (10, 35, 100, 200, 400, 700, 1000)
_ALIKE = 25
_GROWING = (LOAD_HOURS, LOAD_QUALITY, QUARANTINE, LOADS)


def measure(loads: int = 1000, partitions: int = 100) -> None:
    """Print what the loads before some numbers took on average."""
    print(f"{partitions} partitions, a load an hour; means of the {_ALIKE} loads before, or of ten\n")
    print("| load | CPU ms | most | files of `load_hours` | `load_quality` | `quarantine` | `loads` |")
    print("|---|---|---|---|---|---|---|")
    taken: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(1, loads + 1):
            begun = time.process_time()
            load(Path(folder), number, partitions)
            taken.append(1000 * (time.process_time() - begun))
            if number in _TOLD:
                last = taken[-_ALIKE:]
                files = " | ".join(str(len(open_log(Path(folder), table).files())) for table in _GROWING)
                print(f"| {number:,} | {statistics.mean(last):.0f} | {max(last):.0f} | {files} |", flush=True)


def load(data: Path, number: int, partitions: int = 100) -> None:
    """Add to tables as a load does."""
    before = last_load(data)
    if before is not None:
        require_kept(data, before, WINDOW_DAYS)
    hour = FIRST_HOUR + number
    rows = pa.concat_tables([hours(hour - 1, partitions, is_open=False), hours(hour, partitions, is_open=True)])
    log = log_to_write(data, LOAD_HOURS)
    version = commit(log, write_files(data, LOAD_HOURS, rows, "load"), replace=True, parts=("true",))
    left_open, odd = log_to_write(data, OPEN_SAMPLES), _set_aside(data, hour)
    made = [
        LoadedTable(LOAD_HOURS, version, len(rows), log=log),
        LoadedTable(OPEN_SAMPLES, left_open.version, 0, log=left_open),
        LoadedTable(QUARANTINE, odd.version, 1, log=odd),
    ]
    account = list(accounts(hour * HOUR_MS))
    version = write_rows(data, LOAD_QUALITY, account, file_stem=str(hour))
    made.append(LoadedTable(LOAD_QUALITY, version, len(account)))
    publish(data, hour * HOUR_MS, [tended(data, each, WINDOW_DAYS) for each in made], before)


def hours(hour: int, partitions: int, *, is_open: bool) -> pa.Table:
    """Rows of `load_hours` of one hour."""
    plain: Mapping[str, Callable[[str], Any]] = {
        "string": lambda name: np.char.mod(f"{name}-%04d", np.arange(partitions) // 10),
        "int": lambda _: np.arange(partitions, dtype=np.int32) % 10,
        "bigint": lambda _: np.arange(partitions) + hour,
        "double": lambda _: np.full(partitions, 3600.0),
        "boolean": lambda _: np.full(partitions, is_open),
        "array<int>": lambda _: [[hour, hour + 1]] * partitions,
    }
    columns = {column.name: plain[column.type](column.name) for column in LOAD_HOURS.columns}
    columns["hour_ms"] = np.full(partitions, hour * HOUR_MS)
    return pa.table({name: pa.array(values) for name, values in columns.items()}).cast(arrow_schema(LOAD_HOURS))


def accounts(load_ms: int) -> Iterable[Row]:
    """Rows of `load_quality` of one load."""
    for name in ("samples", "partitions", "replicas"):
        row: Row = dict.fromkeys(column.name for column in LOAD_QUALITY.columns)
        yield row | {"load_ms": load_ms, "table_name": name, "treatment": "good", "row_count": 1}


def _set_aside(data: Path, hour: int) -> TableLog:
    row = {"load_ms": hour * HOUR_MS, "table_name": "samples", "reason": "odd", "row_json": "{}", "is_open": False}
    rows = pa.Table.from_pylist([row], arrow_schema(QUARANTINE))
    log = log_to_write(data, QUARANTINE)
    commit(log, write_files(data, QUARANTINE, rows, "load"), replace=True, parts=("true",))
    return log
