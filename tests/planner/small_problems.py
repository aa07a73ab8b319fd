"""Small problems for tests, and plans for them in one line."""

from dataclasses import replace

from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.planner import Assignment, BrokerFacts, PartitionFacts, Problem, assignment_of, problem_of
from kreassign.planner.problem.holds import Hold

GIGABYTE = 1_000_000_000


def partition(
    number: int, *replicas: int, topic: str = "t", gigabytes: float = 10, may_move: bool = True, **facts
) -> PartitionFacts:
    facts.setdefault("hold", Hold.NONE if may_move else Hold.STAYS)
    return PartitionFacts(TopicPartition(topic, number), replicas, size_bytes=int(gigabytes * GIGABYTE), **facts)


def brokers(*ids: int, racks: str | None = None, **facts) -> list[BrokerFacts]:
    """Brokers with these ids; `racks` has one letter per broker."""
    return [BrokerFacts(broker, rack=racks[place] if racks else None, **facts) for place, broker in enumerate(ids)]


def posed(hosts, loads, **changes) -> Problem:
    """The problem that these brokers and partitions pose."""
    return replace(problem_of(hosts, loads), **changes)


def plan(*lists: tuple[int, tuple[int, ...]], topic: str = "t") -> Plan:
    return Plan(tuple(PartitionAssignment(TopicPartition(topic, number), replicas) for number, replicas in lists))


def moved(problem: Problem, *lists: tuple[int, tuple[int, ...]]) -> Assignment:
    """The present assignment with other lists for some partitions of topic t."""
    return assignment_of(problem, plan(*lists))
