"""Kafka's calls of clients that are no admin's: membership of a group, its offsets, and records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from kreassign.admin.call import Call
from kreassign.admin.kafka_calls import KafkaCalls, no_leader
from kreassign.admin.translate import groups as group_calls
from kreassign.admin.translate import records as record_calls
from kreassign.errors import OutcomeUnknown, Rejected
from kreassign.model import NO_LEADER, Batch, TopicPartition, requests
from kreassign.model.error_codes import REBALANCE_IN_PROGRESS, has_code

Answer = TypeVar("Answer")


class MemberCalls(KafkaCalls):
    """The calls of a member of a group, a producer and a consumer."""

    # --- groups -----------------------------------------------------------------------------------------------

    def describe_group(self, group_id: str, *, timeout_ms: int | None = None) -> requests.Group:
        """Describe a group of the classic protocol with its members; a group that does not exist is `DEAD`.

        A cluster that never had a group creates `__consumer_offsets` when a coordinator is looked up, as for any
        consumer.
        """
        self._needs_brokers("describe_group")
        return self._session.ask_coordinator(group_id, group_calls.describe_group(group_id), timeout_ms)

    def join_group(self, candidate: requests.GroupCandidate, *, timeout_ms: int | None = None) -> requests.Membership:
        """Join a group by the classic protocol, as its leader, under a `group.instance.id` (KIP-345).

        The coordinator takes the first member of an empty group only after `group.initial.rebalance.delay.ms` (3 s by
        default). A member that does not call `heartbeat` within its session timeout is removed.

        Errors: INCONSISTENT_GROUP_PROTOCOL when the members of the group have no protocol in common with the
        candidate, INVALID_SESSION_TIMEOUT, GROUP_AUTHORIZATION_FAILED (needs READ on the group).
        """
        self._needs_brokers("join_group")
        call = group_calls.join_group(candidate, self._session.settings.api_timeout_ms)
        while True:
            membership = self._session.ask_coordinator(candidate.group_id, call, timeout_ms)
            try:
                sync = group_calls.sync_group(membership, candidate)
                self._session.ask_coordinator(candidate.group_id, sync, timeout_ms)
            except Rejected as error:
                if not has_code(error, REBALANCE_IN_PROGRESS):
                    raise
            else:
                return membership

    def heartbeat(self, membership: requests.Membership, *, timeout_ms: int | None = None) -> None:
        """Renew the membership.

        Errors: UNKNOWN_MEMBER_ID or ILLEGAL_GENERATION when the session has expired, FENCED_INSTANCE_ID when another
        member has joined under the same instance id; in each case this client is no longer a member.
        """
        self._session.ask_coordinator(membership.group_id, group_calls.heartbeat(membership), timeout_ms)

    def leave_group(
        self, group_id: str, instance_id: str, *, member_id: str = "", timeout_ms: int | None = None
    ) -> None:
        """Remove the member with this `group.instance.id` from a group; with `member_id` only if it matches.

        Errors: UNKNOWN_MEMBER_ID without such a member, FENCED_INSTANCE_ID if `member_id` differs.
        """
        self._session.ask_coordinator(group_id, group_calls.leave_group(group_id, instance_id, member_id), timeout_ms)

    def commit_offsets(
        self,
        membership: requests.Membership,
        offsets: Mapping[TopicPartition, requests.CommittedOffset],
        *,
        timeout_ms: int | None = None,
    ) -> Batch[TopicPartition, None]:
        """Commit offsets with their metadata as a member; commits of former members are refused.

        Errors, of each partition: those of `heartbeat`, OFFSET_METADATA_TOO_LARGE (`offset.metadata.max.bytes`, 4096
        by default), TOPIC_AUTHORIZATION_FAILED (needs READ on the topic).
        """
        return self._session.ask_coordinator(
            membership.group_id, group_calls.commit_offsets(membership, offsets), timeout_ms
        )

    def fetch_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> Batch[TopicPartition, requests.CommittedOffset]:
        """The committed offsets of a group for these partitions."""
        self._needs_brokers("fetch_offsets")
        return self._session.ask_coordinator(group_id, group_calls.fetch_offsets(group_id, partitions), timeout_ms)

    # --- records ----------------------------------------------------------------------------------------------

    def produce(
        self, partition: TopicPartition, key: bytes, value: bytes | None, *, timeout_ms: int | None = None
    ) -> Batch[TopicPartition, None]:
        """Write a record, or without a value a tombstone, and wait for all replicas in sync; needs WRITE on the topic.

        It is not sent again: without an answer (`OutcomeUnknown`) it may be there, or come later.
        """
        call = record_calls.produce(partition, self._clock.now_ms(), key, value)
        return self._at_leader(partition, call, timeout_ms)

    def fetch(
        self, partition: TopicPartition, offset: int, *, wait_ms: int = 0, timeout_ms: int | None = None
    ) -> Batch[TopicPartition, requests.FetchedRecords]:
        """Records from an offset on, as far as all replicas in sync have them; needs READ on the topic.

        Where there are none, the broker waits so long for some.
        """
        return self._at_leader(partition, record_calls.fetch(partition, offset, wait_ms), timeout_ms)

    def _at_leader(
        self, partition: TopicPartition, call: Call[Batch[TopicPartition, Answer]], timeout_ms: int | None
    ) -> Batch[TopicPartition, Answer]:
        def ask(asked: Iterable[TopicPartition]) -> Batch[TopicPartition, Answer]:
            found, failed = self._partitions(asked, timeout_ms)
            leader = found[partition].leader if partition in found else NO_LEADER
            if leader == NO_LEADER:
                return Batch({}, failed or {partition: no_leader(partition)})
            try:
                return self._session.call(call, leader, timeout_ms)
            except OutcomeUnknown as error:
                return Batch({}, {partition: error})

        self._needs_brokers(call.api.name)
        return self._session.ask_leaders([partition], ask, timeout_ms)
