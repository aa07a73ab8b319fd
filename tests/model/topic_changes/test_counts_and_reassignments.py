"""Partition counts and replica lists: what is done, and what is refused with which of KIP-179's codes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.model import TopicPartition, topic_changes
from kreassign.model.error_codes import INVALID_REPLICATION_FACTOR, INVALID_REQUEST, INVALID_TOPIC_EXCEPTION
from tests.model.topic_changes.views import FOO, FOO_0, FOO_1, partition, view

TWO = view(partition(0, (0, 1)), partition(1, (1, 2)), ongoing=frozenset({FOO_1}))


@pytest.mark.parametrize(("wanted", "code", "text"), [
    ([(FOO, 10_003)], 37,
     "The topic foo would get 10001 more partitions; a controller creates at most 10000 per request."),
    ([(FOO, 5), (FOO, 5)], 42, "Duplicate topic name."),
])  # fmt: skip
def test_counts_that_are_refused(wanted: list[tuple[str, int]], code: int, text: str) -> None:
    assert topic_changes.decide_partition_counts(TWO, wanted) == {wanted[0][0]: topic_changes.Refusal(code, text)}


def test_each_topic_has_an_outcome_of_its_own() -> None:
    assert topic_changes.decide_partition_counts(TWO, [(FOO, 10_002), ("nope", 1)]) == {
        FOO: 10_002,
        "nope": topic_changes.Refusal(INVALID_TOPIC_EXCEPTION, "Unable to find a topic named nope."),
    }


@pytest.mark.parametrize(("key", "replicas", "code", "text"), [
    ((FOO, 2), (0,), 39, "Unable to find partition foo:2."),
    ((FOO, -1), (0,), 39, "Unable to find partition foo:-1."),
    ((FOO, 0), (2, 1, 0, 1), 39, "The manual partition assignment includes the broker 1 more than once."),
    ((FOO, 0), (9, 9), 25, "The manual partition assignment includes broker 9, but no such broker is registered."),
    ((FOO, 0), (1, 1, 9), 25, "The manual partition assignment includes broker 9, but no such broker is registered."),
    ((FOO, 1), (9,), 25, "The manual partition assignment includes broker 9, but no such broker is registered."),
    ((FOO, 1), (0,), 60, "A partition reassignment is in progress."),
])  # fmt: skip
def test_targets_that_are_refused(key: tuple[str, int], replicas: tuple[int, ...], code: int, text: str) -> None:
    wanted = TopicPartition(*key)
    assert topic_changes.decide_reassignments(TWO, [(wanted, replicas)]) == {wanted: topic_changes.Refusal(code, text)}


def test_a_partition_named_twice_gets_neither_target() -> None:
    decided = topic_changes.decide_reassignments(TWO, [(FOO_0, (0,)), (FOO_0, (1,))])
    assert decided == {FOO_0: topic_changes.Refusal(INVALID_REQUEST, "Duplicate partition.")}


def test_only_what_shrinks_below_the_least_in_sync_undercuts_it() -> None:
    seen = view(partition(0, (0,)), partition(1, (1, 2, 3)), min_in_sync=2)
    assert topic_changes.unwise_removals(seen, {FOO_0: (4,), FOO_1: (4,)}) == {
        FOO_1: topic_changes.Refusal(
            INVALID_REPLICATION_FACTOR, "Replication factor 1 is below min.insync.replicas=2 of topic foo."
        )
    }
    assert topic_changes.unwise_removals(seen, {FOO_1: (4, 5)}) == {}


def test_an_unread_min_insync_replicas_takes_force_to_shrink() -> None:
    seen = replace(view(partition(0, (0, 1, 2))), min_in_sync={})
    text = "Whether replication factor 1 is below min.insync.replicas of topic foo could not be read."
    assert topic_changes.unwise_removals(seen, {FOO_0: (0,)}) == {FOO_0: topic_changes.Refusal(38, text)}
    assert topic_changes.unwise_removals(seen, {FOO_0: (0,)}, may_undercut_min_in_sync=True) == {}


def test_a_list_that_keeps_a_lagging_replica_for_one_in_sync_is_refused() -> None:
    seen = view(partition(0, (0, 1, 2), isr=(0, 2)))
    refusal = topic_changes.unwise_removals(seen, {FOO_0: (0, 1)}, may_undercut_min_in_sync=True)[FOO_0]
    assert refusal.message.startswith("broker 2, in sync, would go, and broker 1, which is not, would stay")
    assert topic_changes.unwise_removals(seen, {FOO_0: (0, 2)}) == {}
