"""`--cancel --all`: stop whatever moves in the cluster, and keep what would start it again.

Kafka's tool has no such option, though the proposal that brought `--cancel` (KIP-455) wished for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kreassign.clock import Clock
from kreassign.kafka_tools.failures import ToolError
from kreassign.kafka_tools.reassign import directory_moves, texts, throttles
from kreassign.kafka_tools.reassign.cancel import cancel_reassignments, ways_back
from kreassign.kafka_tools.reassign.conversation import Conversation
from kreassign.kafka_tools.reassign.current import plan_with_dirs
from kreassign.kafka_tools.reassign.output import say
from kreassign.kafka_tools.reassign.replica_dirs import Found, find_replicas
from kreassign.kafka_tools.reassign.requests import CancelAllRequest
from kreassign.model import OngoingReassignment, Topic, TopicPartition
from kreassign.model.plan import Plan
from kreassign.model.plan_json import format_plan


def cancel_all(conversation: Conversation, request: CancelAllRequest, clock: Clock) -> None:
    """Print and write the plan that starts everything again, then cancel everything, then clear throttles."""
    ongoing = conversation.reassignments()
    moving = _moving_directories(conversation)
    plan = _plan_to_restart(conversation, ongoing, moving)
    if plan.assignments:
        text = format_plan(plan)
        say(texts.will_cancel(text))
        if request.output:
            _write_new(request.output, text)
    else:
        say(texts.NO_REASSIGNMENTS)
    if ongoing:
        cancel_reassignments(conversation, ongoing)
    if back := ways_back(moving):
        directory_moves.start(conversation, back, request.timeout_ms, clock)
    if not request.preserves_throttles:
        brokers = {broker for move in ongoing.values() for broker in move.replicas}
        throttles.clear(conversation, brokers, plan.topics)


def _moving_directories(conversation: Conversation) -> Found:
    """Replicas on live brokers that are moving between directories; controllers know nothing of them."""
    if conversation.through_controllers:
        return {}
    found = find_replicas(conversation.log_dirs(broker.id for broker in conversation.brokers()))
    return {replica: dirs for replica, dirs in found.items() if dirs.is_moving}


def _plan_to_restart(
    conversation: Conversation, ongoing: Mapping[TopicPartition, OngoingReassignment], moving: Found
) -> Plan:
    targets = {partition: move.target for partition, move in ongoing.items()}
    others = {replica.topic_partition for replica in moving} - targets.keys()
    topics = conversation.topics(partition.topic for partition in others) if others else {}
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
