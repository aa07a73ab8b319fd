"""Kinds of faults that a campaign strikes, and those that it strikes together."""

from __future__ import annotations

from collections import Counter
from random import Random

from testbed import Listener
from tests.torture.fault import ATTEMPTS, Fault, Order
from tests.torture.faults import FAULTS


def drawn(order: Order, count: int) -> list[list[Fault]]:
    runs: list[list[Fault]] = []
    while sum(map(len, runs)) < count:
        runs.append(order.next(5, harmless=len(runs) % 2 == 1))
    return runs


def test_every_kind_has_its_turn_and_slow_ones_a_run_of_their_own() -> None:
    runs = drawn(Order(FAULTS, Random(1)), 2 * len(FAULTS))
    times = Counter(fault.name for run in runs for fault in run)
    assert times.keys() == {fault.name for fault in FAULTS}
    once = {fault.name for fault in FAULTS if fault.once}
    assert all(times[name] == 1 for name in once)
    assert all(len(run) == 1 for run in runs if run[0].name in once)


def test_a_proxy_does_one_thing_at_a_run_by_one_listener() -> None:
    for run in drawn(Order(FAULTS, Random(2)), 150):
        listeners = [fault.listener for fault in run if fault.listener is not None]
        assert len(set(listeners)) <= 1
        assert listeners.count(Listener.PROXIED) <= 1


def test_what_could_not_be_struck_is_drawn_again_a_few_times() -> None:
    order = Order(FAULTS, Random(3))
    (first, *_) = order.next(1, harmless=False)
    for _ in range(ATTEMPTS - 1):
        order.put_off(first)
        assert order.next(1, harmless=False) == [first]
    order.put_off(first)
    assert order.next(1, harmless=False) != [first]
