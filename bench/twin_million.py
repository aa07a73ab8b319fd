"""A million replicas through the protocol: start, look, and 10,000 moves submitted by a client at `--speed max`.

The client keeps a number of moves under way, as whoever paces a rebalance does, and looks for free places all the time.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from bench.served import Served, served
from kreassign.admin import AdminClient
from kreassign.model import Topic, TopicPartition

SCENARIO = "million-replicas"
MOVES = 10_000
IN_FLIGHT = 500
SEED = 11
LOOK_EVERY_S = 0.05
# The scenario writes 10 kB/s to a partition of 10 GB, and in proportion to all others.
GROWTH_PER_S = 1e-6

Result = TypeVar("Result")


def measure() -> None:
    """Print the table."""
    print("| step | took s | server's CPU s | server MiB |")
    print("|---|---|---|---|")
    with served("--scenario", SCENARIO, "--speed", "max") as twin, twin.client() as client:
        _row(f"start until it answers: {SCENARIO}", (twin.start_s, twin.cpu_s), twin)
        topics, took = _timed(twin, lambda: client.describe_topics().ok)
        count = sum(len(topic.partitions) for topic in topics.values())
        _row(f"describe all {count:,} partitions", took, twin)
        _, took = _timed(twin, lambda: client.describe_log_dirs().raise_if_any())
        _row("log directories of all brokers", took, twin)
        _rebalance(client, twin, topics)
        print(f"\nlargest resident memory of the server: {twin.peak_mib:.0f} MiB")


def _rebalance(client: AdminClient, twin: Served, topics: Mapping[str, Topic]) -> None:
    targets = _targets(topics, random.Random(SEED))
    still = next(key for key in sorted(targets) if key.partition == 0)._replace(partition=1)
    before = _size(client, still, topics)
    _, took = _timed(twin, lambda: _execute(client, targets))
    simulated_h = (_size(client, still, topics) / before - 1) / GROWTH_PER_S / 3600
    _row(f"{len(targets):,} moves, {IN_FLIGHT} under way: {simulated_h:.1f} simulated hours", took, twin)


def _targets(topics: Mapping[str, Topic], chance: random.Random) -> dict[TopicPartition, tuple[int, ...]]:
    """Another broker of the same rack (ids modulo three) in place of the last replica."""
    partitions = [partition for _, topic in sorted(topics.items()) for partition in topic.partitions]
    chosen = chance.sample(partitions, MOVES)
    return {
        partition.topic_partition: (
            *partition.replicas[:-1],
            (partition.replicas[-1] + 3 * chance.randrange(1, 99)) % 300,
        )
        for partition in chosen
    }


def _execute(client: AdminClient, targets: dict[TopicPartition, tuple[int, ...]]) -> None:
    waiting = list(targets.items())
    while (ongoing := client.list_partition_reassignments()) or waiting:
        next_ones = [waiting.pop() for _ in range(min(len(waiting), IN_FLIGHT - len(ongoing)))]
        if next_ones:
            client.alter_partition_reassignments(dict(next_ones), warns_of_overrides=False).raise_if_any()
        time.sleep(LOOK_EVERY_S)


def _size(client: AdminClient, key: TopicPartition, topics: Mapping[str, Topic]) -> int:
    broker = topics[key.topic].partitions[key.partition].replicas[0]
    (found,) = client.describe_log_dirs([broker], partitions=[key]).ok.values()
    return next(copy.size_bytes for log_dir in found for copy in log_dir.replicas)


def _timed(twin: Served, act: Callable[[], Result]) -> tuple[Result, tuple[float, float]]:
    """Return value of an action, and its seconds: of the wall, and of the server's processor."""
    cpu_s, started = twin.cpu_s, time.perf_counter()
    result = act()
    return result, (time.perf_counter() - started, twin.cpu_s - cpu_s)


def _row(step: str, took: tuple[float, float], twin: Served) -> None:
    print(f"| {step} | {took[0]:.1f} | {took[1]:.1f} | {twin.memory_mib:.0f} |", flush=True)
