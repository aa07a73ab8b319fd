"""Costs of a round of `kreassign collect`: requests, bytes over the network and bytes on disk, on a twin."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench.known_load import BEGIN_MS
from kreassign.admin import AdminClient, client_settings
from kreassign.admin.settings import Address
from kreassign.operations.ingest import collect, store_round, take_round
from kreassign.pipeline.tables.delta import LOG_FOLDER
from kreassign.twin.blueprint import Blueprint, PartitionPlan, TopicPlan, small_cluster
from kreassign.twin.cluster import Twin
from kreassign.twin.replication.partition_logs import Traffic
from kreassign.twin.transport import TwinConnection, TwinTransport

SIZES = ((1_000, 6), (10_000, 6), (10_000, 30))
PARTITIONS_PER_TOPIC = 50
REPLICATION_FACTOR = 3
ROUNDS = 3
ROUNDS_PER_DAY = 1440


class CountingTransport:
    """Passes on what goes to a twin, and counts it."""

    takes_turns = True

    def __init__(self, inner: TwinTransport) -> None:
        self._inner = inner
        self.requests = self.sent_bytes = self.received_bytes = 0

    def connect(self, address: Address, timeout_s: float) -> CountingConnection:
        """Open a connection that counts, too."""
        return CountingConnection(self._inner.connect(address, timeout_s), self)


class CountingConnection:
    """One connection of a `CountingTransport`."""

    def __init__(self, inner: TwinConnection, total: CountingTransport) -> None:
        self._inner, self._total = inner, total

    def exchange(self, frame: bytes, timeout_s: float) -> bytes:
        """Pass on a request and count it and its answer."""
        answer = self._inner.exchange(frame, timeout_s)
        self._total.requests += 1
        self._total.sent_bytes += len(frame)
        self._total.received_bytes += len(answer) + 4
        return answer

    def is_usable(self) -> bool:
        """True if the connection can be used again."""
        return self._inner.is_usable()

    def close(self) -> None:
        """Close it."""
        self._inner.close()


def measure() -> None:
    """Print the table."""
    print(f"{REPLICATION_FACTOR} copies of each partition, {PARTITIONS_PER_TOPIC} partitions a topic\n")
    print("| partitions | brokers | requests a round | kB received a round | kB of files a round | MB of files a day |")
    print("|---|---|---|---|---|---|")
    for partitions, brokers in SIZES:
        print(_row(partitions, brokers), flush=True)


def measure_day() -> None:
    """Print what a day of rounds leaves in the tables of a small cluster: logs, checkpoints, and rows."""
    transport = twin_to_sample(100, 3)
    settings = client_settings(bootstrap_servers="broker-0:9092")
    print("| rounds | commits | MB | checkpoints | MB | files of rows | MB | CPU s a round |")
    print("|---|---|---|---|---|---|---|---|")
    with (
        tempfile.TemporaryDirectory() as data,
        AdminClient.connect(settings, clock=transport, transport=transport) as client,
    ):
        begun_s, before = time.process_time(), 0
        for done in collect(client, Path(data), rounds=ROUNDS_PER_DAY, interval_s=60, clock=transport):
            if done.number in (60, 360, 720, 1440):
                now_s = time.process_time()
                cost = (now_s - begun_s) / (done.number - before)
                print(f"| {done.number} | {_left(Path(data))} | {cost:.2f} |", flush=True)
                begun_s, before = time.process_time(), done.number


def _left(data: Path) -> str:
    files = [file for file in data.rglob("*") if file.is_file()]
    kinds = [
        [file for file in files if is_log == (file.parent.name == LOG_FOLDER) and file.suffix == suffix]
        for is_log, suffix in ((True, ".json"), (True, ".parquet"), (False, ".parquet"))
    ]
    return " | ".join(f"{len(kind):,} | {sum(file.stat().st_size for file in kind) / 1e6:.1f}" for kind in kinds)


def _row(partitions: int, brokers: int) -> str:
    transport = twin_to_sample(partitions, brokers)
    counted = CountingTransport(transport)
    settings = client_settings(bootstrap_servers="broker-0:9092")
    with (
        tempfile.TemporaryDirectory() as data,
        AdminClient.connect(settings, clock=transport, transport=counted) as client,
    ):
        take_round(client, transport)  # the first also connects and asks for versions
        counted.requests = counted.received_bytes = 0
        for _ in range(ROUNDS):
            transport.sleep(60)
            store_round(Path(data), take_round(client, transport))
        files = sum(file.stat().st_size for file in Path(data).rglob("*.parquet")) / ROUNDS
    received = counted.received_bytes / ROUNDS
    return (
        f"| {partitions:,} | {brokers} | {counted.requests / ROUNDS:.0f} | {received / 1e3:,.0f} | {files / 1e3:,.0f} "
        f"| {files * ROUNDS_PER_DAY / 1e6:,.0f} |"
    )


def twin_to_sample(partitions: int, brokers: int) -> TwinTransport:
    """A twin whose topics have 50 partitions each, with some traffic; its clients' clocks are of our century."""
    twin = Twin(_blueprint(partitions, brokers))
    twin.client_clock.step(BEGIN_MS)
    return TwinTransport(twin)


def _blueprint(partitions: int, brokers: int) -> Blueprint:
    chance = random.Random(7)
    topics = tuple(
        TopicPlan(f"topic-{number:04}", tuple(_partitions(chance, brokers)))
        for number in range(partitions // PARTITIONS_PER_TOPIC)
    )
    return replace(small_cluster(brokers, racks=("a", "b", "c")), topics=topics)


def _partitions(chance: random.Random, brokers: int) -> Iterator[PartitionPlan]:
    for _ in range(PARTITIONS_PER_TOPIC):
        replicas = tuple(chance.sample(range(brokers), REPLICATION_FACTOR))
        traffic = Traffic(size_bytes=chance.randrange(10**7), write_bytes_per_s=chance.randrange(10**3))
        yield PartitionPlan(replicas, traffic)
