from dataclasses import replace

import numpy as np
import pytest

from kreassign.errors import InputError
from kreassign.model import TopicPartition
from kreassign.planner import NOWHERE, Band, BrokerFacts, LogDirFacts, PartitionFacts, problem_of
from kreassign.planner.goals import DISK, LEADERS, REPLICAS

HOSTS = tuple(BrokerFacts(broker, rack=f"r{broker % 2}") for broker in (30, 10, 20))


def partition(number: int, *replicas: int, **facts: object) -> PartitionFacts:
    return replace(PartitionFacts(TopicPartition("t", number), replicas, size_bytes=100), **facts)


def test_the_order_of_what_is_given_does_not_matter() -> None:
    loads = (partition(1, 30, 10), partition(0, 20))
    one, other = problem_of(HOSTS, loads), problem_of(HOSTS[::-1], loads[::-1])
    assert one.brokers.ids.tolist() == other.brokers.ids.tolist() == [10, 20, 30]
    assert one.partitions.replicas.tolist() == other.partitions.replicas.tolist() == [1, 2, 0]
    assert one.partitions.name(1) == TopicPartition("t", 1)
    assert one.brokers.racks.tolist() == [0, 0, 0]


def test_a_band_lies_around_the_share_of_each_broker() -> None:
    hosts = tuple(BrokerFacts(broker, capacity={"disk": room}) for broker, room in ((0, 100.0), (1, 300.0)))
    limits = replace(problem_of(hosts, [partition(0, 0, 1)]), bands=(Band(DISK), Band(REPLICAS, 0.5))).limits
    assert np.allclose(limits.mean, [[50, 1], [150, 1]])
    assert np.allclose(limits.low, [[45, 1], [135, 1]])
    assert np.allclose(limits.high, [[55, 1], [165, 1]])


def test_a_capacity_cuts_the_band() -> None:
    hosts = (BrokerFacts(0, capacity={"disk": 90.0}), BrokerFacts(1))
    limits = replace(problem_of(hosts, [partition(0, 0, 1)]), bands=(Band(DISK),)).limits
    assert limits.high[:, 0].tolist() == pytest.approx([90.0, 110.0])


def test_drained_dead_and_non_leading_brokers_have_no_share() -> None:
    hosts = (
        BrokerFacts(0),
        BrokerFacts(1, must_empty=True),
        BrokerFacts(2, is_live=False),
        BrokerFacts(3, may_lead=False),
    )
    limits = replace(problem_of(hosts, [partition(0, 0, 1)]), bands=(Band(DISK, 0.0), Band(LEADERS, 0.0))).limits
    assert limits.high.T.tolist() == [[100, 0, 0, 100], [1, 0, 0, 0]]


def test_without_a_tolerance_only_the_capacity_limits() -> None:
    limits = replace(problem_of(HOSTS, [partition(0, 10)]), bands=(Band(DISK, None),)).limits
    assert limits.low.tolist() == [[0.0]] * 3
    assert limits.high.tolist() == [[np.inf]] * 3


def test_replicas_know_their_log_directory() -> None:
    host = BrokerFacts(10, log_dirs=(LogDirFacts("/b"), LogDirFacts("/a", 5)))
    built = problem_of((host,), [partition(0, 10, log_dirs=("/b",)), partition(1, 10)])
    assert built.log_dirs is not None
    assert built.log_dirs.paths == ("/a", "/b")
    assert built.partitions.log_dirs.tolist() == [1, NOWHERE]


@pytest.mark.parametrize(("hosts", "loads", "sentence"), [
    ((), (), "no broker"),
    ((HOSTS[0], HOSTS[0]), (), "more than once: broker 30"),
    (HOSTS, (partition(0, 10), partition(0, 20)), "more than once: partition t-0"),
    (HOSTS, (partition(0, 11),), "t-0 has replicas on broker 11"),
    (HOSTS, (partition(0, 10, log_dirs=("/x",)),), "broker 10 has no log directory /x"),
])  # fmt: skip
def test_what_cannot_be_is_refused(
    hosts: tuple[BrokerFacts, ...], loads: tuple[PartitionFacts, ...], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        problem_of(hosts, loads)


@pytest.mark.parametrize("facts", [
    {"replicas": ()},
    {"replicas": (1, 1)},
    {"size_bytes": -1},
    {"log_dirs": ("/a", "/b")},
    {"leader_cpu": float("nan")},
])  # fmt: skip
def test_impossible_partitions_are_refused(facts: dict[str, object]) -> None:
    with pytest.raises(InputError, match="partition t-0"):
        partition(0, 10, **facts)
