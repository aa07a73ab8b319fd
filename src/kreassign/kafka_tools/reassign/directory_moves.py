"""Starting moves between log directories, which only the brokers that host the replicas can do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kreassign.clock import Clock
from kreassign.kafka_tools.failures import TerseError
from kreassign.kafka_tools.reassign import texts
from kreassign.kafka_tools.reassign.conversation import Conversation
from kreassign.kafka_tools.reassign.output import say
from kreassign.kafka_tools.reassign.replica_dirs import Found, ReplicaDirs, find_replicas
from kreassign.model import TopicPartitionReplica

_PAUSE_S = 0.1


def find(conversation: Conversation, replicas: Iterable[TopicPartitionReplica]) -> Found:
    """Where these replicas are, as their brokers say; all of their brokers must answer."""
    wanted = tuple(replicas)
    partitions = tuple(dict.fromkeys(replica.topic_partition for replica in wanted))
    found = find_replicas(conversation.log_dirs({replica.broker for replica in wanted}, partitions))
    return {replica: found.get(replica, ReplicaDirs()) for replica in wanted}


def start(
    conversation: Conversation, targets: Mapping[TopicPartitionReplica, str], timeout_ms: int, clock: Clock
) -> None:
    """Order replicas into directories, until every broker has its replica and took the order.

    A replica that is still to be created on its broker cannot be ordered yet; the order is repeated. Raises
    `TerseError` after `timeout_ms`; what was started goes on.
    """
    pending = dict(targets)
    deadline_s = clock.monotonic_s() + timeout_ms / 1000
    while True:
        for replica in sorted(conversation.move_directories(pending)):
            say(texts.directory_move_started(replica, pending.pop(replica)))
        if not pending:
            return
        if clock.monotonic_s() >= deadline_s:
            raise TerseError(texts.directory_moves_timed_out(pending))
        clock.sleep(_PAUSE_S)
