"""Hold a lease of a cluster: membership of the group `kreassign-lease`, which has room for one run.

Autopilots have a lease of their own, the group `kreassign-autopilot`: one looks after a cluster at a time.

How it works, and why it holds on any Kafka since 2.4 (docs/design/decisions/lease.md):

- a run joins by Kafka's classic group protocol and names, as the only protocol that it speaks, its own run id. A
  second run shares no protocol with the first: INCONSISTENT_GROUP_PROTOCOL, at once, and the first one notices
  nothing;
- a member that is silent for `SESSION_MS` is removed, so a holder that is gone does not block for ever;
- a former member is recognised by its member id and generation before it changes anything: `confirm` queries the
  coordinator right before each request that changes the cluster, also before it is sent again (`confirmed_writes`);
- it joins under its run id as `group.instance.id` (KIP-345), so that a run that is resumed takes its own place at
  once, and a former process of the same run is fenced.

If the coordinator does not answer, the lease holds while the session lasts, less the time that a change may take: no
other run can have joined by then. After that nothing is changed until the coordinator answers, for however long:
silence says nothing about other runs. Only a cluster that cannot keep a lease is done without one, and only by a run
that never had it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Protocol

from kreassign.clock import Clock
from kreassign.errors import ClusterError, Unsupported
from kreassign.executor.cluster.port import ClusterPort
from kreassign.executor.cluster.readings import read_topics, seen_in_two_looks
from kreassign.model import Topic, error_codes
from kreassign.model.authorization import error_text
from kreassign.model.requests import Group, GroupCandidate, GroupMember, Membership
from kreassign.model.text import LAST_MS, parse_whole

# State of a run's lease.


class LeasePolicy(StrEnum):
    """Cases in which a run needs the lease."""

    AUTO = "auto"  # unless the cluster cannot keep a lease without a side effect; a run that has had it needs it
    REQUIRE = "require"  # without it nothing is changed
    OFF = "off"  # the cluster is not asked


@dataclass(frozen=True, slots=True)
class Held:
    """The run holds the lease, in this generation of the group."""

    generation: int


@dataclass(frozen=True, slots=True)
class Taken:
    """The run does not hold the lease, and changes nothing: another run holds it, or that is unknown.

    `is_unseen`: it is refused, and the coordinator shows no holder. `holder` is the one that it shows.
    """

    reason: str
    is_unseen: bool = False
    holder: LeaseHolder | None = None


@dataclass(frozen=True, slots=True)
class Forgone:
    """The run goes on without a lease. `is_usual`: no reason for a warning."""

    reason: str
    is_usual: bool = False


LeaseStatus = Held | Taken | Forgone


# Holder of the lease, as every member of the group can read it (DescribeGroups).


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """A run, and the process that executes it since `since_ms`."""

    run_id: str
    user: str
    host: str
    since_ms: int

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.since_ms / 1000, tz=UTC)
        return f"run {self.run_id} of {self.user}@{self.host} (since {since:%Y-%m-%d %H:%M:%S} UTC)"

    def encoded(self) -> bytes:
        """Encode as the metadata of a member."""
        return json.dumps([self.run_id, self.user, self.host, self.since_ms]).encode()


def holder_of(member: GroupMember) -> LeaseHolder:
    """Read the holder from a member's metadata; unreadable fields come from what the coordinator saw."""
    try:
        run_id, user, host, since_ms = json.loads(member.metadata)
        return LeaseHolder(str(run_id), str(user), str(host), parse_whole(str(since_ms), most=LAST_MS))
    except (ValueError, TypeError, RecursionError):
        return LeaseHolder(member.instance_id or member.member_id, member.client_id, member.client_host, 0)


@dataclass(frozen=True, slots=True)
class LeaseKind:
    """The group of a lease, its name in sentences, and the longest silence of a holder."""

    group_id: str
    name: str
    session_ms: int


