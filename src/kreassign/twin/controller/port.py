"""The port to the controller: what nodes ask of it, whether its metadata is in KRaft or in ZooKeeper.

Handlers change the cluster through this port alone, so that neither mode can be forgotten: a call that one of the
modes does not answer is an error of types.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from kreassign.model import TopicPartition
from kreassign.twin.controller.configs import AlterConfigs, ResourceOutcome
from kreassign.twin.controller.decision import Outcome
from kreassign.twin.controller.leader_and_isr import ElectLeaders, LeadersElected
from kreassign.twin.controller.reassignments import AlterReassignments, ReassignmentsAltered
from kreassign.twin.controller.topics import (
    CreatePartitions,
    CreateTopics,
    TopicCreation,
    TopicDeletion,
    TopicReference,
)
from kreassign.twin.metadata import Record


class ControllerPort(Protocol):
    """The controller of a cluster."""

    # --- which node it is -------------------------------------------------------------------------------------

    @property
    def active_id(self) -> int:
        """The node that is the active controller; -1 while there is none."""
        ...

    @property
    def node_ids(self) -> tuple[int, ...]:
        """Nodes that are controllers and not brokers; none where a broker is the controller."""
        ...

    @property
    def epoch(self) -> int:
        """Counts the controllers elected so far."""
        ...

    def takes_requests_at(self, node_id: int) -> bool:
        """Whether a node executes requests for the controller or forwards them; others refuse: NOT_CONTROLLER."""
        ...

    def advertised_id(self, live_brokers: Sequence[int]) -> int:
        """What brokers give clients for the controller's id; -1 for none."""
        ...

    def fail_over(self) -> None:
        """Let the next node become the active controller."""
        ...

    # --- requests of clients ----------------------------------------------------------------------------------

    def create_topics(self, command: CreateTopics) -> tuple[TopicCreation, ...]:
        """Create topics; each has its own outcome."""
        ...

    def delete_topics(
        self, references: Sequence[TopicReference], timeout_ms: int, denied: Collection[str]
    ) -> tuple[TopicDeletion, ...]:
        """Delete topics, apart from those that the client may not; each has its own outcome."""
        ...

    def create_partitions(self, command: CreatePartitions) -> tuple[tuple[str, Outcome], ...]:
        """Add partitions; each topic has its own outcome."""
        ...

    def alter_configs(self, command: AlterConfigs) -> tuple[ResourceOutcome, ...]:
        """Change dynamic configuration; each resource has its own outcome."""
        ...

    def alter_reassignments(self, command: AlterReassignments) -> ReassignmentsAltered:
        """Start, override and cancel moves; each partition has its own outcome."""
        ...

    def elect_leaders(self, command: ElectLeaders) -> LeadersElected:
        """Hold elections; each partition has its own outcome."""
        ...

    def unregister_broker(self, broker_id: int) -> Outcome:
        """Take a broker out of the cluster."""
        ...

    # --- reports of brokers -----------------------------------------------------------------------------------

    def assign_directories(self, broker_id: int, directories: Mapping[TopicPartition, str]) -> None:
        """Take note of the directory ids of a broker's replicas (KIP-858), where the controller keeps them."""
        ...

    # --- records ----------------------------------------------------------------------------------------------

    def before_apply(self, records: tuple[Record, ...]) -> None:
        """Records are about to be applied."""
        ...

    def after_apply(self, records: tuple[Record, ...]) -> None:
        """Records have just been applied."""
        ...
