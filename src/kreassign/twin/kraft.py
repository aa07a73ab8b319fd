"""The controllers of a cluster in KRaft mode: a quorum whose members all know the metadata log; one is active."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kreassign.model import NO_LEADER, TopicPartition
from kreassign.twin.controller.brokers import unregister
from kreassign.twin.controller.configs import AlterConfigs, ResourceOutcome, alter_configs
from kreassign.twin.controller.decision import Outcome
from kreassign.twin.controller.directories import assign_directories
from kreassign.twin.controller.elections import ElectLeaders, LeadersElected, elect_leaders
from kreassign.twin.controller.partitions import CreatePartitions, create_partitions
from kreassign.twin.controller.reassignments import AlterReassignments, ReassignmentsAltered, alter_reassignments
from kreassign.twin.controller.topics import (
    CreateTopics,
    TopicCreation,
    TopicDeletion,
    TopicReference,
    create_topics,
    delete_topics,
)
from kreassign.twin.core import TwinCore
from kreassign.twin.metadata.records import Record

FIRST_ID = 100


class KRaftController:
    """The active controller of a quorum. Others take over in the order of their ids, and after the last the first."""

    def __init__(self, core: TwinCore) -> None:
        first = max(FIRST_ID, max(core.processes.ids) + 1)
        self._core = core
        self._node_ids = tuple(range(first, first + core.settings.controller_count))
        self._active = first
        self._epoch = 1

    @property
    def active_id(self) -> int:
        """The active controller."""
        return self._active

    @property
    def node_ids(self) -> tuple[int, ...]:
        """The members of the quorum."""
        return self._node_ids

    @property
    def epoch(self) -> int:
        """The leader epoch of the quorum."""
        return self._epoch

    def takes_requests_at(self, node_id: int) -> bool:
        """Brokers forward requests to the active controller; the others refuse."""
        return node_id == self._active or node_id not in self._node_ids

    def advertised_id(self, live_brokers: Sequence[int]) -> int:
        """A live broker drawn at random: clients of brokers cannot reach controllers."""
        return self._core.random.choice(live_brokers) if live_brokers else NO_LEADER

    def fail_over(self) -> None:
        """Make the next controller the active one; a single one resigns and is elected again."""
        self._active = self._node_ids[(self._node_ids.index(self._active) + 1) % len(self._node_ids)]
        self._epoch += 1

    # --- requests ---------------------------------------------------------------------------------------------

    def create_topics(self, command: CreateTopics) -> tuple[TopicCreation, ...]:
        """Create topics."""
        return self._core.commit(create_topics(self._core.context, command, self._core.random))

    def delete_topics(
        self, references: Sequence[TopicReference], timeout_ms: int, denied: Collection[str]
    ) -> tuple[TopicDeletion, ...]:
        """Delete topics."""
        return self._core.commit(delete_topics(self._core.context, references, timeout_ms, denied))

    def create_partitions(self, command: CreatePartitions) -> tuple[tuple[str, Outcome], ...]:
        """Add partitions."""
        return self._core.commit(create_partitions(self._core.context, command, self._core.random))

    def alter_configs(self, command: AlterConfigs) -> tuple[ResourceOutcome, ...]:
        """Change dynamic configuration."""
        return self._core.commit(alter_configs(self._core.context, command))

    def alter_reassignments(self, command: AlterReassignments) -> ReassignmentsAltered:
        """Start, override and cancel moves."""
        return self._core.commit(alter_reassignments(self._core.context, command))

    def elect_leaders(self, command: ElectLeaders) -> LeadersElected:
        """Hold elections."""
        return self._core.commit(elect_leaders(self._core.context, command))

    def unregister_broker(self, broker_id: int) -> Outcome:
        """Take a broker out of the cluster."""
        return self._core.commit(unregister(self._core.context, broker_id))

    def assign_directories(self, broker_id: int, directories: Mapping[TopicPartition, str]) -> None:
        """Take note of the directory ids of a broker's replicas (KIP-858)."""
        self._core.commit(assign_directories(self._core.context, broker_id, directories))

    # --- records ----------------------------------------------------------------------------------------------

    def before_apply(self, records: tuple[Record, ...]) -> None:
        """Nothing to do: brokers read the metadata log themselves."""

    def after_apply(self, records: tuple[Record, ...]) -> None:
        """Nothing to do: brokers read the metadata log themselves."""
