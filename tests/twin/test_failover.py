"""A controller that takes over at any record goes on as its predecessor would have: all it needs is the log."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from kreassign.model import ElectionType, TopicPartition
from kreassign.twin.cluster import Twin
from kreassign.twin.controller.brokers import fence, register, unfence
from kreassign.twin.controller.reassignments import AlterReassignments, Target, TopicTargets, alter_reassignments
from kreassign.twin.controller.topics import (
    CreatePartitions,
    MorePartitions,
    TopicReference,
    create_partitions,
    delete_topics,
)
from kreassign.twin.store import SIGNATURE, FileLog
from tests.twin.asking import cluster
from tests.twin.controller.small_cluster import SmallCluster, registration, replayed

Command = Callable[[SmallCluster], object]
COMMANDS = 25


# Commands that mean the same whoever carries them out


def alter(target: str | None, index: int) -> Command:
    return lambda small: small.alter(target, index=index) if has(small, index) else None


def everybody_catches_up(index: int) -> Command:
    def act(small: SmallCluster) -> None:
        partition = small.partition(index=index) if has(small, index) else None
        if partition is not None and partition.has_leader:
            alive = [one for one in partition.replicas if small.metadata.is_active(one)]
            small.report_isr(" ".join(map(str, sorted({partition.leader, *alive}))), index=index)

    return act


def leave(broker: int) -> Command:
    return lambda small: None if small.metadata.brokers[broker].fenced else small.commit(fence, broker)


def come_back(broker: int) -> Command:
    def act(small: SmallCluster) -> None:
        if small.metadata.brokers[broker].fenced:
            small.commit(register, registration(broker))
            small.commit(unfence, broker)

    return act


def grow(count: int) -> Command:
    wanted = CreatePartitions((MorePartitions("foo", count),))
    return lambda small: small.commit(create_partitions, wanted, random.Random(count))


def drop_bar(small: SmallCluster) -> None:
    small.commit(delete_topics, (TopicReference("bar"),))


def has(small: SmallCluster, index: int) -> bool:
    return small.metadata.partition(TopicPartition("foo", index)) is not None


def story(seed: int) -> list[Command]:
    """Commands drawn by lot, each with all that it needs to know."""
    rng = random.Random(seed)

    def drawn() -> Command:
        index, broker = rng.randrange(3), rng.randrange(6)
        target = " ".join(map(str, rng.sample(range(6), rng.randint(1, 3))))
        choices = [
            alter(target, index), alter(target, index), alter(target, index), alter(None, index),
            everybody_catches_up(index), everybody_catches_up(index), leave(broker), come_back(broker),
            lambda small: small.elect(ElectionType.PREFERRED, ("foo", 0)), grow(rng.randint(2, 4)), drop_bar,
        ]  # fmt: skip
        return rng.choice(choices)

    return [drawn() for _ in range(COMMANDS)]


def beginning() -> SmallCluster:
    return SmallCluster().topic("foo", "0 1 2", "3 4").topic("bar", "1 2")


def successor(log: list[object]) -> SmallCluster:
    """A controller that knows nothing but the log."""
    small = SmallCluster()
    small.log, small.metadata = list(log), replayed(log)
    return small


@pytest.mark.parametrize("seed", range(6))
def test_a_takeover_at_any_record_ends_in_the_same_state(seed: int) -> None:
    first, commands = beginning(), story(seed)
    ends = [len(first.log)]
    for command in commands:
        command(first)
        ends.append(len(first.log))
    for length in range(ends[0], len(first.log) + 1):
        # A decision whose records are not all there never happened; whoever wanted it asks again.
        done = max(number for number, end in enumerate(ends) if end <= length)
        second = successor(first.log[: ends[done]])
        for command in commands[done:]:
            command(second)
        assert second.log == first.log, f"after record {length}"
        assert second.metadata == first.metadata


# The same with a file, which a crash may tear anywhere


def move(twin: Twin, target: tuple[int, ...]) -> None:
    requested = tuple(TopicTargets("orders", (Target(number, target),)) for number in range(2))
    twin.commit(alter_reassignments(twin.context, AlterReassignments(requested)))


def test_a_torn_log_loses_at_most_its_last_decision(tmp_path: Path) -> None:
    path, blueprint = tmp_path / "metadata.log", cluster({"orders": [[0, 1], [1, 2]]})
    log = FileLog(path)
    twin = Twin(blueprint, log=log)
    before, whole_before = twin.metadata.copy(), path.stat().st_size
    move(twin, (2, 3))
    log.close()
    whole = path.read_bytes()
    assert len(SIGNATURE) < whole_before < len(whole)
    for length in [*range(whole_before, len(whole), 7), len(whole)]:
        path.write_bytes(whole[:length])
        log = FileLog(path)
        again = Twin(blueprint, log=log)
        assert again.metadata == (twin.metadata if length == len(whole) else before), length
        move(again, (2, 3))
        assert [partition.replicas for partition in again.metadata.topics["orders"].partitions.values()] == [
            (2, 3, 0, 1), (2, 3, 1)
        ]  # fmt: skip
        log.close()
