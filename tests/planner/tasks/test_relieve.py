"""A log directory that has too much gives away that much, and nothing else is balanced with it."""

from collections import Counter

import pytest

from kreassign.planner import LogDirFacts, plan_of, solve
from kreassign.planner.tasks import relieve
from tests.planner.small_problems import GIGABYTE, brokers, partition, posed

CROWDED = [
    partition(number, 1, log_dirs=("/a" if number < 6 else "/b",), write_bytes_per_s=1e6) for number in range(10)
]
"""Broker 1 has all ten partitions of 10 GB: six in /a, four in /b."""


def hosts(*limits_gigabytes: float):
    dirs = (LogDirFacts("/a"), LogDirFacts("/b"))
    ids = range(1, 1 + len(limits_gigabytes))
    return [
        host
        for one, limit in zip(ids, limits_gigabytes, strict=True)
        for host in brokers(one, log_dirs=dirs, capacity={"disk": limit * GIGABYTE})
    ]


@pytest.mark.parametrize(("gigabytes", "leaving"), [(0, 0), (4, 1), (12, 2), (30, 3)])
def test_what_leaves_is_what_the_directory_must_lose(gigabytes: int, leaving: int) -> None:
    problem = relieve(posed(hosts(200, 200, 200), CROWDED), 1, "/a", gigabytes * GIGABYTE)
    replicas = plan_of(problem, solve(problem).assignment).replicas
    assert len(replicas) == leaving
    assert all(name.partition < 6 for name in replicas), "of that directory"


def test_no_more_leaves_than_balance_would_take() -> None:
    loads = [*CROWDED, *(partition(10 + number, 2) for number in range(8))]
    problem = relieve(posed(hosts(200, 200), loads), 1, "/a", 50 * GIGABYTE)
    assert len(plan_of(problem, solve(problem).assignment).replicas) <= 1


def test_a_broker_with_little_room_gets_little() -> None:
    loads = [*CROWDED, *(partition(10 + number, 2) for number in range(7)), *(partition(20 + n, 3) for n in range(2))]
    problem = relieve(posed(hosts(200, 95, 400), loads), 1, "/a", 40 * GIGABYTE)
    found = Counter(plan_of(problem, solve(problem).assignment).replicas.values())
    assert found[3,] > found[2,]