GROUP_ID = "kreassign-lease"
PROTOCOL_TYPE = "kreassign"
OFFSETS_TOPIC = "__consumer_offsets"

SESSION_MS = 60_000
"""Longest silence of a holder: longer than a pause of its machine; others wait as long for a holder that is gone."""

BEATS = 6
"""Heartbeats in a session while the holder changes nothing."""

CALL_TIMEOUT_MS = 10_000
"""Timeout of a call: a coordinator that is down has a successor by then (broker.session.timeout.ms, 9 s)."""

JOIN_TIMEOUT_MS = 30_000
"""Timeout of a join: joining an empty group takes group.initial.rebalance.delay.ms, 3 s by default."""

TAKES_OVER_S = 10.0
"""A coordinator that took over shows by then what it has read: its followers, whose copies count, have asked again."""

CHANGE_MS = 20_000
"""Longest time from the confirmation of a change to its arrival at the cluster."""

OF_RUNS = LeaseKind(GROUP_ID, "the lease of the cluster", SESSION_MS)
OF_AUTOPILOTS = LeaseKind("kreassign-autopilot", "the lease of autopilots", 40_000)
"""A successor looks every ten seconds, and joining takes three: it decides within a minute."""

_CANNOT_KEEP_ONE = (error_codes.GROUP_AUTHORIZATION_FAILED, error_codes.INVALID_SESSION_TIMEOUT)
"""Refusals by a cluster that keeps no lease for this run: a permission is missing, or no session may be as long."""

_NO_LONGER_A_MEMBER = (
    error_codes.UNKNOWN_MEMBER_ID,
    error_codes.ILLEGAL_GENERATION,
    error_codes.FENCED_INSTANCE_ID,
    error_codes.REBALANCE_IN_PROGRESS,
)


class Lease(Protocol):
    """Lease as a runner needs it: confirms before each change that the run is the only writer."""

    @property
    def status(self) -> LeaseStatus | None:
        """Status of the last call; None if there is nothing to report."""
        ...

    def beat(self) -> LeaseStatus | None:
        """Keep the lease while nothing is changed; queries the coordinator only at intervals."""
        ...

    def confirm(self) -> LeaseStatus | None:
        """Confirm that the run may change the cluster now; it must not if the result is `Taken`."""
        ...

    def retake(self) -> LeaseStatus | None:
        """Try to get the lease again."""
        ...


class NoLease:
    """Lease that is never queried (policy `off`; rehearsals)."""

    def __init__(self, status: LeaseStatus | None = None) -> None:
        self.status = status

    def beat(self) -> LeaseStatus | None:
        """Do nothing."""
        return self.status

    confirm = retake = beat


NO_LEASE = NoLease()


