"""Whether what the load before has left can be read: asked of the footers of its files, before anything is made.

A sample that cannot be read is left out of a load, and told. Of hours and open samples nothing may be left out: they
stand for samples that no load reads again, and a load without some of them would be wrong without a word. Nor does a
load fall back to all samples by itself: those of long ago may have expired, while their hours are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kreassign.errors import DataError
from kreassign.pipeline.load.hours import DAY_S
from kreassign.pipeline.tables.delta import DataDir, DataFile, TableLog, open_log
from kreassign.pipeline.tables.loads import Load
from kreassign.pipeline.tables.parquet import why_not
from kreassign.pipeline.tables.schemas import LOAD_HOURS, OPEN_SAMPLES


def require_kept(data_dir: DataDir, before: Load, window_days: int) -> None:
    """Raise DataError when a file that a load of so many days would read of the load before it cannot be read."""
    for log, files in _to_read(data_dir, before, window_days):
        for file in files:
            if reason := why_not(data_dir, log.table, file.path):
                raise DataError(
                    f"table {log.table.name} of load {before.number}: {log.place_of(file)} {reason}; put it back from "
                    "a copy, or run `kreassign load --full`, which reads all samples that there are and nothing else"
                )


def _to_read(data_dir: DataDir, before: Load, window_days: int) -> Iterator[tuple[TableLog, Sequence[DataFile]]]:
    logs = {
        table: open_log(data_dir, table, before.versions[table.name])
        for table in (OPEN_SAMPLES, LOAD_HOURS)
        if table.name in before.versions
    }
    for table, log in logs.items():
        yield log, log.files() if table is OPEN_SAMPLES else _recent(log, window_days)


def _recent(hours: TableLog, window_days: int) -> Sequence[DataFile]:
    """The hours that may be in the window of some cluster, which ends with its latest one: that one is open."""
    files = hours.files({"is_open": True})
    begun = [int(file.lows["hour_ms"]) for file in files if file.lows.get("hour_ms") is not None]
    if not begun or len(begun) < len(files):
        return hours.files()
    return hours.files(time="hour_ms", begin_ms=min(begun) - window_days * DAY_S * 1000)
