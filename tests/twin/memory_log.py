"""A metadata log that lasts as long as its process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kreassign.twin.metadata import Record


class MemoryLog:
    """Records in a list, from which another twin of the same process can go on."""

    def __init__(self) -> None:
        self._records: list[Record] = []

    def append(self, records: Iterable[Record]) -> None:
        """Add the records of one decision, all of them or none."""
        self._records.extend(records)

    def read(self) -> Iterator[Record]:
        """All records from the first, as far as they are written now."""
        return iter(self._records[:])

    def clear(self) -> None:
        """Forget all records."""
        self._records.clear()
