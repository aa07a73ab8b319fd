"""Fixtures of commands at a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commands.test_steering import Terminal, serving_terminal


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """The command line on a served twin of its own."""
    with serving_terminal(tmp_path) as found:
        yield found
