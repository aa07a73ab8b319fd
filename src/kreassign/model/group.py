"""Groups as their coordinator knows them: the classic protocol, in which members join, and generations are numbered."""

from __future__ import annotations

from dataclasses import dataclass

NO_OFFSET = -1
"""The offset of a partition for which a group has committed none."""

DEAD = "Dead"
"""The state of a group that does not exist."""


@dataclass(frozen=True, slots=True)
class GroupCandidate:
    """Who wants to join a group, and as what.

    `instance_id` is `group.instance.id` (KIP-345): who joins under it again takes the place of its former self, which
    is fenced from then on. All members of a group must share a `protocol`; `metadata` is shown to whoever describes
    the group.
    """

    group_id: str
    instance_id: str
    protocol_type: str
    protocol: str
    metadata: bytes
    session_timeout_ms: int


@dataclass(frozen=True, slots=True)
class Membership:
    """What a member shows to the coordinator with each of its requests, so that a former one is found out."""

    group_id: str
    instance_id: str
    member_id: str
    generation: int


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member as others are shown it. `client_host` is the address from which it joined."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes


@dataclass(frozen=True, slots=True)
class Group:
    """A group as it is described: `state` is Kafka's word, `DEAD` for a group that does not exist."""

    group_id: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[GroupMember, ...] = ()


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """What a group committed for a partition; `offset` is NO_OFFSET where it has committed nothing."""

    offset: int
    metadata: str = ""
