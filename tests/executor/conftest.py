"""A cluster for runs, and a client of it whose answers a test may change."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.executor.odd_port import OddPort
from tests.executor.twin_runs import TwinRig


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    """Five brokers of a twin; brokers 0 and 1 have both partitions of `t`."""
    return TwinRig(tmp_path, [[0, 1], [1, 0]])


@pytest.fixture
def odd(rig: TwinRig) -> OddPort:
    """The client of runs on the rig, which answers as it is until a test says otherwise."""
    port = OddPort(rig.client)
    rig.odd_port = port.port
    return port
