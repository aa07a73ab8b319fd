"""Kafka's own admin calls, one method each, in model types.

Calls about many topics, partitions, brokers or configurations return a `Batch`: each item has its own outcome and
the good ones count. A call that fails as a whole raises a subclass of `ClusterError`; `session.py` has the rules of
retrying. `timeout_ms` bounds a whole call, retries included; None takes `ClientSettings.api_timeout_ms`. `confirm` is
called before each request of a change is sent, from whichever thread sends it, and raises if it must not be any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType, TracebackType
from typing import Self

from kreassign.admin import topic_changes
from kreassign.admin.call import Confirm
from kreassign.admin.session import Session, Target, To
from kreassign.admin.settings import ClientSettings
from kreassign.admin.translate import cluster as cluster_calls
from kreassign.admin.translate import groups as group_calls
from kreassign.admin.translate import partitions as partition_calls
from kreassign.admin.transport import TcpTransport, Transport
from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import ClusterError, InputError, Rejected, Unreachable, Unsupported
from kreassign.model import (
    NO_LEADER,
    AllowedOperations,
    Batch,
    Cluster,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    ElectionType,
    LogDir,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    OngoingReassignment,
    Partition,
    ResourceType,
    Topic,
    TopicPartition,
    TopicPartitionReplica,
    requests,
)
from kreassign.model.error_codes import GROUP_AUTHORIZATION_FAILED, has_code
from kreassign.model.reassignment import Override, check_expected
from kreassign.model.text import LARGEST_ID, check_ids, check_texts, signed_number

PARTITIONS_PER_REQUEST = 5_000
"""Kafka moves the first 10,000 of a request and answers -1 for the rest, and of more than 10,000 elections it holds
none; stay well below.
"""

RECORDS_PER_REQUEST = 5_000
"""A KRaft controller writes a record per setting, topic and partition, and refuses a request of more than 10,000, or
executes a part of it; stay well below.
"""

_UNKNOWN_COUNT = 100
"""Partitions for which a new topic counts that gets as many as `num.partitions` of the controller says."""


class KafkaCalls:
    """A connection to one cluster, and the calls that Kafka has."""

    def __init__(self, session: Session, clock: Clock) -> None:
        self._session = session
        self._clock = clock

    @classmethod
    def connect(
        cls, settings: ClientSettings, *, clock: Clock | None = None, transport: Transport | None = None
    ) -> Self:
        """Create a client with these settings. Nothing is sent before the first call.

        `clock` and `transport` are for tests and rehearsals on a simulated cluster.
        """
        clock = clock or SYSTEM_CLOCK
        return cls(Session(settings, transport or TcpTransport(settings, clock), clock), clock)

    def close(self) -> None:
        """Close all connections."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def expect_cluster(self, cluster_id: str) -> None:
        """Connect to nodes of this cluster only; without it, to those of the cluster that answers first.

        Nothing is sent. Raises InputError if the client is already connected to another cluster.
        """
        self._session.expect_cluster(cluster_id)

    @property
    def principal(self) -> str | None:
        """The client's principal `User:name`, by Kafka's own rules; None if only the brokers know it.

        Nothing is sent.
        """
        return self._session.principal

    # --- nodes ------------------------------------------------------------------------------------------------

    def describe_cluster(
        self, *, include_fenced: bool = False, broker: int | None = None, timeout_ms: int | None = None
    ) -> Cluster:
        """The live brokers, or with `bootstrap_controllers` the controllers.

        `include_fenced` also lists brokers that are registered but not live (Kafka 4.0 and later); `broker` names the
        broker to ask, which answers from its own metadata.
        """
        if self._session.talks_to_controllers:
            return self._session.call(cluster_calls.controller_nodes(), To.CONTROLLER, timeout_ms)
        call = cluster_calls.describe_cluster(include_fenced=include_fenced)
        target: Target = To.ANY if broker is None else broker
        try:
            return self._session.call(call, target, timeout_ms)
        except Unsupported:
            if include_fenced:
                raise
            return self._session.call(cluster_calls.nodes(), target, timeout_ms)

    def has_quorum(self, *, timeout_ms: int | None = None) -> bool:
        """True if the cluster keeps its metadata in a quorum (KRaft), not in ZooKeeper."""
        return self._session.call(cluster_calls.has_quorum(), To.ANY, timeout_ms)

    def offered_versions(
        self, brokers: Iterable[int], *, timeout_ms: int | None = None
    ) -> Batch[int, frozenset[tuple[str, int, int]]]:
        """APIs and features of brokers, each with its first and last version: brokers that differ are upgraded now."""
        self._needs_brokers("offered_versions")
        call = cluster_calls.offered_versions()
        return self._session.fan_out_batch(brokers, lambda broker: self._session.call(call, broker, timeout_ms))

    def allowed_operations(self, *, timeout_ms: int | None = None) -> AllowedOperations:
        """The operations that this client is allowed, on the cluster and on each visible topic (KIP-430).

        Without an authorizer all are allowed. Unreported operations are left out.
        """
        self._needs_brokers("allowed_operations")
        try:
            on_cluster = self._session.call(cluster_calls.allowed_on_cluster(), To.ANY, timeout_ms)
        except Unsupported:
            on_cluster = None
        on_topics = self._session.call(cluster_calls.allowed_on_topics(), To.ANY, timeout_ms)
        return AllowedOperations(on_cluster, on_topics)

    def allowed_on_group(self, group_id: str, *, timeout_ms: int | None = None) -> frozenset[str] | None:
        """The operations that this client is allowed on a group (KIP-430): none for a hidden one, None if unreported.

        For a group that does not exist Kafka reports nothing from 4.0 on.

        A cluster that never had a group creates `__consumer_offsets` when a coordinator is looked up, as for any
        consumer.
        """
        self._needs_brokers("allowed_on_group")
        try:
            return self._session.ask_coordinator(group_id, group_calls.allowed_on_group(group_id), timeout_ms)
        except Rejected as error:
            if has_code(error, GROUP_AUTHORIZATION_FAILED):
                return frozenset()
            raise

    def unregister_broker(self, broker: int, *, confirm: Confirm | None = None, timeout_ms: int | None = None) -> None:
        """Unregister a broker from a KRaft cluster for good; a restarted broker registers again.

        Kafka does not check that it is empty: replica lists continue to name it. Its settings stay.

        Errors: BROKER_ID_NOT_REGISTERED; `Unsupported` in ZooKeeper mode.
        """
        self._session.call(cluster_calls.unregister_broker(broker).confirmed(confirm), To.CONTROLLER, timeout_ms)

    # --- topics -----------------------------------------------------------------------------------------------

    def list_topics(self, *, include_internal: bool = False, timeout_ms: int | None = None) -> tuple[str, ...]:
        """Names of the topics that the client may see, sorted; internal topics only with `include_internal`."""
        self._needs_brokers("list_topics")
        topics = self._session.call(cluster_calls.list_topics(), To.ANY, timeout_ms)
        return tuple(sorted(name for name, is_internal in topics.items() if include_internal or not is_internal))

    def describe_topics(
        self, names: Iterable[str] | None = None, *, broker: int | None = None, timeout_ms: int | None = None
    ) -> Batch[str, Topic]:
        """Partitions, replicas, ISR and leaders of these topics, or (None) of all.

        A topic that does not exist fails with UNKNOWN_TOPIC_OR_PARTITION. Any broker answers, from its own metadata,
        which may lag behind the controller's; `broker` names the one to ask.
        """
        self._needs_brokers("describe_topics")
        wanted = None if names is None else list(dict.fromkeys(names))
        if wanted is not None and not wanted:
            return Batch()
        target: Target = To.ANY if broker is None else broker
        try:
            return self._describe_by_page(wanted, target, timeout_ms)
        except Unsupported:  # Kafka before 3.8, and ZooKeeper mode.
            return self._session.call(cluster_calls.describe_topics_by_metadata(wanted), target, timeout_ms)

    def _describe_by_page(self, names: list[str] | None, target: Target, timeout_ms: int | None) -> Batch[str, Topic]:
        partitions: dict[str, list[Partition]] = {}
        topics: dict[str, Topic] = {}
        failed: dict[str, ClusterError] = {}
        cursor: cluster_calls.Cursor | None = None
        wanted = names
        while True:
            page = self._session.call(cluster_calls.describe_topic_page(wanted, cursor), target, timeout_ms)
            for name, topic in page.topics.ok.items():
                if name not in topics:
                    failed.pop(name, None)
                elif topics[name].topic_id != topic.topic_id:
                    failed[name] = ClusterError(f"topic {name} was created again while it was read page by page")
                topics.setdefault(name, topic)
                partitions.setdefault(name, []).extend(topic.partitions)
            failed.update(page.topics.failed)
            begun, cursor = cursor, page.next_cursor
            if begun is not None and begun.topic in topics and begun.topic not in list(page.topics):
                # Asked for all topics, a broker goes on behind a deleted one without a word.
                failed[begun.topic] = ClusterError(f"topic {begun.topic} was deleted while it was read page by page")
            if cursor is None:
                break
            if begun is not None and cursor <= begun:
                raise cluster_calls.page_without_end(cursor)
            if wanted is not None:
                # Later pages request only the remaining topics: brokers skip the others, but parse them first.
                wanted = [name for name in wanted if name >= cursor.topic]
        # A topic that is refused after its first page is not told in part.
        whole = {
            name: Topic(name, topic.topic_id, topic.is_internal, tuple(partitions[name]))
            for name, topic in topics.items()
            if name not in failed
        }
        return Batch(whole, failed | cluster_calls.missing_from_pages(names or (), whole.keys() | failed.keys()))

    def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> Batch[str, None]:
        """Create topics; with `validate_only` the controller checks and creates nothing.

        Large calls are sent in several requests, as by `alter_partition_reassignments`. So are those of the next two
        methods.
        """
        named: dict[str, list[NewTopic]] = {}
        for topic in topics:
            named.setdefault(topic.name, []).append(topic)  # A controller refuses a name that it gets twice.

        def send(names: list[str]) -> Batch[str, None]:
            call = cluster_calls.create_topics(
                (topic for name in names for topic in named[name]), validate_only=validate_only
            )
            return self._session.call(call, To.CONTROLLER, timeout_ms)

        return in_parts(named, RECORDS_PER_REQUEST, send, lambda name: sum(map(_records_of, named[name])))

    def delete_topics(self, names: Iterable[str], *, timeout_ms: int | None = None) -> Batch[str, None]:
        """Delete topics; their reassignments end with them."""

        def send(some: list[str]) -> Batch[str, None]:
            return self._session.call(cluster_calls.delete_topics(some), To.CONTROLLER, timeout_ms)

        return in_parts(dict.fromkeys(names), RECORDS_PER_REQUEST, send)

    def create_partitions(
        self, new_partitions: Mapping[str, NewPartitions], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> Batch[str, None]:
        """Give topics more partitions: a new total, and replicas of the new ones (none: the controller chooses)."""
        most = {name: len(new.assignments) or new.total_count for name, new in new_partitions.items()}
        return self._create_partitions(new_partitions, most, validate_only=validate_only, timeout_ms=timeout_ms)

    def _create_partitions(
        self,
        new_partitions: Mapping[str, NewPartitions],
        growth: Mapping[str, int],
        *,
        validate_only: bool,
        timeout_ms: int | None,
    ) -> Batch[str, None]:
        """Send `create_partitions`; each topic gets at most `growth` more."""

        def send(names: list[str]) -> Batch[str, None]:
            chosen = {name: new_partitions[name] for name in names}
            call = cluster_calls.create_partitions(chosen, validate_only=validate_only)
            return self._session.call(call, To.CONTROLLER, timeout_ms)

        return in_parts(new_partitions, RECORDS_PER_REQUEST, send, lambda name: max(1, growth[name]))

    # --- reassignments ----------------------------------------------------------------------------------------

    def alter_partition_reassignments(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        allow_replication_factor_change: bool = True,
        expected: Mapping[TopicPartition, tuple[int, ...]] | None = None,
        warns_of_overrides: bool = True,
        confirm: Confirm | None = None,
        timeout_ms: int | None = None,
    ) -> Batch[TopicPartition, None]:
        """Start or override reassignments, or cancel them where the target is None (KIP-455).

        An override on KRaft may never end, end with fewer replicas than the target has, or leave copies behind: with
        `warns_of_overrides` ongoing moves are listed first, and an `OverrideWarning` names such targets
        (`risky_overrides`); they are submitted all the same. `replace_reassignments` has none of these risks.

        With `expected`, the replica lists of these partitions are read first: unless each has exactly that list and
        is not being reassigned, `Drifted` is raised with the differences and nothing is sent. One broker is asked,
        which may lag behind the controller: where that matters, compare what two show first.

        Without `allow_replication_factor_change` the controller refuses a target of another length (KIP-860); a
        cluster that does not know that option is refused here. Cancels are exempt from it. Large calls are sent in
        several requests; if one of them fails as a whole, its partitions carry that error and the requests after it
        are not sent.

        Errors of a partition: UNKNOWN_TOPIC_OR_PARTITION; INVALID_REPLICA_ASSIGNMENT for an empty target, a broker
        that is unknown or named twice, or a cancel that would lose records; INVALID_REPLICATION_FACTOR only without
        `allow_replication_factor_change`, and never for a cancel; NO_REASSIGNMENT_IN_PROGRESS for a cancel of nothing.
        Raises `Rejected` with CLUSTER_AUTHORIZATION_FAILED, `Unsupported` without `allow_replication_factor_change`
        where a broker does not know the option, and `OutcomeUnknown` if no answer tells what was done.
        """
        for key, target in targets.items():
            _check_names([key], target or ())
        if expected:
            self._check_expected(expected, timeout_ms)
        if warns_of_overrides:
            # A client that may not list moves gets no warning: the change itself may be refused with its own message.
            with suppress(Rejected):
                topic_changes.warn_of_overrides(self.risky_overrides(targets, timeout_ms=timeout_ms))

        def send(chunk: list[TopicPartition]) -> Batch[TopicPartition, None]:
            call = partition_calls.alter_partition_reassignments(
                {key: targets[key] for key in chunk}, allow_replication_factor_change=allow_replication_factor_change
            )
            return self._session.call(call.confirmed(confirm), To.CONTROLLER, timeout_ms)

        return in_parts(sorted(targets), PARTITIONS_PER_REQUEST, send)

    def risky_overrides(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        ongoing: Mapping[TopicPartition, OngoingReassignment] | None = None,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, Override]:
        """The targets that, submitted now, would override a move with unexpected results; changes nothing.

        `ongoing` are the moves, if the caller has listed them already. Nothing is risky with a controller of
        ZooKeeper mode, which follows KIP-455.
        """
        wanted = {key: target for key, target in targets.items() if target is not None}
        if ongoing is None:
            ongoing = self.list_partition_reassignments(wanted, timeout_ms=timeout_ms)
        found = topic_changes.risky_overrides(wanted, ongoing)
        return found if found and self.has_quorum(timeout_ms=timeout_ms) else {}

    def check_reassignment_permission(
        self, *, allow_replication_factor_change: bool = True, timeout_ms: int | None = None
    ) -> None:
        """Raise the error that starting or cancelling reassignments would raise at once; changes nothing.

        Sends a request that names no partition. Raises `Rejected` with CLUSTER_AUTHORIZATION_FAILED without the
        permission Alter on the cluster, and `Unsupported` if the cluster does not know a requested option.
        """
        call = partition_calls.alter_partition_reassignments(
            {}, allow_replication_factor_change=allow_replication_factor_change
        )
        self._session.call(call, To.CONTROLLER, timeout_ms)

    def _check_expected(self, expected: Mapping[TopicPartition, tuple[int, ...]], timeout_ms: int | None) -> None:
        found, _missing = self._partitions(expected, timeout_ms)
        ongoing = self.list_partition_reassignments(expected, timeout_ms=timeout_ms)
        check_expected(expected, {key: entry.replicas for key, entry in found.items()}, ongoing)

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OngoingReassignment]:
        """The ongoing reassignments of these partitions or (None) of all; other partitions are left out.

        Errors: CLUSTER_AUTHORIZATION_FAILED. A client of controllers asks the active one alone: others answer, without
        an error, from what they have read.
        """
        wanted = None if partitions is None else list(partitions)
        if wanted is not None and not wanted:
            return {}
        return self._session.call(partition_calls.list_partition_reassignments(wanted), To.CONTROLLER, timeout_ms)

    def elect_leaders(
        self,
        partitions: Iterable[TopicPartition] | None,
        election_type: ElectionType = ElectionType.PREFERRED,
        *,
        confirm: Confirm | None = None,
        timeout_ms: int | None = None,
    ) -> Batch[TopicPartition, None]:
        """Elect leaders of these partitions or (None) of all (KIP-183, KIP-460).

        A partition that needed no election fails with ELECTION_NOT_NEEDED, or is left out when all were asked for.

        Errors: UNKNOWN_TOPIC_OR_PARTITION, PREFERRED_LEADER_NOT_AVAILABLE, ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ELECTION_NOT_NEEDED, CLUSTER_AUTHORIZATION_FAILED.
        """

        def send(wanted: list[TopicPartition] | None) -> Batch[TopicPartition, None]:
            call = partition_calls.elect_leaders(wanted, election_type).confirmed(confirm)
            return self._session.call(call, To.CONTROLLER, timeout_ms)

        if partitions is None:
            return send(None)
        # A partition that is named twice would be elected by one part, and need no election in the next.
        wanted = list(dict.fromkeys(partitions))
        _check_names(wanted)
        return in_parts(wanted, PARTITIONS_PER_REQUEST, send)

    # --- configuration ----------------------------------------------------------------------------------------

    def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        names: Iterable[str] | None = None,
        broker: int | None = None,
        timeout_ms: int | None = None,
    ) -> Batch[ConfigResource, Mapping[str, ConfigEntry]]:
        """Configuration of topics and brokers, with `names` only those keys. Each broker answers for itself.

        Settings for all brokers (`ConfigResource.all_brokers()`) come from any broker, without defaults. Of topics
        any broker answers, from its own metadata, which may lag behind the controller's; `broker` names the one to ask.
        """
        keys = None if names is None else tuple(names)

        return self._session.fan_out_groups(
            self._by_owner(resources, broker),
            lambda node, asked: self._session.call(cluster_calls.describe_configs(asked, keys), node, timeout_ms),
        )

    def incremental_alter_configs(
        self,
        changes: Mapping[ConfigResource, Sequence[ConfigChange]],
        *,
        validate_only: bool = False,
        confirm: Confirm | None = None,
        timeout_ms: int | None = None,
    ) -> Batch[ConfigResource, None]:
        """Change configuration (KIP-339): topics and all brokers in one request, each broker's own at that broker.

        With `bootstrap_controllers` everything goes to the active controller, which also takes the configuration
        of a broker that is down. Large calls are sent in several requests, as by `alter_partition_reassignments`.
        """
        for resource, steps in changes.items():
            check_texts(resource, (text for step in steps for text in (step.name, step.value or "")))

        def ask(node: Target, asked: list[ConfigResource]) -> Batch[ConfigResource, None]:
            def send(chunk: list[ConfigResource]) -> Batch[ConfigResource, None]:
                chosen = {resource: changes[resource] for resource in chunk}
                call = cluster_calls.incremental_alter_configs(chosen, validate_only=validate_only)
                return self._session.call(call.confirmed(confirm), node, timeout_ms)

            return in_parts(asked, RECORDS_PER_REQUEST, send, lambda resource: len(changes[resource]))

        return self._session.fan_out_groups(self._by_owner(changes), ask)

    def _by_owner(
        self, resources: Iterable[ConfigResource], broker: int | None = None
    ) -> dict[Target, list[ConfigResource]]:
        """Resources by the node that answers for them; `broker` for those for which any would."""
        anyone: Target = To.ANY if broker is None else broker
        grouped: dict[Target, list[ConfigResource]] = {}
        for resource in resources:
            is_of_one = resource.type is ResourceType.BROKER and resource != ConfigResource.all_brokers()
            to_itself = is_of_one and not self._session.talks_to_controllers
            grouped.setdefault(_broker_of(resource) if to_itself else anyone, []).append(resource)
        return grouped

    # --- log directories --------------------------------------------------------------------------------------

    def describe_log_dirs(
        self,
        brokers: Iterable[int] | None = None,
        *,
        partitions: Iterable[TopicPartition] | None = None,
        timeout_ms: int | None = None,
    ) -> Batch[int, tuple[LogDir, ...]]:
        """Log directories of these brokers or (None) of all live ones, with all replicas or those of `partitions`."""
        self._needs_brokers("describe_log_dirs")
        call = partition_calls.describe_log_dirs(partitions)
        asked = self.describe_cluster(timeout_ms=timeout_ms).broker_ids if brokers is None else brokers
        return self._session.fan_out_batch(asked, lambda broker: self._session.call(call, broker, timeout_ms))

    def alter_replica_log_dirs(
        self,
        targets: Mapping[TopicPartitionReplica, str],
        *,
        confirm: Confirm | None = None,
        timeout_ms: int | None = None,
    ) -> Batch[TopicPartitionReplica, None]:
        """Move replicas into other log directories of their brokers; the call only starts the moves (KIP-113).

        Naming a replica's present directory cancels its move. A broker that does not host the replica yet
        answers REPLICA_NOT_AVAILABLE and creates it in that directory later.
        """
        self._needs_brokers("alter_replica_log_dirs")
        grouped: dict[int, list[TopicPartitionReplica]] = {}
        for replica in targets:
            _check_names([replica.topic_partition])
            check_texts(replica, (targets[replica],))
            grouped.setdefault(replica.broker, []).append(replica)

        def send(broker: int, replicas: list[TopicPartitionReplica]) -> Batch[TopicPartitionReplica, None]:
            call = partition_calls.alter_replica_log_dirs({one.topic_partition: targets[one] for one in replicas})
            found = self._session.call(call.confirmed(confirm), broker, timeout_ms)
            named = {one.topic_partition: one for one in replicas}
            failed = {named[key]: error.about(named[key]) for key, error in found.failed.items()}
            return Batch({named[key]: None for key in found.ok}, failed)

        return self._session.fan_out_groups(grouped, send)

    # --- offsets ----------------------------------------------------------------------------------------------

    def list_offsets(
        self,
        partitions: Iterable[TopicPartition],
        spec: OffsetSpec = OffsetSpec.LATEST,
        *,
        known: Mapping[TopicPartition, Partition] = MappingProxyType({}),
        timeout_ms: int | None = None,
    ) -> Batch[TopicPartition, int]:
        """The high watermark of each partition, or another offset, from its leader; -1 if there is no such offset.

        Partitions in `known` are not described again: the leaders named there are asked first; leaders are looked up
        again only for partitions without an answer.
        """
        self._needs_brokers("list_offsets")
        wanted = dict.fromkeys(partitions)
        led = {key: known[key] for key in wanted if key in known and known[key].leader != NO_LEADER}
        first = self._offsets_by_leader(led, spec, timeout_ms) if led else Batch()
        rest = [key for key in wanted if key not in first.ok]
        if not rest:
            return first
        answered = self._session.ask_leaders(
            rest, lambda some: self._leaders_offsets(some, spec, timeout_ms), timeout_ms
        )
        return requests.join([Batch(first.ok), answered])

    def _leaders_offsets(
        self, partitions: Iterable[TopicPartition], spec: OffsetSpec, timeout_ms: int | None
    ) -> Batch[TopicPartition, int]:
        found, failed = self._partitions(partitions, timeout_ms)
        failed |= {key: no_leader(key) for key, partition in found.items() if partition.leader == NO_LEADER}
        led = {key: partition for key, partition in found.items() if key not in failed}
        return requests.join([self._offsets_by_leader(led, spec, timeout_ms), Batch({}, failed)])

    def _offsets_by_leader(
        self, found: Mapping[TopicPartition, Partition], spec: OffsetSpec, timeout_ms: int | None
    ) -> Batch[TopicPartition, int]:
        return self._session.fan_out_groups(
            by_leader(found),
            lambda leader, led: self._session.call(partition_calls.list_offsets(led, spec), leader, timeout_ms),
        )

    def _partitions(
        self, wanted: Iterable[TopicPartition], timeout_ms: int | None
    ) -> tuple[dict[TopicPartition, Partition], dict[TopicPartition, ClusterError]]:
        """The wanted partitions from metadata, and an error for each missing one."""
        asked = list(dict.fromkeys(wanted))
        topics = self.describe_topics((key.topic for key in asked), timeout_ms=timeout_ms)
        known = {entry.topic_partition: entry for topic in topics.ok.values() for entry in topic.partitions}
        found = {key: known[key] for key in asked if key in known}
        failed = {
            key: topics.failed.get(key.topic) or cluster_calls.unknown_partition(key)
            for key in asked
            if key not in known
        }
        return found, failed

    def _needs_brokers(self, method: str) -> None:
        if self._session.talks_to_controllers:
            raise Unsupported(f"{method} needs brokers; this client was given controllers (bootstrap_controllers)")


