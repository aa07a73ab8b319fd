"""Clusters drawn by lot: small enough to live through hours in a blink, odd enough to meet every rule."""

from __future__ import annotations

import random
from dataclasses import replace

from kreassign.twin import (
    Blueprint,
    BrokerHardware,
    LogDirHardware,
    PartitionPlan,
    TopicPlan,
    Traffic,
    Twin,
    TwinSettings,
    small_cluster,
)
from kreassign.twin.version import RELEASES
from tests.twin.memory_log import MemoryLog

MB = 1_000_000
TB = 1_000_000 * MB


def draw_twin(rng: random.Random, log: MemoryLog) -> Twin:
    """A twin of any release with this metadata log, and with some topics on which something is written."""
    broker_count = rng.randint(3, 6)
    shape = small_cluster(broker_count, racks=rng.choice(((), ("a", "b"), ("a", "b", "c"))))
    brokers = tuple(replace(broker, hardware=_hardware(rng, broker.id)) for broker in shape.brokers)
    topics = tuple(_topic(rng, f"topic-{number}", broker_count) for number in range(rng.randint(1, 4)))
    blueprint: Blueprint = replace(shape, brokers=brokers, topics=topics)
    settings = TwinSettings(rng.choice(RELEASES), rng.randrange(1_000), controller_count=rng.randint(1, 3))
    return Twin(blueprint, settings, log)


def _hardware(rng: random.Random, broker: int) -> BrokerHardware:
    speed, network = rng.choice((50, 200, 500)) * MB, rng.choice((100, 1_250)) * MB
    log_dirs = range(rng.randint(1, 3))
    return BrokerHardware(
        tuple(LogDirHardware(f"/data/{broker}/d{number}", TB, speed, speed) for number in log_dirs), network, network
    )


def _topic(rng: random.Random, name: str, broker_count: int) -> TopicPlan:
    factor = rng.randint(1, min(3, broker_count))
    configs = {}
    if rng.random() < 0.3:
        configs["min.insync.replicas"] = str(rng.randint(1, factor))
    if rng.random() < 0.2:
        configs["unclean.leader.election.enable"] = "true"
    plans = (_partition(rng, factor, broker_count) for _ in range(rng.randint(1, 5)))
    return TopicPlan(name, tuple(plans), configs)


def _partition(rng: random.Random, factor: int, broker_count: int) -> PartitionPlan:
    size, rate = rng.choice((0, 1, 100, 5_000)) * MB, rng.choice((0, 0, 0.01, 1)) * MB
    retention = None if rng.random() < 0.7 else size + 50 * MB
    replicas = tuple(rng.sample(range(broker_count), factor))
    return PartitionPlan(replicas, Traffic(size, rate, retention_bytes=retention))
