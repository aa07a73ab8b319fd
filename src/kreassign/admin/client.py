"""The client for Kafka's admin APIs: Kafka's own calls, and those that are composed of several.

The calls of KIP-179 are sent as they are to a cluster that has them; for others they are composed of Kafka's own.
Then the decision is made here, on a view of the cluster that is read first, by the same functions by which
a cluster would decide (`kreassign.model.topic_changes`); only legal changes are sent.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from kreassign.admin import topic_changes
from kreassign.admin.kafka_calls import by_leader
from kreassign.admin.member_calls import MemberCalls
from kreassign.admin.session import To
from kreassign.admin.settings import check_timeout
from kreassign.admin.translate import partitions as partition_calls
from kreassign.admin.translate.partitions import DEBUGGING_REPLICA
from kreassign.errors import ClusterError, OutcomeUnknown, Rejected, Unsupported
from kreassign.model import (
    NO_LEADER,
    Batch,
    Broker,
    ConfigResource,
    LogDir,
    NewPartitions,
    OffsetSpec,
    Partition,
    PreferredElectionResult,
    ReplicaStatus,
    Topic,
    TopicPartition,
    error_codes,
    requests,
)
from kreassign.model import topic_changes as decisions
from kreassign.model.text import check_ids, signed_number
from kreassign.wire import api

_MIN_IN_SYNC = "min.insync.replicas"

log = logging.getLogger(__name__)


class AdminClient(MemberCalls):
    """A client of one cluster. Safe for use by several threads; close it, or use it in a `with` statement."""

    # --- KIP-179: topics as a whole ---------------------------------------------------------------------------

    def alter_partition_counts(
        self, counts: Mapping[str, int], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> Batch[str, None]:
        """Set the total number of partitions of topics (KIP-179); with `validate_only` check and change nothing.

        Kafka never shipped the requests of KIP-179: for a cluster without them, this and the next two
        methods decide here and send Kafka's own requests.

        Errors: INVALID_TOPIC_EXCEPTION, INVALID_PARTITIONS, CLUSTER_AUTHORIZATION_FAILED.
        """
        if not counts:
            return Batch()
        try:
            call = partition_calls.alter_partition_counts(counts, validate_only=validate_only)
            return self._session.call(call, To.CONTROLLER, timeout_ms)
        except Unsupported:
            view = decisions.TopicsView({}, self._topics(counts, timeout_ms))
        decided = topic_changes.as_batch(
            api.ALTER_PARTITION_COUNTS, decisions.decide_partition_counts(view, counts.items())
        )
        wanted = {topic: NewPartitions(count) for topic, count in decided.ok.items()}
        growth = {topic: count - len(view.topics[topic].partitions) for topic, count in decided.ok.items()}
        created = self._create_partitions(wanted, growth, validate_only=validate_only, timeout_ms=timeout_ms)
        return requests.join([created, Batch({}, decided.failed)])

    def alter_replication_factors(
        self,
        factors: Mapping[str, int],
        *,
        validate_only: bool = False,
        may_undercut_min_in_sync: bool = False,
        timeout_ms: int | None = None,
    ) -> Batch[str, None]:
        """Set the replication factor of topics (KIP-179) by starting reassignments.

        Which brokers gain or lose replicas: see `kreassign.model.topic_changes`.

        Errors: INVALID_TOPIC_EXCEPTION, INVALID_REPLICATION_FACTOR, REASSIGNMENT_IN_PROGRESS,
        CLUSTER_AUTHORIZATION_FAILED.
        """
        if not factors:
            return Batch()
        try:
            call = partition_calls.alter_replication_factors(
                factors, validate_only=validate_only, may_undercut_min_in_sync=may_undercut_min_in_sync
            )
            return self._session.call(call, To.CONTROLLER, timeout_ms)
        except Unsupported:
            view = self.view_topics(factors, timeout_ms=timeout_ms)
        decided = topic_changes.as_batch(
            api.ALTER_REPLICATION_FACTORS,
            decisions.decide_replication_factors(
                view, factors.items(), may_undercut_min_in_sync=may_undercut_min_in_sync
            ),
        )
        targets = {key: replicas for targets in decided.ok.values() for key, replicas in targets.items()}
        refused = {} if validate_only else self._start(targets, timeout_ms).failed
        # A topic fails with the first refusal of its partitions.
        failed = {key.topic: refused[key] for key in sorted(refused, reverse=True)}
        return Batch({topic: None for topic in decided.ok if topic not in failed}, {**decided.failed, **failed})

    def reassign_partitions(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Batch[TopicPartition, None]:
        """Start reassignments (KIP-179). Unlike KIP-455, this refuses a partition that is being reassigned already.

        Errors: INVALID_TOPIC_EXCEPTION, UNKNOWN_MEMBER_ID for an unknown broker, INVALID_REPLICA_ASSIGNMENT,
        REASSIGNMENT_IN_PROGRESS, CLUSTER_AUTHORIZATION_FAILED.
        """
        if not targets:
            return Batch()
        try:
            call = partition_calls.reassign_partitions(targets, validate_only=validate_only)
            return self._session.call(call, To.CONTROLLER, timeout_ms)
        except Unsupported:
            view = self._view(self._topics({key.topic for key in targets}, timeout_ms), timeout_ms, {}, {})
        decided = topic_changes.as_batch(api.REASSIGN_PARTITIONS, decisions.decide_reassignments(view, targets.items()))
        if validate_only:
            return decided.map(lambda _target: None)
        return requests.join([self._start(decided.ok, timeout_ms), Batch({}, decided.failed)])

    def view_topics(self, topics: Iterable[str], *, timeout_ms: int | None = None) -> decisions.TopicsView:
        """Read the basis of `kreassign.model.topic_changes`' decisions on these topics; unknown topics are left out.

        ISR and `min.insync.replicas` are what two brokers show; a broker whose log directories cannot be read may
        receive nothing.
        """
        resources = {name: ConfigResource.topic(name) for name in topics}
        brokers = self.describe_cluster(timeout_ms=timeout_ms).broker_ids
        found = topic_changes.agreed(
            requests.answers_of_two(brokers, lambda broker: self._topics(resources, timeout_ms, broker))
        )

        def minima(broker: int) -> dict[str, int]:
            configs = self.describe_configs(
                resources.values(), names=(_MIN_IN_SYNC,), broker=broker, timeout_ms=timeout_ms
            )
            for error in configs.failed.values():
                if not isinstance(error, Rejected):  # this broker says nothing; what it refuses stays unknown
                    raise error
            entries = {name: configs.ok.get(resource, {}).get(_MIN_IN_SYNC) for name, resource in resources.items()}
            texts = {name: one.value for name, one in entries.items() if one is not None and one.value is not None}
            numbers = {name: signed_number(text) for name, text in texts.items()}
            return {name: number for name, number in numbers.items() if number is not None}

        looks = requests.answers_of_two(brokers, minima)
        known = set[str].intersection(*map(set, looks))
        log_dirs = self.describe_log_dirs(timeout_ms=timeout_ms)
        if log_dirs.failed:
            again = self.describe_log_dirs(sorted(log_dirs.failed), timeout_ms=timeout_ms)
            log_dirs = Batch({**log_dirs.ok, **again.ok}, again.failed)
        for broker, error in log_dirs.failed.items():
            log.warning("broker %d gets no new replica: its log directories could not be read: %s", broker, error)
        return self._view(found, timeout_ms, log_dirs.ok, {name: max(look[name] for look in looks) for name in known})

    def _start(
        self, targets: Mapping[TopicPartition, tuple[int, ...]], timeout_ms: int | None
    ) -> Batch[TopicPartition, None]:
        # No target overrides a move: moving partitions were refused.
        return self.alter_partition_reassignments(dict(targets), warns_of_overrides=False, timeout_ms=timeout_ms)

    def _view(
        self,
        found: Mapping[str, Topic],
        timeout_ms: int | None,
        log_dirs: Mapping[int, tuple[LogDir, ...]],
        min_in_sync: Mapping[str, int],
    ) -> decisions.TopicsView:
        partitions = [entry.topic_partition for topic in found.values() for entry in topic.partitions]
        ongoing = self.list_partition_reassignments(partitions, timeout_ms=timeout_ms).keys()
        return decisions.topics_view(
            self._registered_brokers(timeout_ms), log_dirs, found, ongoing=ongoing, min_in_sync=min_in_sync
        )

    def _registered_brokers(self, timeout_ms: int | None) -> tuple[Broker, ...]:
        """The brokers, including fenced ones if the cluster lists them (Kafka 4.0)."""
        try:
            return self.describe_cluster(include_fenced=True, timeout_ms=timeout_ms).brokers
        except Unsupported:
            return self.describe_cluster(timeout_ms=timeout_ms).brokers

    def _topics(self, names: Iterable[str], timeout_ms: int | None, broker: int | None = None) -> Mapping[str, Topic]:
        described = self.describe_topics(names, broker=broker, timeout_ms=timeout_ms)
        return described.raise_if_any(error_codes.UNKNOWN_TOPIC_OR_PARTITION)

    # --- reassignments and elections --------------------------------------------------------------------------

    def replace_reassignments(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...]],
        *,
        allow_replication_factor_change: bool = True,
        timeout_ms: int | None = None,
    ) -> Batch[TopicPartition, None]:
        """Start reassignments; ongoing moves of these partitions are cancelled and awaited first.

        A partition whose move could not be cancelled keeps it, and fails with that error: its target is not submitted.
        Cancelled partitions whose target is then refused stay with the replicas from before their move.
        """
        for key, target in targets.items():
            check_ids(key, (key.partition, *target))
        limit_ms = self._session.settings.api_timeout_ms if timeout_ms is None else timeout_ms
        check_timeout("timeout_ms", limit_ms)
        deadline_s = self._clock.monotonic_s() + limit_ms / 1000
        poll_s = self._session.settings.retry_backoff_ms / 1000
        failed = self._cancel_and_wait(tuple(targets), deadline_s, poll_s)
        started = self.alter_partition_reassignments(
            {key: target for key, target in targets.items() if key not in failed},
            allow_replication_factor_change=allow_replication_factor_change,
            warns_of_overrides=False,
            timeout_ms=timeout_ms,
        )
        return requests.join([started, Batch({}, failed)])

    def _cancel_and_wait(
        self, partitions: Collection[TopicPartition], deadline_s: float, poll_s: float
    ) -> dict[TopicPartition, ClusterError]:
        """Cancel the moves of these partitions and wait until none is listed; return errors of those that did not end.

        Cancelling, waiting until the controller no longer lists the partition, and then submitting has none of the
        surprises of `kreassign.model.reassignment`. The time in between is not guarded: another client's target for
        the same partition is overridden as always.
        """

        def left_ms() -> int:
            return max(1, round(1000 * (deadline_s - self._clock.monotonic_s())))

        ongoing = self.list_partition_reassignments(partitions, timeout_ms=left_ms())
        if not ongoing:
            return {}
        outcome = self.alter_partition_reassignments(dict.fromkeys(ongoing), timeout_ms=left_ms())
        # A move that ended by itself in between needs no cancel.
        failed = {
            key: error
            for key, error in outcome.failed.items()
            if not error_codes.has_code(error, error_codes.NO_REASSIGNMENT_IN_PROGRESS)
        }
        waiting = ongoing.keys() - failed.keys()
        while waiting := waiting & self.list_partition_reassignments(waiting, timeout_ms=left_ms()).keys():
            if self._clock.monotonic_s() + poll_s >= deadline_s:
                late = "it was cancelled, and is still listed; nothing was submitted for it"
                return {**failed, **{key: OutcomeUnknown(late, item=key) for key in waiting}}
            self._clock.sleep(poll_s)
        return failed

    def elect_preferred_leaders(
        self, partitions: Iterable[TopicPartition] | None, *, timeout_ms: int | None = None
    ) -> PreferredElectionResult:
        """Elect the preferred leaders of these partitions or (None) of all (KIP-183).

        Unlike `elect_leaders`, this succeeds for a partition whose preferred replica is the leader already. A partition
        that is named twice counts once.

        Errors: UNKNOWN_TOPIC_OR_PARTITION, PREFERRED_LEADER_NOT_AVAILABLE, CLUSTER_AUTHORIZATION_FAILED.
        """
        found = self.elect_leaders(partitions, timeout_ms=timeout_ms)
        return PreferredElectionResult(partition_calls.already_led(found))

    # --- progress ---------------------------------------------------------------------------------------------

    def replica_status(
        self,
        partitions: Iterable[TopicPartition],
        *,
        brokers: Mapping[TopicPartition, Iterable[int]] = MappingProxyType({}),
        known: Mapping[TopicPartition, Partition] = MappingProxyType({}),
        timeout_ms: int | None = None,
    ) -> Batch[TopicPartition, tuple[ReplicaStatus, ...]]:
        """Offsets, size and lag of every replica of these partitions (KIP-179), each from its own broker.

        For a partition in `brokers` only the replicas on those brokers are included. Partitions in `known` are not
        described again: the replicas listed there are included.

        During a reassignment this includes the adding replicas: their lag is what is left to copy. A replica that is
        offline or whose broker does not answer is left out; a partition whose leader does not answer fails.

        Errors: INVALID_TOPIC_EXCEPTION, INVALID_PARTITIONS, CLUSTER_AUTHORIZATION_FAILED; for the first of `brokers`
        without a status, UNKNOWN_MEMBER_ID if it is not registered, UNKNOWN_TOPIC_OR_PARTITION if it has no replica.
        """
        asked = list(dict.fromkeys(partitions))
        unknown = [key for key in asked if key not in known]
        described = self.describe_topics((key.topic for key in unknown), timeout_ms=timeout_ms)
        there = topic_changes.located_partitions(unknown, described)
        found = {**there.ok, **{key: known[key] for key in asked if key in known}}
        registered = self._registered_brokers(timeout_ms) if topic_changes.names_other_brokers(found, brokers) else ()
        chosen = topic_changes.with_named_replicas(found, brokers, (broker.id for broker in registered))
        try:
            measured = self._described_by_leaders(chosen.ok, brokers, timeout_ms)
        except Unsupported:
            measured = self._measured(chosen.ok, timeout_ms)
        return requests.join(
            [topic_changes.only_named_statuses(measured, brokers), Batch({}, {**there.failed, **chosen.failed})]
        )

    def _described_by_leaders(
        self, found: Mapping[TopicPartition, Partition], named: topic_changes.Named, timeout_ms: int | None
    ) -> Batch[TopicPartition, tuple[ReplicaStatus, ...]]:
        """Ask the leaders by KIP-179; raises `Unsupported` if brokers do not know that request."""
        led = by_leader(found)
        leaderless = dict.fromkeys(led.pop(NO_LEADER, ()))
        if not led:
            raise Unsupported("nobody leads these partitions, so nobody can be asked")

        def ask(leader: int, asked: list[TopicPartition]) -> Batch[TopicPartition, tuple[ReplicaStatus, ...]]:
            return self._session.call(partition_calls.replica_status(asked, leader, named), leader, timeout_ms)

        described = self._session.fan_out_groups(led, ask)
        if unsupported := next((error for error in described.failed.values() if isinstance(error, Unsupported)), None):
            raise unsupported
        return requests.join(
            [described, topic_changes.replica_statuses({key: found[key] for key in leaderless}, {}, {})]
        )

    def _measured(
        self, found: Mapping[TopicPartition, Partition], timeout_ms: int | None
    ) -> Batch[TopicPartition, tuple[ReplicaStatus, ...]]:
        """Ask each broker about its own copies."""
        hosted: dict[int, list[TopicPartition]] = {}
        for topic_partition, partition in found.items():
            for broker in set(partition.replicas) - set(partition.offline):
                hosted.setdefault(broker, []).append(topic_partition)
        reports, silent = self._session.fan_out(hosted, lambda broker: self._report(broker, hosted[broker], timeout_ms))
        return topic_changes.replica_statuses(found, reports, silent)

    def _report(self, broker: int, copies: list[TopicPartition], timeout_ms: int | None) -> topic_changes.BrokerReport:
        starts, ends = (
            self._session.call(partition_calls.list_offsets(copies, spec, DEBUGGING_REPLICA), broker, timeout_ms)
            for spec in (OffsetSpec.EARLIEST_LOCAL, OffsetSpec.LATEST)
        )
        log_dirs = self._session.call(partition_calls.describe_log_dirs(copies), broker, timeout_ms)
        sizes = topic_changes.replica_sizes_bytes(log_dirs)
        return topic_changes.broker_report(self._clock.now_ms(), starts, ends, sizes)
