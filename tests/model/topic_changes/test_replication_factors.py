"""Replication factors: where new replicas go, which go away, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.model import Partition, TopicPartition
from kreassign.model.error_codes import INVALID_REPLICATION_FACTOR
from kreassign.model.topic_changes import BrokerView, Refusal, TopicsView, decide_replication_factors
from tests.model.topic_changes.views import FOO, FOO_0, FOO_1, partition, view

Brokers = tuple[int, ...]


# The topic, the factor asked for, and the replicas of foo-0 (and foo-1) that follow.
PLACES: dict[str, tuple[TopicsView, int, tuple[Brokers, ...]]] = {
    "a new replica goes to the rack that has none": (view(partition(0, (0, 1))), 3, ((0, 1, 2),)),
    "also before an emptier broker": (
        view(partition(0, (0,)), brokers=(BrokerView(0, "a"), BrokerView(1, "a"), BrokerView(2, "b", 9, 1))),
        2,
        ((0, 2),),
    ),
    "within a rack to the broker with the fewest bytes": (
        view(partition(0, (0,)), brokers=(BrokerView(0, "a"), BrokerView(1, "b", 9, 1), BrokerView(2, "b", 5))),
        2,
        ((0, 2),),
    ),
    "of equal bytes to that with the fewest replicas": (
        view(partition(0, (0,)), brokers=(BrokerView(0), BrokerView(1, None, 0, 3), BrokerView(2, None, 0, 2))),
        2,
        ((0, 2),),
    ),
    "never to a broker that may receive nothing": (
        view(partition(0, (0,)), brokers=(BrokerView(0), BrokerView(1, may_receive=False), BrokerView(2, None, 7))),
        2,
        ((0, 2),),
    ),
    "brokers without a rack share none": (
        view(partition(0, (0,)), brokers=(BrokerView(0), BrokerView(1), BrokerView(2, "a", 1))),
        2,
        ((0, 1),),
    ),
    "what the call has placed already counts": (
        view(
            partition(0, (0,)),
            partition(1, (0,)),
            brokers=(BrokerView(0), BrokerView(1), BrokerView(2, None, 1)),
            sizes_bytes={FOO_0: 10, FOO_1: 10},
        ),
        2,
        ((0, 1), (0, 2)),
    ),
    "the leader stays wherever it is in the list": (view(partition(0, (0, 1, 2), leader=2)), 1, ((2,),)),
    "a replica out of sync goes first": (view(partition(0, (0, 1, 2), isr=(0, 2))), 2, ((0, 2),)),
    "the rack that has two loses one": (view(partition(0, (0, 1, 4, 2))), 3, ((0, 1, 2),)),
    "a rack is counted again after each that goes": (
        view(
            partition(0, (0, 1, 2, 3, 4, 5)),
            brokers=tuple(BrokerView(number, rack, number) for number, rack in enumerate("abbaab")),
        ),
        3,
        ((0, 1, 2),),
    ),
    "the fullest broker loses its replica": (
        view(partition(0, (0, 1, 2)), brokers=(BrokerView(0), BrokerView(1, None, 50), BrokerView(2, None, 40))),
        2,
        ((0, 2),),
    ),
    "of equal brokers that with the highest id": (
        view(partition(0, (0, 1, 2)), brokers=(BrokerView(0), BrokerView(1), BrokerView(2))),
        2,
        ((0, 1),),
    ),
    "a broker that is gone is as empty as can be": (
        view(partition(0, (0, 1, 2)), brokers=(BrokerView(0), BrokerView(2, None, 1))),
        2,
        ((0, 1),),
    ),
    "and keeps no replica out of sync": (
        view(partition(0, (0, 9, 2), isr=(0, 2)), brokers=(BrokerView(0), BrokerView(2, None, 5))),
        2,
        ((0, 2),),
    ),
    "towards min.insync.replicas a topic may grow": (view(partition(0, (0,)), min_in_sync=3), 2, ((0, 1),)),
    "min.insync.replicas itself is no undercut": (view(partition(0, (0, 1, 2)), min_in_sync=2), 2, ((0, 1),)),
}


@pytest.mark.parametrize("row", PLACES)
def test_replicas_come_and_go(row: str) -> None:
    seen, factor, lists = PLACES[row]
    assert decide_replication_factors(seen, [(FOO, factor)]) == {FOO: dict(zip((FOO_0, FOO_1), lists, strict=False))}


def test_below_min_insync_replicas_only_if_forced() -> None:
    two_needed = view(partition(0, (0, 1, 2)), min_in_sync=2)
    text = "Replication factor 1 is below min.insync.replicas=2 of topic foo."
    assert decide_replication_factors(two_needed, [(FOO, 1)]) == {FOO: Refusal(38, text)}
    forced = decide_replication_factors(two_needed, [(FOO, 1)], may_undercut_min_in_sync=True)
    assert forced == {FOO: {FOO_0: (0,)}}


def too_many(factor: int, possible: int) -> Refusal:
    return Refusal(
        INVALID_REPLICATION_FACTOR,
        f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor} cannot be "
        f"reached because only {possible} broker(s) are registered or some brokers have all their log directories "
        "cordoned.",
    )


def test_more_replicas_than_brokers_are_refused_in_kafkas_words() -> None:
    two = view(partition(0, (0, 1)))
    assert decide_replication_factors(two, [(FOO, 7)]) == {FOO: too_many(7, 6)}
    assert decide_replication_factors(two, [(FOO, 6)]) == {FOO: {FOO_0: (0, 1, 2, 3, 4, 5)}}


def test_brokers_with_a_replica_count_even_if_they_are_gone() -> None:
    brokers = (BrokerView(0), BrokerView(1, may_receive=False), BrokerView(2, may_receive=False))
    seen = view(partition(0, (9, 1)), brokers=brokers)
    assert decide_replication_factors(seen, [(FOO, 3)]) == {FOO: {FOO_0: (9, 1, 0)}}
    assert decide_replication_factors(seen, [(FOO, 4)]) == {FOO: too_many(4, 3)}


def test_a_topic_with_a_moving_partition_is_refused_by_its_name() -> None:
    moving = view(partition(0, (0, 1)), partition(1, (0, 1)), ongoing=frozenset({FOO_1}))
    text = "A partition reassignment is in progress: foo-1."
    assert decide_replication_factors(moving, [(FOO, 3)]) == {FOO: Refusal(60, text)}
    both = view(partition(0, (0, 1)), partition(1, (0, 1)), ongoing=frozenset({FOO_1, FOO_0}))
    text = "A partition reassignment is in progress: foo-0, foo-1."
    assert decide_replication_factors(both, [(FOO, 2)]) == {FOO: Refusal(60, text)}


def test_only_a_topic_that_loses_replicas_can_undercut_the_least_in_sync() -> None:
    kept = view(partition(0, (0, 1)), min_in_sync=3)
    assert decide_replication_factors(kept, [(FOO, 2)]) == {FOO: {}}
    uneven = view(partition(0, (0, 1)), partition(1, (0, 1, 2)), min_in_sync=3)
    text = "Replication factor 2 is below min.insync.replicas=3 of topic foo."
    assert decide_replication_factors(uneven, [(FOO, 2)]) == {FOO: Refusal(38, text)}


def test_an_unread_min_insync_replicas_takes_force_to_shrink() -> None:
    seen = replace(view(partition(0, (0, 1, 2))), min_in_sync={})
    text = "Whether replication factor 1 is below min.insync.replicas of topic foo could not be read."
    assert decide_replication_factors(seen, [(FOO, 1)]) == {FOO: Refusal(38, text)}
    forced = decide_replication_factors(seen, [(FOO, 1)], may_undercut_min_in_sync=True)
    assert forced == {FOO: {FOO_0: (0,)}}
    assert decide_replication_factors(seen, [(FOO, 4)]) == {FOO: {FOO_0: (0, 1, 2, 3)}}


def test_nothing_goes_where_no_replica_is_known_to_be_in_sync() -> None:
    lost = view(partition(0, (0, 1, 2), isr=(), leader=-1))
    text = "foo-0: no replica is known to be in sync, so none can go."
    assert decide_replication_factors(lost, [(FOO, 2)]) == {FOO: Refusal(38, text)}


SIX = {TopicPartition(FOO, number): 10 for number in range(6)}


def second_replicas(
    first: BrokerView, second: BrokerView, count: int, *, shrinks: bool = False, are_sized: bool = True
) -> list[int]:
    """Second replicas of so many partitions of 10 bytes, for which there are two brokers, or which had both."""
    before = (0, first.id, second.id) if shrinks else (0,)
    partitions = (partition(number, before) for number in range(count))
    seen = view(*partitions, brokers=(BrokerView(0), first, second), sizes_bytes=SIX if are_sized else {})
    targets = decide_replication_factors(seen, [(FOO, 2)])[FOO]
    assert not isinstance(targets, Refusal)
    return [replicas[1] for replicas in targets.values()]


def test_what_was_placed_counts_with_its_bytes_and_as_a_replica() -> None:
    assert second_replicas(BrokerView(1), BrokerView(2, size_bytes=15), 4) == [1, 1, 2, 1]
    assert second_replicas(BrokerView(1), BrokerView(2, size_bytes=20, replica_count=3), 4) == [1, 1, 1, 2]
    assert second_replicas(BrokerView(1), BrokerView(2, replica_count=2), 5, are_sized=False) == [1, 1, 1, 2, 1]


def test_what_goes_counts_no_more() -> None:
    fuller = BrokerView(1, size_bytes=30), BrokerView(2, size_bytes=15)
    assert second_replicas(*fuller, 4, shrinks=True) == [2, 2, 1, 2]
    more = BrokerView(1, size_bytes=9, replica_count=3), BrokerView(2, size_bytes=9, replica_count=1)
    assert second_replicas(*more, 4, shrinks=True, are_sized=False) == [2, 2, 1, 2]


@st.composite
def topics(draw: st.DrawFn) -> TopicsView:
    brokers = tuple(
        BrokerView(number, draw(st.sampled_from([None, "a", "b"])), draw(st.integers(0, 5)), draw(st.integers(0, 5)))
        for number in range(6)
    )
    partitions: list[Partition] = []
    for number in range(draw(st.integers(1, 5))):
        replicas = tuple(draw(st.lists(st.integers(0, 5), min_size=1, max_size=5, unique=True)))
        isr = tuple(draw(st.lists(st.sampled_from(replicas), min_size=1, unique=True)))
        partitions.append(partition(number, replicas, isr=isr, leader=draw(st.sampled_from(isr))))
    sizes = {TopicPartition(FOO, number): draw(st.integers(0, 9)) for number in range(len(partitions))}
    return view(*partitions, brokers=brokers, sizes_bytes=sizes)


@given(topics(), st.integers(1, 6))
def test_every_partition_gets_its_factor_and_keeps_what_it_can(cluster: TopicsView, factor: int) -> None:
    targets = decide_replication_factors(cluster, [(FOO, factor)])[FOO]
    assert not isinstance(targets, Refusal)
    for one in cluster.topics[FOO].partitions:
        replicas = targets.get(one.topic_partition, one.replicas)
        assert len(replicas) == len(set(replicas)) == factor
        assert one.leader in replicas
        kept = tuple(broker for broker in one.replicas if broker in replicas)
        assert kept == replicas[: len(kept)]  # the order stays, and what is new comes last
        out_of_sync_kept = set(kept) - set(one.isr)
        assert not out_of_sync_kept or set(one.isr) <= set(replicas)
