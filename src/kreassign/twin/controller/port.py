"""The port to the controller: the calls of nodes, whether its metadata is in KRaft or in ZooKeeper.

Handlers change the cluster only through this port, so that neither mode can be forgotten: a call that one mode does not
implement is a type error.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from kreassign.model import TopicPartition
from kreassign.twin.controller import topics
from kreassign.twin.controller.configs import AlterConfigs, ResourceOutcome
from kreassign.twin.controller.decision import Outcome
from kreassign.twin.controller.leader_and_isr import ElectLeaders, LeadersElected
from kreassign.twin.controller.reassignments import AlterReassignments, ReassignmentsAltered
from kreassign.twin.metadata import Record


class ControllerPort(Protocol):
    """The controller of a cluster, in either mode."""

    # --- controller nodes -------------------------------------------------------------------------------------

    @property
    def active_id(self) -> int:
        """The id of the active controller; -1 while there is none."""
        ...

    @property
    def node_ids(self) -> tuple[int, ...]:
        """Controllers that are not brokers; none if a broker is the controller."""
        ...

    @property
    def epoch(self) -> int:
        """Number of controllers elected so far."""
        ...

    def takes_requests_at(self, node_id: int) -> bool:
        """True if a node executes or forwards requests for the controller; others refuse: NOT_CONTROLLER."""
        ...

    def advertised_id(self, live_brokers: Sequence[int]) -> int:
        """The controller id that brokers give to clients; -1 for none."""
        ...

    def fail_over(self) -> None:
        """Let the next node become the active controller."""
        ...

    # --- requests of clients ----------------------------------------------------------------------------------

    def create_topics(self, command: topics.CreateTopics) -> tuple[topics.TopicCreation, ...]:
        """Create topics; each has its own outcome."""
        ...

    def delete_topics(
        self, references: Sequence[topics.TopicReference], timeout_ms: int, denied: Collection[str]
    ) -> tuple[topics.TopicDeletion, ...]:
        """Delete topics, apart from the `denied` ones; each has its own outcome."""
        ...

    def create_partitions(self, command: topics.CreatePartitions) -> tuple[tuple[str, Outcome], ...]:
        """Add partitions; each topic has its own outcome."""
        ...

    def alter_configs(self, command: AlterConfigs) -> tuple[ResourceOutcome, ...]:
        """Change dynamic configuration; each resource has its own outcome."""
        ...

    def alter_reassignments(self, command: AlterReassignments) -> ReassignmentsAltered:
        """Start, override and cancel moves; each partition has its own outcome."""
        ...

    def elect_leaders(self, command: ElectLeaders) -> LeadersElected:
        """Elect leaders; each partition has its own outcome."""
        ...

    def unregister_broker(self, broker_id: int) -> Outcome:
        """Unregister a broker, which removes it from the cluster."""
        ...

    # --- reports of brokers -----------------------------------------------------------------------------------

    def assign_directories(self, broker_id: int, directories: Mapping[TopicPartition, str]) -> None:
        """Store the directory ids of a broker's replicas (KIP-858), if this mode has them."""
        ...

    # --- records ----------------------------------------------------------------------------------------------

    def before_apply(self, records: tuple[Record, ...]) -> None:
        """Called before records are applied."""
        ...

    def after_apply(self, records: tuple[Record, ...]) -> None:
        """Called after records were applied."""
        ...
