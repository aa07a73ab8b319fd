"""Brokers without replicas, added to a problem."""

from __future__ import annotations

import math

from kreassign.planner import BrokerFacts, problem_of
from kreassign.planner.arrays import NOWHERE


def test_added_brokers_have_no_limit_or_the_median_of_whole_numbers() -> None:
    brokers = problem_of([BrokerFacts(1, capacity={"disk": 3}), BrokerFacts(2, capacity={"disk": 4})], []).brokers
    assert brokers.extended([3], [NOWHERE], are_open=False).capacity["disk"].tolist() == [3, 4, math.inf]
    assert brokers.extended([3], [NOWHERE], are_open=True).capacity["disk"].tolist() == [3, 4, 3.5]
