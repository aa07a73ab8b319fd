"""Independent check of a finished plan. Shares no code with the search, so that the two cannot be wrong together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kreassign.model import TopicPartition
from kreassign.planner.thin import ByteProblem, PartitionLoad

Targets = Mapping[TopicPartition, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class BrokerFigures:
    """What one broker holds: bytes, copies, and partitions of which it is the preferred leader."""

    broker: int
    size_bytes: int
    replica_count: int
    preferred_leader_count: int


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a plan would do.

    `violations` has a sentence per broken rule (an unknown or repeated broker, another number of replicas, fewer
    racks than before, a partition that must not move); `out_of_band` the brokers that would stay outside the band.
    `bytes_in` counts the bytes that each broker would receive.
    """

    violations: tuple[str, ...]
    out_of_band: tuple[int, ...]
    before: tuple[BrokerFigures, ...]
    after: tuple[BrokerFigures, ...]
    bytes_in: Mapping[int, int]
    copied_replica_count: int
    reordered_partition_count: int

    @property
    def copied_bytes(self) -> int:
        """Bytes that the plan copies from broker to broker."""
        return sum(self.bytes_in.values())

    @property
    def legal(self) -> bool:
        """Whether the plan breaks no rule."""
        return not self.violations


def evaluate(problem: ByteProblem, targets: Targets) -> Evaluation:
    """Judge a plan: `targets` has the new replica list of each partition that changes."""
    known = {load.topic_partition for load in problem.partitions}
    violations = [f"{partition} is not a partition of the problem" for partition in targets if partition not in known]
    bytes_in = dict.fromkeys(problem.broker_ids, 0)
    copied = reordered = 0
    for load in problem.partitions:
        target = targets.get(load.topic_partition, load.replicas)
        violations += _violations(problem, load, target)
        arriving = [broker for broker in target if broker not in load.replicas]
        for broker in arriving:
            bytes_in[broker] = bytes_in.get(broker, 0) + load.size_bytes
        copied += len(arriving)
        reordered += target != load.replicas and not arriving
    after = _figures(problem, targets)
    low, high = problem.band.low, problem.band.high
    return Evaluation(
        violations=tuple(violations),
        out_of_band=tuple(figures.broker for figures in after if not low <= figures.size_bytes <= high),
        before=_figures(problem, {}),
        after=after,
        bytes_in=bytes_in,
        copied_replica_count=copied,
        reordered_partition_count=reordered,
    )


def _violations(problem: ByteProblem, load: PartitionLoad, target: tuple[int, ...]) -> list[str]:
    name = load.topic_partition
    found = [f"{name}: broker {broker} is not there" for broker in sorted({*target} - {*problem.broker_ids})]
    if len({*target}) != len(target):
        found.append(f"{name}: a broker is named more than once in {list(target)}")
    if len(target) != len(load.replicas):
        found.append(f"{name}: {len(load.replicas)} replicas become {len(target)}")
    if not load.may_move and target != load.replicas:
        found.append(f"{name} must not move")
    racks = problem.racks
    if racks and not found and len({racks[b] for b in target}) < len({racks[b] for b in load.replicas}):
        found.append(f"{name}: {list(target)} is on fewer racks than {list(load.replicas)}")
    return found


def _figures(problem: ByteProblem, targets: Targets) -> tuple[BrokerFigures, ...]:
    placed = [(load.size_bytes, targets.get(load.topic_partition, load.replicas)) for load in problem.partitions]
    return tuple(
        BrokerFigures(
            broker=broker,
            size_bytes=sum(size for size, replicas in placed if broker in replicas),
            replica_count=sum(broker in replicas for _, replicas in placed),
            preferred_leader_count=sum(replicas[:1] == (broker,) for _, replicas in placed),
        )
        for broker in problem.broker_ids
    )
