"""`--cancel`: stop what moves among the partitions and directories of a plan."""

from __future__ import annotations

from collections.abc import Collection

from kreassign.clock import Clock
from kreassign.kafka_tools.failures import TerseError
from kreassign.kafka_tools.reassign import directory_moves, texts, throttles
from kreassign.kafka_tools.reassign.conversation import Conversation
from kreassign.kafka_tools.reassign.output import say
from kreassign.kafka_tools.reassign.replica_dirs import Found
from kreassign.kafka_tools.reassign.requests import CancelRequest
from kreassign.model import TopicPartition, TopicPartitionReplica


def cancel(conversation: Conversation, request: CancelRequest, clock: Clock) -> None:
    """Cancel, and clear throttles unless they shall stay: even those of moves that are not in the plan."""
    plan = request.plan
    active = conversation.reassignments(plan.replicas)
    if active:
        cancel_reassignments(conversation, active)
    else:
        say(texts.NOTHING_TO_CANCEL)
    back = ways_back(directory_moves.find(conversation, plan.log_dirs))
    if back:
        directory_moves.start(conversation, back, request.timeout_ms, clock)
    else:
        say(texts.NO_MOVES_TO_CANCEL, end="")  # Kafka's tool forgets to end this line
    if not request.preserves_throttles:
        throttles.clear(conversation, plan.brokers, plan.topics)


def cancel_reassignments(conversation: Conversation, active: Collection[TopicPartition]) -> None:
    """Cancel these reassignments; raises `TerseError` with all that were refused."""
    failures = conversation.reassign(dict.fromkeys(active))
    if failures:
        raise TerseError(texts.not_cancelled(failures))
    say(texts.cancelled(active))


def ways_back(found: Found) -> dict[TopicPartitionReplica, str]:
    """The orders that cancel moves between directories: go where you are."""
    return {replica: dirs.current for replica, dirs in found.items() if dirs.is_moving and dirs.current is not None}
