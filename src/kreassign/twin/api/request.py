"""A request, and the type of a handler.

Handlers read this node's view of the metadata, which may lag, and change the cluster only through its controller, its
copies and its groups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from kreassign.twin.access import HostPort, Node, Operation
from kreassign.twin.controller.decision import ControllerContext
from kreassign.twin.core import TwinCore
from kreassign.twin.metadata import ClusterMetadata
from kreassign.twin.version import Endpoint
from kreassign.wire.api import Api, Message


@dataclass(frozen=True, slots=True)
class Client:
    """The requesting client: its principal (`User:name`), and the name of its connection in Kafka's messages."""

    principal: str
    connection: str


@dataclass(frozen=True, slots=True)
class Request:
    """A decoded request, the node that received it, and the cluster of the node.

    `client_id` is the client's own name, "" if it gave none.
    """

    cluster: TwinCore
    node: Node
    client: Client
    called: Api
    version: int
    message: Message
    client_id: str = ""

    @property
    def metadata(self) -> ClusterMetadata:
        """This node's view of the cluster, which may lag."""
        return self.cluster.metadata_of(self.node.id, self.called.key)

    @property
    def forwarded_metadata(self) -> ClusterMetadata:
        """The view of the answering controller: this node, or the one to which this broker forwards the request."""
        if self.at_controller:
            return self.metadata
        return self.cluster.forwarded_metadata_of(self.node.id, self.called.key)

    @property
    def context(self) -> ControllerContext:
        """This node's view, with the rules and settings of the cluster."""
        return replace(self.cluster.context, metadata=self.metadata)

    @property
    def at_controller(self) -> bool:
        """True if the node is a controller, not a broker."""
        return self.node.endpoint is Endpoint.CONTROLLER

    def address(self, node_id: int) -> HostPort:
        """Address of another node for a client of this listener."""
        return self.cluster.address(node_id, self.node.listener)

    def allows(self, operation: Operation, topic: str | None = None, group: str | None = None) -> bool:
        """True if the client may run an operation on a topic, a consumer group, or (neither) the cluster."""
        permissions = self.cluster.permissions
        return permissions is None or permissions.allows(self.client.principal, operation, topic, group)

    @property
    def client_host(self) -> str:
        """The address from which the client connected."""
        return self.client.connection.partition("-")[2].rpartition(":")[0] or "127.0.0.1"

    def allowed_operations(self, operations: frozenset[Operation], topic: str | None = None) -> set[int]:
        """Kafka's numbers of those operations that the client may run."""
        return {int(operation) for operation in operations if self.allows(operation, topic)}

    def denial(self, operation: Operation) -> str:
        """Kafka's message for a missing permission on the cluster; it quotes the broker's own objects."""
        listener = self.node.listener
        return (
            f"Request Request(processor=0, connectionId={self.client.connection}, "
            f"session=Session({self.client.principal},/{self.client_host}), "
            f"listenerName=ListenerName({listener.name}), "
            f"securityProtocol={listener.security_protocol}, buffer=null, envelope=None) "
            f"needs {operation.name} permission."
        )


class Handler(NamedTuple):
    """An API, and the function that answers its requests; the version was checked before."""

    api: Api
    handle: Callable[[Request], Message]
