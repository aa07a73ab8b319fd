"""The actions of `kafka-reassign-partitions`: `--generate`, `--execute`, `--verify` and `--cancel`."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import SystemRandom

from kreassign.clock import Clock
from kreassign.errors import Drifted, Rejected
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
    error_codes,
    throttle,
)
from kreassign.model.plan import PartitionAssignment, Plan, format_plan, partition_order
from kreassign.model.reassignment import check_expected
from kreassign.model.striped import RandomSource, UsableBroker, place
from kreassign.model.throttle import ThrottledMove, move_map

# `--generate`: propose an assignment of topics to brokers, without changes to the cluster.


def generate(client: ToolClient, request: GenerateRequest) -> None:
    """Print the present assignment and that of the striped placer."""
    ongoing: dict[TopicPartition, OngoingReassignment] | ToolError
    try:
        ongoing = client.reassignments()
    except ToolError as error:  # Kafka's tool does not ask, so a proposal is good without them.
        ongoing = error
    live = client.brokers()
    topics = known_topics(client.topics(request.topics))
    assigned = {partition.topic_partition: partition.replicas for topic in topics for partition in topic.partitions}
    current = current_plan(client, assigned, live)
    usable = usable_brokers(live, request.brokers, is_rack_aware=request.is_rack_aware)
    proposed = propose(topics, usable, SystemRandom())
    say(messages.candidate(format_plan(current), format_plan(proposed)))
    if isinstance(ongoing, ToolError):
        print(messages.moves_unknown(ongoing.message), file=sys.stderr, flush=True)
    else:
        warn_of_proposal(topics, assigned, ongoing)


def warn_of_proposal(
    topics: Iterable[Topic],
    assigned: Mapping[TopicPartition, tuple[int, ...]],
    ongoing: Mapping[TopicPartition, OngoingReassignment],
) -> None:
    """Warn where printed lists are those of moves, and where a proposal took its replication factor from one."""
    warn_of_full_lists(assigned, ongoing)
    for topic in topics:
        first = topic.partitions[0]
        move = ongoing.get(first.topic_partition)
        if move is not None and len(first.replicas) != len(move.target):
            print(messages.inflated_proposal(topic.name, first.replicas, move), file=sys.stderr, flush=True)


def known_topics(described: Mapping[str, Topic | None]) -> tuple[Topic, ...]:
    """All described topics; raises `ToolError` for the first that does not exist."""
    for name, topic in described.items():
        if topic is None:
            raise ToolError(java_exception("UnknownTopicOrPartitionException", f"Topic {name} not found."))
    return tuple(topic for topic in described.values() if topic is not None)


def usable_brokers(live: Iterable[Broker], wanted: Iterable[int], *, is_rack_aware: bool) -> tuple[UsableBroker, ...]:
    """The wanted brokers that are live; others are silently left out.

    Raises `ToolError` if the placement is rack-aware and only some of these brokers have a rack.
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
    """New replica lists for all partitions; each topic is placed separately, as if it were new.

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


# The file with the unsubmitted rest of a plan, always up to date, so that it is right however the tool ends.
#
# It is written before the first batch and after each, and removed once all is submitted: a killed tool leaves it like
# a failed one. A batch without an answer stays in it, as submitting a target twice does no harm; a refused batch
# does not, as it would be refused again.


class RestFile:
    """The unsubmitted rest of a plan, in a file beside that of the plan; without a file it is printed at the end."""

    def __init__(self, plan: Plan, beside: Path | None) -> None:
        self._plan = plan
        self._rest = plan
        self._path = None if beside is None else _reserved(beside)

    def keep(self, partitions: Collection[TopicPartition]) -> None:
        """Keep only these partitions as unsubmitted."""
        wanted = set(partitions)
        self._rest = Plan(tuple(entry for entry in self._plan.assignments if entry.topic_partition in wanted))
        if self._path is not None:
            self._write(self._path)

    def end(self) -> None:
        """Print where the rest is, or remove the file if nothing is left."""
        if self._path is not None and not self._rest.assignments:
            self._path.unlink(missing_ok=True)
        elif self._rest.assignments:
            told = messages.rest_printed(format_plan(self._rest)) if self._path is None else str(self._path)
            counted = messages.rest(told, len(self._rest.assignments), len(self._plan.assignments))
            print(counted, file=sys.stderr, flush=True)

    def _write(self, path: Path) -> None:
        """Write atomically: a tool killed meanwhile leaves the previous file."""
        new = path.with_name(f"{path.name}.{secrets.token_hex(8)}.new")
        try:
            with new.open("x", encoding="utf-8") as file:  # never through a link that somebody put there
                file.write(f"{format_plan(self._rest)}\n")
            new.replace(path)
        except OSError as error:
            print(messages.rest_not_written(path, error.strerror), file=sys.stderr, flush=True)
            self._path = None


def _reserved(plan: Path) -> Path | None:
    """Create a new file beside the plan; None if that fails. Files of earlier calls are not overwritten."""
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
# Kafka's tool has no `--all`, though the proposal behind `--cancel` (KIP-455) asked for it.


def cancel(client: ToolClient, request: CancelRequest, clock: Clock) -> None:
    """Cancel, then clear throttles unless they are to be preserved, also those of moves outside the plan."""
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
        say(messages.NO_MOVES_TO_CANCEL, end="")  # Kafka's tool prints no line end here
    if not request.preserves_throttles:
        tool_client.clear_throttles(client, plan.brokers, plan.topics)


def cancel_all(client: ToolClient, request: CancelAllRequest, clock: Clock) -> None:
    """Print and write the plan that restarts everything, then cancel everything, then clear throttles.

    Passing the same plan to `--cancel` cancels just its moves. If nothing moves, no throttle is cleared: its owner is
    unknown.
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


