"""The rates of a throttle: one for all brokers, others for some."""

from __future__ import annotations

from kreassign.model.throttle import NO_THROTTLE, AdaptiveThrottle, BrokerRate, ThrottleRates

MIXED = ThrottleRates(100, (BrokerRate(1, 20), BrokerRate(3, 500)))


def test_a_broker_has_its_own_rate_or_that_of_all() -> None:
    assert [MIXED.of(broker) for broker in (0, 1, 3)] == [100, 20, 500]
    assert NO_THROTTLE.of(1) is None


def test_a_single_broker_can_be_without_a_limit_or_the_only_one_with_it() -> None:
    free, bound = ThrottleRates(100, (BrokerRate(1, None),)), ThrottleRates(None, (BrokerRate(1, 20),))
    assert (free.of(1), free.is_limited, bound.of(0), bound.is_limited) == (None, True, None, True)
    assert not ThrottleRates(None, (BrokerRate(1, None),)).is_limited


def test_the_slowest_and_the_fastest_are_of_all_brokers() -> None:
    assert (MIXED.slowest_bytes_per_s, MIXED.fastest_bytes_per_s) == (20, 500)
    assert (NO_THROTTLE.slowest_bytes_per_s, NO_THROTTLE.fastest_bytes_per_s) == (None, None)
    some = ThrottleRates(None, (BrokerRate(1, 20),)), ThrottleRates(100, (BrokerRate(1, None),))
    assert [(one.slowest_bytes_per_s, one.fastest_bytes_per_s) for one in some] == [(20, None), (100, None)]


def test_another_rate_for_some_brokers_leaves_the_others_theirs() -> None:
    assert MIXED.changed(7, (3, 2)) == ThrottleRates(100, (BrokerRate(1, 20), BrokerRate(2, 7), BrokerRate(3, 7)))
    assert MIXED.changed(None, (1,)).of(1) is None


def test_the_first_of_several_rates_of_a_broker_counts() -> None:
    twice = ThrottleRates(100, (BrokerRate(1, None), BrokerRate(1, 7)))
    assert (twice.of(1), twice.changed(9, (2, 0)).of(1)) == (None, None)
    changed = (BrokerRate(0, 9), BrokerRate(1, None), BrokerRate(1, 7), BrokerRate(2, 9))
    assert twice.changed(9, (2, 0)) == ThrottleRates(100, changed)


def test_another_rate_for_all_is_that_of_every_broker() -> None:
    assert MIXED.changed(7) == ThrottleRates(7)
    assert MIXED.changed(None) == NO_THROTTLE


def test_a_throttle_that_follows_traffic_has_no_known_rate() -> None:
    rates = NO_THROTTLE.changed(None, adaptive=AdaptiveThrottle(1_000))
    assert (rates.is_limited, rates.slowest_bytes_per_s, rates.fastest_bytes_per_s) == (True, None, None)
    per_broker = rates.changed(50, (3,))
    assert (per_broker.adaptive, per_broker.of(3), per_broker.has_own_rate(3), per_broker.has_own_rate(2)) == (
        AdaptiveThrottle(1_000),
        50,
        True,
        False,
    )
    assert per_broker.changed(50) == ThrottleRates(50)


def test_rates_of_brokers_come_by_broker_and_each_once() -> None:
    assert ThrottleRates(100).changed(7, (10, 2, 9, 2)).per_broker == tuple(BrokerRate(one, 7) for one in (2, 9, 10))
    assert MIXED.changed(None, (2,)).per_broker == (BrokerRate(1, 20), BrokerRate(2, None), BrokerRate(3, 500))
