"""Vectors that the comparison with real Kafka found: each was wrong in the twin once, and is what Kafka 4.3.1 does."""

from __future__ import annotations

from kreassign.model import ConfigResource, TopicPartition
from kreassign.twin.cluster import Twin
from kreassign.twin.controller.decision import Decision
from kreassign.twin.controller.reassignments import AlterReassignments, Target, TopicTargets, alter_reassignments
from kreassign.twin.core import TwinSettings
from kreassign.twin.metadata import UNASSIGNED, ConfigChanged, PartitionCreated
from tests.twin.asking import cluster


def configured(size_bytes: int, topic: list[list[int]], **configs: str) -> Twin:
    """A twin with topic t, so configured."""
    asked = Twin(cluster({"t": topic}, size_bytes=size_bytes), TwinSettings())
    records = (
        ConfigChanged(ConfigResource.topic("t"), name.replace("_", "."), value) for name, value in configs.items()
    )
    asked.commit(Decision(tuple(records), None))
    return asked


def eligible(asked: Twin, number: int = 0) -> tuple[int, ...]:
    """Eligible leader replicas of a partition of t."""
    state = asked.metadata.partition(TopicPartition("t", number))
    assert state is not None
    return state.elr


def test_a_stopped_broker_tells_its_directory_when_it_is_back() -> None:
    asked = configured(0, [[0]])
    new = PartitionCreated(TopicPartition("t", 1), (2,), (2,), 2, 0, 0, (UNASSIGNED,))
    asked.commit(Decision((new,), None))
    asked.advance(50)
    asked.stop(2)
    asked.advance(1_000)
    assert eligible(asked, 1) == (2,)
    asked.start(2)
    asked.advance(5_000)
    state = asked.metadata.partition(TopicPartition("t", 1))
    assert state is not None
    assert (state.leader, state.directories != (UNASSIGNED,)) == (2, True)


def test_two_changes_leave_as_many_directories_as_replicas() -> None:
    asked = configured(0, [[0]])
    new = PartitionCreated(TopicPartition("t", 1), (0, 1, 2), (0, 1, 2), 0, 0, 0, (UNASSIGNED,) * 3)
    asked.commit(Decision((new,), None))
    # The brokers have not told their directories yet, so that the second change has nothing to say of them.
    both = AlterReassignments((TopicTargets("t", (Target(1, (0, 1)), Target(1, (2, 1, 0)))),))
    asked.commit(alter_reassignments(asked.context, both))
    asked.advance(10_000)
    state = asked.metadata.partition(TopicPartition("t", 1))
    assert state is not None
    assert (state.replicas, len(state.directories)) == ((2, 1, 0), 3)
