"""`--execute`: start the reassignments and directory moves of a plan."""

from __future__ import annotations

from collections.abc import Mapping

from kreassign.clock import Clock
from kreassign.kafka_tools.failures import TerseError, ToolError
from kreassign.kafka_tools.java_errors import java_exception
from kreassign.kafka_tools.reassign import texts, throttles
from kreassign.kafka_tools.reassign.conversation import Conversation
from kreassign.kafka_tools.reassign.current import current_plan
from kreassign.kafka_tools.reassign.generate import known_topics
from kreassign.kafka_tools.reassign.output import say
from kreassign.kafka_tools.reassign.requests import ExecuteRequest
from kreassign.kafka_tools.reassign.submit import submit, warn_about_others
from kreassign.model import OngoingReassignment, Topic, TopicPartition
from kreassign.model.expectation import check_expected
from kreassign.model.plan import Plan, partition_order
from kreassign.model.plan_json import format_plan
from kreassign.model.throttle import move_map


def execute(conversation: Conversation, request: ExecuteRequest, clock: Clock) -> None:
    """Check the plan against the cluster, print what leads back, set throttles, submit, start directory moves."""
    plan = request.plan
    ongoing = conversation.reassignments()
    if ongoing and not request.is_additional:
        raise TerseError(texts.ALREADY_ASSIGNING)
    warn_about_others(request, ongoing)
    live = conversation.brokers()
    check_brokers(plan, {broker.id for broker in live})
    topics = known_topics(conversation.topics(plan.topics))
    current = current_replicas(plan, topics)
    say(texts.rollback(format_plan(current_plan(conversation, current, live))))
    check_expected(request.expected, current, {key: ongoing[key] for key in ongoing if key in request.expected})
    _set_throttles(conversation, request, ongoing, current)
    submit(conversation, request, clock)


def _set_throttles(
    conversation: Conversation,
    request: ExecuteRequest,
    ongoing: Mapping[TopicPartition, OngoingReassignment],
    current: Mapping[TopicPartition, tuple[int, ...]],
) -> None:
    if request.throttle < 0 and request.log_dir_throttle < 0:
        return
    say(texts.VERIFY_PERIODICALLY)
    if request.throttle >= 0:
        throttles.limit_moves(conversation, move_map(ongoing, request.plan.replicas, current), request.throttle)
    if request.log_dir_throttle >= 0:
        brokers = sorted({replica.broker for replica in request.plan.log_dirs})
        throttles.limit_directory_moves(conversation, brokers, request.log_dir_throttle)


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
