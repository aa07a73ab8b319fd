"""What Kafka 3.9 does differently: a move ends by another rule, and needs its whole target in sync."""

from __future__ import annotations

import pytest

from kreassign.errors import OutcomeUnknown, Unsupported
from kreassign.model import TopicPartition
from kreassign.wire import api
from kreassign.wire.codec import encode_request
from tests.conformance.worlds import Move, World

only_39 = pytest.mark.releases("3.9")
DOWN = 2
Brokers = tuple[int, ...]
pytestmark = [only_39, pytest.mark.keeps_broken]


@pytest.fixture(autouse=True)
def broken(world: World) -> None:
    """A cluster without broker 2."""
    world.only_down(DOWN)


@pytest.mark.parametrize(("before", "target", "expected", "isr"), [
    ((0, 2), (0, 2, 1), Move((0, 2, 1), (1,), ()), {0, 1}),
    ((0, 2), (2, 1), Move((2, 1, 0), (1,), (0,)), {0, 1}),
    ((0, 2, 1), (0, 2), Move((0, 2, 1), (), (1,)), {0, 1}),
])  # fmt: skip
def test_a_move_waits_for_a_dead_replica_that_stays(
    world: World, before: Brokers, target: Brokers, expected: Move, isr: set[int]
) -> None:
    partition = world.create_one(*before)
    world.move(partition, *target)
    world.becomes(partition, expected.replicas, isr, 0)
    assert world.listed(partition) == expected


@pytest.mark.parametrize(("before", "target", "isr"), [
    ((0, 2, 1), (0, 1), {0, 1}),
    ((0, 2), (0,), {0}),
    ((1, 2, 0), (0, 2, 1), {0, 1}),
    ((0, 2), (1,), {1}),
])  # fmt: skip
def test_a_move_ends_where_all_that_stay_are_in_sync(
    world: World, before: Brokers, target: Brokers, isr: set[int]
) -> None:
    partition = world.create_one(*before)
    world.move(partition, *target)
    world.ends(partition)
    world.becomes(partition, target, isr, before[0] if before[0] in target else target[0])


@pytest.mark.parametrize(("before", "first", "back", "epoch"), [
    ((0, 1), (0, 2), (0, 1), 1),
    ((0, 1), (0, 1, 2), (0, 1), 1),
    ((0,), (2,), (0,), 1),
])  # fmt: skip
def test_the_old_list_over_a_running_move_undoes_it(
    world: World, before: Brokers, first: Brokers, back: Brokers, epoch: int
) -> None:
    partition = world.create_one(*before)
    world.move(partition, *first)
    assert world.listed(partition) is not None
    world.move(partition, *back)
    assert world.listed(partition) is None
    assert world.becomes(partition, back, set(back), 0) == epoch


def test_nobody_can_forbid_a_change_of_the_factor(world: World) -> None:
    partition = world.create_one(0, 1)
    with pytest.raises(Unsupported):
        world.client.alter_partition_reassignments({partition: (0,)}, allow_replication_factor_change=False)
    request = api.ALTER_PARTITION_REASSIGNMENTS.request(topics=[], timeout_ms=5_000)
    with pytest.raises(OutcomeUnknown):
        world.exchange(encode_request(1, request, 7, "tests"))


def test_cancelling_works_alike(world: World) -> None:
    partition: TopicPartition = world.create_one(0, 1)
    world.move(partition, 0, 2)
    world.becomes(partition, (0, 2, 1), {0, 1}, 0)
    assert world.cancel(partition).code == 0
    assert world.becomes(partition, (0, 1), {0, 1}, 0) == 1
    assert world.cancel(partition) == (85, None)
