"""Modules that are slow to load, and large: loaded when something comes to them that needs them.

With the tables come pyarrow's data sets, pandas where that is installed, and the library of logs: 0.3 s and 100 MB.
"""

from __future__ import annotations

from types import ModuleType


def table_files() -> ModuleType:
    """What writes rows of tables."""
    from kreassign.pipeline.tables import parquet as found  # noqa: PLC0415 - slow to load, and a file needs no tables

    return found


def snapshot_columns_files() -> ModuleType:
    """What reads and writes snapshot files in columns."""
    from kreassign.pipeline.tables import snapshot_parquet as found  # noqa: PLC0415 - slow to load, and most are JSON

    return found
