"""AlterPartitionCounts (KIP-179): which topics may have so many partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kreassign.model.error_codes import INVALID_PARTITIONS, INVALID_REQUEST, INVALID_TOPIC_EXCEPTION
from kreassign.model.topic_changes import texts
from kreassign.model.topic_changes.refusal import Refusal
from kreassign.model.topic_changes.view import TopicsView


def decide_partition_counts(view: TopicsView, wanted: Iterable[tuple[str, int]]) -> dict[str, int | Refusal]:
    """The count of each topic that may have it, or why not; a topic named twice gets neither of its counts."""
    asked = list(wanted)
    times = Counter(topic for topic, _count in asked)
    return {topic: _decide(view, topic, count, times[topic]) for topic, count in asked}


def _decide(view: TopicsView, name: str, count: int, times: int) -> int | Refusal:
    if times > 1:
        return Refusal(INVALID_REQUEST, texts.DUPLICATE_TOPIC)
    topic = view.topics.get(name)
    if topic is None:
        return Refusal(INVALID_TOPIC_EXCEPTION, texts.unknown_topic(name))
    unfit = texts.unfit_count(name, len(topic.partitions), count)
    return count if unfit is None else Refusal(INVALID_PARTITIONS, unfit)
