"""Leader elections that an operator can ask for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from kreassign.errors import InputError
from kreassign.model.batch import Batch
from kreassign.model.partition import TopicPartition


class ElectionType(IntEnum):
    """How a leader is chosen, with Kafka's number for it (KIP-460)."""

    PREFERRED = 0
    UNCLEAN = 1


@dataclass(frozen=True, slots=True)
class PreferredElectionResult:
    """What became of a preferred leader election (KIP-183, `ElectPreferredLeadersResult`).

    A partition is well if its preferred replica leads it now, which it may have done before.
    """

    outcomes: Batch[TopicPartition, None]

    def partition_result(self, topic_partition: TopicPartition) -> None:
        """Return if the partition is well, raise its error if not; `InputError` if no election was attempted for it."""
        if topic_partition not in set(self.outcomes):
            raise InputError(f"no preferred leader election was attempted for partition {topic_partition}")
        self.outcomes[topic_partition]

    def partitions(self) -> frozenset[TopicPartition]:
        """The partitions for which an election was attempted, whatever became of it.

        When all partitions were asked for, those that did not need one are not among them.
        """
        return frozenset(self.outcomes)

    def all(self) -> None:
        """Return if every partition is well, raise the first error if not."""
        self.outcomes.raise_if_any()
