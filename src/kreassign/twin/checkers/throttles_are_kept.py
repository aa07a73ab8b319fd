"""Throttles are never exceeded: all copies that a throttle slows together stay within its rate (KIP-73).

Which ones it slows is read from the configuration again: what a leader sends of listed partitions to followers out of
sync, what a follower receives of listed partitions, and what moves between the directories of a broker (KIP-113).
However low a rate is, one answer to each fetcher passes in every window in which a broker looks back.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from kreassign.model import ConfigResource
from kreassign.model.throttle import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    LOG_DIR_RATE,
)
from kreassign.twin.core import Step, TwinCore
from kreassign.twin.metadata.state import ClusterMetadata
from kreassign.twin.replication.readings import Flow
from kreassign.twin.replication.throttles import ThrottledReplicas, parse_rate

_ROUNDING = 1.0 + 1e-6
_listed = lru_cache(maxsize=64)(ThrottledReplicas.parse)


class _Limit(NamedTuple):
    """A rate that somebody set: of which broker, by which key."""

    broker: int
    key: str


def check(twin: TwinCore, step: Step) -> Iterator[str]:
    """Rates that are exceeded. Between a change and the next moment nothing flows by any rate yet."""
    del step
    flows: defaultdict[_Limit, list[Flow]] = defaultdict(list)
    for flow in twin.replication.readings.flows():
        for limit in _limits(twin.metadata, flow):
            flows[limit].append(flow)
    for (broker, key), slowed in flows.items():
        configured = parse_rate(twin.metadata.config(ConfigResource.broker(broker), key))
        rate = sum(flow.bytes_per_s for flow in slowed)
        allowed = max(configured, 0.0 if key == LOG_DIR_RATE else _answers_per_s(twin, slowed))
        if rate > allowed * _ROUNDING:
            yield f"{key} of broker {broker} is {configured} bytes per second, and {rate} flow"


def _answers_per_s(twin: TwinCore, flows: list[Flow]) -> float:
    """One answer, which has one fetch of each partition, to every follower from each of its leaders."""
    settings = twin.settings.replication
    partitions = [(twin.metadata.partition(flow.topic_partition), flow.broker) for flow in flows]
    fetchers = Counter((found.leader, follower) for found, follower in partitions if found is not None)
    answers = (min(count * settings.fetch_bytes, settings.response_bytes) for count in fetchers.values())
    return sum(answers) * 1000 / settings.quota_window_ms


def _limits(metadata: ClusterMetadata, flow: Flow) -> Iterator[_Limit]:
    """The limits that a flow has to keep within, together with others."""
    if flow.is_future:
        yield _Limit(flow.broker, LOG_DIR_RATE)
        return
    topic, number = flow.topic_partition
    partition = metadata.partition(flow.topic_partition)
    if partition is None:
        return
    of_topic = ConfigResource.topic(topic)
    leaders = _listed(metadata.config(of_topic, LEADER_THROTTLED_REPLICAS))
    if flow.broker not in partition.isr and leaders.holds(number, partition.leader):
        yield _Limit(partition.leader, LEADER_THROTTLED_RATE)
    if _listed(metadata.config(of_topic, FOLLOWER_THROTTLED_REPLICAS)).holds(number, flow.broker):
        yield _Limit(flow.broker, FOLLOWER_THROTTLED_RATE)