def cancel_reassignments(
    client: ToolClient, active: Collection[TopicPartition], *, may_have_ended: bool = False
) -> set[TopicPartition]:
    """Cancel these reassignments; raises `TerseError` with all refused ones.

    Returns those that had ended before, which are refused too unless they `may_have_ended`.
    """
    failures = client.reassign(dict.fromkeys(active))
    tolerated = (error_codes.NO_REASSIGNMENT_IN_PROGRESS,) if may_have_ended else ()
    ended = {key for key, error in failures.items() if error_codes.has_code(error, *tolerated)}
    if refused := {key: error for key, error in failures.items() if key not in ended}:
        raise TerseError(messages.not_cancelled(refused)) from next(iter(refused.values()))
    if stopped := [key for key in active if key not in ended]:
        say(messages.cancelled(stopped))
    return ended


def targets_to_cancel(found: Found) -> dict[TopicPartitionReplica, str]:
    """Targets that cancel moves between directories: the present directory of each replica."""
    return {replica: dirs.current for replica, dirs in found.items() if dirs.is_moving and dirs.current is not None}


def _moving_directories(client: ToolClient) -> Found:
    """Replicas on live brokers that move between directories; controllers do not know them."""
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
    """Present replica lists of the wanted partitions, without those of topics deleted just now."""
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
"""Brokers learn of the end of a move after the controller does: replicas count as wrong only if they stay so."""

CANCEL_S = 30.0
"""How long brokers may show a partition as before the cancellation of its move."""

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
        # A moving partition counts as a difference, so that none of its moves is cancelled.
        check_expected(request.expected, current, {key: ongoing[key] for key in ongoing if key in request.expected})
        ongoing, current = _cancel_first(client, plan, ongoing, current, clock)
    else:
        warn_of_overrides(client, plan, ongoing)
    say(messages.rollback(format_plan(current_plan(client, current, live))))
    warn_of_full_lists(current, ongoing)
    check_expected(request.expected, current, {key: ongoing[key] for key in ongoing if key in request.expected})
    _check_factor_guard(client, request)
    _set_throttles(client, request, ongoing, current)
    submit(client, request, clock, told_of=others)


