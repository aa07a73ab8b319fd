"""The rates of a throttle: one for all brokers, others for some."""

from __future__ import annotations

from kreassign.executor.event_json import from_json, to_json
from kreassign.executor.events import RateRequested, RunStarted, TrafficSeen
from kreassign.executor.throttle.adaptive import Auto, BrokerTraffic, Capacity, PartitionWrites
from kreassign.executor.throttle.rates import NO_THROTTLE, BrokerRate, Rates
from kreassign.model import TopicPartition

MIXED = Rates(100, (BrokerRate(1, 20), BrokerRate(3, 500)))


def test_a_broker_has_its_own_rate_or_that_of_all() -> None:
    assert [MIXED.of(broker) for broker in (0, 1, 3)] == [100, 20, 500]
    assert NO_THROTTLE.of(1) is None


def test_a_single_broker_can_be_without_a_limit_or_the_only_one_with_it() -> None:
    free, bound = Rates(100, (BrokerRate(1, None),)), Rates(None, (BrokerRate(1, 20),))
    assert (free.of(1), free.is_limited, bound.of(0), bound.is_limited) == (None, True, None, True)
    assert not Rates(None, (BrokerRate(1, None),)).is_limited


def test_the_slowest_and_the_fastest_are_of_all_brokers() -> None:
    assert (MIXED.slowest_bytes_per_s, MIXED.fastest_bytes_per_s) == (20, 500)
    assert (NO_THROTTLE.slowest_bytes_per_s, NO_THROTTLE.fastest_bytes_per_s) == (None, None)
    some = Rates(None, (BrokerRate(1, 20),)), Rates(100, (BrokerRate(1, None),))
    assert [(one.slowest_bytes_per_s, one.fastest_bytes_per_s) for one in some] == [(20, None), (100, None)]


def test_another_rate_for_some_brokers_leaves_the_others_theirs() -> None:
    assert MIXED.changed(7, (3, 2)) == Rates(100, (BrokerRate(1, 20), BrokerRate(2, 7), BrokerRate(3, 7)))
    assert MIXED.changed(None, (1,)).of(1) is None


def test_another_rate_for_all_is_that_of_every_broker() -> None:
    assert MIXED.changed(7) == Rates(7)
    assert MIXED.changed(None) == NO_THROTTLE


def test_rates_are_kept_in_the_journal_and_older_journals_have_one_for_all() -> None:
    started = RunStarted(0, "r", "c", (), 100, (), broker_rates=MIXED.own)
    assert from_json("RunStarted", to_json(started)) == started
    assert started.rates == MIXED
    older = to_json(RunStarted(0, "r", "c", (), 100, ())).replace(',"broker_rates":[],"auto":null', "")
    assert "broker_rates" not in older
    assert from_json("RunStarted", older) == RunStarted(0, "r", "c", (), 100, ())
    assert from_json("RateRequested", '{"at_ms":1,"request":2,"rate_bytes_per_s":3}') == RateRequested(1, 2, 3)


def test_a_throttle_that_follows_the_traffic_has_no_rate_that_is_known_beforehand() -> None:
    rates = NO_THROTTLE.changed(None, auto=Auto(1_000))
    assert (rates.is_limited, rates.slowest_bytes_per_s, rates.fastest_bytes_per_s) == (True, None, None)
    single = rates.changed(50, (3,))
    assert (single.auto, single.of(3), single.is_own(3), single.is_own(2)) == (Auto(1_000), 50, True, False)
    assert single.changed(50) == Rates(50)


def test_capacities_are_kept_in_the_journal() -> None:
    auto = Auto(1_000, (Capacity(3, 50),), 7)
    asked = RateRequested(1, 2, None, (), auto)
    assert from_json("RateRequested", to_json(asked)) == asked
    seen = TrafficSeen(1, (BrokerTraffic(0, 1.5, 2.0),), (PartitionWrites(TopicPartition("t", 0), 3.0),))
    assert from_json("TrafficSeen", to_json(seen)) == seen