def _check_names(partitions: Iterable[TopicPartition], brokers: Iterable[int] = ()) -> None:
    """Raise InputError for a name or number that no request can carry, before a part of the call is sent."""
    for key in partitions:
        check_ids(key, (key.partition, *brokers))
        check_texts(key, (key.topic,))


def _records_of(topic: NewTopic) -> int:
    count = _UNKNOWN_COUNT if topic.partition_count == -1 else topic.partition_count
    return 1 + len(topic.configs) + (len(topic.assignments) or max(1, count))


def in_parts(
    keys: Iterable[requests.Key],
    most: int,
    send: Callable[[list[requests.Key]], Batch[requests.Key, None]],
    weight: Callable[[requests.Key], int] = lambda _: 1,
) -> Batch[requests.Key, None]:
    """Send chunk after chunk. If a later one fails as a whole, its keys carry that error, and the rest is not sent.

    A chunk weighs `most` at most, unless a single key weighs more.
    """
    chunks: list[list[requests.Key]] = []
    room = 0
    for key in keys:
        if weight(key) > room or not chunks:
            chunks.append([])
            room = most
        chunks[-1].append(key)
        room -= weight(key)
    parts: list[Batch[requests.Key, None]] = []
    for number, chunk in enumerate(chunks):
        try:
            parts.append(send(chunk))
        except ClusterError as error:
            if number == 0:
                raise
            not_sent = Unreachable(f"not sent, because an earlier part of the call failed: {error}")
            unsent: dict[requests.Key, ClusterError] = {key: not_sent for rest in chunks[number + 1 :] for key in rest}
            parts.append(Batch({}, dict.fromkeys(chunk, error) | unsent))
            break
    return requests.join(parts)


def _broker_of(resource: ConfigResource) -> int:
    number = signed_number(resource.name)
    if number is None or not 0 <= number <= LARGEST_ID:
        raise InputError(
            f"{resource.name!r} is no broker to configure; name it by its id in digits (`ConfigResource.broker(1)`), "
            "or all of them by `ConfigResource.all_brokers()`"
        )
    return number


def no_leader(partition: TopicPartition) -> Unreachable:
    """The error for a partition without a leader: nobody can be asked about it."""
    return Unreachable(f"{partition} has no leader; ask again once one is elected")


def by_leader(found: Mapping[TopicPartition, Partition]) -> dict[int, list[TopicPartition]]:
    """Partitions by the broker that leads them; those without a leader by `NO_LEADER`."""
    leaders: dict[int, list[TopicPartition]] = {}
    for key, partition in found.items():
        leaders.setdefault(partition.leader, []).append(key)
    return leaders
