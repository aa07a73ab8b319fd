"""Max-min fairness: by hand, and against a slow reference on random networks."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kreassign.twin.replication.copy_rates import max_min_rates

NO_LIMIT = float("inf")
Network = tuple[list[float], list[list[int]], list[float]]


def rates(capacities: list[float], uses: list[list[int]], limits: list[float] | None = None) -> list[float]:
    """The rates of flows given as plain lists."""
    width = max(map(len, uses), default=0)
    table = np.array([row + [-1] * (width - len(row)) for row in uses], np.int64).reshape(len(uses), width)
    wanted = None if limits is None else np.array(limits)
    return [float(rate) for rate in max_min_rates(np.array(capacities), table, wanted)]


def filled_slowly(capacities: list[float], uses: list[list[int]], limits: list[float]) -> list[float]:
    """Textbook progressive filling: raise all rates together, one event at a time."""
    level, frozen = 0.0, [False] * len(uses)
    result = [0.0] * len(uses)
    while not all(frozen):
        rising = [flow for flow in range(len(uses)) if not frozen[flow]]
        steps = [limits[flow] - level for flow in rising]
        for capacity, amount in enumerate(capacities):
            through = sum(capacity in uses[flow] for flow in rising)
            if through:
                used = sum(result[flow] for flow in range(len(uses)) if capacity in uses[flow])
                steps.append((amount - used) / through)
        level += max(0.0, min(steps))
        for flow in rising:
            result[flow] = level
        for flow in rising:
            full = any(
                sum(result[other] for other in range(len(uses)) if capacity in uses[other])
                >= capacities[capacity] * (1 - 1e-9) - 1e-9
                for capacity in uses[flow]
            )
            frozen[flow] = full or level >= limits[flow] * (1 - 1e-9)
    return result


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Up to eight capacities and twelve flows, each through one to four of them."""
    amounts = st.one_of(st.sampled_from([0.0, 1.0, 2.0, 10.0, 30.0]), st.floats(0.5, 1000))
    capacities = draw(st.lists(amounts, min_size=1, max_size=8))
    paths = st.lists(st.integers(0, len(capacities) - 1), min_size=1, max_size=4, unique=True)
    uses = draw(st.lists(paths, max_size=12))
    demands = st.one_of(st.just(1e9), st.floats(0.1, 100))
    return capacities, uses, draw(st.lists(demands, min_size=len(uses), max_size=len(uses)))


def loads(capacities: list[float], uses: list[list[int]], found: list[float]) -> NDArray[np.float64]:
    return np.array(
        [
            sum(rate for rate, path in zip(found, uses, strict=True) if capacity in path)
            for capacity in range(len(capacities))
        ]
    )


@pytest.mark.parametrize(("network", "expected"), [
    # A lone flow gets the scarcest of its capacities; several share evenly.
    (([100, 30, 70], [[0, 1, 2]]), [30]), (([90], [[0], [0], [0]]), [30, 30, 30]),
    # The first is held to 10 by capacity 1, so that 80 remain for two.
    (([90, 10], [[0, 1], [0], [0]]), [10, 40, 40]),
    # 0: two flows share 10. Then b has 5 of capacity 1, c gets 15 of it, and d what c leaves of capacity 2.
    (([10, 20, 100], [[0], [0, 1], [1, 2], [2]]), [5, 5, 15, 85]),
    # A limit frees capacity for others, and a capacity of zero stops its own flows only.
    (([90], [[0], [0]], [20, NO_LIMIT]), [20, 70]), (([0, 50], [[0, 1], [1]]), [0, 50]),
    # Infinite capacities bind nobody.
    (([NO_LIMIT, 8], [[0, 1], [0]], [NO_LIMIT, 3]), [8, 3]), (([NO_LIMIT, 8], [[0], [0, 1]]), [NO_LIMIT, 8]),
    (([5], []), []),
])  # fmt: skip
def test_flows_share_what_the_scarcest_capacities_leave(network: tuple[Any, ...], expected: list[float]) -> None:
    assert rates(*network) == expected


@given(networks())
def test_no_capacity_is_overrun(network: Network) -> None:
    capacities, uses, limits = network
    found = rates(*network)
    assert all(rate <= limit * (1 + 1e-9) for rate, limit in zip(found, limits, strict=True))
    assert (loads(capacities, uses, found) <= np.array(capacities) * (1 + 1e-9)).all()


@given(networks())
def test_every_flow_is_held_by_its_limit_or_a_full_capacity(network: Network) -> None:
    capacities, uses, limits = network
    found = rates(*network)
    used = loads(capacities, uses, found)
    for rate, path, limit in zip(found, uses, limits, strict=True):
        holding = [
            capacity
            for capacity in path
            if used[capacity] >= capacities[capacity] * (1 - 1e-9)
            and rate >= max(r for r, p in zip(found, uses, strict=True) if capacity in p) * (1 - 1e-9)
        ]
        assert holding or rate == pytest.approx(limit)


@given(networks())
def test_the_rates_are_those_of_slow_progressive_filling(network: Network) -> None:
    assert rates(*network) == pytest.approx(filled_slowly(*network), rel=1e-6, abs=1e-6)


@given(networks(), st.randoms(use_true_random=False))
def test_the_order_of_flows_does_not_matter(network: Network, random: Random) -> None:
    capacities, uses, limits = network
    order = list(range(len(uses)))
    random.shuffle(order)
    shuffled = rates(capacities, [uses[flow] for flow in order], [limits[flow] for flow in order])
    assert shuffled == pytest.approx([rates(*network)[flow] for flow in order])
