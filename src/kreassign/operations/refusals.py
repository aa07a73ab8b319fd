"""Connect for a whole command, and explain what the cluster refuses to it by the cluster's distribution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kreassign.admin import AdminClient
from kreassign.executor.cluster.permissions import explained
from kreassign.operations.connect import connect


@contextmanager
def connect_explained(bootstrap_servers: str, properties: Path | Mapping[str, str] | None) -> Iterator[AdminClient]:
    """A connected client; refusals that the cluster's distribution explains say so. Raises InputError, Unreachable."""
    with connect(bootstrap_servers, properties) as client, explained(client):
        yield client
