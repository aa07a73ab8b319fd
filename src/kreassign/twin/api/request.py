"""A request as a handler sees it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kreassign.twin.controller.context import ControllerContext
from kreassign.twin.network.endpoints import Address, Node
from kreassign.twin.network.permissions import Operation
from kreassign.twin.setup.version import Endpoint
from kreassign.wire.api import Message

if TYPE_CHECKING:
    from kreassign.twin.cluster import Twin
    from kreassign.twin.metadata.state import ClusterMetadata


@dataclass(frozen=True, slots=True)
class Client:
    """Who asks: the principal (`User:name`), and the connection's name as Kafka's texts give it."""

    principal: str
    connection: str


@dataclass(frozen=True, slots=True)
class Request:
    """A decoded request, the node that got it, and the cluster that the node is part of."""

    twin: Twin
    node: Node
    client: Client
    version: int
    message: Message

    @property
    def metadata(self) -> ClusterMetadata:
        """What this node knows of the cluster: the controller everything, a broker perhaps not the latest."""
        return self.twin.metadata_of(self.node.id)

    @property
    def context(self) -> ControllerContext:
        """What this node knows, with the rules and settings of the cluster."""
        return replace(self.twin.context, metadata=self.metadata)

    @property
    def at_controller(self) -> bool:
        """Whether a controller was asked, not a broker."""
        return self.node.endpoint is Endpoint.CONTROLLER

    def address(self, node_id: int) -> Address:
        """Where a client that came by this listener finds another node."""
        return self.twin.address(node_id, self.node.listener)

    def allows(self, operation: Operation, topic: str | None = None) -> bool:
        """Whether the client may do this to a topic, or (topic None) to the cluster."""
        permissions = self.twin.permissions
        return permissions is None or permissions.allows(self.client.principal, operation, topic)

    def allowed_operations(self, operations: frozenset[Operation], topic: str | None = None) -> set[int]:
        """Kafka's numbers of those operations that the client may carry out."""
        return {int(operation) for operation in operations if self.allows(operation, topic)}

    def denial(self, operation: Operation) -> str:
        """Kafka's text for a request that needed a permission on the cluster; it shows the broker's own words."""
        listener = self.node.listener
        host = self.client.connection.partition("-")[2].rpartition(":")[0] or "127.0.0.1"
        return (
            f"Request Request(processor=0, connectionId={self.client.connection}, "
            f"session=Session({self.client.principal},/{host}), listenerName=ListenerName({listener.name}), "
            f"securityProtocol={listener.security_protocol}, buffer=null, envelope=None) "
            f"needs {operation.name} permission."
        )
