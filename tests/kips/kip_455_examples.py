"""The worked examples of KIP-455, step by step, on whatever cluster has brokers 0 to 5.

Where shipped Kafka keeps its lists in another order than the document, the lists of Kafka stand in the check, and those
of the document in the comment beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kreassign.admin import AdminClient
from kreassign.model import OngoingReassignment, Partition, TopicPartition
from kreassign.model.throttle import clear_broker_changes, move_map, rate_changes, topic_changes

BROKERS = 6


@dataclass(frozen=True, slots=True)
class Stage:
    """A partition on 1, 2 and 3, and a throttle for its moves; `wait` lets time pass until something is so."""

    client: AdminClient
    partition: TopicPartition
    wait: Callable[[Callable[[], bool], str], None]
    rate_bytes_per_s: int

    def hold(self) -> None:
        """Let no new replica of the partition come into sync."""
        moves = move_map({}, {self.partition: (3, 4, 5)}, {self.partition: (1, 2, 3)})
        self.client.incremental_alter_configs(topic_changes(moves)).raise_if_any()
        self.client.incremental_alter_configs(rate_changes(range(BROKERS), self.rate_bytes_per_s)).raise_if_any()

    def release(self) -> None:
        """Let them."""
        self.client.incremental_alter_configs(clear_broker_changes(range(BROKERS))).raise_if_any()


def replacing_1_2_3_by_4_3_2(stage: Stage) -> None:
    """R [1,2,3] → target [4,3,2]: AR [4], RR [1]; 4 joins the ISR; then R [4,3,2], AR and RR empty."""
    stage.hold()
    stage.client.alter_partition_reassignments({stage.partition: (4, 3, 2)}).raise_if_any()
    # The document has R [1,4,3,2]; Kafka shows the target first, then what is being removed.
    assert _ongoing(stage) == OngoingReassignment((4, 3, 2, 1), adding=(4,), removing=(1,))
    assert set(_shown(stage).isr) == {1, 2, 3}
    stage.release()
    stage.wait(lambda: _ongoing(stage) is None and _shown(stage).replicas == (4, 3, 2), "the move to [4,3,2]")
    stage.wait(lambda: set(_shown(stage).isr) == {2, 3, 4}, "an ISR without 1")
    assert _shown(stage).leader in {2, 3, 4}


def cancelling_the_move_to_3_4_5(stage: Stage) -> None:
    """R [1,2,3] → target [3,4,5]: AR [4,5], RR [1,2]; cancelled: R is [1,2,3] again, as a set."""
    stage.hold()
    stage.client.alter_partition_reassignments({stage.partition: (3, 4, 5)}).raise_if_any()
    # The document has R [1,2,3,4,5].
    assert _ongoing(stage) == OngoingReassignment((3, 4, 5, 1, 2), adding=(4, 5), removing=(1, 2))
    stage.client.alter_partition_reassignments({stage.partition: None}).raise_if_any()
    assert _ongoing(stage) is None
    # The document has [1,2,3]; Kafka takes AR out of R and keeps the order of what is left.
    stage.wait(lambda: _shown(stage).replicas == (3, 1, 2), "the replicas from before")
    assert set(_shown(stage).isr) == {1, 2, 3}
    stage.release()


def _ongoing(stage: Stage) -> OngoingReassignment | None:
    return stage.client.list_partition_reassignments([stage.partition]).get(stage.partition)


def _shown(stage: Stage) -> Partition:
    topic = stage.client.describe_topics([stage.partition.topic])[stage.partition.topic]
    return topic.partitions[stage.partition.partition]


EXAMPLES: tuple[Callable[[Stage], None], ...] = (replacing_1_2_3_by_4_3_2, cancelling_the_move_to_3_4_5)
