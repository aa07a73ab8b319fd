"""Plans to be executed on a twin in virtual time: what is moved, the cluster for it, and the least time it needs.

A twin has only the partitions that move: the others rest, and would only make it larger. Every broker sends and
receives at most `RATE`; disks are faster and large.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from kreassign.admin import AdminClient, client_settings
from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.twin.blueprint import Blueprint, BrokerPlan, PartitionPlan, TopicPlan
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.replication.hardware import BrokerHardware, LogDirHardware
from kreassign.twin.replication.partition_logs import Traffic
from kreassign.twin.transport import TwinTransport

RATE = 50_000_000
"""Bytes per second that a broker sends, and that it receives: its network."""
BIG_DISK = 10**15
FAST_DISK = 2_000_000_000.0
PER_TOPIC = 100


@dataclass(frozen=True, slots=True)
class Move:
    """One partition: from where to where, how large, and how fast it is written."""

    original: tuple[int, ...]
    target: tuple[int, ...]
    size_bytes: int
    write_bytes_per_s: float = 0.0

    @property
    def adding(self) -> tuple[int, ...]:
        """Brokers that get a copy."""
        return tuple(broker for broker in self.target if broker not in self.original)


@dataclass(frozen=True, slots=True)
class Case:
    """A plan: its moves in the order of topic and partition, and how many brokers there are."""

    name: str
    brokers: int
    moves: tuple[Move, ...]

    @property
    def named(self) -> dict[TopicPartition, Move]:
        """The moves, by what their partitions are called on the twin."""
        return {name_of(number): move for number, move in enumerate(self.moves)}

    @property
    def plan(self) -> Plan:
        """Plan for a run."""
        return Plan(tuple(PartitionAssignment(name, move.target) for name, move in self.named.items()))


def name_of(number: int) -> TopicPartition:
    """Name of the partition of a move; names sort as numbers do."""
    return TopicPartition(f"t{number // PER_TOPIC:04}", number % PER_TOPIC)


def random_case(
    brokers: int,
    count: int,
    seed: int,
    write_share: float = 0.0,
    size_bytes: float = 1e9,
    *,
    leaders_leave: bool = False,
) -> Case:
    """Busy brokers send more than others; sizes are log-normal around this; a tenth of the moves has two copies.

    `write_share` is how much of a broker's rate producers write to its partitions that move, on the mean. If leaders
    leave, each partition moves off its leader, so that another broker leads it from the end of its move on.
    """
    chance = random.Random(seed)
    weights = [1 + 2 * number / (brokers - 1) for number in range(brokers)]
    chance.shuffle(weights)
    writes = write_share * RATE * brokers / count
    moves = []
    for _ in range(count):
        leader = chance.choices(range(brokers), weights)[0]
        others = chance.sample([broker for broker in range(brokers) if broker != leader], 4)
        gone = 2 if chance.random() < 0.1 else 1
        original, target = (leader, *others[:2]), (leader, *others[:2][: 2 - gone], *others[2 : 2 + gone])
        if leaders_leave:
            target = (*others[:2], others[2])
        size = max(1, int(size_bytes * chance.lognormvariate(0, 1.2)))
        moves.append(Move(original, target, size, writes * chance.lognormvariate(-0.5, 1)))
    return Case(f"{brokers} brokers, {count} moves, seed {seed}", brokers, tuple(moves))


def work_bytes(moves: Sequence[Move]) -> Mapping[tuple[str, int], int]:
    """Bytes that each broker has to send and to receive."""
    work: Counter[tuple[str, int]] = Counter()
    for move in moves:
        work["out", move.original[0]] += move.size_bytes * len(move.adding)
        for broker in move.adding:
            work["in", broker] += move.size_bytes
    return work


def least_s(moves: Sequence[Move], rate_bytes_per_s: float = RATE) -> float:
    """Least time of these moves in any order: the busiest end of a broker, or the longest single move."""
    longest = max(move.size_bytes * len(move.adding) for move in moves)
    return max(*work_bytes(moves).values(), longest) / rate_bytes_per_s


def blueprint(case: Case) -> Blueprint:
    """The cluster before the plan."""
    plans = [PartitionPlan(move.original, Traffic(move.size_bytes, move.write_bytes_per_s)) for move in case.moves]
    topics = tuple(
        TopicPlan(name_of(start).topic, tuple(plans[start : start + PER_TOPIC]))
        for start in range(0, len(plans), PER_TOPIC)
    )
    disk = LogDirHardware("/d", BIG_DISK, FAST_DISK, FAST_DISK)
    hardware = BrokerHardware((disk,), net_in_bytes_per_s=RATE, net_out_bytes_per_s=RATE)
    return Blueprint(tuple(BrokerPlan(broker, hardware) for broker in range(case.brokers)), topics)


@contextmanager
def twin_of(case: Case) -> Iterator[tuple[Twin, TwinTransport, AdminClient]]:
    """A twin with this cluster, its transport, which is also its clock, and a client."""
    twin = Twin(blueprint(case), TwinSettings())
    transport = TwinTransport(twin)
    settings = client_settings(bootstrap_servers="broker-0:9092,broker-1:9092")
    with AdminClient.connect(settings, clock=transport, transport=transport) as client:
        yield twin, transport, client
