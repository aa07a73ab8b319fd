"""A served twin."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kreassign.twin.server import ServerThread, serving
from tests.twin.asking import twin


@pytest.fixture
def server() -> Iterator[ServerThread]:
    """Brokers 0 to 3 on ports of this machine, with topic orders on 0 and 1, and on 1 and 2."""
    with serving(twin({"orders": [[0, 1], [1, 2]]})) as running:
        yield running
        assert not running.server.failures
