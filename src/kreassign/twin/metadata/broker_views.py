"""What single nodes know of the cluster while they have not read the latest records.

A node that keeps up has no copy: it knows the metadata itself. One that falls behind gets a copy, and only then.
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
    """The nodes that are behind, and what they know.

    What is held back is a node, or its answers to one API alone: then the others are up to date. In place of a node,
    None stands for all nodes.
    """

    def __init__(self, metadata: ClusterMetadata) -> None:
        self._metadata = metadata
        self._views: dict[tuple[int | None, int | None], _View] = {}

    def of(self, node_id: int, api_key: int | None = None) -> ClusterMetadata:
        """What a node knows, or what it answers a request of this API from."""
        found = None if api_key is None else self.of_answers(node_id, api_key)
        if found is None and (view := self._views.get((node_id, None))) is not None:
            found = view.metadata
        return self._metadata if found is None else found

    def of_answers(self, node_id: int, api_key: int) -> ClusterMetadata | None:
        """What a node answers requests of this API from, if they alone are held back."""
        view = self._views.get((node_id, api_key)) or self._views.get((None, api_key))
        return None if view is None else view.metadata

    def hold_back(self, node_id: int | None, behind: int | None = None, api_key: int | None = None) -> None:
        """Let a node stay behind from now on: by so many records, or (None) where it is now.

        A node that is behind already has that changed, and has missed nothing that it may read later.
        """
        held = (node_id, api_key)
        if held not in self._views:
            self._views[held] = _View(self._metadata.copy())
        self._views[held].behind = behind

    def forget(self, node_id: int | None, api_key: int) -> None:
        """Let a node answer requests of this API as if it had read no record at all."""
        self._views[node_id, api_key] = _View(ClusterMetadata())

    def release(self, node_id: int | None, api_key: int | None = None) -> None:
        """Let a node know everything."""
        self._views.pop((node_id, api_key), None)

    def apply(self, records: Iterable[Record]) -> None:
        """Records were written and applied."""
        for view in self._views.values():
            view.apply(records)
