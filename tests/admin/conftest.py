"""Listeners and clients that are closed when their test ends."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from kreassign.admin import AdminClient, ClientSettings
from kreassign.clock import VirtualClock
from testbed.ports import reserved_ports
from tests.admin.listener import Listener, join

# Longer than any test may take.
LONG_MS = 600_000
RETRY_BACKOFF_MS = 60_000
SILENCE_MS = 1_000
"""The request timeout where a node stays silent: this one passes on the machine's clock."""


class PausesOnly(VirtualClock, threading.local):
    """Time that passes only between two tries, for each thread by itself: no call runs out of it on a busy machine."""


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def listen(stack: ExitStack) -> Callable[..., Listener]:
    """Start another node. Nobody else listens at its port once it is closed."""
    ports = stack.enter_context(reserved_ports())

    def start(tls: ssl.SSLContext | None = None) -> Listener:
        return stack.enter_context(closing(Listener(tls, ports.take())))

    return start


@pytest.fixture
def node(listen: Callable[..., Listener]) -> Listener:
    """The only node of a cluster."""
    found = listen()
    join(found)
    return found


@pytest.fixture
def connect(stack: ExitStack) -> Callable[..., AdminClient]:
    """A client that starts from these nodes and tries for ten minutes, of which only the pauses count."""

    def start(*nodes: Listener, **fields: object) -> AdminClient:
        addresses = tuple(node.address for node in nodes)
        chosen = {
            "bootstrap_servers": addresses,
            "request_timeout_ms": LONG_MS,
            "api_timeout_ms": LONG_MS,
            "connect_timeout_ms": LONG_MS,
            "retry_backoff_ms": RETRY_BACKOFF_MS,
        } | fields
        return stack.enter_context(AdminClient.connect(ClientSettings(**chosen), clock=PausesOnly()))

    return start
