"""Where the nodes of a twin can be reached: listeners, and who a node is on one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kreassign.twin.access.sasl import Users
from kreassign.twin.version import Endpoint


class Address(NamedTuple):
    """A host and a port, as clients are told them."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Listener:
    """One way into every node: a client that came by it is told the addresses of the same listener only.

    With `users` a client must authenticate by SASL/PLAIN first. `security_protocol` is only what denied requests
    say in their text.
    """

    name: str
    addresses: Mapping[int, Address] = field(default_factory=dict)
    users: Users | None = None
    security_protocol: str = "PLAINTEXT"


@dataclass(frozen=True, slots=True)
class Node:
    """One node as a client meets it: by one listener."""

    id: int
    endpoint: Endpoint
    listener: Listener
