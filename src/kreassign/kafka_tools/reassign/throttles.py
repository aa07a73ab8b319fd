"""Setting and clearing throttles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from kreassign.kafka_tools.reassign import messages
from kreassign.kafka_tools.reassign.messages import say
from kreassign.model import Broker, ConfigChange, ConfigResource, TopicPartition, throttle
from kreassign.model.throttle import ThrottledMove


class Configurable(Protocol):
    """What setting a throttle needs of a cluster, reached through its brokers or through its ZooKeeper."""

    def brokers(self) -> tuple[Broker, ...]:
        """The live brokers."""
        ...

    def change_configs(self, changes: Mapping[ConfigResource, Sequence[ConfigChange]]) -> None:
        """Change configurations."""
        ...


def limit_moves(client: Configurable, moves: Mapping[TopicPartition, ThrottledMove], bytes_per_s: int) -> None:
    """Name the moving replicas in their topics, then set the rate on every broker involved."""
    client.change_configs(throttle.topic_changes(moves))
    client.change_configs(throttle.rate_changes(throttle.involved_brokers(moves), bytes_per_s))
    say(messages.rate_set("inter-broker", bytes_per_s))


def limit_directory_moves(client: Configurable, brokers: Iterable[int], bytes_per_s: int) -> None:
    """Set the rate of moves between directories on these brokers."""
    client.change_configs(throttle.log_dir_rate_changes(brokers, bytes_per_s))
    say(messages.rate_set("replica-alter-dir", bytes_per_s))


def clear(client: Configurable, named_brokers: Iterable[int], topics: Iterable[str]) -> None:
    """Clear the rates of these brokers and of all that the cluster lists, then the lists of these topics."""
    brokers = sorted({broker.id for broker in client.brokers()}.union(named_brokers))
    say(messages.clearing("broker", "broker", brokers))
    client.change_configs(throttle.clear_broker_changes(brokers))
    names = sorted(set(topics))
    say(messages.clearing("topic", "topic", names))
    client.change_configs(throttle.clear_topic_changes(names))
