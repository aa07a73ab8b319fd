"""A cluster as it was found, as a value."""

from __future__ import annotations

import pytest

from kreassign.errors import InputError
from kreassign.model import TopicPartition
from kreassign.model.snapshot import ClusterSnapshot, SnapshotPartition, SnapshotTopic
from kreassign.model.text import counted


def sized(replicas: tuple[int, ...], leader: int, *sizes_bytes: int | None) -> SnapshotPartition:
    return SnapshotPartition(replicas, replicas, leader, 0, ("/d",) * len(replicas), sizes_bytes)


@pytest.mark.parametrize(("partition", "size_bytes"), [
    (sized((2, 0, 1), 0, 300, 100, 200), 100),
    (sized((2, 0, 1), 0, 100, None, 200), 200),
    (sized((2, 0), -1, 100, 200), 200),
    (sized((2, 0), 9, 100, None), 100),
    (sized((2, 0), 2, 0, 200), 0),
    (sized((2,), 2, None), None),
    (sized((), -1), None),
])  # fmt: skip
def test_a_partition_is_as_large_as_the_copy_of_its_leader_or_the_largest(
    partition: SnapshotPartition, size_bytes: int | None
) -> None:
    assert partition.size_bytes == size_bytes


@pytest.mark.parametrize(("adding", "removing", "is_moving"), [
    ((), (), False), ((1,), (), True), ((), (0,), True), ((1,), (0,), True),
])  # fmt: skip
def test_a_partition_moves_while_replicas_come_or_go(
    adding: tuple[int, ...], removing: tuple[int, ...], is_moving: bool
) -> None:
    assert SnapshotPartition((0,), (0,), 0, 0, (None,), (None,), adding, removing).is_moving is is_moving


@pytest.mark.parametrize(
    ("log_dirs", "sizes"), [((), (1, 2)), (("/d", None), ()), (("/d",), (1,)), (("/d",) * 3, (1,) * 3)]
)
def test_every_replica_has_one_log_directory_and_one_size(
    log_dirs: tuple[str | None, ...], sizes: tuple[int | None, ...]
) -> None:
    with pytest.raises(InputError) as refused:
        SnapshotPartition((0, 1), (0,), 0, 0, log_dirs, sizes)
    assert str(refused.value) == (
        f"2 replicas have {counted(len(log_dirs), 'log directory', 'log directories')} and "
        f"{counted(len(sizes), 'size')}; there must be one of each for every replica"
    )


def test_partitions_are_those_of_all_topics_by_their_numbers() -> None:
    first, second, other = (sized((broker,), broker, 1) for broker in range(3))
    snapshot = ClusterSnapshot(0, "id", (), (SnapshotTopic("t", (first, second)), SnapshotTopic("u", (other,))))
    assert list(snapshot.partitions) == [
        (TopicPartition("t", 0), first), (TopicPartition("t", 1), second), (TopicPartition("u", 0), other),
    ]  # fmt: skip
