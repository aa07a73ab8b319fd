"""Imagined topics: the same for the same seed, racks apart, as skewed as asked for."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from kreassign.errors import InputError
from kreassign.twin.scenario import Place, shares

RACKS = {0: "a", 1: "b", 2: "c", 3: "a", 4: "b", 5: "c"}
NO_RACKS = dict.fromkeys(range(6))


@pytest.mark.parametrize("skew", [0, 1.5])
def test_every_partition_has_its_replicas_in_different_racks(skew: float) -> None:
    for replicas in Place(RACKS, skew).draw(200, 3, random.Random(1)):
        assert {RACKS[broker] for broker in replicas} == {"a", "b", "c"}


@pytest.mark.parametrize("skew", [0, 1.5, 20])
def test_replicas_are_on_different_brokers_even_where_racks_are_too_few(skew: float) -> None:
    for replicas in Place(dict.fromkeys(range(3), "a") | {3: None}, skew).draw(50, 4, random.Random(1)):
        assert sorted(replicas) == [0, 1, 2, 3]


def test_without_skew_brokers_hold_equally_much() -> None:
    counts = Counter(broker for replicas in Place(NO_RACKS).draw(60, 2, random.Random(1)) for broker in replicas)
    assert set(counts.values()) == {20}


def test_with_skew_the_first_brokers_hold_most() -> None:
    drawn = Place(NO_RACKS, 1).draw(6000, 1, random.Random(1))
    counts = Counter(broker for replicas in drawn for broker in replicas)
    for broker in NO_RACKS:
        assert counts[broker] == pytest.approx(6000 / (broker + 1) / 2.45, rel=0.1)


def test_the_same_seed_draws_the_same() -> None:
    one, other = (Place(RACKS, 1).draw(20, 3, random.Random(5)) for _ in range(2))
    assert one == other


def test_more_replicas_than_brokers_are_refused() -> None:
    with pytest.raises(InputError, match="3 replicas need as many brokers; there are 0,1"):
        Place({0: None, 1: None}).draw(1, 3, random.Random(1))


def test_shares_are_1_on_average_whatever_the_spread() -> None:
    assert list(shares(3, 0, random.Random(1))) == [1.0, 1.0, 1.0]
    drawn = list(shares(20_000, 0.7, random.Random(1)))
    assert sum(drawn) / len(drawn) == pytest.approx(1, rel=0.02)
    assert max(drawn) > 5
