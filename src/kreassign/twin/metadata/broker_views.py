"""What single brokers know of the cluster while they have not read the latest records.

A broker that keeps up has no copy: it knows the metadata itself. One that falls behind gets a copy, and only then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from kreassign.twin.metadata.records import Record
from kreassign.twin.metadata.state import ClusterMetadata


class _View:
    """A copy of the metadata that is `behind` records late; None stands still."""

    def __init__(self, metadata: ClusterMetadata) -> None:
        self.metadata = metadata
        self.behind: int | None = None
        self._unread: deque[Record] = deque()

    def apply(self, records: Iterable[Record]) -> None:
        """Take note of records that were written, and read those that are old enough."""
        self._unread.extend(records)
        while self.behind is not None and len(self._unread) > self.behind:
            self.metadata.apply(self._unread.popleft())


class StaleViews:
    """The brokers that are behind, and what they know."""

    def __init__(self, metadata: ClusterMetadata) -> None:
        self._metadata = metadata
        self._views: dict[int, _View] = {}

    def of(self, node_id: int) -> ClusterMetadata:
        """What a node knows."""
        view = self._views.get(node_id)
        return self._metadata if view is None else view.metadata

    def hold_back(self, node_id: int, behind: int | None = None) -> None:
        """Let a node stay behind from now on: by so many records, or (None) where it is now.

        A node that is behind already has that changed, and has missed nothing that it may read later.
        """
        if node_id not in self._views:
            self._views[node_id] = _View(self._metadata.copy())
        self._views[node_id].behind = behind

    def release(self, node_id: int) -> None:
        """Let a node know everything."""
        self._views.pop(node_id, None)

    def apply(self, records: Iterable[Record]) -> None:
        """Records were written and applied."""
        for view in self._views.values():
            view.apply(records)
