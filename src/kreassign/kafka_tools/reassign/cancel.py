"""`--cancel`: stop the moves of the partitions and directories of a plan; with `--all`, every move.

Kafka's tool has no `--all`, though the proposal that brought `--cancel` (KIP-455) asked for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from kreassign.clock import Clock
from kreassign.kafka_tools.failures import TerseError, ToolError
from kreassign.kafka_tools.reassign import log_dirs, messages, throttles
from kreassign.kafka_tools.reassign.client import ToolClient
from kreassign.kafka_tools.reassign.log_dirs import Found, find_replicas, plan_with_dirs
from kreassign.kafka_tools.reassign.messages import say
from kreassign.kafka_tools.reassign.requests import CancelAllRequest, CancelRequest
from kreassign.model import OngoingReassignment, Topic, TopicPartition, TopicPartitionReplica
from kreassign.model.plan import Plan
from kreassign.model.plan_json import format_plan


def cancel(client: ToolClient, request: CancelRequest, clock: Clock) -> None:
    """Cancel, then clear throttles unless told to preserve them: even those of moves outside the plan."""
    plan = request.plan
    active = client.reassignments(plan.replicas)
    if active:
        cancel_reassignments(client, active)
    else:
        say(messages.NOTHING_TO_CANCEL)
    back = targets_to_cancel(log_dirs.find(client, plan.log_dirs))
    if back:
        log_dirs.start(client, back, request.timeout_ms, clock)
    else:
        say(messages.NO_MOVES_TO_CANCEL, end="")  # Kafka's tool forgets to end this line
    if not request.preserves_throttles:
        throttles.clear(client, plan.brokers, plan.topics)


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
        log_dirs.start(client, back, request.timeout_ms, clock)
    if not request.preserves_throttles:
        brokers = {broker for move in ongoing.values() for broker in move.replicas}
        throttles.clear(client, brokers, plan.topics)


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
