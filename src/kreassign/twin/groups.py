"""Consumer groups: which clients may join, the members, and whose commits are accepted.

This is Kafka's classic protocol on a broker with `group.max.size=1` and `group.initial.rebalance.delay.ms=0`: a group
has at most one member, so that no member ever waits for others to rejoin. Sessions are checked only when a request
names their group. They pass in the time of the clients: on a served twin real time, however fast its own time goes.
Source: KIP-62, KIP-345, KIP-394, and the answers of real 4.3.1 and 3.9.1.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kreassign.model import TopicPartition, error_codes

# A group: its members, its generation, its offsets. Only `GroupCoordinator` changes it.


class GroupState(StrEnum):
    """State of a group, by Kafka's names."""

    EMPTY = "Empty"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A client that asks to join. `may_be_unknown`: it may do so without being given a member id first (KIP-394)."""

    group_id: str
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    protocol_type: str
    protocols: Mapping[str, bytes]
    may_be_unknown: bool


@dataclass(slots=True)
class Member:
    """A member of a group. Its session ends at `expires_ms` of the clients' time unless it sends a request before."""

    member_id: str
    candidate: Candidate
    expires_ms: float
    assignment: bytes = b""

    def is_alive(self, clients_ms: float) -> None:
        """Extend the session: the member just sent a request."""
        self.expires_ms = clients_ms + self.candidate.session_timeout_ms


@dataclass(frozen=True, slots=True)
class Offset:
    """A committed offset of a partition."""

    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""


NO_OFFSET = Offset()


@dataclass(slots=True)
class Group:
    """A consumer group. `promised` are member ids that were given out and not used yet (KIP-394)."""

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
        """The member with this `group.instance.id`; None if there is none."""
        return next(
            (one for one in self.members.values() if instance_id and one.candidate.instance_id == instance_id), None
        )

    def takes(self, protocol_type: str, protocols: Mapping[str, bytes]) -> bool:
        """True if a candidate supports a protocol that all members support."""
        if not protocol_type or not protocols:
            return False
        if not self.members:
            return True
        common = set(protocols).intersection(*(one.candidate.protocols for one in self.members.values()))
        return protocol_type == self.protocol_type and bool(common)

    def consumes(self, topic: str) -> bool:
        """True if a member is subscribed to a topic, or does not say to which it is."""
        subscriptions = (_subscription(one.candidate.protocols[self.protocol]) for one in self.members.values())
        return any(topics is None or topic in topics for topics in subscriptions)

    def drop(self, member: Member, now_ms: int) -> None:
        """Remove a member that left, expired, or was replaced by its own instance."""
        del self.members[member.member_id]
        if not self.members:
            self.state, self.protocol, self.empty_since_ms = GroupState.EMPTY, "", now_ms
            self.generation += 1


def _subscription(metadata: bytes) -> set[str] | None:
    """The topics in a consumer's metadata, which stand first in every version; None if it is unreadable."""
    topics: set[str] = set()
    try:
        (count,) = struct.unpack_from(">i", metadata, 2)
        if count < 0:
            return None
        start = 6
        for _ in range(count):
            (length,) = struct.unpack_from(">h", metadata, start)
            (name,) = struct.unpack_from(f">{length}s", metadata, start + 2)
            topics.add(name.decode())
            start += 2 + length
    except (struct.error, UnicodeDecodeError):
        return None
    return topics


# Decisions of the coordinator.

MIN_SESSION_MS, MAX_SESSION_MS = 6_000, 1_800_000
"""`group.min.session.timeout.ms` and `group.max.session.timeout.ms`."""

MAX_METADATA_CHARACTERS = 4_096
"""`offset.metadata.max.bytes`, which Kafka counts in characters."""

RETENTION_MS = 7 * 24 * 3_600_000
"""`offsets.retention.minutes`: an empty group and its offsets are deleted after this time."""

NO_GENERATION = -1

CONSUMERS = "consumer"
"""The protocol type of a group whose members say in their metadata to which topics they are subscribed."""


@dataclass(frozen=True, slots=True)
class MemberClaim:
    """The identity that a request claims: a member of a generation."""

    group_id: str
    generation: int
    member_id: str
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class Joined:
    """The answer to a candidate; without a group if it was refused."""

    code: int
    member_id: str = ""
    group: Group | None = None