def _check_factor_guard(client: ToolClient, request: ExecuteRequest) -> None:
    """Raise `TerseError` if replication factors are to be guarded and the cluster cannot do that.

    Kafka's tool learns this from the request that starts the moves, and leaves useless throttles behind.
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
    """Raise the missing permission for the throttles or the request after them.

    Kafka's tool learns this half way, and leaves useless throttles behind.
    """
    of_brokers = throttle.rate_changes({*throttle.involved_brokers(moves), *brokers}, 1)
    client.check_configs({**throttle.topic_changes(moves), **of_brokers})
    if failures := client.without_permission(request.plan.replicas.keys()):
        raise TerseError(messages.not_started(failures)) from next(iter(failures.values()))


def warn_about_others(
    request: ExecuteRequest,
    ongoing: Mapping[TopicPartition, OngoingReassignment],
    told_of: frozenset[TopicPartition] = frozenset(),
) -> frozenset[TopicPartition]:
    """Warn, if asked to, about partitions outside the plan that are being reassigned: no batch size counts them.

    Returns them; there is no second warning about the same partitions as in `told_of`.
    """
    others = frozenset(ongoing.keys() - request.plan.replicas.keys())
    if request.batches.warns_about_others and others and others != told_of:
        print(messages.others_moving(others), file=sys.stderr)
    return others


def warn_of_overrides(client: ToolClient, plan: Plan, ongoing: Mapping[TopicPartition, OngoingReassignment]) -> None:
    """Warn about moves that the plan would override with unexpected results; they are started all the same."""
    for partition, override in client.risky_overrides(plan.replicas, ongoing).items():
        print(messages.risky_override(partition, override), file=sys.stderr, flush=True)


def warn_of_full_lists(
    printed: Mapping[TopicPartition, tuple[int, ...]], ongoing: Mapping[TopicPartition, OngoingReassignment]
) -> None:
    """Warn where a printed list has the replicas that a move is adding: it is none to go back to (KIP-860).

    A list that only shrinks is that from before the move, and brokers that lag show that, too.
    """
    for partition, replicas in printed.items():
        move = ongoing.get(partition)
        if move is not None and move.adding and set(replicas) == set(move.replicas):
            print(messages.list_of_both_sides(partition, move), file=sys.stderr, flush=True)


def _cancel_first(
    client: ToolClient,
    plan: Plan,
    ongoing: Mapping[TopicPartition, OngoingReassignment],
    current: Mapping[TopicPartition, tuple[int, ...]],
    clock: Clock,
) -> tuple[dict[TopicPartition, OngoingReassignment], dict[TopicPartition, tuple[int, ...]]]:
    """Cancel the moves of the plan's partitions; return the remaining moves, and the lists that brokers then show."""
    ours = {partition: move for partition, move in ongoing.items() if partition in plan.replicas}
    if not ours:
        return dict(ongoing), dict(current)
    ended = cancel_reassignments(client, ours, may_have_ended=True)
    give_up_s = clock.monotonic_s() + CANCEL_S
    while True:
        left = client.reassignments()
        lists = current_replicas(plan, known_topics(client.topics(plan.topics)))
        late = [key for key, move in ours.items() if key in left or _shows(move, lists[key], has_ended=key in ended)]
        if not late:
            return left, lists
        if clock.monotonic_s() >= give_up_s:
            raise TerseError(messages.not_cancelled_in_time(late))
        clock.sleep(CANCEL_POLL_S)


def _shows(move: OngoingReassignment, listed: tuple[int, ...], *, has_ended: bool) -> bool:
    """True if a broker may still show a move that was cancelled, or has ended before; that may be at any list."""
    if has_ended:  # a move that only adds, or only removes, has all of its replicas at one of its ends
        return bool(move.adding and move.removing) and set(listed) == set(move.replicas)
    return set(listed) != set(move.sources)


def check_brokers(plan: Plan, live: set[int]) -> None:
    """Raise `ToolError` for a broker of the plan that is not live, even if the controller would accept it."""
    for broker in plan.brokers:
        if broker not in live:
            raise ToolError(f"Unknown broker id {broker}")


def current_replicas(plan: Plan, topics: tuple[Topic, ...]) -> dict[TopicPartition, tuple[int, ...]]:
    """Present replica lists of the plan's partitions; raises `ToolError` for missing partitions."""
    known = {partition.topic_partition: partition.replicas for topic in topics for partition in topic.partitions}
    wanted = sorted(plan.replicas, key=partition_order)
    if missing := [str(partition) for partition in wanted if partition not in known]:
        message = f"Unable to find partition: {', '.join(missing)}"
        raise ToolError(java_exception("UnknownTopicOrPartitionException", message))
    return {partition: known[partition] for partition in wanted}


