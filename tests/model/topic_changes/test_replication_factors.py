"""Replication factors: where new replicas go, which go away, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.model import Partition, TopicPartition
from kreassign.model.error_codes import INVALID_REPLICATION_FACTOR
from kreassign.model.topic_changes import (
    BrokerView,
    Refusal,
    TopicsView,
    decide_replication_factors,
)
from tests.model.topic_changes.views import FOO, FOO_0, FOO_1, partition, view


def test_a_new_replica_goes_to_the_rack_that_has_none() -> None:
    decided = decide_replication_factors(view(partition(0, (0, 1))), [(FOO, 3)])
    assert decided == {FOO: {FOO_0: (0, 1, 2)}}


def test_a_rack_that_has_none_comes_before_an_emptier_broker() -> None:
    brokers = (BrokerView(0, "a"), BrokerView(1, "a"), BrokerView(2, "b", size_bytes=9, replica_count=1))
    decided = decide_replication_factors(view(partition(0, (0,)), brokers=brokers), [(FOO, 2)])
    assert decided == {FOO: {FOO_0: (0, 2)}}


def test_within_a_rack_the_broker_with_the_fewest_bytes_is_taken() -> None:
    brokers = (BrokerView(0, "a"), BrokerView(1, "b", size_bytes=9, replica_count=1), BrokerView(2, "b", size_bytes=5))
    decided = decide_replication_factors(view(partition(0, (0,)), brokers=brokers), [(FOO, 2)])
    assert decided == {FOO: {FOO_0: (0, 2)}}


def test_of_brokers_with_as_many_bytes_that_with_the_fewest_replicas_is_taken() -> None:
    brokers = (BrokerView(0), BrokerView(1, replica_count=3), BrokerView(2, replica_count=2))
    decided = decide_replication_factors(view(partition(0, (0,)), brokers=brokers), [(FOO, 2)])
    assert decided == {FOO: {FOO_0: (0, 2)}}


def test_what_the_call_has_placed_already_counts() -> None:
    brokers = (BrokerView(0), BrokerView(1), BrokerView(2, size_bytes=1))
    sizes = {FOO_0: 10, FOO_1: 10}
    decided = decide_replication_factors(
        view(partition(0, (0,)), partition(1, (0,)), brokers=brokers, sizes_bytes=sizes), [(FOO, 2)]
    )
    assert decided == {FOO: {FOO_0: (0, 1), FOO_1: (0, 2)}}


def test_a_broker_that_may_receive_nothing_gets_nothing() -> None:
    brokers = (BrokerView(0), BrokerView(1, may_receive=False), BrokerView(2, size_bytes=7))
    decided = decide_replication_factors(view(partition(0, (0,)), brokers=brokers), [(FOO, 2)])
    assert decided == {FOO: {FOO_0: (0, 2)}}


def test_the_leader_stays_wherever_it_is_in_the_list() -> None:
    decided = decide_replication_factors(view(partition(0, (0, 1, 2), leader=2)), [(FOO, 1)])
    assert decided == {FOO: {FOO_0: (2,)}}


def test_a_replica_out_of_sync_goes_first() -> None:
    decided = decide_replication_factors(view(partition(0, (0, 1, 2), isr=(0, 2))), [(FOO, 2)])
    assert decided == {FOO: {FOO_0: (0, 2)}}


def test_the_rack_that_has_two_loses_one() -> None:
    decided = decide_replication_factors(view(partition(0, (0, 1, 4, 2))), [(FOO, 3)])
    assert decided == {FOO: {FOO_0: (0, 1, 2)}}


def test_the_fullest_broker_loses_its_replica() -> None:
    brokers = (BrokerView(0), BrokerView(1, size_bytes=50), BrokerView(2, size_bytes=40))
    decided = decide_replication_factors(view(partition(0, (0, 1, 2)), brokers=brokers), [(FOO, 2)])
    assert decided == {FOO: {FOO_0: (0, 2)}}


def test_a_topic_that_has_its_factor_already_needs_nothing() -> None:
    assert decide_replication_factors(view(partition(0, (0, 1))), [(FOO, 2)]) == {FOO: {}}


def test_below_min_insync_replicas_only_if_forced() -> None:
    two_needed = view(partition(0, (0, 1, 2)), min_in_sync=2)
    text = "Replication factor 1 is below min.insync.replicas=2 of topic foo."
    assert decide_replication_factors(two_needed, [(FOO, 1)]) == {FOO: Refusal(38, text)}
    forced = decide_replication_factors(two_needed, [(FOO, 1)], may_undercut_min_in_sync=True)
    assert forced == {FOO: {FOO_0: (0,)}}


def test_a_topic_that_grows_towards_min_insync_replicas_is_let() -> None:
    decided = decide_replication_factors(view(partition(0, (0,)), min_in_sync=3), [(FOO, 2)])
    assert decided == {FOO: {FOO_0: (0, 1)}}


@pytest.mark.parametrize(
    ("wanted", "code", "text"),
    [
        ([("nope", 2)], 17, "Unable to find a topic named nope."),
        ([(FOO, 0)], 38, "Replication factor must be larger than 0."),
        ([(FOO, -1)], 38, "Replication factor must be larger than 0."),
        ([(FOO, 2), (FOO, 3)], 42, "Duplicate topic name."),
    ],
)
def test_what_is_refused(wanted: list[tuple[str, int]], code: int, text: str) -> None:
    decided = decide_replication_factors(view(partition(0, (0, 1))), wanted)
    assert decided == {wanted[0][0]: Refusal(code, text)}


def test_more_replicas_than_brokers_are_refused_in_kafkas_words() -> None:
    (refusal,) = decide_replication_factors(view(partition(0, (0, 1))), [(FOO, 7)]).values()
    assert isinstance(refusal, Refusal)
    assert refusal.code == INVALID_REPLICATION_FACTOR
    assert refusal.message.startswith("Unable to replicate the partition 7 time(s): The target replication factor of 7")
    assert "only 6 broker(s) are registered" in refusal.message


def test_a_topic_of_which_something_moves_is_refused_and_the_partition_named() -> None:
    moving = view(partition(0, (0, 1)), partition(1, (0, 1)), ongoing=frozenset({FOO_1}))
    text = "A partition reassignment is in progress: foo-1."
    assert decide_replication_factors(moving, [(FOO, 3)]) == {FOO: Refusal(60, text)}


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


def test_replicas_that_the_call_has_placed_already_count_where_nobody_knows_sizes() -> None:
    brokers = (BrokerView(0), BrokerView(1), BrokerView(2))
    decided = decide_replication_factors(view(partition(0, (0,)), partition(1, (0,)), brokers=brokers), [(FOO, 2)])
    assert decided == {FOO: {FOO_0: (0, 1), FOO_1: (0, 2)}}
