"""The striped placer against Kafka's own placements, given the same sequence of chance."""

from __future__ import annotations

from collections import Counter

import pytest

from kreassign.errors import Infeasible
from kreassign.model.striped import NOBODY, BrokerRing, UsableBroker, place

TOO_FEW = (
    "The target replication factor of 3 cannot be reached because only 2 broker(s) are registered "
    "or some brokers have all their log directories cordoned."
)

Lists = tuple[tuple[int, ...], ...]


class JavaRandom:
    """The generator of Kafka's placement tests: 64 bits of state, numbers drawn as Java's `nextInt` draws them."""

    def __init__(self, state: int = 17) -> None:
        self.state = state

    def randrange(self, stop: int, /) -> int:
        drawn = self._bits(31)
        if stop & (stop - 1) == 0:
            return stop * drawn >> 31
        while drawn - drawn % stop + stop - 1 >= 2**31:
            drawn = self._bits(31)
        return drawn % stop

    def _bits(self, count: int) -> int:
        self.state = (self.state * 2862933555777941757 + 3037000493) % 2**64
        return self.state >> (64 - count)


def alive(*ids: int, rack: str | None = None) -> list[UsableBroker]:
    return [UsableBroker(broker, rack) for broker in ids]


def fenced(*ids: int, rack: str | None = None) -> list[UsableBroker]:
    return [UsableBroker(broker, rack, is_fenced=True) for broker in ids]


def placed(brokers: list[UsableBroker], partition_count: int, replication_factor: int) -> Lists:
    return place(brokers, partition_count, replication_factor, JavaRandom())


def lists(text: str) -> Lists:
    return tuple(tuple(map(int, word)) for word in text.split())


def test_a_ring_starts_one_further_in_every_epoch() -> None:
    ring = BrokerRing([0, 1, 2, 3])
    assert [ring.next(0) for _ in range(6)] == [0, 1, 2, 3, NOBODY, NOBODY]
    assert [ring.next(1) for _ in range(5)] == [1, 2, 3, 0, NOBODY]


def test_an_empty_ring_has_nobody() -> None:
    assert BrokerRing([]).next(1) == NOBODY


def test_brokers_without_racks() -> None:
    assert placed(alive(0, 3, 2, 1), 5, 3) == lists("230 301 012 123 102")


def test_a_fenced_broker_is_avoided_while_others_suffice() -> None:
    brokers = [*alive(3), *fenced(1), *alive(0, 4, 2)]
    assert placed(brokers, 5, 4) == lists("3402 4023 0234 2340 0432")


def test_a_fenced_broker_serves_when_needed_but_never_leads() -> None:
    assert placed([*alive(3), *fenced(1), *alive(2)], 4, 3) == lists("321 231 321 231")


def test_racks_without_a_live_broker_hold_replicas_but_do_not_lead() -> None:
    brokers = [
        *alive(11, 10, rack="1"),
        *fenced(30, 31, rack="3"),
        *fenced(20, 21, rack="2"),
        *alive(41, rack="4"),
        *fenced(40, rack="4"),
    ]
    assert placed(brokers, 3, 4) == ((41, 11, 21, 30), (10, 20, 31, 41), (41, 21, 30, 11))


def test_many_partitions_spread_as_kafka_spreads_them() -> None:
    counts = Counter(placed(alive(0, 1, 2, 3), 200, 2))
    assert counts == {
        (0, 1): 14, (0, 2): 22, (0, 3): 14, (1, 0): 17, (1, 2): 17, (1, 3): 16,
        (2, 0): 13, (2, 1): 17, (2, 3): 20, (3, 0): 20, (3, 1): 19, (3, 2): 11,
    }  # fmt: skip


@pytest.mark.parametrize(("brokers", "replication_factor", "message"), [
    (alive(0, 1), 0, "Invalid replication factor 0: the replication factor must be positive."),
    (alive(0, 1), -1, "Invalid replication factor -1: the replication factor must be positive."),
    (fenced(0, 1, 2), 3, "All brokers are currently fenced, or have all their log directories cordoned."),
    ([], 1, "All brokers are currently fenced, or have all their log directories cordoned."),
    (alive(10, 11, rack="1"), 3, TOO_FEW),
])  # fmt: skip
def test_what_cannot_be_placed_is_refused_in_kafkas_words(
    brokers: list[UsableBroker], replication_factor: int, message: str
) -> None:
    with pytest.raises(Infeasible) as caught:
        placed(brokers, 1, replication_factor)
    assert str(caught.value) == message
    assert caught.value.goals == ("replication factor",)


class NoChance:
    """The first of everything, always."""

    def randrange(self, stop: int, /) -> int:
        return 0 * range(stop)[0]


def test_without_chance_racks_and_brokers_are_in_their_order() -> None:
    brokers = [*alive(7, 2, rack="b"), *alive(9, 4, rack="a"), *alive(8)]
    assert place(brokers, 2, 5, NoChance()) == lists("84297 97842")
    # When each has led once they are shuffled: without chance to 2, 3, 1.
    assert place(alive(3, 1, 2), 6, 2, NoChance()) == lists("12 23 31 23 31 12")


def test_a_broker_without_a_rack_comes_before_those_in_racks() -> None:
    assert place([*alive(1, rack=""), *alive(2)], 1, 2, NoChance()) == ((2, 1),)


def test_fenced_brokers_take_turns_for_ever_beside_a_single_live_one() -> None:
    placements = placed([*alive(0), *fenced(1, 2, 3)], 9, 2)
    assert len(set(placements[:3])) == 3
    assert placements == placements[:3] * 3


def test_no_partitions_need_no_placement_but_brokers() -> None:
    assert placed(alive(0, 1), 0, 2) == ()
    assert placed(alive(0, 1), 1, 2)[0] in ((0, 1), (1, 0))
    with pytest.raises(Infeasible):
        placed([], 0, 1)


def test_a_ring_may_start_anywhere_and_goes_on_from_there() -> None:
    ring = BrokerRing([5, 6, 7], start=2)
    assert [ring.next(0) for _ in range(4)] == [7, 5, 6, NOBODY]
    assert [ring.next(3) for _ in range(4)] == [5, 6, 7, NOBODY]
    assert [BrokerRing([5, 6, 7]).next(0), BrokerRing([5]).next(9), BrokerRing([5, 6]).next(1)] == [5, 5, 6]


@pytest.mark.parametrize("racks", [1, 2, 3])
def test_no_partition_has_a_broker_twice_and_racks_share_leaders(racks: int) -> None:
    brokers = [UsableBroker(number, str(number % racks)) for number in range(6)]
    placements = placed(brokers, 12, 4)
    assert all(len(set(replicas)) == 4 for replicas in placements)
    assert set(Counter(replicas[0] for replicas in placements).values()) == {2}
