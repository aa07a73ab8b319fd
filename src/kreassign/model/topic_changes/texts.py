"""Kafka's sentences about requests that cannot be fulfilled, in the order in which Kafka looks."""

from __future__ import annotations

from collections.abc import Container


def unfit_count(topic: str, present: int, wanted: int) -> str | None:
    """Why a topic with `present` partitions cannot have `wanted`; None if it can."""
    if wanted == present:
        return f"Topic already has {present} partition(s)."
    if wanted < present:
        return f"The topic {topic} currently has {present} partition(s); {wanted} would not be an increase."
    return None


def unfit_assignment(replicas: tuple[int, ...], registered: Container[int]) -> str | None:
    """Why a replica list given by hand is illegal; None if it is not. Brokers that are down are fine."""
    if not replicas:
        return "The manual partition assignment includes an empty replica list."
    seen: set[int] = set()
    for broker in sorted(replicas):
        if broker not in registered:
            return f"The manual partition assignment includes broker {broker}, but no such broker is registered."
        if broker in seen:
            return f"The manual partition assignment includes the broker {broker} more than once."
        seen.add(broker)
    return None


def unknown_topic(topic: str) -> str:
    """A topic that is not there."""
    return f"Unable to find a topic named {topic}."


def unknown_partition(topic: str, partition: int) -> str:
    """A partition that is not there."""
    return f"Unable to find partition {topic}:{partition}."


def below_min_in_sync(topic: str, factor: int, least: int) -> str:
    """Fewer replicas than producers with acks=all need."""
    return f"Replication factor {factor} is below min.insync.replicas={least} of topic {topic}."


DUPLICATE_TOPIC = "Duplicate topic name."
DUPLICATE_PARTITION = "Duplicate partition."
IN_PROGRESS = "A partition reassignment is in progress."
