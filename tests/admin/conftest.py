"""Listeners and clients that are closed when their test ends."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from kreassign.admin import AdminClient, ClientSettings
from tests.admin.listener import Listener

REQUEST_TIMEOUT_MS = 500
API_TIMEOUT_MS = 5_000


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def listen(stack: ExitStack) -> Callable[..., Listener]:
    """Start another node."""

    def start(tls: ssl.SSLContext | None = None) -> Listener:
        return stack.enter_context(closing(Listener(tls)))

    return start


@pytest.fixture
def node(listen: Callable[..., Listener]) -> Listener:
    return listen()


@pytest.fixture
def connect(stack: ExitStack) -> Callable[..., AdminClient]:
    """A client that starts from these nodes. A node that stays silent costs it 0.5 s."""

    def start(*nodes: Listener, **fields: object) -> AdminClient:
        addresses = tuple(node.address for node in nodes)
        chosen = {
            "bootstrap_servers": addresses,
            "request_timeout_ms": REQUEST_TIMEOUT_MS,
            "api_timeout_ms": API_TIMEOUT_MS,
            "retry_backoff_ms": 10,
        } | fields
        return stack.enter_context(AdminClient.connect(ClientSettings(**chosen)))

    return start
