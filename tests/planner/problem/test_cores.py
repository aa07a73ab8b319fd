from dataclasses import replace

import numpy as np

from kreassign.planner.problem.build import CoresOf, with_cores
from tests.planner.problem.test_from_columns import COLUMNS, NAN

# Of a-0 broker 2 leads and 1 follows, in the order of the columns; b-0 is led by 3.
IS_LEADER = np.array([False, True, True, True, False])
MEASURED = replace(
    COLUMNS, leader_cpu=np.array([0.5, 0.25, NAN, 0.5, 0.25]), follower_cpu=np.array([0.1, 0.5, NAN, 0.1, 0.5])
)


def known(cores: dict[int, float]) -> CoresOf:
    return lambda brokers: {broker: cores[broker] for broker in brokers if broker in cores}


def same(found: object, *wanted: float) -> bool:
    return np.array_equal(np.asarray(found), wanted, equal_nan=True)


def test_leaders_and_followers_count_by_their_own_cores() -> None:
    found = with_cores(MEASURED, IS_LEADER, known({1: 4.0, 2: 16.0, 3: 8.0}))
    assert same(found.leader_cpu, 4.0, 4.0, NAN, 4.0, 4.0)
    assert same(found.follower_cpu, 0.4, 2.0, NAN, 0.4, 2.0)


def test_the_same_work_on_followers_of_different_size_comes_out_as_it_was() -> None:
    """One core of work is a quarter of broker 1 and a sixteenth of broker 2; the load model has the mean of the two."""
    three = replace(
        MEASURED,
        topics=np.zeros(3, np.int64),
        partitions=np.zeros(3, np.int64),
        brokers=np.array([3, 1, 2]),
        leader_cpu=np.full(3, 0.5),
        follower_cpu=np.full(3, (1 / 4 + 1 / 16) / 2),
    )
    found = with_cores(three, np.array([True, False, False]), known({1: 4.0, 2: 16.0, 3: 8.0}))
    assert same(found.follower_cpu, 1.0, 1.0, 1.0)


def test_of_brokers_without_known_cores_cpu_was_not_measured() -> None:
    found = with_cores(MEASURED, IS_LEADER, known({1: 4.0, 3: 8.0}))
    assert same(found.leader_cpu, 4.0, NAN, NAN, 4.0, NAN)
    assert same(found.follower_cpu, 0.4, 2.0, NAN, 0.4, 2.0)


def test_without_cores_or_without_cpu_the_columns_stay_as_they_are() -> None:
    assert with_cores(MEASURED, IS_LEADER, known({})) is MEASURED
    assert with_cores(COLUMNS, IS_LEADER, known({1: 4.0})) is COLUMNS
