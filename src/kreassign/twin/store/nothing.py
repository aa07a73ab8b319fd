"""The metadata log of a twin that nobody takes up again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kreassign.twin.metadata.records import Record


class NoLog:
    """It keeps nothing, since a long run makes more records than partitions."""

    def append(self, records: Iterable[Record]) -> None:
        """Nothing is kept."""

    def read(self) -> Iterator[Record]:
        """There are none."""
        return iter(())
