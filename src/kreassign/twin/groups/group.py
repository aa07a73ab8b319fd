"""One group: its members, its generation, its offsets. Changed by `coordinator.py` alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kreassign.model import TopicPartition


class GroupState(StrEnum):
    """Kafka's words."""

    EMPTY = "Empty"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(slots=True)
class Member:
    """Who is in a group. The session ends at `expires_ms` unless the member is heard of before."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    protocols: Mapping[str, bytes]
    expires_ms: int
    assignment: bytes = b""

    def is_alive(self, now_ms: int) -> None:
        """The member was just heard of."""
        self.expires_ms = now_ms + self.session_timeout_ms


@dataclass(frozen=True, slots=True)
class Offset:
    """What was committed for a partition."""

    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""


NO_OFFSET = Offset()


@dataclass(slots=True)
class Group:
    """A group. `promised` are member ids that were given out and not used yet (KIP-394)."""

    group_id: str
    empty_since_ms: int
    state: GroupState = GroupState.EMPTY
    generation: int = 0
    protocol_type: str = ""
    protocol: str = ""
    members: dict[str, Member] = field(default_factory=dict)
    promised: set[str] = field(default_factory=set)
    offsets: dict[TopicPartition, Offset] = field(default_factory=dict)

    def of_instance(self, instance_id: str | None) -> Member | None:
        """The member with this `group.instance.id`."""
        return next((one for one in self.members.values() if instance_id and one.instance_id == instance_id), None)

    def takes(self, protocol_type: str, protocols: Mapping[str, bytes]) -> bool:
        """Whether a candidate speaks a protocol that all members speak."""
        if not protocol_type or not protocols:
            return False
        if not self.members:
            return True
        common = set(protocols).intersection(*(one.protocols for one in self.members.values()))
        return protocol_type == self.protocol_type and bool(common)

    def drop(self, member: Member, now_ms: int) -> None:
        """A member is one no longer: left, expired, or replaced by itself."""
        del self.members[member.member_id]
        if not self.members:
            self.state, self.protocol, self.empty_since_ms = GroupState.EMPTY, "", now_ms
            self.generation += 1
