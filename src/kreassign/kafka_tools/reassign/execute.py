"""`--execute`: start the reassignments and directory moves of a plan, at once or in batches (KIP-1335)."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kreassign.clock import Clock
from kreassign.errors import ClusterError, Rejected
from kreassign.kafka_tools.failures import TerseError, ToolError, java_exception
from kreassign.kafka_tools.reassign import log_dirs, messages, throttles
from kreassign.kafka_tools.reassign.batches import BatchQueue, MoveState, move_states, out_of_sync
from kreassign.kafka_tools.reassign.cancel import cancel_reassignments
from kreassign.kafka_tools.reassign.client import ToolClient
from kreassign.kafka_tools.reassign.generate import known_topics
from kreassign.kafka_tools.reassign.log_dirs import current_plan
from kreassign.kafka_tools.reassign.messages import say
from kreassign.kafka_tools.reassign.requests import ExecuteRequest
from kreassign.kafka_tools.reassign.rest_file import RestFile
from kreassign.model import OngoingReassignment, Partition, Topic, TopicPartition, throttle
from kreassign.model.expectation import check_expected
from kreassign.model.plan import Plan, partition_order
from kreassign.model.plan_json import format_plan
from kreassign.model.throttle import ThrottledMove, move_map

METADATA_LAG_S = 5.0
"""Brokers learn of the end of a move after the controller does: replicas count as wrong only when they stay so."""

CANCEL_S = 30.0
"""How long brokers may show a partition as it was before its move was cancelled."""

CANCEL_POLL_S = 0.2


def execute(client: ToolClient, request: ExecuteRequest, clock: Clock) -> None:
    """Check the plan against the cluster, print the rollback plan, set throttles, submit, start directory moves."""
    plan = request.plan
    ongoing = client.reassignments()
    if ongoing and not request.is_additional:
        raise TerseError(messages.ALREADY_ASSIGNING)
    others = warn_about_others(request, ongoing)
    live = client.brokers()
    check_brokers(plan, {broker.id for broker in live})
    topics = known_topics(client.topics(plan.topics))
    current = current_replicas(plan, topics)
    if request.cancels_first:
        _check_factor_guard(client, request)
        # What moves is a difference, so that nothing of it is cancelled.
        check_expected(request.expected, current, {key: ongoing[key] for key in ongoing if key in request.expected})
        ongoing, current = _cancel_first(client, plan, ongoing, current, clock)
    else:
        warn_of_overrides(client, plan, ongoing)
    say(messages.rollback(format_plan(current_plan(client, current, live))))
    check_expected(request.expected, current, {key: ongoing[key] for key in ongoing if key in request.expected})
    _check_factor_guard(client, request)
    _set_throttles(client, request, ongoing, current)
    submit(client, request, clock, told_of=others)


def _check_factor_guard(client: ToolClient, request: ExecuteRequest) -> None:
    """Raise `TerseError` where factors are to be guarded and the cluster cannot.

    Kafka's tool learns it from the request that starts the moves, and leaves throttles behind that nobody needs.
    """
    if request.allows_replication_factor_change:
        return
    if failures := client.without_factor_guard(request.plan.replicas.keys()):
        raise TerseError(messages.not_started(failures))


def _set_throttles(
    client: ToolClient,
    request: ExecuteRequest,
    ongoing: Mapping[TopicPartition, OngoingReassignment],
    current: Mapping[TopicPartition, tuple[int, ...]],
) -> None:
    if request.throttle < 0 and request.log_dir_throttle < 0:
        return
    say(messages.VERIFY_PERIODICALLY)
    moves = move_map(ongoing, request.plan.replicas, current) if request.throttle >= 0 else {}
    brokers = sorted({replica.broker for replica in request.plan.log_dirs}) if request.log_dir_throttle >= 0 else []
    _check_permissions(client, request, moves, brokers)
    if request.throttle >= 0:
        throttles.limit_moves(client, moves, request.throttle)
    if request.log_dir_throttle >= 0:
        throttles.limit_directory_moves(client, brokers, request.log_dir_throttle)


def _check_permissions(
    client: ToolClient, request: ExecuteRequest, moves: Mapping[TopicPartition, ThrottledMove], brokers: Collection[int]
) -> None:
    """Raise what setting the throttles, or the request after them, would meet for lack of a permission.

    Kafka's tool learns it half way, and leaves throttles behind that nobody needs.
    """
    of_brokers = throttle.rate_changes({*throttle.involved_brokers(moves), *brokers}, 1)
    client.check_configs({**throttle.topic_changes(moves), **of_brokers})
    if failures := client.without_permission(request.plan.replicas.keys()):
        raise TerseError(messages.not_started(failures)) from _first(failures)


def _first(failures: Mapping[TopicPartition, ClusterError]) -> ClusterError:
    return next(iter(failures.values()))


def warn_about_others(
    request: ExecuteRequest,
    ongoing: Mapping[TopicPartition, OngoingReassignment],
    told_of: frozenset[TopicPartition] = frozenset(),
) -> frozenset[TopicPartition]:
    """Say, if asked for, which partitions outside the plan are being reassigned: no batch size counts them.

    Returns them; of those that were told of already nothing is said again.
    """
    others = frozenset(ongoing.keys() - request.plan.replicas.keys())
    if request.batches.warns_about_others and others and others != told_of:
        print(messages.others_moving(others), file=sys.stderr)
    return others


def warn_of_overrides(client: ToolClient, plan: Plan, ongoing: Mapping[TopicPartition, OngoingReassignment]) -> None:
    """Say which moves the plan would override with other results than it says; it is started all the same."""
    for partition, override in client.risky_overrides(plan.replicas, ongoing).items():
        print(messages.risky_override(partition, override), file=sys.stderr, flush=True)


def _cancel_first(
    client: ToolClient,
    plan: Plan,
    ongoing: Mapping[TopicPartition, OngoingReassignment],
    current: Mapping[TopicPartition, tuple[int, ...]],
    clock: Clock,
) -> tuple[dict[TopicPartition, OngoingReassignment], dict[TopicPartition, tuple[int, ...]]]:
    """Cancel the moves of the plan's partitions; what moves then, and the lists once brokers show what is left."""
    ours = {partition: move for partition, move in ongoing.items() if partition in plan.replicas}
    if not ours:
        return dict(ongoing), dict(current)
    cancel_reassignments(client, ours)
    give_up_s = clock.monotonic_s() + CANCEL_S
    while True:
        left = client.reassignments()
        lists = current_replicas(plan, known_topics(client.topics(plan.topics)))
        late = [key for key, move in ours.items() if key in left or set(lists[key]) != set(move.sources)]
        if not late:
            return left, lists
        if clock.monotonic_s() >= give_up_s:
            raise TerseError(messages.not_cancelled_in_time(late))
        clock.sleep(CANCEL_POLL_S)


