"""Compaction by those who write small files all the time: collectors and streams keep their tables in order themselves.

The log of a table names every file again and again, and a reader opens each; a compaction after so many rounds or
batches costs little beside that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kreassign.clock import Clock
from kreassign.errors import DataError
from kreassign.operations.warnings import Warn
from kreassign.pipeline.tables.compaction import compact, vacuum
from kreassign.pipeline.tables.parquet import has_table
from kreassign.pipeline.tables.schemas import Table

COMPACT_EVERY = 60
"""Rounds, or batches, from one compaction to the next."""
VACUUM_EVERY = 24
"""Compactions from one to the next that also deletes the files of old versions."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """Which tables of a directory are compacted, after every how many writes, and who hears what went wrong."""

    data: Path | str
    tables: Iterable[Table]
    every: int
    clock: Clock
    warn: Warn

    def after(self, number: int) -> None:
        """Compact if it is time, after the write of this number, counted from 1.

        Where another process does so at the same time, one of both is enough.
        """
        if number % self.every:
            return
        vacuum_ms = None if number % (self.every * VACUUM_EVERY) else self.clock.now_ms()
        for table in self.tables:
            try:
                if has_table(self.data, table):
                    compact(self.data, table)
                    if vacuum_ms is not None:
                        vacuum(self.data, table, vacuum_ms)
            except DataError as error:
                self.warn(f"not compacted: {error}")
