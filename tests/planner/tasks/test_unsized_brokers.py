"""Plans for brokers of known disk size beside a closed one whose size nobody knows."""

import pytest

from kreassign.model.closures import Closure
from kreassign.planner import Band, BrokerFacts, Problem, solve
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.goals import DISK
from kreassign.planner.tasks import drain_brokers, plan_around, rebalance
from tests.planner.small_problems import GIGABYTE, brokers, partition, posed

SIZES = {1: 100, 2: 100, 3: 20}


def half_full(*others: BrokerFacts) -> Problem:
    """Brokers 1 to 3, each half full of partitions of 1 GB, and live others with ten each."""
    hosts = [BrokerFacts(one, capacity={"disk": size * GIGABYTE}) for one, size in SIZES.items()]
    lists = [one for one, size in SIZES.items() for _ in range(size // 2)]
    lists += [other.id for other in others if other.is_live for _ in range(10)]
    loads = [partition(number, broker, gigabytes=1) for number, broker in enumerate(lists)]
    return posed([*hosts, *others], loads, bands=(Band(DISK),))


SILENT, UNSIZED = (BrokerFacts(4, closure=one) for one in (Closure.UNREAD, Closure.UNSIZED))
BINDING = BrokerFacts(4, closure=Closure.UNREAD | Closure.BINDING)
DEAD = BrokerFacts(5, is_live=False)


@pytest.mark.parametrize("others", [[SILENT], [UNSIZED], [BINDING], [SILENT, DEAD], [UNSIZED, DEAD], [BINDING, DEAD]])
def test_brokers_of_known_size_share_by_it(others: list[BrokerFacts]) -> None:
    problem, _ = plan_around(rebalance(half_full(*others)))
    found = evaluate(problem, solve(problem).assignment)
    assert (found.moved_bytes, found.misses()) == (0, ())


@pytest.mark.parametrize("closed", [SILENT, UNSIZED, BINDING])
def test_what_is_drained_goes_to_them_by_their_size(closed: BrokerFacts) -> None:
    problem, _ = plan_around(drain_brokers(half_full(closed), [2]))
    after = evaluate(problem, solve(problem).assignment).after[:, 0] / GIGABYTE
    assert after[1:].tolist() == [0, after[2], 10]
    assert after[0] / 100 == pytest.approx(after[2] / 20, rel=0.15)


def test_given_shares_stand() -> None:
    shared = [BrokerFacts(one, share=1.0, closure=Closure.UNSIZED if one == 3 else Closure.NONE) for one in (1, 2, 3)]
    loads = [partition(number, 1 + number % 2) for number in range(8)] + [partition(8, 3)]
    problem, _ = plan_around(rebalance(posed(shared, loads, bands=(Band(DISK),))))
    assert problem.brokers.weights("disk").tolist() == [1 / 3] * 3


def test_where_no_size_is_known_all_have_the_same_share() -> None:
    loads = [partition(number, 1) for number in range(9)]
    problem, _ = plan_around(rebalance(posed(brokers(1, 2, 3), loads, bands=(Band(DISK),))))
    assert evaluate(problem, solve(problem).assignment).after[:, 0].tolist() == [3e10] * 3