def submit(
    client: ToolClient, request: ExecuteRequest, clock: Clock, *, told_of: frozenset[TopicPartition] = frozenset()
) -> None:
    """Start all reassignments and directory moves of a plan, in the batches of the request.

    Returns once all are submitted, not complete. Raises `TerseError` when a batch is refused, ends with other
    replicas, or takes too long; the message names the partitions that were not submitted. However a plan in batches
    ends, its rest is in a file. There is no second warning about the moves in `told_of`, which are not of the plan.
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
    """Partitions outside the plan that a warning named."""
    sent: set[TopicPartition] = field(default_factory=set)
    """Partitions that the controller accepted or refused."""
    told: set[TopicPartition] = field(default_factory=set)
    """Partitions with a printed warning about replicas out of sync."""
    elsewhere_since_s: dict[TopicPartition, float] = field(default_factory=dict)
    """Partitions that rest on other replicas than their target, and since when, over all waits."""

    @property
    def unsubmitted(self) -> set[TopicPartition]:
        """Partitions that the controller has neither accepted nor refused, as far as known."""
        return self.request.plan.replicas.keys() - self.sent

    def start(self, batch: Collection[TopicPartition]) -> None:
        targets, expected = self.request.plan.replicas, self.request.expected
        try:
            failures = self.client.reassign(
                {partition: targets[partition] for partition in batch},
                allow_replication_factor_change=self.request.allows_replication_factor_change,
                expected={partition: expected[partition] for partition in batch if partition in expected},
            )
        except Drifted as error:
            if not self.sent:
                raise
            raise Drifted(messages.drifted_between_batches(error.differences, self.unsubmitted)) from error
        self.sent |= {key for key in batch if key not in failures or isinstance(failures[key], Rejected)}
        if failures:
            raise self._failure(messages.not_started(failures)) from next(iter(failures.values()))
        if self.request.batches.batch_size:
            say(messages.batch_started(batch, len(targets) - len(self.queue.waiting), len(targets)))
            self.start_directory_moves(batch)

    def start_directory_moves(self, partitions: Collection[TopicPartition]) -> None:
        """Start the directory moves of these partitions; each belongs to the batch of its partition."""
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
        while True:
            found, now_s = self._poll(), self.clock.monotonic_s()
            if lost := self._lost(found, now_s):
                raise self._failure(self._ended_elsewhere(lost))
            if batch := self.queue.next_batch(self._complete(found)):
                return batch
            if options.wait_timeout_ms is not None and (now_s - began_s) * 1000 >= options.wait_timeout_ms:
                late = messages.batch_timed_out(self.queue.in_flight, options.wait_timeout_ms, found.lagging)
                raise self._failure(late)
            self.clock.sleep(options.poll_interval_ms / 1000)

    def _lost(self, found: _Found, now_s: float) -> list[TopicPartition]:
        """Partitions that have rested on other replicas than their target for `METADATA_LAG_S`."""
        self.elsewhere_since_s = {
            partition: self.elsewhere_since_s.get(partition, now_s)
            for partition, state in found.states.items()
            if state is MoveState.ELSEWHERE
        }
        return [key for key, since_s in self.elsewhere_since_s.items() if now_s - since_s >= METADATA_LAG_S]

    def _complete(self, found: _Found) -> set[TopicPartition]:
        """Partitions that let others start; warns once about replicas out of sync, waited for or not."""
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
    """The result of a poll: the state of each partition in flight, and its replicas that are not in sync."""

    states: Mapping[TopicPartition, MoveState]
    lagging: Mapping[TopicPartition, tuple[int, ...]]


# `--verify`: show how far a plan is; clear throttles when nothing moves any more.


def verify(client: ToolClient, request: VerifyRequest) -> None:
    """Print the state of every partition and directory of the plan, then clear throttles if nothing is left to do.

    Throttles are cleared when no reassignment runs in the whole cluster and no directory of the plan is being filled,
    even if the plan was not reached.
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
    """One line per partition of the plan, sorted; the last mention of a repeated partition counts."""
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
    """The replicas of a partition; empty for an unknown topic or partition.

    Kafka's tool treats the first number after the last partition, and negative ones, as an internal error.
    """
    count = 0 if topic is None else len(topic.partitions)
    if topic is None or number > count:
        return ()
    if not 0 <= number < count:
        raise ToolError(f"Index {number} out of bounds for length {count}")
    return topic.partitions[number].replicas