def check_brokers(plan: Plan, live: set[int]) -> None:
    """Raise `ToolError` for a broker of the plan that is not live, even if the controller would take it."""
    for broker in plan.brokers:
        if broker not in live:
            raise ToolError(f"Unknown broker id {broker}")


def current_replicas(plan: Plan, topics: tuple[Topic, ...]) -> dict[TopicPartition, tuple[int, ...]]:
    """The replica lists of the plan's partitions as they are now; raises `ToolError` if one does not exist."""
    known = {partition.topic_partition: partition.replicas for topic in topics for partition in topic.partitions}
    wanted = sorted(plan.replicas, key=partition_order)
    if missing := [str(partition) for partition in wanted if partition not in known]:
        message = f"Unable to find partition: {', '.join(missing)}"
        raise ToolError(java_exception("UnknownTopicOrPartitionException", message))
    return {partition: known[partition] for partition in wanted}


def submit(
    client: ToolClient, request: ExecuteRequest, clock: Clock, *, told_of: frozenset[TopicPartition] = frozenset()
) -> None:
    """Start all reassignments and directory moves of a plan, in the batches that the request asks for.

    Returns once all are submitted, not once they are complete. Raises `TerseError` when a batch is refused, ends with
    other replicas, or takes too long; then later batches are not submitted, and are named. Whatever ends a plan in
    batches, the rest of it is in a file. Of others that move nothing is said again if they are those `told_of`.
    """
    run = _Submission(client, request, clock, BatchQueue(request.plan.replicas, request.batches), told_of)
    if not request.batches.batch_size:
        run.start(run.queue.next_batch())
        say(messages.started(request.plan.replicas))
        run.start_directory_moves(request.plan.replicas)
        return
    rest = RestFile(request.plan, request.beside)
    try:
        rest.keep(run.unsubmitted)
        while run.queue.waiting:
            run.start(run.wait_for_next_batch())
            rest.keep(run.unsubmitted)
        say(messages.started(request.plan.replicas))
    finally:
        rest.keep(run.unsubmitted)
        rest.end()


