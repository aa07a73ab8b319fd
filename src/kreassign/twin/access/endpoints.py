"""Where the nodes of a twin can be reached: listeners, and who a node is on one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kreassign.twin.access.sasl import Users
from kreassign.twin.version import Endpoint


class Address(NamedTuple):
    """A host and a port, as clients get them."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Listener:
    """A listener of every node: its clients get the addresses of the same listener only.

    With `users` a client must authenticate by SASL/PLAIN first. `security_protocol` only
    appears in the messages of denied requests.
    """

    name: str
    addresses: Mapping[int, Address] = field(default_factory=dict)
    users: Users | None = None
    security_protocol: str = "PLAINTEXT"


@dataclass(frozen=True, slots=True)
class Node:
    """One node as its clients see it: by one listener."""

    id: int
    endpoint: Endpoint
    listener: Listener
