"""Throttles that are too low for what producers write."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.errors import IllegalPlan
from kreassign.executor.events import PlannedMove
from kreassign.executor.preflight.starvation import Starvation, measure_writes, starved
from kreassign.executor.throttle.rates import BrokerRate, ThrottleRates
from kreassign.model import TopicPartition
from kreassign.operations.run import measured
from tests.executor.twin_runs import World, tp

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
ONE = PlannedMove(T0, (0, 1), (2, 1), 1_000)
TWO = PlannedMove(T1, (0, 1), (2, 3), 1_000)


def test_a_rate_above_what_is_written_is_enough() -> None:
    assert starved([ONE], {T0: 99.0}, ThrottleRates(100)) == ()
    assert starved([ONE], {}, ThrottleRates(100)) == ()


def test_a_rate_of_no_more_than_what_is_written_never_ends() -> None:
    assert starved([ONE], {T0: 100.0}, ThrottleRates(100)) == (Starvation("t-0", 100.0, 100, is_certain=True),)


def test_the_source_sends_each_new_copy_separately() -> None:
    assert starved([TWO], {T1: 60.0}, ThrottleRates(100)) == (Starvation("t-1", 120.0, 100, is_certain=True, copies=2),)


def test_a_destination_is_told_of_when_all_that_comes_in_is_too_much() -> None:
    (found,) = starved([ONE, TWO], {T0: 60.0, T1: 45.0}, ThrottleRates(100))
    assert (found.subject, found.needed_bytes_per_s, found.is_certain) == ("broker 2", 105.0, False)


def test_a_partition_that_only_changes_its_order_needs_nothing() -> None:
    assert starved([PlannedMove(T0, (0, 1), (1, 0), 1_000)], {T0: 500.0}, ThrottleRates(100)) == ()


def test_the_sentence_names_both_rates_and_what_to_do() -> None:
    assert str(Starvation("t-0", 250.4, 100, is_certain=True)) == (
        "t-0: at 100 B/s it never ends, for producers write 250 B/s meanwhile; the least rate that works is 251 B/s, "
        "give more with --throttle or --throttle-broker"
    )


def test_the_sentence_about_several_copies_tells_what_is_written_and_what_all_of_them_need() -> None:
    (found,) = starved([TWO], {T1: 60.0}, ThrottleRates(100))
    assert "producers write 60 B/s meanwhile for each of 2 copies; the least rate that works is 121 B/s" in str(found)


def test_a_broker_is_judged_by_its_own_rate() -> None:
    slow = BrokerRate(2, 50)
    assert starved([ONE], {T0: 60.0}, ThrottleRates(None, (slow,))) == (Starvation("t-0", 60.0, 50, is_certain=True),)
    assert starved([ONE], {T0: 60.0}, ThrottleRates(50, (BrokerRate(2, 70), BrokerRate(1, 90)))) == ()


def test_a_source_without_a_limit_slows_nothing() -> None:
    assert starved([TWO], {T1: 60.0}, ThrottleRates(100, (BrokerRate(0, None),))) == ()


def test_a_run_that_would_never_end_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    world = World(tmp_path, [[0, 1]], write_bytes_per_s=50_000)
    slow, fast = world.prepared({0: (2, 1)}, throttle=40_000), world.prepared({0: (2, 1)}, throttle=80_000)
    with pytest.raises(IllegalPlan, match=r"t-0: at 40000 B/s it never ends, for producers write \d+ B/s"):
        measured(world.client, slow, 20, world.transport)
    measured(world.client, fast, 20, world.transport)
    assert world.throttles == {}


def test_writes_are_measured_over_a_while(tmp_path: Path) -> None:
    world = World(tmp_path, [[0, 1]], write_bytes_per_s=50_000)
    started = world.prepared({0: (2, 1)})
    found = measure_writes(world.client, world.transport, started.moves, 20)
    assert found[tp(0)] == pytest.approx(50_000, rel=0.1)
