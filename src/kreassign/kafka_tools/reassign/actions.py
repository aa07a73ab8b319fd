"""The actions of `kafka-reassign-partitions`: `--generate`, `--execute`, `--verify` and `--cancel`."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import SystemRandom

from kreassign.clock import Clock
from kreassign.errors import ClusterError, Rejected
from kreassign.kafka_tools.command_line import TerseError, ToolError, java_exception
from kreassign.kafka_tools.reassign import messages, tool_client
from kreassign.kafka_tools.reassign.messages import say
from kreassign.kafka_tools.reassign.options import BatchQueue, MoveState, move_states, out_of_sync
from kreassign.kafka_tools.reassign.requests import (
    CancelAllRequest,
    CancelRequest,
    ExecuteRequest,
    GenerateRequest,
    VerifyRequest,
)
from kreassign.kafka_tools.reassign.tool_client import (
    Found,
    ToolClient,
    current_plan,
    directory_move_sentence,
    find_replicas,
    plan_with_dirs,
)
from kreassign.model import (
    Broker,
    OngoingReassignment,
    Partition,
    Topic,
    TopicPartition,
    TopicPartitionReplica,
    throttle,
)
from kreassign.model.plan import PartitionAssignment, Plan, format_plan, partition_order
from kreassign.model.reassignment import check_expected
from kreassign.model.striped import RandomSource, UsableBroker, place
from kreassign.model.throttle import ThrottledMove, move_map

# `--generate`: propose an assignment of topics to brokers. Changes nothing in the cluster.


def generate(client: ToolClient, request: GenerateRequest) -> None:
    """Print where the topics are now and where the striped placer would put them."""
    live = client.brokers()
    topics = known_topics(client.topics(request.topics))
    assigned = {partition.topic_partition: partition.replicas for topic in topics for partition in topic.partitions}
    current = current_plan(client, assigned, live)
    usable = usable_brokers(live, request.brokers, is_rack_aware=request.is_rack_aware)
    proposed = propose(topics, usable, SystemRandom())
    say(messages.candidate(format_plan(current), format_plan(proposed)))


def known_topics(described: Mapping[str, Topic | None]) -> tuple[Topic, ...]:
    """All topics described; raises `ToolError` for the first that does not exist."""
    for name, topic in described.items():
        if topic is None:
            raise ToolError(java_exception("UnknownTopicOrPartitionException", f"Topic {name} not found."))
    return tuple(topic for topic in described.values() if topic is not None)


def usable_brokers(live: Iterable[Broker], wanted: Iterable[int], *, is_rack_aware: bool) -> tuple[UsableBroker, ...]:
    """The wanted brokers that are live, the others silently left out.

    Raises `ToolError` if racks count and only some of these brokers have one.
    """
    ids = frozenset(wanted)
    chosen = tuple(
        UsableBroker(broker.id, broker.rack if is_rack_aware else None) for broker in live if broker.id in ids
    )
    without_rack = sum(broker.rack is None for broker in chosen)
    if is_rack_aware and without_rack not in (0, len(chosen)):
        raise ToolError(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica "
            "assignment without rack information."
        )
    return chosen


def propose(topics: Iterable[Topic], brokers: tuple[UsableBroker, ...], random: RandomSource) -> Plan:
    """New replica lists for all partitions; each topic is placed for itself, as if it were new.

    A topic gets the replication factor of its first partition. Raises `Infeasible` if there are too few brokers.
    """
    assignments: list[PartitionAssignment] = []
    for topic in topics:
        replication_factor = len(topic.partitions[0].replicas)
        placements = place(brokers, len(topic.partitions), replication_factor, random)
        assignments += (
            PartitionAssignment(TopicPartition(topic.name, number), replicas)
            for number, replicas in enumerate(placements)
        )
    return Plan(tuple(assignments))


# The file with what of a plan is still to be submitted: always up to date, so that it is right whatever ends the tool.
#
# It is written before the first batch and after each, and removed once all is submitted: a tool that is killed leaves
# it as well as one that fails. A batch whose answer was lost stays in it, for to submit a target twice does no harm;
# one that was refused does not, for it would be refused again.


class RestFile:
    """The rest of a plan beside the file that it was read from; without a place it is printed in the end."""

    def __init__(self, plan: Plan, beside: Path | None) -> None:
        self._plan = plan
        self._rest = plan
        self._path = None if beside is None else _reserved(beside)

    def keep(self, partitions: Collection[TopicPartition]) -> None:
        """Only these partitions of the plan are still to be submitted."""
        wanted = set(partitions)
        self._rest = Plan(tuple(entry for entry in self._plan.assignments if entry.topic_partition in wanted))
        if self._path is not None:
            self._write(self._path)

    def end(self) -> None:
        """Say where the rest is if there is one; else remove the file."""
        if self._path is not None and not self._rest.assignments:
            self._path.unlink(missing_ok=True)
        elif self._rest.assignments:
            told = messages.rest_printed(format_plan(self._rest)) if self._path is None else str(self._path)
            counted = messages.rest(told, len(self._rest.assignments), len(self._plan.assignments))
            print(counted, file=sys.stderr, flush=True)

    def _write(self, path: Path) -> None:
        """In one step: a tool that is killed in between leaves the file of before."""
        new = path.with_name(f"{path.name}.new")
        try:
            new.write_text(f"{format_plan(self._rest)}\n", encoding="utf-8")
            new.replace(path)
        except OSError as error:
            print(messages.rest_not_written(path, error.strerror), file=sys.stderr, flush=True)
            self._path = None


def _reserved(plan: Path) -> Path | None:
    """A file of its own beside the plan; None where none can be made. What an earlier call left is not overwritten."""
    for number in count(1):
        path = plan.with_name(f"{plan.stem}.not-submitted{'' if number == 1 else f'-{number}'}.json")
        try:
            path.open("x").close()
        except FileExistsError:
            continue
        except OSError as error:
            print(messages.rest_not_written(path, error.strerror), file=sys.stderr, flush=True)
            return None
        return path
    return None


# `--cancel`: stop the moves of the partitions and directories of a plan; with `--all`, every move.
#
# Kafka's tool has no `--all`, though the proposal that brought `--cancel` (KIP-455) asked for it.


def cancel(client: ToolClient, request: CancelRequest, clock: Clock) -> None:
    """Cancel, then clear throttles unless told to preserve them: even those of moves outside the plan."""
    plan = request.plan
    active = client.reassignments(plan.replicas)
    if active:
        cancel_reassignments(client, active)
    else:
        say(messages.NOTHING_TO_CANCEL)
    back = targets_to_cancel(tool_client.find_directory_moves(client, plan.log_dirs))
    if back:
        tool_client.start_directory_moves(client, back, request.timeout_ms, clock)
    else:
        say(messages.NO_MOVES_TO_CANCEL, end="")  # Kafka's tool forgets to end this line
    if not request.preserves_throttles:
        tool_client.clear_throttles(client, plan.brokers, plan.topics)


def cancel_all(client: ToolClient, request: CancelAllRequest, clock: Clock) -> None:
    """Print and write the plan that starts everything again, then cancel everything, then clear throttles.

    The same plan given to `--cancel` cancels just what is in it. Where nothing moves, no throttle is cleared: whose
    throttles there are nobody knows.
    """
    ongoing = client.reassignments()
    moving = _moving_directories(client)
    plan = _plan_to_restart(client, ongoing, moving)
    if not plan.assignments:
        say(messages.NO_REASSIGNMENTS)
        return
    text = format_plan(plan)
    say(messages.would_cancel(text) if request.is_dry_run else messages.will_cancel(text))
    if request.output:
        _write_new(request.output, text)
    if request.is_dry_run:
        return
    if ongoing:
        cancel_reassignments(client, ongoing)
    if back := targets_to_cancel(moving):
        tool_client.start_directory_moves(client, back, request.timeout_ms, clock)
    if not request.preserves_throttles:
        brokers = {broker for move in ongoing.values() for broker in move.replicas}
        tool_client.clear_throttles(client, brokers, plan.topics)


def cancel_reassignments(client: ToolClient, active: Collection[TopicPartition]) -> None:
    """Cancel these reassignments; raises `TerseError` with all that were refused."""
    failures = client.reassign(dict.fromkeys(active))
    if failures:
        raise TerseError(messages.not_cancelled(failures)) from next(iter(failures.values()))
    say(messages.cancelled(active))


def targets_to_cancel(found: Found) -> dict[TopicPartitionReplica, str]:
    """The targets that cancel moves between directories: the directory where the replica is."""
    return {replica: dirs.current for replica, dirs in found.items() if dirs.is_moving and dirs.current is not None}


def _moving_directories(client: ToolClient) -> Found:
    """Replicas on live brokers that are moving between directories; controllers know nothing of them."""
    if client.through_controllers:
        return {}
    found = find_replicas(client.log_dirs(broker.id for broker in client.brokers()))
    return {replica: dirs for replica, dirs in found.items() if dirs.is_moving}


def _plan_to_restart(client: ToolClient, ongoing: Mapping[TopicPartition, OngoingReassignment], moving: Found) -> Plan:
    targets = {partition: move.target for partition, move in ongoing.items()}
    others = {replica.topic_partition for replica in moving} - targets.keys()
    topics = client.topics(partition.topic for partition in others) if others else {}
    destinations = {replica: dirs.future for replica, dirs in moving.items()}
    return plan_with_dirs(targets | _current(others, topics), destinations)


def _current(wanted: set[TopicPartition], topics: Mapping[str, Topic | None]) -> dict[TopicPartition, tuple[int, ...]]:
    """Replica lists of the wanted partitions; one whose topic was just deleted is left out."""
    partitions = [partition for topic in topics.values() if topic is not None for partition in topic.partitions]
    return {one.topic_partition: one.replicas for one in partitions if one.topic_partition in wanted}


def _write_new(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(f"{text}\n")
    except FileExistsError as error:
        raise ToolError(f"{path} is already there; nothing was cancelled. Name another file with --output") from error
    except OSError as error:
        raise ToolError(f"cannot write {path}: {error.strerror}; nothing was cancelled") from error


# `--execute`: start the reassignments and directory moves of a plan, at once or in batches (KIP-1335).

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
        tool_client.limit_moves(client, moves, request.throttle)
    if request.log_dir_throttle >= 0:
        tool_client.limit_directory_moves(client, brokers, request.log_dir_throttle)


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
            tool_client.start_directory_moves(self.client, moves, self.request.timeout_ms, self.clock)

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


# `--verify`: how far a plan is; clears throttles when nothing moves any more.


def verify(client: ToolClient, request: VerifyRequest) -> None:
    """Print the state of every partition and directory of the plan, then clear throttles if nothing is left to do.

    Throttles go when no reassignment runs in the whole cluster and no directory of the plan is being filled; whether
    the plan was reached does not matter.
    """
    plan = request.plan
    ongoing = client.reassignments()
    topics = client.topics(entry.topic_partition.topic for entry in plan.assignments
                                 if entry.topic_partition not in ongoing)  # fmt: skip
    say(partition_states(plan, ongoing, topics))
    found = tool_client.find_directory_moves(client, plan.log_dirs)
    wanted = sorted(plan.log_dirs.items())
    say("\n".join(directory_move_sentence(replica, directory, found.get(replica)) for replica, directory in wanted))
    are_settled = all(dirs.is_settled for dirs in found.values())
    if not ongoing and are_settled and not request.preserves_throttles:
        tool_client.clear_throttles(client, plan.brokers, plan.topics)


def partition_states(
    plan: Plan, ongoing: Mapping[TopicPartition, OngoingReassignment], topics: Mapping[str, Topic | None]
) -> str:
    """A line per partition of the plan, sorted; of a partition mentioned twice, the last mention counts."""
    lines: dict[TopicPartition, str] = {}
    for entry in plan.assignments:
        partition = entry.topic_partition
        if partition in ongoing:
            lines[partition] = messages.still_moving(partition)
            continue
        current = _replicas(topics[partition.topic], partition.partition)
        same = current == entry.replicas
        lines[partition] = (
            messages.arrived(partition) if same else messages.elsewhere(partition, current, entry.replicas)
        )
    return "\n".join(["Status of partition reassignment:", *(lines[key] for key in sorted(lines, key=partition_order))])


def _replicas(topic: Topic | None, number: int) -> tuple[int, ...]:
    """The replicas of a partition, none if topic or partition is unknown.

    Kafka's tool takes the first number behind the last partition, and negative ones, for a fault of its own.
    """
    count = 0 if topic is None else len(topic.partitions)
    if topic is None or number > count:
        return ()
    if not 0 <= number < count:
        raise ToolError(f"Index {number} out of bounds for length {count}")
    return topic.partitions[number].replicas