@dataclass(slots=True)
class ClusterLease:
    """Lease of one cluster for one run. Call `take` first, and `release` at the end."""

    port: ClusterPort
    clock: Clock
    holder: LeaseHolder
    policy: LeasePolicy = LeasePolicy.AUTO
    was_held: bool = False
    """True once the run has had the lease, also in an earlier process: from then on it does not go on without."""
    status: LeaseStatus | None = None
    membership: Membership | None = None
    kind: LeaseKind = OF_RUNS
    _heard_s: float = 0.0

    def take(self, *, waits: bool = True) -> LeaseStatus:
        """Take the lease, also in place of a former process of the same run; `waits` while a coordinator takes over.

        Raises ClusterError when the cluster does not answer.
        """
        try:
            missing = self._missing_topic()
            join = self._join_once_seen if waits else self._join
            self.status = missing or join()
            if isinstance(self.status, Taken) and self._freed_own_place():
                self.status = join()
        except Unsupported as error:
            self.status = self._without(f"the cluster cannot keep one: {error}")
        return self.status

    def retake(self) -> LeaseStatus:
        """Take the lease if it is free, and not held by another process of the same run."""
        if self.membership is not None and isinstance(found := self.confirm(), Held):
            return found
        try:
            missing = self._missing_topic()
            if missing is None:
                group = self.port.describe_group(self.kind.group_id, timeout_ms=CALL_TIMEOUT_MS)
                self.status = self._taken_by(group) if group.members else self._join()
            else:  # Without groups nobody holds the lease; where they may not be read, another run may.
                self.status = missing if missing.is_usual else Taken(missing.reason)
        except ClusterError as error:
            self.status = self._silent(error)
        return self.status

    def beat(self) -> LeaseStatus | None:
        """Keep the lease; sends a heartbeat at intervals."""
        if self.clock.monotonic_s() - self._heard_s < self.beat_s:
            return self.status
        return self.confirm()

    def confirm(self) -> LeaseStatus | None:
        """Ask the coordinator whether the run still holds the lease."""
        if self.membership is None:
            return self._look_again()
        asked_s = self.clock.monotonic_s()
        try:
            self.port.heartbeat(self.membership, timeout_ms=CALL_TIMEOUT_MS)
        except ClusterError as error:
            if error_codes.has_code(error, *_NO_LONGER_A_MEMBER):
                self.membership = None
                self.status = Taken(f"{self.kind.name} was lost: {error}")
            elif self.clock.monotonic_s() - self._heard_s >= (self.kind.session_ms - CHANGE_MS) / 1000:
                # A silent coordinator takes nothing away before: what is sent by then arrives within the session.
                self.status = self._silent(error)
        else:
            self._heard_s = asked_s
            self.status = Held(self.membership.generation)
        return self.status

    def beat_beside(self, port: ClusterPort) -> None:
        """Keep the lease by another client, from a thread: an answer counts as one that the run itself got.

        Raises ClusterError.
        """
        membership, asked_s = self.membership, self.clock.monotonic_s()
        if membership is not None:
            port.heartbeat(membership, timeout_ms=CALL_TIMEOUT_MS)
            if self.membership is membership:
                self._heard_s = max(self._heard_s, asked_s)

    def _look_again(self) -> LeaseStatus | None:
        """Take the lease once a cluster can keep one that could not: another run may take it then."""
        now_s = self.clock.monotonic_s()
        if isinstance(self.status, Forgone) and self.status.is_usual and now_s - self._heard_s >= self.beat_s:
            self._heard_s = now_s
            try:
                self.take(waits=False)
            except ClusterError as error:
                self.status = self._silent(error)
        return self.status

    def release(self) -> None:
        """Release the lease at once. If the coordinator does not answer, the session runs out."""
        if self.membership is None:
            return
        member, self.membership = self.membership, None
        try:
            self.port.leave_group(
                self.kind.group_id, member.instance_id, member_id=member.member_id, timeout_ms=CALL_TIMEOUT_MS
            )
        except ClusterError:
            return

    # --- joining ----------------------------------------------------------------------------------------------

    def _join_once_seen(self) -> LeaseStatus:
        """Join; where that is refused and nobody is shown, ask again until a coordinator that took over knows all.

        It refuses by what it has read, and shows what its followers have, too.
        """
        until_s = self.clock.monotonic_s() + TAKES_OVER_S
        while True:
            status = self._join()
            if not (isinstance(status, Taken) and status.is_unseen) or self.clock.monotonic_s() >= until_s:
                return status
            self.clock.sleep(1.0)

    def _join(self) -> LeaseStatus:
        kind, run_id = self.kind, self.holder.run_id
        candidate = GroupCandidate(kind.group_id, run_id, PROTOCOL_TYPE, run_id, self.holder.encoded(), kind.session_ms)
        asked_s = self.clock.monotonic_s()
        try:
            self.membership = self.port.join_group(candidate, timeout_ms=JOIN_TIMEOUT_MS)
        except ClusterError as error:
            return self._not_joined(error)
        self._heard_s, self.was_held = asked_s, True
        return Held(self.membership.generation)

    def _not_joined(self, error: ClusterError) -> LeaseStatus:
        """Convert a failed join to a status. Errors that do not say whether there is a lease are raised again.

        Where `group.max.size` is 1, Kafka reports the full group before the missing common protocol.
        """
        if error_codes.has_code(
            error, error_codes.INCONSISTENT_GROUP_PROTOCOL, error_codes.GROUP_MAX_SIZE_REACHED, *_NO_LONGER_A_MEMBER
        ):
            return self._held_by_another(error)
        if error_codes.has_code(error, *_CANNOT_KEEP_ONE):
            return self._without(error_text(error))
        raise error

    def _freed_own_place(self) -> bool:
        """Remove a former process of this run from the group; True if it was the member in the way.

        A run takes over its own place without this (KIP-345), but not in a group that has room for one member only.
        """
        try:
            members = self.port.describe_group(self.kind.group_id, timeout_ms=CALL_TIMEOUT_MS).members
            if self.holder.run_id not in {member.instance_id for member in members}:
                return False
            self.port.leave_group(self.kind.group_id, self.holder.run_id, member_id="", timeout_ms=CALL_TIMEOUT_MS)
        except ClusterError:
            return False
        return True

    def _held_by_another(self, refusal: ClusterError) -> Taken:
        try:
            group = self.port.describe_group(self.kind.group_id, timeout_ms=CALL_TIMEOUT_MS)
        except ClusterError as error:
            return Taken(f"another process holds {self.kind.name} ({refusal}), and it cannot be told which: {error}")
        if group.members:
            return self._taken_by(group)
        return Taken(
            f"the coordinator does not give {self.kind.name}, and shows nobody who holds it: {refusal}",
            is_unseen=True,
        )

    def _missing_topic(self) -> Forgone | None:
        """Reason to forgo the lease because looking for a coordinator would create a topic; None if it would not.

        None also if the lease is needed.
        """
        if not self._may_be_forgone:
            return None
        try:
            if offsets_topic(self.port) is not None:
                return None
        except ClusterError as error:
            if error_codes.has_code(error, error_codes.TOPIC_AUTHORIZATION_FAILED):
                return Forgone(error_text(error))
            raise
        created = "`--lease require` creates it, as the first consumer does"
        return Forgone(f"the cluster has no topic {OFFSETS_TOPIC} yet; {created}", is_usual=True)

    @property
    def beat_s(self) -> float:
        """Interval of heartbeats."""
        return self.kind.session_ms / 1000 / BEATS

    def _taken_by(self, group: Group) -> Taken:
        holder = holder_of(group.members[0])
        return Taken(f"{holder} holds {self.kind.name}", holder=holder)

    def _silent(self, error: ClusterError) -> Taken:
        return Taken(f"the coordinator of {self.kind.name} does not answer, so another may hold it: {error}")

    @property
    def _may_be_forgone(self) -> bool:
        return self.policy is LeasePolicy.AUTO and not self.was_held

    def _without(self, reason: str) -> LeaseStatus:
        if self._may_be_forgone:
            return Forgone(reason)
        had = ", and this run has had it" if self.was_held else ""
        return Taken(f"no lease can be had{had}: {reason}")


def offsets_topic(port: ClusterPort) -> Topic | None:
    """The topic that keeps groups and offsets; None if the cluster has none. Raises ClusterError if that is unknown."""
    found = read_topics(port, [OFFSETS_TOPIC])
    if (error := found.unknown.get(OFFSETS_TOPIC)) is not None:
        raise error
    return found.known.get(OFFSETS_TOPIC)


def present_holder(port: ClusterPort, kind: LeaseKind = OF_RUNS) -> LeaseHolder | None:
    """Current holder of a lease, read without a side effect; None if it is free. Raises ClusterError."""
    if offsets_topic(port) is None:
        return None

    def holder() -> LeaseHolder | None:
        group = port.describe_group(kind.group_id, timeout_ms=CALL_TIMEOUT_MS)
        return holder_of(group.members[0]) if group.members else None

    return seen_in_two_looks(holder)
