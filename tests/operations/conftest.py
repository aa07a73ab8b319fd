"""Fixtures of tests of operations."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.executor.twin_runs import TwinRig
from tests.operations.decommissions import LISTS, Operators


@pytest.fixture
def operators(tmp_path: Path) -> Operators:
    return Operators(TwinRig(tmp_path, LISTS))
