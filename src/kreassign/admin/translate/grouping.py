"""Partitions by topic, as every message wants them."""

from __future__ import annotations

from collections.abc import Iterable

from kreassign.model import TopicPartition


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partition numbers by topic, both sorted; a partition named twice counts once."""
    grouped: dict[str, list[int]] = {}
    for topic, partition in sorted(set(partitions)):
        grouped.setdefault(topic, []).append(partition)
    return grouped
