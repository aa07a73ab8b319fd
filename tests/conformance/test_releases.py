"""Differences of Kafka 3.9: a move ends by another rule, and needs its whole target in sync."""

from __future__ import annotations

import pytest

from kreassign.errors import OutcomeUnknown, Unsupported
from kreassign.model import TopicPartition
from kreassign.wire import api
from kreassign.wire.codec import encode_request
from tests.conformance.clusters import Cluster, Move

only_39 = pytest.mark.releases("3.9")
DOWN = 2
Brokers = tuple[int, ...]
pytestmark = [only_39, pytest.mark.keeps_broken]


@pytest.fixture(autouse=True)
def broken(cluster: Cluster) -> None:
    """A cluster without broker 2."""
    cluster.only_down(DOWN)


@pytest.mark.parametrize(("before", "target", "expected", "isr"), [
    ((0, 2), (0, 2, 1), Move((0, 2, 1), (1,), ()), {0, 1}),
    ((0, 2), (2, 1), Move((2, 1, 0), (1,), (0,)), {0, 1}),
    ((0, 2, 1), (0, 2), Move((0, 2, 1), (), (1,)), {0, 1}),
])  # fmt: skip
def test_a_move_waits_for_a_dead_replica_that_stays(
    cluster: Cluster, before: Brokers, target: Brokers, expected: Move, isr: set[int]
) -> None:
    partition = cluster.create_one(*before)
    cluster.move(partition, *target)
    cluster.becomes(partition, expected.replicas, isr, 0)
    assert cluster.listed(partition) == expected


@pytest.mark.parametrize(("before", "target", "isr"), [
    ((0, 2, 1), (0, 1), {0, 1}),
    ((0, 2), (0,), {0}),
    ((1, 2, 0), (0, 2, 1), {0, 1}),
    ((0, 2), (1,), {1}),
])  # fmt: skip
def test_a_move_ends_where_all_that_stay_are_in_sync(
    cluster: Cluster, before: Brokers, target: Brokers, isr: set[int]
) -> None:
    partition = cluster.create_one(*before)
    cluster.move(partition, *target)
    cluster.ends(partition)
    cluster.becomes(partition, target, isr, before[0] if before[0] in target else target[0])


@pytest.mark.parametrize(("before", "first", "back", "epoch"), [
    ((0, 1), (0, 2), (0, 1), 1),
    ((0, 1), (0, 1, 2), (0, 1), 1),
    ((0,), (2,), (0,), 1),
])  # fmt: skip
def test_the_old_list_over_a_running_move_undoes_it(
    cluster: Cluster, before: Brokers, first: Brokers, back: Brokers, epoch: int
) -> None:
    partition = cluster.create_one(*before)
    cluster.move(partition, *first)
    assert cluster.listed(partition) is not None
    cluster.move(partition, *back)
    assert cluster.listed(partition) is None
    # Until brokers hear of both changes they show the list from before, which is the same: only the epoch tells.
    cluster.becomes(partition, back, set(back), 0, epoch=epoch)
    assert cluster.epoch(partition) == epoch


def test_nobody_can_forbid_a_change_of_the_factor(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 1)
    with pytest.raises(Unsupported):
        cluster.client.alter_partition_reassignments({partition: (0,)}, allow_replication_factor_change=False)
    request = api.ALTER_PARTITION_REASSIGNMENTS.request(topics=[], timeout_ms=5_000)
    with pytest.raises(OutcomeUnknown):
        cluster.exchange(encode_request(1, request, 7, "tests"))


def test_cancelling_works_alike(cluster: Cluster) -> None:
    partition: TopicPartition = cluster.create_one(0, 1)
    cluster.move(partition, 0, 2)
    cluster.becomes(partition, (0, 2, 1), {0, 1}, 0)
    assert cluster.cancel(partition).code == 0
    cluster.becomes(partition, (0, 1), {0, 1}, 0, epoch=1)
    assert cluster.cancel(partition) == (85, None)