class GroupCoordinator:
    """All groups of a cluster: brokers share them, as they share the log in which Kafka keeps them.

    `clients_ms` converts the twin's time to that of the clients.
    """

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._groups: dict[str, Group] = {}
        self._new_id = new_id
        self.clients_ms: Callable[[int], float] = float

    # --- members ----------------------------------------------------------------------------------------------

    def join(self, candidate: Candidate, now_ms: int) -> Joined:
        """Admit a candidate to its group, or refuse it."""
        if not candidate.group_id:
            return Joined(error_codes.INVALID_GROUP_ID, candidate.member_id)
        if not MIN_SESSION_MS <= candidate.session_timeout_ms <= MAX_SESSION_MS:
            return Joined(error_codes.INVALID_SESSION_TIMEOUT, candidate.member_id)
        group = self.describe(candidate.group_id, now_ms)
        if group is None:
            if candidate.member_id:
                return Joined(error_codes.UNKNOWN_MEMBER_ID, candidate.member_id)
            group = Group(candidate.group_id, now_ms)
        if not group.takes(candidate.protocol_type, candidate.protocols):
            return Joined(error_codes.INCONSISTENT_GROUP_PROTOCOL, candidate.member_id)
        self._groups[group.group_id] = group
        return self._admit(group, candidate, now_ms)

    def _admit(self, group: Group, candidate: Candidate, now_ms: int) -> Joined:
        former = group.of_instance(candidate.instance_id)
        known = group.members.get(candidate.member_id)
        if candidate.member_id and known is None and candidate.member_id not in group.promised:
            code = error_codes.UNKNOWN_MEMBER_ID if former is None else error_codes.FENCED_INSTANCE_ID
            return Joined(code, candidate.member_id)
        if any(one not in (former, known) for one in group.members.values()):
            return Joined(error_codes.GROUP_MAX_SIZE_REACHED, candidate.member_id)
        if not candidate.member_id and candidate.instance_id is None and not candidate.may_be_unknown:
            promised = f"{candidate.client_id}-{self._new_id()}"
            group.promised.add(promised)
            return Joined(error_codes.MEMBER_ID_REQUIRED, promised)
        return self._enter(group, candidate, former, now_ms)

    def _enter(self, group: Group, candidate: Candidate, former: Member | None, now_ms: int) -> Joined:
        member_id = candidate.member_id or f"{candidate.instance_id or candidate.client_id}-{self._new_id()}"
        # A member that replaces its own instance in a stable group causes no rebalance (KIP-345).
        is_rebalanced = former is None or group.state is not GroupState.STABLE or bool(candidate.member_id)
        assignment = b"" if former is None else former.assignment
        group.promised.discard(member_id)
        group.members = {
            member_id: Member(
                member_id,
                candidate,
                self.clients_ms(now_ms) + candidate.session_timeout_ms,
                b"" if is_rebalanced else assignment,
            )
        }
        group.protocol_type, group.protocol = candidate.protocol_type, next(iter(candidate.protocols))
        if is_rebalanced:
            group.generation += 1
            group.state = GroupState.COMPLETING_REBALANCE
        return Joined(error_codes.NONE, member_id, group)

    def sync(self, claim: MemberClaim, assignments: Mapping[str, bytes], now_ms: int) -> tuple[int, Group | None]:
        """Store the assignments of the leader; return an error code and the group after that."""
        code, group, member = self._member(claim, now_ms)
        if group is None or member is None:
            return code, None
        if group.state is GroupState.COMPLETING_REBALANCE:
            member.assignment = assignments.get(member.member_id, b"")
            group.state = GroupState.STABLE
        member.is_alive(self.clients_ms(now_ms))
        return error_codes.NONE, group

    def heartbeat(self, claim: MemberClaim, now_ms: int) -> int:
        """Extend the session of a member; return an error code."""
        code, _, member = self._member(claim, now_ms)
        if member is not None:
            member.is_alive(self.clients_ms(now_ms))
        return code

    def leave(self, group_id: str, member_id: str, instance_id: str | None, now_ms: int) -> int:
        """Remove a member named by its id, its instance id, or both; return an error code."""
        group = self.describe(group_id, now_ms)
        if group is None:
            return error_codes.UNKNOWN_MEMBER_ID
        if member_id in group.promised:
            group.promised.discard(member_id)
            return error_codes.NONE
        member = group.members.get(member_id) if instance_id is None else group.of_instance(instance_id)
        if member is None:
            return error_codes.UNKNOWN_MEMBER_ID
        if member_id and member.member_id != member_id:
            return error_codes.FENCED_INSTANCE_ID
        group.drop(member, now_ms)
        return error_codes.NONE

    def _member(self, claim: MemberClaim, now_ms: int) -> tuple[int, Group | None, Member | None]:
        """Return the member of a claim; an error code and no member if the claim is not valid (any more)."""
        group = self.describe(claim.group_id, now_ms)
        if group is None:
            return error_codes.UNKNOWN_MEMBER_ID, None, None
        if claim.instance_id is not None:
            member = group.of_instance(claim.instance_id)
            if member is not None and member.member_id != claim.member_id:
                return error_codes.FENCED_INSTANCE_ID, None, None
        else:
            member = group.members.get(claim.member_id)
        if member is None:
            return error_codes.UNKNOWN_MEMBER_ID, None, None
        if claim.generation != group.generation:
            return error_codes.ILLEGAL_GENERATION, None, None
        return error_codes.NONE, group, member

    # --- offsets ----------------------------------------------------------------------------------------------

    def commit(
        self, claim: MemberClaim, offsets: Mapping[TopicPartition, Offset], now_ms: int
    ) -> dict[TopicPartition, int]:
        """Store offsets; return an error code per partition. The partitions are known to exist."""
        code, group = self._may_commit(claim, now_ms)
        if group is None:
            return dict.fromkeys(offsets, code)
        codes = {
            key: error_codes.OFFSET_METADATA_TOO_LARGE
            if len(one.metadata) > MAX_METADATA_CHARACTERS
            else error_codes.NONE
            for key, one in offsets.items()
        }
        group.offsets |= {key: one for key, one in offsets.items() if codes[key] == error_codes.NONE}
        self._groups[group.group_id] = group
        return codes

    def _may_commit(self, claim: MemberClaim, now_ms: int) -> tuple[int, Group | None]:
        group = self.describe(claim.group_id, now_ms)
        if claim.generation == NO_GENERATION and not claim.member_id and claim.instance_id is None:
            # A consumer that manages partitions without a group, or a tool that resets offsets.
            if group is not None and group.members:
                return error_codes.UNKNOWN_MEMBER_ID, None
            return error_codes.NONE, Group(claim.group_id, now_ms) if group is None else group
        if group is None:
            return error_codes.ILLEGAL_GENERATION, None
        code, group, member = self._member(claim, now_ms)
        if group is None or member is None:
            return code, None
        if group.state is GroupState.COMPLETING_REBALANCE:
            return error_codes.REBALANCE_IN_PROGRESS, None
        member.is_alive(self.clients_ms(now_ms))
        return error_codes.NONE, group

    def fetch(
        self, group_id: str, partitions: Iterable[TopicPartition] | None, now_ms: int
    ) -> dict[TopicPartition, Offset]:
        """The committed offsets of these partitions, or (None) of all that have one."""
        group = self.describe(group_id, now_ms)
        offsets = {} if group is None else group.offsets
        return dict(offsets) if partitions is None else {key: offsets.get(key, NO_OFFSET) for key in partitions}

    def delete_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], now_ms: int
    ) -> tuple[int, dict[TopicPartition, int]]:
        """Delete the offsets of partitions; return an error code of the group, and one per partition."""
        group = self.describe(group_id, now_ms)
        if group is None:
            return error_codes.GROUP_ID_NOT_FOUND, {}
        if group.members and group.protocol_type != CONSUMERS:
            return error_codes.NON_EMPTY_GROUP, {}
        codes: dict[TopicPartition, int] = {}
        for key in partitions:
            codes[key] = error_codes.GROUP_SUBSCRIBED_TO_TOPIC
            if not group.consumes(key.topic):
                codes[key] = error_codes.NONE
                group.offsets.pop(key, None)
        return error_codes.NONE, codes

    # --- groups -----------------------------------------------------------------------------------------------

    def list(self, now_ms: int) -> tuple[Group, ...]:
        """All groups, by id."""
        found = (self.describe(group_id, now_ms) for group_id in sorted(self._groups))
        return tuple(group for group in found if group is not None)

    def delete(self, group_id: str, now_ms: int) -> int:
        """Delete a group that has no members; return an error code."""
        group = self.describe(group_id, now_ms)
        if group is None:
            return error_codes.GROUP_ID_NOT_FOUND
        if group.members:
            return error_codes.NON_EMPTY_GROUP
        del self._groups[group_id]
        return error_codes.NONE

    def describe(self, group_id: str, now_ms: int) -> Group | None:
        """The group without members whose session expired; None if the group itself was deleted by now."""
        group = self._groups.get(group_id)
        if group is None:
            return None
        clients_ms = self.clients_ms(now_ms)
        for member in [one for one in group.members.values() if one.expires_ms <= clients_ms]:
            group.drop(member, now_ms - round(clients_ms - member.expires_ms))
        if not group.members and now_ms - group.empty_since_ms >= RETENTION_MS:
            del self._groups[group_id]
            return None
        return group
