"""Replicas that may go when a factor falls, and notes on changed factors."""

from __future__ import annotations

from itertools import combinations, permutations

import pytest

from kreassign.model import NO_LEADER, Partition, TopicPartition
from kreassign.model.replication_factor import (
    FactorChanges,
    dispensable,
    factor_changes,
    lost_in_sync,
    required_in_sync,
    undercut,
)

T0 = TopicPartition("t", 0)


def partition(replicas: str, isr: str, leader: int | None = None, **more: tuple[int, ...]) -> Partition:
    """A partition whose brokers are single digits, led by the first in sync."""
    in_sync = tuple(map(int, isr))
    led = (in_sync[0] if in_sync else NO_LEADER) if leader is None else leader
    return Partition(T0, tuple(map(int, replicas)), in_sync, led, **more)


@pytest.mark.parametrize(("replicas", "isr", "target", "is_refused"), [
    ("123", "123", "12", False),
    ("123", "13", "13", False),
    ("123", "13", "12", True),
    ("123", "1", "23", True),
    ("123", "1", "12", False),
    ("123", "1", "24", False),  # the copy on 4 is in sync before anything goes
    ("123", "12", "324", False),
    ("123", "12", "34", True),
    ("123", "12", "45", False),
    ("123", "", "12", True),
    ("123", "", "321", False),
    ("123", "", "1234", False),
    ("1234", "12", "34", True),
    ("1234", "12", "13", True),
    ("1234", "12", "12", False),
])  # fmt: skip
def test_a_target_keeps_as_many_in_sync_as_it_can(replicas: str, isr: str, target: str, is_refused: bool) -> None:
    assert (lost_in_sync(partition(replicas, isr), tuple(map(int, target))) is not None) is is_refused


def test_a_refusal_names_who_would_go_and_who_would_stay() -> None:
    assert lost_in_sync(partition("123", "13"), (1, 2)) == (
        "broker 3, in sync, would go, and broker 2, which is not, would stay: wait until it is in sync, or remove that "
        "one"
    )


def test_eligible_leaders_count_where_the_isr_is_empty() -> None:
    offline = partition("123", "", eligible_leaders=(3,))
    assert lost_in_sync(offline, (2, 3)) is None
    assert lost_in_sync(offline, (1, 2)) is not None


def test_those_that_go_first_are_never_missed() -> None:
    for count in range(1, 4):
        for isr in combinations((1, 2, 3), count):
            for leader in isr:
                one = partition("123", "".join(map(str, isr)), leader)
                for order in permutations(one.replicas):
                    first = dispensable(one, order)
                    assert leader not in first
                    assert all(lost_in_sync(one, [left for left in order if left != gone]) is None for gone in first)


@pytest.mark.parametrize(
    ("factor", "least", "told"),
    [
        (2, 2, None),
        (3, 2, None),
        (1, 2, "ask for 1 replica then, so a single copy acknowledges acks=all; before Kafka 3.7 they refuse acks=all"),
        (
            2,
            3,
            "2 replicas then, so acks=all is refused while one is out of sync; before Kafka 3.7 it is always refused",
        ),
    ],
)
def test_a_factor_below_min_insync_replicas_lowers_what_acks_all_means(
    factor: int, least: int, told: str | None
) -> None:
    found = undercut(factor, least)
    assert (found is None) is (told is None)
    assert told is None or told in str(found)
    assert required_in_sync(least, factor) == min(least, factor)


def changes(targets: dict[int, int], present: dict[int, int], **min_isr: int) -> FactorChanges:
    lists = ({TopicPartition("t", one): tuple(range(many)) for one, many in of.items()} for of in (targets, present))
    return FactorChanges(factor_changes(*lists), min_isr)


def test_what_falls_is_told_first_and_what_rises_last() -> None:
    found = changes({0: 2, 1: 2, 2: 4, 3: 3, 9: 1}, {0: 3, 1: 3, 2: 3, 3: 3}, t=3)
    falls, below, rises = found.sentences
    assert falls == "replication factor of 2 partitions falls from 3 to 2: t-0, t-1"
    assert below == f"topic t: {undercut(2, 3)}"
    assert rises == "replication factor of 1 partition rises from 3 to 4: t-2"


def test_many_partitions_are_counted() -> None:
    found = changes(dict.fromkeys(range(7), 1), dict.fromkeys(range(7), 2), t=1)
    assert found.sentences == (
        "replication factor of 7 partitions falls from 2 to 1: t-0, t-1, t-2, t-3, t-4 and 2 more",
    )


@pytest.mark.parametrize(("present", "target", "min_isr", "is_needed"), [
    (3, 2, {"t": 1}, True),
    (2, 3, {"t": 2}, False),
    (1, 2, {"t": 3}, True),
    (1, 2, {}, True),
    (2, 2, {"t": 3}, False),
    (2, 2, {}, False),
])  # fmt: skip
def test_consent_is_needed_for_less_than_is_known_to_be_enough(
    present: int, target: int, min_isr: dict[str, int], is_needed: bool
) -> None:
    assert changes({0: target}, {0: present}, **min_isr).needs_consent is is_needed
