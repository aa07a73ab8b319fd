"""Setting and clearing throttles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kreassign.cli.kafka.reassign import texts
from kreassign.cli.kafka.reassign.conversation import Conversation
from kreassign.cli.kafka.reassign.output import say
from kreassign.model import TopicPartition, throttle
from kreassign.model.throttle import ThrottledMove


def limit_moves(conversation: Conversation, moves: Mapping[TopicPartition, ThrottledMove], bytes_per_s: int) -> None:
    """Name the moving replicas in their topics, then set the rate on every broker involved."""
    conversation.change_configs(throttle.topic_changes(moves))
    conversation.change_configs(throttle.rate_changes(throttle.involved_brokers(moves), bytes_per_s))
    say(texts.rate_set("inter-broker", bytes_per_s))


def limit_directory_moves(conversation: Conversation, brokers: Iterable[int], bytes_per_s: int) -> None:
    """Set the rate of moves between directories on these brokers."""
    conversation.change_configs(throttle.log_dir_rate_changes(brokers, bytes_per_s))
    say(texts.rate_set("replica-alter-dir", bytes_per_s))


def clear(conversation: Conversation, named_brokers: Iterable[int], topics: Iterable[str]) -> None:
    """Clear the rates of these brokers and of all that the cluster lists, then the lists of these topics."""
    brokers = sorted({broker.id for broker in conversation.brokers()}.union(named_brokers))
    say(texts.clearing("broker", "broker", brokers))
    conversation.change_configs(throttle.clear_broker_changes(brokers))
    names = sorted(set(topics))
    say(texts.clearing("topic", "topic", names))
    conversation.change_configs(throttle.clear_topic_changes(names))