@dataclass(slots=True)
class _Submission:
    client: ToolClient
    request: ExecuteRequest
    clock: Clock
    queue: BatchQueue
    others: frozenset[TopicPartition]
    """Outside of the plan, of which it was said that they move."""
    sent: set[TopicPartition] = field(default_factory=set)
    """What the controller has taken, or refused."""
    told: set[TopicPartition] = field(default_factory=set)
    """Of which it was said that they have replicas out of sync."""

    @property
    def unsubmitted(self) -> set[TopicPartition]:
        """What the controller has neither taken nor refused, as far as is known."""
        return self.request.plan.replicas.keys() - self.sent

    def start(self, batch: Collection[TopicPartition]) -> None:
        targets, expected = self.request.plan.replicas, self.request.expected
        failures = self.client.reassign(
            {partition: targets[partition] for partition in batch},
            allow_replication_factor_change=self.request.allows_replication_factor_change,
            expected={partition: expected[partition] for partition in batch if partition in expected},
        )
        self.sent |= {key for key in batch if key not in failures or isinstance(failures[key], Rejected)}
        if failures:
            raise self._failure(messages.not_started(failures)) from _first(failures)
        if self.request.batches.batch_size:
            say(messages.batch_started(batch, len(targets) - len(self.queue.waiting), len(targets)))
            self.start_directory_moves(batch)

    def start_directory_moves(self, partitions: Collection[TopicPartition]) -> None:
        """Start the directory moves of these partitions; each goes with the batch of its partition."""
        every = self.request.plan.log_dirs
        moves = {replica: path for replica, path in every.items() if replica.topic_partition in partitions}
        if moves:
            log_dirs.start(self.client, moves, self.request.timeout_ms, self.clock)

    def wait_for_next_batch(self) -> tuple[TopicPartition, ...]:
        """Poll until another batch may start, and return it."""
        if batch := self.queue.next_batch():
            return batch
        options = self.request.batches
        began_s = self.clock.monotonic_s()
        elsewhere_since_s: dict[TopicPartition, float] = {}
        while True:
            found = self._poll()
            if batch := self.queue.next_batch(self._complete(found)):
                return batch
            now_s = self.clock.monotonic_s()
            elsewhere_since_s = {
                partition: elsewhere_since_s.get(partition, now_s)
                for partition, state in found.states.items()
                if state is MoveState.ELSEWHERE
            }
            lost = [key for key, since_s in elsewhere_since_s.items() if now_s - since_s >= METADATA_LAG_S]
            if lost:
                raise self._failure(self._ended_elsewhere(lost))
            if options.wait_timeout_ms is not None and (now_s - began_s) * 1000 >= options.wait_timeout_ms:
                late = messages.batch_timed_out(self.queue.in_flight, options.wait_timeout_ms, found.lagging)
                raise self._failure(late)
            self.clock.sleep(options.poll_interval_ms / 1000)

    def _complete(self, found: _Found) -> set[TopicPartition]:
        """What lets others start; of replicas out of sync it is said once, whether they are waited for or not."""
        waits = self.request.batches.requires_isr
        for partition, brokers in found.lagging.items():
            if partition not in self.told:
                said = messages.waiting_for_isr if waits else messages.lagging
                print(said(partition, brokers), file=sys.stderr, flush=True)
        self.told |= found.lagging.keys()
        enough = {MoveState.COMPLETE} if waits else {MoveState.COMPLETE, MoveState.LAGGING}
        return {partition for partition, state in found.states.items() if state in enough}

    def _poll(self) -> _Found:
        in_flight = {partition: self.request.plan.replicas[partition] for partition in self.queue.in_flight}
        ongoing = self.client.reassignments(None if self.request.batches.warns_about_others else in_flight)
        self.others = warn_about_others(self.request, ongoing, self.others)
        current = self._current(in_flight.keys() - ongoing.keys())
        states = move_states(in_flight, ongoing.keys(), current)
        lagging = {key: out_of_sync(current[key]) for key, state in states.items() if state is MoveState.LAGGING}
        return _Found(states, lagging)

    def _current(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Partition]:
        topics = self.client.topics(partition.topic for partition in partitions)
        known = [entry for topic in topics.values() if topic is not None for entry in topic.partitions]
        return {entry.topic_partition: entry for entry in known}

    def _ended_elsewhere(self, lost: Collection[TopicPartition]) -> str:
        current = self._current(lost)
        return "\n".join(
            messages.elsewhere(
                partition,
                current[partition].replicas if partition in current else (),
                self.request.plan.replicas[partition],
            )
            for partition in sorted(lost, key=partition_order)
        )

    def _failure(self, message: str) -> TerseError:
        return TerseError(message + messages.not_submitted(self.queue.waiting))


@dataclass(frozen=True, slots=True)
class _Found:
    """What a poll showed: the state of each partition in flight, and the replicas that are not in sync."""

    states: Mapping[TopicPartition, MoveState]
    lagging: Mapping[TopicPartition, tuple[int, ...]]
