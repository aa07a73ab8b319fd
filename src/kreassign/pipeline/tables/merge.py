"""Rows that are added to a table only where it does not have their key yet, in one commit.

This is how a writer that may be killed, and then does what it did again, adds each row once. It needs no memory of its
own: what was done is what the table has. Where two do so at the same time, Delta Lake lets one of them win; the other
one looks again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake.exceptions import CommitFailedError

from kreassign.errors import DataError, InvariantBroken
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.delta import DataDir, TableLog, has_log, log_to_write, open_log, told
from kreassign.pipeline.tables.parquet import rows_in
from kreassign.pipeline.tables.schemas import LAST_DATE_MS, Table

ATTEMPTS = 20
"""How often to look again. Each time another writer has got further."""


def merge_rows(data_dir: DataDir, table: Table, rows: pa.Table, key: Sequence[str] = ()) -> int:
    """Add those rows of which the table has no row with the same `key` (that of the table); how many they were.

    The table is partitioned by date. DataError when others change the table again and again meanwhile.
    """
    if not rows.num_rows:
        return 0
    source = _with_date(table, rows.cast(arrow_schema(table)))
    for _ in range(ATTEMPTS):
        # Another writer was first: what it added may be what we are about to add.
        with told(data_dir, table), suppress(CommitFailedError):
            return _merge(log_to_write(data_dir, table), source, key or table.key)
    raise DataError(
        f"table {table.name} in {data_dir} is changed by other processes all the time: nothing was added; run it again"
    )


def rows_at(data_dir: DataDir, table: Table, times_ms: pa.ChunkedArray) -> pa.Table:
    """The rows of a table, which may be missing, with any of these values in the column that it is partitioned by."""
    none = arrow_schema(table).empty_table()
    if not len(times_ms) or not has_log(data_dir, table):
        return none
    log, time = open_log(data_dir, table), _time_column(table)
    bounds = pc.min_max(times_ms).as_py()
    files = log.files(time=time, begin_ms=bounds["min"], end_ms=bounds["max"] + 1)
    if not files:
        return none
    return rows_in(log, files, ds.field(time).isin(pc.unique(times_ms)))


def _merge(log: TableLog, source: pa.Table, key: Sequence[str]) -> int:
    time = _time_column(log.table)
    bounds = pc.min_max(source[time]).as_py()
    # The bounds let the log pass over files; in parentheses, since `IS NOT DISTINCT FROM` takes all that follows.
    same = (
        f"(old.{name} IS NOT DISTINCT FROM new.{name})" if _is_nullable(log.table, name) else f"old.{name} = new.{name}"
        for name in key
    )
    predicate = " AND ".join([f"old.{time} BETWEEN {bounds['min']} AND {bounds['max']}", *same])
    merging = log.delta.merge(source, predicate, source_alias="new", target_alias="old")
    added: int = merging.when_not_matched_insert_all().execute()["num_target_rows_inserted"]
    return added


def _is_nullable(table: Table, name: str) -> bool:
    return next(column.nullable for column in table.columns if column.name == name)


def _time_column(table: Table) -> str:
    if table.partition_by is None or not table.partition_by.is_date:
        raise InvariantBroken(f"table {table.name} is not partitioned by date")
    return table.partition_by.column


def _with_date(table: Table, rows: pa.Table) -> pa.Table:
    if table.partition_by is None:
        raise InvariantBroken(f"table {table.name} is not partitioned by date")
    times = pc.max_element_wise(pc.min_element_wise(rows[_time_column(table)], LAST_DATE_MS), 0)
    return rows.append_column(
        table.partition_by.name, pc.cast(pc.cast(times, pa.timestamp("ms")), pa.date32(), safe=False)
    )
