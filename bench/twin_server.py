"""Requests per second that a twin answers over TCP, asked by a process of its own.

The client is as cheap as it can be made: requests are written once and sent again and again, answers are only counted.
With one connection each request waits for the answer to the one before; with several, as many are under way.
"""

from __future__ import annotations

import selectors
import socket
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from kreassign.model.throttle import LEADER_THROTTLED_RATE, LEADER_THROTTLED_REPLICAS
from kreassign.twin.blueprint import PartitionPlan, TopicPlan, small_cluster
from kreassign.twin.cluster import Twin
from kreassign.twin.replication.partition_logs import Traffic
from kreassign.twin.server import TwinServer, serve
from kreassign.wire import api
from kreassign.wire.api import Api
from kreassign.wire.codec import PREFIX_BYTES, encode_request

BROKERS = 6
REPLICATION_FACTOR = 3
SECONDS = 3.0
RUNS = 5
CONNECTIONS = (1, 8)

CASES: tuple[tuple[str, Api, int, dict[str, object], int, bool], ...] = (
    ("ApiVersions", api.API_VERSIONS, 0, {}, 100, False),
    ("Metadata, 100 partitions", api.METADATA, 12, {"topics": None}, 100, False),
    ("DescribeTopicPartitions, 100 partitions", api.DESCRIBE_TOPIC_PARTITIONS, 0, {"cursor": None}, 100, False),
    ("ListPartitionReassignments, 1,000 moves", api.LIST_PARTITION_REASSIGNMENTS, 0, {"topics": None}, 1_000, True),
)


def measure() -> None:
    """Print the table."""
    print(f"{BROKERS} brokers; median of {RUNS} runs of {SECONDS:g} s (least to most)\n")
    columns = [f"requests/s, {count} connection{'s' * (count > 1)}" for count in CONNECTIONS]
    print(f"| request | answer bytes | {' | '.join(columns)} |")
    print(f"|---|---|{'---|' * len(columns)}")
    for name, asked, version, fields, partitions, moving in CASES:
        frame = encode_request(version, asked.request(**fields), 1, "bench")
        with _serving(partitions, moving=moving) as port:
            size = len(_exchange(port, frame))
            rates = [[_rate(port, frame, count) for _ in range(RUNS)] for count in CONNECTIONS]
        cells = (f"{statistics.median(values):.0f} ({min(values):.0f}–{max(values):.0f})" for values in rates)
        print(f"| {name} | {size} | {' | '.join(cells)} |")


# --- the server's process -----------------------------------------------------------------------------------------


def run_server(partitions: int, *, moving: bool) -> None:
    """Serve a twin with so many partitions, all on the move or none, and print the port of its first broker."""
    replicas = [tuple((first + place) % BROKERS for place in range(REPLICATION_FACTOR)) for first in range(partitions)]
    plans = tuple(_move(before) if moving else PartitionPlan(before) for before in replicas)
    twin = Twin(
        replace(
            small_cluster(BROKERS, racks=("a", "b", "c")),
            topics=(TopicPlan("orders", plans, {LEADER_THROTTLED_REPLICAS: "*"} if moving else {}),),
            # A throttle of nothing keeps every move under way.
            broker_configs={broker: {LEADER_THROTTLED_RATE: "0"} for broker in range(BROKERS)} if moving else {},
        )
    )
    serve(lambda: TwinServer(twin), lambda server: print(server.addresses()[0].port, flush=True))


def _move(before: tuple[int, ...]) -> PartitionPlan:
    coming = next(broker for broker in range(BROKERS) if broker not in before)
    traffic = Traffic(size_bytes=1_000_000_000)
    return PartitionPlan((coming, *before), traffic, before, adding=(coming,), removing=before[-1:])


@contextmanager
def _serving(partitions: int, *, moving: bool) -> Iterator[int]:
    command = [sys.executable, "-m", "bench.twin_server", str(partitions), str(int(moving))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.terminate()
        process.wait()


# --- the client ---------------------------------------------------------------------------------------------------


def _exchange(port: int, frame: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(frame)
        return _read(connection)


def _read(connection: socket.socket) -> bytes:
    received = bytearray()
    while len(received) < PREFIX_BYTES or len(received) < PREFIX_BYTES + struct.unpack_from(">i", received)[0]:
        received += connection.recv(1 << 20)
    return bytes(received)


def _rate(port: int, frame: bytes, connections: int) -> float:
    """Answers per second with so many requests under way."""
    size = len(_exchange(port, frame))
    with selectors.DefaultSelector() as ready:
        missing: dict[int, int] = {}
        sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(connections)]
        for connection in sockets:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ready.register(connection, selectors.EVENT_READ)
            connection.sendall(frame)
            missing[connection.fileno()] = size
        started = time.perf_counter()
        answered = 0
        while (passed := time.perf_counter() - started) < SECONDS:
            for key, _ in ready.select():
                connection = sockets[[one.fileno() for one in sockets].index(key.fd)]
                missing[key.fd] -= len(connection.recv(1 << 20))
                if missing[key.fd] == 0:
                    answered += 1
                    missing[key.fd] = size
                    connection.sendall(frame)
        for connection in sockets:
            connection.close()
    return answered / passed


if __name__ == "__main__":
    run_server(int(sys.argv[1]), moving=sys.argv[2] == "1")
