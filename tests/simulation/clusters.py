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
from kreassign.twin.setup.version import RELEASES
from tests.twin.memory_log import MemoryLog

MB = 1_000_000
TB = 1_000_000 * MB


def draw_twin(chance: random.Random, log: MemoryLog) -> Twin:
    """A twin of any release with this metadata log, and with some topics on which something is written."""
    broker_count = chance.randint(3, 6)
    shape = small_cluster(broker_count, racks=chance.choice(((), ("a", "b"), ("a", "b", "c"))))
    brokers = tuple(replace(broker, hardware=_hardware(chance, broker.id)) for broker in shape.brokers)
    topics = tuple(_topic(chance, f"topic-{number}", broker_count) for number in range(chance.randint(1, 4)))
    blueprint: Blueprint = replace(shape, brokers=brokers, topics=topics)
    settings = TwinSettings(chance.choice(RELEASES), chance.randrange(1_000), controller_count=chance.randint(1, 3))
    return Twin(blueprint, settings, log)


def _hardware(chance: random.Random, broker: int) -> BrokerHardware:
    speed, network = chance.choice((50, 200, 500)) * MB, chance.choice((100, 1_250)) * MB
    log_dirs = range(chance.randint(1, 3))
    return BrokerHardware(
        tuple(LogDirHardware(f"/data/{broker}/d{number}", TB, speed, speed) for number in log_dirs), network, network
    )


def _topic(chance: random.Random, name: str, broker_count: int) -> TopicPlan:
    factor = chance.randint(1, min(3, broker_count))
    configs = {}
    if chance.random() < 0.3:
        configs["min.insync.replicas"] = str(chance.randint(1, factor))
    if chance.random() < 0.2:
        configs["unclean.leader.election.enable"] = "true"
    plans = (_partition(chance, factor, broker_count) for _ in range(chance.randint(1, 5)))
    return TopicPlan(name, tuple(plans), configs)


def _partition(chance: random.Random, factor: int, broker_count: int) -> PartitionPlan:
    size, rate = chance.choice((0, 1, 100, 5_000)) * MB, chance.choice((0, 0, 0.01, 1)) * MB
    retention = None if chance.random() < 0.7 else size + 50 * MB
    replicas = tuple(chance.sample(range(broker_count), factor))
    return PartitionPlan(replicas, Traffic(size, rate, retention_bytes=retention))
