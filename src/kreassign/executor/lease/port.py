"""What the lease needs of a cluster: groups. `AdminClient` fits it by its shape. All calls raise ClusterError."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from kreassign.model import Batch, Topic, TopicPartition
from kreassign.model.group import CommittedOffset, Group, GroupCandidate, Membership


class GroupPort(Protocol):
    """The calls, each with the meaning that `AdminClient` gives it."""

    def describe_topics(self, names: Iterable[str] | None) -> Batch[str, Topic]:
        """Partitions of topics."""
        ...

    def describe_group(self, group_id: str, *, timeout_ms: int | None) -> Group:
        """A group with its members."""
        ...

    def join_group(self, candidate: GroupCandidate, *, timeout_ms: int | None) -> Membership:
        """Become the member of a group."""
        ...

    def heartbeat(self, membership: Membership, *, timeout_ms: int | None) -> None:
        """Stay a member."""
        ...

    def leave_group(self, group_id: str, instance_id: str, *, member_id: str, timeout_ms: int | None) -> None:
        """Take a member out of a group."""
        ...

    def commit_offsets(
        self, membership: Membership, offsets: Mapping[TopicPartition, CommittedOffset], *, timeout_ms: int | None
    ) -> Batch[TopicPartition, None]:
        """Commit offsets as a member of this generation."""
        ...

    def fetch_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], *, timeout_ms: int | None
    ) -> Batch[TopicPartition, CommittedOffset]:
        """What a group has committed."""
        ...
